"""The parts that need no process: versions, scaling, the link, shared memory, arguments."""

from __future__ import annotations

import os
import socket
import threading

import numpy as np
import pytest

from mycelia_serving.cluster.arena import Arena
from mycelia_serving.cluster.codec import decode_results, decode_work, encode_results, encode_work
from mycelia_serving.cluster.scaling import ScalePolicy, Scaler
from mycelia_serving.cluster.versions import Versions
from mycelia_serving.cluster.worker_api import Work
from mycelia_serving.errors import Code, ServingError
from mycelia_serving.request import MethodInfo, TensorInfo
from mycelia_serving.rpc.connection import Connection, Kind
from mycelia_serving.servable.directory import VersionPolicy

# ---- versions --------------------------------------------------------------------------------------------


class FakeDeployment:
    def __init__(self, version: int, broken: set):
        self.version, self.broken = version, broken
        self.published = self.stopped = False

    def start(self, device_ids, extra=0, *, publish=True):
        if self.version in self.broken:
            raise RuntimeError(f"version {self.version} is broken")
        self.published = publish

    def publish(self):
        self.published = True

    def stop(self, drain_seconds):
        self.stopped = True


@pytest.fixture
def versions(tmp_path, make_master):
    """`versions(policy, *numbers)`: a servable with those folders, and what is broken."""
    folder = tmp_path / "add"
    folder.mkdir()
    (folder / "servable_config.py").touch()

    def make(policy: str, *numbers: int):
        for number in numbers:
            (folder / str(number)).mkdir()
        master, broken, made = make_master(), set(), []

        def deploy(version):
            made.append(FakeDeployment(version, broken))
            return made[-1]

        one = Versions(
            master,
            str(tmp_path),
            "add",
            deploy,
            policy=VersionPolicy.parse(policy),
            device_ids=[None],
            extra=0,
            drain_seconds=1.0,
        )
        return one, folder, broken, made, master

    return make


@pytest.mark.parametrize(
    ("policy", "running"),
    [("latest", [10]), ("latest:2", [9, 10]), ("all", [1, 9, 10]), ("specific:1,9", [1, 9])],
)
def test_the_policy_says_which_versions_run(versions, policy, running):
    one, *_ = versions(policy, 1, 9, 10)
    one.start()
    assert sorted(one.running) == running


def test_a_version_that_is_not_there_fails_the_start(versions):
    one, *_ = versions("specific:3", 1)
    with pytest.raises(RuntimeError, match="version 3"):
        one.start()


def test_a_new_version_takes_over_and_the_old_one_goes(versions):
    one, folder, _, made, _ = versions("latest", 1)
    one.start()
    one.poll()
    assert len(made) == 1
    (folder / ".2.tmp").mkdir()  # half written: not there yet
    one.poll()
    assert list(one.running) == [1]
    (folder / ".2.tmp").rename(folder / "2")
    one.poll()
    assert list(one.running) == [2]
    assert made[0].stopped and made[1].published


def test_a_broken_version_leaves_the_old_one_and_is_tried_again_when_it_changes(versions):
    one, folder, broken, made, master = versions("latest", 1)
    one.start()
    broken.add(2)
    (folder / "2").mkdir()
    one.poll()
    one.poll()
    assert len(made) == 2, "tried again although nothing changed"
    assert list(one.running) == [1] and not made[0].stopped
    (info,) = [i for i in master.describe() if i.version == 2]
    assert info.state == "failed" and "broken" in info.reason
    broken.clear()
    os.utime(folder / "2", (1e9 + 1, 2e9))
    one.poll()
    assert list(one.running) == [2]


def test_a_broken_version_that_is_removed_is_forgotten(versions):
    one, folder, broken, _, master = versions("latest", 1)
    one.start()
    broken.add(2)
    (folder / "2").mkdir()
    one.poll()
    (folder / "2").rmdir()
    one.poll()
    assert [i.version for i in master.describe()] == []  # fake deployments bring no workers
    assert list(one.running) == [1]


# ---- scaling ---------------------------------------------------------------------------------------------


class Load:
    def __init__(self):
        self.now = (0.0, 0, 16)

    def load(self, name, version, now):
        return self.now


def test_workers_come_while_requests_wait_and_go_when_it_is_calm():
    load, scaler = Load(), Scaler(ScalePolicy(1, 3, queue_s=0.1, idle_s=30.0))
    load.now = (0.5, 16, 16)
    assert scaler.wish(load, "add", 1, 1, now=0.0) == 2
    assert scaler.wish(load, "add", 1, 3, now=1.0) == 3
    load.now = (0.0, 14, 24)
    assert scaler.wish(load, "add", 1, 3, now=2.0) == 3, "two would be crowded"
    load.now = (0.0, 0, 24)
    assert [scaler.wish(load, "add", 1, 3, now=t) for t in (3.0, 20.0, 33.5)] == [3, 3, 2]
    assert [scaler.wish(load, "add", 1, 1, now=t) for t in (100.0, 200.0)] == [1, 1]
    assert scaler.wish(load, "add", 1, 0, now=300.0) == 1


@pytest.mark.parametrize("text", ["", "3", "0-2", "4-2", "1-65", "a-b"])
def test_a_range_of_workers_that_is_none_is_refused(text):
    with pytest.raises(RuntimeError, match="LEAST-MOST"):
        ScalePolicy.parse(text)


