"""Connectionist temporal classification: the loss of unaligned label sequences, and greedy decoding.

Source: Graves et al. 2006.

A target l of length S is extended with blanks to 2S + 1 states; alpha(t, s) is the log-probability of all
alignments of the first t steps that end in state s, beta(t, s) that of the rest.
"""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.arrays.masks import where
from mycelia.engine.ops.arrays.shape import reshape
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.reductions import reduce as _reduce


def _np_states(targets, blank):
    """Extended labels [N, 2S + 1], and where a state may be entered from two states before."""
    states = np.full((len(targets), 2 * targets.shape[1] + 1), blank, np.int64)
    states[:, 1::2] = targets
    skips = np.zeros(states.shape, bool)
    skips[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    return states, skips


def _np_shifted(x, by):
    """`x` moved `by` states to the right (to the left if negative); -inf comes in."""
    moved = np.full_like(x, -np.inf)
    if by > 0:
        moved[:, by:] = x[:, :-by]
    else:
        moved[:, :by] = x[:, -by:]
    return moved


def _np_ctc_alpha(log_probs, targets, input_lengths, target_lengths, blank):
    states, skips = _np_states(targets, blank)
    steps, batch = log_probs.shape[:2]
    rows = np.arange(batch)[:, None]
    inside = np.arange(states.shape[1]) <= 2 * target_lengths[:, None]
    alpha = np.full((batch, steps, states.shape[1]), -np.inf, log_probs.dtype)
    for t in range(steps):
        emitted = np.where(inside, log_probs[t][rows, states], -np.inf)
        if t == 0:
            alpha[:, 0, :2] = emitted[:, :2]
            continue
        before = alpha[:, t - 1]
        reached = np.logaddexp(before, _np_shifted(before, 1))
        reached = np.where(skips, np.logaddexp(reached, _np_shifted(before, 2)), reached)
        running = (t < input_lengths)[:, None]
        alpha[:, t] = np.where(running, reached + emitted, -np.inf)
    return alpha


def _np_at_end(alpha, input_lengths, target_lengths):
    """Log-probability of the target: the last two states at the last step."""
    rows = np.arange(len(alpha))
    last = alpha[rows, np.maximum(input_lengths - 1, 0)]
    final, previous = last[rows, 2 * target_lengths], last[rows, np.maximum(2 * target_lengths - 1, 0)]
    return np.where(target_lengths > 0, np.logaddexp(final, previous), final)


@op(name="ctc_loss", outputs=2)
def _ctc_loss(log_probs, targets, input_lengths, target_lengths, *, blank: "int" = 0):
    """Negative log-probability of each target, and alpha.

    Shapes: log_probs [T, N, C], targets [N, S], lengths [N] -> [N], [N, T, 2S + 1].  dtypes: floating
    log_probs, integer others.  Errors: ValueError if a length or a label is out of range.
    """
    steps, _, classes = log_probs.shape
    for name, lengths, limit in (
        ("input", input_lengths, steps),
        ("target", target_lengths, targets.shape[1]),
    ):
        if lengths.size and not (0 <= lengths.min() and lengths.max() <= limit):
            raise ValueError(f"{name}_lengths must be in [0, {limit}], got {lengths.tolist()}")
    used = targets[np.arange(targets.shape[1]) < target_lengths[:, None]]
    if used.size and not (0 <= used.min() and used.max() < classes):
        raise ValueError(f"targets must be in [0, {classes}), got {used.min()} to {used.max()}")
    safe = np.where(np.arange(targets.shape[1]) < target_lengths[:, None], targets, blank)
    alpha = _np_ctc_alpha(log_probs, safe, input_lengths, target_lengths, blank)
    return -_np_at_end(alpha, input_lengths, target_lengths), alpha


@_ctc_loss.infer
def _ctc_loss(log_probs, targets, input_lengths, target_lengths, *, blank):
    if log_probs.rank != 3 or targets.rank != 2 or targets.shape[0] != log_probs.shape[1]:
        raise ValueError(
            f"log_probs must be [T, N, C] and targets [N, S], got {log_probs.shape}, {targets.shape}"
        )
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise ValueError(f"blank must be in [0, {classes}), got {blank}")
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if lengths.shape != (batch,):
            raise ValueError(f"{name} must be [{batch}], got {lengths.shape}")
    alpha = (batch, steps, 2 * targets.shape[1] + 1)
    return TensorType(log_probs.dtype, (batch,)), TensorType(log_probs.dtype, alpha)


@_ctc_loss.vjp
def _ctc_loss(cts, outs, log_probs, targets, input_lengths, target_lengths, *, blank):
    if cts[0] is None:
        return None, None, None, None
    inputs = log_probs, targets, input_lengths, target_lengths
    return _ctc_loss_grad(cts[0], *inputs, outs[0], outs[1], blank=blank), None, None, None


_CTC_SAMPLE = (
    np.array([[1, 2], [2, 2], [1, 0]], np.int32),
    np.array([5, 4, 5], np.int32),
    np.array([2, 2, 1], np.int32),
)


@_ctc_loss.samples
def _ctc_loss(rand):
    # alpha holds -inf, of which there are no differences: tests/engine/ops/test_ctc.py checks the gradient.
    yield rand(5, 3, 4), *_CTC_SAMPLE, dict(_grad=False)
    yield rand(5, 3, 4), *_CTC_SAMPLE, dict(blank=3, _grad=False)


@op(name="ctc_loss_grad", nondiff=True)
def _ctc_loss_grad(
    d_loss, log_probs, targets, input_lengths, target_lengths, loss, log_alpha, *, blank: "int" = 0
):
    """Gradient of ctc_loss with respect to log_probs: minus the probability that a step emits a class.

    Shapes: d_loss, loss [N], others as ctc_loss -> log_probs'.  dtypes: floating.
    """
    safe = np.where(np.arange(targets.shape[1]) < target_lengths[:, None], targets, blank)
    states, skips = _np_states(safe, blank)
    steps, batch = log_probs.shape[:2]
    rows, ids = np.arange(batch)[:, None], np.arange(states.shape[1])
    inside = ids <= 2 * target_lengths[:, None]
    ends = inside & (ids >= np.maximum(2 * target_lengths[:, None] - 1, 0))
    possible = np.isfinite(loss)[:, None]
    gradient = np.zeros_like(log_probs)
    beta = np.full(
        states.shape, -np.inf, log_probs.dtype
    )  # alignments of the steps behind t, from each state
    emitted = beta
    for t in reversed(range(steps)):
        after = beta + emitted
        follow = np.logaddexp(after, _np_shifted(after, -1))
        skipped = _np_shifted(np.where(skips, after, -np.inf), -2)
        beta = np.logaddexp(follow, skipped)
        last = (t == input_lengths - 1)[:, None]
        beta = np.where(last, np.where(ends, log_probs.dtype.type(0), -np.inf), beta)
        emitted = np.where(inside, log_probs[t][rows, states], -np.inf)
        log_share = np.where(possible, log_alpha[:, t] + beta + np.where(possible, loss[:, None], 0), -np.inf)
        np.add.at(
            gradient[t], (np.broadcast_to(rows, states.shape), states), -np.exp(log_share) * d_loss[:, None]
        )
    return gradient


@_ctc_loss_grad.infer
def _ctc_loss_grad(d_loss, log_probs, *others, blank):
    return log_probs


def ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False
):
    """Loss of label sequences without alignment: ``-log p(target)``, and alpha.

    "mean" divides each loss by its target's length first; `zero_infinity` makes impossible targets cost 0.
    Shapes: log_probs [T, N, C], targets [N, S], lengths [N] (or tuples) -> [] or [N], [N, T, 2S + 1].
    dtypes: floating.  Source: Graves et al. 2006.
    """
    from mycelia.engine.tensors.tensor import Tensor

    if reduction not in ("mean", "sum", "none"):
        raise errors.value_error(f"ctc_loss: reduction must be one of mean, sum, none, got {reduction!r}")
    lengths = []
    for name, given in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        length = given if isinstance(given, Tensor) else Tensor(given)
        if not length.dtype.is_integer:
            raise errors.type_error(f"ctc_loss: {name} must be int32 or int64, but got {length.dtype}")
        lengths.append(length if length is given else cast(length, dtypes.int32))
    loss, alpha = _ctc_loss(log_probs, targets, *lengths, blank=blank)
    if zero_infinity:
        loss = where(loss == float("inf"), 0.0, loss)
    if reduction == "mean":
        loss = _reduce.sum(loss / _clipping.maximum(cast(lengths[1], loss.dtype), 1.0)) * (
            1.0 / loss.shape[0]
        )
    elif reduction == "sum":
        loss = _reduce.sum(loss)
    return loss, alpha


