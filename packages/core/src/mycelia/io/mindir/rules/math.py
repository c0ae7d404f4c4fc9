"""Rules of arithmetic, reductions, matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir import TensorType
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.mindir.rules.table import (
    attributes,
    cast_to,
    reshape_to,
    result_type,
    rule,
    scalar,
    shaped,
)
from mycelia.io.mindir.values import id_of_dtype

# ---- elementwise ------------------------------------------------------------------------------


@rule("div")
def _div(w, node, inputs):
    return w.op("Div", *inputs, out=result_type(node))


@rule("flip")
def _flip(w, node, inputs):
    return w.op("ReverseV2", inputs[0], node.attrs["dims"], out=result_type(node))


@rule("cast")
def _cast_rule(w, node, inputs):
    return w.op("Cast", inputs[0], id_of_dtype(node.attrs["dtype"]), out=result_type(node))


@rule("clip")
def _clip(w, node, inputs):
    low, high = attributes(node, "min", "max")
    name, type = inputs[0], result_type(node)
    if low is not None:
        name = w.op("Maximum", name, scalar(low, type.dtype), out=type)
    if high is not None:
        name = w.op("Minimum", name, scalar(high, type.dtype), out=type)
    return name


@rule("exp2")
def _exp2(w, node, inputs):
    type = result_type(node)
    return w.op("Pow", scalar(2, type.dtype), inputs[0], out=type)


@rule("log2", "log10")
def _log_to_base(w, node, inputs):
    type, base = result_type(node), 2 if node.op.name == "log2" else 10
    return w.op("Mul", w.op("Log", inputs[0], out=type), scalar(1 / math.log(base), type.dtype), out=type)


@rule("logaddexp", "logaddexp2")
def _logaddexp(w, node, inputs):
    type = result_type(node)
    names = list(inputs)
    base = 1.0 if node.op.name == "logaddexp" else math.log(2)
    if base != 1.0:
        names = [w.op("Mul", n, scalar(base, type.dtype)) for n in names]
    distance = w.op("Abs", w.op("Sub", *names, out=type), out=type)
    rest = w.op("Log1p", w.op("Exp", w.op("Neg", distance, out=type), out=type), out=type)
    name = w.op("Add", w.op("Maximum", *names, out=type), rest, out=type)
    return name if base == 1.0 else w.op("Div", name, scalar(base, type.dtype), out=type)


@rule("fill_like")
def _fill_like(w, node, inputs):
    type = result_type(node)
    value = scalar(node.attrs["value"], type.dtype)
    if type.size == 0:
        return w.constant(Tensor(np.zeros(type.shape, np.float32), type.dtype))
    if type.is_static:
        return w.op("BroadcastTo", value, type.shape, out=type)
    zeros = cast_to(w, w.op("ZerosLike", inputs[0], out=node.inputs[0].type), node.inputs[0].type, type.dtype)
    return w.op("Add", zeros, value, out=type)


@rule("isposinf", "isneginf")
def _is_signed_inf(w, node, inputs):
    type = node.inputs[0].type
    infinity = math.inf if node.op.name == "isposinf" else -math.inf
    return w.op("Equal", inputs[0], scalar(infinity, type.dtype), out=result_type(node))


@rule("require")
def _require(w, node, inputs):
    return inputs[0]  # the file carries no assertions


@rule("scale_gradient")
def _scale_gradient(w, node, inputs):
    return inputs[0]


# ---- reductions --------------------------------------------------------------------------------


@rule("mean", "prod", "reduce_max", "reduce_min", "all", "any")
def _reduce(w, node, inputs):
    keep = node.attrs.get("keep_dims", node.attrs.get("keepdims"))
    source, type = node.inputs[0].type, result_type(node)
    name = inputs[0]
    if node.op.name == "prod":
        name = cast_to(w, name, source, type.dtype)
    return w.op(node.op.definition.mindir, name, node.attrs["axis"] or (), keep, out=type)


@rule("sum")
def _sum(w, node, inputs):
    dim, keepdim, dtype = attributes(node, "dim", "keepdim", "dtype")
    return w.op(
        "SumExt",
        inputs[0],
        dim,
        keepdim,
        None if dtype is None else id_of_dtype(dtype),
        out=result_type(node),
    )


@rule("sum_to")
def _sum_to(w, node, inputs):
    source, type = node.inputs[0].type, result_type(node)
    lead = source.rank - type.rank
    ones = (i + lead for i, n in enumerate(type.shape) if n == 1 and source.shape[i + lead] != 1)
    axes = (*range(lead), *ones)
    name = w.op("SumExt", inputs[0], axes, True, id_of_dtype(type.dtype)) if axes else inputs[0]
    return w.op("Reshape", name, type.shape, out=type)


@rule("l2_norm")
def _l2_norm(w, node, inputs):
    axis, keepdims = attributes(node, "axis", "keepdims")
    square = w.op("Square", inputs[0], out=node.inputs[0].type)
    return w.op(
        "Sqrt", w.op("SumExt", square, axis, keepdims, None, out=result_type(node)), out=result_type(node)
    )


@rule("argmax", "argmin")
def _argmax(w, node, inputs):
    axis, keepdims = attributes(node, "axis", "keepdims")
    source, type, name = node.inputs[0].type, result_type(node), inputs[0]
    if axis is None:
        name, axis = reshape_to(w, name, source, (-1,)), 0
    operator = "Argmax" if node.op.name == "argmax" else "Argmin"
    name = w.op(operator, name, axis, id_of_dtype(dtypes.int32))
    name = cast_to(w, name, TensorType(dtypes.int32, type.shape), type.dtype)
    return w.op("Reshape", name, type.shape, out=type) if keepdims else name


@rule("max_with_index", "min_with_index")
def _with_index(w, node, inputs):
    operator = "ArgMaxWithValue" if node.op.name == "max_with_index" else "ArgMinWithValue"
    value, index = (v.type for v in node.outputs)
    pair = w.op(operator, inputs[0], *attributes(node, "axis", "keepdims"))
    return [
        w.item(pair, 1, value),
        cast_to(w, w.item(pair, 0), TensorType(dtypes.int64, index.shape), index.dtype),
    ]


@rule("median")
def _median(w, node, inputs):
    axis, keepdims, ignore_nan = attributes(node, "axis", "keepdims", "ignore_nan")
    value, index = (v.type for v in node.outputs)
    how = dict(global_median=False, axis=axis, keep_dims=keepdims, ignore_nan=ignore_nan)
    pair = w.primitive("Median", inputs[0], **how, out=(value, index))
    return [w.item(pair, 0, value), w.item(pair, 1, index)]


@rule("cumsum", "cumprod")
def _cumulative(w, node, inputs):
    type = result_type(node)
    name = cast_to(w, inputs[0], node.inputs[0].type, type.dtype)
    operator = "CumSum" if node.op.name == "cumsum" else "CumProd"
    return w.op(operator, name, node.attrs["axis"], False, node.attrs.get("reverse", False), out=type)


@rule("cummax", "cummin")
def _cumulative_extreme(w, node, inputs):
    value, index = (v.type for v in node.outputs)
    pair = w.op(node.op.name.capitalize(), inputs[0], node.attrs["axis"])
    return [w.item(pair, 0, value), w.op("Cast", w.item(pair, 1), id_of_dtype(index.dtype), out=index)]


# ---- matrices ----------------------------------------------------------------------------------


@rule("batch_matmul")
def _batch_matmul(w, node, inputs):
    flags, names = attributes(node, "transpose_a", "transpose_b"), list(inputs)
    types = [v.type for v in node.inputs]
    if types[0].shape[:-2] == types[1].shape[:-2]:
        return w.op("BatchMatMul", *names, *flags, out=result_type(node))
    for i, (flag, type) in enumerate(zip(flags, types)):  # BatchMatMul on CPU errs where it broadcasts
        if flag:
            axes = (*range(type.rank - 2), type.rank - 1, type.rank - 2)
            names[i] = w.op("Transpose", names[i], axes, out=shaped(type, [type.shape[a] for a in axes]))
    return w.op("MatMulExt", *names, out=result_type(node))


@rule("bias_add")
def _bias_add(w, node, inputs):
    layout = {"NCHW": 0, "NHWC": 1, "NCDHW": 14}[node.attrs["data_format"]]
    return w.op("BiasAdd", *inputs, layout, out=result_type(node))


@rule("dense")
def _dense(w, node, inputs):
    x, weight = (v.type for v in node.inputs[:2])
    out = result_type(node)
    rows = x.size // x.shape[-1] if x.is_static and x.size else -1
    name = inputs[0] if x.rank == 2 else w.op("Reshape", inputs[0], (-1, x.shape[-1]))
    flat = out if x.rank == 2 else shaped(out, (rows, weight.shape[0]))
    name = w.op("MatMul", name, inputs[1], False, True, out=flat)
    if inputs[2] is not None:
        name = w.op("BiasAdd", name, inputs[2], 0, out=flat)
    if x.rank == 2:
        return name
    target: Any = out.shape
    if target.count(-1) > 1:  # one may be -1, the others are read from x while the file runs
        sizes = w.op("Shape", inputs[0])
        target = w.tuple([w.item(sizes, i) if n == -1 else n for i, n in enumerate(target)])
    return w.op("Reshape", name, target, out=out)


@rule("inverse")
def _inverse(w, node, inputs):
    return w.primitive("MatrixInverse", inputs[0], adjoint=False, out=result_type(node))


@rule("svd")
def _svd(w, node, inputs):
    types = result_type(node)
    found = w.op("Svd", inputs[0], node.attrs["full_matrices"], True, out=types)
    return [w.item(found, i, t) for i, t in enumerate(types)]


@rule("eig")
def _eig(w, node, inputs):
    types = result_type(node)
    found = w.op("Eig", inputs[0], True, out=types)
    return [w.item(found, i, t) for i, t in enumerate(types)]
