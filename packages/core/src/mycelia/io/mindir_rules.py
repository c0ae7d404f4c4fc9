"""What the ops of a graph become in MindIR: for each op a rule that writes MindSpore operators.

A rule gets the GraphWriter, the node, and the names of its inputs (None for an absent one), and returns the
name of the result, or a list with one for each output. Ops without a rule are written by the operator they
name themselves (`@op(mindir=...)`), with the arguments in the same order, or else by their decomposition into
other ops. `mindir_operators` has the other direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycelia import dtypes
from mycelia.dtypes import DType
from mycelia.io.mindir_values import id_of_dtype
from mycelia.ir import Graph, Node, TensorType
from mycelia.tensor import Tensor

# Operators that ops name and that are no functions: their arguments beyond tensors are attributes.
_ATTRIBUTE_STYLE = frozenset((
    "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Hypot", "Invert", "IsNan", "L2Normalize", "LRN", "Mish", "SeLU",
    "SigmoidCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits", "Softplus", "Softsign", "Sort", "Stack", "Tril",
    "TruncateDiv", "TruncateMod", "Unique", "Unstack", "Xdivy",
))  # fmt: skip

_rules: dict[str, Callable] = {}


class Unsupported(Exception):
    """An op that MindIR cannot express; the message names it and its place."""


def rule(*names: str) -> Callable:
    """Decorator: the function writes the ops of these names."""

    def enter(function: Callable) -> Callable:
        for name in names:
            _rules[name] = function
        return function

    return enter


def find(op: Any) -> Callable | None:
    """The rule of an op, or None."""
    if op.name in _rules:
        return _rules[op.name]
    return _by_name if op.definition.mindir else None


def decomposed(node: Node) -> Graph | None:
    """A node's op as a graph of other ops, if it has such a form."""
    definition = node.op.definition
    if definition.decomposition is None:
        return None
    from mycelia.capture.trace import Trace

    trace = Trace(node.op.name)
    with trace:
        inputs = [None if v is None else trace.parameter(v.type) for v in node.inputs]
        counts = (len(inputs) - len(definition.params) + 1, *(1 for _ in definition.params[1:]))
        results = definition.decomposition(*definition.group(tuple(inputs), counts), **node.attrs)
        results = results if isinstance(results, (tuple, list)) else (results,)
        trace.graph.outputs = [trace.value_of(r) for r in results]
    trace.close()
    return trace.graph


def _by_name(w: Any, node: Node, inputs: list) -> Any:
    """The operator that the op names, with the same inputs and attributes."""
    definition = node.op.definition
    operator, out = definition.mindir, _types(node)
    arguments = definition.group(tuple(inputs), (len(inputs) - len(definition.params) + 1,))
    arguments = [w.tuple(a) if isinstance(a, tuple) else a for a in arguments]
    attributes = {name: _plain(value) for name, value in node.attrs.items()}
    if operator in _ATTRIBUTE_STYLE:
        name = w.primitive(operator, *arguments, out=out, **attributes)
    else:
        name = w.op(operator, *arguments, *attributes.values(), out=out)
    return w.results(name, out) if isinstance(out, tuple) else name


def _types(node: Node) -> Any:
    """The type of the result: one TensorType, or a tuple of them where the op returns a tuple."""
    types = tuple(v.type for v in node.outputs)
    return types[0] if len(types) == 1 and node.op.definition.outputs is not None else types


def _plain(value: Any) -> Any:
    return id_of_dtype(value) if isinstance(value, DType) else value


def _attributes(node: Node, *names: str) -> tuple:
    return tuple(node.attrs[name] for name in names)


def _type(like: TensorType, shape: Sequence[int]) -> TensorType:
    return TensorType(like.dtype, tuple(shape))


def _constant(value: Any, dtype: DType) -> Tensor:
    """A 0-d tensor."""
    return Tensor(np.asarray(value), dtype)


def _cast(w: Any, name: Any, source: TensorType, dtype: DType) -> Any:
    return (
        name
        if source.dtype is dtype
        else w.op("Cast", name, id_of_dtype(dtype), out=TensorType(dtype, source.shape))
    )


