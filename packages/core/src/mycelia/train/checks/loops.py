"""Facts of trainings whose loop is the script's own: `value_and_grad`, TrainOneStepCell, `optimizer(grads)`.

A step is an eager gradient by Parameters, or a run of a compiled function that computes one. What it is given
is the batch, the number that it returns first the loss. The first loop is followed: gradients by other
Parameters, those of a second network or of inputs, are no steps of it.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.dataset.execution import iterator
from mycelia.engine import _C, dispatch, observing
from mycelia.engine.autodiff import transforms
from mycelia.engine.autodiff.structures import flatten
from mycelia.engine.compile.overflow import Check
from mycelia.engine.observing import NOTHING, RESULTS, Run
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.nn import Cell, LossBase, Optimizer
from mycelia.nn.wrap.loss_scale import scaling_listeners
from mycelia.train.callbacks.base import CallbackParam
from mycelia.train.checks.facts import BATCHES, Batch, Facts, arrays_of, cells_of, values_of

_HIDDEN = ("mycelia.nn.wrap", "mycelia.train", "mycelia.amp")  # modules of Cells around a network
_MARKED = 10_000  # steps whose batches are marked, to see epochs where no dataset tells them


class NoOptimizer:
    """Stands for an optimizer where the script updates Parameters by itself, or its own kind does."""

    learning_rate = None

    def __init__(self, parameters: list[Parameter]) -> None:
        self.parameters = tuple(parameters)

    def get_parameters(self) -> list[Parameter]:
        """Of its state: none is known."""
        return []


class Loop(observing.Observer):
    """Watches for steps, and tells `facts` of them. `is_idle`: whether a Model trains, which tells itself."""

    def __init__(self, facts: Facts, is_idle: Callable[[], bool]) -> None:
        self.facts, self.is_idle = facts, is_idle
        self.weights: frozenset[int] = frozenset()  # ids of the Parameters of the loop
        self.overflow: Check | None = None
        self.begun: Any = None  # the dataset of which an epoch was begun after the last step
        self.marks: list[tuple[bytes, int]] = []  # of the batches of the steps so far, and their rows
        self.period = 0  # steps until the first batch came again
        self.given: Any = None  # the first tensor of the last step
        self.called: tuple[Any, Batch, set[str]] | None = None  # a call of the network
        self.older = {id(o): o for o in _living(LossBase)}  # not of the script
        self.scale: Parameter | None = None  # of the loss
        self.is_scaled = False  # whether the eager gradient that goes on is of a scaled loss
        self.hook: Any = None

    def __enter__(self) -> Loop:
        transforms.listeners.append(self.differentiates)
        iterator.listeners.append(self.begins_epoch)
        scaling_listeners.append(self.scales)
        observing.watch(self)
        return self

    def __exit__(self, *error: Any) -> None:
        transforms.listeners.remove(self.differentiates)
        iterator.listeners.remove(self.begins_epoch)
        scaling_listeners.remove(self.scales)
        observing.unwatch(self)
        if self.overflow is not None:
            self.overflow.stop()
        if self.hook is not None:
            self.hook.remove()
            self.settles()
        if self.weights:
            self.facts.after = values_of(self.facts.params.network)

    # ---- steps ---------------------------------------------------------------------------------------------

    def differentiates(self, fn: Callable, args: list, parameters: list) -> Callable[[Any], None]:
        """Before an eager gradient of `fn(*args)`."""
        if self.is_idle() or not self.is_ours(parameters):
            return _nothing
        self.begins_step(args)
        self.is_scaled = False
        self.facts.step = self.facts.step or self.again(fn)
        return self.ends_step

    def wants(self, run: Run) -> int:
        """The results of runs that compute gradients; what other runs are given is of evaluations."""
        if self.is_idle() or _C.tape_level() or run.of.graph is None:
            return NOTHING
        held = [t for t in run.arguments[run.count :] if isinstance(t, Parameter)]
        given = run.arguments[: run.count]
        if not _computes_gradients(run):
            if self.weights & {id(p) for p in held}:
                self.evaluates(given)
            return NOTHING
        optimizer = self.facts.params.optimizer if self.weights else _optimizer_of(held)
        ids = {id(p) for p in held}
        parameters = [p for p in optimizer.parameters if id(p) in ids] if optimizer is not None else [
            p for p in held if p.requires_grad
        ]  # fmt: skip
        if not self.is_ours(parameters):
            return NOTHING
        self.begins_step(given)
        return RESULTS

    def gave(self, run: Run, results: Any) -> None:
        """After a compiled step."""
        self.ends_step(results)

    def is_ours(self, parameters: list) -> bool:
        """Whether a gradient by these is a step of the loop; the first one says which loop that is."""
        known = [p for p in parameters if isinstance(p, Parameter)]
        if not known:
            return False
        if not self.weights:
            self.starts(known)
        return any(id(p) in self.weights for p in known)

    def starts(self, parameters: list[Parameter]) -> None:
        """The first step: what is trained, and by what."""
        facts = self.facts
        optimizer = _optimizer_of(parameters) or NoOptimizer(parameters)
        network = _network_of(list(optimizer.parameters))
        losses = [o for o in _living(LossBase) if id(o) not in self.older]
        self.weights = frozenset(id(p) for p in optimizer.parameters)
        facts.params = CallbackParam(
            network=network, optimizer=optimizer, loss_fn=losses[0] if len(losses) == 1 else None,
            train_dataset=None, epoch_num=1, batch_num=0, train_network=None,
        )  # fmt: skip
        facts.before = values_of(network)
        self.scale = _scale_of(network) if self.scale is None else self.scale
        self.overflow = Check(lambda found: facts.overflows.append((len(facts.losses) + 1, found[0])))
        self.overflow.start(facts.calls)
        self.hook = network.register_forward_pre_hook(self.runs)

    def begins_step(self, given: list) -> None:
        """Before a step that gets these."""
        facts, batch = self.facts, arrays_of(given)
        self.given = next((t for t in given if isinstance(t, Tensor)), None)
        if self.called is not None and self.called[0] is self.given:
            self.called = None
        self.settles()
        self.tells_epoch(batch)
        if facts.params.epoch_num == 1:
            facts.params.batch_num += 1
            facts.rows += _rows(batch)
            if len(facts.train_batches) < BATCHES and batch:
                facts.train_batches.append(batch)
        facts.not_training |= cells_of(facts.params.network, training=False)

    def ends_step(self, value: Any) -> None:
        """After a step: its loss, and the scale that it had."""
        loss = _first_number(value)
        if self.scale is not None:
            scale = float(self.scale.asnumpy().reshape(-1)[0])
            self.facts.scales.append(scale)
            loss = loss / scale if self.is_scaled else loss
        self.facts.add_step(loss)

    def scales(self, scale: Parameter) -> None:
        """A LossScaler scales something."""
        self.scale = scale
        self.is_scaled = self.is_scaled or not _C.mode() & dispatch.TRACING

    def again(self, fn: Callable) -> Callable[[list[Tensor]], float] | None:
        """A step like the script's: the loss of a batch; None where the script updates by itself."""
        optimizer = self.facts.params.optimizer
        if isinstance(optimizer, NoOptimizer):
            return None

        def step(batch: list[Tensor]) -> float:
            given = list(optimizer.parameters)
            value, _, gradients = transforms.differentiate(lambda *a: _first(fn(*a)), batch, [], given)
            scale = float(self.scale.asnumpy()) if self.is_scaled else 1.0  # as in the last step
            optimizer(tuple(g / scale for g in gradients))
            return _first_number(value) / scale

        return step

    # ---- epochs --------------------------------------------------------------------------------------------

    def begins_epoch(self, dataset: Any) -> None:
        """The first row of an epoch of a dataset is asked for."""
        self.begun = dataset

    def tells_epoch(self, batch: Batch) -> None:
        """Sees whether a step is the first of an epoch: by the dataset, else by batches that come again."""
        params, begun, self.begun = self.facts.params, self.begun, None
        if begun is not None and not self.facts.losses:
            params.train_dataset = begun
        elif begun is not None and begun is params.train_dataset:
            params.epoch_num += 1
            if self.facts.second_epoch is None:
                self.facts.second_epoch = batch
        elif params.train_dataset is None and len(self.marks) < _MARKED and batch:
            self.marks.append((_mark(batch), _rows(batch)))
            self.tells_period()

    def tells_period(self) -> None:
        """Batches that have come twice in the same order are two epochs."""
        marks, facts = self.marks, self.facts
        if self.period == 0 and len(marks) > 1 and marks[-1] == marks[0]:
            self.period = len(marks) - 1
        period = self.period
        if not period or facts.second_epoch is not None or len(marks) < 2 * period:
            return
        if len(marks) == 2 * period and marks[:period] == marks[period:]:
            facts.second_epoch = facts.train_batches[0]
            facts.train_batches = facts.train_batches[:period]
            facts.params.epoch_num, facts.params.batch_num = 2, period
            facts.rows = sum(rows for _, rows in marks[:period])

    # ---- evaluations ---------------------------------------------------------------------------------------

    def runs(self, network: Any, inputs: Any) -> None:
        """Before an eager call of the network: outside of gradients it is evaluated."""
        if not self.is_idle() and not _C.tape_level() and not _C.mode() & dispatch.TRACING:
            self.evaluates(list(inputs))

    def evaluates(self, given: list) -> None:
        """The network runs on these without a gradient, to evaluate it, or for the loss of a step."""
        self.settles()
        first = next((t for t in given if isinstance(t, Tensor)), None)
        if first is not None and first is not self.given:
            network = self.facts.params.network
            self.called = first, arrays_of(given), cells_of(network, training=True)

    def settles(self) -> None:
        """The last call of the network was of no step."""
        if self.called is not None:
            _, batch, training = self.called
            if len(self.facts.eval_batches) < BATCHES:
                self.facts.eval_batches.append(batch)
            self.facts.still_training |= training
        self.called = None


