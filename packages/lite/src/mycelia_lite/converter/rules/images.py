"""Operators on images: convolutions, pools, batch normalization."""

from __future__ import annotations

import numpy as np

from mycelia.ir import Node
from mycelia_lite.converter.rules import customs
from mycelia_lite.converter.rules.table import in_layout, rule
from mycelia_lite.converter.writer import KHWC, Writer, write_khwc
from mycelia_lite.format import Table


def _pairs(values, rank: int = 2) -> list[int]:
    """An attribute of windows, one number or one for each dimension."""
    values = tuple(values)
    return [int(v) for v in (values * rank if len(values) == 1 else values)]


def _pads(values) -> list[int]:
    """Begins then ends of two dimensions -> top, bottom, left, right."""
    top, left, bottom, right = _pairs(values, 4)
    return [top, bottom, left, right]


def _pad_mode(node: Node) -> str:
    return "SAME" if getattr(node.location, "same", False) else "PAD"


@rule("conv")
def _conv(w: Writer, node: Node) -> None:
    x, weight, bias = node.inputs
    spatial = x.type.rank - 2
    if spatial not in (1, 2) or not weight.is_constant or x.type.dtype.np not in (np.float32, np.float16):
        customs.conv(w, node)
        return
    outputs, per_group, *kernel = weight.type.shape
    attrs = node.attrs
    one = spatial == 1  # along images of one row
    primitive = Table(
        "Conv2DFusion",
        format="NHWC",
        kernel_size=[1, *kernel] if one else kernel,
        stride=[1, *attrs["stride"]] if one else _pairs(attrs["stride"]),
        dilation=[1, *attrs["dilation"]] if one else _pairs(attrs["dilation"]),
        pad_mode=_pad_mode(node),
        pad_list=[0, 0, *_pairs(attrs["pad"])] if one else _pads(attrs["pad"]),
        mode=1,
        group=attrs["group"],
        in_channel=per_group * attrs["group"],
        out_channel=outputs,
    )
    more = [] if bias is None else [w.first(bias)]
    if not one:
        w.emit(node.outputs[0], primitive, [w.last(x), write_khwc(w, weight), *more], last=True)
        return
    (n, c, length), y = x.type.shape, node.outputs[0]
    turn = w.constant(np.asarray([0, 2, 1], np.int32))
    row = w.constant(np.asarray(1, np.int32))
    image = w.step(Table("Transpose"), [w.first(x), turn], x.type, (n, length, c))
    image = w.step(Table("ExpandDims"), [image, row], x.type, (n, 1, length, c))
    kernels = w.constant(weight.constant.asnumpy().transpose(0, 2, 1)[:, None], weight.name, KHWC)
    n, c, length = y.type.shape
    image = w.step(primitive, [image, kernels, *more], y.type, (n, 1, length, c))
    image = w.step(Table("Squeeze", axis=[1]), [image], y.type, (n, length, c))
    w.emit(y, Table("Transpose"), [image, turn])


@rule("conv_input_grad", "conv_transpose")
def _transposed_conv(w: Writer, node: Node) -> None:
    """The first has the size of the result, the second what is added to the least one."""
    dy, weight = node.inputs
    if dy.type.rank != 4 or not weight.is_constant:
        customs.transposed_conv(w, node)
        return
    inputs, per_group, *kernel = weight.type.shape
    attrs = node.attrs
    stride, dilation, pads = _pairs(attrs["stride"]), _pairs(attrs["dilation"]), _pads(attrs["pad"])
    if "extra" in attrs:
        extra = list(attrs["extra"])
    else:
        extra = [
            size - ((n - 1) * s + (k - 1) * d + 1 - before - after)
            for size, n, s, k, d, before, after in zip(
                attrs["size"], dy.type.shape[2:], stride, kernel, dilation, pads[::2], pads[1::2], strict=True
            )
        ]
    primitive = Table(
        "Conv2dTransposeFusion",
        format="NHWC",
        kernel_size=kernel,
        stride=stride,
        dilation=dilation,
        pad_mode="PAD",
        pad_list=pads,
        mode=1,
        group=attrs["group"],
        in_channel=inputs,
        out_channel=per_group * attrs["group"],
        output_paddings=extra,
    )
    w.emit(node.outputs[0], primitive, [w.last(dy), write_khwc(w, weight)], last=True)


