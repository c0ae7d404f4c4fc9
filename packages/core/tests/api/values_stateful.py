"""What changes its first argument, numbers at compile time: calls and what they give; see test_values.py."""

CASES = """
updated(lambda w: ops.ApplyGradientDescent()(w, t(0.1), y))
    float32[2, 3] 0.3 -0.95 1.9 3.3 0.1 -0.775
updated(lambda w: ops.ApplyAdagrad()(w, par(p), t(0.1), y))
    float32[2, 3] 0.41472 -0.96667 1.95 3.0937 0.19 -0.76562
updated(lambda w: ops.ApplyAdaMax()(w, par(u), par(p), t(0.9), t(0.1), t(0.9), t(0.999), t(1e-8), y))
    float32[2, 3] 0.31 -1.1552 1.6964 2.92 0.18994 -0.94019
updated(lambda w: ops.ApplyAdamWithAmsgrad()(w, par(u), par(p), par(p), t(0.9), t(0.99), t(0.1), y))
    float32[2, 3] 0.469 -1.0219 1.9475 2.9786 0.238 -0.78004
updated(lambda w: ops.ApplyAdamWithAmsgradV2()(w, par(u), par(p), par(p), t(0.9), t(0.99), t(0.1), t(0.9),
        t(0.99), t(1e-8), y))
    float32[2, 3] 0.46923 -1.0219 1.9475 2.9792 0.238 -0.78004
updated(lambda w: ops.ApplyCenteredRMSProp()(w, par(u), par(p), par(u), y, 0.1, 0.9, 0.1, 1e-3))
    float32[2, 3] 0.32221 -1.002 1.8388 3.1538 0.16273 -0.81754
updated(lambda w: ops.ScatterNdAdd()(w, t([[0], [1]], 'int32'), y))
    float32[2, 3] 2.5 -1.5 3 0 1.75 -0.5
updated(lambda w: ops.ScatterNdUpdate()(w, t([[1]], 'int32'), y[:1]))
    float32[2, 3] 0.5 -1 2 2 -0.5 1
updated(lambda w: ops.ScatterUpdate()(w, t([1, 0], 'int32'), y))
    float32[2, 3] -3 1.5 0.25 2 -0.5 1
updated(lambda w: ops.scatter_nd_add(w, t([[0], [1]], 'int32'), y))
    float32[2, 3] 2.5 -1.5 3 0 1.75 -0.5
updated(lambda w: ops.scatter_nd_update(w, t([[1]], 'int32'), y[:1]))
    float32[2, 3] 0.5 -1 2 2 -0.5 1
updated(lambda w: ops.scatter_update(w, t([1, 0], 'int32'), y))
    float32[2, 3] -3 1.5 0.25 2 -0.5 1
updated(lambda w: ops.assign_sub(w, y))
    float32[2, 3] -1.5 -0.5 1 6 -1.25 -1
ops.inplace_add(x, y, (0, 1))
    float32[2, 3] 2.5 -1.5 3 0 1.75 -0.5
ops.inplace_sub(x, y, (0, 1))
    float32[2, 3] -1.5 -0.5 1 6 -1.25 -1
ops.inplace_update(x, t([[7, 8, 9]]), 1)
    float32[2, 3] 0.5 -1 2 7 8 9
ops.inplace_index_add(par(x), t([1], 'int32'), t([[1, 2, 3]]), 0)
    float32[2, 3] 0.5 -1 2 4 2.25 2.25
ops.augassign_add(1, 2)
    3
ops.augassign_div(6, 3)
    2
ops.augassign_floordiv(7, 2)
    3
ops.augassign_mod(7, 4)
    3
ops.augassign_mul(3, 4)
    12
ops.augassign_sub(3, 1)
    2
ops.scalar_eq(2, 2)
    True
ops.scalar_ge(2, 3)
    False
ops.scalar_gt(3, 2)
    True
ops.scalar_le(3, 2)
    False
ops.scalar_lt(1, 2)
    True
ops.scalar_log(2.0)
    0.69315
ops.scalar_max(2, 3)
    3
ops.scalar_min(2, 3)
    2
ops.scalar_mod(7, 4)
    3
ops.scalar_mul(3, 4)
    12
ops.scalar_pow(2, 3)
    8
ops.scalar_sub(5, 3)
    2
ops.scalar_uadd(4)
    4
ops.shape_(x)
    2 ; 3
ops.dyn_shape(x)
    int64[2] 2 3
ops.shape_mul((2, 3))
    6
"""
