"""Methods of Tensor: calls and what they give; see test_values.py."""

CASES = """
u.arccos()
    float32[2, 3] 1.3694 1.1593 0.45103 0.9273 1.4706 1.0472
u.arcsinh()
    float32[2, 3] 0.19869 0.39004 0.80887 0.56882 0.099834 0.48121
u.arctan()
    float32[2, 3] 0.1974 0.38051 0.73282 0.54042 0.099669 0.46365
u.arctanh()
    float32[2, 3] 0.20273 0.42365 1.4722 0.69315 0.10034 0.54931
u.deg2rad()
    float32[2, 3] 0.0034907 0.0069813 0.015708 0.010472 0.0017453 0.0087266
u.digamma()
    float32[2, 3] -5.289 -2.5614 -0.75493 -1.5406 -10.424 -1.9635
u.erfinv()
    float32[2, 3] 0.17914 0.37081 1.1631 0.59512 0.088856 0.47694
u.isposinf()
    bool[2, 3] 0 0 0 0 0 0
u.isreal()
    bool[2, 3] 1 1 1 1 1 1
u.logit()
    float32[2, 3] -1.3863 -0.40547 2.1972 0.40547 -2.1972 0
u.rad2deg()
    float32[2, 3] 11.459 22.918 51.566 34.377 5.7296 28.648
u.sgn()
    float32[2, 3] 1 1 1 1 1 1
u.sinc()
    float32[2, 3] 0.93549 0.75683 0.10929 0.50455 0.98363 0.63662
u.adjoint()
    float32[3, 2] 0.2 0.6 0.4 0.1 0.9 0.5
u.aminmax()
    float32[3] 0.2 0.1 0.5 ; float32[3] 0.6 0.4 0.9
u.argwhere()
    int64[6, 2] 0 0 0 1 0 2 1 0 1 1 1 2
u.argmax_with_value()
    float32[3] 0.6 0.4 0.9 ; int64[3] 1 0 0
u.argmin_with_value()
    float32[3] 0.2 0.1 0.5 ; int64[3] 0 1 1
u.fliplr()
    float32[2, 3] 0.9 0.4 0.2 0.5 0.1 0.6
u.flipud()
    float32[2, 3] 0.6 0.1 0.5 0.2 0.4 0.9
u.msort()
    float32[2, 3] 0.2 0.1 0.5 0.6 0.4 0.9
x.arctan2(y)
    float32[2, 3] 0.24498 -2.0344 1.1071 2.3562 0.16515 -1.249
x.eq(y)
    bool[2, 3] 0 0 0 0 0 0
x.ge(y)
    bool[2, 3] 0 0 1 1 0 0
x.greater_equal(y)
    bool[2, 3] 0 0 1 1 0 0
x.heaviside(y)
    float32[2, 3] 1 0 1 1 1 0
x.le(y)
    bool[2, 3] 1 1 0 0 1 1
x.lt(y)
    bool[2, 3] 1 1 0 0 1 1
x.ne(y)
    bool[2, 3] 1 1 1 1 1 1
x.multiply(y)
    float32[2, 3] 1 0.5 2 -9 0.375 -0.1875
x.true_divide(y)
    float32[2, 3] 0.25 2 2 -1 0.16667 -3
x.logaddexp(y)
    float32[2, 3] 2.2014 -0.025923 2.3133 3.0025 1.7519 0.56326
x.xdivy(y)
    float32[2, 3] 0.25 2 2 -1 0.16667 -3
x.reshape_as(y)
    float32[2, 3] 0.5 -1 2 3 0.25 -0.75
x.view_as(y)
    float32[2, 3] 0.5 -1 2 3 0.25 -0.75
x.type_as(y)
    float32[2, 3] 0.5 -1 2 3 0.25 -0.75
i.bitwise_and(j)
    int32[2, 3] 4 1 0 0 0 6
i.bitwise_or(j)
    int32[2, 3] 6 3 -1 7 2 7
i.bitwise_xor(j)
    int32[2, 3] 2 2 -1 7 2 1
i.gcd(j)
    int32[2, 3] 2 1 1 1 2 1
j.bitwise_left_shift(j)
    int32[2, 3] 64 2 24 160 8 384
j.bitwise_right_shift(j)
    int32[2, 3] 0 0 0 0 0 0
b.logical_or(c)
    bool[2, 3] 1 1 1 0 1 1
b.logical_xor(c)
    bool[2, 3] 0 1 1 0 0 1
x.copy().exp_()
    float32[2, 3] 1.6487 0.36788 7.3891 20.086 1.284 0.47237
x.copy().floor_()
    float32[2, 3] 0 -1 2 3 0 -1
x.copy().sign_()
    float32[2, 3] 1 -1 1 1 1 -1
p.copy().log_()
    float32[2, 3] 0.40547 0.69315 1.0986 0.22314 1.3863 0.91629
x.copy().div_(y)
    float32[2, 3] 0.25 2 2 -1 0.16667 -3
x.copy().sub_(y)
    float32[2, 3] -1.5 -0.5 1 6 -1.25 -1
~x.copy().random_()
    float32[2, 3]
~x.copy().uniform_()
    float32[2, 3]
~x.copy().cauchy()
    float32[2, 3]
~x.copy().log_normal()
    float32[2, 3]
p.arccosh()
    float32[2, 3] 0.96242 1.317 1.7627 0.69315 2.0634 1.5668
x.mH
    float32[3, 2] 0.5 3 -1 0.25 2 -0.75
x.mT
    float32[3, 2] 0.5 3 -1 0.25 2 -0.75
x.addcmul(y, p, 0.5)
    float32[2, 3] 2 -1.5 3.5 1.125 3.25 -0.4375
spd.copy().addmm_(spd, spd)
    float32[3, 3] 25 23 17 23 43 38 17 38 52
t(np.arange(16).reshape(1, 1, 4, 4)).col2im(t([4, 4], 'int32'), [2, 2], [1, 1], [0, 0], [2, 2])
    float32[1, 1, 4, 4] sum 120 weighted 351
v.diagflat()
    float32[3, 3] 1 0 0 0 -2 0 0 0 0.5
spd.diagonal_scatter(v)
    float32[3, 3] 1 2 1 2 -2 3 1 3 0.5
vol[0].dsplit(2)
    float32[1, 4, 2, 4] sum 154 weighted 448 ; float32[1, 4, 2, 4] sum 157 weighted 455
x.hsplit(3)
    float32[2, 1] 0.5 3 ; float32[2, 1] -1 0.25 ; float32[2, 1] 2 -0.75
x.vsplit(2)
    float32[1, 3] 0.5 -1 2 ; float32[1, 3] 3 0.25 -0.75
v.tensor_split(2)
    float32[2] 1 -2 ; float32[1] 0.5
x.fills(3.0)
    float32[2, 3] 3 3 3 3 3 3
x.gather_elements(1, t([[2, 0], [1, 1]], 'int32'))
    float32[2, 2] 2 0.5 0.25 0.25
v.ger(q)
    float32[3, 3] 0.5 1.5 2 -1 -3 -4 0.25 0.75 1
p.igammac(u)
    float32[2, 3] 0.94024 0.93845 0.93714 0.66141 1 0.96257
x.index_fill(1, t([0, 2], 'int32'), 9.0)
    float32[2, 3] 9 -1 9 9 0.25 9
x.index_put((t([0, 1], 'int64'), t([1, 2], 'int64')), t([5, 6]))
    float32[2, 3] 0.5 5 2 3 0.25 6
x.inplace_update(t([[7, 8, 9]]), 1)
    float32[2, 3] 0.5 -1 2 7 8 9
t([1, -2, 5], 'int16').invert()
    int16[3] -2 1 -6
x.itemset((0, 1), 8.0)
    float32[2, 3] 0.5 8 2 3 0.25 -0.75
spd.log_matrix_determinant()
    float32[] 1 ; float32[] 4.2047
spd.logdet()
    float32[] 4.2047
spd.slogdet()
    float32[] 1 ; float32[] 4.2047
spd.matrix_determinant()
    float32[] 67
x.logcumsumexp(1)
    float32[2, 3] 0.5 0.70141 2.2413 3 3.062 3.0838
x.copy().masked_fill_(b, 4.0)
    float32[2, 3] 4 -1 4 3 4 4
x.masked_scatter(b, p)
    float32[2, 3] 1.5 -1 2 3 3 1.25
x.masked_select(b)
    float32[4] 0.5 2 0.25 -0.75
vol[0].movedim(0, 2).shape
    4 ; 4 ; 1 ; 4
p.mvlgamma(2)
    float32[2, 3] 0.45158 0.45158 1.5502 0.67737 3.5651 0.85705
x.nanmedian()
    float32[2] 0.5 0.25 ; int64[2] 0 1
x.nanquantile(0.5)
    float32[] 0.375
x.new_ones((2,))
    float32[2] 1 1
x.new_zeros((2, 1))
    float32[2, 1] 0 0
~x.new_empty((3,))
    float32[3]
~x.random_categorical(4)
    int64[2, 4]
x.requires_grad_(True)
    None
x.scatter_sub(t([[0, 1]], 'int32'), t([1]))
    float32[2, 3] 0.5 -2 2 3 0.25 -0.75
x.select_scatter(v, 0, 1)
    float32[2, 3] 0.5 -1 2 1 -2 0.5
x.slice_scatter(ops.zeros((2, 1)), 1, 0, 1, 1)
    float32[2, 3] 0 -1 2 0 0.25 -0.75
x.soft_shrink()
    float32[2, 3] 0 -0.5 1.5 2.5 0 -0.25
x.swapdims(0, 1)
    float32[3, 2] 0.5 3 -1 0.25 2 -0.75
x.top_k(2)
    float32[2, 2] 2 0.5 3 0.25 ; int32[2, 2] 2 0 0 1
t([[1], [2]]).triangular_solve(t([[2, 1], [0, 4]]))
    float32[2, 1] 0.25 0.5 ; float32[2, 2] 2 1 0 4
x.set_const_arg(True).const_arg
    True
x.copy().set_dtype(ms.float16)
    Float16
x.is_init()
    False
x.is_pinned()
    False
x.virtual_flag
    False
"""
