"""Functions of mint: calls and what they give; see test_values.py."""

CASES = """
mint.arccos(u)
    float32[2, 3] 1.3694 1.1593 0.45103 0.9273 1.4706 1.0472
mint.arcsinh(u)
    float32[2, 3] 0.19869 0.39004 0.80887 0.56882 0.099834 0.48121
mint.arctan(u)
    float32[2, 3] 0.1974 0.38051 0.73282 0.54042 0.099669 0.46365
mint.arctanh(u)
    float32[2, 3] 0.20273 0.42365 1.4722 0.69315 0.10034 0.54931
mint.erfinv(u)
    float32[2, 3] 0.17914 0.37081 1.1631 0.59512 0.088856 0.47694
mint.sinc(u)
    float32[2, 3] 0.93549 0.75683 0.10929 0.50455 0.98363 0.63662
mint.special.sinc(u)
    float32[2, 3] 0.93549 0.75683 0.10929 0.50455 0.98363 0.63662
mint.eq(x, y)
    bool[2, 3] 0 0 0 0 0 0
mint.greater_equal(x, y)
    bool[2, 3] 0 0 1 1 0 0
mint.le(x, y)
    bool[2, 3] 1 1 0 0 1 1
mint.lt(x, y)
    bool[2, 3] 1 1 0 0 1 1
mint.ne(x, y)
    bool[2, 3] 1 1 1 1 1 1
mint.logical_or(b, c)
    bool[2, 3] 1 1 1 0 1 1
mint.logical_xor(b, c)
    bool[2, 3] 0 1 1 0 0 1
mint.arccosh(p)
    float32[2, 3] 0.96242 1.317 1.7627 0.69315 2.0634 1.5668
mint.gcd(i, j)
    int32[2, 3] 2 1 1 1 2 1
mint.dstack([v, q])
    float32[1, 3, 2] 1 0.5 -2 1.5 0.5 2
mint.hstack([v, q])
    float32[6] 1 -2 0.5 0.5 1.5 2
mint.masked_select(x, b)
    float32[4] 0.5 2 0.25 -0.75
~mint.randn_like(x)
    float32[2, 3]
mint.empty_like(x).shape
    2 ; 3
mint.nn.Hardsigmoid()(x)
    float32[2, 3] 0.58333 0.33333 0.83333 1 0.54167 0.375
mint.nn.Hardswish()(x)
    float32[2, 3] 0.29167 -0.33333 1.6667 3 0.13542 -0.28125
mint.nn.Linear(2, 3, bias=False).extend_repr()
    input_features=2, output_features=3
mint.nn.LayerNorm(3).extend_repr()
    normalized_shape=(3,), eps=1e-05, elementwise_affine=True
mint.nn.GroupNorm(1, 3).extend_repr()
    num_groups=1, num_channels=3, eps=1e-05, affine=True
"""
