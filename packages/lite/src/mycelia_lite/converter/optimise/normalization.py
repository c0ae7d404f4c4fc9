"""Normalizations that are spelled by means, differences and roots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.pattern import Any, Constant, Match, Op
from mycelia_lite.converter.optimise.registry import fusion, node_fusion
from mycelia_lite.format import Table


def _small(graph: FileGraph, tensor: int) -> bool:
    found = graph.number(tensor)
    return found is not None and graph.is_float(tensor) and 0 <= found < 1


_X, _AXES, _EPSILON = Any("x"), Any("axes"), Any("epsilon", _small)


def _mean(x, name: str, **how) -> Op:
    return Op("ReduceFusion", x, _AXES, name=name, mode="ReduceMean", keep_dims=True, coeff=1.0, **how)


_MEAN = _mean(_X, "mean", shared=True)
_CENTRED = Op("SubFusion", _X, _MEAN, name="centred", shared=True)
_SQUARES = [
    Op("PowFusion", _CENTRED, 2, scale=1.0, shift=0.0),
    Op("Square", _CENTRED),
    Op("MulFusion", _CENTRED, _CENTRED),
    Op("SquaredDifference", _X, _MEAN),
    Op("SquaredDifference", _MEAN, _X),
]
_VARIANCES = [Op("AddFusion", _mean(s, "variance"), _EPSILON) for s in _SQUARES]
_ROOTS = [root for v in _VARIANCES for root in (Op("Sqrt", v), Op("PowFusion", v, 0.5, scale=1.0, shift=0.0))]
_INVERSE_ROOTS = [
    *(Op("Rsqrt", v) for v in _VARIANCES),
    *(Op("PowFusion", v, -0.5, scale=1.0, shift=0.0) for v in _VARIANCES),
    *(Op("Reciprocal", r) for r in _ROOTS),
    *(Op(("DivFusion", "RealDiv"), 1, r) for r in _ROOTS),
]
_NORMALIZED = [
    *(Op(("DivFusion", "RealDiv"), _CENTRED, r) for r in _ROOTS),
    *(Op("MulFusion", _CENTRED, r) for r in _INVERSE_ROOTS),
]


def _trailing(graph: FileGraph, m: Match) -> int | None:
    """The first of the normalized axes, if these are the last ones and nothing else reads what is inside."""
    axes, rank = graph.integers(m["axes"]), graph.rank(m["x"])
    if not axes or graph.shape(m.root.output)[-1:] != graph.shape(m["x"])[-1:]:
        return None
    named = sorted(a % rank for a in axes)
    inner = all(r in m.nodes for n in m.inner for r in graph.readers[n.output])
    whole = named == list(range(named[0], rank)) and graph.rank(m.root.output) == rank
    return named[0] if inner and whole and not graph.pinned & {n.output for n in m.inner} else None


def _layer_norm(graph: FileGraph, m: Match, begin: int, gamma: int | None = None, beta: int | None = None):
    op = Table("LayerNormFusion", begin_norm_axis=begin, begin_params_axis=begin)
    op.epsilon, op.elementwise_affine = graph.number(m["epsilon"]), gamma is not None
    graph.replace(m.root, op, [m["x"], *(i for i in (gamma, beta) if i is not None)], m.inner)
    return True


@fusion("OnnxLayerNormFusion", *_NORMALIZED)
def layer_norm(graph: FileGraph, m: Match) -> bool:
    """(x - mean) / sqrt(mean((x - mean)^2) + epsilon) -> LayerNorm"""
    begin = _trailing(graph, m)
    return begin is not None and _layer_norm(graph, m, begin)


@node_fusion("OnnxLayerNormFusion2", "MulFusion")
def layer_norm_gamma(graph: FileGraph, node: FileNode) -> bool:
    """LayerNorm without parameters, times a constant of the normalized axes -> its gamma"""
    if node.activation != "NO_ACTIVATION":
        return False
    for data, other in (node.inputs, node.inputs[::-1]):
        norm = graph.sole_maker(data, "LayerNormFusion")
        if norm is None or len(norm.inputs) > 1 or not _fits(graph, norm, other):
            continue
        op = norm.op.copy()
        op.elementwise_affine = True
        shape = graph.shape(norm.output)[norm.op.begin_norm_axis :]
        gamma = _parameter(graph, other, shape)
        beta = graph.add_constant(np.zeros(shape, np.float32), f"{node.name}/beta")
        graph.replace(node, op, [norm.inputs[0], gamma, beta], [norm])
        return True
    return False


@node_fusion("OnnxLayerNormFusion2", "AddFusion")
def layer_norm_beta(graph: FileGraph, node: FileNode) -> bool:
    """LayerNorm plus a constant of the normalized axes -> its beta"""
    if node.activation != "NO_ACTIVATION":
        return False
    for data, other in (node.inputs, node.inputs[::-1]):
        norm = graph.sole_maker(data, "LayerNormFusion")
        if norm is None or len(norm.inputs) != 3 or not _fits(graph, norm, other):
            continue
        if graph.number(norm.inputs[2]) != 0:
            continue
        shape = graph.shape(norm.output)[norm.op.begin_norm_axis :]
        graph.replace(node, norm.op, [*norm.inputs[:2], _parameter(graph, other, shape)], [norm])
        return True
    return False


def _fits(graph: FileGraph, norm: FileNode, other: int) -> bool:
    """Whether a constant has an element for each of the normalized ones, and no more."""
    array, shape = graph.float_constant(other), graph.shape(norm.output)[norm.op.begin_norm_axis :]
    if array is None or -1 in shape or array.ndim > graph.rank(norm.output):
        return False
    return array.shape[-len(shape) :] == shape and array.size == np.prod(shape)


def _parameter(graph: FileGraph, tensor: int, shape: tuple[int, ...]) -> int:
    array = graph.constant(tensor)
    return tensor if array.shape == shape else graph.add_constant(array.reshape(shape), "parameter")


_GAMMA, _BETA = Constant("gamma"), Constant("beta")
_FACTORS = [
    *(Op("MulFusion", r, _GAMMA, shared=True) for r in _INVERSE_ROOTS),
    *(Op(("DivFusion", "RealDiv"), _GAMMA, r, shared=True) for r in _ROOTS),
]


@fusion(
    "TfNormFusion",
    *(
        Op("AddFusion", Op("MulFusion", _X, f), Op("SubFusion", _BETA, Op("MulFusion", _MEAN, f)))
        for f in _FACTORS
    ),
)
def tf_norm(graph: FileGraph, m: Match) -> bool:
    """x f + (beta - mean f), f = gamma / sqrt(variance + epsilon) -> LayerNorm"""
    begin = _trailing(graph, m)
    if begin is None:
        return False
    shape = graph.shape(m["x"])[begin:]
    arrays = [graph.constant(m[name]) for name in ("gamma", "beta")]
    if -1 in shape or any(a.shape[-len(shape) :] != shape or a.size != np.prod(shape) for a in arrays):
        return False
    return _layer_norm(graph, m, begin, *(_parameter(graph, m[name], shape) for name in ("gamma", "beta")))


def _of_channels(
    graph: FileGraph, node: FileNode, kind: str, shape: Sequence[int]
) -> tuple[int, np.ndarray] | None:
    """(the other input, the constant) of a sum or product with one number for each channel of [N, C, ...]."""
    if node is None or node.kind != kind or node.activation != "NO_ACTIVATION":
        return None
    for other, tensor in (node.inputs, node.inputs[::-1]):
        array = graph.float_constant(tensor)
        if array is None or array.ndim > len(shape) or graph.constant(other) is not None:
            continue
        full = (1,) * (len(shape) - array.ndim) + array.shape
        if full == (1, shape[1], *(1,) * (len(shape) - 2)):
            return other, array.reshape(-1)
    return None


@node_fusion("GroupNormFusion", "AddFusion")
def group_norm(graph: FileGraph, node: FileNode) -> bool:
    """Groups of channels apart, LayerNorm of each, together again, times gamma, plus beta -> GroupNorm"""
    shape = graph.shape(node.output)
    if len(shape) < 3 or min(shape[1:]) < 1:
        return False
    found = _of_channels(graph, node, "AddFusion", shape)
    scale = found and graph.sole_maker(found[0], "MulFusion")
    product = scale and _of_channels(graph, scale, "MulFusion", shape)
    back = product and graph.sole_maker(product[0], "Reshape")
    norm = back and graph.sole_maker(back.inputs[0], "LayerNormFusion")
    apart = norm and graph.sole_maker(norm.inputs[0], "Reshape")
    if not apart or len(norm.inputs) > 1 or norm.op.begin_norm_axis != 2 or shape[1] == 1:
        return False
    x, groups = apart.inputs[0], graph.shape(norm.output)
    if graph.shape(x) != shape or groups[0] != shape[0] or groups[1] < 1 or shape[1] % groups[1]:
        return False
    op = Table("GroupNormFusion", num_groups=groups[1], epsilon=norm.op.epsilon, affine=True)
    gamma, beta = (
        graph.add_constant(array.astype(np.float32), f"{node.name}/{name}")
        for name, array in (("gamma", product[1]), ("beta", found[1]))
    )
    graph.replace(node, op, [x, gamma, beta], [apart, norm, back, scale])
    return True
