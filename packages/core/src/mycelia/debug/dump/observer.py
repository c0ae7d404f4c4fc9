"""The observer that makes a data dump of what runs, as `docs/debugging.md` shows."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from mycelia.debug.dump import config as settings
from mycelia.debug.dump import files
from mycelia.debug.dump.config import DumpConfig
from mycelia.debug.dump.trouble import Trouble
from mycelia.debug.dump.writer import PARAMETER, Record, Step, Writer
from mycelia.debug.statistics import is_finite
from mycelia.engine.base import config, log
from mycelia.engine.base.origins import Origin
from mycelia.engine.observing import NOTHING, VALUES, Observer, Operator, Run
from mycelia.engine.tensors.tensor import Tensor


class DumpObserver(Observer):
    """Writes what `found` asks for, or keeps it for the time of some steps, until there is trouble.

    What is kept shares its memory with the run: only what the run would have overwritten costs memory of its
    own.
    """

    def __init__(self, found: DumpConfig) -> None:
        self.config = found
        self.writer = Writer(found)
        self.overflows = 0
        self.asked = not found.signal  # by a signal, where one is set
        keeps = found.last_steps or found.conditions
        self.trouble = Trouble(found.conditions) if keeps else None
        self.kept: deque[Step] = deque(maxlen=max(found.last_steps, found.before + 1))
        self.after = 0  # steps that are still written since there was trouble

    def move(self, found: DumpConfig) -> None:
        """From now on write what `found` says, elsewhere; what is kept in memory is forgotten."""
        self.config, self.writer = found, Writer(found)
        self.kept.clear()

    def ask(self, *_: Any) -> None:
        """The next step is dumped, where a signal is what asks for steps. Serves as a handler of signals."""
        self.asked = True

    # ---- what is wanted

    def wants(self, run: Run) -> int:
        found, writer = self.config, self.writer
        if writer.is_broken or (found.ranks is not None and writer.rank not in found.ranks):
            return NOTHING
        if not self.asked or not found.has_iteration(self.number(run)):
            return NOTHING
        return VALUES

    def number(self, run: Run) -> int:
        return run.iteration + self.config.initial_iteration

    def is_chosen(self, operator: Operator) -> bool:
        if self.config.dump_mode == settings.DUMP_KERNELS:
            return self.config.kernels.matches(operator.type, operator.name)
        if self.config.dump_mode == settings.DUMP_TARGETS:
            origin = operator.origin
            if not isinstance(origin, Origin):
                return False
            return bool(origin.dumped) or operator.type in origin.dumped_kinds
        return True

    # ---- what is seen

    def begin(self, run: Run) -> None:
        run.notes[self] = Step(run.of, self.number(run))
        if self.config.op_debug_mode or self.config.dump_mode != settings.DUMP_ALL:
            return
        for name, tensor, _ in run.named_arguments():
            self.take(run, Record(PARAMETER, name, files.CLOCK.stamp(), "output", 0, tensor._detach()))

    def seen(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> None:
        step: Step = run.notes[self]
        if run.of.graph is None:
            step.calls.append((operator, list(inputs), list(outputs)))
        if self.config.op_debug_mode == settings.EXCEPTION or not self.is_chosen(operator):
            return
        if self.config.op_debug_mode == settings.OVERFLOW:
            limit = self.config.overflow_number
            if (limit and self.overflows >= limit) or all(map(is_finite, outputs)):
                return
            self.overflows += 1
        step.operators.append(operator)
        if self.config.input_output != settings.OUTPUTS:
            self.take_all(run, operator, "input", inputs)
        if self.config.input_output != settings.INPUTS:
            self.take_all(run, operator, "output", outputs)

    def failed(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], error: BaseException
    ) -> None:
        if run.of.graph is None:
            run.notes[self].calls.append((operator, list(inputs), []))
        if self.config.op_debug_mode == settings.EXCEPTION and self.is_chosen(operator):
            self.take_all(run, operator, "input", inputs)

    def take_all(self, run: Run, operator: Operator, io: str, tensors: Sequence[Tensor | None]) -> None:
        for slot, tensor in enumerate(tensors):
            if tensor is not None:
                record = Record(operator.type, operator.name, files.CLOCK.stamp(), io, slot, tensor)
                self.take(run, record)

    def take(self, run: Run, record: Record) -> None:
        step: Step = run.notes[self]
        if not record.tensor.size and config.get("dump_ignore_useless_output"):
            return
        if self.trouble is not None:
            step.records.append(record)
        else:
            self.writer.guarded(self.writer.add, step, record)

    def end(self, run: Run, error: BaseException | None) -> None:
        step: Step = run.notes.pop(self)
        if self.config.signal:
            self.asked = False
        if self.trouble is None:
            self.writer.guarded(self.writer.finish, step)
            return
        self.kept.append(step)
        reason = self.trouble.found(step, error)
        if reason:
            text = "%s in iteration %d: the steps kept are written to %s"
            log.logger(__name__).warning(text, reason, step.iteration, self.config.path)
            self.after = self.config.after + 1
        if self.after:
            self.after -= 1
            while self.kept:
                self.writer.guarded(self.writer.finish, self.kept.popleft())
