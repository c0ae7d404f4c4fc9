"""Several pages over one session, and what comes while they ask: nothing is lost, mixed or out of date."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("grpc", reason="the debugger's connection is gRPC")

from mycelia.debug.messages import debugger_pb2 as messages
from mycelia_insight.debugger.offline import OfflineSession
from mycelia_insight.debugger.online import training as trainings
from mycelia_insight.debugger.online.listener import Listener
from mycelia_insight.debugger.online.session import OnlineSession
from mycelia_insight.debugger.online.training import WAITING, Training
from mycelia_insight.debugger.searching import Ticked
from mycelia_insight.debugger.views import Views
from mycelia_insight.debugger.wrong import Wrong

sys.path.insert(0, str(Path(__file__).parents[1]))
from dump_folders import STEPS, dump_training

OVERFLOW = {"id": "tensor_overflow", "params": []}


def graph_of(*names: str, number: int = 0) -> bytes:
    nodes = [messages.NodeProto(name=n, full_name=n, op_type="ReLU", input_count=1) for n in names]
    return messages.GraphProto(name=f"graph_{number}", node=nodes).SerializeToString()


class Asked(Training):
    """A training that answers at once: each value that it is asked for has one element, the step's number.

    `meanwhile` happens before an answer.
    """

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def ask(self, command):
        self.meanwhile()
        return [(t, np.float32([float(t.iter)])) for t in command.message.view_cmd.tensors]

    def runs(self, step: int, kept: int = 5) -> None:
        """It waits after a step, of which the last few are kept."""
        first = max(1, step - kept + 1)
        self._arrive(messages.Metadata(cur_step=step, first_step=first, graph_names=["graph_0"]))
        self.state = WAITING


@pytest.fixture
def online() -> Iterator[tuple[OnlineSession, Asked]]:
    """A session, and a training after its second step."""
    listener = Listener("127.0.0.1", 0)
    session = OnlineSession(listener)
    found = listener.trainings[0] = Asked(0, "client", "127.0.0.1:1", listener.tell)
    found.take_graphs([graph_of("Default/ReLU-op0")])
    found.runs(1)
    found.runs(2)
    yield session, found
    listener.stop()


@pytest.fixture(scope="module")
def dump(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dump")
    dump_training(folder)
    return folder


def both(what: Callable[[], object]) -> list[object]:
    """What two pages get that ask at one time; an error is one of the answers."""

    def answer() -> object:
        try:
            return what()
        except Wrong as wrong:
            return wrong

    with ThreadPoolExecutor(2) as pool:
        return [one.result() for one in [pool.submit(answer), pool.submit(answer)]]


def test_two_pages_make_a_watchpoint_each(dump, monkeypatch):
    session, together = OfflineSession(dump), threading.Barrier(2, timeout=20)
    named = session._named

    def slowly(*given):
        together.wait()
        return named(*given)

    monkeypatch.setattr(session, "_named", slowly)
    ticked = Ticked([next(iter(session.tree(0).nodes))])
    assert sorted(both(lambda: session.create(OVERFLOW, ticked, 0))) == [1, 2]
    assert sorted(session.watches) == [1, 2]


def test_of_two_pages_that_step_a_training_one_is_heard_and_the_other_told(online, monkeypatch):
    session, training = online
    go = training.go

    def slowly(*given, **more):
        threading.Event().wait(0.2)
        go(*given, **more)

    monkeypatch.setattr(training, "go", slowly)
    answers = both(lambda: session.go("continue", "step", 1))
    assert sorted(type(one) for one in answers if one is not None) == [Wrong]
    assert "pause it first" in str(next(one for one in answers if one is not None))
    assert training.left == 1


def test_two_pages_step_a_dump_twice_and_hits_are_of_the_step_that_is_shown(dump, monkeypatch):
    session = OfflineSession(dump)
    loss = next(name for name, node in session.tree(0).nodes.items() if node.kind == "Parameter")
    session.create(
        {"id": "tensor_too_small", "params": [{"name": "max_lt", "value": 1e9}]}, Ticked([loss]), 0
    )
    checked, steps = session._checked, []

    def slowly(watch, tensor):
        threading.Event().wait(0.1)
        steps.append((session.step, tensor.iteration + 1))
        return checked(watch, tensor)

    monkeypatch.setattr(session, "_checked", slowly)
    both(lambda: session.go("continue", "step", 1))
    assert session.step == 3 and STEPS > 3
    assert steps == [(2, 2), (3, 3)]


@pytest.mark.parametrize("kind", ["dump", "training"])
def test_a_watchpoint_that_is_made_while_others_are_checked_is_told_to_be_unchecked(kind, dump, online):
    session, training = (OfflineSession(dump), None) if kind == "dump" else online
    name = next(iter(session.tree(0).nodes))
    session.create(OVERFLOW, Ticked([name]), 0)
    left = [1]

    def another_page() -> None:
        if left:
            left.clear()
            session.create(OVERFLOW, Ticked([name]), 0)

    if training is None:
        checked = session._checked
        session._checked = lambda *given: (another_page(), checked(*given))[1]
    else:
        training.meanwhile = another_page
    session.recheck()
    assert session.is_outdated
    session.recheck()
    assert not session.is_outdated


def test_what_was_checked_is_the_step_that_was_shown_then(online):
    session, training = online
    session.create(OVERFLOW, Ticked(["graph_0/Default/ReLU-op0"]), 0)
    training.meanwhile = lambda: setattr(session, "_past", 1)  # another page looks back
    session.recheck()
    assert session.step == 1 and session.is_outdated
    session._past = None
    assert session.step == 2 and not session.is_outdated


def test_a_rank_that_connects_while_a_page_asks_is_no_fault(online):
    session, _ = online

    class Slow(Asked):
        """A rank, while whose state is read another one connects."""

        @property
        def is_gone(self) -> bool:
            known = session.listener.trainings
            known[max(known) + 1] = Asked(max(known) + 1, "other", "127.0.0.1:1", session.tell)
            return False

        @is_gone.setter
        def is_gone(self, value: bool) -> None:
            """It never is."""

    session.listener.trainings[1] = Slow(1, "slow", "127.0.0.1:1", session.tell)
    assert session.metadata(0)["step"] is not None
    assert set(session.hits) >= {0, 1}


def test_a_node_of_a_graph_that_is_told_no_more_has_no_values(online):
    session, training = online
    node = session.node("Default/ReLU-op0", "graph_0", 0)
    assert session.elements("graph_0/Default/ReLU-op0:0", "", 0).tolist() == [2]
    training.take_graphs([graph_of("Default/ReLU-op0", "Default/ReLU-op1")])
    assert session.node("Default/ReLU-op1", "graph_0", 0)
    assert len(node.get_output_tensors([0], [1])) == 1  # a page may still hold it
    training.take_graphs([graph_of("Default/ReLU-op0", number=7)])
    assert session.node("Default/ReLU-op0", "graph_7", 0)
    assert node.get_output_tensors([0], [1]) == []


def test_nodes_that_come_while_a_page_asks_are_told_when_it_asks_again(online, monkeypatch):
    session, training = online
    views, tree = Views(session), session.tree

    def then_a_graph_comes(rank):
        found = tree(rank)
        training.take_graphs([graph_of("Default/ReLU-op0", "Default/ReLU-op1")])
        return found

    views.graph(0, "")
    monkeypatch.setattr(session, "tree", then_a_graph_comes)
    told, shown = views.nodes(0, -1), views.graph(0, "")
    assert [node["name"] for node in told["nodes"]] == ["Default/ReLU-op0"]
    monkeypatch.undo()
    again = views.nodes(0, told["version"])
    assert [node["name"] for node in again["nodes"]] == ["Default/ReLU-op0", "Default/ReLU-op1"]
    assert views.nodes(0, again["version"])["nodes"] is None
    assert views.graph(0, "") is not shown


def test_small_values_of_a_long_training_take_bounded_memory(online):
    session, training = online
    wanted = [f"Default/ReLU-op{i}" for i in range(10)]
    for step in range(3, 200):
        training.runs(step)
        training.load((step, "graph_0", name, "0") for name in wanted)
    assert len(training.values) == 5 * len(wanted) and training.cached_bytes == 4 * len(training.values)
    assert training.load([(199, "graph_0", wanted[0], "0")]) == {(199, "graph_0", wanted[0], "0"): [199]}


def test_a_value_that_two_pages_ask_for_counts_once_and_each_gets_it(online, monkeypatch):
    session, training = online
    together = threading.Barrier(2, timeout=20)
    monkeypatch.setattr(trainings, "_CACHED", 4)
    training.meanwhile = together.wait
    keys = iter([(2, "graph_0", "Default/ReLU-op0", "0")] * 2 + [(2, "graph_0", "a", "0")] * 2)
    assert both(lambda: len(training.load([next(keys)]))) == [1, 1]
    assert training.cached_bytes == 4 == 4 * len(training.values)
    assert both(lambda: next(iter(training.load([next(keys)]).values())).tolist()) == [[2], [2]]
    assert training.cached_bytes == 4 == 4 * len(training.values)
