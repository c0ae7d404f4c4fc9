"""Checks of hyper-parameters (hp)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn import TrainOneStepCell, WithLossCell
from mycelia.train.checks.facts import Facts
from mycelia.train.checks.results import FOUND, NEEDS_YOU, NOT_FOUND, Said, check

_RATES = 10.0 ** np.arange(-6, 2, 0.5)  # of the range test
_FALLING = 0.05  # share by which a loss that has not settled falls from one fifth to the next


@check("hp.01", "learning rate")
def learning_rate(facts: Facts, reference: Any) -> Said:
    """A range test (Smith 2017): from the Parameters of the beginning a few steps with each rate."""
    optimizer, loss_fn, network = facts.params.optimizer, facts.params.loss_fn, facts.params.network
    rate = getattr(optimizer, "learning_rate", None)
    step = facts.step or (None if loss_fn is None else _step_of(network, loss_fn, optimizer))
    if not isinstance(rate, Tensor) or rate.size != 1 or step is None:
        return NEEDS_YOU, "the rate is no single number, or the loss of a step is not at hand"
    used = float(rate.asnumpy())
    try:
        losses = _range_test(facts, network, step, optimizer, rate)
    except (errors.MyceliaError, ValueError, RuntimeError) as cause:
        return NEEDS_YOU, f"no step runs on the batches that were kept: {cause}"
    falls = np.where(np.isfinite(losses), losses[0] - losses, -np.inf)
    best = int(np.argmax(falls))
    if falls[best] <= 0:
        return NEEDS_YOU, "no rate from 1e-6 to 31 lets the loss fall within four steps"
    good = [r for r, f in zip(_RATES, falls) if f >= 0.1 * falls[best]]
    said = f"{used:g}; the loss falls with rates from {good[0]:.2g} to {good[-1]:.2g}"
    return (NOT_FOUND if good[0] / 3 <= used <= good[-1] * 3 else FOUND), said


def _step_of(network: Any, loss_fn: Any, optimizer: Any) -> Callable[[list[Tensor]], float]:
    step = TrainOneStepCell(WithLossCell(network, loss_fn), optimizer)
    step.set_train()
    return lambda batch: float(np.mean(step(*batch).asnumpy()))


def _range_test(
    facts: Facts, network: Any, step: Callable[[list[Tensor]], float], optimizer: Any, rate: Any
) -> np.ndarray:
    """The loss of the first batch after four steps with each rate; everything is put back."""
    parameters = {p.name: p for p in [*network.get_parameters(), *optimizer.get_parameters()]}
    kept = {name: p.asnumpy().copy() for name, p in parameters.items()}
    network.set_train()
    batches = [list(map(Tensor, b)) for b in (facts.train_batches * 4)[:4]]
    found = []
    try:
        for value in _RATES:
            for name, p in parameters.items():
                p.set_data(Tensor(facts.before.get(name, kept[name]).astype(kept[name].dtype)))
                if name not in facts.before and "moment" in name:
                    p.set_data(Tensor(np.zeros_like(kept[name])))
            rate.set_data(Tensor(np.float32(value)))
            for batch in batches:
                step(batch)
            found.append(step(batches[0]))
    finally:
        for name, p in parameters.items():
            p.set_data(Tensor(kept[name]))
    return np.asarray(found)


@check("hp.02", "epochs")
def epochs(facts: Facts, reference: Any) -> Said:
    losses = np.asarray(facts.losses)
    part = len(losses) // 5
    if part < 4:
        return NEEDS_YOU, f"{len(losses)} steps are too few to tell whether the loss has settled"
    before, last = losses[-2 * part : -part], losses[-part:]
    fall = float(before.mean() - last.mean())
    noise = float(np.sqrt((before.var() + last.var()) / part))
    said = f"the mean loss of the last {part} steps is {last.mean():.4g}, of those before {before.mean():.4g}"
    return (FOUND if fall > max(_FALLING * abs(before.mean()), 2 * noise) else NOT_FOUND), said


@check("hp.03", "batch size")
def batch(facts: Facts, reference: Any) -> Said:
    sizes = [len(b[0]) for b in facts.train_batches if b[0].ndim]
    norms = [n for n, c in facts.params.network.cells_and_names() if type(c).__name__.startswith("BatchNorm")]
    if norms and min(sizes, default=1) == 1:
        return FOUND, f"a batch has one row, and {norms[0]} normalizes over batches"
    dataset = facts.params.train_dataset
    before = dataset.children[0].get_dataset_size() if getattr(dataset, "children", None) else 0
    if type(dataset).__name__.startswith("Batch") and before and facts.rows < 0.9 * before:
        return FOUND, f"{before - facts.rows} of {before} rows of an epoch are left out by the batches"
    return NOT_FOUND, f"{max(sizes, default=1)} rows a batch, {facts.params.batch_num} batches an epoch"
