"""Rules of activations, convolutions, pooling, normalization, sequences, losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.base.dtypes import DType
from mycelia.engine.ir import Node, TensorType
from mycelia.engine.ops.nn_ops import gru, rnn
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.mindir.rules.table import (
    Unsupported,
    attributes,
    require_static,
    result_type,
    rule,
    scalar,
    shaped,
    traced,
)

# ---- activations -------------------------------------------------------------------------------


@rule("softmax")
def _softmax(w, node, inputs):
    return w.op("Softmax", inputs[0], (node.attrs["axis"],), out=result_type(node))


@rule("gelu")
def _gelu(w, node, inputs):
    type = result_type(node)
    if node.attrs["approximate"] == "tanh":
        return w.op("GeLU", inputs[0], out=type)
    scaled = w.op("Mul", inputs[0], scalar(1 / math.sqrt(2), type.dtype), out=type)
    gate = w.op("Add", w.op("Erf", scaled, out=type), scalar(1, type.dtype), out=type)
    half = w.op("Mul", inputs[0], scalar(0.5, type.dtype), out=type)
    return w.op("Mul", half, gate, out=type)


@rule("leaky_relu")
def _leaky_relu(w, node, inputs):
    type, alpha = result_type(node), node.attrs["alpha"]
    scaled = w.op("Mul", inputs[0], scalar(alpha, type.dtype), out=type)
    return w.op("Maximum" if alpha <= 1 else "Minimum", inputs[0], scaled, out=type)


@rule("hardtanh")
def _hardtanh(w, node, inputs):
    type = result_type(node)
    name = w.op("Minimum", inputs[0], scalar(node.attrs["max_val"], type.dtype), out=type)
    return w.op("Maximum", name, scalar(node.attrs["min_val"], type.dtype), out=type)


@rule("softplus")
def _softplus(w, node, inputs):
    type, (beta, threshold) = result_type(node), attributes(node, "beta", "threshold")
    scaled = inputs[0] if beta == 1 else w.op("Mul", inputs[0], scalar(beta, type.dtype), out=type)
    smooth = w.primitive("Softplus", scaled, out=type)
    if beta != 1:
        smooth = w.op("Div", smooth, scalar(beta, type.dtype), out=type)
    large = w.op("Greater", scaled, scalar(threshold, type.dtype), out=TensorType(dtypes.bool_, type.shape))
    return w.op("Select", large, inputs[0], smooth, out=type)


@rule("logsigmoid")
def _logsigmoid(w, node, inputs):
    type = result_type(node)
    negative = w.op("Neg", inputs[0], out=type)
    return w.op("Neg", w.primitive("Softplus", negative, out=type), out=type)


@rule("threshold")
def _threshold(w, node, inputs):
    type, (limit, value) = result_type(node), attributes(node, "thr", "value")
    over = w.op("Greater", inputs[0], scalar(limit, type.dtype), out=TensorType(dtypes.bool_, type.shape))
    filler = w.op("Add", w.op("ZerosLike", inputs[0], out=type), scalar(value, type.dtype), out=type)
    return w.op("Select", over, inputs[0], filler, out=type)


# ---- convolutions ------------------------------------------------------------------------------


def _pairs(pads: Sequence[int], rank: int) -> tuple[int, ...]:
    """Begins then ends -> begin and end of each dimension."""
    return tuple(n for pair in zip(pads[:rank], pads[rank:]) for n in pair)


def _full(values: Sequence[int], count: int) -> tuple[int, ...]:
    return tuple(values) * count if len(values) == 1 else tuple(values)


@rule("conv")
def _conv(w, node, inputs):
    x, weight = (v.type for v in node.inputs[:2])
    out, rank = result_type(node), x.rank - 2
    stride, dilation = (_full(node.attrs[n], rank) for n in ("stride", "dilation"))
    pads, group = _full(node.attrs["pad"], 2 * rank), node.attrs["group"]
    kernel, names = weight.shape[2:], list(inputs[:2])
    if rank == 1:  # a picture of height 1
        names = [w.op("ExpandDims", n, 2) for n in names]
        kernel, stride, dilation, pads = (1, *kernel), (1, *stride), (1, *dilation), (0, pads[0], 0, pads[1])
        out = shaped(out, (*out.shape[:2], 1, out.shape[2]))
    spatial = len(kernel)
    pairs = _pairs(pads, spatial)
    mode = "pad" if any(pairs) else "valid"
    common = dict(
        kernel_size=kernel, mode=1, out_channel=weight.shape[0], pad=pairs, pad_mode=mode, pad_list=pairs,
        groups=group, group=group,
    )  # fmt: skip
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
    return w.op("Squeeze", name, (2,), out=result_type(node)) if rank == 1 else name


@rule("conv_input_grad")
def _conv_transpose(w, node, inputs):
    """The transposed convolution is the gradient of the convolution in its input."""
    dy, weight = (v.type for v in node.inputs[:2])
    out, rank = result_type(node), dy.rank - 2
    stride, dilation = (_full(node.attrs[n], rank) for n in ("stride", "dilation"))
    pads, group = _full(node.attrs["pad"], 2 * rank), node.attrs["group"]
    kernel, names, type = weight.shape[2:], list(inputs[:2]), out
    require_static(node, out)
    if rank == 1:
        names = [w.op("ExpandDims", n, 2) for n in names]
        kernel, stride, dilation, pads = (1, *kernel), (1, *stride), (1, *dilation), (0, pads[0], 0, pads[1])
        type = shaped(out, (*out.shape[:2], 1, out.shape[2]))
    if len(kernel) != 2:
        raise Unsupported("transposed convolution over three dimensions")
    pairs = _pairs(pads, 2)
    name = w.primitive(
        "Conv2DTranspose", *names, type.shape, out=type, kernel_size=kernel, mode=1,
        out_channel=weight.shape[0], pad=pairs, pad_mode="PAD" if any(pairs) else "VALID", pad_list=pairs,
        stride=(1, 1, *stride), dilation=(1, 1, *dilation), group=group, groups=group, format="NCHW",
    )  # fmt: skip
    return w.op("Squeeze", name, (2,), out=out) if rank == 1 else name


# ---- pooling -----------------------------------------------------------------------------------


def _windows(node: Node) -> tuple:
    """(size, kernel, stride, begins, ends); `ends` covers windows that reach over the padding."""
    x, y = node.inputs[0].type, node.outputs[0].type
    rank = x.rank - 2
    kernel, stride = (_full(node.attrs[n], rank) for n in ("kernel", "stride"))
    pads = _full(node.attrs["pad"], 2 * rank)
    begins, ends = pads[:rank], list(pads[rank:])
    if any(n < 0 for n in (*x.shape[2:], *y.shape[2:])):
        if node.attrs["ceil"]:
            raise Unsupported(f"{node.op.name} with ceil_mode and image sizes that are not known")
        return x.shape[2:], kernel, stride, begins, tuple(ends)
    for d, n in enumerate(x.shape[2:]):
        reach = (y.shape[2 + d] - 1) * stride[d] + kernel[d]
        ends[d] = max(ends[d], reach - n - begins[d])
    return x.shape[2:], kernel, stride, begins, tuple(ends)


def _border(
    w: Any, name: Any, type: TensorType, begins: Sequence[int], ends: Sequence[int], value: float
) -> Any:
    """The data with a border around its spatial dimensions."""
    if not any((*begins, *ends)):
        return name
    pads = tuple(n for b, e in zip(reversed(begins), reversed(ends)) for n in (b, e))
    size = (n if n < 0 else n + b + e for n, b, e in zip(type.shape[2:], begins, ends))
    out = shaped(type, (*type.shape[:2], *size))
    filler = scalar(value, type.dtype)
    return w.primitive("PadV3", name, pads, filler, out=out, mode="constant", paddings_contiguous=True)


def pool(
    w: Any, operator: str, name: Any, kernel: Sequence[int], stride: Sequence[int], out: TensorType
) -> Any:
    """A pooling without padding over one to three dimensions."""
    rank = len(kernel)
    if rank == 3:
        sizes = dict(kernel_size=(1, 1, *kernel), strides=(1, 1, *stride), pad_list=(0,) * 6, ceil_mode=0)
        more = dict(count_include_pad=True, divisor_override=0) if operator == "AvgPool" else {}
        return w.primitive(f"{operator}3D", name, out=out, pad_mode="VALID", format="NCDHW", **sizes, **more)
    if rank == 1:
        flat = shaped(out, (*out.shape[:2], 1, out.shape[2]))
        name = pool(w, operator, w.op("ExpandDims", name, 2), (1, *kernel), (1, *stride), flat)
        return w.op("Squeeze", name, (2,), out=out)
    if operator == "AvgPool":
        return w.op("AvgPool", name, tuple(kernel), tuple(stride), 2, 0, out=out)
    sizes = dict(kernel_size=(1, 1, *kernel), strides=(1, 1, *stride))
    return w.primitive("MaxPool", name, out=out, pad_mode="VALID", format="NCHW", **sizes)


@rule("max_pool")
def _maxpool(w, node, inputs):
    if any(d != 1 for d in node.attrs["dilation"]):
        raise Unsupported("max_pool with dilation")
    name, kernel, stride, _, _ = max_windows(w, node, inputs[0])
    return pool(w, "MaxPool", name, kernel, stride, result_type(node))


def max_windows(w: Any, node: Node, name: Any) -> tuple:
    """The data with a border that no maximum comes from, then kernel, stride, begins, ends of its windows."""
    _, kernel, stride, begins, ends = _windows(node)
    name = _border(w, name, node.inputs[0].type, begins, ends, float(np.finfo(np.float32).min))
    return name, kernel, stride, begins, ends


@rule("avg_pool")
def _avgpool(w, node, inputs):
    """Zeros around the data, averages of whole windows, a correction where a window has fewer elements."""
    x, out = node.inputs[0].type, result_type(node)
    size, kernel, stride, begins, ends = _windows(node)
    rank = len(kernel)
    name = _border(w, inputs[0], x, begins, ends, 0)
    name = pool(w, "AvgPool", name, kernel, stride, out)
    include, divisor = attributes(node, "count_include_pad", "divisor")
    if divisor:
        return w.op("Mul", name, scalar(math.prod(kernel) / divisor, x.dtype), out=out)
    given = _full(node.attrs["pad"], 2 * rank)[rank:]
    if not any((*begins, *ends)) or (include and tuple(given) == ends):
        return name
    require_static(node, x)
    factor = np.ones((1,) * (rank + 2))
    for d in range(rank):
        starts = np.arange(out.shape[2 + d]) * stride[d] - begins[d]
        low, high = (-begins[d], size[d] + given[d]) if include else (0, size[d])
        count = np.minimum(starts + kernel[d], high) - np.maximum(starts, low)
        shape = [1] * (rank + 2)
        shape[2 + d] = -1
        factor = factor * (kernel[d] / count).reshape(shape)
    return w.op("Mul", name, Tensor(factor.astype(np.float32), x.dtype), out=out)


@rule("adaptive_avg_pool")
def _adaptive_avgpool(w, node, inputs):
    x, out, size = node.inputs[0].type, result_type(node), node.attrs["size"]
    if all(n == 1 for n in size):
        return w.op("ReduceMean", inputs[0], tuple(range(2, x.rank)), True, out=out)
    if len(size) == 1:
        name = w.primitive("AdaptiveAvgPool2D", w.op("ExpandDims", inputs[0], 2), output_size=(1, *size))
        return w.op("Squeeze", name, (2,), out=out)
    return w.primitive(f"AdaptiveAvgPool{len(size)}D", inputs[0], out=out, output_size=size)


# ---- normalization -----------------------------------------------------------------------------


def _only_first(w: Any, node: Node, name: Any) -> list:
    """The outputs of an op whose statistics beyond the first only gradients use: those have no name."""
    return [w.item(name, 0, node.outputs[0].type), *(None for _ in node.outputs[1:])]


@rule("batch_norm_infer")
def _batch_norm(w, node, inputs):
    x, out = node.inputs[0].type, result_type(node)
    names = list(inputs)
    if node.attrs["data_format"] == "NHWC":
        return _normalized(w, node, names)
    middle = x
    if x.rank not in (2, 4):
        middle = shaped(x, (x.shape[0], x.shape[1], math.prod(x.shape[2:]) if x.rank > 2 else 1, 1))
        if sum(n < 0 for n in x.shape) > 1 or any(n < 0 for n in x.shape[1:]):
            raise Unsupported("batch normalization with image sizes that are not known")
        names[0] = w.op("Reshape", names[0], middle.shape, out=middle)
    name = w.op("BatchNorm", *names, False, node.attrs["epsilon"], 0.1, 0)
    name = w.item(name, 0, middle)
    return name if middle is x else w.op("Reshape", name, x.shape, out=out)


def _normalized(w: Any, node: Node, names: list) -> Any:
    """Batch normalization over the last dimension, out of elementwise operators."""
    x, scale, bias, mean, variance = names
    vector, out = node.inputs[1].type, result_type(node)
    shifted = w.op("Add", variance, scalar(node.attrs["epsilon"], vector.dtype), out=vector)
    factor = w.op("Mul", scale, w.op("Rsqrt", shifted, out=vector), out=vector)
    return w.op("Add", w.op("Mul", w.op("Sub", x, mean, out=out), factor, out=out), bias, out=out)


@rule("batch_norm_train")
def _batch_norm_train(w, node, inputs):
    """Out of elementwise operators; the moved statistics are results, which the caller assigns."""
    old_mean, old_variance, x, scale, bias = inputs
    type, vector = node.inputs[2].type, node.inputs[3].type
    require_static(node, type)
    channel = 1 if node.attrs["data_format"] == "NCHW" else type.rank - 1
    axes = tuple(d for d in range(type.rank) if d != channel)
    spread = shaped(type, [n if d == channel else 1 for d, n in enumerate(type.shape)])
    mean = w.op("ReduceMean", x, axes, True, out=spread)
    shifted = w.op("Sub", x, mean, out=type)
    variance = w.op("ReduceMean", w.op("Square", shifted, out=type), axes, True, out=spread)
    inverse = w.op(
        "Rsqrt", w.op("Add", variance, scalar(node.attrs["epsilon"], type.dtype), out=spread), out=spread
    )
    factor = w.op("Mul", inverse, w.op("Reshape", scale, spread.shape, out=spread), out=spread)
    y = w.op(
        "Add",
        w.op("Mul", shifted, factor, out=type),
        w.op("Reshape", bias, spread.shape, out=spread),
        out=type,
    )
    count = type.size // type.shape[channel]
    moved = []
    for old, new, unbiased in ((old_mean, mean, 1.0), (old_variance, variance, count / max(count - 1, 1))):
        new = w.op(
            "Mul", w.op("Reshape", new, vector.shape, out=vector), scalar(unbiased, vector.dtype), out=vector
        )
        step = w.op(
            "Mul", w.op("Sub", new, old, out=vector), scalar(node.attrs["momentum"], vector.dtype), out=vector
        )
        moved.append(w.op("Add", old, step, out=vector))
    statistics = [w.op("Reshape", n, vector.shape, out=vector) for n in (mean, inverse)]
    return [*moved, y, *statistics]


def _vector(w: Any, name: Any, value: float, shape: Sequence[int], dtype: DType) -> Any:
    """A weight, or a constant one where the op has none."""
    return Tensor(np.full(shape, value, np.float32), dtype) if name is None else name


@rule("l2_normalize")
def _l2_normalize(w, node, inputs):
    type, (axis, epsilon) = result_type(node), attributes(node, "axis", "epsilon")
    total = w.op("SumExt", w.op("Square", inputs[0], out=type), axis, True, None)
    factor = w.op("Rsqrt", w.op("Maximum", total, scalar(epsilon, type.dtype)))
    return w.op("Mul", inputs[0], factor, out=type)


@rule("layer_norm")
def _layer_norm(w, node, inputs):
    x = node.inputs[0].type
    axis = node.attrs["begin_norm_axis"] % x.rank
    gamma = _vector(w, inputs[1], 1, x.shape[axis:], x.dtype)
    beta = _vector(w, inputs[2], 0, x.shape[axis:], x.dtype)
    name = w.op("LayerNorm", inputs[0], gamma, beta, axis, axis, node.attrs["epsilon"])
    y, mean, inverse = (v.type for v in node.outputs)

    def inverse_deviation() -> Any:
        variance = w.item(name, 2, inverse)
        return w.op("Rsqrt", w.op("Add", variance, scalar(node.attrs["epsilon"], inverse.dtype)), out=inverse)

    return [w.item(name, 0, y), lambda: w.item(name, 1, mean), inverse_deviation]


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
    factor = w.op("Rsqrt", w.op("Add", mean, scalar(node.attrs["epsilon"], x.dtype), out=spread), out=spread)
    return [w.op("Mul", w.op("Mul", inputs[0], factor, out=x), inputs[1], out=x), factor]


# ---- sequences ---------------------------------------------------------------------------------


@rule("lstm_layer")
def _lstm_layer(w, node, inputs):
    """One LSTM operator; its weights are packed as W_ih, W_hh, b_ih + b_hh."""
    x, h0, c0, w_ih, w_hh, b_ih, b_hh = inputs
    types = [v.type if v is not None else None for v in node.inputs]
    y, h = (v.type for v in node.outputs[:2])
    if y.shape[0] < 0:
        raise Unsupported("lstm_layer with a number of steps that is not known")
    hidden, features = types[4].shape[1], types[0].shape[2]
    bias = b_hh if b_ih is None else b_ih
    if b_ih is not None and b_hh is not None:
        bias = w.op("Add", b_ih, b_hh, out=types[5])
    parts = [w.op("Reshape", n, (-1, 1, 1)) for n in (w_ih, w_hh, bias) if n is not None]
    packed = w.op("Concat", w.tuple(parts), 0)
    state = [w.op("ExpandDims", n, 0, out=shaped(h, (1, *h.shape))) for n in (h0, c0)]
    name = w.primitive(
        "LSTM", x, *state, packed, dropout=0.0, proj_size=0, has_bias=bias is not None, num_layers=1,
        hidden_size=hidden, bidirectional=False, input_size=features,
    )  # fmt: skip
    last = [w.op("Squeeze", w.item(name, i), (0,), out=h) for i in (1, 2)]
    return [w.item(name, 0, y), *last, None, None]


@rule("gru_layer", "rnn_layer")
def _unrolled_layer(w, node, inputs):
    """Step by step, as MindSpore writes these layers."""
    composition = {"gru_layer": gru._gru_composition, "rnn_layer": rnn._rnn_composition}[node.op.name]
    if node.inputs[0].type.shape[0] < 0:
        raise Unsupported(f"{node.op.name} with a number of steps that is not known")
    graph = traced(node.op.name, composition, [v and v.type for v in node.inputs], node.attrs.values())
    return [*w.inline(graph, inputs)[:2], *(None for _ in node.outputs[2:])]


@rule("attention")
def _attention(w, node, inputs):
    query, key, value, mask, _ = inputs
    q, k = (i.type for i in node.inputs[:2])
    scale, is_causal, p = attributes(node, "scale", "is_causal", "p")
    if p:
        raise Unsupported("attention with dropout")
    if attributes(node, "masking", "hidden", "unseen") != ("add", -np.inf, "zero"):
        raise Unsupported("attention in a form that only the compiler makes")
    scores = shaped(q, (*q.shape[:-1], k.shape[-2]))
    query = w.op("Mul", query, scalar(scale, q.dtype), out=q)
    name = w.op("BatchMatMul", query, key, False, True, out=scores)
    if is_causal:
        require_static(node, q, k)
        hidden = np.triu(np.full(scores.shape[-2:], -np.inf, np.float32), 1)
        name = w.op("Add", name, Tensor(hidden, q.dtype), out=scores)
    if mask is not None:
        type = node.inputs[3].type
        if type.dtype.is_bool:  # True: may be seen
            shown = w.op("LogicalNot", mask, out=type)
            name = w.op("MaskedFill", name, shown, scalar(-np.inf, q.dtype), out=scores)
        else:
            name = w.op("Add", name, mask, out=scores)
    weights = w.op("Softmax", name, (-1,), out=scores)
    out = node.outputs[0].type
    result = w.op("BatchMatMul", weights, value, False, False, out=out)
    if mask is not None and out.is_static:  # a query that sees no key gives zeros
        peak = shaped(scores, (*scores.shape[:-1], 1))
        best = w.op("ReduceMax", name, (-1,), True, out=peak)
        sees = w.op("Greater", best, scalar(-np.inf, q.dtype), out=TensorType(dtypes.bool_, peak.shape))
        sees = w.op("BroadcastTo", sees, out.shape, out=TensorType(dtypes.bool_, out.shape))
        result = w.op("Select", sees, result, w.op("ZerosLike", result, out=out), out=out)
    return [result, None]


# ---- losses ------------------------------------------------------------------------------------


def _reduced(w: Any, name: Any, type: TensorType, reduction: str, out: TensorType) -> Any:
    axes = tuple(range(type.rank))
    if reduction == "mean":
        return w.op("ReduceMean", name, axes, False, out=out)
    return w.op("ReduceSum", name, axes, False, False, out=out) if reduction == "sum" else name


@rule("squared_error")
def _squared_error(w, node, inputs):
    x = node.inputs[0].type
    square = w.op("Square", w.op("Sub", *inputs, out=x), out=x)
    return _reduced(w, square, x, node.attrs["reduction"], result_type(node))


@rule("softmax_cross_entropy_with_logits")
def _cross_entropy(w, node, inputs):
    pair = w.primitive("SoftmaxCrossEntropyWithLogits", *inputs)
    return [w.item(pair, 0, node.outputs[0].type), lambda: w.item(pair, 1, node.outputs[1].type)]


@rule("sparse_softmax_cross_entropy_with_logits")
def _sparse_cross_entropy(w, node, inputs):
    logits, labels = (v.type for v in node.inputs)
    reduction = node.attrs["reduction"]
    one, zero = scalar(1, logits.dtype), scalar(0, logits.dtype)
    picked = w.op("OneHot", inputs[1], logits.shape[-1], one, zero, -1, out=logits)
    chosen = w.op("Mul", picked, w.op("LogSoftmax", inputs[0], -1, out=logits), out=logits)
    loss = w.op("Neg", w.op("ReduceSum", chosen, (-1,), False, False))
    if reduction != "none":
        loss = w.op("ReduceSum", loss, tuple(range(labels.rank)), False, False)
    count = None
    if reduction == "mean":  # over the labels that are not ignored
        count = w.op("ReduceSum", picked, tuple(range(logits.rank)), False, False)
        count = w.op("Maximum", count, one)
        loss = w.op("Div", loss, count)

    def gradient() -> Any:
        counted = w.op("ReduceSum", picked, (-1,), True, False)  # 0 for what is ignored
        shares = w.op("Mul", w.op("Softmax", inputs[0], (-1,), out=logits), counted, out=logits)
        difference = w.op("Sub", shares, picked, out=logits)
        return difference if count is None else w.op("Div", difference, count, out=logits)

    return [loss, gradient]
