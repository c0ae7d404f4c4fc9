"""What the wheels of serving and cache give beside the core: run by `hatch run wheels:check`."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "serving_add"
WAIT_S = 120


def command(name: str) -> Path:
    return Path(sys.executable).with_name(name)


def test_the_packages_come_from_wheels():
    for name in ("mycelia", "mycelia_backend_cpu", "mycelia_serving", "mycelia_cache"):
        assert "site-packages" in Path(importlib.util.find_spec(name).origin).parts


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture
def addresses(tmp_path):
    """(gRPC address, REST address) of a server of the example, with one worker process."""
    home = tmp_path / "servables"
    shutil.copytree(EXAMPLE, home, ignore=shutil.ignore_patterns("[0-9]*", "__pycache__"))
    spec = importlib.util.spec_from_file_location("export_models", home / "export_models.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.export_models(home)
    grpc, rest = f"unix:{tmp_path / 'grpc'}", f"127.0.0.1:{free_port()}"
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen(
            [command("mycelia-serving"), "start", "-d", home, "-s", "add", "--grpc", grpc, "--rest", rest],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        wait_until_ready(process, f"http://{rest}/v2/health/ready", tmp_path / "log")
        yield grpc, rest
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0


def wait_until_ready(process: subprocess.Popen, url: str, log: Path) -> None:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"the server did not start: {log.read_text()}")


def test_a_servable_answers_over_grpc_and_rest(addresses):
    from mycelia_serving.client import Client

    grpc, rest = addresses
    x = np.array([[1, 2], [3, 4]], np.float32)
    results = Client(grpc, "add", "add_common").infer({"x1": x, "x2": x})
    np.testing.assert_array_equal(results[0]["y"], 2 * x)
    body = json.dumps({"instances": [{"x1": x.tolist(), "x2": x.tolist()}]}).encode()
    with urllib.request.urlopen(f"http://{rest}/model/add:add_cast", body) as reply:
        assert json.load(reply)["instances"][0]["y"] == (2 * x).tolist()


def test_rows_come_from_the_cache_server(tmp_path):
    calls = tmp_path / "calls"  # outside of the function: what it refers to is part of a pipeline's identity

    def double(x):
        with open(calls, "a") as file:
            file.write("x")
        return np.int64(2 * int(str(x)))

    cache_admin, port = command("mycelia-cache"), free_port()
    subprocess.run([cache_admin, "start", "--port", str(port)], check=True, timeout=WAIT_S)
    try:
        session = subprocess.run(
            [cache_admin, "session", "--port", str(port)],
            check=True, capture_output=True, text=True, timeout=WAIT_S,
        )  # fmt: skip
        number = int("".join(c for c in session.stdout.split()[-1] if c.isdigit()))
        cache = ds.DatasetCache(session_id=number, size=0, port=port)
        file = tmp_path / "numbers.txt"
        file.write_text("".join(f"{i}\n" for i in range(10)))
        rows = ds.TextFileDataset(str(file), shuffle=False).map(double, ["text"], cache=cache)
        for _ in range(2):
            got = [int(x) for (x,) in rows.create_tuple_iterator(num_epochs=1, output_numpy=True)]
            assert got == [2 * i for i in range(10)]
        assert calls.read_text() == 10 * "x"
    finally:
        subprocess.run([cache_admin, "stop", "--port", str(port)], check=True, timeout=WAIT_S)


def test_the_core_finds_what_is_installed():
    plugins = subprocess.run([command("mycelia"), "plugins"], capture_output=True, text=True, check=True)
    assert "serving" in plugins.stdout and "cache" in plugins.stdout
    assert ms.__version__
