"""The service as a process: messages and exit codes of the commands, what it answers, who may ask."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from event_files import path_of, scalar, write

FIXTURE = Path(__file__).parents[1] / "fixtures" / "summary"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Command:
    """`mycelia-insight` with a workspace and a list of services of its own."""

    def __init__(self, folder: Path):
        self.folder, self.port = folder, free_port()
        self.environment = {
            **{name: value for name, value in os.environ.items() if "INSIGHT" not in name},
            "HOME": str(folder / "home"),
            "MYCELIA_INSIGHT_WORKSPACE": str(folder / "workspace"),
        }

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-c", "from mycelia_insight.cli import app; app()", *arguments],
            text=True, capture_output=True, timeout=180, env={**self.environment, **environment},
        )  # fmt: skip

    def start(self, base: Path, *more: str) -> subprocess.CompletedProcess:
        return self("start", "--port", str(self.port), "--summary-base-dir", str(base), *more)

    def get(self, path: str, **headers: str):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read())

    def refused(self, path: str, **headers: str) -> tuple[int, str]:
        with pytest.raises(urllib.error.HTTPError) as error:
            self.get(path, **headers)
        return error.value.code, error.value.read().decode()


@pytest.fixture
def command(tmp_path):
    made = Command(tmp_path)
    yield made
    made("stop", "--port", str(made.port))


def until(check, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := check():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come")


def test_a_service_from_start_to_stop(command):
    started = command.start(FIXTURE)
    assert started.stdout.splitlines() == [
        f"Workspace: {command.folder / 'workspace'}",
        f"Summary base dir: {FIXTURE}",
        f"Web address: http://127.0.0.1:{command.port}",
        "service start state: success",
    ]
    assert started.returncode == 0
    (listed,) = json.loads(command("status", "--json").stdout)
    assert (listed["port"], listed["summary_base_dir"]) == (command.port, str(FIXTURE))
    again = command.start(FIXTURE)
    assert again.returncode == 2 and f"Reusing Mycelia Insight on port {command.port}." in again.stdout
    other = command.start(command.folder)
    assert other.returncode == 1 and f"could not bind to port {command.port}" in other.stdout
    stopped = command("stop", "--port", str(command.port))
    assert (stopped.returncode, stopped.stdout) == (0, "Stop mycelia-insight service successfully\n")
    gone = command("stop", "--port", str(command.port))
    assert gone.returncode == 1
    assert (
        gone.stdout.strip()
        == f"No mycelia-insight service started by current user found for port {command.port}"
    )
    assert command("status").stdout == "No service is running.\n"


@pytest.mark.parametrize(
    "option, value, expected",
    [
        ("--port", "99999", "--port should be chosen from 1 to 65535"),
        ("--port", "x", "--port should be chosen from 1 to 65535"),
        ("--reload-interval", "301", "--reload-interval should be chosen from 0 to 300"),
        ("--url-path-prefix", "a/../b", "--url-path-prefix should be segments"),
        ("--config", "file:/nothing.toml", "--config file:/nothing.toml: "),
    ],
)
def test_a_bad_option_is_named(command, option, value, expected):
    found = command("start", option, value)
    assert found.returncode == 2 and expected in found.stderr


def test_a_bad_variable_is_named(command):
    found = command("start", MYCELIA_INSIGHT_PORT="70000")
    assert (
        found.returncode == 1
        and found.stderr.strip() == "MYCELIA_INSIGHT_PORT should be chosen from 1 to 65535"
    )


def test_options_go_before_variables_and_these_before_a_configuration(tmp_path):
    from mycelia_insight.service import settings

    config = tmp_path / "config.toml"
    config.write_text('PORT = 1111\nRELOAD_INTERVAL = 7\nURL_PATH_PREFIX = "a/b"\n')
    environ = {"MINDINSIGHT_PORT": "2222", "MYCELIA_INSIGHT_RELOAD_INTERVAL": "8"}
    found = settings.of({"port": 3333}, f"file:{config}", environ)
    assert (found.port, found.reload_interval, found.url_path_prefix) == (3333, 8, "/a/b")
    assert settings.of({}, f"file:{config}", environ).port == 2222


def test_others_need_a_token(command):
    found = command.start(FIXTURE, "--host", "0.0.0.0")
    assert found.returncode == 1 and "give a --token" in found.stderr
    assert command.start(FIXTURE, "--token", "s3cret").returncode == 0
    assert command.refused("/api/v1/runs")[0] == 401
    assert command.refused("/api/v1/runs?token=wrong")[0] == 401
    assert command.get("/api/v1/runs?token=s3cret")["base"] == str(FIXTURE)
    assert command.get("/api/v1/runs", Authorization="Bearer s3cret")["base"] == str(FIXTURE)
    assert command.get("/api/v1/runs", Cookie="mycelia-insight=s3cret")["base"] == str(FIXTURE)


def test_a_page_of_another_site_is_refused(command):
    assert command.start(FIXTURE).returncode == 0
    assert command.refused("/api/v1/runs", Host="evil.example")[0] == 421
    assert command.get("/api/v1/runs", Host=f"localhost:{command.port}")


def test_own_and_compatible_interface(command):
    assert command.start(FIXTURE, "--url-path-prefix", "x/y").returncode == 0
    listed = until(lambda: (rows := command.get("/x/y/api/v1/runs"))["loading"] is False and rows["runs"])
    assert [row["run"] for row in listed] == ["run1"]
    tags = command.get("/x/y/api/v1/runs/run1/tags")["kinds"]
    assert [tag["tag"] for tag in tags["scalar"]] == ["loss_op", "loss/auto"]
    expected = json.loads((FIXTURE / "run1.expected.json").read_text())["scalar"]["loss/auto/scalar"]
    (series,) = command.get("/x/y/api/v1/runs/run1/scalars?tag=loss/auto")["series"]
    assert series["steps"] == expected["steps"] and series["values"] == pytest.approx(expected["values"])
    prefix = "/x/y/v1/mindinsight/datavisual"
    (job,) = command.get(f"{prefix}/train-jobs?offset=0&limit=10")["train_jobs"]
    assert (job["train_id"], job["summary_files"], job["lineage_files"]) == ("./run1", 1, 2)
    assert job["plugins"]["scalar"] == ["loss/auto/scalar", "loss_op/scalar"]
    found = command.get(f"{prefix}/scalar/metadata?train_id=./run1&tag=loss/auto/scalar")["metadatas"]
    assert [value["step"] for value in found] == expected["steps"]
    status, text = command.refused(f"{prefix}/scalar/metadata?train_id=./nothing&tag=x")
    assert status == 400 and json.loads(text)["error_code"] == "50545005"
    document = command.get("/x/y/api/v1/openapi.json")
    assert {"/runs", "/runs/{run}/tags", "/runs/{run}/scalars"} <= document["paths"].keys()


@pytest.mark.parametrize(
    "path, status, expected",
    [
        ("runs/none/tags", 404, "run 'none' does not exist"),
        ("runs/run1/scalars", 400, "'tag' is required"),
        ("runs/run1/scalars?tag=none", 404, "has no scalar 'none'"),
        ("runs/run1/scalars?tag=loss_op&points=1e9", 400, "'points' must be integer of 0..20000"),
        ("runs/run1/scalars?tag=loss_op&points=-1", 400, "'points' must be integer of 0..20000"),
        ("runs/run1/scalars?tag=loss_op&from=nan", 400, "'from' must be number"),
        ("runs/run1/scalars?tag=loss_op&axis=x", 400, "'axis' must be one of step, time"),
        ("runs/..%2f..%2fetc/tags", 404, "does not exist"),
    ],
)
def test_bad_requests_are_named(service, path, status, expected):
    found, text = service.refused(f"/api/v1/{path}")
    assert found == status and expected in json.loads(text)["error"]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    made = Command(tmp_path_factory.mktemp("service"))
    assert made.start(FIXTURE).returncode == 0
    until(lambda: not made.get("/api/v1/runs")["loading"])
    yield made
    made("stop", "--port", str(made.port))


def test_values_arrive_while_they_are_written(command):
    base = command.folder / "base"
    write(base / "run", [scalar("loss", 0, float("nan"))])
    assert command.start(base).returncode == 0
    until(lambda: command.get("/api/v1/runs")["runs"])
    with urllib.request.urlopen(f"http://127.0.0.1:{command.port}/api/v1/stream", timeout=20) as stream:
        assert stream.readline() == b"retry: 1000\n"
        with path_of(base / "run").open("ab") as file:
            file.write(scalar("loss", 1, float("-inf")))
        lines = iter(stream.readline, b"")
        assert next(line for line in lines if line.startswith(b"data:")) == b'data: {"runs":["run"]}\n'
    (series,) = command.get("/api/v1/runs/run/scalars?tag=loss")["series"]
    assert series["values"] == ["NaN", "-Infinity"]
    values = command.get("/v1/mindinsight/datavisual/scalars?train_id=./run&tag=loss/scalar")["scalars"][0][
        "values"
    ]
    assert [value["value"] for value in values] == [None, None]


def test_a_service_lives_on_without_room_in_its_workspace(command):
    base, count = command.folder / "base", 60_000
    write(base / "run", [scalar("loss", step, step % 97) for step in range(count)])
    limited = 'ulimit -f 200; exec "$@"'  # 200 KiB for each file, less than the columns take
    program = [sys.executable, "-c", "from mycelia_insight.cli import app; app()"]
    arguments = ["start", "--port", str(command.port), "--summary-base-dir", str(base)]
    started = subprocess.run(
        ["bash", "-c", limited, "bash", *program, *arguments],
        text=True, capture_output=True, timeout=60, env=command.environment,
    )  # fmt: skip
    assert started.returncode == 0, started.stdout + started.stderr

    def known() -> int:
        kinds = command.get("/api/v1/runs/run/tags")["kinds"] if command.get("/api/v1/runs")["runs"] else {}
        return kinds["scalar"][0]["count"] if kinds else 0

    until(lambda: known() == count)
    (series,) = command.get("/api/v1/runs/run/scalars?tag=loss")["series"]
    assert series["values"] == [step % 97 for step in range(count)]
    with path_of(base / "run").open("ab") as file:
        file.write(scalar("loss", count, 5.0))
    until(lambda: known() == count + 1)
    files = [path for path in command.folder.glob("workspace/index/*/*") if path.is_file()]
    assert files and all(path.stat().st_size <= 200 << 10 for path in files)


def test_check_names_the_first_broken_record(command):
    good = scalar("loss", 0, 1.0)
    bad = bytearray(good)
    bad[20] ^= 1
    path = write(command.folder / "run", [good, bytes(bad)])
    found = command("check", str(command.folder))
    place = path.stat().st_size - len(bad)
    assert found.returncode == 1
    assert (
        f"{path}: 1 broken record, the first at byte {place}: the checksum of a record is wrong"
        in found.stdout
    )
    assert command("check", str(FIXTURE)).returncode == 0
