"""A `.ms` file served: gRPC and REST, batches of several clients, through the loader that Lite brings."""

from __future__ import annotations

import json
import threading
import urllib.request

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn
from mycelia_serving.client import Client
from mycelia_serving.cluster.local import LocalWorker
from mycelia_serving.cluster.master import Master
from mycelia_serving.engine import Engine
from mycelia_serving.frontend import start_grpc, start_rest

CONFIG = """
from mycelia_serving.server import register

model = register.declare_model("net.ms", "FORMAT")

@register.register_method(output_names=["y"], default=True)
def run(x):
    return register.add_stage(model, x, outputs_count=1)
"""


@pytest.fixture(scope="module", params=["MS", "MindIR_Lite"])
def served(request, tmp_path_factory):
    """(gRPC port, REST port, the network)"""
    ms.set_seed(2)
    net = nn.SequentialCell(nn.Dense(6, 5), nn.ReLU(), nn.Dense(5, 3))
    home = tmp_path_factory.mktemp("servables") / "net"
    (home / "1").mkdir(parents=True)
    (home / "servable_config.py").write_text(CONFIG.replace("FORMAT", request.param))
    x = ms.Tensor(shape=[None, 6], dtype=ms.float32)
    ms.export(net, x, file_name=str(home / "net"), file_format="MINDIR")
    mslite.Converter().convert(mslite.FmkType.MINDIR, str(home / "net.mindir"), str(home / "1" / "net"))
    engine = Engine(str(home.parent), "net", max_batch_size=4)
    engine.start()
    master, worker = Master(), LocalWorker(engine)
    master.add(worker)
    servers = start_grpc(master, "127.0.0.1:0"), start_rest(master, "127.0.0.1:0")
    yield servers[0].port, servers[1].port, net
    for server in servers:
        server.stop(0)
    master.close()
    worker.close()


def test_instances_are_answered_in_batches(served):
    rows = np.random.default_rng(1).normal(size=(7, 6)).astype(np.float32)
    expected = served[2](ms.Tensor(rows)).asnumpy()
    found = Client(f"127.0.0.1:{served[0]}", "net", "run").infer([{"x": row} for row in rows])
    assert np.abs(np.stack([one["y"] for one in found]) - expected).max() < 1e-6
    request = urllib.request.Request(
        f"http://127.0.0.1:{served[1]}/model/net:run",
        json.dumps({"instances": [{"x": row.tolist()} for row in rows]}).encode(),
    )
    with urllib.request.urlopen(request) as reply:
        found = json.load(reply)["instances"]
    assert np.abs(np.array([one["y"] for one in found]) - expected).max() < 1e-5


def test_clients_at_the_same_time_get_their_own_answers(served):
    rows = np.random.default_rng(2).normal(size=(24, 6)).astype(np.float32)
    expected, found = served[2](ms.Tensor(rows)).asnumpy(), {}

    def work(begin: int) -> None:
        client = Client(f"127.0.0.1:{served[0]}", "net", "run")
        for i in range(begin, 24, 4):
            found[i] = client.infer({"x": rows[i]})[0]["y"]

    threads = [threading.Thread(target=work, args=(begin,)) for begin in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert np.abs(np.stack([found[i] for i in range(24)]) - expected).max() < 1e-6


def test_a_file_that_is_no_model_is_told(tmp_path):
    (tmp_path / "net" / "1").mkdir(parents=True)
    (tmp_path / "net" / "servable_config.py").write_text(CONFIG.replace("FORMAT", "ms"))
    (tmp_path / "net" / "1" / "net.ms").write_text("no model")
    engine = Engine(str(tmp_path), "net")
    with pytest.raises(RuntimeError, match=r"net.ms cannot be loaded: .*MSL2 is missing"):
        engine.start()
    engine.close()
