"""Layers against MindSpore 2.10 on CPU: leading values and the sum of absolute values of every output."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia import Tensor, nn


def t(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def ids(*values):
    return Tensor(np.array(values, np.int32))


def fill(net):
    """Parameters from a fixed stream; variances around 1."""
    r = np.random.default_rng(5)
    for p in net.get_parameters():
        p.set_data(Tensor((r.normal(size=p.shape) * 0.3).astype(np.float32) + (1 if "var" in p.name else 0)))
    return net


def mask(rows):
    return Tensor(np.array(rows).astype(bool))


X = t(2, 6, 5, 5)
S = t(7, 3, 4, seed=1)
Q = t(6, 2, 8, seed=2)
LATER = mask(np.triu(np.ones((6, 6)), 1))
PADDED = mask([[0, 0, 0, 0, 1, 1], [0] * 6])

CASES = {
    "Dense": lambda: fill(nn.Dense(5, 3))(X),
    "Dense activation": lambda: fill(nn.Dense(5, 3, activation="relu"))(X),
    "Dense no bias": lambda: fill(nn.Dense(5, 3, has_bias=False))(X),
    "BiDense": lambda: fill(nn.BiDense(3, 4, 5))(t(6, 3), t(6, 4, seed=1)),
    "BiDense of rank 3": lambda: fill(nn.BiDense(3, 4, 5, has_bias=False))(t(2, 6, 3), t(2, 6, 4, seed=1)),
    "Embedding": lambda: fill(nn.Embedding(6, 3))(ids([0, 5], [2, 1])),
    "EmbeddingLookup": lambda: fill(nn.EmbeddingLookup(6, 3))(ids(0, 7, 5, -1)),
    "OneHot": lambda: nn.OneHot(depth=4)(ids([0, 3], [2, 1])),
    "OneHot axis 0": lambda: nn.OneHot(axis=0, depth=4, on_value=2.0, off_value=-1.0)(ids(0, 3, 9)),
    "Flatten": lambda: nn.Flatten(1, 2)(X),
    "Unflatten": lambda: nn.Unflatten(1, (2, -1))(X),
    "BatchNorm1d": lambda: fill(nn.BatchNorm1d(4))(t(6, 4)),
    "BatchNorm2d": lambda: fill(nn.BatchNorm2d(6))(X),
    "BatchNorm2d training": lambda: fill(nn.BatchNorm2d(6)).set_train()(X),
    "BatchNorm3d": lambda: fill(nn.BatchNorm3d(2))(t(2, 2, 3, 3, 3)),
    "LayerNorm": lambda: fill(nn.LayerNorm((5,)))(X),
    "LayerNorm over two": lambda: fill(nn.LayerNorm((5, 5), 2, 2))(X),
    "GroupNorm": lambda: fill(nn.GroupNorm(3, 6))(X),
    "Conv1d": lambda: fill(nn.Conv1d(5, 4, 3, 2, "same", has_bias=True))(t(2, 5, 9)),
    "Conv1d pad": lambda: fill(nn.Conv1d(5, 4, 3, 1, "pad", padding=2, dilation=2))(t(2, 5, 9)),
    "Conv2d": lambda: fill(nn.Conv2d(6, 4, 3))(X),
    "Conv2d groups": lambda: fill(nn.Conv2d(6, 4, 3, 2, "pad", (1, 2, 0, 1), group=2))(X),
    "Conv2d valid bias": lambda: fill(nn.Conv2d(6, 4, (2, 3), (1, 2), "valid", has_bias=True))(X),
    "Conv3d": lambda: fill(nn.Conv3d(2, 3, 2, dilation=2))(t(1, 2, 5, 5, 5)),
    "Conv1dTranspose": lambda: fill(nn.Conv1dTranspose(4, 6, 3, 2, has_bias=True))(t(2, 4, 7)),
    "Conv1dTranspose pad": lambda: fill(nn.Conv1dTranspose(4, 6, 3, 2, "pad", 1))(t(2, 4, 7)),
    "Conv2dTranspose": lambda: fill(nn.Conv2dTranspose(4, 6, 3, 2, has_bias=True))(t(2, 4, 5, 6)),
    "Conv2dTranspose valid": lambda: fill(nn.Conv2dTranspose(4, 6, 3, 2, "valid"))(t(2, 4, 5, 6)),
    "Conv2dTranspose groups": lambda: fill(
        nn.Conv2dTranspose(4, 6, (3, 2), (2, 3), "pad", (1, 0, 1, 0), group=2)
    )(t(2, 4, 5, 6)),
    "Conv2dTranspose dilation": lambda: fill(nn.Conv2dTranspose(4, 6, (3, 2), dilation=2))(t(2, 4, 5, 6)),
    "Conv2dTranspose output padding": lambda: fill(
        nn.Conv2dTranspose(4, 6, 3, 2, "pad", 1, output_padding=1, has_bias=True)
    )(t(2, 4, 5, 6)),
    "Conv3dTranspose": lambda: fill(
        nn.Conv3dTranspose(2, 3, 3, 2, "pad", 1, output_padding=1, has_bias=True)
    )(t(1, 2, 3, 4, 3)),
    "Conv2dBnAct": lambda: fill(nn.Conv2dBnAct(6, 3, 3, has_bn=True, activation="relu"))(X),
    "Conv2dBnAct leaky": lambda: fill(nn.Conv2dBnAct(6, 3, 3, has_bias=True, activation="leakyrelu"))(X),
    "DenseBnAct": lambda: fill(nn.DenseBnAct(4, 3, has_bn=True, activation="relu"))(t(3, 4)),
    "AvgPool1d": lambda: nn.AvgPool1d(3, 2)(t(2, 3, 8)),
    "AvgPool2d same": lambda: nn.AvgPool2d(3, 2, "same")(X),
    "AvgPool2d pad": lambda: nn.AvgPool2d(3, 2, "pad", 1, True, False)(X),
    "MaxPool1d": lambda: nn.MaxPool1d(3, 2)(t(2, 3, 8)),
    "MaxPool2d same": lambda: nn.MaxPool2d(3, 2, "same")(X),
    "MaxPool2d pad": lambda: nn.MaxPool2d(3, 2, "pad", 1, 1, True)(X),
    "AdaptiveAvgPool2d": lambda: nn.AdaptiveAvgPool2d(3)(X),
    "AdaptiveMaxPool2d": lambda: nn.AdaptiveMaxPool2d((2, None), True)(X),
    "Pad": lambda: nn.Pad(((1, 1), (0, 2)), "SYMMETRIC")(t(3, 4)),
    "ReflectionPad2d": lambda: nn.ReflectionPad2d((1, 2, 0, 1))(t(1, 1, 3, 4)),
    "ReplicationPad1d": lambda: nn.ReplicationPad1d(2)(t(1, 2, 3)),
    "ConstantPad2d": lambda: nn.ConstantPad2d((1, 1, 2, 0), 1.5)(t(2, 3)),
    "ZeroPad2d": lambda: nn.ZeroPad2d(1)(t(2, 2, 2)),
    "Upsample nearest": lambda: nn.Upsample(size=(7, 4))(X),
    "Upsample nearest-exact": lambda: nn.Upsample(size=(7, 4), mode="nearest-exact")(X),
    "Upsample factor": lambda: nn.Upsample(scale_factor=(2.0, 1.5), recompute_scale_factor=True)(X),
    "Upsample bilinear": lambda: nn.Upsample(size=(7, 4), mode="bilinear")(X),
    "Upsample bilinear aligned": lambda: nn.Upsample(size=(7, 4), mode="bilinear", align_corners=True)(X),
    "Upsample linear": lambda: nn.Upsample(size=9, mode="linear", align_corners=True)(S),
    "Upsample trilinear": lambda: nn.Upsample(size=(4, 5, 6), mode="trilinear")(t(1, 2, 3, 4, 3)),
    "Upsample area": lambda: nn.Upsample(size=(3, 7), mode="area")(X),
    "PixelShuffle": lambda: nn.PixelShuffle(2)(t(2, 8, 3, 4)),
    "PixelUnshuffle": lambda: nn.PixelUnshuffle(2)(t(2, 3, 4, 6)),
    "ChannelShuffle": lambda: nn.ChannelShuffle(3)(X),
    "CentralCrop": lambda: nn.CentralCrop(0.34)(t(3, 7, 9)),
    "ClipByNorm": lambda: nn.ClipByNorm()(X, Tensor(np.array([3.0], np.float32))),
    "ReduceLogSumExp": lambda: nn.ReduceLogSumExp((1, 2), True)(X),
    "LSTM": lambda: fill(nn.LSTM(4, 5, 2, bidirectional=True))(S, (t(4, 3, 5, seed=3), t(4, 3, 5, seed=4))),
    "LSTM lengths": lambda: fill(nn.LSTM(4, 5, 2, bidirectional=True))(
        S, (t(4, 3, 5, seed=3), t(4, 3, 5, seed=4)), ids(7, 2, 5)
    ),
    "LSTM batch first": lambda: fill(nn.LSTM(4, 5, 1, batch_first=True, has_bias=False))(S),
    "GRU": lambda: fill(nn.GRU(4, 5, 2))(S, t(2, 3, 5, seed=3)),
    "GRU lengths": lambda: fill(nn.GRU(4, 5, 2))(S, t(2, 3, 5, seed=3), ids(7, 2, 5)),
    "RNN": lambda: fill(nn.RNN(4, 5, 1, nonlinearity="relu"))(S, t(1, 3, 5, seed=3)),
    "RNNCell": lambda: fill(nn.RNNCell(4, 5))(t(3, 4), t(3, 5, seed=1)),
    "GRUCell": lambda: fill(nn.GRUCell(4, 5))(t(3, 4), t(3, 5, seed=1)),
    "LSTMCell": lambda: fill(nn.LSTMCell(4, 5))(t(3, 4), (t(3, 5, seed=1), t(3, 5, seed=2))),
    "MultiheadAttention": lambda: fill(nn.MultiheadAttention(8, 2))(Q, Q, Q),
    "MultiheadAttention masks": lambda: fill(nn.MultiheadAttention(8, 2))(
        Q, Q, Q, attn_mask=LATER, key_padding_mask=PADDED
    ),
    "MultiheadAttention heads": lambda: fill(nn.MultiheadAttention(8, 2))(
        Q, t(4, 2, 8, seed=3), t(4, 2, 8, seed=4), average_attn_weights=False
    ),
    "MultiheadAttention sizes": lambda: fill(
        nn.MultiheadAttention(8, 2, kdim=3, vdim=5, add_bias_kv=True, add_zero_attn=True, batch_first=True)
    )(t(2, 6, 8), t(2, 4, 3, seed=1), t(2, 4, 5, seed=2)),
    "TransformerEncoderLayer": lambda: fill(nn.TransformerEncoderLayer(8, 2, 16, 0.0))(Q, LATER),
    "TransformerDecoderLayer": lambda: fill(
        nn.TransformerDecoderLayer(8, 2, 16, 0.0, norm_first=True, activation="gelu")
    )(Q, t(3, 2, 8, seed=3)),
    "Transformer": lambda: fill(nn.Transformer(8, 2, 1, 1, 16, 0.0))(Q, t(3, 2, 8, seed=3)),
    "PReLU": lambda: fill(nn.PReLU(6))(X),
    "GLU": lambda: nn.GLU(1)(X),
    "Softmax2d": lambda: nn.Softmax2d()(X),
    "Hardtanh": lambda: nn.Hardtanh(-0.5, 0.7)(X),
    "Threshold": lambda: nn.Threshold(0.1, 20.0)(X),
    "LRN": lambda: nn.LRN()(X),
}


def summary(output) -> list:
    outputs = output if isinstance(output, (tuple, list)) else [output]
    rows = []
    for part in outputs:
        if isinstance(part, (tuple, list)):
            rows += summary(part)
            continue
        values = part.asnumpy().astype(np.float64)
        rows.append(
            (
                tuple(part.shape),
                [round(v, 5) for v in values.reshape(-1)[:4].tolist()],
                round(float(np.abs(values).sum()), 3),
            )
        )
    return rows


WANT = {  # computed by MindSpore 2.10
    'Dense': [((2, 6, 5, 3), [-0.71445, -0.38899, -0.45616, -1.71533], 108.453)],
    'Dense activation': [((2, 6, 5, 3), [0.0, 0.0, 0.0, 0.0], 23.856)],
    'Dense no bias': [((2, 6, 5, 3), [-0.19481, -0.36388, -0.10719, -1.19569], 94.471)],
    'BiDense': [((6, 5), [0.75969, 0.58259, -0.13965, 0.41364], 13.805)],
    'BiDense of rank 3': [((2, 6, 5), [0.5062, 0.33039, 0.04233, 0.43465], 29.074)],
    'Embedding': [((2, 2, 3), [-0.24058, -0.39731, -0.07451, -0.51964], 2.732)],
    'EmbeddingLookup': [((4, 3), [-0.24058, -0.39731, -0.07451, 0.0], 1.606)],
    'OneHot': [((2, 2, 4), [1.0, 0.0, 0.0, 0.0], 4.0)],
    'OneHot axis 0': [((4, 3), [2.0, -1.0, -1.0, -1.0], 14.0)],
    'Flatten': [((2, 30, 5), [0.12573, -0.1321, 0.64042, 0.1049], 246.151)],
    'Unflatten': [((2, 2, 3, 5, 5), [0.12573, -0.1321, 0.64042, 0.1049], 246.151)],
    'BatchNorm1d': [((6, 4), [-0.21642, 0.60798, 0.12492, -0.51066], 10.192)],
    'BatchNorm2d': [((2, 6, 5, 5), [-0.30408, -0.22293, -0.46608, -0.29753], 91.371)],
    'BatchNorm2d training': [((2, 6, 5, 5), [-0.24703, -0.16522, -0.41033, -0.24042], 86.649)],
    'BatchNorm3d': [((2, 2, 3, 3, 3), [-0.03602, -0.12737, 0.14631, -0.0434], 27.071)],
    'LayerNorm': [((2, 6, 5, 5), [-0.02054, 0.01346, -0.35214, 0.24579], 90.927)],
    'LayerNorm over two': [((2, 6, 5, 5), [0.19293, -0.46565, -0.13922, -0.26792], 92.781)],
    'GroupNorm': [((2, 6, 5, 5), [-0.16493, -0.09685, -0.30083, -0.15943], 98.758)],
    'Conv1d': [((2, 4, 5), [-0.32894, 0.71789, -1.38058, -0.95154], 33.703)],
    'Conv1d pad': [((2, 4, 9), [-1.07639, 0.18201, -0.4539, -0.76639], 63.017)],
    'Conv2d': [((2, 4, 5, 5), [0.30262, 1.79868, 0.40347, -0.56683], 311.311)],
    'Conv2d groups': [((2, 4, 3, 2), [-0.12139, 0.2078, -2.30161, 1.33643], 53.849)],
    'Conv2d valid bias': [((2, 4, 4, 2), [0.0314, -1.07181, -1.57303, -2.64619], 95.853)],
    'Conv3d': [((1, 3, 5, 5, 5), [-0.107, 0.16959, 0.5418, 1.21562], 235.943)],
    'Conv1dTranspose': [((2, 6, 14), [0.09396, 0.0043, 0.79923, 0.65186], 84.503)],
    'Conv1dTranspose pad': [((2, 6, 13), [-0.02661, 0.76833, 0.62095, 0.05003], 68.67)],
    'Conv2dTranspose': [((2, 6, 10, 12), [-0.2392, 0.21051, -0.51538, -0.48344], 970.745)],
    'Conv2dTranspose valid': [((2, 6, 11, 13), [-0.21067, 0.23904, -0.48685, -0.45491], 1025.907)],
    'Conv2dTranspose groups': [((2, 6, 10, 16), [-0.15175, 0.0, 0.05461, -0.05139], 442.369)],
    'Conv2dTranspose dilation': [((2, 6, 5, 6), [-1.54427, 1.79729, 0.42994, -1.32122], 285.904)],
    'Conv2dTranspose output padding': [((2, 6, 10, 12), [-0.66361, -0.39838, -0.56608, 0.3566], 821.102)],
    'Conv3dTranspose': [((1, 3, 6, 8, 6), [0.60782, 0.32195, 0.1952, -0.29317], 384.344)],
    'Conv2dBnAct': [((2, 3, 5, 5), [0.0, 0.0, 0.0, 0.08118], 78.683)],
    'Conv2dBnAct leaky': [((2, 3, 5, 5), [0.48982, 1.98587, 0.59066, -0.07593], 138.222)],
    'DenseBnAct': [((3, 3), [0.16343, 0.2405, 0.0, 0.16707], 1.364)],
    'AvgPool1d': [((2, 3, 3), [0.21135, 0.06988, 0.37664, -0.86414], 7.772)],
    'AvgPool2d same': [((2, 6, 3, 3), [0.41481, 0.36009, -0.59998, -0.03215], 42.683)],
    'AvgPool2d pad': [((2, 6, 3, 3), [0.41481, 0.36009, -0.59998, -0.03215], 42.683)],
    'MaxPool1d': [((2, 3, 3), [0.64042, 0.64042, 1.304, -0.62327], 13.868)],
    'MaxPool2d same': [((2, 6, 3, 3), [1.304, 1.304, 0.1049, 1.304], 126.283)],
    'MaxPool2d pad': [((2, 6, 3, 3), [1.304, 1.304, 0.1049, 1.304], 126.283),
     ((2, 6, 3, 3), [6.0, 6.0, 3.0, 6.0], 1332.0)],
    'AdaptiveAvgPool2d': [((2, 6, 3, 3), [0.41481, 0.36009, -0.59998, -0.03215], 42.683)],
    'AdaptiveMaxPool2d': [((2, 6, 2, 5), [0.3616, 1.304, 0.94708, 0.1049], 111.98),
     ((2, 6, 2, 5), [5.0, 6.0, 7.0, 3.0], 1500.0)],
    'Pad': [((5, 6), [0.12573, -0.1321, 0.64042, 0.1049], 15.493)],
    'ReflectionPad2d': [((1, 1, 4, 7), [-0.1321, 0.12573, -0.1321, 0.64042], 18.047)],
    'ReplicationPad1d': [((1, 2, 7), [0.12573, 0.12573, 0.12573, -0.1321], 4.366)],
    'ConstantPad2d': [((4, 5), [1.5, 1.5, 1.5, 1.5], 22.9)],
    'ZeroPad2d': [((2, 4, 4), [0.0, 0.0, 0.0, 0.0], 4.152)],
    'Upsample nearest': [((2, 6, 7, 4), [0.12573, -0.1321, 0.64042, 0.1049], 256.958)],
    'Upsample nearest-exact': [((2, 6, 7, 4), [0.12573, -0.1321, 0.1049, -0.53567], 283.91)],
    'Upsample factor': [((2, 6, 10, 7), [0.12573, 0.12573, -0.1321, 0.64042], 665.605)],
    'Upsample bilinear': [((2, 6, 7, 4), [0.0935, 0.15759, 0.30572, -0.4556], 194.711)],
    'Upsample bilinear aligned': [((2, 6, 7, 4), [0.12573, 0.1254, 0.28341, -0.53567], 209.699)],
    'Upsample linear': [((7, 3, 9), [0.34558, 0.5241, 0.70261, 0.76022], 110.801)],
    'Upsample trilinear': [((1, 2, 4, 5, 6), [0.12573, 0.06127, -0.06765, 0.06103], 112.354)],
    'Upsample area': [((2, 6, 3, 7), [0.24366, 0.41481, 0.68985, 0.79375], 119.266)],
    'PixelShuffle': [((2, 2, 6, 8), [0.12573, -2.32503, -0.1321, -0.21879], 150.199)],
    'PixelUnshuffle': [((2, 12, 2, 3), [0.12573, 0.64042, -0.53567, -2.32503], 114.018)],
    'ChannelShuffle': [((2, 6, 5, 5), [0.12573, -0.1321, 0.64042, 0.1049], 246.151)],
    'CentralCrop': [((3, 3, 5), [-0.12853, 1.36646, -0.66519, 0.35151], 38.564)],
    'ClipByNorm': [((2, 6, 5, 5), [0.02138, -0.02247, 0.10892, 0.01784], 41.862)],
    'ReduceLogSumExp': [((2, 1, 1, 5), [3.45233, 4.03677, 4.04582, 3.59867], 38.473)],
    'LSTM': [((7, 3, 10), [-0.20708, 0.09259, -0.24793, 0.2604], 40.511),
     ((4, 3, 5), [-0.34176, 0.21402, 0.08428, -0.09443], 11.57),
     ((4, 3, 5), [-0.93287, 0.76526, 0.14184, -0.31512], 26.055)],
    'LSTM lengths': [((7, 3, 10), [-0.20708, 0.09259, -0.24793, 0.2604], 26.913),
     ((4, 3, 5), [-0.34176, 0.21402, 0.08428, -0.09443], 10.075),
     ((4, 3, 5), [-0.93287, 0.76526, 0.14183, -0.31512], 22.006)],
    'LSTM batch first': [((7, 3, 5), [-0.0013, 0.17492, 0.14397, 0.04394], 10.658),
     ((1, 7, 5), [0.13046, -0.11291, -0.07099, -0.03086], 3.855),
     ((1, 7, 5), [0.25321, -0.2202, -0.13652, -0.06955], 8.4)],
    'GRU': [((7, 3, 5), [-0.48735, -0.11515, 0.13771, 0.28996], 29.026),
     ((2, 3, 5), [0.21776, 0.19908, -0.26947, -0.62479], 7.076)],
    'GRU lengths': [((7, 3, 5), [-0.48735, -0.11515, 0.13771, 0.28996], 21.413),
     ((2, 3, 5), [0.21776, 0.19908, -0.26947, -0.62479], 9.03)],
    'RNN': [((7, 3, 5), [0.0, 1.98167, 0.0, 1.12912], 18.558), ((1, 3, 5), [0.24292, 0.0, 0.0, 0.0], 2.625)],
    'RNNCell': [((3, 5), [0.59422, -0.41507, -0.60185, -0.87368], 9.284)],
    'GRUCell': [((3, 5), [-0.26251, 0.70806, 0.37579, -0.85982], 6.69)],
    'LSTMCell': [((3, 5), [0.1644, -0.06274, -0.20327, -0.0865], 2.52),
     ((3, 5), [0.3194, -0.10233, -0.36665, -0.45664], 6.052)],
    'MultiheadAttention': [((6, 2, 8), [-0.20945, 0.01514, -0.16489, 0.11722], 24.649),
     ((2, 6, 6), [0.09984, 0.17749, 0.16938, 0.09297], 12.0)],
    'MultiheadAttention masks': [((6, 2, 8), [-0.30884, 0.08763, -0.25477, -0.22538], 28.64),
     ((2, 6, 6), [1.0, 0.0, 0.0, 0.0], 12.0)],
    'MultiheadAttention heads': [((6, 2, 8), [0.12381, -0.70804, 0.10744, -0.1734], 25.519),
     ((2, 2, 6, 4), [0.40651, 0.16738, 0.27663, 0.14947], 24.0)],
    'MultiheadAttention sizes': [((2, 6, 8), [0.08644, -0.09732, -0.38638, -0.44596], 40.207),
     ((2, 6, 6), [0.17007, 0.16776, 0.16822, 0.17443], 12.0)],
    'TransformerEncoderLayer': [((6, 2, 8), [0.0301, -0.11969, -0.06531, 0.21875], 21.231)],
    'TransformerDecoderLayer': [((6, 2, 8), [0.95336, 0.83092, -0.40966, -2.5966], 90.03)],
    'Transformer': [((3, 2, 8), [-0.20531, 0.80655, -0.03351, -0.13496], 15.397)],
    'PReLU': [((2, 6, 5, 5), [0.12573, 0.03178, 0.64042, 0.1049], 141.957)],
    'GLU': [((2, 3, 5, 5), [0.0265, -0.04497, 0.45989, 0.05374], 56.804)],
    'Softmax2d': [((2, 6, 5, 5), [0.18757, 0.17188, 0.23771, 0.19728], 50.0)],
    'Hardtanh': [((2, 6, 5, 5), [0.12573, -0.1321, 0.64042, 0.1049], 139.941)],
    'Threshold': [((2, 6, 5, 5), [0.12573, 20.0, 0.64042, 0.1049], 3497.139)],
    'LRN': [((2, 6, 5, 5), [0.06501, -0.05193, 0.35646, 0.05928], 93.29)],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_layer_gives_mindspores_numbers(name):
    for (shape, values, total), (want_shape, want_values, want_total) in zip(
        summary(CASES[name]()), WANT[name], strict=True
    ):
        assert shape == want_shape
        np.testing.assert_allclose(values, want_values, rtol=1e-4, atol=3e-5)
        np.testing.assert_allclose(total, want_total, rtol=1e-4, atol=2e-3)
