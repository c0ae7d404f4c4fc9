"""Functions of ops: calls and what they give; see test_values.py."""

CASES = """
ops.arccos(u)
    float32[2, 3] 1.3694 1.1593 0.45103 0.9273 1.4706 1.0472
ops.arcsinh(u)
    float32[2, 3] 0.19869 0.39004 0.80887 0.56882 0.099834 0.48121
ops.arctan(u)
    float32[2, 3] 0.1974 0.38051 0.73282 0.54042 0.099669 0.46365
ops.arctanh(u)
    float32[2, 3] 0.20273 0.42365 1.4722 0.69315 0.10034 0.54931
ops.bessel_i0e(u)
    float32[2, 3] 0.82694 0.6974 0.49316 0.59933 0.9071 0.64504
ops.bessel_i1e(u)
    float32[2, 3] 0.082283 0.13676 0.20212 0.17216 0.045298 0.15642
ops.bessel_j0(u)
    float32[2, 3] 0.99002 0.9604 0.80752 0.912 0.9975 0.93847
ops.bessel_k0(u)
    float32[2, 3] 1.7527 1.1145 0.48673 0.77752 2.4271 0.92442
ops.bessel_k0e(u)
    float32[2, 3] 2.1408 1.6627 1.1972 1.4167 2.6823 1.5241
ops.bessel_k1(u)
    float32[2, 3] 4.776 2.1844 0.71653 1.3028 9.8538 1.6564
ops.bessel_k1e(u)
    float32[2, 3] 5.8334 3.2587 1.7624 2.3739 10.89 2.731
ops.bessel_y0(u)
    float32[2, 3] -1.0811 -0.60602 0.0056283 -0.30851 -1.5342 -0.44452
ops.deg2rad(u)
    float32[2, 3] 0.0034907 0.0069813 0.015708 0.010472 0.0017453 0.0087266
ops.digamma(u)
    float32[2, 3] -5.289 -2.5614 -0.75493 -1.5406 -10.424 -1.9635
ops.erfinv(u)
    float32[2, 3] 0.17914 0.37081 1.1631 0.59512 0.088856 0.47694
ops.isposinf(u)
    bool[2, 3] 0 0 0 0 0 0
ops.isreal(u)
    bool[2, 3] 1 1 1 1 1 1
ops.logit(u)
    float32[2, 3] -1.3863 -0.40547 2.1972 0.40547 -2.1972 0
ops.rad2deg(u)
    float32[2, 3] 11.459 22.918 51.566 34.377 5.7296 28.648
ops.sgn(u)
    float32[2, 3] 1 1 1 1 1 1
ops.sinc(u)
    float32[2, 3] 0.93549 0.75683 0.10929 0.50455 0.98363 0.63662
ops.softmin(u)
    float32[2, 3] 0.43191 0.35362 0.21448 0.26639 0.4392 0.29441
ops.tanhshrink(u)
    float32[2, 3] 0.0026247 0.020051 0.1837 0.06295 0.00033201 0.037883
ops.arctan2(x, y)
    float32[2, 3] 0.24498 -2.0344 1.1071 2.3562 0.16515 -1.249
ops.eq(x, y)
    bool[2, 3] 0 0 0 0 0 0
ops.ge(x, y)
    bool[2, 3] 0 0 1 1 0 0
ops.greater_equal(x, y)
    bool[2, 3] 0 0 1 1 0 0
ops.heaviside(x, y)
    float32[2, 3] 1 0 1 1 1 0
ops.le(x, y)
    bool[2, 3] 1 1 0 0 1 1
ops.lt(x, y)
    bool[2, 3] 1 1 0 0 1 1
ops.ne(x, y)
    bool[2, 3] 1 1 1 1 1 1
ops.multiply(x, y)
    float32[2, 3] 1 0.5 2 -9 0.375 -0.1875
ops.tensor_div(x, y)
    float32[2, 3] 0.25 2 2 -1 0.16667 -3
ops.tensor_gt(x, y)
    bool[2, 3] 0 0 1 1 0 0
ops.tensor_lt(x, y)
    bool[2, 3] 1 1 0 0 1 1
ops.true_divide(x, y)
    float32[2, 3] 0.25 2 2 -1 0.16667 -3
ops.truncate_div(x, y)
    float32[2, 3] 0 2 2 -1 0 -3
ops.truncate_mod(x, y)
    float32[2, 3] 0.5 0 0 0 0.25 0
ops.floor_div(x, y)
    float32[2, 3] 0 2 2 -1 0 -3
ops.floor_mod(x, y)
    float32[2, 3] 0.5 0 0 0 0.25 0
ops.logaddexp(x, y)
    float32[2, 3] 2.2014 -0.025923 2.3133 3.0025 1.7519 0.56326
ops.vecdot(x, y)
    float32[2] 3.5 -8.8125
ops.xdivy(x, y)
    float32[2, 3] 0.25 2 2 -1 0.16667 -3
ops.float_power_ext(x, y)
    float64[2, 3] 0.25 nan 2 0.037037 0.125 nan
ops.view_as(x, y)
    float32[2, 3] 0.5 -1 2 3 0.25 -0.75
ops.bitwise_and(i, j)
    int32[2, 3] 4 1 0 0 0 6
ops.bitwise_or(i, j)
    int32[2, 3] 6 3 -1 7 2 7
ops.bitwise_xor(i, j)
    int32[2, 3] 2 2 -1 7 2 1
ops.gcd(i, j)
    int32[2, 3] 2 1 1 1 2 1
ops.bitwise_left_shift(j, j)
    int32[2, 3] 64 2 24 160 8 384
ops.bitwise_right_shift(j, j)
    int32[2, 3] 0 0 0 0 0 0
ops.logical_or(b, c)
    bool[2, 3] 1 1 1 0 1 1
ops.logical_xor(b, c)
    bool[2, 3] 0 1 1 0 0 1
ops.reduce_max(x, 1)
    float32[2] 2 3
ops.reduce_mean(x, 1)
    float32[2] 0.5 0.83333
ops.reduce_min(x, 1)
    float32[2] -1 -0.75
ops.nanmedian(x, 1)
    float32[2] 0.5 0.25 ; int64[2] 0 1
ops.logcumsumexp(x, 1)
    float32[2, 3] 0.5 0.70141 2.2413 3 3.062 3.0838
ops.atleast_1d(v)
    float32[3] 1 -2 0.5
ops.atleast_2d(v)
    float32[1, 3] 1 -2 0.5
ops.atleast_3d(v)
    float32[1, 3, 1] 1 -2 0.5
ops.diag_embed(v)
    float32[3, 3] 1 0 0 0 -2 0 0 0 0.5
ops.diagflat(v)
    float32[3, 3] 1 0 0 0 -2 0 0 0 0.5
ops.adjoint(x)
    float32[3, 2] 0.5 3 -1 0.25 2 -0.75
ops.aminmax(x)
    float32[3] 0.5 -1 -0.75 ; float32[3] 3 0.25 2
ops.argwhere(x)
    int64[6, 2] 0 0 0 1 0 2 1 0 1 1 1 2
ops.fliplr(x)
    float32[2, 3] 2 -1 0.5 -0.75 0.25 3
ops.flipud(x)
    float32[2, 3] 3 0.25 -0.75 0.5 -1 2
ops.msort(x)
    float32[2, 3] 0.5 -1 -0.75 3 0.25 2
ops.column_stack([v, q])
    float32[3, 2] 1 0.5 -2 1.5 0.5 2
ops.dstack([v, q])
    float32[1, 3, 2] 1 0.5 -2 1.5 0.5 2
ops.hstack([v, q])
    float32[6] 1 -2 0.5 0.5 1.5 2
ops.row_stack([v, q])
    float32[2, 3] 1 -2 0.5 0.5 1.5 2
ops.arccosh(p)
    float32[2, 3] 0.96242 1.317 1.7627 0.69315 2.0634 1.5668
ops.addcmul(x, y, p, 0.5)
    float32[2, 3] 2 -1.5 3.5 1.125 3.25 -0.4375
ops.addn([x, y])
    float32[2, 3] 2.5 -1.5 3 0 1.75 -0.5
ops.bias_add(x, v)
    float32[2, 3] 1.5 -3 2.5 4 -1.75 -0.25
ops.bucketize(v, [0, 1])
    int32[3] 1 0 1
ops.cartesian_prod(v, q)
    float32[9, 2] sum 10.5 weighted 31.5
ops.channel_shuffle(t(np.arange(8).reshape(1, 4, 2, 1)), 2)
    float32[1, 4, 2, 1] 0 1 4 5 2 3 6 7
ops.combinations(v, 2)
    float32[3, 2] 1 -2 1 0.5 -2 0.5
ops.col2im(t(np.arange(16).reshape(1, 1, 4, 4)), t([4, 4], 'int32'), [2, 2], [1, 1], [0, 0], [2, 2])
    float32[1, 1, 4, 4] sum 120 weighted 351
ops.diagonal_scatter(spd, v)
    float32[3, 3] 1 2 1 2 -2 3 1 3 0.5
ops.diff_ext(x)
    float32[2, 2] -1.5 3 -2.75 -1
ops.dsplit(vol[0], 2)
    float32[1, 4, 2, 4] sum 154 weighted 448 ; float32[1, 4, 2, 4] sum 157 weighted 455
ops.hsplit(x, 3)
    float32[2, 1] 0.5 3 ; float32[2, 1] -1 0.25 ; float32[2, 1] 2 -0.75
ops.vsplit(x, 2)
    float32[1, 3] 0.5 -1 2 ; float32[1, 3] 3 0.25 -0.75
ops.tensor_split(v, 2)
    float32[2] 1 -2 ; float32[1] 0.5
ops.eig(t([[1, 2], [0, 3]]))[0]
    complex64[2] 1,0 3,0
ops.fft2(x)
    complex64[2, 3] 4,0 3.25,1.7321 3.25,-1.7321 -1,0 -3.25,3.4641 -3.25,-3.4641
ops.rfft2(x)
    complex64[2, 2] 4,0 3.25,1.7321 -1,0 -3.25,3.4641
ops.rfftn(x)
    complex64[2, 2] 4,0 3.25,1.7321 -1,0 -3.25,3.4641
ops.ifftn(z)
    complex64[2, 2] -0.125,1 0.625,1.5 0.875,-0.5 -0.375,0
ops.irfft2(z)
    float32[2, 2] -0.125 0.625 0.875 -0.375
ops.irfftn(z)
    float32[2, 2] -0.125 0.625 0.875 -0.375
ops.gather_d(x, 1, t([[2, 0], [1, 1]], 'int32'))
    float32[2, 2] 2 0.5 0.25 0.25
ops.gather_elements(x, 1, t([[2, 0], [1, 1]], 'int32'))
    float32[2, 2] 2 0.5 0.25 0.25
ops.gaussian_nll_loss(x, y, p)
    float32[] 3.0227
ops.ger(v, q)
    float32[3, 3] 0.5 1.5 2 -1 -3 -4 0.25 0.75 1
ops.igammac(p, u)
    float32[2, 3] 0.94024 0.93845 0.93714 0.66141 1 0.96257
ops.index_fill(x, 1, t([0, 2], 'int32'), 9.0)
    float32[2, 3] 9 -1 9 9 0.25 9
ops.invert(t([1, -2, 5], 'int16'))
    int16[3] -2 1 -6
ops.logdet(spd)
    float32[] 4.2047
ops.slogdet(spd)
    float32[] 1 ; float32[] 4.2047
ops.logspace(t(0), t(3), 4)
    float32[4] 1 10 100 1000
ops.masked_select(x, b)
    float32[4] 0.5 2 0.25 -0.75
ops.max_unpool3d(t([[[[[5]]]]]), t([[[[[6]]]]], 'int64'), 2)
    float32[1, 1, 2, 2, 2] 0 0 0 0 0 0 5 0
ops.movedim(vol[0], 0, 2).shape
    4 ; 4 ; 1 ; 4
ops.multi_margin_loss(x, t([2, 0], 'int64'))
    float32[] 0
ops.mvlgamma(p, 2)
    float32[2, 3] 0.45158 0.45158 1.5502 0.67737 3.5651 0.85705
ops.pixel_unshuffle(img, 2)
    float32[1, 4, 2, 2] sum 43 weighted 140
ops.polygamma(t(1, 'int32'), p)
    float32[2, 3] 0.9348 0.64493 0.39493 1.1973 0.28382 0.49036
ops.population_count(t([3, 7, 8], 'int16'))
    uint8[3] 2 3 1
ops.repeat_elements(x, 2, 1)
    float32[2, 6] 0.5 0.5 -1 -1 2 2 3 3 0.25 0.25 -0.75 -0.75
ops.rrelu(x, 0.25, 0.25)
    float32[2, 3] 0.5 -0.25 2 3 0.25 -0.1875
ops.select_scatter(x, v, 0, 1)
    float32[2, 3] 0.5 -1 2 1 -2 0.5
ops.slice_scatter(x, ops.zeros((2, 1)), 1, 0, 1, 1)
    float32[2, 3] 0 -1 2 0 0.25 -0.75
ops.sequence_mask(t([1, 3], 'int32'), 4)
    bool[2, 4] 1 0 0 0 1 1 1 0
ops.swapdims(x, 0, 1)
    float32[3, 2] 0.5 3 -1 0.25 2 -0.75
ops.tensor_scatter_add(x, t([[0, 1], [0, 1]], 'int32'), t([1, 2]))
    float32[2, 3] 0.5 2 2 3 0.25 -0.75
ops.tensor_scatter_update(x, t([[0, 1]], 'int32'), t([5]))
    float32[2, 3] 0.5 5 2 3 0.25 -0.75
ops.tensor_scatter_elements(x, t([[2, 0], [1, 0]], 'int32'), t([[7, 8], [9, 6]]), 1)
    float32[2, 3] 8 -1 7 6 9 -0.75
ops.tril_indices(2, 3)
    int64[2, 3] 0 1 1 0 0 1
ops.triu_indices(2, 3)
    int64[2, 5] 0 0 0 1 1 0 1 2 1 2
ops.unstack(x)
    float32[3] 0.5 -1 2 ; float32[3] 3 0.25 -0.75
ops.zeta(p, p)
    float32[2, 3] 1.9481 0.64493 0.077057 4.2205 0.0074776 0.22737
ops.csr_gather(csr(x).indptr, csr(x).indices, x, (2, 3)).shape
    6
~ops.choice_with_mask(b, 2)
    int32[2, 2] ; bool[2]
~ops.gumbel_softmax(x)
    float32[2, 3]
~ops.multinomial_with_replacement(t([0.5, 0.5]), 1, 2, 2)
    int64[2]
~ops.randn_like(x)
    float32[2, 3]
~ops.random_categorical(x, 4)
    int64[2, 4]
~ops.standard_laplace((2, 3))
    float32[2, 3]
~ops.dropout1d(ops.stack([x]), 0.5)
    float32[1, 2, 3]
~ops.dropout3d(vol, 0.5)
    float32[1, 1, 4, 4, 4]
"""
