"""What joins a convolution: bias, normalization, scale, padding, and a second convolution of 1 x 1."""

from __future__ import annotations

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.registry import node_fusion
from mycelia_lite.converter.optimise.scale import channels_of
from mycelia_lite.format import Table

_CONVOLUTIONS = ("Conv2DFusion", "Conv2dTransposeFusion")


def _weights(graph: FileGraph, node: FileNode) -> tuple[np.ndarray, np.ndarray] | None:
    """Weights and bias of a convolution without activation, None if they are no constants."""
    arrays = [graph.float_constant(i) for i in node.inputs[1:3]]
    if node.activation != "NO_ACTIVATION" or not arrays or any(a is None or not a.size for a in arrays):
        return None
    if len(node.inputs) > 3:
        return None
    if arrays[0].ndim != 4:
        return None
    return arrays[0], arrays[1] if len(arrays) > 1 else np.zeros(_channels(node, arrays[0]), np.float32)


def _channels(node: FileNode, weight: np.ndarray) -> int:
    """How many a convolution makes: weights are [O, kh, kw, I / group], transposed [I, kh, kw, O / group]."""
    return weight.shape[0] if node.kind == "Conv2DFusion" else weight.shape[3] * max(node.op.group, 1)


def _reweighted(
    graph: FileGraph, root: FileNode, conv: FileNode, op: Table, weight: np.ndarray, bias: np.ndarray
) -> bool:
    """`conv` with other weights in the place of `root`; False if they are not finite."""
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        return False
    old = graph.tensors[conv.inputs[1]]
    made = graph.add_constant(weight, old.name)
    graph.tensors[made].format = old.format
    graph.replace(root, op, [conv.inputs[0], made, graph.add_constant(bias, f"{old.name}_bias")], [conv])
    return True


