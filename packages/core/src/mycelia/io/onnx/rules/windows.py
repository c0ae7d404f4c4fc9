"""Rules of what moves a window over images: convolutions and pooling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.sizes import is_symbolic
from mycelia.engine.ops.nn_ops.conv_geometry import full_attributes
from mycelia.io.compositions import Unsupported
from mycelia.io.onnx.rules.indices import scattered
from mycelia.io.onnx.rules.shapes import LAST
from mycelia.io.onnx.rules.table import rule


def _windows(node: Any, rank: int, kernel: Any = None) -> dict[str, Any]:
    """Kernel, stride, pads and dilation, as attributes of operators."""
    attrs = node.attrs
    names = ("kernel_shape", "strides", "pads", "dilations")
    pads = (0,) if is_symbolic(attrs["pad"]) else attrs["pad"]
    given = full_attributes(
        rank, kernel or attrs["kernel"], attrs["stride"], pads, attrs.get("dilation", (1,))
    )
    return dict(zip(names, given))


def _padded(w: Any, node: Any, x: Any, value: float) -> Any:
    """`x` with the padding that follows from open sizes; what is known is an attribute."""
    pads = node.attrs["pad"]
    if not is_symbolic(pads):
        return x
    half = x.rank - 2
    made = w.op("Pad", x, w.ints([0, 0, *pads[:half], 0, 0, *pads[half:]]), w.scalar(value, x))
    return w.like(made, (*x.shape[:2], *(-1 for _ in x.shape[2:])))


@rule("conv")
def _conv(w, node, x, weight, bias):
    how = _windows(node, x.rank - 2, weight.shape[2:])
    x = _padded(w, node, x, 0)
    return w.op("Conv", x, weight, bias, group=node.attrs["group"], **how)


@rule("conv_input_grad")
def _conv_transpose(w, node, dy, weight):
    """A transposed convolution that gives `size`: what the strides leave open is padded at the end."""
    how = _windows(node, dy.rank - 2, weight.shape[2:])
    size, rank = node.attrs["size"], dy.rank - 2
    if is_symbolic(size) or -1 in dy.shape[2:]:
        return _open_transpose(w, node, dy, weight, how)
    kernel, strides, pads, dilations = how.values()
    extra = [
        size[d] - ((n - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1 - pads[d] - pads[rank + d])
        for d, n in enumerate(dy.shape[2:])
    ]
    # Positions behind the last window are padded where the operator cannot give them.
    inside = [e if e < max(strides[d], dilations[d]) else 0 for d, e in enumerate(extra)]
    y = w.op("ConvTranspose", dy, weight, group=node.attrs["group"], output_padding=inside, **how)
    rest = [e - i for e, i in zip(extra, inside)]
    if any(rest):
        y = w.op("Pad", y, w.ints([0] * (rank + 4) + rest), w.scalar(0, y))
    return y


def _open_transpose(w: Any, node: Any, dy: Any, weight: Any, how: dict[str, Any]) -> Any:
    """A transposed convolution up to the last window, then cut or padded to a size known when it runs."""
    rank, pads = dy.rank - 2, how.pop("pads")
    begins = node.attrs["pad"][:rank] if is_symbolic(node.attrs["pad"]) else pads[:rank]
    y = w.op("ConvTranspose", dy, weight, group=node.attrs["group"], **how)
    axes = [*range(2, 2 + rank)]
    y = w.slice(y, begins, [LAST] * rank, axes, [1] * rank) if is_symbolic(begins) or any(begins) else y
    y = w.like(y, (*dy.shape[:2], *(-1 for _ in axes)))
    rest = [
        w.op("Sub", w.ints([n]), w.op("Shape", y, dtype=dtypes.int64, start=2 + d, end=3 + d))
        for d, n in enumerate(node.attrs["size"])
    ]
    return w.op("Pad", y, w.op("Concat", w.ints([0] * (rank + 4)), *rest, axis=0), w.scalar(0, y))


def _first(w: Any, node: Any, x: Any) -> Any:
    """Images with the channels in front."""
    if node.attrs["data_format"] == "NCHW":
        return x
    order = (0, x.rank - 1, *range(1, x.rank - 1))
    return w.like(w.op("Transpose", x, perm=order), tuple(x.shape[d] for d in order))


def _restored(w: Any, node: Any, y: Any) -> Any:
    if node.attrs["data_format"] == "NCHW":
        return y
    rank = node.outputs[0].type.rank
    return w.op("Transpose", y, perm=(0, *range(2, rank), 1))


def _ended(how: dict[str, Any], size: Any, positions: Any) -> dict[str, Any]:
    """The windows with the padding at the end that gives these positions, of sizes that are known."""
    kernel, strides, pads, dilations = how.values()
    rank, ends = len(kernel), []
    for d, (n, count) in enumerate(zip(size, positions)):
        span = (kernel[d] - 1) * dilations[d] + 1
        ends.append(max((count - 1) * strides[d] + span - n - pads[d], 0))
    return {**how, "pads": (*pads[:rank], *ends)}


def _positions(node: Any) -> Any:
    shape = node.outputs[0].type.shape
    return shape[2:] if node.attrs.get("data_format", "NCHW") == "NCHW" else shape[1:-1]


def _max(w: Any, node: Any, x: Any, out: tuple) -> list[Any]:
    how = _windows(node, x.rank - 2)
    if is_symbolic(node.attrs["pad"]) and len(out) == 1:
        if not x.dtype.is_floating:
            raise Unsupported("max_pool of integers with padding that follows from open sizes")
        x = _padded(w, node, x, -math.inf)
    if not node.attrs["ceil"]:
        return w.ops("MaxPool", [x], out, **how)
    if -1 in x.shape[2:]:
        return w.ops("MaxPool", [x], out, ceil_mode=1, **how)
    return w.ops("MaxPool", [x], out, **_ended(how, x.shape[2:], _positions(node)))


@rule("max_pool")
def _max_pool(w, node, x):
    return _restored(w, node, _max(w, node, _first(w, node, x), (None,))[0])


@rule("max_pool_index")
def _max_pool_index(w, node, x):
    if -1 in x.shape[2:]:
        raise Unsupported("max_pool_index of images whose sizes are left open")
    _, places = _max(w, node, x, (None, dtypes.int64))
    return w.op("Mod", places, w.scalar(math.prod(x.shape[2:]), places))


@rule("avg_pool")
def _avg_pool(w, node, x):
    x = _first(w, node, x)
    if is_symbolic(node.attrs["pad"]):
        raise Unsupported("avg_pool with padding that follows from open sizes")
    how = _windows(node, x.rank - 2)
    del how["dilations"]
    include, divisor = node.attrs["count_include_pad"], node.attrs["divisor"]
    size, positions = x.shape[2:], _positions(node)
    if node.attrs["ceil"] and -1 in size:
        raise Unsupported("avg_pool in ceil mode of images whose sizes are left open")
    plain = _ended({**how, "dilations": (1,) * len(size)}, size, positions) if node.attrs["ceil"] else how
    if plain["pads"] == how["pads"] or not node.attrs["ceil"]:
        y = w.op("AveragePool", x, count_include_pad=int(include or bool(divisor)), **how)
        if divisor:
            y = w.op("Mul", y, w.scalar(math.prod(how["kernel_shape"]) / divisor, y))
        return _restored(w, node, y)
    pads = plain.pop("pads")
    del plain["dilations"]
    y = w.op("AveragePool", x, count_include_pad=1, pads=pads, **plain)
    counts = _counted(how, size, positions, include, divisor)
    return _restored(w, node, w.op("Mul", y, w.constant(math.prod(how["kernel_shape"]) / counts, y.dtype)))


def _counted(how: dict, size: Any, positions: Any, include: bool, divisor: int) -> np.ndarray:
    """By how many elements the sum of each window is divided."""
    counts, rank = np.ones(()), len(size)
    for d, n in enumerate(size):
        begin = np.arange(positions[d]) * how["strides"][d] - how["pads"][d]
        end = np.minimum(begin + how["kernel_shape"][d], n + how["pads"][rank + d])
        counted = end - begin if include else np.minimum(end, n) - np.maximum(begin, 0)
        counts = counts[..., None] * np.maximum(counted, 1)
    return np.full_like(counts, divisor) if divisor else counts


# ---- adaptive pooling -------------------------------------------------------------------------------


@rule("adaptive_avg_pool", "adaptive_max_pool")
def _adaptive_pool(w, node, x):
    size, inner = node.attrs["size"], x.shape[2:]
    largest = node.op.name == "adaptive_max_pool"
    axes = [*range(2, x.rank)]
    if all(n == 1 for n in size):
        return w.reduce("ReduceMax" if largest else "ReduceMean", x, axes, True)
    if -1 in inner:
        raise Unsupported(f"{node.op.name} of images whose sizes are left open, to other than one place")
    if 0 in (*inner, *size):
        raise Unsupported(f"{node.op.name} of nothing")
    if all(n % out == 0 for n, out in zip(inner, size)):
        step = [n // out for n, out in zip(inner, size)]
        return w.op("MaxPool" if largest else "AveragePool", x, kernel_shape=step, strides=step)
    for axis, (n, out) in enumerate(zip(inner, size), 2):
        kind, parts = "ReduceMax" if largest else "ReduceMean", []
        for i in range(out):
            part = w.slice(x, [i * n // out], [-(-(i + 1) * n // out)], [axis], [1])
            parts.append(w.reduce(kind, w.like(part, x.shape), [axis], True))
        x = w.like(w.op("Concat", *parts, axis=axis), x.shape)
    return x


@rule("im2col")
def _im2col(w, node, x):
    """Windows as columns: along each axis the places of each tap are gathered."""
    size = x.shape[2:]
    if -1 in size:
        raise Unsupported("im2col of images whose sizes are left open")
    rank = len(size)
    kernel, strides, pads, dilations = _windows(node, rank).values()
    if any(pads):
        x = w.op("Pad", x, w.ints([0, 0, *pads[:rank], 0, 0, *pads[rank:]]), w.scalar(0, x))
    for d in range(rank):
        span = (kernel[d] - 1) * dilations[d] + 1
        count = (size[d] + pads[d] + pads[rank + d] - span) // strides[d] + 1
        taps = np.arange(kernel[d])[:, None] * dilations[d] + np.arange(count) * strides[d]
        x = w.op("Gather", x, w.constant(taps.astype(np.int64)), axis=2 + 2 * d)
    x = w.op("Transpose", x, perm=(0, 1, *range(2, 2 + 2 * rank, 2), *range(3, 2 + 2 * rank, 2)))
    return w.reshape(x, [0 if n == -1 else n for n in node.outputs[0].type.shape])


@rule("col2im")
def _col2im(w, node, x):
    """Each column is added at the places of the padded plane that `im2col` took it from."""
    size = node.attrs["size"]
    rank = len(size)
    kernel, strides, pads, dilations = _windows(node, rank).values()
    if -1 in x.shape[1:] or 0 in x.shape:
        raise Unsupported("col2im of columns whose sizes are left open, or of nothing")
    full = [n + pads[d] + pads[rank + d] for d, n in enumerate(size)]
    places = np.zeros((1,) * (2 * rank), np.int64)
    for d in range(rank):
        count = (full[d] - (kernel[d] - 1) * dilations[d] - 1) // strides[d] + 1
        taps = np.arange(kernel[d])[:, None] * dilations[d] + np.arange(count) * strides[d]
        shape = [1] * (2 * rank)
        shape[d], shape[rank + d] = taps.shape
        places = places + (taps * math.prod(full[d + 1 :])).reshape(shape)
    channels = x.shape[1] // math.prod(kernel)
    columns = w.op("Reshape", x, w.ints([0, channels, -1]))
    plane = w.op("Concat", w.size_of(x, 0), w.ints([channels, math.prod(full)]), axis=0)
    index = w.op("Expand", w.constant(places.reshape(1, 1, -1)), w.op("Shape", columns, dtype=dtypes.int64))
    zeros = w.op("Expand", w.scalar(0, x), plane)
    made = scattered(w, "ScatterElements", zeros, index, columns, "add", axis=2)
    made = w.op("Reshape", made, w.ints([0, 0, *full]))
    axes = [*range(2, 2 + rank)]
    ends = [pads[d] + n for d, n in enumerate(size)]
    return w.slice(made, pads[:rank], ends, axes, [1] * rank) if any(pads) else made