# ---- link, codec, shared memory --------------------------------------------------------------------------


@pytest.fixture
def links():
    left, right = (Connection(s) for s in socket.socketpair())
    yield left, right
    left.close()
    right.close()


def test_frames_of_any_size_arrive_whole_and_in_order(links):
    left, right = links
    bodies = [b"", b"a", bytes(3_000_000), b"b" * 300_000, b"c"] * 3
    for number, body in enumerate(bodies):  # nobody reads yet: sending does not wait
        left.send((Kind.PREDICT, number, body))
    received = []
    for kind, number, body in right.frames():
        received.append(body)
        assert (kind, number) == (Kind.PREDICT, len(received) - 1)
        if len(received) == len(bodies):
            break
    assert received == bodies


def test_the_end_of_a_link_ends_its_reader(links):
    left, right = links
    got = []
    thread = threading.Thread(target=lambda: got.extend(right.frames()))
    thread.start()
    left.send((Kind.PING, 0, b"x"))
    left.close()
    thread.join(60)
    assert got == [(Kind.PING, 0, b"x")]
    right.send((Kind.PING, 0, b"x"))  # to nobody


def test_places_of_the_arena_come_and_go():
    arena = Arena.create(1 << 20)
    try:
        places = [arena.take(100_000) for _ in range(10)]
        assert None not in places and arena.take(200_000) is None
        for at in (3, 1, 2, 0, 9, 8, 7, 4, 6, 5):
            arena.give_back(places[at], 100_000)
        assert arena.take(1 << 20) == 0
    finally:
        arena.close()


INFO = MethodInfo(
    "scale",
    (TensorInfo("x", "float32", (200, 200)),),
    (TensorInfo("y", "float32", (200, 200)), TensorInfo("z", "float32", ())),
    0,
)


@pytest.mark.parametrize("shared", [False, True])
def test_work_and_results_pass_with_and_without_shared_memory(shared):
    arena = Arena.create() if shared else None
    try:
        big = np.arange(40_000, dtype=np.float32).reshape(200, 200)
        work = Work("scale", [{"x": big, "s": "t"}, {"x": big + 1}], print, None, 3, "00-ab-cd-01", (5, 6))
        body, places = encode_work(work, {"scale": INFO}, arena)
        assert (len(body) < 10_000) is shared
        received = decode_work(body, arena)
        assert (received.method, received.priority, received.traceparent) == ("scale", 3, "00-ab-cd-01")
        assert received.keys == (5, 6) and received.deadline is None
        np.testing.assert_array_equal(received.instances[1]["x"], big + 1)
        assert received.instances[0]["s"] == "t"
        assert not received.instances[0]["x"].flags.writeable
        error = ServingError(Code.DEADLINE, "too late")
        told = encode_results([{"y": big * 2, "z": np.float32(1)}, error], received, arena)
        assert (len(told) < 10_000) is shared
        first, second = decode_results(told, arena)
        np.testing.assert_array_equal(first["y"], big * 2)
        assert second.code == Code.DEADLINE and second.message == "too late"
        assert bool(places) is shared
    finally:
        if arena is not None:
            arena.close()


# ---- arguments of the start-up API -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"servable_directory": ""}, "servable_directory"),
        ({"servable_directory": 3}, "servable_directory"),
        ({"servable_name": ""}, "servable_name"),
        ({"version_number": -1}, "version_number"),
        ({"version_number": True}, "version_number"),
        ({"device_ids": -1}, "device_ids"),
        ({"device_ids": [0, 0]}, "device_ids"),
        ({"device_type": "TPU"}, "device_type"),
        ({"num_parallel_workers": 65}, "num_parallel_workers"),
        ({"dec_key": b"short"}, "dec_key"),
        ({"dec_key": "k" * 16}, "dec_key"),
        ({"dec_mode": "ROT13"}, "dec_mode"),
    ],
)
def test_arguments_that_are_wrong_are_named(change, name):
    from mycelia_serving import server

    arguments = {"servable_directory": "servables", "servable_name": "add", **change}
    with pytest.raises(RuntimeError, match=f"'{name}'"):
        server.ServableStartConfig(**arguments)


def test_configs_of_one_version_come_together(tmp_path):
    from mycelia_serving import server
    from mycelia_serving.server.start import merge

    for folder in ("a", "b"):
        (tmp_path / folder / "add" / "2").mkdir(parents=True)
        (tmp_path / folder / "add" / "servable_config.py").touch()
    one = server.ServableStartConfig(str(tmp_path / "a"), "add", device_ids=0)
    two = server.ServableStartConfig(str(tmp_path / "a"), "add", device_ids=(0, 1), version_number=2)
    (merged,) = merge((one, two))
    assert (merged.version, merged.devices) == (2, [0, 1])
    other = server.ServableStartConfig(str(tmp_path / "b"), "add")
    with pytest.raises(RuntimeError, match="servable directory"):
        merge((one, other))
    key = server.ServableStartConfig(str(tmp_path / "a"), "add", dec_key=b"k" * 16)
    with pytest.raises(RuntimeError, match="dec_key"):
        merge((one, key))
    with pytest.raises(RuntimeError, match="servable_configs"):
        server.start_servables("add")
    with pytest.raises(RuntimeError, match="servable_configs"):
        server.start_servables(["add"])
