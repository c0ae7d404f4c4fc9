"""Attention, rotary embeddings, caches and losses of ONNX against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from .onnx_files import answers, close


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, bias=0.0, scale=None, cap=0.0):
    repeats = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, repeats, 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5) + bias
    if cap:
        scores = cap * np.tanh(scores / cap)
    return (softmax(scores) @ v).astype(np.float32)


Q, K, V = draw(2, 4, 3, 8), draw(2, 2, 5, 8, seed=1), draw(2, 2, 5, 6, seed=2)


def test_attention_of_grouped_heads_with_a_mask_and_a_cap(tmp_path):
    mask = draw(3, 5, seed=3) > 0
    mask[:, 0] = True
    found = answers(tmp_path, "Attention", [Q, K, V, mask], opset=23, scale=0.3, softcap=2.0)
    close(found[0], attention(Q, K, V, np.where(mask, 0, -np.inf), 0.3, 2.0))


def test_attention_is_causal_behind_the_past(tmp_path):
    past_k, past_v = draw(2, 2, 2, 8, seed=4), draw(2, 2, 2, 6, seed=5)
    whole_k, whole_v = np.concatenate([past_k, K], 2), np.concatenate([past_v, V], 2)
    seen = np.arange(7) <= np.arange(3)[:, None] + 2
    found = answers(tmp_path, "Attention", [Q, K, V, None, past_k, past_v], 3, opset=23, is_causal=1)
    close(found[0], attention(Q, whole_k, whole_v, np.where(seen, 0, -np.inf)))
    close(found[1], whole_k)
    close(found[2], whole_v)


def test_attention_of_flat_heads_and_valid_lengths(tmp_path):
    lengths = np.array([2, 5])
    flat = [x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (Q, K, V)]
    found = answers(
        tmp_path, "Attention", [*flat, None, None, None, lengths], opset=24, q_num_heads=4, kv_num_heads=2
    )
    inside = np.arange(5) < lengths[:, None, None, None]
    wanted = attention(Q, K, V, np.where(inside, 0, -np.inf)).transpose(0, 2, 1, 3).reshape(2, 3, -1)
    close(found[0], wanted)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_attention_tells_its_scores(tmp_path, mode):
    k, v, bias = draw(2, 4, 5, 8, seed=1), draw(2, 4, 5, 8, seed=2), draw(3, 5, seed=3)
    scores = Q @ k.swapaxes(-1, -2) * 8**-0.5
    capped = np.tanh(scores + bias)
    wanted = (scores, scores + bias, capped, softmax(capped))[mode]
    found = answers(
        tmp_path, "Attention", [Q, k, v, bias], 4, opset=23, softcap=1.0, qk_matmul_output_mode=mode
    )
    close(found[3], wanted.astype(np.float32))


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding_turns_pairs(tmp_path, interleaved):
    angles = draw(10, 2, seed=1)
    places = np.array([[3, 0, 9], [1, 1, 2]])
    turned = Q[..., :4].astype(np.float64)
    z = turned[..., ::2] + 1j * turned[..., 1::2] if interleaved else turned[..., :2] + 1j * turned[..., 2:]
    z = z * np.exp(1j * angles[places])[:, None]
    parts = np.stack([z.real, z.imag], -1).reshape(2, 4, 3, 4) if interleaved else None
    parts = np.concatenate([z.real, z.imag], -1) if parts is None else parts
    wanted = np.concatenate([parts, Q[..., 4:]], -1).astype(np.float32)
    tables = [f(angles).astype(np.float32) for f in (np.cos, np.sin)]
    how = dict(interleaved=interleaved, rotary_embedding_dim=4)
    close(answers(tmp_path, "RotaryEmbedding", [Q, *tables, places], opset=23, **how)[0], wanted)


def test_tensor_scatter_goes_around_the_end(tmp_path):
    cache, update, places = draw(2, 3, 5, 4), draw(2, 3, 2, 4, seed=1), np.array([4, 1])
    wanted = cache.copy()
    for b, p in enumerate(places):
        for s in range(2):
            wanted[b, :, (p + s) % 5] = update[b, :, s]
    close(answers(tmp_path, "TensorScatter", [cache, update, places], opset=24, mode="circular")[0], wanted)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_leave_out_what_is_ignored(tmp_path, reduction, weighted):
    scores, target = draw(3, 5, 4), np.random.default_rng(1).integers(0, 5, (3, 4))
    target[0, 0] = -7
    weight = np.array([0.5, 1, 2, 0.25, 1], np.float32)
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    valid = target != -7
    at = np.where(valid, target, 0)
    each = np.where(valid, weight[at] if weighted else 1, 0)
    loss = -np.take_along_axis(logs, at[:, None], 1)[:, 0] * each
    wanted = {"none": loss, "sum": loss.sum(), "mean": loss.sum() / each.sum()}[reduction]
    inputs = [weight] if weighted else []
    how = dict(opset=13, reduction=reduction, ignore_index=-7)
    found = answers(tmp_path, "SoftmaxCrossEntropyLoss", [scores, target, *inputs], 2, **how)
    close(found[0], wanted.astype(np.float32))
    close(found[1], logs.astype(np.float32))
    given = [logs.astype(np.float32), target, *inputs]
    close(answers(tmp_path, "NegativeLogLikelihoodLoss", given, **how)[0], wanted.astype(np.float32))