def _reshape(w: Any, name: Any, type: TensorType, shape: Sequence[int]) -> Any:
    return name if tuple(shape) == type.shape else w.op("Reshape", name, tuple(shape), out=_type(type, shape))


def _static(node: Node, *types: TensorType) -> None:
    if not all(t.is_static for t in types):
        raise Unsupported(f"{node.op.name} with sizes that are not known")


# ---------------------------------------------------------------------------------------------------- plain
# ones
def _renamed(**names: str) -> None:
    """Ops that take the same arguments as an operator that they do not name themselves."""
    for op, operator in names.items():
        _rules[op] = lambda w, node, inputs, operator=operator: w.op(
            operator, *inputs, *map(_plain, node.attrs.values()), out=_types(node)
        )


_renamed(exp2="Exp2", log2="Log2", log10="Log10", logaddexp="LogAddExp", logaddexp2="LogAddExp2", erf="Erf", erfc="Erfc",
         erfinv="Erfinv", sinc="Sinc")  # fmt: skip


@rule("div")
def _div(w, node, inputs):
    return w.op("Div", *inputs, out=_types(node))


@rule("flip")
def _flip(w, node, inputs):
    return w.op("ReverseV2", inputs[0], node.attrs["dims"], out=_types(node))


@rule("cast")
def _cast_rule(w, node, inputs):
    return w.op("Cast", inputs[0], id_of_dtype(node.attrs["dtype"]), out=_types(node))


@rule("clip")
def _clip(w, node, inputs):
    low, high = _attributes(node, "min", "max")
    name, type = inputs[0], _types(node)
    if high is not None:
        name = w.op("Minimum", name, _constant(high, type.dtype), out=type)
    if low is not None:
        name = w.op("Maximum", name, _constant(low, type.dtype), out=type)
    return name


@rule("fill_like")
def _fill_like(w, node, inputs):
    type = _types(node)
    value = _constant(node.attrs["value"], type.dtype)
    if type.is_static:
        return w.op("BroadcastTo", value, type.shape, out=type)
    zeros = _cast(w, w.op("ZerosLike", inputs[0], out=node.inputs[0].type), node.inputs[0].type, type.dtype)
    return w.op("Add", zeros, value, out=type)


@rule("isposinf", "isneginf")
def _is_signed_inf(w, node, inputs):
    type = node.inputs[0].type
    infinity = math.inf if node.op.name == "isposinf" else -math.inf
    return w.op("Equal", inputs[0], _constant(infinity, type.dtype), out=_types(node))


@rule("require")
def _require(w, node, inputs):
    return inputs[0]  # the file carries no assertions


@rule("scale_gradient")
def _scale_gradient(w, node, inputs):
    return inputs[0]


# ----------------------------------------------------------------------------------------------------
# activations
@rule("softmax")
def _softmax(w, node, inputs):
    return w.op("Softmax", inputs[0], (node.attrs["axis"],), out=_types(node))


@rule("gelu")
def _gelu(w, node, inputs):
    type = _types(node)
    if node.attrs["approximate"] == "tanh":
        return w.op("GeLU", inputs[0], out=type)
    scaled = w.op("Mul", inputs[0], _constant(1 / math.sqrt(2), type.dtype), out=type)
    gate = w.op("Add", w.op("Erf", scaled, out=type), _constant(1, type.dtype), out=type)
    half = w.op("Mul", inputs[0], _constant(0.5, type.dtype), out=type)
    return w.op("Mul", half, gate, out=type)


@rule("leaky_relu")
def _leaky_relu(w, node, inputs):
    type, alpha = _types(node), node.attrs["alpha"]
    scaled = w.op("Mul", inputs[0], _constant(alpha, type.dtype), out=type)
    return w.op("Maximum" if alpha <= 1 else "Minimum", inputs[0], scaled, out=type)


@rule("hardtanh")
def _hardtanh(w, node, inputs):
    type = _types(node)
    name = w.op("Minimum", inputs[0], _constant(node.attrs["max_val"], type.dtype), out=type)
    return w.op("Maximum", name, _constant(node.attrs["min_val"], type.dtype), out=type)


