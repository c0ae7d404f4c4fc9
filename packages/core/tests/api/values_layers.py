"""Layers, distributions and printed forms: calls and what they give; see test_values.py."""

CASES = """
nn.CELU()(x)
    float32[2, 3] 0.5 -0.63212 2 3 0.25 -0.52763
nn.FastGelu()(x)
    float32[2, 3] 0.35039 -0.1542 1.9357 2.9819 0.1512 -0.16361
nn.HShrink()(x)
    float32[2, 3] 0 -1 2 3 0 -0.75
nn.LogSigmoid()(x)
    float32[2, 3] -0.47408 -1.3133 -0.12693 -0.048587 -0.57594 -1.1369
nn.SeLU()(x)
    float32[2, 3] 0.52535 -1.1113 2.1014 3.1521 0.26268 -0.92763
nn.SoftShrink()(x)
    float32[2, 3] 0 -0.5 1.5 2.5 0 -0.25
nn.Softmin()(x)
    float32[2, 3] 0.17529 0.7856 0.039113 0.016902 0.2644 0.7187
nn.Softsign()(x)
    float32[2, 3] 0.33333 -0.5 0.66667 0.75 0.2 -0.42857
nn.Tanhshrink()(x)
    float32[2, 3] 0.037883 -0.23841 1.036 2.0049 0.0050813 -0.11485
nn.RReLU(0.25, 0.25)(x)
    float32[2, 3] 0.5 -0.25 2 3 0.25 -0.1875
nn.AdaptiveAvgPool1d(3)(ops.stack([x]))
    float32[1, 2, 3] 0.5 -1 2 3 0.25 -0.75
nn.AdaptiveAvgPool3d(2)(vol)
    float32[1, 1, 2, 2, 2] 5 4.25 4.75 5.375 5.375 4.625 3.75 5.75
nn.AdaptiveMaxPool3d(2)(vol)
    float32[1, 1, 2, 2, 2] 10 8 9 10 10 10 8 10
nn.ConstantPad3d((1, 0, 0, 0, 0, 1), 2.0)(vol[:, :, :1, :1, :2])
    float32[1, 1, 2, 1, 3] 2 0 1 2 2 2
nn.ReflectionPad1d(1)(x)
    float32[2, 5] -1 0.5 -1 2 -1 0.25 3 0.25 -0.75 0.25
nn.ReflectionPad3d((1, 0, 0, 1, 1, 0))(vol[:, :, :2, :2, :2])
    float32[1, 1, 3, 3, 3] sum 144 weighted 436
nn.ReplicationPad2d(1)(img[:, :, :2, :2])
    float32[1, 1, 4, 4] sum 40 weighted 121
nn.LPPool1d(2.0, 2)(ops.stack([p]))
    float32[1, 2, 1] 2.5 4.1908
nn.LPPool2d(2.0, 2)(img)
    float32[1, 1, 2, 2] 6.4807 7 8.124 5.099
nn.MaxPool3d(2, 2)(vol)
    float32[1, 1, 2, 2, 2] 10 8 9 10 10 10 8 10
nn.MaxUnpool1d(2, 2)(t([[[5]]]), t([[[1]]], 'int64'))
    float32[1, 1, 2] 0 5
nn.MaxUnpool2d(2, 2)(t([[[[5]]]]), t([[[[3]]]], 'int64'))
    float32[1, 1, 2, 2] 0 0 0 5
nn.MaxUnpool3d(2, 2)(t([[[[[5]]]]]), t([[[[[6]]]]], 'int64'))
    float32[1, 1, 2, 2, 2] 0 0 0 0 0 0 5 0
nn.MultiMarginLoss()(x, t([2, 0], 'int64'))
    float32[] 0
nn.get_activation('tanh')(x)
    float32[2, 3] 0.46212 -0.76159 0.96403 0.99506 0.24492 -0.63515
~nn.FractionalMaxPool2d(2, (2, 2))(img)
    float32[1, 1, 2, 2]
~nn.FractionalMaxPool3d(2, (2, 2, 2))(vol)
    float32[1, 1, 2, 2, 2]
nn.Dense(2, 3, has_bias=False).extend_repr()
    input_channels=2, output_channels=3
nn.Dropout(p=0.25).extend_repr()
    p=0.25
nn.Dropout2d(0.25).extend_repr()
    p=0.75
nn.Dropout3d(0.25).extend_repr()
    p=0.75
nn.Embedding(4, 2).extend_repr()
    vocab_size=4, embedding_size=2, use_one_hot=False, embedding_table=Parameter
    (name=embedding_table, shape=(4, 2), dtype=Float32, requires_grad=True), dtype=Float32,
    padding_idx=None
nn.LayerNorm((3,)).extend_repr()
    normalized_shape=(3,), begin_norm_axis=-1, begin_params_axis=-1, gammaParameter (name=gamma,
    shape=(3,), dtype=Float32, requires_grad=True), beta=Parameter (name=beta, shape=(3,),
    dtype=Float32, requires_grad=True)
nn.GroupNorm(1, 3).extend_repr()
    num_groups=1, num_channels=3
nn.BiDense(2, 3, 4).extend_repr()
    in1_channels=2, in2_channels=3, output_channels=4, has_bias=True
nn.Cell().get_mixed_precision_type()
    MixedPrecisionType.NOTSET
len(list(nn.ReLU().buffers()))
    0
nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 1)(ops.zeros((2, 1, 4)), ops.zeros((2, 1,
        4))).shape
    2 ; 1 ; 4
msd.Bernoulli(0.25).probs
    float32[] 0.25
msd.Categorical([0.25, 0.75]).probs
    float32[2] 0.25 0.75
msd.Geometric(0.25).probs
    float32[] 0.25
msd.Cauchy(1.0, 2.0).loc
    float32[] 1
msd.Gumbel(1.0, 2.0).loc
    float32[] 1
msd.Logistic(1.0, 2.0).loc
    float32[] 1
msd.LogNormal(1.0, 2.0).loc
    float32[] 1
msd.Normal(1.0, 2.0).extend_repr()
    mean = 1.0, standard deviation = 2.0
msd.Uniform(1.0, 2.0).extend_repr()
    low = 1.0, high = 2.0
msd.Exponential(2.0).extend_repr()
    rate = 2.0
msd.Bernoulli(0.25).extend_repr()
    probs = 0.25
msd.Categorical([0.25, 0.75]).extend_repr()
    probs = [0.25 0.75]
msd.Geometric(0.25).extend_repr()
    probs = 0.25
msd.Cauchy(1.0, 2.0).extend_repr()
    location = 1.0, scale = 2.0
msd.Gumbel(1.0, 2.0).extend_repr()
    loc = 1.0, scale = 2.0
msd.Logistic(1.0, 2.0).extend_repr()
    location = 1.0, scale = 2.0
msd.LogNormal(1.0, 2.0).extend_repr()
    loc = 1.0, scale = 2.0
msb.Exp().extend_repr()
    exp
msb.GumbelCDF(1.0, 2.0).extend_repr()
    loc = 1.0, scale = 2.0
msb.GumbelCDF(1.0, 2.0).loc
    float32[] 1
msb.PowerTransform(2.0).extend_repr()
    power = 2.0
msb.ScalarAffine(2.0, 1.0).extend_repr()
    scale = 2.0, shift = 1.0
msb.Softplus(2.0).extend_repr()
    sharpness = 2.0
msb.Softplus(2.0).sharpness
    float32[] 2
ms.intc
    Int32
ms.intp
    Int64
ms.dtype_to_nptype(ms.int16)
    <class 'numpy.int16'>
ms.dtype_to_pytype(ms.float32)
    <class 'float'>
coo(x).to_tuple()
    int32[6, 2] 0 0 0 1 0 2 1 0 1 1 1 2 ; float32[6] 0.5 -1 2 3 0.25 -0.75 ; 2 ; 3
csr(x).to_tuple()
    int32[3] 0 3 6 ; int32[6] 0 1 2 0 1 2 ; float32[6] 0.5 -1 2 3 0.25 -0.75 ; 2 ; 3
"""
