"""Checks of the data (ds) and of its processing (dp)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from mycelia.engine.base import config
from mycelia.train.checks.facts import Batch, Facts
from mycelia.train.checks.results import FOUND, NEEDS_YOU, NOT_FOUND, Said, check, listed

_UNBALANCED = 10.0  # the largest class over the smallest
_WIDE = 5.0  # deviation of inputs that were normalised at most; means are below 3
_SAMPLES = 8  # rows of the sheet
_SEEDED = "; with a seed that is set, each iterator that is made shuffles alike: keep one for all epochs"


def _labels(batches: list[Batch]) -> np.ndarray | None:
    """The classes, if the last column has them."""
    found = [b[-1] for b in batches if len(b) > 1 and b[-1].dtype.kind in "iu" and b[-1].size == len(b[-1])]
    return np.concatenate([f.reshape(-1) for f in found]) if len(found) == len(batches) and found else None


def _inputs(batches: list[Batch]) -> np.ndarray:
    return np.concatenate([b[0].astype(np.float64).reshape(len(b[0]), -1) for b in batches]) if batches else (
        np.zeros((0, 1))
    )  # fmt: skip


@check("ds.01", "missing values in the data")
def missing_values(facts: Facts, reference: Any) -> Said:
    for number, batch in enumerate(facts.train_batches):
        for column, values in enumerate(batch):
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                rows = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(1))
                where = listed([str(r) for r in rows])
                return FOUND, f"batch {number}, column {column}: NaN or infinities in rows {where}"
            if not values.size:
                return FOUND, f"batch {number}, column {column} is empty"
    return NOT_FOUND, f"all values of the first {len(facts.train_batches)} batches are finite"


@check("ds.02", "labels")
def labels(facts: Facts, reference: Any) -> Said:
    found = _labels(facts.train_batches)
    if found is None:
        return NEEDS_YOU, "the last column has no classes; look at some rows of it yourself"
    classes = _classes(facts)
    if found.min() < 0 or (classes and found.max() >= classes):
        return FOUND, f"labels reach from {found.min()} to {found.max()}, the network has {classes} outputs"
    known: dict[str, int] = {}
    for mark, label in zip(facts.row_marks(), found.tolist()):
        if known.setdefault(mark, label) != label:
            return FOUND, f"equal inputs have the labels {known[mark]} and {label}"
    rows = [f"{label}: mean {x.mean():.3g} max {x.max():.3g}"
            for label, x in zip(found[:_SAMPLES].tolist(), _inputs(facts.train_batches[:1]))]  # fmt: skip
    return NEEDS_YOU, f"compare these rows with what you expect, label first: {'; '.join(rows)}"


def _classes(facts: Facts) -> int:
    """How many outputs the last layer with a bias or weight has; 0 if it is not known."""
    matrices = [v for v in facts.before.values() if v.ndim >= 2]
    return int(matrices[-1].shape[0]) if matrices else 0


@check("ds.03", "balance of classes")
def balance(facts: Facts, reference: Any) -> Said:
    found = _labels(facts.train_batches)
    if found is None:
        return NEEDS_YOU, "the last column has no classes"
    counts = Counter(found.tolist())
    most, least = counts.most_common()[0], counts.most_common()[-1]
    said = f"of {len(found)} labels {most[1]} are {most[0]}, {least[1]} are {least[0]}"
    return (FOUND if most[1] > _UNBALANCED * least[1] else NOT_FOUND), said


@check("ds.04", "fingerprint of the data")
def fingerprint(facts: Facts, reference: Any) -> Said:
    own = facts.fingerprint()
    if reference is None:
        return NEEDS_YOU, f"{own} over {len(facts.train_batches)} batches; give a reference to compare with"
    same = own == reference["fingerprint"]
    return (NOT_FOUND if same else FOUND), f"{own}, the reference has {reference['fingerprint']}"


@check("dp.01", "data that is not normalised")
def not_normalised(facts: Facts, reference: Any) -> Said:
    if not facts.train_batches or facts.train_batches[0][0].dtype.kind != "f":
        return NOT_FOUND, "the first column has no floats"
    x = np.concatenate([b[0].astype(np.float64).reshape(-1) for b in facts.train_batches])
    x = x[np.isfinite(x)]
    said = f"the first column has mean {x.mean():.4g}, deviation {x.std():.4g}, largest {np.abs(x).max():.4g}"
    return (FOUND if x.std() > _WIDE or abs(x.mean()) > 3.0 else NOT_FOUND), said


@check("dp.02", "processing differs in evaluation")
def processing_differs(facts: Facts, reference: Any) -> Said:
    if not facts.eval_batches:
        return NEEDS_YOU, "the script evaluates nothing"
    ours, theirs = facts.train_batches[0], facts.eval_batches[0]
    for column, (a, b) in enumerate(zip(ours, theirs)):
        if a.dtype != b.dtype or a.shape[1:] != b.shape[1:]:
            return (
                FOUND,
                f"column {column} is {a.dtype} {a.shape[1:]} in training, {b.dtype} {b.shape[1:]} then",
            )
    x, y = (np.concatenate([b[0].astype(np.float64).reshape(-1) for b in batches])
            for batches in (facts.train_batches, facts.eval_batches))  # fmt: skip
    said = f"mean {x.mean():.4g} and {y.mean():.4g}, deviation {x.std():.4g} and {y.std():.4g}"
    apart = abs(x.mean() - y.mean()) > 0.5 * max(x.std(), y.std(), 1e-9)
    wide = max(x.std(), y.std()) > 2 * max(min(x.std(), y.std()), 1e-9)
    return (FOUND if apart or wide else NOT_FOUND), said


@check("dp.03", "no shuffle")
def no_shuffle(facts: Facts, reference: Any) -> Said:
    first, second = facts.train_batches[0], facts.second_epoch
    if second is not None and len(facts.train_batches) == 1:
        return NOT_FOUND, "an epoch is one batch"
    if second is not None and len(facts.train_batches) > 1:
        if not all(np.array_equal(a, b) for a, b in zip(first, second)):
            return NOT_FOUND, "the first batches of two epochs are others"
        said = "the first batches of two epochs are equal"
        return FOUND, said + (_SEEDED if facts.has_own_loop else "")
    found = _labels(facts.train_batches)
    if found is not None and len(set(found.tolist())) > 1 and len(found) >= 16:
        changes = int(np.count_nonzero(np.diff(found)))
        shares = np.unique(found, return_counts=True)[1] / len(found)
        expected = (len(found) - 1) * (1 - float(np.square(shares).sum()))
        said = f"the label changes {changes} times in {len(found)} rows, {expected:.0f} if it were shuffled"
        return (FOUND if changes < 0.5 * expected else NOT_FOUND), said
    return NEEDS_YOU, "one epoch without classes does not tell the order of rows"


@check("dp.04", "padding")
def padding(facts: Facts, reference: Any) -> Said:
    tokens = [b[0] for b in facts.train_batches if b[0].ndim == 2 and b[0].dtype.kind in "iu"]
    if not tokens:
        return NOT_FOUND, "the first column has no sequences of integers"
    last = [x[:, -1:] == x for x in tokens]
    share = float(np.mean([np.flip(np.cumprod(np.flip(x, 1), 1), 1).mean() for x in last]))
    said = f"{100 * share:.0f} % of the tokens are a repeated last one"
    return (FOUND if share > 0.5 else NOT_FOUND), said


@check("dp.05", "shards overlap")
def shards_overlap(facts: Facts, reference: Any) -> Said:
    if reference is not None and reference.get("rank") != config.get("rank"):
        both = set(facts.row_marks()) & set(reference["rows"])
        said = (
            f"{len(both)} rows are in the first batches of rank {config.get('rank')} and {reference['rank']}"
        )
        return (FOUND if both else NOT_FOUND), said
    if config.get("rank") == 0:
        return NOT_FOUND, "this is rank 0; the report of another rank would be compared with it"
    return NEEDS_YOU, "give the report of another rank as the reference"
