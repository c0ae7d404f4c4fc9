"""Functions of numpy: calls and what they give; see test_values.py."""

CASES = """
mnp.arccos(u)
    float32[2, 3] 1.3694 1.1593 0.45103 0.9273 1.4706 1.0472
mnp.arcsinh(u)
    float32[2, 3] 0.19869 0.39004 0.80887 0.56882 0.099834 0.48121
mnp.arctan(u)
    float32[2, 3] 0.1974 0.38051 0.73282 0.54042 0.099669 0.46365
mnp.arctanh(u)
    float32[2, 3] 0.20273 0.42365 1.4722 0.69315 0.10034 0.54931
mnp.deg2rad(u)
    float32[2, 3] 0.0034907 0.0069813 0.015708 0.010472 0.0017453 0.0087266
mnp.rad2deg(u)
    float32[2, 3] 11.459 22.918 51.566 34.377 5.7296 28.648
mnp.radians(u)
    float32[2, 3] 0.0034907 0.0069813 0.015708 0.010472 0.0017453 0.0087266
mnp.isposinf(u)
    bool[2, 3] 0 0 0 0 0 0
mnp.argwhere(u)
    int64[6, 2] 0 0 0 1 0 2 1 0 1 1 1 2
mnp.fliplr(u)
    float32[2, 3] 0.9 0.4 0.2 0.5 0.1 0.6
mnp.flipud(u)
    float32[2, 3] 0.6 0.1 0.5 0.2 0.4 0.9
mnp.nancumsum(u)
    float32[6] 0.2 0.6 1.5 2.1 2.2 2.7
mnp.nanmax(u)
    float32[] 0.9
mnp.nanmin(u)
    float32[] 0.1
mnp.nanstd(u)
    float32[] 0.263
mnp.nanvar(u)
    float32[] 0.069167
mnp.ptp(u)
    float32[] 0.8
mnp.unwrap(u)
    float32[2, 3] 0.2 0.4 0.9 0.6 0.1 0.5
mnp.asfarray(u)
    float32[2, 3] 0.2 0.4 0.9 0.6 0.1 0.5
mnp.sometrue(u)
    bool[] 1
mnp.arctan2(x, y)
    float32[2, 3] 0.24498 -2.0344 1.1071 2.3562 0.16515 -1.249
mnp.greater_equal(x, y)
    bool[2, 3] 0 0 1 1 0 0
mnp.heaviside(x, y)
    float32[2, 3] 1 0 1 1 1 0
mnp.multiply(x, y)
    float32[2, 3] 1 0.5 2 -9 0.375 -0.1875
mnp.true_divide(x, y)
    float32[2, 3] 0.25 2 2 -1 0.16667 -3
mnp.logaddexp(x, y)
    float32[2, 3] 2.2014 -0.025924 2.3133 3.0025 1.7519 0.56326
mnp.array_equiv(x, y)
    bool[] 0
mnp.broadcast_arrays(x, y)
    float32[2, 3] 0.5 -1 2 3 0.25 -0.75 ; float32[2, 3] 2 -0.5 1 -3 1.5 0.25
mnp.bitwise_and(i, j)
    int32[2, 3] 4 1 0 0 0 6
mnp.bitwise_or(i, j)
    int32[2, 3] 6 3 -1 7 2 7
mnp.bitwise_xor(i, j)
    int32[2, 3] 2 2 -1 7 2 1
mnp.gcd(i, j)
    int32[2, 3] 2 1 1 1 2 1
mnp.logical_or(b, c)
    bool[2, 3] 1 1 1 0 1 1
mnp.logical_xor(b, c)
    bool[2, 3] 0 1 1 0 0 1
mnp.atleast_1d(v)
    float32[3] 1 -2 0.5
mnp.atleast_2d(v)
    float32[1, 3] 1 -2 0.5
mnp.atleast_3d(v)
    float32[1, 3, 1] 1 -2 0.5
mnp.diagflat(v)
    float32[3, 3] 1 0 0 0 -2 0 0 0 0.5
mnp.ediff1d(v)
    float32[2] -3 2.5
mnp.column_stack([v, q])
    float32[3, 2] 1 0.5 -2 1.5 0.5 2
mnp.dstack([v, q])
    float32[1, 3, 2] 1 0.5 -2 1.5 0.5 2
mnp.hstack([v, q])
    float32[6] 1 -2 0.5 0.5 1.5 2
mnp.polyadd(v, q)
    float32[3] 1.5 -0.5 2.5
mnp.polymul(v, q)
    float32[5] 0.5 0.5 -0.75 -3.25 1
mnp.polysub(v, q)
    float32[3] 0.5 -3.5 -1.5
mnp.correlate(v, q)
    float32[1] -1.5
mnp.ix_(v, q)
    float32[3, 1] 1 -2 0.5 ; float32[1, 3] 0.5 1.5 2
mnp.in1d(v, q)
    bool[3] 0 0 1
mnp.setdiff1d(v, q)
    float32[2] -2 1
mnp.arccosh(p)
    float32[2, 3] 0.96242 1.317 1.7627 0.69315 2.0634 1.5668
mnp.apply_over_axes(lambda a, axis: a.sum(axis), x, (0, 1))
    float32[1, 1] 4
mnp.array_split(mnp.arange(5), 2)
    int32[3] 0 1 2 ; int32[2] 3 4
mnp.array_str(t([1, 2], 'int32'))
    [1 2]
mnp.corrcoef(x)
    float32[2, 2] 1 -0.25748 -0.25748 1
mnp.diag_indices(2)
    int32[2] 0 1 ; int32[2] 0 1
mnp.dsplit(vol[0], 2)
    float32[1, 4, 2, 4] sum 154 weighted 448 ; float32[1, 4, 2, 4] sum 157 weighted 455
mnp.hsplit(x, 3)
    float32[2, 1] 0.5 3 ; float32[2, 1] -1 0.25 ; float32[2, 1] 2 -0.75
mnp.vsplit(x, 2)
    float32[1, 3] 0.5 -1 2 ; float32[1, 3] 3 0.25 -0.75
mnp.empty_like(x).shape
    2 ; 3
mnp.histogram2d(v, q, bins=2)
    float32[2, 2] 0 1 1 1 ; float32[3] -2 -0.5 1 ; float32[3] 0.5 1.25 2
mnp.histogram_bin_edges(v, bins=2)
    float32[3] -2 -0.5 1
mnp.histogramdd(x[:, :2], bins=2)
    float32[2, 2] 1 0 0 1 ; float32[3] 0.5 1.75 3 ; float32[3] -1 -0.375 0.25
mnp.invert(t([1, -2], 'int32'))
    int32[2] -2 1
mnp.isscalar(3.0)
    True
mnp.logspace(0, 3, 4)
    float32[4] 1 10 100 1000
mnp.multi_dot([x, spd, x.T])
    float32[2, 2] 18 -0.625 -0.625 37.062
mnp.ogrid[0:2, 0:3]
    int32[2, 1] 0 1 ; int32[1, 3] 0 1 2
mnp.polyder(v)
    float32[2] 2 -2
mnp.promote_types('int32', 'float32')
    Float32
mnp.result_type(x, i)
    Float32
mnp.ravel_multi_index((t([0, 1], 'int32'), t([2, 1], 'int32')), (2, 3))
    float32[2] 2 4
mnp.rollaxis(vol[0], 2).shape
    4 ; 1 ; 4 ; 4
mnp.take_along_axis(x, t([[2, 0, 1], [0, 1, 1]], 'int32'), 1)
    float32[2, 3] 2 0.5 -1 3 0.25 0.25
mnp.tril_indices(2)
    int32[3] 0 1 1 ; int32[3] 0 0 1
mnp.tril_indices_from(spd)
    int32[6] 0 1 1 2 2 2 ; int32[6] 0 0 1 0 1 2
mnp.triu_indices(2)
    int32[3] 0 0 1 ; int32[3] 0 1 1
mnp.triu_indices_from(spd)
    int32[6] 0 0 0 1 1 2 ; int32[6] 0 1 2 1 2 2
mnp.int_
    Int32
"""
