"""A distributed model: agents compute its parts, a leader brings them together."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import tempfile
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn
from mycelia_serving.distributed import messages
from mycelia_serving.distributed.agent import Agent
from mycelia_serving.distributed.ranks import read_rank_table
from mycelia_serving.distributed.startup import startup_agents
from mycelia_serving.engine import Engine
from mycelia_serving.errors import Code, ServingError

PATIENCE_S = 60


class Double(nn.Cell):
    def construct(self, x):
        return x * 2


class PlusOne(nn.Cell):
    def construct(self, x):
        return x + 1


def config(rank_size: int, stage_size: int, more: str = "") -> str:
    return f"""
from mycelia_serving.servable.distributed import declare_servable
from mycelia_serving.servable import register

model = declare_servable({rank_size}, {stage_size}{more})

@register.register_method("y")
def predict(x):
    return register.add_stage(model, x, outputs_count=1)
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    home = tmp_path_factory.mktemp("parts")
    x = ms.Tensor(np.zeros((2, 3), np.float32))
    for name, net in (("double", Double()), ("plus", PlusOne())):
        ms.export(net, x, file_name=str(home / name), file_format="MINDIR")
    return SimpleNamespace(double=str(home / "double.mindir"), plus=str(home / "plus.mindir"))


@pytest.fixture
def place(tmp_path):
    """A servable, a rank table of this host, and an address that no other process has."""
    sockets = tempfile.mkdtemp(prefix="ranks")  # short enough for the path of a socket

    def make(text: str, rank_size: int = 2) -> dict:
        (tmp_path / "parts").mkdir(exist_ok=True)
        (tmp_path / "parts" / "servable_config.py").write_text(text)
        devices = [{"rank_id": str(k), "device_id": str(k)} for k in range(rank_size)]
        table = tmp_path / "ranks.json"
        table.write_text(json.dumps({"server_list": [{"server_id": "127.0.0.1", "device": devices}]}))
        return {"rank_table": str(table), "address": f"unix:{sockets}/leader"}

    yield make
    shutil.rmtree(sockets)


@pytest.fixture
def serve(tmp_path, place):
    """Starts an engine and, meanwhile, agents in this process."""
    engines, agents = [], []

    def join(rank: int, file: str, leader: dict) -> Agent:
        settings = {
            "rank": rank, "model_file": file, "group_config_file": None, "host": "127.0.0.1", "port": 0,
            "leader": leader["address"], "dec_key": None, "dec_mode": "AES-GCM",
        }  # fmt: skip
        agent = Agent(settings)
        agent.register()
        agents.append(agent)
        return agent

    def start(text: str, *files: str):
        leader = place(text, len(files))
        engine = Engine(str(tmp_path), "parts", leader=leader)
        engines.append(engine)
        outcome = []

        def work() -> None:
            try:
                engine.start()
            except RuntimeError as error:
                outcome.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        joined = []
        while len(joined) < len(files):
            try:
                joined.append(join(len(joined), files[len(joined)], leader))
            except RuntimeError as error:  # the leader's socket is not there, or not listened to, yet
                if "no leader answers" not in str(error) or not thread.is_alive():
                    raise
                time.sleep(0.01)
        thread.join(PATIENCE_S)
        if outcome:
            raise outcome[0]
        return SimpleNamespace(engine=engine, agents=joined, leader=leader, join=join)

    yield start
    for engine in engines:
        engine.close()
    for agent in agents:
        agent.close()


def infer(engine: Engine, *rows: np.ndarray) -> list:
    ready, results = threading.Event(), []

    def done(answer: list) -> None:
        results.extend(answer)
        ready.set()

    engine.submit("predict", [{"x": row} for row in rows], done)
    assert ready.wait(PATIENCE_S)
    return results


ROWS = np.arange(15, dtype=np.float32).reshape(5, 3)


