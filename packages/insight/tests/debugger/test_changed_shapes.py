"""A tensor that had another shape in the step before, as in the last and smaller batch of an epoch, is
compared with nothing: the interfaces say so, and why.
"""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia as ms
from mycelia import debug, nn
from mycelia.debug.cli import app as mycelia_debug
from mycelia.engine import observing
from mycelia_insight.runs.library import Library
from mycelia_insight.service.app import make_app
from mycelia_insight.service.settings import Settings

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "service")]
from asgi import Client  # noqa: E402
from dump_folders import Net  # noqa: E402

SESSIONS = "/v1/mindinsight/debugger/sessions"
BATCHES = [5, 5, 3]


def dump_eager_training(folder: Path) -> None:
    """Three steps in PyNative mode, the last with fewer samples."""
    ms.set_seed(1)
    loss = nn.WithLossCell(Net(), nn.MSELoss())
    step = nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params(), 0.1))
    with ms.config.context(mode=ms.PYNATIVE_MODE), debug.dump({"path": str(folder)}):
        observing.set_iteration(0)
        for size in BATCHES:
            x = np.linspace(-1, 1, 3 * size, dtype=np.float32).reshape(size, 3)
            step(ms.Tensor(x), ms.Tensor(np.ones((size, 2), np.float32)))


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    dump_eager_training(folder / "dump")
    return folder


@pytest.fixture
def client(base, tmp_path) -> Client:
    return Client(make_app(Settings(), Library(str(base), str(tmp_path), 0)))


@pytest.fixture
def session(client) -> str:
    return client.post(SESSIONS, {"session_type": "OFFLINE", "dump_dir": "./dump"}).json()


def nodes(client, session) -> dict[str, str]:
    """Last parts of names -> names."""
    found = client.get(f"/api/v1/debugger/{session}/nodes?rank=0").json()["nodes"]
    return {one["name"].rpartition("/")[2]: f"graph_{one['graph']}/{one['name']}" for one in found}


def test_the_interface_of_mindinsight_refuses_the_comparison(client, session):
    relu = quote(nodes(client, session)["ReLU-op0"])
    for step, refused in ((2, False), (3, True)):
        client.post(f"{SESSIONS}/{session}/control", {"mode": "reset", "steps": step})
        answer = client.get(f"{SESSIONS}/{session}/tensor-comparisons?name={relu}:0")
        assert answer.status_code == (400 if refused else 200), answer.text
    told = answer.json()
    assert told["error_code"] == "5054B185"
    assert "its shape is [3, 4], before it was [5, 4]" in told["error_msg"]
    assert client.get(f"{SESSIONS}/{session}/tensors?name={relu}:0").status_code == 200
    weight = quote(nodes(client, session)["fc1.weight"])  # which keeps its shape
    answer = client.get(f"{SESSIONS}/{session}/tensor-comparisons?name={weight}:0")
    assert answer.status_code == 200 and answer.json()["tensor_value"]["statistics"]["different"]


def test_the_interface_of_pages_refuses_it_and_lists_it_among_what_differs(client, session):
    relu = nodes(client, session)["ReLU-op0"]
    where = f"/api/v1/debugger/{session}/tensor?rank=0&step=3&name={quote(relu)}:0"
    answer = client.get(f"{where}&other=2")
    assert answer.status_code == 400
    assert "has shape [3, 4] in step 3, [5, 4] in 2" in answer.json()["error"]
    assert client.get(where).json()["steps"] == [1, 2, 3]
    told = client.get(f"/api/v1/debugger/{session}/difference?rank=0&step=3&other=2").json()
    row = next(row for row in told["rows"] if row["node"] == relu)
    assert row["kind"] == "shape" and row["shapes"] == [[3, 4], [5, 4]] and told["shape"] >= 3
    history = client.get(f"/api/v1/debugger/{session}/history?rank=0&name={quote(relu)}:0").json()
    assert [one["count"] for one in history["steps"]] == [20, 20, 12]


def test_the_prompt_says_why_it_compares_nothing(base):
    done = CliRunner().invoke(
        mycelia_debug, [str(base / "dump"), "--iteration", "2", "compare", "ReLU-op0", "1"]
    )
    assert "[3, 4]" in done.output and "[5, 4]" in done.output and "Traceback" not in done.output
