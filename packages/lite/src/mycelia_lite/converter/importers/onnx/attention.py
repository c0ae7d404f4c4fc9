"""ONNX's attention, rotary embeddings and caches of keys and values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    as_tensor,
    cast,
    is_number,
    known_shape,
    operator,
    positive_axis,
    scalar,
    shape_of,
)
from mycelia_lite.converter.importers.onnx.file import dtype_of


def _heads(call: Call, x: Any, attribute: str) -> Any:
    """[B, S, heads * size] as [B, heads, S, size]."""
    count = call.need(attribute)
    batch, length, width = shape_of(x)
    if not is_number(width) or width % count:
        raise call.attribute(attribute, f"the last axis of the input is {width}")
    return ops.transpose(ops.reshape(x, (batch, length, count, width // count)), (0, 2, 1, 3))


def _repeated(x: Any, times: int) -> Any:
    """Each head of keys or values for several heads of queries."""
    if times == 1:
        return x
    batch, heads, length, size = shape_of(x)
    x = ops.reshape(x, (batch, heads, 1, length, size))
    x = ops.concat([x] * times, 2)
    return ops.reshape(x, (batch, heads * times, length, size))


def _minus_infinity(mask: Any, like: Any) -> Any:
    """0 where a mask holds, else minus infinity."""
    return ops.where(mask, scalar(0.0, like), scalar(-np.inf, like))


@operator("Attention")
def _attention(
    call, q, k, v, mask=None, past_key=None, past_value=None, lengths=None
):  # fmt: skip
    """softmax(q k^T scale + mask) v, softcapped; keys and values may follow those of the past."""
    flat = q.ndim == 3
    heads, groups = call.get("q_num_heads"), call.get("kv_num_heads")
    causal, cap = call.get("is_causal", 0), call.get("softcap", 0.0)
    mode = call.choice("qk_matmul_output_mode", 0, (0, 1, 2, 3))
    precision = call.get("softmax_precision")
    if flat:
        q = _heads(call, q, "q_num_heads")
        k, v = (_heads(call, x, "kv_num_heads") for x in (k, v))
    size = known_shape(call, q, (3,))[3]
    scale = call.get("scale", 1 / math.sqrt(size))
    heads, groups = known_shape(call, q, (1,))[1], known_shape(call, k, (1,))[1]
    if heads % groups:
        raise call.fail(f"{heads} heads of queries do not fit {groups} of keys")
    past = 0
    if past_key is not None:
        past = known_shape(call, past_key, (2,))[2]
        k, v = ops.concat([past_key, k], 2), ops.concat([past_value, v], 2)
    key, value = k, v
    bias = None
    if mask is not None:
        mask = as_tensor(mask)
        if mask.dtype == ms.bool_:
            mask = _minus_infinity(mask, q)
        lacking = None
        if is_number(shape_of(mask)[-1]) and is_number(shape_of(k)[2]):
            lacking = shape_of(k)[2] - shape_of(mask)[-1]
        if lacking:
            rest = ms.Tensor(np.full((*known_shape(call, mask)[:-1], lacking), -np.inf, q.dtype.np))
            mask = ops.concat([mask, rest], mask.ndim - 1)
        bias = cast(mask, q.dtype)
    if causal:
        rows, columns = known_shape(call, q, (2,))[2], known_shape(call, k, (2,))[2]
        seen = np.arange(columns) <= np.arange(rows)[:, None] + past
        below = ms.Tensor(np.where(seen, 0, -np.inf).astype(q.dtype.np))
        bias = below if bias is None else ops.add(bias, below)
    if lengths is not None:
        columns = known_shape(call, k, (2,))[2]
        inside = ops.less(ms.Tensor(np.arange(columns)), ops.reshape(cast(lengths, ms.int64), (-1, 1, 1, 1)))
        padded = _minus_infinity(inside, q)
        bias = padded if bias is None else ops.add(bias, padded)
    k, v = (_repeated(x, heads // groups) for x in (k, v))
    root = math.sqrt(abs(scale))
    left = ops.mul(q, scalar(math.copysign(root, scale), q))
    scores = ops.matmul(left, ops.transpose(ops.mul(k, scalar(root, k)), (0, 1, 3, 2)))
    stages = [scores]
    scores = scores if bias is None else ops.add(scores, bias)
    stages.append(scores)
    if cap:
        bound = scalar(cap, scores)
        scores = ops.mul(ops.tanh(ops.div(scores, bound)), bound)
    stages.append(scores)
    if precision:
        scores = cast(scores, dtype_of(precision, f"node '{call.name}' (Attention): its softmax"))
    weights = ops.softmax(scores, -1)
    stages.append(weights)
    y = cast(ops.matmul(cast(weights, v.dtype), v), q.dtype)
    if flat:
        batch, count, length, width = shape_of(y)
        y = ops.reshape(ops.transpose(y, (0, 2, 1, 3)), (batch, length, count * width))
    return y, key, value, cast(stages[mode], q.dtype)


@operator("RotaryEmbedding")
def _rotary(call, x, cosines, sines, positions=None):
    """Pairs of the first elements of each head, turned by the angle of their position."""
    interleaved = call.get("interleaved", 0)
    heads, flat = call.get("num_heads", 0), x.ndim == 3
    if flat:
        x = _heads(call, x, "num_heads")
    batch, heads, length, size = shape_of(x)
    turned = call.get("rotary_embedding_dim", 0) or size
    if not is_number(turned) or turned % 2:
        raise call.attribute("rotary_embedding_dim", "it must be an even number")
    if positions is not None:
        cosines, sines = (ops.gather(table, positions, 0) for table in (cosines, sines))
    cosines, sines = (ops.reshape(t, (shape_of(t)[0], 1, *shape_of(t)[1:])) for t in (cosines, sines))
    part, rest = (x, None) if turned == size else (x[..., :turned], x[..., turned:])
    if interleaved:
        pairs = ops.reshape(part, (batch, heads, length, turned // 2, 2))
        a, b = pairs[..., 0], pairs[..., 1]
    else:
        a, b = part[..., : turned // 2], part[..., turned // 2 :]
    real = ops.sub(ops.mul(cosines, a), ops.mul(sines, b))
    imaginary = ops.add(ops.mul(sines, a), ops.mul(cosines, b))
    if interleaved:
        y = ops.reshape(ops.stack([real, imaginary], -1), (batch, heads, length, turned))
    else:
        y = ops.concat([real, imaginary], 3)
    if rest is not None:
        y = ops.concat([y, rest], 3)
    if flat:
        y = ops.reshape(ops.transpose(y, (0, 2, 1, 3)), (batch, length, heads * size))
    return y


@operator("TensorScatter")
def _tensor_scatter(call, cache, update, places=None):
    """`cache` with `update` written along an axis from each example's place on, maybe around the end."""
    axis = positive_axis(call, call.get("axis", -2), cache.ndim)
    circular = call.choice("mode", "linear", ("linear", "circular")) == "circular"
    if axis == 0:
        raise call.attribute("axis", "the first axis is the batch")
    shape = known_shape(call, update)
    whole = known_shape(call, cache, (axis,))[axis]
    at = ms.Tensor(np.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(cache.ndim)]))
    if places is not None:
        first = ops.reshape(cast(places, ms.int64), (-1, *(1,) * (cache.ndim - 1)))
        at = ops.add(at, first)
        if circular:
            at = ops.floor_mod(at, scalar(whole, at))
    index = ops.broadcast_to(at, shape)
    return ops.tensor_scatter_elements(cache, index, update, axis, "none")
