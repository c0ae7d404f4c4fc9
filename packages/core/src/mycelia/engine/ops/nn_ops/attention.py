"""Scaled dot-product attention: fused forward and gradient that never hold a whole matrix of scores."""

import math
from functools import partial

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.arrays import masks as _masks
from mycelia.engine.ops.arrays.axes import swapaxes
from mycelia.engine.ops.arrays.create import arange
from mycelia.engine.ops.arrays.shape import constant
from mycelia.engine.ops.define import op
from mycelia.engine.ops.double_backward import double_backward
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import broadcast_shapes
from mycelia.engine.ops.linalg import products as _linalg
from mycelia.engine.ops.random.draws import _drop_threshold, _np_words
from mycelia.engine.ops.random.generator import _draw_key
from mycelia.engine.ops.reductions import softmaxes as _softmaxes
from mycelia.engine.ops.reductions.moments import logsumexp


def _np_causal(rows, columns):
    """True where a query may look: at keys up to its own position."""
    return np.arange(columns) <= np.arange(rows)[:, None]


def _np_scores(query, key, mask, *, scale, is_causal, masking, hidden):
    """The scores and where they were replaced (None: nowhere)."""
    scores = query @ np.swapaxes(key, -1, -2) * query.dtype.type(scale)
    replaced = None
    for added in _np_masks(mask, is_causal, query.dtype.type(hidden), scores.shape[-2:]):
        if masking == "add":
            scores = scores + added
        else:
            here = np.broadcast_to(added != 0, scores.shape)
            scores = np.where(here, added, scores)
            replaced = here if replaced is None else replaced | here
    return scores, replaced


def _np_masks(mask, is_causal, hidden, shape):
    if mask is not None:
        yield mask
    if is_causal:
        yield np.where(_np_causal(*shape), hidden.dtype.type(0), hidden)


def _np_kept(rng_key, shape, p, dtype):
    """Dropout factors of the weights: 0 or ``1 / (1 - p)``. Each row of weights starts a new Philox block."""
    columns = -(-shape[-1] // 4) * 4
    words = _np_words(rng_key, math.prod(shape[:-1]) * columns).reshape(*shape[:-1], columns)[
        ..., : shape[-1]
    ]
    return np.where(words >= np.uint32(_drop_threshold(p)), dtype.type(1 / (1 - p)), dtype.type(0))


def _np_weights(scores, log_sum):
    """The softmax of scores; a row whose sum is 0 has weights of zero. `log_sum` says which: else it is too
    coarse for large scores.
    """
    peak = scores.max(-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - peak)
        weights = weights / weights.sum(-1, keepdims=True)
    return np.where(log_sum[..., None] == -np.inf, scores.dtype.type(0), weights)


def _score_count(query, key, is_causal):
    """How many pairs of a query and a key are looked at."""
    return math.prod(query.shape[:-1]) * key.shape[-2] // (2 if is_causal else 1)


@op(name="attention", outputs=2)
def _attention(
    query, key, value, mask: "tensor?" = None, rng_key: "tensor?" = None,
    *, scale: "float", is_causal: "bool" = False, p: "float" = 0.0,
    masking: "add|replace" = "add", hidden: "float" = -math.inf, unseen: "zero|nan" = "zero",
):  # fmt: skip
    """``softmax(scale * query key^T + mask) value``, weights dropped with probability
    `p` by the key `rng_key`.

    `is_causal` adds `hidden` to the score of key j for query i where j > i. With `masking` "replace" elements
    of the mask other than 0, and `hidden`, take the place of scores. A query that sees no key, whose scores
    are all -inf, has weights of zero or, as `unseen` says, of NaN, as a softmax gives them.
    Shapes: query [..., T, D], key [..., S, D], value [..., S, E], mask broadcastable to [..., T, S] ->
    [..., T, E], and the logarithms of the softmax sums [..., T].  dtypes: floating.
    Errors: ValueError if shapes disagree.
    Source: Vaswani et al. 2017; tiles as in Dao et al. 2022.
    """
    if query.size == 0 or key.size == 0:
        y = np.zeros((*query.shape[:-1], value.shape[-1]), query.dtype)
        return y, np.full(query.shape[:-1], -np.inf, query.dtype)
    scores, _ = _np_scores(query, key, mask, scale=scale, is_causal=is_causal, masking=masking, hidden=hidden)
    peak = scores.max(-1, keepdims=True)
    if unseen == "zero":
        peak = np.where(peak == -np.inf, 0, peak)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_sum = (np.log(np.exp(scores - peak).sum(-1, keepdims=True)) + peak)[..., 0]
    weights = _np_weights(scores, log_sum)
    if p:
        weights = weights * _np_kept(rng_key, weights.shape, p, query.dtype)
    return weights @ value, log_sum


@_attention.infer
def _attention(query, key, value, mask, rng_key, *, p, **settings):
    if query.rank < 2 or query.rank != key.rank or query.rank != value.rank:
        raise ValueError(
            "query, key and value must have one rank of 2 or more,"
            f" got {query.shape}, {key.shape}, {value.shape}"
        )
    if query.shape[:-2] != key.shape[:-2] or query.shape[:-2] != value.shape[:-2]:
        raise ValueError(
            "query, key and value must agree in the leading axes,"
            f" got {query.shape}, {key.shape}, {value.shape}"
        )
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"query and key must agree in the last axis, key and value in the axis before it,"
            f" got {query.shape}, {key.shape}, {value.shape}"
        )
    scores = (*query.shape[:-1], key.shape[-2])
    if mask is not None and broadcast_shapes(mask.shape, scores) != scores:
        raise ValueError(f"mask must broadcast to {scores}, got {mask.shape}")
    if not 0 <= p < 1:
        raise ValueError(f"p must be in [0, 1), got {p}")
    if p and rng_key is None:
        raise ValueError("rng_key is needed when p is not 0")
    return TensorType(query.dtype, (*query.shape[:-1], value.shape[-1])), TensorType(
        query.dtype, query.shape[:-1]
    )


