"""Ops of core that become Custom nodes, which the runtime knows by the op's name."""

from __future__ import annotations

import numpy as np

from mycelia.ir import Node
from mycelia_lite.converter.integer_ops import HOW
from mycelia_lite.converter.rules.table import rule
from mycelia_lite.converter.tree_ops import HOWS
from mycelia_lite.converter.writer import Writer
from mycelia_lite.enums import DataType
from mycelia_lite.format import Table
from mycelia_lite.format.custom import custom

_ELEMENTWISE = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_left_shift",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "cosh", "expm1", "invert", "isfinite", "isinf",
    "isnan", "sign", "sinh", "tan", "trunc", "truncate_div", "truncate_mod",
)  # fmt: skip
_REDUCTIONS = ("update", "add", "sub", "mul", "div", "max", "min")


@rule(*_ELEMENTWISE)
def _elementwise(w: Writer, node: Node) -> None:
    w.emit(node.outputs[0], custom(node.op.name), [w.first(v) for v in node.inputs])


@rule("nan_to_num")
def _nan_to_num(w: Writer, node: Node) -> None:
    x, y = node.inputs[0], node.outputs[0]
    if not x.type.dtype.is_floating:
        w.alias(y, w.first(x))
        return
    dtype = np.dtype(x.type.dtype.np)
    limits = np.finfo(dtype)
    given = (node.attrs[name] for name in ("nan", "posinf", "neginf"))
    nan, high, low = (d if v is None else v for v, d in zip(given, (0, limits.max, limits.min)))
    tensor = source = w.first(x)
    for found, number in ((np.nan, nan), (np.inf, high), (-np.inf, low)):
        mask, read = (
            (custom("isnan"), []) if found != found else (Table("Equal"), [w.constant(dtype.type(found))])
        )
        inputs = [
            w.step(mask, [source, *read], np.bool_, x.type.shape),
            w.constant(dtype.type(number)),
            tensor,
        ]
        if found == -np.inf:
            w.emit(y, Table("Where"), inputs)
        else:
            tensor = w.step(Table("Where"), inputs, x.type, x.type.shape)


@rule("det", "cumprod", "tril", "triu", "sort")
def _with_numbers(w: Writer, node: Node) -> None:
    w.emit_all(node.outputs, custom(node.op.name, **node.attrs), [w.first(v) for v in node.inputs])


@rule("trees")
def _trees(w: Writer, node: Node) -> None:
    w.emit(
        node.outputs[0], custom("trees", how=HOWS.index(node.attrs["how"])), [w.first(v) for v in node.inputs]
    )


@rule("lookup")
def _lookup(w: Writer, node: Node) -> None:
    w.emit(node.outputs[0], custom("lookup"), [w.first(v) for v in node.inputs])


@rule("pair", "rescale", "rescale_columns")
def _rescale(w: Writer, node: Node) -> None:
    attrs = {name: int(value) for name, value in node.attrs.items() if name not in ("how", "to", "whole")}
    attrs["dtype"] = int(DataType.of(np.dtype(node.attrs["to"])))
    if "how" in node.attrs:
        attrs["how"] = list(HOW).index(node.attrs["how"])
    w.emit(node.outputs[0], custom(node.op.name, **attrs), [w.first(v) for v in node.inputs])


@rule("integer_products")
def _integer_products(w: Writer, node: Node) -> None:
    data, weight, zero, bias = node.inputs
    zeros = (
        w.constant(np.zeros(weight.type.shape[0], np.int32)) if zero is None and bias is not None else None
    )
    inputs = [w.first(data), w.first(weight), zeros if zero is None else w.first(zero)]
    inputs = [i for i in inputs if i is not None] + ([] if bias is None else [w.first(bias)])
    w.emit(node.outputs[0], custom("integer_products", **node.attrs), inputs)


@rule("tensor_scatter", "scatter_elements")
def _scatter(w: Writer, node: Node) -> None:
    attrs = dict(node.attrs)
    attrs["reduction"] = _REDUCTIONS.index(attrs["reduction"])
    w.emit(node.outputs[0], custom(node.op.name, **attrs), [w.first(v) for v in node.inputs])


@rule("max_pool_index")
def _max_pool_index(w: Writer, node: Node) -> None:
    pool(w, node)


def windows(attrs, rank: int) -> dict[str, list[int]]:
    """The attributes of windows with an entry for each spatial dimension, pads with two."""
    full = {}
    for name, count in (("kernel", rank), ("stride", rank), ("pad", 2 * rank), ("dilation", rank)):
        if name in attrs:
            values = [int(n) for n in attrs[name]]
            full[name] = values * count if len(values) == 1 else values
    return full


def pool(w: Writer, node: Node) -> None:
    """A pool with the channels first that MindSpore Lite's tables cannot say."""
    x, attrs = node.inputs[0], node.attrs
    if attrs.get("data_format", "NCHW") != "NCHW":
        raise w.fail(f"a pool of {x.type} in the format {attrs['data_format']}")
    given = windows(attrs, x.type.rank - 2)
    given["ceil"] = attrs["ceil"]
    if "divisor" in attrs:
        given |= dict(divisor=attrs["divisor"] or 0, count_include_pad=attrs["count_include_pad"])
    w.emit(node.outputs[0], custom(node.op.name, **given), [w.first(x)])