def _np_sequence_loss(log_p, labels, blank, merged):
    """Loss and its gradient by `log_p` [T, C] of one label sequence; `merged`: repeats count once."""
    states = np.full(2 * len(labels) + 1, blank)
    states[1::2] = labels
    stay = merged | (states == blank)
    skip = np.zeros(len(states), bool)
    skip[2:] = (states[2:] != blank) & (~np.array(merged) | (states[2:] != states[:-2]))
    steps = len(log_p)
    emitted = log_p[:, states]
    alpha = np.full((steps, len(states)), -np.inf)
    alpha[0, :2] = emitted[0, :2]
    for t in range(1, steps):
        before = alpha[t - 1]
        reached = np.logaddexp(np.where(stay, before, -np.inf), _np_shifted(before[None], 1)[0])
        reached = np.logaddexp(reached, np.where(skip, _np_shifted(before[None], 2)[0], -np.inf))
        alpha[t] = reached + emitted[t]
    beta = np.full_like(alpha, -np.inf)  # of what follows: without the step's own emission
    beta[-1, -2:] = 0.0
    for t in range(steps - 2, -1, -1):
        after = beta[t + 1] + emitted[t + 1]
        reached = np.where(stay, after, -np.inf)
        reached[:-1] = np.logaddexp(reached[:-1], after[1:])
        reached[:-2] = np.logaddexp(reached[:-2], np.where(skip[2:], after[2:], -np.inf))
        beta[t] = reached
    total = np.logaddexp.reduce(alpha[-1, -2:])
    share = np.zeros_like(log_p)
    if np.isfinite(total):
        np.add.at(share.T, states, np.exp(alpha + beta - total).T)
    return -total, -share


