"""One server with a real engine, asked over every protocol, and by other people's clients where they are:
tritonclient and MindSpore Serving's, in the environments that `hatch env create kserve-client` and
`hatch env create serving-client` make.
"""

from __future__ import annotations

import http.client
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn
from mycelia_serving.client import Client
from mycelia_serving.cluster.local import LocalWorker
from mycelia_serving.cluster.master import Master
from mycelia_serving.engine import Engine
from mycelia_serving.frontend import start_grpc, start_rest

CONFIG = """
from mycelia_serving.server import register

model = register.declare_model("add.mindir", "MindIR")

@register.register_method(output_names=["y"], default=True)
def add(x1, x2):
    return register.add_stage(model, x1, x2, outputs_count=1)

def shout(text, data):
    if not text:
        raise ValueError("there is nothing to shout")
    return text.upper(), bytes(data)[::-1]

@register.register_method(output_names=["text", "data"])
def loud(text, data):
    return register.add_stage(shout, text, data, outputs_count=2)
"""
X = np.arange(12, dtype="f4").reshape(3, 2, 2)


class Add(nn.Cell):
    def construct(self, x1, x2):
        return x1 + x2


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    """Ports of gRPC and REST."""
    home = tmp_path_factory.mktemp("servables") / "mix"
    (home / "1").mkdir(parents=True)
    (home / "servable_config.py").write_text(CONFIG)
    x = ms.Tensor(np.zeros((2, 2, 2), "f4"))
    ms.export(Add(), x, x, file_name=str(home / "1" / "add"), file_format="MINDIR")
    engine = Engine(str(home.parent), "mix")
    engine.start()
    master = Master()
    worker = LocalWorker(engine)
    master.add(worker)
    servers = start_grpc(master, "127.0.0.1:0"), start_rest(master, "127.0.0.1:0")
    yield tuple(server.port for server in servers)
    for server in servers:
        server.stop(0)
    master.close()
    worker.close()


@pytest.fixture
def post(ports):
    connection = http.client.HTTPConnection("127.0.0.1", ports[1], timeout=60)

    def post(path, document):
        connection.request("POST", path, json.dumps(document))
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    yield post
    connection.close()


def test_three_instances_at_batch_two_come_back_in_order_over_every_protocol(ports, post):
    wanted = (2 * X).tolist()
    with Client(f"127.0.0.1:{ports[0]}", "mix", "add") as client:
        assert [r["y"].tolist() for r in client.infer([{"x1": x, "x2": x} for x in X])] == wanted
    rest = {"instances": [{"x1": x.tolist(), "x2": x.tolist()} for x in X]}
    status, reply = post("/model/mix/version/1:add", rest)
    assert status == 200 and [i["y"] for i in reply["instances"]] == wanted
    inputs = [
        {"name": name, "shape": [3, 2, 2], "datatype": "FP32", "data": X.tolist()} for name in ("x1", "x2")
    ]
    status, reply = post("/v2/models/mix/infer", {"inputs": inputs})
    assert status == 200 and reply["outputs"][0]["shape"] == [3, 2, 2]
    assert reply["outputs"][0]["data"] == (2 * X).reshape(-1).tolist()


def test_strings_and_bytes_over_every_protocol(ports, post):
    with Client(f"127.0.0.1:{ports[0]}", "mix", "loud") as client:
        assert client.infer({"text": "ä", "data": b"\x01\xff"}) == [{"text": "Ä", "data": b"\xff\x01"}]
    sent = {"text": "ä", "data": {"b64": "Af8="}}
    reply = post("/model/mix:loud", {"instances": [sent, {"text": "", "data": {"b64": ""}}]})[1]["instances"]
    assert reply[0] == {"text": "Ä", "data": {"b64": "/wE="}}
    assert all(word in reply[1]["error_msg"] for word in ("shout", "loud", "nothing to shout"))


