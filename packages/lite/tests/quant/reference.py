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
        stream = int.from_bytes(bytes(tensor.data), "little")
        fields = [(stream >> (i * bits)) & ((1 << bits) - 1) for i in range(count)]
        q = np.array(fields, np.float64) - 2 ** (bits - 1)
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


def convolution(x, w, stride=1, pad=0, dilation=1):
    """[N, H, W, I], [O, kh, kw, I] -> [N, H', W', O]."""
    x = np.pad(x.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    spans = [dilation * (n - 1) + 1 for n in w.shape[1:3]]
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, (1, 2))
    windows = windows[:, ::stride, ::stride, :, ::dilation, ::dilation]
    return np.einsum("nhwcij,oijc->nhwo", windows, w)