@op(name="ctc_loss_of_logits", outputs=2)
def _ctc_loss_of_logits(
    inputs, labels_indices, labels_values, sequence_length,
    *, collapse: "bool" = False, merged: "bool" = True, skip_longer: "bool" = False,
):  # fmt: skip
    """Loss of sparse label sequences from logits, the last class being the blank, and its gradient.

    `collapse` merges equal neighbours of the labels first; `merged` False counts each repeat of a label in an
    alignment; `skip_longer` gives 0 for more labels than steps.
    Shapes: inputs [T, N, C], labels_indices [K, 2], labels_values [K], sequence_length [N] -> [N], inputs'.
    dtypes: floating.  Errors: RuntimeError for more labels than steps.  Source: Graves et al. 2006.
    """
    blank = inputs.shape[2] - 1
    shifted = inputs - inputs.max(2, keepdims=True)
    log_p = (shifted - np.log(np.exp(shifted).sum(2, keepdims=True))).astype(np.float64)
    loss, gradient = np.zeros(inputs.shape[1]), np.zeros(inputs.shape)
    for n in range(inputs.shape[1]):
        labels = labels_values[labels_indices[:, 0] == n]
        if collapse and len(labels):
            labels = labels[np.concatenate(([True], labels[1:] != labels[:-1]))]
        steps = int(sequence_length[n])
        if len(labels) > steps:
            if skip_longer:
                continue
            raise RuntimeError(f"sample {n} has {len(labels)} labels, but only {steps} steps")
        if steps:
            rows = log_p[:steps, n]
            loss[n], share = _np_sequence_loss(rows, labels, blank, merged)
            gradient[:steps, n] = np.exp(rows) + share
    return loss.astype(inputs.dtype), gradient.astype(inputs.dtype)


