"""Rules of what moves a window over images: convolutions and pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycelia.engine.ir import Node, TensorType
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.mindir.rules.table import (
    Unsupported,
    attributes,
    require_static,
    result_type,
    rule,
    scalar,
    shaped,
)


def _pairs(pads: Sequence[int], rank: int) -> tuple[int, ...]:
    """Begins then ends -> begin and end of each dimension."""
    return tuple(n for pair in zip(pads[:rank], pads[rank:]) for n in pair)


def _full(values: Sequence[int], count: int) -> tuple[int, ...]:
    return tuple(values) * count if len(values) == 1 else tuple(values)


def _described(kernel, stride, dilation, pads, group: int, outputs: int) -> dict[str, Any]:
    """The attributes of a convolution."""
    pairs = _pairs(pads, len(kernel))
    return dict(
        kernel_size=kernel, mode=1, out_channel=outputs, pad=pairs, pad_mode="pad" if any(pairs) else "valid",
        pad_list=pairs, groups=group, group=group, stride=(1, 1, *stride), dilation=(1, 1, *dilation),
    )  # fmt: skip


def windows_of_conv(node: Node, kernel: Sequence[int], outputs: int) -> dict[str, Any]:
    """The attributes of the convolution of images that a node is a gradient of."""
    stride, dilation, kernel = (_full(n, 2) for n in (node.attrs["stride"], node.attrs["dilation"], kernel))
    return _described(kernel, stride, dilation, _full(node.attrs["pad"], 4), node.attrs["group"], outputs)


@rule("conv")
def _conv(w, node, inputs):
    x, weight = (v.type for v in node.inputs[:2])
    out, rank = result_type(node), x.rank - 2
    stride, dilation = (_full(node.attrs[n], rank) for n in ("stride", "dilation"))
    pads, group = _full(node.attrs["pad"], 2 * rank), node.attrs["group"]
    kernel, names = weight.shape[2:], list(inputs[:2])
    if rank == 1:  # a picture of height 1
        names = [w.op("ExpandDims", n, 2) for n in names]
        kernel, stride, dilation, pads = (1, *kernel), (1, *stride), (1, *dilation), (0, pads[0], 0, pads[1])
        out = shaped(out, (*out.shape[:2], 1, out.shape[2]))
    spatial = len(kernel)
    common = _described(kernel, stride, dilation, pads, group, weight.shape[0])
    common |= dict(input_names=["x", "w"], output_names=["output"])
    if spatial == 2:
        name = w.primitive("Conv2D", *names, out=out, format="NCHW", **common)
    else:
        common["strides"], common["dilations"] = common.pop("stride"), common.pop("dilation")
        name = w.primitive("Conv3D", *names, out=out, format="NCDHW", data_format="NCDHW", **common)
    if inputs[2] is not None:
        name = w.op("BiasAdd", name, inputs[2], 0 if spatial == 2 else 14, out=out)
    return w.op("Squeeze", name, (2,), out=result_type(node)) if rank == 1 else name


@rule("conv_input_grad")
def _conv_transpose(w, node, inputs):
    """The transposed convolution is the gradient of the convolution in its input."""
    dy, weight = (v.type for v in node.inputs[:2])
    out, rank = result_type(node), dy.rank - 2
    stride, dilation = (_full(node.attrs[n], rank) for n in ("stride", "dilation"))
    pads, group = _full(node.attrs["pad"], 2 * rank), node.attrs["group"]
    kernel, names, type = weight.shape[2:], list(inputs[:2]), out
    require_static(node, out)
    if rank == 1:
        names = [w.op("ExpandDims", n, 2) for n in names]
        kernel, stride, dilation, pads = (1, *kernel), (1, *stride), (1, *dilation), (0, pads[0], 0, pads[1])
        type = shaped(out, (*out.shape[:2], 1, out.shape[2]))
    if len(kernel) != 2:
        raise Unsupported("transposed convolution over three dimensions")
    pairs = _pairs(pads, 2)
    name = w.primitive(
        "Conv2DTranspose", *names, type.shape, out=type, kernel_size=kernel, mode=1,
        out_channel=weight.shape[0], pad=pairs, pad_mode="PAD" if any(pairs) else "VALID", pad_list=pairs,
        stride=(1, 1, *stride), dilation=(1, 1, *dilation), group=group, groups=group, format="NCHW",
    )  # fmt: skip
    return w.op("Squeeze", name, (2,), out=out) if rank == 1 else name


def _windows(node: Node) -> tuple:
    """(size, kernel, stride, begins, ends); `ends` covers windows that reach over the padding."""
    x, y = node.inputs[0].type, node.outputs[0].type
    rank = x.rank - 2
    kernel, stride = (_full(node.attrs[n], rank) for n in ("kernel", "stride"))
    pads = _full(node.attrs["pad"], 2 * rank)
    begins, ends = pads[:rank], list(pads[rank:])
    if any(n < 0 for n in (*x.shape[2:], *y.shape[2:])):
        if node.attrs["ceil"]:
            raise Unsupported(f"{node.op.name} with ceil_mode and image sizes that are not known")
        return x.shape[2:], kernel, stride, begins, tuple(ends)
    for d, n in enumerate(x.shape[2:]):
        reach = (y.shape[2 + d] - 1) * stride[d] + kernel[d]
        ends[d] = max(ends[d], reach - n - begins[d])
    return x.shape[2:], kernel, stride, begins, tuple(ends)


def _border(
    w: Any, name: Any, type: TensorType, begins: Sequence[int], ends: Sequence[int], value: float
) -> Any:
    """The data with a border around its spatial dimensions."""
    if not any((*begins, *ends)):
        return name
    pads = tuple(n for b, e in zip(reversed(begins), reversed(ends)) for n in (b, e))
    size = (n if n < 0 else n + b + e for n, b, e in zip(type.shape[2:], begins, ends))
    out = shaped(type, (*type.shape[:2], *size))
    filler = scalar(value, type.dtype)
    return w.primitive("PadV3", name, pads, filler, out=out, mode="constant", paddings_contiguous=True)


def pool(
    w: Any, operator: str, name: Any, kernel: Sequence[int], stride: Sequence[int], out: TensorType
) -> Any:
    """A pooling without padding over one to three dimensions."""
    rank = len(kernel)
    if rank == 3:
        sizes = dict(kernel_size=(1, 1, *kernel), strides=(1, 1, *stride), pad_list=(0,) * 6, ceil_mode=0)
        more = dict(count_include_pad=True, divisor_override=0) if operator == "AvgPool" else {}
        return w.primitive(f"{operator}3D", name, out=out, pad_mode="VALID", format="NCDHW", **sizes, **more)
    if rank == 1:
        flat = shaped(out, (*out.shape[:2], 1, out.shape[2]))
        name = pool(w, operator, w.op("ExpandDims", name, 2), (1, *kernel), (1, *stride), flat)
        return w.op("Squeeze", name, (2,), out=out)
    if operator == "AvgPool":
        return w.op("AvgPool", name, tuple(kernel), tuple(stride), 2, 0, out=out)
    sizes = dict(kernel_size=(1, 1, *kernel), strides=(1, 1, *stride))
    return w.primitive("MaxPool", name, out=out, pad_mode="VALID", format="NCHW", **sizes)


@rule("max_pool")
def _maxpool(w, node, inputs):
    if any(d != 1 for d in node.attrs["dilation"]):
        raise Unsupported("max_pool with dilation")
    name, kernel, stride, _, _ = max_windows(w, node, inputs[0])
    return pool(w, "MaxPool", name, kernel, stride, result_type(node))


def max_windows(w: Any, node: Node, name: Any) -> tuple:
    """The data with a border that no maximum comes from, then kernel, stride, begins, ends of its windows."""
    _, kernel, stride, begins, ends = _windows(node)
    name = _border(w, name, node.inputs[0].type, begins, ends, float(np.finfo(np.float32).min))
    return name, kernel, stride, begins, ends


@rule("avg_pool")
def _avgpool(w, node, inputs):
    """Zeros around the data, averages of whole windows, a correction where a window has fewer elements."""
    x, out = node.inputs[0].type, result_type(node)
    size, kernel, stride, begins, ends = _windows(node)
    rank = len(kernel)
    name = _border(w, inputs[0], x, begins, ends, 0)
    name = pool(w, "AvgPool", name, kernel, stride, out)
    include, divisor = attributes(node, "count_include_pad", "divisor")
    if divisor:
        return w.op("Mul", name, scalar(math.prod(kernel) / divisor, x.dtype), out=out)
    given = _full(node.attrs["pad"], 2 * rank)[rank:]
    if not any((*begins, *ends)) or (include and tuple(given) == ends):
        return name
    require_static(node, x)
    factor = np.ones((1,) * (rank + 2))
    for d in range(rank):
        starts = np.arange(out.shape[2 + d]) * stride[d] - begins[d]
        low, high = (-begins[d], size[d] + given[d]) if include else (0, size[d])
        count = np.minimum(starts + kernel[d], high) - np.maximum(starts, low)
        shape = [1] * (rank + 2)
        shape[2 + d] = -1
        factor = factor * (kernel[d] / count).reshape(shape)
    return w.op("Mul", name, Tensor(factor.astype(np.float32), x.dtype), out=out)


@rule("adaptive_avg_pool")
def _adaptive_avgpool(w, node, inputs):
    x, out, size = node.inputs[0].type, result_type(node), node.attrs["size"]
    if all(n == 1 for n in size):
        return w.op("ReduceMean", inputs[0], tuple(range(2, x.rank)), True, out=out)
    if len(size) == 1:
        name = w.primitive("AdaptiveAvgPool2D", w.op("ExpandDims", inputs[0], 2), output_size=(1, *size))
        return w.op("Squeeze", name, (2,), out=out)
    return w.primitive(f"AdaptiveAvgPool{len(size)}D", inputs[0], out=out, output_size=size)
