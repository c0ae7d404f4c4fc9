"""Factors and summands for each channel, which is the last axis: batch normalization, Scale, Mul and Add."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.registry import node_fusion
from mycelia_lite.format import Table

_FARTHEST = 16  # deviations between 0 and a mean: 4 bits of the 24 are lost then


@dataclass
class Channels:
    """``(x - centre) * factor + shift`` for each element of the last axis."""

    centre: np.ndarray
    factor: np.ndarray
    shift: np.ndarray


def channels_of(graph: FileGraph, node: FileNode) -> Channels | None:
    """What a node does to each channel; None if it does something else."""
    if node.activation != "NO_ACTIVATION":
        return None
    shape = graph.shape(node.output)
    if node.kind == "MulFusion":
        return _product(graph, node)
    parameters = [graph.float_constant(i) for i in node.inputs[1:]]
    if not shape or any(p is None or p.shape != shape[-1:] for p in parameters):
        return None
    if node.kind == "ScaleFusion":
        if node.op.axis not in (len(shape) - 1, -1) or len(parameters) not in (1, 2):
            return None
        factor, shift = (*parameters, np.zeros_like(parameters[0]))[:2]
        return Channels(np.zeros_like(factor), factor, shift)
    if node.kind == "FusedBatchNorm" and len(parameters) == 4:
        scale, shift, mean, variance = parameters
    elif node.kind == "BatchNorm" and len(parameters) == 2:
        mean, variance = parameters
        scale, shift = np.ones_like(mean), np.zeros_like(mean)
    else:
        return None
    with np.errstate(all="ignore"):  # who uses it refuses what is not finite
        return Channels(mean, scale / np.sqrt(variance + np.float32(node.op.epsilon)), shift)


def _product(graph: FileGraph, node: FileNode) -> Channels | None:
    for data, other in (node.inputs, node.inputs[::-1]):
        flat = per_channel(graph, data, other)
        if flat is not None and graph.constant(data) is None:
            return Channels(np.zeros_like(flat), flat, np.zeros_like(flat))
    return None


def per_channel(graph: FileGraph, data: int, other: int) -> np.ndarray | None:
    """A float32 constant that is broadcast to `data`, as one number for each element of the last axis."""
    array, shape = graph.float_constant(other), graph.shape(data)
    if array is None or not array.size or not shape or shape[-1] < 1 or not graph.keeps_shape(data, other):
        return None
    if array.size != 1 and (array.shape[-1:] != shape[-1:] or array.size != shape[-1]):
        return None  # such as [C, 1], which lies along another axis
    return np.ascontiguousarray(np.broadcast_to(array.reshape(-1), shape[-1:]))


def _scaled(graph: FileGraph, root: FileNode, x: int, each: Channels, parts: list[FileNode]) -> bool:
    """One Scale in the place of `root`; False if its numbers are not finite."""
    with np.errstate(all="ignore"):
        shift = each.shift - each.centre * each.factor
    if not (np.isfinite(each.factor).all() and np.isfinite(shift).all()):
        return False
    inputs = [x, graph.add_constant(each.factor, f"{root.name}/scale")]
    if shift.any():
        inputs.append(graph.add_constant(shift, f"{root.name}/bias"))
    op = Table("ScaleFusion", axis=graph.rank(x) - 1)
    if root.activation != "NO_ACTIVATION":
        op.activation_type = root.op.activation_type
    graph.replace(root, op, inputs, parts)
    return True


@node_fusion("BatchNormToScaleFusion", "FusedBatchNorm", "BatchNorm")
def batch_norm(graph: FileGraph, node: FileNode) -> bool:
    """batch normalization with constants -> Scale, where x - mean does not take most digits away"""
    each = channels_of(graph, node) if graph.is_float(node.output) else None
    if each is None:
        return False
    mean, variance = (graph.constant(i) for i in node.inputs[-2:])
    with np.errstate(all="ignore"):
        if not (np.abs(mean) <= _FARTHEST * np.sqrt(variance + np.float32(node.op.epsilon))).all():
            return False
    return _scaled(graph, node, node.inputs[0], each, [])


@node_fusion("ScaleScaleFusion", "ScaleFusion")
def scale_scale(graph: FileGraph, node: FileNode) -> bool:
    """Scale of a Scale -> one"""
    if node.activation not in ("NO_ACTIVATION", "RELU", "RELU6"):
        return False
    first = graph.sole_maker(node.inputs[0], "ScaleFusion")
    one = first and channels_of(graph, first)
    plain = FileNode(node.name, Table("ScaleFusion", axis=node.op.axis), node.inputs, node.outputs)
    two = channels_of(graph, plain)
    if not one or not two:
        return False
    with np.errstate(all="ignore"):
        each = Channels(one.centre, one.factor * two.factor, one.shift * two.factor + two.shift)
    return _scaled(graph, node, first.inputs[0], each, [first])


@node_fusion("MulAddFusion", "AddFusion")
def mul_add(graph: FileGraph, node: FileNode) -> bool:
    """x * constant + constant, of the last axis -> Scale"""
    if not graph.is_float(node.output):
        return False
    for product, summand in (node.inputs, node.inputs[::-1]):
        mul = graph.sole_maker(product, "MulFusion")
        each = mul and channels_of(graph, mul)
        shift = each and per_channel(graph, product, summand)
        if shift is None or each is None or node.activation not in ("NO_ACTIVATION", "RELU", "RELU6"):
            continue
        x = next(i for i in mul.inputs if graph.constant(i) is None)
        if graph.shape(x)[-1:] != graph.shape(product)[-1:] or graph.rank(x) != graph.rank(product):
            continue
        return _scaled(graph, node, x, Channels(each.centre, each.factor, shift), [mul])
    return False