@_attention.vjp
def _attention(
    cts, outs, query, key, value, mask, rng_key, needs, *, scale, is_causal, p, masking, hidden, unseen
):
    settings = dict(scale=scale, is_causal=is_causal, p=p, masking=masking, hidden=hidden)
    if cts[1] is not None or (mask is not None and needs[3]):
        composition = partial(_attention_composition, rng_key=rng_key, **settings)
        return *double_backward(composition, cts, query, key, value, mask), None
    return (
        *_attention_grad(cts[0], query, key, value, outs[0], outs[1], mask, rng_key, **settings),
        None,
        None,
    )


@_attention.samples
def _attention(rand):
    half = dict(scale=0.5)
    yield rand(2, 3, 5, 4), rand(2, 3, 7, 4), rand(2, 3, 7, 6), half
    yield rand(2, 5, 4), rand(2, 5, 4), rand(2, 5, 4), dict(scale=0.3, is_causal=True)
    yield rand(2, 2, 5, 4), rand(2, 2, 7, 4), rand(2, 2, 7, 4), rand(2, 1, 1, 7), half
    yield (
        rand(3, 4),
        rand(70, 4),
        rand(70, 3),
        rand(3, 70),
        np.array([7, 1], np.int64),
        dict(scale=0.5, p=0.3),
    )
    hidden = np.zeros((3, 5), np.float32)
    hidden[1], hidden[2, 1:] = -np.inf, -np.inf  # a query that sees nothing, a query that sees one key
    yield rand(3, 4), rand(5, 4), rand(5, 4), hidden, dict(scale=0.5, _grad=False)
    yield rand(3, 4), rand(5, 4), rand(5, 4), hidden, dict(scale=0.5, unseen="nan", _grad=False)
    seen = np.where(rand(2, 1, 5) < 0, np.float32(-1e9), np.float32(0))
    yield rand(2, 3, 4), rand(2, 5, 4), rand(2, 5, 4), seen, dict(scale=0.5, masking="replace", _grad=False)
    yield (
        rand(5, 4),
        rand(5, 4),
        rand(5, 4),
        dict(scale=30.0, is_causal=True, masking="replace", hidden=-30.0),
    )
    yield rand(5, 4), rand(5, 4), rand(5, 4), dict(scale=30.0, is_causal=True, hidden=-30.0)
    yield rand(0, 4), rand(5, 4), rand(5, 4), half
    yield rand(1, 67, 9), rand(1, 300, 9), rand(1, 300, 9), dict(scale=1.0, is_causal=True)


@_attention.cost
def _attention(inputs, outputs, *, is_causal, **_):
    query, key, value = inputs[:3]
    return _score_count(query, key, is_causal) * (2 * query.shape[-1] + 2 * value.shape[-1] + 4)


@op(name="attention_grad", outputs=3)
def _attention_grad(
    dy, query, key, value, y, log_sum, mask: "tensor?" = None, rng_key: "tensor?" = None,
    *, scale: "float", is_causal: "bool" = False, p: "float" = 0.0,
    masking: "add|replace" = "add", hidden: "float" = -math.inf,
):  # fmt: skip
    """Gradients of attention with respect to query, key and value;
    the weights are computed again from `log_sum`.

    Scores that were replaced have no gradient.

    Shapes: dy, y [..., T, E], log_sum [..., T], others as attention -> query's, key's, value's.
    dtypes: floating.
    """
    if query.size == 0 or key.size == 0:
        return np.zeros_like(query), np.zeros_like(key), np.zeros_like(value)
    scores, replaced = _np_scores(
        query, key, mask, scale=scale, is_causal=is_causal, masking=masking, hidden=hidden
    )
    weights = _np_weights(scores, log_sum)
    d_weights = dy @ np.swapaxes(value, -1, -2)
    kept = weights
    if p:
        factors = _np_kept(rng_key, weights.shape, p, query.dtype)
        kept, d_weights = weights * factors, d_weights * factors
    d_scores = weights * (d_weights - (d_weights * weights).sum(-1, keepdims=True))
    if replaced is not None:
        d_scores = np.where(replaced, query.dtype.type(0), d_scores)
    d_scores = d_scores * query.dtype.type(scale)
    return d_scores @ key, np.swapaxes(d_scores, -1, -2) @ query, np.swapaxes(kept, -1, -2) @ dy