@rule("softplus")
def _softplus(w, node, inputs):
    type, (beta, threshold) = _types(node), _attributes(node, "beta", "threshold")
    scaled = inputs[0] if beta == 1 else w.op("Mul", inputs[0], _constant(beta, type.dtype), out=type)
    smooth = w.primitive("Softplus", scaled, out=type)
    if beta != 1:
        smooth = w.op("Div", smooth, _constant(beta, type.dtype), out=type)
    large = w.op(
        "Greater", scaled, _constant(threshold, type.dtype), out=TensorType(dtypes.bool_, type.shape)
    )
    return w.op("Select", large, inputs[0], smooth, out=type)


@rule("logsigmoid")
def _logsigmoid(w, node, inputs):
    type = _types(node)
    negative = w.op("Neg", inputs[0], out=type)
    return w.op("Neg", w.primitive("Softplus", negative, out=type), out=type)


@rule("threshold")
def _threshold(w, node, inputs):
    type, (limit, value) = _types(node), _attributes(node, "thr", "value")
    over = w.op("Greater", inputs[0], _constant(limit, type.dtype), out=TensorType(dtypes.bool_, type.shape))
    filler = w.op("Add", w.op("ZerosLike", inputs[0], out=type), _constant(value, type.dtype), out=type)
    return w.op("Select", over, inputs[0], filler, out=type)


# ----------------------------------------------------------------------------------------------------
# reductions
@rule("mean", "prod", "reduce_max", "reduce_min", "all", "any")
def _reduce(w, node, inputs):
    keep = node.attrs.get("keep_dims", node.attrs.get("keepdims"))
    source, type = node.inputs[0].type, _types(node)
    name = inputs[0]
    if node.op.name == "prod":
        name = _cast(w, name, source, type.dtype)
    return w.op(node.op.definition.mindir, name, node.attrs["axis"] or (), keep, out=type)


@rule("sum")
def _sum(w, node, inputs):
    dim, keepdim, dtype = _attributes(node, "dim", "keepdim", "dtype")
    return w.op(
        "SumExt", inputs[0], dim, keepdim, None if dtype is None else id_of_dtype(dtype), out=_types(node)
    )


@rule("sum_to")
def _sum_to(w, node, inputs):
    source, type = node.inputs[0].type, _types(node)
    lead = source.rank - type.rank
    axes = tuple(range(lead)) + tuple(
        i + lead for i, n in enumerate(type.shape) if n == 1 and source.shape[i + lead] != 1
    )
    name = w.op("SumExt", inputs[0], axes, True, None) if axes else inputs[0]
    return w.op("Reshape", name, type.shape, out=type)


@rule("l2_norm")
def _l2_norm(w, node, inputs):
    axis, keepdims = _attributes(node, "axis", "keepdims")
    square = w.op("Square", inputs[0], out=node.inputs[0].type)
    return w.op("Sqrt", w.op("SumExt", square, axis, keepdims, None, out=_types(node)), out=_types(node))


@rule("argmax", "argmin")
def _argmax(w, node, inputs):
    axis, keepdims = _attributes(node, "axis", "keepdims")
    source, type, name = node.inputs[0].type, _types(node), inputs[0]
    if axis is None:
        name, axis = _reshape(w, name, source, (-1,)), 0
    operator = "Argmax" if node.op.name == "argmax" else "Argmin"
    name = w.op(operator, name, axis, id_of_dtype(dtypes.int32))
    name = _cast(w, name, TensorType(dtypes.int32, type.shape), type.dtype)
    return w.op("Reshape", name, type.shape, out=type) if keepdims else name


@rule("max_with_index", "min_with_index")
def _with_index(w, node, inputs):
    operator = "ArgMaxWithValue" if node.op.name == "max_with_index" else "ArgMinWithValue"
    value, index = (v.type for v in node.outputs)
    pair = w.op(operator, inputs[0], *_attributes(node, "axis", "keepdims"))
    return [
        w.item(pair, 1, value),
        _cast(w, w.item(pair, 0), TensorType(dtypes.int64, index.shape), index.dtype),
    ]


