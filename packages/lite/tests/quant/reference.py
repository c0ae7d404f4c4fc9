"""What quantized weights of a file stand for, computed from its tables alone, and layers in float64."""

from __future__ import annotations

import numpy as np

from mycelia_lite.format import Table


def weights(tensor: Table, axis: int) -> np.ndarray:
    """(q - zero) * scale + shift of a constant, several scales along `axis`."""
    shape = [int(n) for n in tensor.dims]
    params = tensor.quantParams
    count, bits = int(np.prod(shape)), int(params[0].numBits)
    if tensor.weightQuantCompressType.name == "BITPACKING":
        q = _fields(tensor.data, bits, count)
    else:
        q = np.frombuffer(tensor.data, {"INT8": np.int8, "INT16": np.int16}[tensor.dataType.name]).astype(
            float
        )
    spread = [1] * len(shape)
    if len(params) > 1:
        spread[axis] = len(params)
    scale, zero, shift = (
        np.array([getattr(p, name) for p in params], np.float64).reshape(spread)
        for name in ("scale", "zeroPoint", "meanCorr")
    )
    return (q.reshape(shape) - zero) * scale + shift


def compact(model: Table, index: int) -> np.ndarray:
    """The weights that a node low_bit makes, as the tensor `index`."""
    node = next(n for n in model.nodes if index in [int(i) for i in n.outputIndex])
    assert node.primitive.type == "low_bit"
    given = {a.name: int(np.frombuffer(a.data, np.int64)[0]) for a in node.primitive.attr}
    shape, bits = [int(n) for n in model.allTensors[index].dims], given["bits"]
    stream, *numbers = (model.allTensors[i] for i in node.inputIndex)
    kinds = {"FLOAT16": np.float16, "FLOAT32": np.float32}
    scale, shift = (
        np.frombuffer(t.data, kinds[t.dataType.name]).astype(np.float64).reshape(shape[given["axis"]], -1)
        for t in (numbers * 2)[:2]
    )
    shift = shift if len(numbers) > 1 else np.zeros_like(scale)
    q = np.moveaxis(_fields(stream.data, bits, int(np.prod(shape))).reshape(shape), given["axis"], 0)
    rows = q.reshape(*scale.shape, -1)
    made = (rows * scale[..., None] + shift[..., None]).reshape(q.shape)
    return np.moveaxis(made, 0, given["axis"])


def _fields(data, bits: int, count: int) -> np.ndarray:
    stream = int.from_bytes(bytes(data), "little")
    mask = (1 << bits) - 1
    return np.array([(stream >> (i * bits)) & mask for i in range(count)], np.float64) - 2 ** (bits - 1)


def convolution(x, w, stride=1, pad=0, dilation=1):
    """[N, H, W, I], [O, kh, kw, I] -> [N, H', W', O]."""
    x = np.pad(x.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    spans = [dilation * (n - 1) + 1 for n in w.shape[1:3]]
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, (1, 2))
    windows = windows[:, ::stride, ::stride, :, ::dilation, ::dilation]
    return np.einsum("nhwcij,oijc->nhwo", windows, w)
