"""Requests made by hypothesis against a whole server in this process: ports, master, engine, a model."""

from __future__ import annotations

import threading

import grpc
import numpy as np
import pytest

import mycelia as ms
from mycelia import nn
from mycelia_serving.cluster.local import LocalWorker
from mycelia_serving.cluster.master import Master
from mycelia_serving.engine import Engine
from mycelia_serving.frontend import json_values, large, native, start_grpc, start_rest
from mycelia_serving.testing import PREDICT, Target, fuzz
from mycelia_serving.wire.predict import parse_reply, request_bytes

CONFIG = """
from mycelia_serving.server import register

model = register.declare_model("add.mindir", "MindIR")

@register.register_method(output_names=["y"])
def add_common(x1, x2):
    return register.add_stage(model, x1, x2, outputs_count=1)
"""


class Add(nn.Cell):
    def construct(self, x1, x2):
        return x1 + x2


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    home = tmp_path_factory.mktemp("servables") / "add"
    (home / "1").mkdir(parents=True)
    (home / "servable_config.py").write_text(CONFIG)
    x = ms.Tensor(shape=[None, 2, 2], dtype=ms.float32)
    ms.export(Add(), x, x, file_name=str(home / "1" / "add"), file_format="MINDIR")
    engine = Engine(str(home.parent), "add")
    engine.start()
    master = Master()
    worker = LocalWorker(engine)
    master.add(worker)
    yield master
    master.close()
    worker.close()


@pytest.mark.parametrize("front_end", ["native", "grpcio", "as if large"])
def test_malformed_requests_are_refused_and_good_ones_served(master, monkeypatch, front_end):
    if front_end == "native" and native.missing():
        pytest.skip(native.missing())
    if front_end == "as if large":
        for module, name, value in (
            (large, "LARGE", 0),
            (large, "LARGE_PACKED", 0),
            (json_values, "LARGE", 0),
            (json_values, "_LONG", 2),
        ):
            monkeypatch.setattr(module, name, value)
    grpc_port = start_grpc(master, "127.0.0.1:0", native={"native": True, "grpcio": False}.get(front_end))
    rest_port = start_rest(master, "127.0.0.1:0")
    over, wrong, right = threading.Event(), [], []

    def good() -> None:
        value = np.arange(4, dtype=np.float32).reshape(2, 2)
        body = request_bytes("add", "add_common", 0, [{"x1": value, "x2": value}])
        with grpc.insecure_channel(f"127.0.0.1:{grpc_port.port}") as channel:
            while not over.wait(0.01) or not right:
                (result,) = parse_reply(channel.unary_unary(PREDICT)(body, timeout=60)).results
                (right if np.array_equal(result["y"], 2 * value) else wrong).append(result)

    thread = threading.Thread(target=good)
    thread.start()
    try:
        target = Target(grpc_port.port, rest_port.port, "add", "add_common", ("x1", "x2"))
        outcomes = fuzz(target, 80 if front_end == "native" else 30, 1)
    finally:
        over.set()
        thread.join()
        grpc_port.stop()
        rest_port.stop()
    assert sum(outcomes.values()) >= 30
    assert right
    assert not wrong
