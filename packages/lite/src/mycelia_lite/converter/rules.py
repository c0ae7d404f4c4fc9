"""What each op of core becomes in a `.ms` file: `RULES` has a function ``(writer, node)`` by op name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mycelia.ir import Node
from mycelia_lite.converter.writer import LAST_AXIS, Writer, write_khwc
from mycelia_lite.format import Table

RULES: dict[str, Callable[[Writer, Node], None]] = {}


def rule(*names: str) -> Callable:
    """Decorator: the function writes the ops of these names."""

    def enter(function: Callable) -> Callable:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def _pairs(values, rank: int = 2) -> list[int]:
    """An attribute of windows, one number or one for each dimension."""
    values = tuple(values)
    return [int(v) for v in (values * rank if len(values) == 1 else values)]


def _pads(values) -> list[int]:
    """Begins then ends of two dimensions -> top, bottom, left, right."""
    top, left, bottom, right = _pairs(values, 4)
    return [top, bottom, left, right]


# ---- images --------------------------------------------------------------------------------------------


@rule("conv")
def _conv(w: Writer, node: Node) -> None:
    x, weight, bias = node.inputs
    if x.type.rank != 4:
        raise w.fail(f"a convolution of {x.type.rank - 2} spatial dimensions")
    outputs, per_group, *kernel = weight.type.shape
    attrs = node.attrs
    primitive = Table(
        "Conv2DFusion",
        format="NHWC",
        kernel_size=kernel,
        stride=_pairs(attrs["stride"]),
        dilation=_pairs(attrs["dilation"]),
        pad_mode="PAD",
        pad_list=_pads(attrs["pad"]),
        mode=1,
        group=attrs["group"],
        in_channel=per_group * attrs["group"],
        out_channel=outputs,
    )
    inputs = [w.last(x), write_khwc(w, weight)]
    if bias is not None:
        inputs.append(w.first(bias))
    w.emit(node.outputs[0], primitive, inputs, last=True)


@rule("max_pool", "avg_pool")
def _pool(w: Writer, node: Node) -> None:
    x, attrs = node.inputs[0], node.attrs
    if x.type.rank != 4 or attrs["data_format"] != "NCHW":
        raise w.fail(f"a pool of {x.type} in the format {attrs['data_format']}")
    if node.op.name == "max_pool" and {*attrs["dilation"]} != {1}:
        raise w.fail(f"dilation {attrs['dilation']}: MindSpore Lite's pools have none")
    padded = any(attrs["pad"])
    if node.op.name == "avg_pool" and (attrs["divisor"] or padded and attrs["count_include_pad"]):
        raise w.fail("a mean that counts the padding or has a divisor of its own")
    primitive = Table(
        "MaxPoolFusion" if node.op.name == "max_pool" else "AvgPoolFusion",
        kernel_size=_pairs(attrs["kernel"]),
        strides=_pairs(attrs["stride"]),
        pad=_pads(attrs["pad"]),
        pad_mode="PAD",
        round_mode="CEIL" if attrs["ceil"] else "FLOOR",
        format="NHWC",
    )
    w.emit(node.outputs[0], primitive, [w.last(x)], last=True)


# ---- elementwise ---------------------------------------------------------------------------------------

_ACTIVATIONS = {
    "relu": "RELU", "sigmoid": "SIGMOID", "relu6": "RELU6", "tanh": "TANH", "hardswish": "HSWISH",
    "hardsigmoid": "HSIGMOID", "silu": "SWISH", "elu": "ELU", "leaky_relu": "LEAKY_RELU", "gelu": "GELU",
}  # fmt: skip


@rule(*_ACTIVATIONS)
def _activation(w: Writer, node: Node) -> None:
    x, name = node.inputs[0], node.op.name
    primitive = Table("Activation", activation_type=_ACTIVATIONS[name])
    if "alpha" in node.attrs:
        primitive.alpha = node.attrs["alpha"]
    if name == "gelu":
        primitive.approximate = node.attrs["approximate"] == "tanh"
    last = w.is_last(x)
    w.emit(node.outputs[0], primitive, [w.last(x) if last else w.first(x)], last)


_ARITHMETIC = {
    "add": "AddFusion", "sub": "SubFusion", "mul": "MulFusion", "div": "DivFusion", "maximum": "Maximum",
    "minimum": "Minimum",
}  # fmt: skip


@rule(*_ARITHMETIC)
def _arithmetic(w: Writer, node: Node) -> None:
    """Two images that are both written with the channels last, or one and a number, stay so."""
    images = [v for v in node.inputs if v.type.shape != ()]
    shape = node.outputs[0].type.shape
    last = bool(images) and all(v.type.shape == shape and w.is_last(v) for v in images)
    inputs = [w.last(v) if last and v in images else w.first(v) for v in node.inputs]
    w.emit(node.outputs[0], Table(_ARITHMETIC[node.op.name]), inputs, last)


@rule("bias_add")
def _bias_add(w: Writer, node: Node) -> None:
    x, bias = node.inputs
    last = x.type.rank == 4 and node.attrs["data_format"] == "NCHW"
    if not last and x.type.rank != 2 and node.attrs["data_format"] != "NHWC":
        raise w.fail(f"a bias along axis 1 of {x.type}")
    primitive = Table("BiasAdd", format="NHWC")
    w.emit(node.outputs[0], primitive, [w.last(x) if last else w.first(x), w.first(bias)], last)


# ---- products, shapes ----------------------------------------------------------------------------------


@rule("mat_mul", "batch_matmul")
def _product(w: Writer, node: Node) -> None:
    a, b = node.inputs
    primitive = Table(
        "MatMulFusion", transpose_a=node.attrs["transpose_a"], transpose_b=node.attrs["transpose_b"]
    )
    w.emit(node.outputs[0], primitive, [w.first(a), w.first(b)])


@rule("dense")
def _dense(w: Writer, node: Node) -> None:
    x, weight, bias = node.inputs
    inputs = [w.first(x), w.first(weight)] + ([] if bias is None else [w.first(bias)])
    w.emit(node.outputs[0], Table("MatMulFusion", transpose_b=True), inputs)


@rule("sized")
def _sized(w: Writer, node: Node) -> None:
    """An op with an attribute that is an open size: of a Reshape, -1 stands for it."""
    if node.attrs["op"].name != "reshape":
        raise w.fail(f"'{node.attrs['op'].name}' with a size that is open: give inputShape")
    _reshape(w, node)


@rule("reshape")
def _reshape(w: Writer, node: Node) -> None:
    shape = [-1 if type(n) is not int else n for n in node.outputs[0].type.shape]
    if shape.count(-1) > 1:
        raise w.fail(f"the shape {shape} with several open sizes")
    target = w.constant(np.asarray(shape, np.int32))
    w.emit(node.outputs[0], Table("Reshape"), [w.first(node.inputs[0]), target])


@rule("transpose")
def _transpose(w: Writer, node: Node) -> None:
    order = w.constant(np.asarray(node.attrs["dims"], np.int32))
    w.emit(node.outputs[0], Table("Transpose"), [w.first(node.inputs[0]), order])


def _along(w: Writer, node: Node, kind: str, axis: Callable[[int], object]) -> None:
    """An operator along one axis; images that are all written with the channels last stay so."""
    last = all(w.is_last(v) for v in node.inputs)
    given = node.attrs["axis"] % node.inputs[0].type.rank
    primitive = Table(kind, axis=axis(LAST_AXIS[given] if last else given))
    w.emit(node.outputs[0], primitive, [w.last(v) if last else w.first(v) for v in node.inputs], last)


@rule("concat")
def _concat(w: Writer, node: Node) -> None:
    _along(w, node, "Concat", lambda axis: axis)


@rule("softmax")
def _softmax(w: Writer, node: Node) -> None:
    _along(w, node, "Softmax", lambda axis: [axis])
