"""Checks of modes (api.02), of the graph (cg) and of initial weights (wi)."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np

from mycelia.train.checks.facts import Facts
from mycelia.train.checks.results import FOUND, NEEDS_YOU, NOT_FOUND, Said, check, listed


@check("api.02", "training and evaluation modes")
def modes(facts: Facts, reference: Any) -> Said:
    if facts.not_training:
        return FOUND, f"in evaluation mode while it trains: {listed(sorted(facts.not_training))}"
    if facts.still_training:
        return FOUND, f"in training mode while it is evaluated: {listed(sorted(facts.still_training))}"
    return NOT_FOUND, "Dropout and BatchNorm are in training mode in steps, and not in evaluations"


@check("cg.01", "shared weights")
def shared_weights(facts: Facts, reference: Any) -> Said:
    places: dict[int, list[str]] = defaultdict(list)
    cells = {id(c): n for n, c in facts.params.network.cells_and_names()}
    for name, cell in _every_cell(facts.params.network):
        for own, parameter in cell._params.items():
            if parameter is not None:
                places[id(parameter)].append(f"{name}.{own}".lstrip("."))
    shared = [" = ".join(names) for names in places.values() if len(names) > 1]
    said = (
        f"one Parameter at several places: {listed(shared)}" if shared else f"{len(cells)} cells share none"
    )
    return (FOUND if shared else NOT_FOUND), said


def _every_cell(cell: Any, path: str = "") -> list[tuple[str, Any]]:
    """All cells by every path that leads to them: one that stands at two places is there twice."""
    found = [(path, cell)]
    for name, child in cell._cells.items():
        if child is not None:
            found += _every_cell(child, f"{path}.{name}".lstrip("."))
    return found


@check("cg.02", "frozen weights")
def frozen_weights(facts: Facts, reference: Any) -> Said:
    given = {id(p) for p in facts.params.optimizer.parameters}
    frozen = [p.name for p in facts.params.network.get_parameters()
              if not p.requires_grad and not p.name.endswith(("moving_mean", "moving_variance"))]  # fmt: skip
    left_out = [p.name for p in facts.params.network.trainable_params() if id(p) not in given]
    if frozen or left_out:
        named = ("without gradient", frozen), ("not given to the optimizer", left_out)
        return FOUND, "; ".join(f"{text}: {listed(names)}" for text, names in named if names)
    return NOT_FOUND, f"the optimizer updates all {len(given)} Parameters"


@check("cg.03", "parts that are not connected")
def unconnected(facts: Facts, reference: Any) -> Said:
    given = {p.name for p in facts.params.optimizer.parameters}
    same = [n for n in facts.before if n in given and np.array_equal(facts.before[n], facts.after.get(n))]
    if len(same) == len(given) and same:
        return FOUND, "no Parameter changed in the whole training"
    said = f"unchanged by {len(facts.losses)} steps: {listed(same)}" if same else "every Parameter changed"
    return (FOUND if same else NOT_FOUND), said


@check("cg.04", "loss")
def loss(facts: Facts, reference: Any) -> Said:
    losses = np.asarray(facts.losses)
    bad = np.flatnonzero(~np.isfinite(losses))
    if bad.size:
        return FOUND, f"the loss of step {bad[0] + 1} is {losses[bad[0]]}"
    kind = type(facts.params.loss_fn).__name__
    if "Softmax" in kind and any(
        type(c).__name__ == "Softmax" for _, c in facts.params.network.cells_and_names()
    ):
        return FOUND, f"the network ends in a Softmax, and {kind} applies one once more"
    if len(losses) > 1 and (losses == losses[0]).all():
        return FOUND, f"the loss is {losses[0]:.6g} in all {len(losses)} steps"
    if "CrossEntropy" in kind and losses.min() < 0:
        return FOUND, f"{kind} is negative: {losses.min():.4g}"
    part = max(1, len(losses) // 5)
    first, last = losses[:part].mean(), losses[-part:].mean()
    said = f"from {first:.4g} to {last:.4g} (means of {part} steps)"
    if len(losses) < 10:
        return NEEDS_YOU, said
    return (FOUND if last >= first and not math.isclose(last, 0.0, abs_tol=1e-6) else NOT_FOUND), said


@check("wi.01", "weights that are zero")
def zero_weights(facts: Facts, reference: Any) -> Said:
    zero = [n for n, v in facts.before.items() if v.ndim >= 2 and not v.any()]
    said = f"all zero at the beginning: {listed(zero)}" if zero else "no matrix or kernel is all zero"
    return (FOUND if zero else NOT_FOUND), said


@check("wi.02", "pre-trained weights that are not loaded", trains=False)
def not_loaded(facts: Facts, reference: Any) -> Said:
    for missing, unused in facts.loads:
        if missing or unused:
            sides = ("net", "file", missing), ("file", "net", unused)
            text = "of the {} {} are not in the {}: {}"
            return FOUND, "; ".join(text.format(a, len(n), b, listed(n) or "none") for a, b, n in sides)
    return NOT_FOUND, f"{len(facts.loads)} checkpoints were loaded" + (", whole" if facts.loads else "")
