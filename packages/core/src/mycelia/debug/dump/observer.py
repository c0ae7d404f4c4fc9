"""The observer that makes a data dump of what runs, as `docs/debugging.md` shows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from mycelia.debug.dump import config as settings
from mycelia.debug.dump import device_overflow, files
from mycelia.debug.dump.config import DumpConfig
from mycelia.debug.dump.groups import PARAMETER, Group, Step
from mycelia.debug.dump.kept import Kept
from mycelia.debug.dump.naming import UniqueNumbers
from mycelia.debug.dump.trouble import Trouble
from mycelia.debug.dump.writer import Writer
from mycelia.debug.messages.graphs import Call
from mycelia.debug.statistics import is_finite
from mycelia.engine.base import config, log
from mycelia.engine.base.origins import Origin
from mycelia.engine.observing import NOTHING, VALUES, Observer, Operator, Run
from mycelia.engine.tensors.tensor import Tensor

_MOST_NUMBERED = 64  # graphs whose operators have numbers of their own


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
        self.asked_for = 0  # how often
        keeps = found.last_steps or found.last_bytes or found.conditions
        self.trouble = Trouble(found.conditions) if keeps else None
        counted = found.last_steps or found.conditions
        self.kept = Kept(max(found.last_steps, found.before + 1) if counted else None, found.last_bytes)
        self.after = 0  # steps that are still written since there was trouble
        # Of graphs, where operators are named by them, that which ran last at the end.
        self.numbers: OrderedDict[int, UniqueNumbers] = OrderedDict()

    def move(self, found: DumpConfig) -> None:
        """From now on write what `found` says, elsewhere; what is kept in memory is forgotten."""
        self.config, self.writer = found, Writer(found)
        self.kept.clear()

    def ask(self, *_: Any) -> None:
        """The next step is dumped, where a signal is what asks for steps. Serves as a handler of signals."""
        self.asked_for += 1
        self.asked = True

    def answered(self, asked_for: int) -> None:
        """A step has been dumped that began when there had been so many signals: of those that came while it
        ran the next step is.
        """
        if self.config.signal and asked_for == self.asked_for:
            self.asked = False

    # ---- what is wanted

    def passes(self, number: int) -> bool:
        return not self.asked or not self.config.has_iteration(number + self.config.initial_iteration)

    def wants(self, run: Run) -> int:
        found, writer = self.config, self.writer
        if writer.is_broken or (found.ranks is not None and writer.rank not in found.ranks):
            return NOTHING
        return NOTHING if self.passes(run.iteration) else VALUES

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

    def tell_unmet(self) -> None:
        """Warn of what stands in `kernels` and no operator met."""
        unmet = self.config.kernels.unmet if self.config.dump_mode == settings.DUMP_KERNELS else ()
        if unmet:
            text = "dump_config: no operator of the iterations that were dumped meets %s in 'kernels'"
            log.logger(__name__).warning(text, ", ".join(map(repr, unmet)))

    # ---- what is seen

    def named(self, run: Run, operator: Operator | None = None) -> Any:
        """What a run is of, or one of its operators, by the names that the dump gives."""
        if self.config.naming != "2.0":
            return run.of if operator is None else operator
        numbers = self.numbers.get(run.of.number)
        if numbers is None:
            numbers = self.numbers[run.of.number] = UniqueNumbers(run.of)
            while len(self.numbers) > _MOST_NUMBERED:  # with the graphs that they are of
                self.numbers.popitem(last=False)
        if operator is None:
            self.numbers.move_to_end(run.of.number)
        return numbers.of if operator is None else numbers.of_operator(operator)

    def begin(self, run: Run) -> None:
        step = run.notes[self] = Step(self.named(run), self.number(run))
        step.roles, step.asked_for = run.roles(), self.asked_for
        if self.trouble is not None:
            self.trouble.begin(step)
        if self.config.op_debug_mode or self.config.dump_mode != settings.DUMP_ALL:
            return
        for name, tensor, _ in run.named_arguments():
            self.take(run, self.group(PARAMETER, name, (), [tensor._detach()]))

    def before(self, run: Run, operator: Operator, inputs: Sequence[Tensor | None]) -> None:
        step: Step = run.notes[self]
        if self.config.op_debug_mode == settings.OVERFLOW:
            step.task = device_overflow.latest()
        if self.config.op_debug_mode or self.config.dump_mode != settings.DUMP_ALL:
            return
        # Which Parameters eager calls read shows one by one; a graph has told of its own at the beginning.
        if len(run.parameters) > step.parameters:
            step.roles = run.roles()
        for name in list(run.parameters)[step.parameters :]:
            _, value = run.parameters[name]
            self.take(run, self.group(PARAMETER, name, (), [value]))
        step.parameters = len(run.parameters)

    def seen(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> None:
        step: Step = run.notes[self]
        operator = self.named(run, operator)
        call = (operator, list(inputs), list(outputs)) if run.of.graph is None else None
        which = self.config.input_output
        if self.is_written(step, operator, outputs):
            step.operators.append(operator)
            read = () if which == settings.OUTPUTS else inputs
            made = () if which == settings.INPUTS else outputs
            self.take(run, self.group(operator.type, operator.name, read, made, call))
        elif call is not None:
            self.take(run, Group(operator.type, operator.name, 0, (), (), call))

    def is_written(self, step: Step, operator: Operator, outputs: Sequence[Tensor]) -> bool:
        mode = self.config.op_debug_mode
        if mode == settings.EXCEPTION or not self.is_chosen(operator):
            return False
        if mode == settings.OVERFLOW:
            limit = self.config.overflow_number
            if limit and self.overflows >= limit:
                return False
            task = device_overflow.task_after(step.task)
            if task is not None and task.status:
                step.overflows.append((task, files.CLOCK.take(1), operator))
            elif all(map(is_finite, outputs)):
                return False
            self.overflows += 1
        return True

    def failed(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], error: BaseException
    ) -> None:
        operator = self.named(run, operator)
        written = self.config.op_debug_mode == settings.EXCEPTION and self.is_chosen(operator)
        call = (operator, list(inputs), []) if run.of.graph is None else None
        self.take(run, self.group(operator.type, operator.name, inputs if written else (), (), call))

    def group(
        self,
        kind: str,
        name: str,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor | None],
        call: Call | None = None,
    ) -> Group:
        """As much of these as is written: tensors without elements are not, unless they are wanted."""
        if config.get("dump_ignore_useless_output"):
            inputs = [t if t is not None and t.size else None for t in inputs]
            outputs = [t if t is not None and t.size else None for t in outputs]
        if sample := self.config.sample_num:
            inputs, outputs = (
                [None if t is None else _sample(t, sample) for t in ts] for ts in (inputs, outputs)
            )
        count = sum([t is not None for t in inputs]) + sum([t is not None for t in outputs])
        if not count:
            inputs = outputs = ()
        return Group(kind, name, files.CLOCK.take(count), inputs, outputs, call)

    def take(self, run: Run, group: Group) -> None:
        step: Step = run.notes[self]
        if self.trouble is not None:
            if group.inputs or group.outputs or group.call:
                self.trouble.look(step, group)
                self.kept.add(step, group)
            return
        if group.call is not None:
            step.calls.append(group.call)
        if group.kind == PARAMETER and run.of.graph is None:
            step.read.append(group)
        if group.inputs or group.outputs:
            self.writer.guarded(self.writer.add, step, group)

    def end(self, run: Run, error: BaseException | None) -> None:
        step: Step = run.notes.pop(self)
        if run.of.graph is None:
            step.of, step.extent = run.program, run.extent
        self.answered(step.asked_for)
        if self.trouble is None:
            self.writer.guarded(self.writer.finish, step)
            return
        self.kept.end(step)
        reason = f"{type(error).__name__}: {error}" if error is not None else step.reason
        if reason:
            text = "%s in iteration %d: the steps kept are written to %s"
            log.logger(__name__).warning(text, reason, step.iteration, self.config.path)
            self.after = self.config.after + 1
        if self.after:
            self.after -= 1
            for kept in self.kept.take():
                if kept.lost:
                    text = "iteration %d lacks its first %d tensors, for which last_bytes had no room"
                    log.logger(__name__).warning(text, kept.iteration, kept.lost)
                self.writer.guarded(self.writer.finish, kept)


def _sample(tensor: Tensor | None, size: int) -> Tensor | None:
    """The first `size` elements of a larger tensor."""
    if tensor is None or tensor.size <= size:
        return tensor
    return tensor._detach().reshape(-1)[:size]