def _nothing(value: Any) -> None:
    """What is called after a gradient that is no step."""


def _computes_gradients(run: Run) -> bool:
    """Whether the compiled function has a backward pass."""
    known = run.of.graph.cache.get("computes gradients")
    if known is None:
        known = any("Gradients/" in operator.name for operator in run.of.operators.values())
        run.of.graph.cache["computes gradients"] = known
    return known


def _living(kinds: Any) -> list[Any]:
    """All objects of a kind, or of some; scripts keep them where they like."""
    return [o for o in gc.get_objects() if isinstance(o, kinds)]


def _optimizer_of(parameters: list[Parameter]) -> Any:
    """The optimizer that updates most of these, None if there is none."""
    ids = {id(p) for p in parameters}
    shared = lambda o: sum(id(p) in ids for p in o.parameters)
    found = max((o for o in _living(Optimizer) if "parameters" in o.__dict__), key=shared, default=None)
    return found if found is not None and shared(found) else None


def _network_of(parameters: list[Parameter]) -> Cell:
    """The outermost Cell of these that is neither a step nor an optimizer; else a Cell made of them."""
    ids = {id(p) for p in parameters}
    shares: dict[int, int] = {}
    cells = []
    for cell in _living(Cell):
        if "_cells" not in cell.__dict__ or type(cell).__module__.startswith(_HIDDEN):
            continue
        inner = [c for _, c in cell.cells_and_names()]
        shares[id(cell)] = sum(id(p) in ids for p in cell.get_parameters())
        if shares[id(cell)] and not any(isinstance(c, Optimizer) for c in inner):
            cells.append((cell, inner))
    if cells:
        # Most of the Parameters, then most Cells: what stands around a network and adds none is part of it.
        return max(cells, key=lambda entry: (shares[id(entry[0])], len(entry[1])))[0]
    loose = Cell(auto_prefix=False)
    for parameter in parameters:
        loose._params[parameter.name] = parameter
    return loose


def _scale_of(network: Cell) -> Parameter | None:
    """The loss scale of the Cell that makes the steps, if it has one."""
    for cell in _living(Cell):
        scale = cell.__dict__.get("scale_sense")
        if isinstance(scale, Parameter) and any(c is network for _, c in cell.cells_and_names()):
            return scale
    return None


def _first(value: Any) -> Any:
    return _first(value[0]) if isinstance(value, (tuple, list)) and value else value


def _first_number(value: Any) -> float:
    """The loss among what a step returned: its first floating number, or the mean of its first floats."""
    leaves: list = []
    flatten(value, leaves)
    floats = [t for t in leaves if t.dtype.is_floating]
    found = next((t for t in floats if t.size == 1), floats[0] if floats else None)
    return float("nan") if found is None else float(np.mean(found.asnumpy().astype(np.float64)))


def _rows(batch: Batch) -> int:
    return len(batch[0]) if batch and batch[0].ndim else 1


def _mark(batch: Batch) -> bytes:
    return hashlib.sha256(b"".join(np.ascontiguousarray(column).tobytes() for column in batch)).digest()