@_ctc_loss_of_logits.infer
def _ctc_loss_of_logits(inputs, labels_indices, labels_values, sequence_length, **attrs):
    if inputs.rank != 3 or labels_indices.rank != 2 or sequence_length.shape != inputs.shape[1:2]:
        raise ValueError(
            f"inputs must be [T, N, C], labels_indices [K, 2] and sequence_length [N], got {inputs.shape}, "
            f"{labels_indices.shape}, {sequence_length.shape}"
        )
    return TensorType(inputs.dtype, inputs.shape[1:2]), inputs


@_ctc_loss_of_logits.vjp
def _ctc_loss_of_logits(cts, outs):
    if cts[0] is None:
        return None, None, None, None
    return outs[1] * reshape(cts[0], (1, -1, 1)), None, None, None


@_ctc_loss_of_logits.samples
def _ctc_loss_of_logits(rand):
    # The second output is the gradient of the first: it has none of its own.
    labels = np.array([[0, 0], [0, 1], [1, 0]]), np.array([0, 1, 1], np.int32), np.array([5, 4], np.int32)
    yield rand(5, 2, 3), *labels, dict(_grad=False)
    yield rand(5, 2, 3), *labels, dict(merged=False, _grad=False)
    same = labels[0], np.array([1, 1, 1], np.int32), labels[2]
    yield rand(5, 2, 3), *same, dict(collapse=True, _grad=False)


@op(name="ctc_greedy_decode", outputs=2, nondiff=True)
def _ctc_greedy_decode(inputs, sequence_length, *, merge_repeated: "bool" = True):
    """The best class of each step without blanks (the last class), -1 behind the end, and the path's score.

    Shapes: inputs [T, N, C], sequence_length [N] -> int64 [N, T], [N, 1].  dtypes: floating.
    """
    steps, batch, classes = inputs.shape
    decoded = np.full((batch, steps), -1, np.int64)
    score = np.zeros((batch, 1), inputs.dtype)
    for n in range(batch):
        best = inputs[: sequence_length[n], n].argmax(1)
        score[n] = -inputs[: sequence_length[n], n].max(1).sum()
        fresh = np.ones(len(best), bool)
        if merge_repeated:
            fresh[1:] = best[1:] != best[:-1]
        found = best[fresh & (best != classes - 1)]
        decoded[n, : len(found)] = found
    return decoded, score


@_ctc_greedy_decode.infer
def _ctc_greedy_decode(inputs, sequence_length, *, merge_repeated):
    if inputs.rank != 3 or sequence_length.shape != inputs.shape[1:2]:
        raise ValueError(
            f"inputs must be [T, N, C] and sequence_length [N], got {inputs.shape}, {sequence_length.shape}"
        )
    steps, batch, _ = inputs.shape
    return TensorType(dtypes.int64, (batch, steps)), TensorType(inputs.dtype, (batch, 1))


@_ctc_greedy_decode.samples
def _ctc_greedy_decode(rand):
    yield rand(6, 2, 4), np.array([6, 3], np.int32)
    yield rand(6, 2, 4), np.array([6, 3], np.int32), dict(merge_repeated=False)


def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True):
    """Greedy decoding: the best class of each step, repeats merged, blanks (the last class) left out.

    Shapes: inputs [T, N, C], sequence_length [N] -> sparse indices int64 [K, 2], values int64 [K],
    dense shape int64 [2], and the score of each path [N, 1].
    """
    from mycelia.engine.tensors.tensor import Tensor

    steps, most = inputs.shape[0], sequence_length.asnumpy().max(initial=0)
    if most > steps:
        raise errors.runtime_error(
            f"ctc_greedy_decoder: sequence_length should be less than or equal to {steps}, but got {most}"
        )
    decoded, score = _ctc_greedy_decode(inputs, sequence_length, merge_repeated=bool(merge_repeated))
    dense = decoded.asnumpy()
    where_found = np.argwhere(dense >= 0)
    longest = int((dense >= 0).sum(1).max(initial=0))
    shape = np.array([len(dense), longest], np.int64)
    return Tensor(where_found.astype(np.int64)), Tensor(dense[dense >= 0]), Tensor(shape), score


__all__ = ["ctc_greedy_decoder", "ctc_loss"]