@rule("cumsum", "cumprod")
def _cumulative(w, node, inputs):
    type = _types(node)
    name = _cast(w, inputs[0], node.inputs[0].type, type.dtype)
    operator = "CumSum" if node.op.name == "cumsum" else "CumProd"
    return w.op(operator, name, node.attrs["axis"], False, False, out=type)


# ----------------------------------------------------------------------------------------------------
# matrices
@rule("matmul")
def _matmul(w, node, inputs):
    flags = _attributes(node, "transpose_a", "transpose_b") if "transpose_a" in node.attrs else (False, False)
    ranks = [v.type.rank for v in node.inputs[:2]]
    if ranks == [2, 2]:
        return w.op("MatMul", *inputs[:2], *flags, out=_types(node))
    if flags == (False, False):
        return w.op("MatMulExt", *inputs[:2], out=_types(node))
    return w.op("BatchMatMul", *inputs[:2], *flags, out=_types(node))


# ---------------------------------------------------------------------------------------------------- shapes
@rule("squeeze")
def _squeeze(w, node, inputs):
    return w.op("Squeeze", inputs[0], node.attrs["axis"] or (), out=_types(node))


@rule("split")
def _split(w, node, inputs):
    sections, axis = _attributes(node, "sections", "axis")
    types = tuple(v.type for v in node.outputs)
    if len(set(sections)) == 1:
        name = w.op("Split", inputs[0], axis, len(sections), out=types)
        return [w.item(name, i, t) for i, t in enumerate(types)]
    results, start = [], 0
    source = node.inputs[0].type
    axis %= source.rank
    for size, type in zip(sections, types):
        begin = tuple(start if d == axis else 0 for d in range(source.rank))
        results.append(_slice(w, inputs[0], begin, type.shape, (1,) * source.rank, type))
        start += size
    return results


def _slice(
    w: Any, x: Any, begin: Sequence[int], size: Sequence[int], stride: Sequence[int], out: TensorType
) -> Any:
    """A StridedSlice; sizes of -1 take the whole dimension."""
    ends, begin_mask, end_mask = [], 0, 0
    for d, (b, n, s) in enumerate(zip(begin, size, stride)):
        end = b + n * s
        if n < 0:
            begin_mask |= 1 << d
            end_mask |= 1 << d
            end = 0
        elif end < 0:  # a step down past the first element: -1 would be taken from the end
            end_mask |= 1 << d
        ends.append(end)
    return w.op(
        "StridedSlice", x, tuple(begin), tuple(ends), tuple(stride), begin_mask, end_mask, 0, 0, 0, out=out
    )


@rule("strided_slice")
def _strided_slice(w, node, inputs):
    begin, size, stride, shape = _attributes(node, "begin", "size", "stride", "shape")
    source, type = node.inputs[0].type, _types(node)
    part = _type(source, size)
    name = inputs[0]
    if any((b, n, s) != (0, whole, 1) for b, n, s, whole in zip(begin, size, stride, source.shape)):
        name = _slice(w, name, begin, size, stride, part)
    return _reshape(w, name, part, shape) if shape != part.shape else name


@rule("pad_constant")
def _pad_constant(w, node, inputs):
    source, type = node.inputs[0].type, _types(node)
    pads, value = _attributes(node, "pads", "value")
    begins, ends = pads[: source.rank], pads[source.rank :]
    name = inputs[0]
    if min(pads, default=0) < 0:  # negative padding cuts
        _static(node, source)
        begin = tuple(max(-b, 0) for b in begins)
        size = tuple(n - max(-b, 0) - max(-e, 0) for n, b, e in zip(source.shape, begins, ends))
        name = _slice(w, name, begin, size, (1,) * source.rank, _type(source, size))
        begins, ends = [max(b, 0) for b in begins], [max(e, 0) for e in ends]
    if not any((*begins, *ends)):
        return name
    contiguous = tuple(
        n for b, e in zip(reversed(begins), reversed(ends)) for n in (b, e)
    )  # last dimension first
    filler = _constant(value, type.dtype)
    return w.primitive("PadV3", name, contiguous, filler, out=type, mode="constant", paddings_contiguous=True)


