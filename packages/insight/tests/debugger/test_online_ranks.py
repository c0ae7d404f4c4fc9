"""Watching over running trainings that what ranks share is the same on all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("grpc", reason="the debugger's connection is gRPC")

from mycelia.debug.messages import debugger_pb2 as messages
from mycelia.debug.online.ranks import digest, received
from mycelia.parallel.engines import rendezvous
from mycelia_insight.debugger.online import ranks
from mycelia_insight.debugger.online.ranks import RankComparison

sys.path.insert(0, str(Path(__file__).parent))
from desk import Desk

SCRIPT = Path(__file__).with_name("together.py")


@pytest.fixture
def desk(tmp_path):
    found = Desk(tmp_path)
    yield found
    found.close()


def mismatch(desk, bound=None):
    params = [] if bound is None else [{"name": "max_difference_gt", "value": bound}]
    graphs = desk.ask("retrieve", {"mode": "all"})["graph"]["graph_names"]
    given = {"condition": {"id": "rank_mismatch", "params": params}, "watch_nodes": graphs}
    return desk.ask("create-watchpoint", given)["id"]


def points(desk, rank):
    """Name of the node -> its point."""
    rows = desk.ask("search-watchpoint-hits", {"rank_id": rank})["watch_point_hits"]
    return {row["node_name"]: row["tensors"][0]["watch_points"][0] for row in rows}


@pytest.mark.parametrize("options", [(), ("--eager",)], ids=["graph", "eager"])
def test_weights_that_go_apart_are_found_after_the_step_that_did_it(desk, options):
    for rank in (0, 1):
        desk.train("--steps", "9", "--apart", "3" if rank else "0", *options, RANK_ID=str(rank))
    desk.until("waiting", 1 if options else 0, ranks=2)
    mismatch(desk)
    desk.go(4)
    assert desk.until("waiting", ranks=2)["step"] == 3
    weights = {n["name"] for n in desk.nodes(node_category="weight")}
    for rank in (0, 1):
        found = points(desk, rank)
        assert found.keys() == weights and len(weights) >= 5
        assert {(p["error_code"], p["reason"]) for p in found.values()} == {
            (0, f"after the step it is another than that of rank {1 - rank}")
        }
    desk.ask("control", {"mode": "reset", "steps": 2})
    assert not points(desk, 0) and not points(desk, 1)
    desk.ask("control", {"mode": "reset", "steps": 3})
    assert points(desk, 0).keys() == points(desk, 1).keys() == weights


def test_differences_within_the_bound_are_none(desk):
    for rank in (0, 1):
        desk.train("--steps", "9", "--apart", "1" if rank else "0", RANK_ID=str(rank))
    desk.until("waiting", 0, ranks=2)
    wide = mismatch(desk, 1e6)
    desk.go(2)
    desk.until("waiting", 2, ranks=2)
    assert not points(desk, 0) and not points(desk, 1)
    desk.ask("delete-watchpoint", {"watch_point_id": wide})
    mismatch(desk, 1e-12)
    desk.ask("recheck", {})
    name = next(n["name"] for n in desk.nodes(name="fc3.bias", node_category="weight"))
    first, second = (points(desk, rank)[name] for rank in (0, 1))
    (param,), (other,) = (p["watch_condition"]["params"] for p in (first, second))
    assert param["value"] == 1e-12 and 0 < param["actual_value"] == other["actual_value"] < 1


def test_a_training_without_other_ranks_is_told_of_it(desk):
    desk.train("--steps", "3")
    desk.until("waiting", 0)
    mismatch(desk)
    desk.go(-1)
    assert desk.until("waiting")["step"] == 1
    assert {p["error_code"] for p in points(desk, 0).values()} == {128}


def train_together(desk, *options):
    """Two ranks that reduce their gradients; they meet here."""
    meeting = rendezvous.listen("127.0.0.1", 0)
    where = {"MS_WORKER_NUM": "2", "MS_SCHED_PORT": str(meeting.getsockname()[1])}
    rendezvous.Rendezvous(meeting, 2, "", 600.0).start()
    for rank in (0, 1):
        desk.train(*options, script=SCRIPT, RANK_ID=str(rank), **where)


@pytest.mark.parametrize("options", [(), ("--eager",)], ids=["graph", "eager"])
def test_ranks_that_share_batches_go_apart_in_the_step_that_lost_a_reduction(desk, options):
    """Their gradients come by a real AllReduce: without the fault all weights are the same, bit for bit."""
    train_together(desk, "--lost", "3", *options)
    desk.until("waiting", 1 if options else 0, ranks=2)
    mismatch(desk)
    desk.go(-1)
    assert desk.until("waiting", ranks=2)["step"] == 3
    for rank in (0, 1):
        found = points(desk, rank)
        ((name, point),) = found.items()
        assert name.endswith("last.bias")
        assert point["reason"] == f"after the step it is another than that of rank {1 - rank}"


def test_ranks_that_share_batches_stay_the_same(desk):
    train_together(desk)
    desk.until("waiting", 0, ranks=2)
    mismatch(desk)
    desk.go(-1)
    for process in desk.processes:
        assert process.communicate()[0] == "trained\n" and process.returncode == 0
    assert not points(desk, 0) and not points(desk, 1)


def told(array, step=1, bound=0.0, name="fc.weight", error_code=0):
    """What a rank tells of one tensor."""
    where = {"graph_name": "graph_0", "node_name": name, "slot": "0", "finished": True}
    message = messages.RankValue(
        id=1, step=step, bound=bound, digest=digest(array), error_code=error_code,
        tensor=messages.TensorProto(**where),
    )  # fmt: skip
    return [(message, array if bound else None)]


ONE, OTHER = np.ones(3, np.float32), np.full(3, 1.5, np.float32)


def test_the_rank_that_differs_is_named_as_soon_as_two_have_told():
    compared = RankComparison()
    assert compared.take(0, told(ONE), {0, 1, 2}, 1) == 0
    assert compared.take(2, told(ONE), {0, 1, 2}, 1) == 0
    assert compared.take(1, told(OTHER), {0, 1, 2}, 1) == 1
    reasons = [compared.of(1, rank)[0].reason.rpartition("than that of ")[2] for rank in range(3)]
    assert reasons == ["rank 1", "ranks 0, 2", "rank 1"]
    assert not compared.of(2, 0)
    compared.forget()
    assert not compared.of(1, 0)


def test_a_later_look_at_a_step_takes_the_place_of_the_first():
    compared = RankComparison()
    for values, found in ((OTHER, 1), (ONE, 0)):
        compared.take(0, told(ONE), {0, 1}, 1)
        assert compared.take(1, told(values), {0, 1}, 1) == found
    assert not compared.of(1, 0)


def test_what_is_not_finite_or_was_not_kept_is_an_error_of_all():
    compared = RankComparison()
    compared.take(0, told(ONE), {0, 1}, 1)
    compared.take(1, told(OTHER, error_code=1), {0, 1}, 1)
    assert [compared.of(1, rank)[0].error_code for rank in (0, 1)] == [1, 1]


@pytest.mark.parametrize("bound, is_found", [(0.5, False), (np.nextafter(0.5, 0), True)])
def test_bounds_are_strict(bound, is_found):
    compared = RankComparison()
    compared.take(0, told(ONE, bound=bound), {0, 1}, 1)
    compared.take(1, told(OTHER, bound=bound), {0, 1}, 1)
    found = compared.of(1, 0)
    assert bool(found) is is_found and (not found or found[0].actual == {"max_difference_gt": 0.5})


def test_zeros_of_either_sign_are_alike_and_shapes_and_dtypes_are_not():
    zero = np.zeros((2, 2), np.float32)
    assert digest(zero) == digest(-zero) and (zero == -zero).all()
    others = [zero.reshape(4), zero.astype(np.float64), zero + 1, np.zeros((2, 0), np.float32)]
    assert len({digest(a) for a in [zero, *others]}) == 5
    assert digest(np.array(3)) == digest(np.array(3)) != digest(np.array(4))


def test_ranks_far_behind_are_waited_for_within_a_limit(monkeypatch, caplog):
    monkeypatch.setattr(ranks, "_MOST_BYTES", 3 * ONE.nbytes)
    compared = RankComparison()
    for step in range(1, 5):
        compared.take(0, told(ONE, step, 0.1), {0, 1}, 1)
    assert "step 1 is compared no more" in caplog.text
    assert compared.take(1, told(OTHER, 2, 0.1), {0, 1}, 1) == 2


def test_messages_that_are_none_are_refused():
    compared = RankComparison()
    wrong = told(ONE)
    wrong[0][0].tensor.slot = "x"
    bounds = [told(ONE, bound=bound) for bound in (-1.0, float("nan"))]
    for given in (wrong, [*told(ONE, 1), *told(ONE, 2)], *bounds):
        with pytest.raises(ValueError, match="of one step"):
            compared.take(0, given, {0}, 1)
    part = messages.RankValue(tensor=messages.TensorProto(data_type=11, dims=[1 << 40], finished=True))
    with pytest.raises(ValueError, match="0 bytes for a tensor"):
        list(received([part]))
