"""Connectionist temporal classification against all alignments written out, and greedy decoding."""

import itertools

import numpy as np
import pytest

import mycelia.tensor  # noqa: F401
from mycelia import ops
from mycelia.engine.autodiff.transforms import grad
from mycelia.tensor import Tensor

TARGETS, LENGTHS, SIZES = [[1, 2], [2, 2], [1, 0]], [5, 4, 5], [2, 2, 1]


def log_probabilities():
    logits = np.random.default_rng(1).normal(size=(5, 3, 3))
    return (logits - np.log(np.exp(logits).sum(-1, keepdims=True))).astype(np.float32)


def by_enumeration(log_probs, target, steps):
    """Sum over all label paths of `steps` that collapse to the target."""
    total = 0.0
    for path in itertools.product(range(log_probs.shape[-1]), repeat=steps):
        collapsed = [k for k, _ in itertools.groupby(path) if k != 0]
        if collapsed == list(target):
            total += np.exp(sum(log_probs[t, k] for t, k in enumerate(path)))
    return -np.log(total)


def loss_of(log_probs, reduction="none"):
    targets = Tensor(np.array(TARGETS, np.int32))
    lengths, sizes = (Tensor(np.array(x, np.int32)) for x in (LENGTHS, SIZES))
    return ops.ctc_loss(log_probs, targets, lengths, sizes, reduction=reduction)[0]


def test_loss_counts_every_alignment():
    x = log_probabilities()
    want = [by_enumeration(x[:, n], TARGETS[n][: SIZES[n]], LENGTHS[n]) for n in range(3)]
    np.testing.assert_allclose(loss_of(Tensor(x)).asnumpy(), want, rtol=1e-5)
    np.testing.assert_allclose(
        loss_of(Tensor(x), "mean").asnumpy(), np.mean(np.array(want) / SIZES), rtol=1e-5
    )


def test_gradient_equals_differences():
    x = log_probabilities().astype(np.float64)
    found = grad(lambda v: ops.sum(loss_of(v)))(Tensor(x)).asnumpy()
    for index in itertools.product(*(range(n) for n in x.shape)):
        up, down = x.copy(), x.copy()
        up[index] += 1e-5
        down[index] -= 1e-5
        slope = (loss_of(Tensor(up)).asnumpy().sum() - loss_of(Tensor(down)).asnumpy().sum()) / 2e-5
        assert abs(found[index] - slope) < 1e-7


def test_an_impossible_target_counts_nothing_when_asked():
    x = Tensor(log_probabilities()[:1])
    arguments = Tensor(np.array(TARGETS, np.int32)), (1, 1, 1), (2, 2, 1)
    assert np.isinf(ops.ctc_loss(x, *arguments, reduction="none")[0].asnumpy()[:2]).all()
    assert (ops.ctc_loss(x, *arguments, reduction="none", zero_infinity=True)[0].asnumpy()[:2] == 0).all()


def test_a_label_out_of_range_is_named():
    with pytest.raises(Exception, match="targets must be in"):
        ops.ctc_loss(Tensor(log_probabilities()), Tensor(np.full((3, 2), 7, np.int32)), LENGTHS, SIZES)


def test_greedy_decoding_merges_and_drops_blanks():
    best = [0, 0, 2, 1, 1]  # class 2 is the blank
    scores = np.full((5, 1, 3), -1.0, np.float32)
    for t, k in enumerate(best):
        scores[t, 0, k] = 1.0
    _, values, shape, path = ops.ctc_greedy_decoder(Tensor(scores), Tensor(np.array([5], np.int32)))
    assert values.asnumpy().tolist() == [0, 1] and shape.asnumpy().tolist() == [1, 2]
    assert path.asnumpy().tolist() == [[-5.0]]


def test_greedy_decoding_refuses_lengths_beyond_the_steps():
    with pytest.raises(RuntimeError, match="should be less than or equal to 2, but got 3"):
        ops.ctc_greedy_decoder(ops.zeros((2, 1, 3)), Tensor(np.array([3], np.int32)))
