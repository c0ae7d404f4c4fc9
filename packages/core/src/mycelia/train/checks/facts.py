"""What is seen of a training that is watched: batches, losses, Parameters, modes, overflows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mycelia.engine.base import config
from mycelia.engine.compile.overflow import Check, Overflow
from mycelia.engine.observing.eager import EagerCalls
from mycelia.engine.tensors.tensor import Tensor
from mycelia.train.callbacks.base import Callback
from mycelia.train.callbacks.monitor import loss_value

BATCHES = 32  # of training and of evaluation that are kept
Batch = tuple[np.ndarray, ...]


@dataclass
class Facts:
    """`train_batches`, `eval_batches`: the first ones; `second_epoch`: its first batch. `before`, `after`:
    trainable Parameters by name. `outputs`: of the network in the first evaluated batch. `loads`: (names of
    the net, names of the file) without a partner, of each checkpoint that was loaded. `products`: how many
    convolutions and products ran, by dtype.
    """

    source: Path | None = None
    missing_names: list[str] = field(default_factory=list)  # of MindSpore, that the script uses
    params: Any = None  # what callbacks are told, of the last training
    model: Any = None
    train_batches: list[Batch] = field(default_factory=list)
    second_epoch: Batch | None = None
    eval_batches: list[Batch] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    before: dict[str, np.ndarray] = field(default_factory=dict)
    after: dict[str, np.ndarray] = field(default_factory=dict)
    not_training: set[str] = field(default_factory=set)  # Dropout, BatchNorm in evaluation mode in a step
    still_training: set[str] = field(default_factory=set)  # in training mode while evaluated
    overflows: list[tuple[int, Overflow]] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)  # the loss scale after each step
    loads: list[tuple[list[str], list[str]]] = field(default_factory=list)
    products: Counter[str] = field(default_factory=Counter)
    rows: int = 0  # that steps were given
    calls: EagerCalls | None = None  # of the thread that is watched
    at_work: int = 0  # calls of Model that go on
    step: Callable[[list[Tensor]], float] | None = None  # one like the script's on a batch: its loss
    listeners: list[Callable[[], None]] = field(default_factory=list)  # called after each step

    def add_step(self, loss: float) -> None:
        """A step has ended with this loss."""
        self.losses.append(loss)
        for listener in self.listeners:
            listener()

    @property
    def has_own_loop(self) -> bool:
        """Whether the loop over steps is the script's own."""
        return self.params is not None and self.model is None

    @property
    def batch_size(self) -> int:
        first = self.train_batches[0][0] if self.train_batches else np.zeros(0)
        return int(first.shape[0]) if first.ndim else 1

    def fingerprint(self) -> str:
        """Of the values of the first training batches, in order."""
        total = hashlib.sha256()
        for batch in self.train_batches:
            for column in batch:
                total.update(
                    f"{column.dtype}{column.shape}".encode() + np.ascontiguousarray(column).tobytes()
                )
        return total.hexdigest()[:16]

    def row_marks(self) -> list[str]:
        """A mark of each row of the first column of the first training batches."""
        return [
            hashlib.sha256(np.ascontiguousarray(row).tobytes()).hexdigest()[:16]
            for batch in self.train_batches for row in batch[0]
        ]  # fmt: skip

    def hyper_parameters(self) -> dict[str, Any]:
        """What makes two trainings alike beside data and network."""
        if self.params is None:
            return {}
        optimizer = self.params.optimizer
        rate = getattr(optimizer, "learning_rate", None)
        is_number = isinstance(rate, Tensor) and rate.size == 1
        return {
            "batch_size": self.batch_size,
            "epochs": self.params.epoch_num,
            "optimizer": type(optimizer).__name__,
            "learning_rate": float(rate.asnumpy()) if is_number else type(rate).__name__,
            "parameters": {name: list(value.shape) for name, value in self.before.items()},
            "amp_level": getattr(self.model, "_amp_level", None),
        }

    def summary(self) -> dict[str, Any]:
        """What another run is compared with, for JSON."""
        inputs = [b[0].astype(np.float64) for b in self.train_batches if b[0].dtype.kind in "fiu"]
        flat = np.concatenate([x.reshape(-1) for x in inputs]) if inputs else np.zeros(0)
        return {
            "fingerprint": self.fingerprint(),
            "rows": self.row_marks(),
            "columns": [[str(c.dtype), list(c.shape)] for c in self.train_batches[0]]
            if self.train_batches else [],
            "mean": float(flat.mean()) if flat.size else 0.0,
            "std": float(flat.std()) if flat.size else 0.0,
            "losses": self.losses,
            "hyper_parameters": self.hyper_parameters(),
            "rank": config.get("rank"),
        }  # fmt: skip


class Collector(Callback):
    """Fills facts from the steps of `Model.train` and `Model.eval`."""

    def __init__(self, facts: Facts, model: Any) -> None:
        self.facts, self.model = facts, model
        self.epoch_steps = 0
        self.overflow = Check(lambda found: facts.overflows.append((len(facts.losses) + 1, found[0])))

    def __enter__(self) -> Collector:
        self.facts.at_work += 1
        return self

    def on_train_begin(self, run_context: Any) -> None:
        facts = self.facts
        facts.params, facts.model = run_context.original_args(), self.model
        facts.before = values_of(facts.params.network)
        self.overflow.start(facts.calls)

    def on_train_epoch_begin(self, run_context: Any) -> None:
        self.epoch_steps = 0

    def on_train_step_begin(self, run_context: Any) -> None:
        facts, params = self.facts, run_context.original_args()
        batch = arrays_of(params.train_dataset_element)
        if params.cur_epoch_num == 1 and len(facts.train_batches) < BATCHES:
            facts.train_batches.append(batch)
        if params.cur_epoch_num == 2 and self.epoch_steps == 0:
            facts.second_epoch = batch
        self.epoch_steps += 1
        if params.cur_epoch_num == 1:
            facts.rows += len(batch[0]) if batch and batch[0].ndim else 1
        facts.not_training |= cells_of(params.network, training=False)

    def on_train_step_end(self, run_context: Any) -> None:
        params = run_context.original_args()
        loss = loss_value(params.net_outputs)
        scale = getattr(params.train_network, "scale_sense", None)
        if isinstance(scale, Tensor):
            self.facts.scales.append(float(scale.asnumpy().reshape(-1)[0]))
        self.facts.add_step(float("nan") if loss is None else loss)

    def on_train_end(self, run_context: Any) -> None:
        self.facts.after = values_of(self.facts.params.network)

    def on_eval_step_begin(self, run_context: Any) -> None:
        facts, params = self.facts, run_context.original_args()
        if len(facts.eval_batches) < BATCHES:
            facts.eval_batches.append(arrays_of(params.eval_dataset_element))
        facts.still_training |= cells_of(params.eval_network, training=True)

    def __exit__(self, *error: Any) -> None:
        self.facts.at_work -= 1
        self.overflow.stop()


def arrays_of(batch: Any) -> Batch:
    return tuple(t.asnumpy().copy() for t in batch if isinstance(t, Tensor))


def values_of(network: Any) -> dict[str, np.ndarray]:
    return {p.name: p.asnumpy().astype(np.float32) for p in network.get_parameters()}


def cells_of(network: Any, training: bool) -> set[str]:
    """The cells whose doing depends on the mode, and that are in this one."""
    kinds = ("Dropout", "BatchNorm")
    return {
        f"{name or 'net'} ({type(cell).__name__})" for name, cell in network.cells_and_names()
        if type(cell).__name__.startswith(kinds) and cell.training is training
    }  # fmt: skip
