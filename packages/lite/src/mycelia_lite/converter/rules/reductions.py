"""Operators along axes: reductions, softmax, running sums, the largest elements, layer normalization."""

from __future__ import annotations

import numpy as np

from mycelia.ir import Node
from mycelia_lite.converter.rules.table import along, rule
from mycelia_lite.converter.writer import LAST_AXIS, Writer
from mycelia_lite.format import Table

_REDUCTIONS = {
    "mean": "ReduceMean", "sum": "ReduceSum", "prod": "ReduceProd", "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin", "all": "ReduceAll", "l2_norm": "ReduceL2",
}  # fmt: skip


@rule(*_REDUCTIONS)
def _reduction(w: Writer, node: Node) -> None:
    x, y = node.inputs[0], node.outputs[0]
    axes, keep = _axes_of(node)
    if not x.type.rank:
        w.cast(y, w.first(x))
        return
    # The axes that stay keep their order, or stay as images.
    kept = [a for a in (0, 2, 3, 1) if a not in axes]
    last = w.is_last(x) and x.type.dtype == y.type.dtype and (keep or kept == sorted(kept))
    tensor = w.last(x) if last else w.first(x)
    if x.type.dtype != y.type.dtype:
        tensor = w.step_cast(tensor, y.type, x.type.shape)
    places = w.constant(np.asarray(sorted(LAST_AXIS[a] for a in axes) if last else axes, np.int32))
    primitive = Table("ReduceFusion", mode=_REDUCTIONS[node.op.name], keep_dims=keep, coeff=1.0)
    w.emit(y, primitive, [tensor, places], last and keep)


@rule("any")
def _any(w: Writer, node: Node) -> None:
    """Some hold: not all of the opposites."""
    x, y = node.inputs[0], node.outputs[0]
    axes, keep = _axes_of(node)
    opposite = w.step(Table("LogicalNot"), [w.first(x)], x.type, x.type.shape)
    if x.type.rank:
        primitive = Table("ReduceFusion", mode="ReduceAll", keep_dims=keep, coeff=1.0)
        places = w.constant(np.asarray(axes, np.int32))
        opposite = w.step(primitive, [opposite, places], y.type, y.type.shape)
    w.emit(y, Table("LogicalNot"), [opposite])


def _axes_of(node: Node) -> tuple[list[int], bool]:
    attrs, rank = node.attrs, node.inputs[0].type.rank
    axes = attrs["dim"] if "dim" in attrs else attrs["axis"]
    keep = next(attrs[name] for name in ("keep_dims", "keepdims", "keepdim") if name in attrs)
    return sorted(a % rank for a in axes) if axes else list(range(rank)), keep


@rule("softmax")
def _softmax(w: Writer, node: Node) -> None:
    along(w, node, "Softmax", lambda axis: [axis])


@rule("log_softmax")
def _log_softmax(w: Writer, node: Node) -> None:
    along(w, node, "LogSoftmax", lambda axis: axis)


@rule("argmax", "argmin")
def _extreme_place(w: Writer, node: Node) -> None:
    x, y = node.inputs[0], node.outputs[0]
    axis, tensor = node.attrs["axis"], w.first(x)
    if axis is None:
        if node.attrs["keepdims"]:
            raise w.fail("the place in all axes with keepdims")
        axis = 0
        tensor = w.step(Table("Reshape"), [tensor, w.constant(np.asarray([-1], np.int32))], x.type, (None,))
    kind = "ArgMaxFusion" if node.op.name == "argmax" else "ArgMinFusion"
    axis = axis % x.type.rank if x.type.rank else 0
    primitive = Table(kind, axis=axis, top_k=1, keep_dims=node.attrs["keepdims"])
    w.cast(y, w.step(primitive, [tensor], np.int32, y.type.shape))


@rule("max_with_index", "min_with_index")
def _extreme_with_place(w: Writer, node: Node) -> None:
    x, (y, place) = node.inputs[0], node.outputs
    largest, axis, keep = node.op.name == "max_with_index", node.attrs["axis"], node.attrs["keepdims"]
    if not x.type.rank:
        raise w.fail("an extreme of a number")
    axis %= x.type.rank
    primitive = Table("ReduceFusion", mode="ReduceMax" if largest else "ReduceMin", keep_dims=keep, coeff=1.0)
    w.emit(y, primitive, [w.first(x), w.constant(np.asarray([axis], np.int32))])
    kind = "ArgMaxFusion" if largest else "ArgMinFusion"
    primitive = Table(kind, axis=axis, top_k=1, keep_dims=keep)
    w.cast(place, w.step(primitive, [w.first(x)], np.int32, place.type.shape))


@rule("topk")
def _topk(w: Writer, node: Node) -> None:
    x, attrs = node.inputs[0], node.attrs
    axis = attrs["axis"] % x.type.rank
    primitive = Table("TopKFusion", axis=axis, largest=int(attrs["largest"]), sorted=attrs["sorted"])
    w.emit_all(node.outputs, primitive, [w.first(x), w.constant(np.asarray(attrs["k"], np.int32))])


@rule("cumsum")
def _cumsum(w: Writer, node: Node) -> None:
    x = node.inputs[0]
    axis = w.constant(np.asarray(node.attrs["axis"] % x.type.rank, np.int32))
    w.emit(node.outputs[0], Table("CumSum", reverse=node.attrs["reverse"]), [w.first(x), axis])


@rule("group_norm")
def _group_norm(w: Writer, node: Node) -> None:
    x, gamma, beta = node.inputs
    affine = gamma is not None or beta is not None
    groups, epsilon = node.attrs["num_groups"], node.attrs["eps"]
    inputs, shape = [w.first(x)], x.type.shape[1:2]
    for value, absent in ((gamma, np.ones), (beta, np.zeros)) if affine else ():
        inputs.append(w.constant(absent(shape, np.float32)) if value is None else w.first(value))
    w.emit(
        node.outputs[0], Table("GroupNormFusion", num_groups=groups, epsilon=epsilon, affine=affine), inputs
    )


@rule("layer_norm")
def _layer_norm(w: Writer, node: Node) -> None:
    x, gamma, beta = node.inputs
    attrs = node.attrs
    begin = attrs["begin_norm_axis"] % x.type.rank
    if attrs["begin_params_axis"] % x.type.rank != begin:
        raise w.fail("begin_norm_axis and begin_params_axis differ")
    affine = gamma is not None or beta is not None
    primitive = Table(
        "LayerNormFusion",
        begin_norm_axis=begin,
        begin_params_axis=begin,
        epsilon=attrs["epsilon"],
        elementwise_affine=affine,
    )
    inputs = [w.first(x)]
    for value, absent in ((gamma, np.ones), (beta, np.zeros)) if affine else ():
        shape = x.type.shape[begin:]
        inputs.append(w.constant(absent(shape, np.float32)) if value is None else w.first(value))
    w.emit(node.outputs[0], primitive, inputs)