# ----------------------------------------------------------------------------------------------------
# indexing
def _positions(
    shape: Sequence[int], begin: Sequence[int], size: Sequence[int], stride: Sequence[int]
) -> Tensor:
    """Flat positions [n, 1] of a strided part."""
    grid = np.arange(math.prod(shape)).reshape(shape)
    picks = np.ix_(*(b + s * np.arange(n) for b, n, s in zip(begin, size, stride)))
    return Tensor(grid[picks].reshape(-1, 1).astype(np.int32))


@rule("strided_assign")
def _strided_assign(w, node, inputs):
    source, value = (v.type for v in node.inputs)
    _static(node, source, value)
    begin, size, stride = _attributes(node, "begin", "size", "stride")
    data = inputs[1]
    if value.shape != size:
        data = w.op(
            "BroadcastTo",
            _reshape(w, data, value, _trailing_shape(value, size)),
            size,
            out=_type(value, size),
        )
    return _scattered(w, inputs[0], source, data, _positions(source.shape, begin, size, stride))


def _trailing_shape(value: TensorType, size: Sequence[int]) -> tuple[int, ...]:
    """The shape without leading ones beyond the rank of `size`."""
    return value.shape[max(value.rank - len(size), 0) :]


@rule("strided_place")
def _strided_place(w, node, inputs):
    type, part = _types(node), node.inputs[0].type
    _static(node, type, part)
    begin, stride = _attributes(node, "begin", "stride")
    zeros = w.op("BroadcastTo", _constant(0, type.dtype), type.shape, out=type)
    return _scattered(w, zeros, type, inputs[0], _positions(type.shape, begin, part.shape, stride))


def _scattered(w: Any, x: Any, type: TensorType, values: Any, positions: Tensor) -> Any:
    """`x` with `values` at flat positions."""
    flat = w.op("Reshape", x, (-1,), out=_type(type, (type.size,)))
    values = w.op("Reshape", values, (-1,), out=_type(type, (positions.shape[0],)))
    flat = w.primitive("TensorScatterUpdate", flat, positions, values, out=_type(type, (type.size,)))
    return w.op("Reshape", flat, type.shape, out=type)


@rule("embedding")
def _embedding(w, node, inputs):
    return w.op("Gather", inputs[1], inputs[0], 0, 0, out=_types(node))


@rule("gather_d")
def _gather_d(w, node, inputs):
    return w.op("GatherD", inputs[0], node.attrs["dim"], inputs[1], out=_types(node))


@rule("one_hot")
def _one_hot(w, node, inputs):
    indices, on, off = inputs
    return w.op("OneHot", indices, node.attrs["depth"], on, off, node.attrs["axis"], out=_types(node))


@rule("linear_index")
def _linear_index(w, node, inputs):
    type = _types(node)
    dims = node.attrs["dims"]
    total = None
    for i, (name, value) in enumerate(zip(inputs, node.inputs)):
        name = _cast(w, name, value.type, type.dtype)
        name = w.op("FloorMod", name, _constant(dims[i], type.dtype))  # negative ones count from the end
        name = w.op("Mul", name, _constant(math.prod(dims[i + 1 :]), type.dtype))
        total = name if total is None else w.op("Add", total, name)
    return total


@rule("flat_nonzero")
def _flat_nonzero(w, node, inputs):
    flat = w.op("Reshape", inputs[0], (-1,))
    return _cast(
        w, w.op("Reshape", w.op("NonZero", flat), (-1,)), TensorType(dtypes.int64, (-1,)), _types(node).dtype
    )


@rule("where")
def _where(w, node, inputs):
    type = _types(node)
    names = list(inputs)
    for i, value in enumerate(node.inputs):
        if value.type.shape != type.shape:  # Select does not broadcast on every device
            _static(node, type)
            names[i] = w.op("BroadcastTo", names[i], type.shape, out=_type(value.type, type.shape))
    return w.op("Select", *names, out=type)


@rule("tensor_scatter")
def _tensor_scatter(w, node, inputs):
    return w.primitive(f"TensorScatter{node.attrs['reduction'].capitalize()}", *inputs, out=_types(node))


