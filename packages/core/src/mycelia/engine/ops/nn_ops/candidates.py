"""Candidate sampling: classes to compare the true ones with, for losses over many classes."""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op
from mycelia.engine.ops.random.draws import _check_key, _np_uniform
from mycelia.engine.ops.random.generator import _draw_key

__all__ = ["log_uniform_candidate_sampler", "uniform_candidate_sampler"]


def _np_classes(u, range_max, distribution):
    """Classes of uniform numbers; "log_uniform" gives class k the weight ``log((k + 2) / (k + 1))``."""
    if distribution == "uniform":
        found = (u * range_max).astype(np.int64)
    else:
        found = np.exp(u * np.log1p(range_max)).astype(np.int64) - 1
    return np.clip(found, 0, range_max - 1)


def _np_expected(classes, tries, count, range_max, distribution):
    """How often each class is expected among `count` samples that took so many tries."""
    if distribution == "uniform":
        p = np.full(classes.shape, 1.0 / range_max)
    else:
        p = np.log((classes + 2.0) / (classes + 1.0)) / np.log1p(range_max)
    return (p * count if tries == count else -np.expm1(tries * np.log1p(-p))).astype(np.float32)


@op(name="sample_candidates", outputs=3, nondiff=True)
def _sample_candidates(
    key, true_classes,
    *, count: "int", unique: "bool", range_max: "int", distribution: "uniform|log_uniform",
    avoid: "bool" = False,
):  # fmt: skip
    """Classes below `range_max` drawn by a distribution, with the expected counts of true and drawn ones.

    `unique` draws each at most once; `avoid` leaves the true classes out.
    Shapes: key int64 [2], true_classes [N, T] -> int64 [count], float32 [N, T], [count].
    """
    found, tries, taken = [], 0, set(true_classes.reshape(-1).tolist()) if avoid else set()
    left = range_max - sum(0 <= c < range_max for c in taken)
    if left < (count if unique else min(count, 1)):
        raise errors.value_error(f"count is {count}, but {left} classes below range_max {range_max} are left")
    seed, offset = key
    while len(found) < count:
        u = _np_uniform(np.array([seed, offset], np.int64), max(64, 2 * count), np.float64)
        offset = offset ^ np.int64(1 << 62) if tries == 0 else offset + np.int64(1 << 32)
        for c in _np_classes(u, range_max, distribution).tolist():
            tries += 1
            if c in taken:
                continue
            found.append(c)
            if unique:
                taken.add(c)
            if len(found) == count:
                break
    drawn = np.array(found, np.int64)
    how = (tries if unique else count, count, range_max, distribution)
    expected = _np_expected(true_classes, *how)
    return drawn, expected, _np_expected(drawn, *how)


@_sample_candidates.infer
def _sample_candidates(key, true_classes, *, count, unique, range_max, distribution, avoid):
    _check_key(key)
    if range_max < 1 or count < 0:
        raise ValueError(f"range_max must be 1 or more and count 0 or more, got {range_max} and {count}")
    if unique and count > range_max:
        raise ValueError(f"there are no {count} different classes below range_max {range_max}")
    if true_classes.rank != 2:
        raise ValueError(f"true_classes must have rank 2, got shape {true_classes.shape}")
    return (
        TensorType(dtypes.int64, (count,)), TensorType(dtypes.float32, true_classes.shape),
        TensorType(dtypes.float32, (count,)),
    )  # fmt: skip


@_sample_candidates.samples
def _sample_candidates(rand):
    key, classes = np.array([3, 5], np.int64), np.array([[1, 2], [0, 3]], np.int64)
    yield key, classes, dict(count=3, unique=True, range_max=5, distribution="uniform")
    yield key, classes, dict(count=4, unique=False, range_max=5, distribution="log_uniform")
    yield key, classes, dict(count=2, unique=True, range_max=8, distribution="log_uniform", avoid=True)


def sample_candidates(
    owner, true_classes, num_true, count, unique, range_max, key, distribution, avoid=False
):
    """What both samplers check and share; `key` of the draw."""
    if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
        raise errors.value_error(
            owner, f"true_classes must be [N, {num_true}], but its shape is {tuple(true_classes.shape)}"
        )
    left = range_max
    if avoid:
        left -= len(set(true_classes.asnumpy().reshape(-1).tolist()) & set(range(range_max)))
    if unique and count > left or left < 1:
        raise errors.value_error(
            owner, f"num_sampled must be at most the number of classes left, {left}, but got {count}"
        )
    return _sample_candidates(
        key, true_classes, count=count, unique=unique, range_max=range_max, distribution=distribution,
        avoid=avoid,
    )  # fmt: skip


def uniform_candidate_sampler(
    true_classes, num_true, num_sampled, unique, range_max, seed=0, remove_accidental_hits=False
):
    """Classes drawn uniformly from [0, range_max), and how often true and drawn classes are expected.

    Shapes: true_classes int64 [N, num_true] -> int64 [num_sampled], float32 [N, num_true], [num_sampled].
    Errors: ValueError if so many different classes cannot be had.
    """
    how = (num_true, num_sampled, bool(unique), range_max, _draw_key(seed or None), "uniform")
    return sample_candidates("uniform_candidate_sampler", true_classes, *how, remove_accidental_hits)


def log_uniform_candidate_sampler(
    true_classes, num_true=1, num_sampled=5, unique=True, range_max=5, seed=0
):  # fmt: skip
    """Classes drawn as of words by frequency: k with ``log((k + 2) / (k + 1)) / log(range_max + 1)``.

    Shapes: true_classes int64 [N, num_true] -> int64 [num_sampled], float32 [N, num_true], [num_sampled].
    Errors: ValueError if so many different classes cannot be had.
    """
    how = (num_true, num_sampled, bool(unique), range_max, _draw_key(seed or None), "log_uniform")
    return sample_candidates("log_uniform_candidate_sampler", true_classes, *how)