def _channel_factor(node: FileNode, factor: np.ndarray, weight: np.ndarray) -> np.ndarray | None:
    """A factor for each output channel, shaped to multiply the weights."""
    if node.kind == "Conv2DFusion":  # [O, kh, kw, I / group]
        return factor[:, None, None, None] if len(factor) == weight.shape[0] else None
    group = max(node.op.group, 1)  # [I, kh, kw, O / group]
    inputs, per_group = weight.shape[0], weight.shape[3]
    if len(factor) != per_group * group or inputs % group:
        return None
    return np.repeat(factor.reshape(group, per_group), inputs // group, axis=0)[:, None, None, :]


@node_fusion("ConvBiasaddFusion", "BiasAdd", "AddFusion")
def conv_bias(graph: FileGraph, node: FileNode) -> bool:
    """conv + a constant for each channel -> a bias inside"""
    if node.activation != "NO_ACTIVATION" or not graph.is_float(node.output):
        return False
    for data, other in (node.inputs, node.inputs[::-1]):
        conv = graph.sole_maker(data, *_CONVOLUTIONS)
        added = graph.float_constant(other)
        if conv is None or added is None:
            continue
        found = _weights(graph, conv)
        channels = found and _channels(conv, found[0])
        if found is None or added.shape[-1:] != (channels,) or added.size != channels or added.ndim > 4:
            continue
        if len(conv.inputs) == 2:
            flat = other if added.ndim == 1 else graph.add_constant(added.reshape(-1), f"{node.name}_bias")
            graph.replace(node, conv.op, [*conv.inputs, flat], [conv])
            return True
        bias = found[1] + added.reshape(-1)
        if np.isfinite(bias).all():
            made = graph.add_constant(bias, graph.tensors[conv.inputs[2]].name)
            graph.replace(node, conv.op, [*conv.inputs[:2], made], [conv])
            return True
    return False


def _takes_channels(graph: FileGraph, node: FileNode) -> bool:
    """A factor and a summand for each channel behind a convolution become part of weights and bias."""
    conv = graph.sole_maker(node.inputs[0], *_CONVOLUTIONS)
    found = conv and _weights(graph, conv)
    if not found or not graph.is_float(node.output):
        return False
    each = channels_of(graph, node)
    if each is None:
        return False
    weight, bias = found
    with np.errstate(all="ignore"):  # what is not finite is left as it was
        factor = _channel_factor(conv, each.factor, weight)
        if factor is None:
            return False
        return _reweighted(
            graph, node, conv, conv.op, weight * factor, each.shift - (each.centre - bias) * each.factor
        )


@node_fusion("ConvBatchNormFusion", "FusedBatchNorm", "BatchNorm")
def conv_batch_norm(graph: FileGraph, node: FileNode) -> bool:
    return _takes_channels(graph, node)


@node_fusion("ConvScaleFusion", "ScaleFusion", "MulFusion")
def conv_scale(graph: FileGraph, node: FileNode) -> bool:
    return _takes_channels(graph, node)


@node_fusion("ConvPadFusion", "Conv2DFusion")
def conv_pad(graph: FileGraph, node: FileNode) -> bool:
    """A convolution of an image that is padded by 0 -> one with more padding"""
    pad = graph.sole_maker(node.inputs[0], "PadFusion")
    if pad is None or pad.op.padding_mode.name != "CONSTANT" or pad.op.constant_value != 0:
        return False
    rows = graph.integers(pad.inputs[1]) if len(pad.inputs) == 2 else None
    if rows is None or len(rows) != 8 or any(rows[:2] + rows[6:]) or min(rows) < 0:
        return False
    weight = graph.float_constant(node.inputs[1])
    if node.op.pad_mode.name == "SAME" or weight is None or not np.isfinite(weight).all():
        return False  # 0 times what is not finite is NaN, and windows leave the padding out
    here = [int(n) for n in node.op.pad_list] if node.op.pad_mode.name == "PAD" else []
    op = node.op.copy()
    op.pad_mode, op.pad_list = "PAD", [a + b for a, b in zip(here or [0] * 4, rows[2:6], strict=True)]
    graph.replace(node, op, [pad.inputs[0], *node.inputs[1:]], [pad])
    return True


def _is_plain(op: Table) -> bool:
    """Whether windows do not overlap the border, are not spread and not in groups."""
    pads = op.pad_mode.name == "VALID" or op.pad_mode.name == "PAD" and not any(op.pad_list)
    return pads and max(op.group, 1) == 1


@node_fusion("ConvScaleFusion", "Conv2DFusion")
def scale_conv(graph: FileGraph, node: FileNode) -> bool:
    """A factor and a summand for each channel in front of a convolution without padding become part of it."""
    scale = graph.sole_maker(node.inputs[0], "ScaleFusion")
    each = scale and channels_of(graph, scale)
    parameters = [graph.float_constant(i) for i in node.inputs[1:]]
    if not each or len(parameters) not in (1, 2) or any(p is None for p in parameters):
        return False
    weight = parameters[0]
    one = weight.ndim == 4 and weight.shape[1:3] == (1, 1)  # nothing of it is beside the image
    if not _is_plain(node.op) and not (
        one and node.op.pad_mode.name == "SAME" and max(node.op.group, 1) == 1
    ):
        return False
    if weight.ndim != 4 or weight.shape[3] != len(each.factor):
        return False
    with np.errstate(all="ignore"):
        wide = weight.astype(np.float64)
        bias = (wide * (each.shift - each.centre * each.factor)).sum((1, 2, 3))
        bias = (bias + (parameters[1] if len(parameters) == 2 else 0)).astype(np.float32)
        weight = (wide * each.factor).astype(np.float32)
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        return False
    old = graph.tensors[node.inputs[1]]
    made = graph.add_constant(weight, old.name)
    graph.tensors[made].format = old.format
    graph.replace(
        node, node.op, [scale.inputs[0], made, graph.add_constant(bias, f"{old.name}_bias")], [scale]
    )
    return True


@node_fusion("ConvConvFusion", "Conv2DFusion")
def conv_conv(graph: FileGraph, node: FileNode) -> bool:
    """conv, then conv of 1 x 1 -> one, where that multiplies no more"""
    first = graph.sole_maker(node.inputs[0], "Conv2DFusion")
    one, two = first and _weights(graph, first), graph.float_constant(node.inputs[1])
    if not one or two is None or two.ndim != 4 or two.shape[1:3] != (1, 1) or len(node.inputs) > 3:
        return False
    bias_two = graph.float_constant(node.inputs[2]) if len(node.inputs) == 3 else np.zeros(1, np.float32)
    if bias_two is None or not _is_plain(node.op) or max(first.op.group, 1) != 1:
        return False
    if first.op.pad_mode.name == "SAME" and list(node.op.stride or [1, 1]) != [1, 1]:
        return False  # its padding follows from its stride
    outputs, inputs = two.shape[0], two.shape[3]
    if one[0].shape[0] != inputs or outputs * one[0][0].size > inputs * one[0][0].size + outputs * inputs:
        return False
    matrix = two[:, 0, 0].astype(np.float64)
    with np.errstate(all="ignore"):
        weight = np.tensordot(matrix, one[0].astype(np.float64), 1).astype(np.float32)
        bias = (matrix @ one[1] + bias_two).astype(np.float32)
    op = first.op.copy()
    op.stride = [a * b for a, b in zip(first.op.stride or [1, 1], node.op.stride or [1, 1], strict=True)]
    op.out_channel, op.activation_type = outputs, node.op.activation_type
    if not np.isfinite(two).all() or not np.isfinite(one[0]).all():
        return False
    return _reweighted(graph, node, first, op, weight, bias)