@rule("scatter_elements")
def _scatter_elements(w, node, inputs):
    reduction = {"update": 0, "add": 1}.get(node.attrs["reduction"])
    if reduction is None:
        raise Unsupported(f"scatter_elements with reduction {node.attrs['reduction']!r}")
    return w.op("TensorScatterElements", *inputs, node.attrs["axis"], reduction, out=_types(node))


@rule("sort")
def _sort(w, node, inputs):
    values, indices = (v.type for v in node.outputs)
    pair = w.primitive("Sort", inputs[0], axis=node.attrs["axis"], descending=node.attrs["descending"])
    return [
        w.item(pair, 0, values),
        _cast(w, w.item(pair, 1), TensorType(dtypes.int32, indices.shape), indices.dtype),
    ]


@rule("topk")
def _topk(w, node, inputs):
    k, axis, largest, order = _attributes(node, "k", "axis", "largest", "sorted")
    source, (values, indices) = node.inputs[0].type, (v.type for v in node.outputs)
    axis %= source.rank
    swap = tuple(range(axis)) + (source.rank - 1, *range(axis + 1, source.rank - 1), axis)
    last = axis == source.rank - 1
    name = inputs[0] if last else w.op("Transpose", inputs[0], swap)
    if not largest:
        name = w.op("Neg", name)
    pair = w.primitive("TopK", name, k, sorted=order)
    value, index = w.item(pair, 0), w.item(pair, 1)
    if not largest:
        value = w.op("Neg", value)
    if not last:
        value, index = (w.op("Transpose", n, swap) for n in (value, index))
    return [value, _cast(w, index, TensorType(dtypes.int32, indices.shape), indices.dtype)]


# ----------------------------------------------------------------------------------------------------
# convolutions
def _pairs(pads: Sequence[int], rank: int) -> tuple[int, ...]:
    """Begins then ends -> begin and end of each dimension."""
    return tuple(n for pair in zip(pads[:rank], pads[rank:]) for n in pair)


def _full(values: Sequence[int], count: int) -> tuple[int, ...]:
    return tuple(values) * count if len(values) == 1 else tuple(values)


@rule("conv")
def _conv(w, node, inputs):
    x, weight = (v.type for v in node.inputs[:2])
    out, rank = _types(node), x.rank - 2
    stride, dilation = (_full(node.attrs[n], rank) for n in ("stride", "dilation"))
    pads, group = _full(node.attrs["pad"], 2 * rank), node.attrs["group"]
    kernel, names = weight.shape[2:], list(inputs[:2])
    if rank == 1:  # a picture of height 1
        names = [w.op("ExpandDims", n, 2) for n in names]
        kernel, stride, dilation, pads = (1, *kernel), (1, *stride), (1, *dilation), (0, pads[0], 0, pads[1])
        out = _type(out, (*out.shape[:2], 1, out.shape[2]))
    spatial = len(kernel)
    pairs = _pairs(pads, spatial)
    mode = "pad" if any(pairs) else "valid"
    common = dict(kernel_size=kernel, mode=1, out_channel=weight.shape[0], pad=pairs, pad_mode=mode, pad_list=pairs,
                  groups=group, group=group)  # fmt: skip
    common |= dict(
        stride=(1, 1, *stride), dilation=(1, 1, *dilation), input_names=["x", "w"], output_names=["output"]
    )
    if spatial == 2:
        name = w.primitive("Conv2D", *names, out=out, format="NCHW", **common)
    else:
        common["strides"], common["dilations"] = common.pop("stride"), common.pop("dilation")
        name = w.primitive("Conv3D", *names, out=out, format="NCDHW", data_format="NCDHW", **common)
    if inputs[2] is not None:
        name = w.op("BiasAdd", name, inputs[2], 0 if spatial == 2 else 14, out=out)
    return w.op("Squeeze", name, (2,), out=_types(node)) if rank == 1 else name