@rule("max_pool", "avg_pool")
def _pool(w: Writer, node: Node) -> None:
    x, attrs = node.inputs[0], node.attrs
    padded, dilated = any(attrs["pad"]), {*attrs.get("dilation", (1,))} != {1}
    own_mean = node.op.name == "avg_pool" and (attrs["divisor"] or padded and attrs["count_include_pad"])
    if x.type.rank != 4 or attrs["data_format"] != "NCHW" or dilated or own_mean or w.keeps_layout:
        customs.pool(w, node)
        return
    primitive = Table(
        "MaxPoolFusion" if node.op.name == "max_pool" else "AvgPoolFusion",
        kernel_size=_pairs(attrs["kernel"]),
        strides=_pairs(attrs["stride"]),
        pad=_pads(attrs["pad"]),
        pad_mode=_pad_mode(node),
        round_mode="CEIL" if attrs["ceil"] else "FLOOR",
        format="NHWC",
    )
    w.emit(node.outputs[0], primitive, [w.last(x)], last=True)


@rule("batch_norm_infer")
def _batch_norm(w: Writer, node: Node) -> None:
    x, *parameters = node.inputs
    attrs, rank = node.attrs, x.type.rank
    if (attrs["data_format"] == "NHWC" or rank == 2 or rank == 4) and not (rank == 4 and w.keeps_layout):
        last = rank == 4 and attrs["data_format"] == "NCHW"
        inputs = [w.last(x) if last else w.first(x), *(w.first(p) for p in parameters)]
        w.emit(node.outputs[0], Table("FusedBatchNorm", epsilon=attrs["epsilon"]), inputs, last)
        return
    if not all(p.is_constant for p in parameters):
        customs.batch_norm(w, node)
        return
    scale, bias, mean, variance = (p.constant.asnumpy() for p in parameters)
    factor = scale / np.sqrt(variance + np.float32(attrs["epsilon"]))
    inputs = [w.first(x), w.constant(factor), w.constant(bias - mean * factor)]
    w.emit(node.outputs[0], Table("ScaleFusion", axis=1), inputs)


@rule("lrn")
def _lrn(w: Writer, node: Node) -> None:
    attrs = node.attrs
    names = ("depth_radius", "bias", "alpha", "beta", "norm_region")
    primitive = Table("LRN", **{name: attrs[name] for name in names})
    w.emit(node.outputs[0], primitive, [w.last(node.inputs[0])], last=True)


@rule("prelu")
def _prelu(w: Writer, node: Node) -> None:
    """Slopes lie along the last axis, so images have the channels there; what has other axes is turned."""
    x, slope = node.inputs
    rank, shared = x.type.rank, slope.type.shape == (1,)
    primitive = Table("PReLUFusion", channel_shared=shared)
    if rank == 4:
        w.emit(node.outputs[0], primitive, [w.last(x), w.first(slope)], True)
    elif shared or rank == 2:
        tensor, last = in_layout(w, x)
        w.emit(node.outputs[0], primitive, [tensor, w.first(slope)], last)
    else:
        there, back = (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))
        shape = [x.type.shape[axis] for axis in there]
        orders = [w.constant(np.asarray(order, np.int32)) for order in (there, back)]
        turned = w.step(Table("Transpose"), [w.first(x), orders[0]], x.type, shape)
        made = w.step(primitive, [turned, w.first(slope)], x.type, shape)
        w.emit(node.outputs[0], Table("Transpose"), [made, orders[1]])