@pytest.mark.parametrize("more", ["", ", enable_pipeline_infer=True"])
def test_a_stage_computes_on_what_the_one_before_gave(serve, models, more):
    run = serve(config(2, 2, more), models.double, models.plus)
    results = infer(run.engine, *ROWS)
    np.testing.assert_array_equal([r["y"] for r in results], ROWS * 2 + 1)
    assert run.engine.batch_size == 2 and run.engine.version == 1
    assert run.engine.infos[0].inputs[0].shape == (3,)


def test_the_first_rank_of_a_stage_gives_its_result(serve, models):
    run = serve(config(2, 1), models.plus, models.double)
    np.testing.assert_array_equal([r["y"] for r in infer(run.engine, *ROWS)], ROWS + 1)


def test_when_an_agent_is_lost_all_end_and_a_new_set_may_come(serve, models):
    run = serve(config(2, 2), models.double, models.plus)
    run.agents[1]._predict = lambda number, body: run.agents[1].close()
    (error,) = infer(run.engine, ROWS[0])
    assert isinstance(error, ServingError) and error.code == Code.SYSTEM_ERROR
    assert "agent of rank 1 was lost" in error.message
    assert run.agents[0].ended.wait(PATIENCE_S)
    (error,) = infer(run.engine, ROWS[0])
    assert "2 of its 2 agents are not there" in error.message
    run.join(0, models.plus, run.leader)
    run.join(1, models.double, run.leader)
    assert infer(run.engine, ROWS[1])[0]["y"].tolist() == [8, 10, 12]


def test_an_agent_that_leaves_tells_so(serve, models):
    run = serve(config(2, 2), models.double, models.plus)
    run.agents[0].leave()
    assert run.agents[1].ended.wait(PATIENCE_S)


def test_ranks_come_once(serve, models):
    run = serve(config(2, 2), models.double, models.plus)
    with pytest.raises(RuntimeError, match="rank 0 is there already"):
        run.join(0, models.double, run.leader)
    with pytest.raises(RuntimeError, match="there is no rank 7"):
        run.join(7, models.double, run.leader)


def test_an_error_of_a_part_fails_the_batch_and_not_the_model(serve, models):
    run = serve(config(2, 2), models.double, models.plus)
    model, run.agents[1].model = run.agents[1].model, None
    (error,) = infer(run.engine, ROWS[0])
    assert "the agent of rank 1 failed" in error.message
    run.agents[1].model = model
    assert infer(run.engine, ROWS[0])[0]["y"].tolist() == [1, 3, 5]


def test_agents_are_waited_for_only_so_long(place, tmp_path):
    leader = place(config(2, 1)) | {"wait_seconds": 0.3}
    with pytest.raises(RuntimeError, match=r"Only 0 of 2 agents of 'parts' came within 0.3 seconds"):
        Engine(str(tmp_path), "parts", leader=leader).start()


def test_a_distributed_servable_needs_its_own_start(place, tmp_path):
    place(config(2, 1))
    with pytest.raises(RuntimeError, match="use distributed.start_servable"):
        Engine(str(tmp_path), "parts").start()


@pytest.fixture
def signals():
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_agents_are_processes_that_end_with_their_servable(place, models, tmp_path, signals):
    leader = place(config(2, 2))
    engine = Engine(str(tmp_path), "parts", leader=leader)
    thread = threading.Thread(target=engine.start, daemon=True)
    thread.start()
    before = {t for t in threading.enumerate() if t.name == "serving-agents"}
    startup_agents(leader["address"], [models.double, models.plus], agent_start_port=0)
    thread.join(PATIENCE_S)
    assert infer(engine, ROWS[0])[0]["y"].tolist() == [1, 3, 5]
    engine.close()
    for watcher in set(threading.enumerate()) - before:
        if watcher.name == "serving-agents":
            watcher.join(PATIENCE_S)
            assert not watcher.is_alive(), "the agents go on"


# ---- what is refused ---------------------------------------------------------------------------------------