@rule("conv_input_grad")
def _conv_transpose(w, node, inputs):
    """The transposed convolution is the gradient of the convolution in its input."""
    dy, weight = (v.type for v in node.inputs[:2])
    out, rank = _types(node), dy.rank - 2
    stride, dilation = (_full(node.attrs[n], rank) for n in ("stride", "dilation"))
    pads, group = _full(node.attrs["pad"], 2 * rank), node.attrs["group"]
    kernel, names, type = weight.shape[2:], list(inputs[:2]), out
    _static(node, out)
    if rank == 1:
        names = [w.op("ExpandDims", n, 2) for n in names]
        kernel, stride, dilation, pads = (1, *kernel), (1, *stride), (1, *dilation), (0, pads[0], 0, pads[1])
        type = _type(out, (*out.shape[:2], 1, out.shape[2]))
    if len(kernel) != 2:
        raise Unsupported("transposed convolution over three dimensions")
    pairs = _pairs(pads, 2)
    name = w.primitive(
        "Conv2DTranspose", *names, type.shape, out=type, kernel_size=kernel, mode=1, out_channel=weight.shape[0],
        pad=pairs, pad_mode="PAD" if any(pairs) else "VALID", pad_list=pairs, stride=stride, dilation=(1, 1, *dilation),
        group=group, groups=group, format="NCHW",
    )  # fmt: skip
    return w.op("Squeeze", name, (2,), out=out) if rank == 1 else name


# ----------------------------------------------------------------------------------------------------
# normalization
def _only_first(w: Any, node: Node, name: Any) -> list:
    """The outputs of an op whose statistics beyond the first output only gradients use."""
    return [w.item(name, i, v.type if i == 0 else None) for i, v in enumerate(node.outputs)]


@rule("batch_norm_infer")
def _batch_norm(w, node, inputs):
    x, out = node.inputs[0].type, _types(node)
    names = list(inputs)
    if node.attrs["data_format"] == "NHWC":
        return _normalized(w, node, names)
    middle = x
    if x.rank not in (2, 4):
        middle = _type(x, (x.shape[0], x.shape[1], math.prod(x.shape[2:]) if x.rank > 2 else 1, 1))
        if sum(n < 0 for n in x.shape) > 1 or any(n < 0 for n in x.shape[1:]):
            raise Unsupported("batch normalization with image sizes that are not known")
        names[0] = w.op("Reshape", names[0], middle.shape, out=middle)
    name = w.op("BatchNorm", *names, False, node.attrs["epsilon"], 0.1, 0)
    name = w.item(name, 0, middle)
    return name if middle is x else w.op("Reshape", name, x.shape, out=out)


def _normalized(w: Any, node: Node, names: list) -> Any:
    """Batch normalization over the last dimension, out of elementwise operators."""
    x, scale, bias, mean, variance = names
    vector, out = node.inputs[1].type, _types(node)
    shifted = w.op("Add", variance, _constant(node.attrs["epsilon"], vector.dtype), out=vector)
    factor = w.op("Mul", scale, w.op("Rsqrt", shifted, out=vector), out=vector)
    return w.op("Add", w.op("Mul", w.op("Sub", x, mean, out=out), factor, out=out), bias, out=out)


def _vector(w: Any, name: Any, value: float, shape: Sequence[int], dtype: DType) -> Any:
    """A weight, or a constant one where the op has none."""
    return Tensor(np.full(shape, value, np.float32), dtype) if name is None else name


@rule("layer_norm")
def _layer_norm(w, node, inputs):
    x = node.inputs[0].type
    axis = node.attrs["begin_norm_axis"] % x.rank
    gamma = _vector(w, inputs[1], 1, x.shape[axis:], x.dtype)
    beta = _vector(w, inputs[2], 0, x.shape[axis:], x.dtype)
    return _only_first(w, node, w.op("LayerNorm", inputs[0], gamma, beta, axis, axis, node.attrs["epsilon"]))


@rule("group_norm")
def _group_norm(w, node, inputs):
    x = node.inputs[0].type
    gamma = _vector(w, inputs[1], 1, x.shape[1:2], x.dtype)
    beta = _vector(w, inputs[2], 0, x.shape[1:2], x.dtype)
    name = w.op("GroupNorm", inputs[0], node.attrs["num_groups"], gamma, beta, node.attrs["eps"])
    return _only_first(w, node, name)


