"""Primitives: calls and what they give; see test_values.py."""

CASES = """
ops.ACos()(u)
    float32[2, 3] 1.3694 1.1593 0.45103 0.9273 1.4706 1.0472
ops.Abs()(u)
    float32[2, 3] 0.2 0.4 0.9 0.6 0.1 0.5
ops.Asin()(u)
    float32[2, 3] 0.20136 0.41152 1.1198 0.6435 0.10017 0.5236
ops.Asinh()(u)
    float32[2, 3] 0.19869 0.39004 0.80887 0.56882 0.099834 0.48121
ops.Atan()(u)
    float32[2, 3] 0.1974 0.38051 0.73282 0.54042 0.099669 0.46365
ops.Atanh()(u)
    float32[2, 3] 0.20273 0.42365 1.4722 0.69315 0.10034 0.54931
ops.BesselI0()(u)
    float32[2, 3] 1.01 1.0404 1.213 1.092 1.0025 1.0635
ops.BesselI0e()(u)
    float32[2, 3] 0.82694 0.6974 0.49316 0.59933 0.9071 0.64504
ops.BesselI1()(u)
    float32[2, 3] 0.1005 0.20403 0.49713 0.3137 0.050063 0.25789
ops.BesselI1e()(u)
    float32[2, 3] 0.082283 0.13676 0.20212 0.17216 0.045298 0.15642
ops.BesselJ0()(u)
    float32[2, 3] 0.99002 0.9604 0.80752 0.912 0.9975 0.93847
ops.BesselJ1()(u)
    float32[2, 3] 0.099501 0.19603 0.40595 0.2867 0.049938 0.24227
ops.BesselK0()(u)
    float32[2, 3] 1.7527 1.1145 0.48673 0.77752 2.4271 0.92442
ops.BesselK0e()(u)
    float32[2, 3] 2.1408 1.6627 1.1972 1.4167 2.6823 1.5241
ops.BesselK1()(u)
    float32[2, 3] 4.776 2.1844 0.71653 1.3028 9.8538 1.6564
ops.BesselK1e()(u)
    float32[2, 3] 5.8334 3.2587 1.7624 2.3739 10.89 2.731
ops.BesselY0()(u)
    float32[2, 3] -1.0811 -0.60602 0.0056283 -0.30851 -1.5342 -0.44452
ops.BesselY1()(u)
    float32[2, 3] -3.3238 -1.7809 -0.87313 -1.2604 -6.459 -1.4715
ops.Ceil()(u)
    float32[2, 3] 1 1 1 1 1 1
ops.Cos()(u)
    float32[2, 3] 0.98007 0.92106 0.62161 0.82534 0.995 0.87758
ops.Cosh()(u)
    float32[2, 3] 1.0201 1.0811 1.4331 1.1855 1.005 1.1276
ops.Digamma()(u)
    float32[2, 3] -5.289 -2.5614 -0.75493 -1.5406 -10.424 -1.9635
ops.Erf()(u)
    float32[2, 3] 0.2227 0.42839 0.79691 0.60386 0.11246 0.5205
ops.Erfc()(u)
    float32[2, 3] 0.7773 0.57161 0.20309 0.39614 0.88754 0.4795
ops.Erfinv()(u)
    float32[2, 3] 0.17914 0.37081 1.1631 0.59512 0.088856 0.47694
ops.Expm1()(u)
    float32[2, 3] 0.2214 0.49182 1.4596 0.82212 0.10517 0.64872
ops.Floor()(u)
    float32[2, 3] 0 0 0 0 0 0
ops.Inv()(u)
    float32[2, 3] 5 2.5 1.1111 1.6667 10 2
ops.IsFinite()(u)
    bool[2, 3] 1 1 1 1 1 1
ops.IsInf()(u)
    bool[2, 3] 0 0 0 0 0 0
ops.IsNan()(u)
    bool[2, 3] 0 0 0 0 0 0
ops.Lgamma()(u)
    float32[2, 3] 1.5241 0.79668 0.066376 0.39823 2.2527 0.57236
ops.Log1p()(u)
    float32[2, 3] 0.18232 0.33647 0.64185 0.47 0.09531 0.40547
ops.Neg()(u)
    float32[2, 3] -0.2 -0.4 -0.9 -0.6 -0.1 -0.5
ops.OnesLike()(u)
    float32[2, 3] 1 1 1 1 1 1
ops.Reciprocal()(u)
    float32[2, 3] 5 2.5 1.1111 1.6667 10 2
ops.Rint()(u)
    float32[2, 3] 0 0 1 1 0 0
ops.Round()(u)
    float32[2, 3] 0 0 1 1 0 0
ops.Rsqrt()(u)
    float32[2, 3] 2.2361 1.5811 1.0541 1.291 3.1623 1.4142
ops.Sign()(u)
    float32[2, 3] 1 1 1 1 1 1
ops.Sin()(u)
    float32[2, 3] 0.19867 0.38942 0.78333 0.56464 0.099833 0.47943
ops.Sinc()(u)
    float32[2, 3] 0.93549 0.75683 0.10929 0.50455 0.98363 0.63662
ops.Sinh()(u)
    float32[2, 3] 0.20134 0.41075 1.0265 0.63665 0.10017 0.5211
ops.Sqrt()(u)
    float32[2, 3] 0.44721 0.63246 0.94868 0.7746 0.31623 0.70711
ops.Trunc()(u)
    float32[2, 3] 0 0 0 0 0 0
ops.ZerosLike()(u)
    float32[2, 3] 0 0 0 0 0 0
ops.Acosh()(p)
    float32[2, 3] 0.96242 1.317 1.7627 0.69315 2.0634 1.5668
ops.CeLU()(x)
    float32[2, 3] 0.5 -0.63212 2 3 0.25 -0.52763
ops.FastGeLU()(x)
    float32[2, 3] 0.35039 -0.1542 1.9357 2.9819 0.1512 -0.16361
ops.GeLU()(x)
    float32[2, 3] 0.34571 -0.15881 1.9546 2.9964 0.14968 -0.17004
ops.HShrink()(x)
    float32[2, 3] 0 -1 2 3 0 -0.75
ops.SeLU()(x)
    float32[2, 3] 0.52535 -1.1113 2.1014 3.1521 0.26268 -0.92763
ops.SoftShrink()(x)
    float32[2, 3] 0 -0.5 1.5 2.5 0 -0.25
ops.Softsign()(x)
    float32[2, 3] 0.33333 -0.5 0.66667 0.75 0.2 -0.42857
ops.L2Loss()(x)
    float32[] 7.4375
ops.NanToNum()(x)
    float32[2, 3] 0.5 -1 2 3 0.25 -0.75
ops.StopGradient()(x)
    float32[2, 3] 0.5 -1 2 3 0.25 -0.75
ops.NonZero()(x)
    int64[6, 2] 0 0 0 1 0 2 1 0 1 1 1 2
ops.ApproximateEqual()(x, y)
    bool[2, 3] 0 0 0 0 0 0
ops.Atan2()(x, y)
    float32[2, 3] 0.24498 -2.0344 1.1071 2.3562 0.16515 -1.249
ops.Equal()(x, y)
    bool[2, 3] 0 0 0 0 0 0
ops.Div()(x, y)
    float32[2, 3] 0.25 2 2 -1 0.16667 -3
ops.FloorDiv()(x, y)
    float32[2, 3] 0 2 2 -1 0 -3
ops.Greater()(x, y)
    bool[2, 3] 0 0 1 1 0 0
ops.GreaterEqual()(x, y)
    bool[2, 3] 0 0 1 1 0 0
ops.Heaviside()(x, y)
    float32[2, 3] 1 0 1 1 1 0
ops.Hypot()(x, y)
    float32[2, 3] 2.0616 1.118 2.2361 4.2426 1.5207 0.79057
ops.IsClose()(x, y)
    bool[2, 3] 0 0 0 0 0 0
ops.Less()(x, y)
    bool[2, 3] 1 1 0 0 1 1
ops.LessEqual()(x, y)
    bool[2, 3] 1 1 0 0 1 1
ops.Maximum()(x, y)
    float32[2, 3] 2 -0.5 2 3 1.5 0.25
ops.Minimum()(x, y)
    float32[2, 3] 0.5 -1 1 -3 0.25 -0.75
ops.NextAfter()(x, y)
    float32[2, 3] 0.5 -1 2 3 0.25 -0.75
ops.NotEqual()(x, y)
    bool[2, 3] 1 1 1 1 1 1
ops.SquaredDifference()(x, y)
    float32[2, 3] 2.25 0.25 1 36 1.5625 1
ops.TruncateDiv()(x, y)
    float32[2, 3] 0 2 2 -1 0 -3
ops.TruncateMod()(x, y)
    float32[2, 3] 0.5 0 0 0 0.25 0
ops.Xdivy()(x, y)
    float32[2, 3] 0.25 2 2 -1 0.16667 -3
ops.SquareSumAll()(x, y)
    float32[] 14.875 ; float32[] 16.562
ops.Fmax()(x, y)
    float32[2, 3] 2 -0.5 2 3 1.5 0.25
ops.Igamma()(p, u)
    float32[2, 3] 0.059757 0.061552 0.062857 0.33859 3.8468e-06 0.037434
ops.Igammac()(p, u)
    float32[2, 3] 0.94024 0.93845 0.93714 0.66141 1 0.96257
ops.Pow()(p, u)
    float32[2, 3] 1.0845 1.3195 2.6879 1.1433 1.1487 1.5811
ops.Xlogy()(p, u)
    float32[2, 3] -2.4142 -1.8326 -0.31608 -0.63853 -9.2103 -1.7329
ops.Zeta()(p, u)
    float32[2, 3] 13.46 7.2754 1.6009 5.7628 10001 6.2471
ops.BitwiseAnd()(i, j)
    int32[2, 3] 4 1 0 0 0 6
ops.BitwiseOr()(i, j)
    int32[2, 3] 6 3 -1 7 2 7
ops.BitwiseXor()(i, j)
    int32[2, 3] 2 2 -1 7 2 1
ops.Gcd()(i, j)
    int32[2, 3] 2 1 1 1 2 1
ops.Lcm()(i, j)
    int32[2, 3] 12 3 12 10 0 42
ops.LeftShift()(i, j)
    int32[2, 3] 96 6 -32 64 0 448
ops.RightShift()(i, j)
    int32[2, 3] 0 1 -1 0 0 0
ops.LogicalAnd()(b, c)
    bool[2, 3] 1 0 0 0 1 0
ops.LogicalOr()(b, c)
    bool[2, 3] 1 1 1 0 1 1
ops.LogicalXor()(b, c)
    bool[2, 3] 0 1 1 0 0 1
ops.ReduceMax(keep_dims=True)(x, 1)
    float32[2, 1] 2 3
ops.ReduceMin(keep_dims=True)(x, 1)
    float32[2, 1] -1 -0.75
ops.ReduceAll()(b, 0)
    bool[3] 0 0 1
ops.ReduceAny()(b, 0)
    bool[3] 1 1 1
ops.UnsortedSegmentMax()(x, ids, 3)
    float32[3, 3] 3 0.25 -0.75 -3.4028e+38 -3.4028e+38 -3.4028e+38 0.5 -1 2
ops.UnsortedSegmentMin()(x, ids, 3)
    float32[3, 3] 3 0.25 -0.75 3.4028e+38 3.4028e+38 3.4028e+38 0.5 -1 2
ops.UnsortedSegmentProd()(x, ids, 3)
    float32[3, 3] 3 0.25 -0.75 1 1 1 0.5 -1 2
ops.UnsortedSegmentSum()(x, ids, 3)
    float32[3, 3] 3 0.25 -0.75 0 0 0 0.5 -1 2
ops.LogicalNot()(b)
    bool[2, 3] 0 1 0 1 0 0
ops.Angle()(z)
    float32[2, 2] 1.1071 -1.1071 1.5708 3.1416
ops.ReduceStd(axis=1, keep_dims=True)(x)
    float32[2, 1] 1.5 1.9419 ; float32[2, 1] 0.5 0.83333
ops.AddN()([x, y, x])
    float32[2, 3] 3 -2.5 5 3 2 -1.25
ops.Addcdiv()(x, y, p, t(0.5))
    float32[2, 3] 1.1667 -1.125 2.1667 1.8 0.4375 -0.7
ops.Addcmul()(x, y, p, t(0.5))
    float32[2, 3] 2 -1.5 3.5 1.125 3.25 -0.4375
ops.AdaptiveAvgPool2D((2, 3))(img)
    float32[1, 1, 2, 3] 2.5 3.5 2.75 3.5 2.75 2
ops.AdaptiveAvgPool3D((2, 1, 2))(vol)
    float32[1, 1, 2, 1, 2] 4.875 4.8125 4.5625 5.1875
ops.AdaptiveMaxPool2D((2, 3))(img)
    float32[1, 1, 2, 3] 5 6 6 6 6 4 ; int64[1, 1, 2, 3] 5 6 6 13 13 11
ops.AdaptiveMaxPool3D()(vol, t([2, 1, 2], 'int32'))
    float32[1, 1, 2, 1, 2] 10 10 10 10 ; int32[1, 1, 2, 1, 2] 21 10 32 43
ops.AdjustSaturation()(rgb, t(0.5))
    float32[2, 2, 3] 0.083333 0.125 0.16667 0.33333 0.375 0.41667 0.58333 0.625 0.66667 0.83333
    0.875 0.91667
ops.AffineGrid(True)(t([[[1, 0, 0.5], [0.25, 1, 0]]]), (1, 1, 2, 2))
    float32[1, 2, 2, 2] -0.5 -1.25 1.5 -0.75 -0.5 0.75 1.5 1.25
ops.ArgMinWithValue(axis=1)(x)
    int64[2] 1 2 ; float32[2] -1 -0.75
ops.AvgPool3D(kernel_size=2, strides=2)(vol)
    float32[1, 1, 2, 2, 2] 5 4.25 4.75 5.375 5.375 4.625 3.75 5.75
ops.BartlettWindow(periodic=False)(t(5, 'int32'))
    float32[5] 0 0.5 1 0.5 0
ops.BlackmanWindow(periodic=True)(t(4, 'int32'))
    float32[4] 0 0.34 1 0.34
ops.BatchMatMul(transpose_b=True)(ops.stack([x, y]), ops.stack([y, p]))
    float32[2, 2, 2] 3.5 -2.5 5.125 -8.8125 5 3 -0.75 2.875
ops.BiasAdd()(x, v)
    float32[2, 3] 1.5 -3 2.5 4 -1.75 -0.25
ops.BinaryCrossEntropy('none')(u, half, ops.ones_like(u))
    float32[2, 3] 0.22314 0.91629 0.10536 0.71356 0.10536 0.69315
ops.BoundingBoxDecode(max_shape=(100, 100))(boxes, t([[0.5, 1, 0.25, 0], [0, 0.5, 1, 0.5]]))
    float32[2, 4] 10.086 31 30.914 53 3.986 3.932 22.014 21.068
ops.BoundingBoxEncode()(boxes, boxes + 2)
    float32[2, 4] 0.11765 0.086957 0 0 0.28571 0.18182 0 0
ops.Cdist(p=1.0)(ops.stack([x]), ops.stack([y]))
    float32[1, 2, 2] 3 7.75 3.5 8.25
ops.Cholesky()(spd)
    float32[3, 3] 2 0 0 1 2 0 0.5 1.25 2.0463
ops.CholeskyInverse()(ops.cholesky(spd))
    float32[3, 3] 0.31343 -0.13433 0.014925 -0.13433 0.34328 -0.14925 0.014925 -0.14925 0.23881
ops.CholeskySolve()(t([[1], [2], [3]]), ops.cholesky(spd))
    float32[3, 1] 0.089552 0.10448 0.43284
ops.Col2Im(kernel_size=2, stride=2)(t(np.arange(16).reshape(1, 1, 4, 4)), t([4, 4], 'int32'))
    float32[1, 1, 4, 4] sum 120 weighted 351
ops.ComplexAbs()(z)
    float32[2, 2] 2.2361 1.118 3 2
ops.Concat(axis=1)([x, y])
    float32[2, 6] 0.5 -1 2 2 -0.5 1 3 0.25 -0.75 -3 1.5 0.25
ops.Conj()(z)
    complex64[2, 2] 1,-2 0.5,1 0,-3 -2,0
ops.Imag()(z)
    float32[2, 2] 2 -1 3 0
ops.CountNonZero(dims=[1])(i)
    int64[2] 3 2
ops.Conv3D(out_channel=1, kernel_size=2)(vol, t(np.arange(8).reshape(1, 1, 2, 2, 2) / 8))
    float32[1, 1, 3, 3, 3] sum 488.5 weighted 1469.4
ops.Conv3DTranspose(in_channel=1, out_channel=1, kernel_size=2)(vol[:, :, :2, :2, :2],
        t(np.arange(8).reshape(1, 1, 2, 2, 2) / 8))
    float32[1, 1, 3, 3, 3] sum 140 weighted 402.88
ops.CropAndResize()(ops.transpose(img, (0, 2, 3, 1)), t([[0, 0, 0.5, 0.5]]), t([0], 'int32'), (2, 2))
    float32[1, 2, 2, 1] 0 1.5 2.5 4
ops.Cummax(axis=1)(x)
    float32[2, 3] 0.5 0.5 2 3 3 3 ; int64[2, 3] 0 0 2 0 0 0
ops.Cummin(axis=1)(x)
    float32[2, 3] 0.5 -1 -1 3 0.25 -0.75 ; int32[2, 3] 0 1 1 0 1 2
ops.CumulativeLogsumexp()(x, t(1, 'int32'))
    float32[2, 3] 0.5 0.70141 2.2413 3 3.062 3.0838
ops.Diag()(v)
    float32[3, 3] 1 0 0 0 -2 0 0 0 0.5
ops.Eig(compute_v=False)(t([[1, 2], [0, 3]]))[0]
    complex64[2] 1,0 3,0
ops.ExpandDims()(x, 1)
    float32[2, 1, 3] 0.5 -1 2 3 0.25 -0.75
ops.Eye()(2, 3, ms.int32)
    int32[2, 3] 1 0 0 0 1 0
ops.FFTWithSize(signal_ndim=1, inverse=False, real=True)(x)
    complex64[2, 2] 1.5,0 0,2.5981 2.5,8.9407e-08 3.25,-0.86603
ops.FillV2()((2, 2), t(3, 'int32'))
    int32[2, 2] 3 3 3 3
ops.Gather()(x, t([2, 0], 'int32'), 1)
    float32[2, 2] 2 0.5 -0.75 3
ops.GatherD()(x, 1, t([[2, 0], [1, 1]], 'int32'))
    float32[2, 2] 2 0.5 0.25 0.25
ops.GatherNd()(x, t([[1, 2], [0, 0]], 'int32'))
    float32[2] -0.75 0.5
ops.Geqrf()(spd)[0].shape
    3 ; 3
ops.Ger()(v, q)
    float32[3, 3] 0.5 1.5 2 -1 -3 -4 0.25 0.75 1
ops.GridSampler2D(align_corners=True)(img, t(np.linspace(-1, 1, 8).reshape(1, 2, 2, 2)))
    float32[1, 1, 2, 2] 1.7143 4 2.5714 0.57143
ops.GridSampler3D(align_corners=True)(vol, t(np.linspace(-1, 1, 24).reshape(1, 2, 2, 2, 3)))
    float32[1, 1, 2, 2, 2] 1.8261 5.7391 9.183 6.1382 6.7314 7.2514 5.5501 7.2174
ops.Histogram(bins=3, min=0.0, max=3.0)(p)
    float32[3] 0 2 3
ops.IdentityN()([x, i])
    float32[2, 3] 0.5 -1 2 3 0.25 -0.75 ; int32[2, 3] 6 3 -4 2 0 7
ops.Im2Col(ksizes=[2, 2], strides=1, dilations=1, pads=0)(img)
    float32[1, 1, 4, 9] sum 109 weighted 329
ops.IndexFill()(x, 1, t([0, 2], 'int32'), t(9))
    float32[2, 3] 9 -1 9 9 0.25 9
ops.InplaceIndexAdd(axis=0)(ms.Parameter(x.copy(), name='a'), t([1], 'int32'), t([[1, 2, 3]]))
    float32[2, 3] 0.5 -1 2 4 2.25 2.25
ops.InplaceSub(indices=(0, 1))(x, y)
    float32[2, 3] -1.5 -0.5 1 6 -1.25 -1
ops.InplaceUpdateV2()(x, (1,), t([[7, 8, 9]]))
    float32[2, 3] 0.5 -1 2 7 8 9
ops.Lerp()(x, y, t(0.25))
    float32[2, 3] 0.875 -0.875 1.75 1.5 0.5625 -0.5
ops.LinSpace()(t(1), t(2), 5)
    float32[5] 1 1.25 1.5 1.75 2
ops.LogMatrixDeterminant()(spd)
    float32[] 1 ; float32[] 4.2047
ops.LogSpace(steps=4)(t(0), t(3))
    float32[4] 1 10 100 1000
ops.Logit(eps=1e-5)(u)
    float32[2, 3] -1.3863 -0.40547 2.1972 0.40547 -2.1972 0
ops.LuUnpack()(t([[4, 1], [0.5, 2]]), t([2, 2], 'int32'))
    float32[2, 2] 0 1 1 0 ; float32[2, 2] 1 0 0.5 1 ; float32[2, 2] 4 1 0 2
ops.LuSolve()(t([[1], [2]]), t([[4, 1], [0.5, 2]]), t([2, 2], 'int32'))
    float32[2, 1] 0.5 0
ops.Lstsq()(t([[1, 0], [1, 1], [1, 2]]), t([[1], [2], [4]]))
    float32[2, 1] 0.83333 1.5
ops.MaskedFill()(x, b, t(7))
    float32[2, 3] 7 -1 7 3 7 7
ops.MaskedScatter()(x, b, p)
    float32[2, 3] 1.5 -1 2 3 3 1.25
ops.MaskedSelect()(x, b)
    float32[4] 0.5 2 0.25 -0.75
ops.MatrixDeterminant()(spd)
    float32[] 67
ops.MatrixInverse()(spd)
    float32[3, 3] 0.31343 -0.13433 0.014925 -0.13433 0.34328 -0.14925 0.014925 -0.14925 0.23881
ops.MatrixPower(n=2)(ops.stack([spd]))
    float32[1, 3, 3] 21 21 16 21 38 35 16 35 46
ops.MatrixSolve()(spd, t([[1], [2], [3]]))
    float32[3, 1] 0.089552 0.10448 0.43284
ops.MatrixDiagV3()(v, t(0, 'int32'), t(3, 'int32'), t(3, 'int32'), t(9))
    float32[3, 3] 1 9 9 9 -2 9 9 9 0.5
ops.MatrixDiagPartV3()(x, t(0, 'int32'), t(0))
    float32[2] 0.5 0.25
ops.MaxPool3D(kernel_size=2, strides=2)(vol)
    float32[1, 1, 2, 2, 2] 10 8 9 10 10 10 8 10
ops.MaxPool3DWithArgmax((2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1), False)(vol)
    float32[1, 1, 2, 2, 2] 10 8 9 10 10 10 8 10 ; int64[1, 1, 2, 2, 2] 21 19 9 10 32 54 41 43
ops.MaxUnpool2D(ksize=2, strides=2)(t([[[[5]]]]), t([[[[3]]]], 'int64'))
    float32[1, 1, 2, 2] 0 0 0 5
ops.MaxUnpool3D(ksize=2, strides=2)(t([[[[[5]]]]]), t([[[[[6]]]]], 'int64'))
    float32[1, 1, 2, 2, 2] 0 0 0 0 0 0 5 0
ops.Median(global_median=False, axis=1, keep_dims=False)(x)
    float32[2] 0.5 0.25 ; int64[2] 0 1
ops.MultiMarginLoss()(x, t([2, 0], 'int64'))
    float32[] 0
ops.Mvlgamma(p=2)(p)
    float32[2, 3] 0.45158 0.45158 1.5502 0.67737 3.5651 0.85705
ops.NonMaxSuppressionWithOverlaps()(t([[1, 0.5], [0.5, 1]]), t([0.9, 0.8]), t(2, 'int32'), t(0.6), t(0.0))
    int32[2] 0 1
ops.Ones()((2, 2), ms.float32)
    float32[2, 2] 1 1 1 1
ops.Zeros()((2,), ms.int32)
    int32[2] 0 0
ops.Orgqr()(t([[-1.5, 0.5], [0.25, 2], [1, 0.5]]), t([1.25, 0.5]))
    float32[3, 2] -0.25 0.15625 -0.3125 0.53906 -1.25 -0.09375
ops.PadV3()(x, t([1, 0, 0, 1], 'int32'), t(5))
    float32[3, 4] 5 0.5 -1 2 5 3 0.25 -0.75 5 5 5 5
ops.Pdist(p=1.0)(x)
    float32[1] 6.5
ops.Polar()(p, x)
    complex64[2, 3] 1.3164,0.71914 1.0806,-1.6829 -1.2484,2.7279 -1.2375,0.1764 3.8756,0.98962
    1.8292,-1.7041
ops.Polygamma()(t(1, 'int32'), p)
    float32[2, 3] 0.9348 0.64493 0.39493 1.1973 0.28382 0.49036
ops.PopulationCount()(t([3, 7, 8], 'int16'))
    uint8[3] 2 3 1
ops.Qr()(spd)[1].shape
    3 ; 3
ops.Renorm(p=1, dim=0, maxnorm=2.0)(x)
    float32[2, 3] 0.28571 -0.57143 1.1429 1.5 0.125 -0.375
ops.ResizeLinear1D()(ops.stack([x]), t([5], 'int32'))
    float32[1, 2, 5] 0.5 -0.25 -1 0.5 2 3 1.625 0.25 -0.25 -0.75
ops.ResizeNearestNeighbor((2, 3))(img)
    float32[1, 1, 2, 3] 0 1 2 1 2 3
ops.ResizeNearestNeighborV2()(img, t([2, 3], 'int32'))
    float32[1, 1, 2, 3] 0 1 2 1 2 3
ops.ReverseSequence(seq_dim=1)(x, t([2, 3], 'int32'))
    float32[2, 3] -1 0.5 2 -0.75 0.25 3
ops.ScalarToTensor()(3, ms.float32)
    float32[] 3
ops.ScatterNd()(t([[1], [3]], 'int32'), t([2, 5]), (4,))
    float32[4] 0 2 0 5
ops.SearchSorted()(t([1, 2, 3]), t([0.5, 2.5]))
    int64[2] 0 2
ops.Select()(b, x, y)
    float32[2, 3] 0.5 -0.5 2 -3 0.25 -0.75
ops.SigmoidCrossEntropyWithLogits()(x, u)
    float32[2, 3] 0.87408 0.71326 0.32693 1.2486 0.80094 0.76187
ops.SoftMarginLoss()(x, ops.sign(y))
    float32[] 0.94594
ops.SpaceToBatchND([2], [[0, 0]])(t(np.arange(8).reshape(1, 1, 4, 2)))
    float32[2, 1, 4, 1] 0 2 4 6 1 3 5 7
ops.Svd(compute_uv=False)(spd)[0]
    float32[3] 9.3485 3.7302 1.9213
ops.TensorScatterAdd()(x, t([[0, 1], [0, 1]], 'int32'), t([1, 2]))
    float32[2, 3] 0.5 2 2 3 0.25 -0.75
ops.TensorScatterUpdate()(x, t([[0, 1]], 'int32'), t([5]))
    float32[2, 3] 0.5 5 2 3 0.25 -0.75
ops.TensorScatterElements(axis=1)(x, t([[2, 0], [1, 0]], 'int32'), t([[7, 8], [9, 6]]))
    float32[2, 3] 8 -1 7 6 9 -0.75
ops.Tile()(v, (2, 2))
    float32[2, 6] 1 -2 0.5 1 -2 0.5 1 -2 0.5 1 -2 0.5
ops.Transpose()(x, (1, 0))
    float32[3, 2] 0.5 3 -1 0.25 2 -0.75
ops.TransposeView()(x, (1, 0))
    float32[3, 2] 0.5 3 -1 0.25 2 -0.75
ops.TrilIndices(row=2, col=3)()
    int32[2, 3] 0 1 1 0 0 1
ops.TriuIndices(row=2, col=3)()
    int32[2, 5] 0 0 0 1 1 0 1 2 1 2
ops.TupleToArray()((1, 2, 3))
    int32[3] 1 2 3
ops.Unstack(axis=0)(x)
    float32[3] 0.5 -1 2 ; float32[3] 3 0.25 -0.75
ops.UpsampleNearest3D()(vol[:, :, :2, :2, :2], [3, 2, 2], None)
    float32[1, 1, 3, 2, 2] 0 1 4 5 0 1 4 5 5 6 9 10
ops.UpsampleTrilinear3D(align_corners=True)(vol[:, :, :2, :2, :2], [3, 2, 2], None)
    float32[1, 1, 3, 2, 2] 0 1 4 5 2.5 3.5 6.5 7.5 5 6 9 10
~ops.Dropout2D(keep_prob=0.5)(img)
    float32[1, 1, 4, 4] ; bool[1, 1, 4, 4]
~ops.Dropout3D(keep_prob=0.5)(vol)
    float32[1, 1, 4, 4, 4] ; bool[1, 1, 4, 4, 4]
~ops.LogNormalReverse()(x)
    float32[2, 3]
~ops.MultinomialWithReplacement(numsamples=2)(t([0.5, 0.5]), t(1, 'int64'), t(2, 'int64'))
    int64[2]
~ops.RandomCategorical()(x, 4, 1)
    int64[2, 4]
~ops.RandomShuffle()(v)
    float32[3]
~ops.RandpermV2()(t(4, 'int64'))
    int64[4]
~ops.StandardLaplace()((2, 3))
    float32[2, 3]
ops.CTCGreedyDecoder()(t(np.arange(12).reshape(3, 2, 2) % 5), t([3, 2], 'int32'))
    int64[1, 2] 0 0 ; int64[1] 0 ; int64[2] 2 1 ; float32[2, 1] -9 -5
ops.CombinedNonMaxSuppression()(t([[[[0, 0, 1, 1]], [[0, 0, 1, 0.9]], [[2, 2, 3, 3]]]]), t([[[0.9], [0.8],
        [0.7]]]), t(2, 'int32'), t(2, 'int32'), t(0.5), t(0.1))
    float32[1, 2, 4] 0 0 1 1 1 1 1 1 ; float32[1, 2] 0.9 0.7 ; float32[1, 2] 0 0 ; int32[1] 2
ops.FractionalMaxPoolWithFixedKsize(ksize=2, output_shape=2)(img, t([[[0.3, 0.6]]]))
    float32[1, 1, 2, 2] 5 6 6 4 ; int64[1, 1, 2, 2] 5 6 13 11
ops.FractionalMaxPool3DWithFixedKsize(ksize=(1, 1, 1), output_shape=(2, 2, 2))(vol, t([[[0.2, 0.4, 0.6]]]))
    float32[1, 1, 2, 2, 2] 0 3 1 4 4 7 5 8 ; int64[1, 1, 2, 2, 2] 0 3 12 15 48 51 60 63
ops.Coalesce()(t([[0, 0, 1], [1, 1, 0]], 'int64'), t([1, 2, 3]), t([2, 2], 'int64'))
    int64[2, 2] 0 1 1 0 ; float32[2] 3 3 ; int64[2] 2 2
"""