WRONG = {
    "rank_size": ("0, 1", "'rank_size' should be >= 1"),
    "stage_size": ("2, 'a'", "'stage_size' should be int"),
    "stages": ("4, 3", "rank_size 4 should be a multiple of the stage_size 3"),
    "batch": ("1, 1, 3", "'with_batch_dim' should be bool"),
    "pipeline": ("1, 1, True, None, 'yes'", "'enable_pipeline_infer' should be bool"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_declarations_are_refused(place, tmp_path, case):
    given, message = WRONG[case]
    place(config(1, 1).replace("declare_servable(1, 1)", f"declare_servable({given})"))
    with pytest.raises(RuntimeError, match=message):
        Engine(str(tmp_path), "parts").start()


def test_a_distributed_model_stands_alone(place, tmp_path):
    place(config(1, 1) + "register.declare_model('a.mindir', 'MindIR')\n")
    with pytest.raises(RuntimeError, match="only one of its servable"):
        Engine(str(tmp_path), "parts").start()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not as it should be"),
        ("{}", "'server_list' is missing"),
        ('{"server_list": []}', "the ranks 0 to 1, but has none"),
        ('{"server_list": [{"server_id": "a", "device": [{"rank_id": 1, "device_id": 0}]}]}', "but has 1"),
        ('{"server_list": [{"server_id": "a", "device": [{"device_id": 0}]}]}', "'rank_id' is missing"),
    ],
)
def test_a_wrong_rank_table_is_refused(tmp_path, text, message):
    path = tmp_path / "ranks.json"
    path.write_text(text)
    with pytest.raises(RuntimeError, match=message):
        read_rank_table(str(path), 2)
    with pytest.raises(RuntimeError, match="cannot be read: No such file"):
        read_rank_table(str(tmp_path / "absent"), 2)


def test_agents_check_what_they_are_given(models, tmp_path):
    address = f"unix:{tmp_path}/nobody"
    with pytest.raises(RuntimeError, match="absent.mindir does not exist"):
        startup_agents(address, ["absent.mindir"])
    with pytest.raises(RuntimeError, match="1 model files, but 2 group config files"):
        startup_agents(address, [models.plus], [models.plus, models.double])
    with pytest.raises(RuntimeError, match="16, 24 or 32 bytes, but has 3"):
        startup_agents(address, [models.plus], dec_key=b"abc")
    with pytest.raises(RuntimeError, match="given together or not at all"):
        startup_agents(address, [models.plus], agent_ip="127.0.0.1")


def test_ports_in_use_are_named(place, models, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        leader = place(config(2, 2)) | {"address": address}
        with pytest.raises(RuntimeError, match=f"cannot listen on {address}"):
            Engine(str(tmp_path), "parts", leader=leader).start()
        settings = {
            "rank": 0, "model_file": models.plus, "group_config_file": None, "host": "127.0.0.1",
            "port": taken.getsockname()[1], "leader": address, "dec_key": None, "dec_mode": "AES-GCM",
        }  # fmt: skip
        with pytest.raises(RuntimeError, match=f"{address} cannot be had: it is in use"):
            Agent(settings)


def test_an_agent_that_falls_silent_is_lost(serve, models, monkeypatch):
    monkeypatch.setattr(messages, "PING_S", 0.02)
    run = serve(config(2, 2), models.double, models.plus)
    run.agents[1]._pings.cancel()
    assert run.agents[0].ended.wait(PATIENCE_S) and run.agents[1].ended.wait(PATIENCE_S)


def test_a_stranger_at_the_port_of_a_leader_changes_nothing(serve, models):
    run = serve(config(2, 2), models.double, models.plus)
    for sent in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\0\0\0\0\x04" + b"\0" * 8):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(run.leader["address"].removeprefix("unix:"))
            sock.sendall(sent)
            sock.settimeout(PATIENCE_S)
            assert sock.recv(1) == b""
    assert infer(run.engine, ROWS[0])[0]["y"].tolist() == [1, 3, 5]
