"""Operators that work element by element: images that are written with the channels last stay so."""

from __future__ import annotations

import numpy as np

from mycelia.ir import Node, Value
from mycelia_lite.converter.rules.table import in_layout, rule
from mycelia_lite.converter.writer import TO_LAST, Writer
from mycelia_lite.format import Table

_ACTIVATIONS = {
    "relu": "RELU", "sigmoid": "SIGMOID", "relu6": "RELU6", "tanh": "TANH", "hardswish": "HSWISH",
    "hardsigmoid": "HSIGMOID", "silu": "SWISH", "elu": "ELU", "leaky_relu": "LEAKY_RELU", "gelu": "GELU",
}  # fmt: skip


@rule(*_ACTIVATIONS)
def _activation(w: Writer, node: Node) -> None:
    name = node.op.name
    primitive = Table("Activation", activation_type=_ACTIVATIONS[name])
    if "alpha" in node.attrs:
        primitive.alpha = node.attrs["alpha"]
    if name == "gelu":
        primitive.approximate = node.attrs["approximate"] == "tanh"
    _of_one(w, node, primitive)


_UNARY = {
    "abs": "Abs", "ceil": "Ceil", "cos": "Cos", "erf": "Erf", "exp": "ExpFusion", "floor": "Floor",
    "log": "Log", "log1p": "Log1p", "logical_not": "LogicalNot", "neg": "Neg", "reciprocal": "Reciprocal",
    "rsqrt": "Rsqrt", "sin": "Sin", "sqrt": "Sqrt", "square": "Square",
}  # fmt: skip


@rule(*_UNARY)
def _unary(w: Writer, node: Node) -> None:
    _of_one(w, node, Table(_UNARY[node.op.name]))


@rule("round")
def _round(w: Writer, node: Node) -> None:
    if node.attrs["decimals"]:
        raise w.fail(f"rounding to {node.attrs['decimals']} decimals")
    _of_one(w, node, Table("Round"))


@rule("clip", "hardtanh")
def _clip(w: Writer, node: Node) -> None:
    low, high = node.attrs.values()
    low, high = (-np.inf if low is None else low), (np.inf if high is None else high)
    _of_one(w, node, Table("Clip", min=low, max=high))


@rule("cast")
def _cast(w: Writer, node: Node) -> None:
    _of_one(w, node, Table("Cast"), w.dtype_of(node.outputs[0].type))


def _of_one(w: Writer, node: Node, primitive: Table, *more: int) -> None:
    tensor, last = in_layout(w, node.inputs[0])
    w.emit(node.outputs[0], primitive, [tensor, *more], last)


_OF_SEVERAL = {
    "add": "AddFusion", "sub": "SubFusion", "mul": "MulFusion", "div": "DivFusion", "maximum": "Maximum",
    "minimum": "Minimum", "floor_div": "FloorDiv", "floor_mod": "FloorMod", "pow": "PowFusion",
    "equal": "Equal", "not_equal": "NotEqual", "less": "Less", "less_equal": "LessEqual",
    "greater": "Greater", "greater_equal": "GreaterEqual", "logical_and": "LogicalAnd",
    "logical_or": "LogicalOr",
}  # fmt: skip


@rule(*_OF_SEVERAL)
def _of_several(w: Writer, node: Node) -> None:
    tensors, last = _operands(w, node)
    w.emit(node.outputs[0], Table(_OF_SEVERAL[node.op.name]), tensors, last)


@rule("logical_xor")
def _xor(w: Writer, node: Node) -> None:
    if any(v.type.dtype.np != np.bool_ for v in node.inputs):
        raise w.fail("an exclusive or of numbers")
    tensors, last = _operands(w, node)
    w.emit(node.outputs[0], Table("NotEqual"), tensors, last)


@rule("where")
def _where(w: Writer, node: Node) -> None:
    """MindSpore Lite takes operands of the result's shape or of one element."""
    tensors, last = _operands(w, node)
    shape = node.outputs[0].type.shape
    if not last and all(type(n) is int for n in shape):
        for i, v in enumerate(node.inputs):
            if v.type.shape != shape and np.prod(v.type.shape) != 1:
                tensors[i] = w.step(Table("BroadcastTo", shape=list(shape)), [tensors[i]], v.type, shape)
    w.emit(node.outputs[0], Table("Where"), tensors, last)


def _operands(w: Writer, node: Node) -> tuple[list[int], bool]:
    """The tensors of operands that are broadcast, with the channels last if an image among them is."""
    shape = node.outputs[0].type.shape
    last = any(w.is_last(v) and v.type.shape[1:] == shape[1:] for v in node.inputs)
    last = last and all(_may_be_last(w, v) for v in node.inputs)
    return [_turned(w, v) if last else w.first(v) for v in node.inputs], last


def _is_one(v: Value) -> bool:
    return all(type(n) is int and n == 1 for n in v.type.shape)


def _may_be_last(w: Writer, v: Value) -> bool:
    if v.type.rank == 4:
        return w.is_last(v) or v.is_constant or tuple(v.type.shape[2:]) == (1, 1)
    return v.is_constant or _is_one(v)


def _turned(w: Writer, v: Value) -> int:
    """The tensor of an operand of images with the channels last."""
    if v.type.rank == 4:
        return w.last(v)
    if _is_one(v):
        return w.first(v)
    array = v.constant.asnumpy()
    return w.constant(array.reshape((1,) * (4 - array.ndim) + array.shape).transpose(TO_LAST))


@rule("bias_add")
def _bias_add(w: Writer, node: Node) -> None:
    x, bias = node.inputs
    last = x.type.rank == 4 and node.attrs["data_format"] == "NCHW"
    if last and w.keeps_layout:
        shape = [1, bias.type.shape[0], 1, 1]
        spread = w.step(
            Table("Reshape"), [w.first(bias), w.constant(np.asarray(shape, np.int32))], bias.type, shape
        )
        w.emit(node.outputs[0], Table("AddFusion"), [w.first(x), spread])
        return
    if not last and x.type.rank != 2 and node.attrs["data_format"] != "NHWC":
        raise w.fail(f"a bias along axis 1 of {x.type}")
    primitive = Table("BiasAdd", format="NHWC")
    w.emit(node.outputs[0], primitive, [w.last(x) if last else w.first(x), w.first(bias)], last)