def test_a_stage_that_raises_for_every_instance_is_a_bad_request(ports, post):
    bad = {"text": "", "data": {"b64": ""}}
    status, reply = post("/model/mix:loud", {"instances": [bad]})
    assert status == 400 and "nothing to shout" in reply["error_msg"]
    with Client(f"127.0.0.1:{ports[0]}", "mix", "loud") as client:
        assert "nothing to shout" in client.infer({"text": "", "data": b""})["error"]


def test_instances_that_do_not_fit_the_model_fail_alone(ports, post):
    good = {"x1": X[0].tolist(), "x2": X[0].tolist()}
    for bad in ({"x1": [1.0], "x2": [1.0]}, {"x1": 1, "x2": 1}, {"x1": good["x1"]}, {"x1": "a", "x2": "b"}):
        status, reply = post("/model/mix:add", {"instances": [good, bad, good]})
        assert status == 200 and [set(i) for i in reply["instances"]] == [{"y"}, {"error_msg"}, {"y"}]


def run_client(environment: str, script: str, *addresses: str) -> None:
    python = Path(__file__).parents[3] / f".venv-{environment}" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"run: hatch env create {environment}")
    subprocess.run([python, "-c", script, *addresses], check=True, timeout=120)


REAL_CLIENT = """
import sys
import numpy as np
from mindspore_serving.client import Client

address = sys.argv[1]
x = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
client = Client(address, "mix", "add")
for infer in (client.infer, lambda i: client.infer_async(i).result()):
    results = infer([{"x1": v, "x2": v} for v in x])
    assert np.array_equal([r["y"] for r in results], 2 * x), results
good, bad = client.infer([{"x1": x[0], "x2": x[0]}, {"x1": x[0]}])
assert set(good) == {"y"} and "x2" in bad["error"]
assert "x2" in client.infer({"x1": x[0]})["error"]
loud = Client(address, "mix", "loud")
assert loud.infer({"text": "a", "data": b"12"}) == [{"text": "A", "data": b"21"}]
assert "shout" in loud.infer({"text": "", "data": b""})["error"]
for name, method, version in (("no", "add", 0), ("mix", "no", 0), ("mix", "add", 9)):
    assert "error" in Client(address, name, method, version).infer({"x1": x[0], "x2": x[0]})
assert "instances" in client.infer([])["error"]
"""


def test_the_client_of_mindspore_serving(ports):
    run_client("serving-client", REAL_CLIENT, f"127.0.0.1:{ports[0]}")


TRITON_CLIENT = """
import importlib
import sys
import numpy as np

for kind, address in zip(("grpc", "http"), sys.argv[1:]):
    module = importlib.import_module("tritonclient." + kind)
    client = module.InferenceServerClient(address)
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("mix") and client.is_model_ready("mix.loud", "1")
    assert not client.is_model_ready("nobody") and not client.is_model_ready("mix", "7")
    x = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    inputs = [module.InferInput(name, x.shape, "FP32") for name in ("x1", "x2")]
    for one in inputs:
        one.set_data_from_numpy(x)
    assert np.array_equal(client.infer("mix", inputs).as_numpy("y"), 2 * x)
    if kind == "http":
        more = {"request_compression_algorithm": "gzip", "response_compression_algorithm": "deflate"}
        outputs = [module.InferRequestedOutput("y", binary_data=False)]
        for one in inputs:
            one.set_data_from_numpy(x, binary_data=False)
        assert np.array_equal(client.infer("mix", inputs, outputs=outputs, **more).as_numpy("y"), 2 * x)
    try:
        client.infer("mix", inputs[:1])
    except module.InferenceServerException as error:
        assert "x2" in error.message()
    else:
        raise SystemExit("a missing input was taken")
    client.close()
"""


def test_the_client_of_triton(ports):
    run_client("kserve-client", TRITON_CLIENT, *[f"127.0.0.1:{port}" for port in ports])