def conv(w: Writer, node: Node) -> None:
    """A convolution of three dimensions, or with weights that are data."""
    x, weight, bias = node.inputs
    given = windows(node.attrs, x.type.rank - 2)
    inputs = [w.first(x), w.first(weight), *([] if bias is None else [w.first(bias)])]
    w.emit(node.outputs[0], custom("conv", group=node.attrs["group"], **given), inputs)


def batch_norm(w: Writer, node: Node) -> None:
    """A normalization by statistics that are data, of images with the channels first."""
    x, attrs = node.inputs[0], node.attrs
    if attrs["data_format"] != "NCHW":
        raise w.fail(f"batch normalization of {x.type} with parameters that are no constants")
    given = custom("batch_norm_infer", epsilon=float(attrs["epsilon"]), data_format=0)
    w.emit(node.outputs[0], given, [w.first(v) for v in node.inputs])


def transposed_conv(w: Writer, node: Node) -> None:
    """The same of a transposed one; `more`: what the result is larger than the windows reach."""
    dy, weight = node.inputs
    rank = dy.type.rank - 2
    given = windows(node.attrs, rank)
    if any(type(n) is not int for n in dy.type.shape[2:]):
        raise w.fail("a transposed convolution of open sizes: give inputShape")
    more = []
    for d in range(rank):
        span = (weight.type.shape[2 + d] - 1) * given["dilation"][d] + 1
        reach = (dy.type.shape[2 + d] - 1) * given["stride"][d] + span
        more.append(node.attrs["size"][d] - (reach - given["pad"][d] - given["pad"][d + rank]))
    primitive = custom("conv_input_grad", group=node.attrs["group"], more=more, **given)
    w.emit(node.outputs[0], primitive, [w.first(dy), w.first(weight)])


# ---- recurrent layers ------------------------------------------------------------------------------------


@rule("lstm_layer")
def _lstm(w: Writer, node: Node) -> None:
    """MindSpore Lite's gates are input, output, forget, cell; core's are input, forget, cell, output."""
    x, h0, c0, *weights = node.inputs
    y, h, c = node.outputs[:3]
    steps, batch, inputs = x.type.shape
    hidden = h.type.shape[1]
    w_ih, w_hh, *biases = (_gates(w, v, hidden, (0, 3, 1, 2)) for v in weights)
    zeros = w.constant(np.zeros(4 * hidden, x.type.dtype.np))
    biases = [zeros if b is None else b for b in biases]
    bias = w.step(Table("Concat", axis=0), biases, x.type, (8 * hidden,)) if set(biases) != {zeros} else None
    bias = w.constant(np.zeros(8 * hidden, x.type.dtype.np)) if bias is None else bias
    named = [(w_ih, (4 * hidden, inputs)), (w_hh, (4 * hidden, hidden)), (bias, (8 * hidden,))]
    named += [(w.first(v), (batch, hidden)) for v in (h0, c0)]
    front = w.constant(np.asarray(0, np.int32))
    given = [w.step(Table("ExpandDims"), [t, front], x.type, (1, *shape)) for t, shape in named]
    primitive = Table(
        "LSTM", has_bias=True, input_size=inputs, hidden_size=hidden, num_layers=1, num_directions=1
    )
    shapes = [(steps, 1, batch, hidden), (1, batch, hidden), (1, batch, hidden)]
    results = w.step_all(primitive, [w.first(x), *given], x.type, shapes)
    for value, tensor, axis in zip((y, h, c), results, (1, 0, 0)):
        w.emit(value, Table("Squeeze", axis=[axis]), [tensor])


def _gates(w: Writer, value, hidden: int, order) -> int | None:
    """Weights or a bias with the blocks of the gates in another order."""
    if value is None:
        return None
    shape = value.type.shape
    if value.is_constant:
        blocks = np.split(value.constant.asnumpy(), len(order))
        return w.constant(np.concatenate([blocks[k] for k in order]), value.name)
    sizes = [hidden] * len(order)
    parts = w.step_all(
        Table("Split", axis=0, output_num=len(order), size_splits=sizes), [w.first(value)], value.type,
        [(hidden, *shape[1:])] * len(order),
    )  # fmt: skip
    return w.step(Table("Concat", axis=0), [parts[k] for k in order], value.type, shape)


@rule("gru_layer", "rnn_layer")
def _recurrent(w: Writer, node: Node) -> None:
    *needed, b_ih, b_hh = node.inputs
    inputs = [w.first(v) for v in needed]
    if b_ih is not None or b_hh is not None:
        zeros = np.zeros(needed[2].type.shape[:1], needed[2].type.dtype.np)
        inputs += [w.constant(zeros) if b is None else w.first(b) for b in (b_ih, b_hh)]
    attrs = {}
    if node.op.name == "rnn_layer":
        attrs["nonlinearity"] = ("tanh", "relu").index(node.attrs["nonlinearity"])
    w.emit_all(node.outputs[:2], custom(node.op.name, **attrs), inputs)
