"""The way of one request, as docs/serving.md tells it, is the way that one takes."""

from __future__ import annotations

import importlib
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn
from mycelia_serving.client import Client
from mycelia_serving.cluster.child import Settings
from mycelia_serving.cluster.light import LightDeployment
from mycelia_serving.cluster.master import Master
from mycelia_serving.frontend import native, start_grpc

PAGE = Path(__file__).parents[3] / "docs" / "serving.md"
PACKAGE = Path(sys.modules["mycelia_serving"].__file__).parent
CONFIG = """
from mycelia_serving.server import register

model = register.declare_model("add.mindir", "MindIR", with_batch_dim=False)

@register.register_method(output_names=["y"])
def add(x):
    return register.add_stage(model, x, outputs_count=1)
"""


class PlusOne(nn.Cell):
    def construct(self, x):
        return x + 1


def tables() -> list[list[tuple[str, str]]]:
    """File and function of each row, table by table."""
    text = PAGE.read_text().split("## The way of one request")[1].split("\n## ")[0]
    found = []
    for table in re.split(r"\n\n+", text):
        rows = re.findall(r"(?m)^\| `([\w/]+\.py)` \| `([\w.<>]+)` \|", table)
        if rows:
            found.append(rows)
    return found


def module_of(file: str):
    name = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return importlib.import_module(f"mycelia_serving.{name}")


def test_every_function_on_the_way_exists():
    assert [len(rows) for rows in tables()] > [20, 4, 8]
    for file, name in (row for rows in tables() for row in rows):
        found = module_of(file)
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found) and found.__module__ == module_of(file).__name__, f"{file} {name}"


@pytest.fixture
def client(tmp_path):
    """Of a light server on the native front end, all threads of which are traced."""
    if native.missing():
        pytest.skip(native.missing())
    (tmp_path / "plus" / "1").mkdir(parents=True)
    (tmp_path / "plus" / "servable_config.py").write_text(CONFIG)
    ms.export(
        PlusOne(),
        ms.Tensor(np.zeros(2, np.float32)),
        file_name=str(tmp_path / "plus" / "1" / "add"),
        file_format="MINDIR",
    )
    master = Master()
    deployment = LightDeployment(master, Settings(str(tmp_path), "plus", 1))
    deployment.start([None])
    server = start_grpc(master, "127.0.0.1:0", native=True)
    with Client(f"127.0.0.1:{server.port}", "plus", "add", timeout=60) as one:
        yield one
    server.stop()
    deployment.stop(0.0)
    master.close()


@pytest.fixture
def calls():
    """File and function of all calls in threads that are started from now on, while `calls.on` is true."""

    class Calls(list):
        on = False

    found = Calls()

    def trace(frame, event, _):
        if found.on and event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            file = str(Path(frame.f_code.co_filename).relative_to(PACKAGE))
            found.append((file, frame.f_code.co_qualname))

    threading.setprofile(trace)
    yield found
    threading.setprofile(None)


def test_a_request_goes_this_way(calls, client):
    x = np.ones(2, np.float32)
    for _ in range(5):  # until the model is known to be quick
        client.infer({"x": x})
    calls.on = True
    (answer,) = client.infer({"x": x})
    calls.on = False
    np.testing.assert_array_equal(answer["y"], x + 1)
    left = list(calls)
    for row in tables()[0][1:]:  # the first one was called when the server began
        assert row in left, f"{row} is not called after what stands before it"
        left = left[left.index(row) + 1 :]