@rule("rms_norm")
def _rms_norm(w, node, inputs):
    x, gamma = (v.type for v in node.inputs)
    axes = tuple(range(x.rank - gamma.rank, x.rank))
    spread = node.outputs[1].type
    mean = w.op("ReduceMean", w.op("Square", inputs[0], out=x), axes, True, out=spread)
    factor = w.op(
        "Rsqrt", w.op("Add", mean, _constant(node.attrs["epsilon"], x.dtype), out=spread), out=spread
    )
    return [w.op("Mul", w.op("Mul", inputs[0], factor, out=x), inputs[1], out=x), factor]


# ---------------------------------------------------------------------------------------------------- control
# flow
@rule("call")
def _call(w, node, inputs):
    return w.inline(node.attrs["graph"], inputs)


@rule("cond")
def _cond(w, node, inputs):
    *values, condition = inputs
    types = [v.type for v in node.inputs[:-1]]
    out = [v.type for v in node.outputs]
    branches = []
    for label, graph in (("true", node.attrs["then"]), ("false", node.attrs["otherwise"])):
        name = w.model.declare(label)
        w.model.define(name, types, _region(graph, out), out[0] if len(out) == 1 else tuple(out))
        branches.append((name, values))
    condition = _condition(w, condition, node.inputs[-1].type)
    return w.results(w.choose(condition, *branches, out=out[0] if len(out) == 1 else tuple(out)), out)


def _region(graph: Graph, out: Sequence[TensorType]) -> Callable:
    return lambda w, inputs: w.result(w.inline(graph, inputs), out)


def _condition(w: Any, name: Any, type: TensorType) -> Any:
    """A condition as Switch takes it: a bool tensor without dimensions."""
    return _cast(w, _reshape(w, name, type, ()), type, dtypes.bool_)


@rule("while_loop")
def _while_loop(w, node, inputs):
    """A graph that tests and goes to the body, which ends in a call of it, or to the end, which returns the
    values.
    """
    test, body, carried = _attributes(node, "test", "body", "carried")
    types = [v.type for v in body.parameters]
    out_types = types[:carried]
    out = out_types[0] if carried == 1 else tuple(out_types)
    header, again, done = (w.model.declare(label) for label in ("while", "body", "after"))

    def build_header(g, values):
        (condition,) = g.inline(test, values)
        condition = _condition(g, condition, test.outputs[0].type)
        return g.choose(condition, (again, values), (done, values[:carried]), out)

    def build_body(g, values):
        new = g.inline(body, values)
        return g.call("CNode", header, (*new, *values[carried:]), out)

    w.model.define(header, types, build_header, out)
    w.model.define(done, out_types, lambda g, values: g.result(values, out_types), out)
    w.model.define(again, types, build_body, out)
    return w.results(w.call("CNode", header, inputs, out), out_types)


@rule("scan")
def _scan(w, node, inputs):
    """Unrolled, as MindSpore does with recurrent layers."""
    body, carried, scanned, backwards = _attributes(node, "body", "carried", "scanned", "reverse")
    columns = inputs[carried : carried + scanned]
    types = [v.type for v in node.inputs[carried : carried + scanned]]
    length = types[0].shape[0]
    if length < 1:
        raise Unsupported("scan with a number of rounds that is not known")
    values, rest = list(inputs[:carried]), inputs[carried + scanned :]
    made: list[list] = [[] for _ in node.outputs[carried:]]
    for i in range(length - 1, -1, -1) if backwards else range(length):
        rows = [_row(w, name, type, i) for name, type in zip(columns, types)]
        results = w.inline(body, [*values, *rows, *rest])
        values = results[:carried]
        for row, result in zip(made, results[carried:]):
            row.append(result)
    for rows in made:
        if backwards:
            rows.reverse()
    stacked = [
        w.primitive("Stack", w.tuple(rows), out=v.type, axis=0, N=length, num=length)
        for rows, v in zip(made, node.outputs[carried:])
    ]
    return [*values, *stacked]


def _row(w: Any, name: Any, type: TensorType, index: int) -> Any:
    part = (1, *type.shape[1:])
    row = _slice(w, name, (index, *(0 for _ in part[1:])), part, (1,) * type.rank, _type(type, part))
    return w.op("Squeeze", row, (0,), out=_type(type, part[1:]))