@_attention_grad.infer
def _attention_grad(dy, query, key, value, *others, **settings):
    return query, key, value


@_attention_grad.vjp
def _attention_grad(cts, dy, query, key, value, mask, rng_key, *, scale, is_causal, p, masking, hidden):
    settings = dict(scale=scale, is_causal=is_causal, p=p, masking=masking, hidden=hidden)
    forward = partial(_attention_composition, rng_key=rng_key, **settings)

    def gradient(dy, query, key, value, mask):
        return tuple(double_backward(forward, (dy, None), query, key, value, mask)[:3])

    *found, d_mask = double_backward(gradient, cts, dy, query, key, value, mask)
    return *found, None, None, d_mask, None


@_attention_grad.samples
def _attention_grad(rand):
    # y and log_sum are functions of the other inputs, so finite differences do not apply here.
    def case(dy, *inputs, **settings):
        found = _attention.definition.body(*inputs, *[None] * (5 - len(inputs)), **settings)
        settings.pop("unseen", None)
        return dy, *inputs[:3], *found, *inputs[3:], dict(settings, _grad=False)

    yield case(rand(2, 5, 6), rand(2, 5, 4), rand(2, 7, 4), rand(2, 7, 6), scale=0.5)
    long = rand(2, 67, 4), rand(2, 67, 4), rand(2, 300, 4), rand(2, 300, 4)
    yield case(*long, scale=0.3, is_causal=True)
    masked = rand(3, 6), rand(3, 4), rand(7, 4), rand(7, 6), rand(3, 7)
    yield case(*masked, np.array([7, 1], np.int64), scale=0.5, p=0.3)
    seen = np.where(rand(3, 7) < 0, np.float32(-1e9), np.float32(0))
    seen[1] = -1e9
    yield case(*masked[:4], seen, scale=0.5, masking="replace")


@_attention_grad.cost
def _attention_grad(inputs, outputs, *, is_causal, **_):
    query, key, value = inputs[1:4]
    return _score_count(query, key, is_causal) * (6 * query.shape[-1] + 4 * value.shape[-1] + 8)


@op(name="attention_kept", nondiff=True)
def _attention_kept(rng_key, *, shape: "ints", p: "float", dtype: "dtype" = dtypes.float32):
    """The dropout factors that attention applies to its weights: 0 or ``1 / (1 - p)``.

    Shapes: rng_key int64 [2] -> `shape` [..., T, S].  dtypes: floating.
    """
    return _np_kept(rng_key, shape, p, dtype.np)


@_attention_kept.infer
def _attention_kept(rng_key, *, shape, p, dtype):
    if not 0 <= p < 1 or not shape:
        raise ValueError(f"p must be in [0, 1) and shape not empty, got {p} and {shape}")
    return TensorType(dtype, shape)


@_attention_kept.samples
def _attention_kept(rand):
    yield np.array([7, 1], np.int64), dict(shape=(2, 3, 5), p=0.3)


def _attention_composition(query, key, value, mask, *, rng_key, scale, is_causal, p, masking, hidden):
    """attention out of public ops."""
    scores = _linalg.matmul(query, swapaxes(key, -1, -2)) * scale
    causal = None
    if is_causal:
        seen = arange(key.shape[-2]) <= arange(query.shape[-2]).reshape(-1, 1)
        zero, low = (constant(v, dtypes.float64) for v in (0.0, hidden))
        causal = cast(_masks.where(seen, zero, low), dtype=query.dtype)
    for added in (mask, causal):
        if added is not None:
            scores = scores + added if masking == "add" else _masks.where(added != 0, added, scores)
    weights = _softmaxes.softmax(scores, -1)
    log_sum = logsumexp(scores, -1)
    if p:
        weights = weights * _attention_kept(rng_key, shape=tuple(weights.shape), p=p, dtype=query.dtype)
    return _linalg.matmul(weights, value), log_sum


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None
):
    """``softmax(scale * query key^T + mask) value``, the attention of transformers.

    `attn_mask` is boolean (True = may look) or added to the scores; `is_causal` hides key j from query i
    where j > i; `scale` is ``1 / sqrt(D)`` by default.
    Shapes: query [..., T, D], key [..., S, D], value [..., S, E], attn_mask broadcastable to
    [..., T, S] -> [..., T, E].
    dtypes: floating.  Errors: ValueError if shapes disagree.
    """
    if attn_mask is not None and attn_mask.dtype.is_bool:
        attn_mask = cast(_masks.where(attn_mask, 0.0, -math.inf), query.dtype)
    rng_key = _draw_key() if dropout_p else None
    scale = 1.0 / math.sqrt(max(1, query.shape[-1])) if scale is None else float(scale)
    return _attention(
        query, key, value, attn_mask, rng_key, scale=scale, is_causal=is_causal, p=float(dropout_p)
    )[0]


__all__ = []
