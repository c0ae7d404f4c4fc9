"""A training that is debugged: it keeps the values of its last steps, checks watchpoints, and between steps
or operators does what the service of the debugger asks for.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mycelia.debug.messages import debugger_pb2 as messages
from mycelia.debug.messages import graphs
from mycelia.debug.messages.values import NUMBERS, to_messages
from mycelia.debug.online import questions, ranks, watchpoints
from mycelia.debug.online.channel import Channel, Lost, chunks
from mycelia.debug.online.steps import Steps
from mycelia.debug.statistics import array_of, statistics
from mycelia.engine.base import config, log
from mycelia.engine.observing import NOTHING, VALUES, Observer, Operator, Run, unwatch
from mycelia.engine.tensors.tensor import Tensor

_VERSION = "2.10.0"  # of MindSpore, whose protocol this is
_MOST_GRAPHS = 32  # that the service is told of, beside those of steps that are kept


class Terminated(SystemExit):
    """The debugger ended the training; as an exit with status 0 if nobody catches it."""

    def __init__(self, text: str) -> None:
        super().__init__(0)
        self.text = text

    def __str__(self) -> str:
        return self.text


class Debugged(Observer):
    """Tells the service of `channel` what runs, and waits for its commands."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.steps = Steps(config.get("debugger_steps"), config.get("debugger_memory") << 20)
        self.partial = config.get("debugger_partial_mem")
        self.looked_at: set[tuple[str, str]] = set()  # with `partial`: nodes whose values were asked for
        self.watches: dict[int, watchpoints.Watch] = {}
        self.graphs: dict[int, Any] = {}  # number -> message, that which ran last at the end
        self.extents: dict[int, int] = {}  # of eager calls, what the step showed that a message is of
        self.left = 0  # steps to run without waiting; below 0 for ever
        self.node: str | None = None  # the operator to wait after, "" for the next one
        self.node_graph = ""  # of that operator, "" for any
        self.iteration = -1  # the latest whose values are kept
        self.done = 0  # steps that have run
        self.is_begun = False
        self.eager: Run | None = None  # the eager calls of the present step
        self.is_running = False  # an operator of the present step has run
        self.latest = ""  # the operator that ran last
        self.local = threading.local()
        self.turn = threading.RLock()  # one thread at a time talks to the service
        self.parameters: dict[tuple[int, str], Tensor] = {}  # of the training, by (graph, name)

    # ---- connection

    def connect(self) -> bool:
        """Whether the service takes this training; a warning says why not."""
        try:
            reply = self.channel.connect(self.metadata())
            if reply.status != messages.OK:
                is_version = reply.WhichOneof("cmd") == "version_matched" and not reply.version_matched
                why = "it is of another version" if is_version else "another training has this rank"
                raise Lost(f"{self.channel.address} refuses: {why}")
            return True
        except Lost as lost:
            self.give_up(lost)
            return False

    def metadata(self, node: str = "", reason: str = "", done: bool = False) -> Any:
        target = config.get("device_target")
        ran = self.steps.get(self.iteration if node else self.done - 1, ())
        return messages.Metadata(
            device_name=str(config.get("rank")), cur_step=self.done, device_target=target,
            backend="Ascend" if target == "Ascend" else "GPU",
            cur_node=node, training_done=done, graph_num=len(self.graphs), ms_version=_VERSION,
            first_step=min(self.steps, default=-1) + 1, reason=reason,
            graph_names=map(graphs.graph_name, ran),
        )  # fmt: skip

    def give_up(self, lost: Lost) -> None:
        """The service is gone.  Errors: Terminated, as the setting `debugger_lost` says."""
        if self.channel.closing.is_set():
            return
        unwatch(self)
        self.steps = Steps(1, 0)  # nobody asks for values any more
        self.channel.lost = self.channel.lost or str(lost)
        self.channel.close()
        stops = config.get("debugger_lost") == "stop"
        how = "the training stops" if stops else "the training goes on without it"
        log.logger(__name__).warning("the debugger is not there: %s; %s", lost, how)
        if stops:
            raise Terminated(str(lost))

    def close(self) -> None:
        """The training is at its end: the service is told."""
        if not (self.channel.lost or self.channel.closing.is_set()):
            with contextlib.suppress(Lost):
                for told in questions.last_step(self):
                    self.channel.offer("SendAnswer", chunks([told.SerializeToString()]))
                self.channel.call("SendMetadata", self.metadata(done=True))
        self.channel.close()

    # ---- what runs

    def wants(self, run: Run) -> int:
        return NOTHING if self.channel.lost else VALUES

    @property
    def depth(self) -> int:
        return getattr(self.local, "depth", 0)

    def begin(self, run: Run) -> None:
        self.local.depth = self.depth + 1
        with self.turn:
            values = run.notes[self] = self.steps.begin(run.iteration, run.of.number)
            values.of, values.roles = run.of, run.roles()
            self.iteration = run.iteration
            if run.of.graph is None:
                self.eager = run
            self.parameters.update(
                ((run.of.number, n), t) for n, t, is_parameter in run.named_arguments() if is_parameter
            )
            if run.of.number in self.graphs and run.of.graph is not None:
                self.graphs[run.of.number] = self.graphs.pop(run.of.number)
            elif run.of.graph is not None:
                self.tell_graph(run.of.number, graphs.of_graph(run.of, run.roles()))
                if not self.is_begun:
                    self.is_begun = True
                    self.guarded(self.wait)
            for name, tensor, _ in run.named_arguments():
                self.steps.add_parameter(run.iteration, values, name, tensor._detach())

    def seen(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> None:
        if self.channel.lost:
            return
        values = run.notes[self]
        self.latest, self.is_running = operator.name, True
        with self.turn:
            call = operator, list(inputs), list(outputs)
            is_kept = not self.partial or self.is_chosen(run, operator)
            is_kept = is_kept and self.steps.add_call(run.iteration, values, call)
            if run.of.graph is None:
                values.outline.append(call if is_kept else graphs.outlined(call))
            if self.is_awaited(run, operator):
                self.guarded(self.wait, node=operator.name)

    def is_chosen(self, run: Run, operator: Operator) -> bool:
        wanted = {graph for graph, name in self.looked_at if name == operator.name}
        wanted.update(g for w in self.watches.values() for g, name in w.nodes if name == operator.name)
        return _is_among(wanted, run)

    def is_awaited(self, run: Run, operator: Operator) -> bool:
        if self.node is None or self.node not in ("", operator.name):
            return False
        return _is_among({self.node_graph}, run)

    def failed(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], error: BaseException
    ) -> None:
        if self.channel.lost:
            return
        with self.turn:
            values, call = run.notes[self], (operator, list(inputs), [])
            is_kept = self.steps.add_call(run.iteration, values, call)
            if run.of.graph is None:
                values.outline.append(call if is_kept else graphs.outlined(call))
            if not isinstance(error, SystemExit):
                self.guarded(self.wait, node=operator.name, reason=f"{type(error).__name__}: {error}")

    def end(self, run: Run, error: BaseException | None) -> None:
        self.local.depth = self.depth - 1
        self.is_running = self.depth > 0
        with self.turn:
            if run is self.eager:
                self.tell_calls()
                self.eager = None
                number = run.program.number
                self.parameters.update(((number, n), p) for n, (p, _) in run.parameters.items())
            del run.notes[self]

    def tell_calls(self) -> None:
        """The graph that the eager calls of the present step are of, if they show more of it than before."""
        if self.eager is None:
            return
        run, values = self.eager, self.eager.notes[self]
        for name, (_, before) in run.parameters.items():
            self.steps.add_parameter(run.iteration, values, name, before)
        values.of, values.roles = run.program, run.roles()
        number = values.of.number
        self.steps.move(run.iteration, values, number)
        if number in self.graphs:
            self.graphs[number] = self.graphs.pop(number)
        if self.extents.get(number, -1) < run.extent:
            self.extents[number], self.is_begun = run.extent, True
            read = {name: before for name, (_, before) in run.parameters.items()}
            self.tell_graph(number, graphs.of_calls(number, values.outline, read, run.roles()))

    def settled(self, run: Run) -> None:
        if self.depth:
            return  # a function within another: the outer one is the step
        with self.turn:
            self.done = run.iteration + 1
            found = list(watchpoints.hits(list(self.watches.values()), self.steps, run.iteration))
            if found:
                self.left = 0
                self.guarded(self.channel.call, "SendWatchpointHits", iter(found))
            self.guarded(self.tell_values, run.iteration)
            self.left -= self.left > 0
            self.guarded(self.wait)

    def break_here(self, place: str) -> bool:
        """Wait where the code of the training asks for it; False if there is no service any more."""
        if self.channel.lost or self.channel.closing.is_set():
            return False
        with self.turn:
            self.guarded(self.wait, node=self.latest, reason=place)
        return True

    def guarded(self, ask: Any, *args: Any, **named: Any) -> None:
        """Errors: Terminated."""
        try:
            ask(*args, **named)
        except Lost as lost:
            self.give_up(lost)

    def tell_graph(self, number: int, graph: Any) -> None:
        """All graphs that there are, this one among them; those that ran least recently are told no more."""
        self.graphs[number] = graph
        kept = {one for step in self.steps.values() for one in step}
        idle, beyond = [one for one in self.graphs if one not in kept], len(self.graphs) - _MOST_GRAPHS
        for gone in idle[: max(0, beyond)]:
            del self.graphs[gone]
            self.extents.pop(gone, None)
            self.parameters = {place: one for place, one in self.parameters.items() if place[0] != gone}
        texts = [g.SerializeToString() for g in self.graphs.values()]
        self.guarded(self.channel.call, "SendGraph" if len(texts) == 1 else "SendMultiGraphs", chunks(texts))

    # ---- commands

    def wait(self, node: str = "", reason: str = "") -> None:
        """Do what the service asks for until it lets the training go on.  Errors: Lost, Terminated."""
        if self.left and not node and not reason:
            return
        self.tell_calls()
        if reason:
            log.logger(__name__).warning("the debugger waits: %s", reason)
        failures = 0
        while True:
            reply = self.channel.wait(self.metadata(node, reason))
            kind = reply.WhichOneof("cmd")
            if kind == "exit":
                raise Terminated("the debugger ended the training")
            run = reply.run_cmd
            is_pause = run.WhichOneof("cmd") == "run_steps" and not run.run_steps
            if kind == "run_cmd" and run.run_level == "step" and is_pause:
                continue  # MindInsight's pause
            if kind == "run_cmd" and run.run_level != "recheck":
                self.go(run)
                return
            if kind == "run_cmd":
                self.recheck(run.run_steps)
            elif kind == "set_cmd":
                self.set_watch(reply.set_cmd)
            elif kind == "view_cmd":
                self.show(reply.view_cmd)
            elif kind == "ask_cmd":
                self.answer(reply.ask_cmd)
            else:  # nothing for now
                failures += 1
                if failures > 5:  # as many as MindSpore tries
                    raise Lost(f"{self.channel.address} has no commands")
                self.channel.closing.wait(0.2)

    def go(self, command: Any) -> None:
        if command.run_level == "node":
            self.node, self.node_graph, self.left = command.node_name, command.graph_name, 0
        else:
            self.node, self.left = None, (command.run_steps or 1)

    def set_watch(self, command: Any) -> None:
        if command.delete:
            self.watches.pop(command.id, None)
            return
        try:
            self.watches[command.id] = watchpoints.read(command)
        except (ValueError, TypeError) as cause:
            log.logger(__name__).warning("the debugger sent a watchpoint that is none: %s", cause)

    def recheck(self, step: int) -> None:
        iteration = step - 1 if step > 0 else self.iteration
        is_over = iteration < self.done
        found = list(watchpoints.hits(list(self.watches.values()), self.steps, iteration, is_over))
        if found:  # MindInsight drops the commands that follow, even if there are none
            self.channel.call("SendWatchpointHits", iter(found))
        if is_over:
            self.tell_values(iteration)

    def tell_values(self, iteration: int) -> None:
        """What the service compares with other ranks, if anything.  Errors: Lost."""
        if any(w.condition.compares_ranks for w in self.watches.values()):
            found = ranks.values(self.watches.values(), self.steps, iteration, self.parameters)
            self.channel.call("SendRankValues", found)

    # ---- values

    def find(self, wanted: Any) -> Tensor | None:
        """The tensor that a TensorProto asks for."""
        iteration = self.iteration
        if wanted.iter == "prev":
            iteration -= 1
        elif wanted.iter:
            iteration = int(wanted.iter) - 1 if wanted.iter.isdecimal() else -1
        # MindInsight puts Parameters into the scopes of their readers.
        name = wanted.node_name.rpartition("/")[2] if wanted.truncate else wanted.node_name
        if self.partial:
            self.looked_at.add((wanted.graph_name, name))
        step = self.steps.get(iteration, {})
        for number, values in step.items():
            if wanted.graph_name in ("", graphs.graph_name(number)):
                found = values.find(name, wanted.slot)
                if found is not None:
                    return found
        return None

    def show(self, command: Any) -> None:
        wanted = [(w, self.find(w)) for w in command.tensors]
        if command.level == messages.ViewCMD.base:
            self.channel.call("SendTensorBase", (_base(t) for _, t in wanted))
        elif command.level == messages.ViewCMD.statistics:
            self.channel.call("SendTensorStats", (_summary(t) for _, t in wanted))
        else:
            self.channel.call("SendTensors", self.contents(wanted))

    def contents(self, wanted: list[tuple[Any, Tensor | None]]) -> Iterator[Any]:
        for asked, tensor in wanted:
            head = {"node_name": asked.node_name, "slot": asked.slot, "iter": asked.iter}
            head["graph_name"] = asked.graph_name
            if tensor is None:
                yield messages.TensorProto(**head, finished=True)
            else:
                yield from to_messages(array_of(tensor), **head)

    def answer(self, command: Any) -> None:
        found = questions.answer(self, command.question, command.arguments)
        self.channel.call("SendAnswer", chunks([found.SerializeToString()]))


def _is_among(wanted: set[str], run: Run) -> bool:
    """Whether the graph of a run is, or may still be, one of these names; "" stands for any."""
    if not wanted or "" in wanted:
        return bool(wanted)
    return any(graphs.graph_name(of.number) in wanted for of in run.candidates)


def _base(tensor: Tensor | None) -> Any:
    if tensor is None:
        return messages.TensorBase()
    number = NUMBERS.get(np.dtype(array_of(tensor).dtype).name, 0)
    return messages.TensorBase(data_type=number, shape=tensor.shape, data_size=tensor.nbytes)


def _summary(tensor: Tensor | None) -> Any:
    if tensor is None:
        return messages.TensorSummary(tensor_base=_base(None))
    found = statistics(tensor)
    numbers = messages.Statistics(
        is_bool=tensor.dtype.name == "bool", max_value=found.max, min_value=found.min, avg_value=found.mean,
        count=found.count, neg_zero_count=found.negative, pos_zero_count=found.positive, nan_count=found.nan,
        neg_inf_count=found.negative_inf, pos_inf_count=found.positive_inf, zero_count=found.zero,
    )  # fmt: skip
    return messages.TensorSummary(tensor_base=_base(tensor), statistics=numbers)
