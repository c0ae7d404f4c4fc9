"""Settings from the command line, variables and configurations, what each does; logs of the workspace."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from asgi import Client  # noqa: E402
from event_files import field, number, scalar, write  # noqa: E402
from test_media import recorded  # noqa: E402
from test_records import bucket, image_message, png  # noqa: E402
from test_service import FIXTURE, Command, command, until  # noqa: E402, F401

from mycelia_insight.runs.library import Library  # noqa: E402
from mycelia_insight.service import logs, settings  # noqa: E402
from mycelia_insight.service.app import make_app  # noqa: E402
from mycelia_insight.service.settings import WITHOUT_EFFECT, SettingError, Settings  # noqa: E402

PAGE = HERE.parents[3] / "docs" / "insight.md"
LINE = re.compile(
    r"\[INFO\] MI\(\d+:\d+,MainProcess\):\d{4}(-\d\d){3}(:\d\d){2}\.\d{3}\.\d{3} "
    r"\[\w+\.py:\d+\]\[[A-Z_]+\] .+"
)


@pytest.mark.parametrize(
    "name, wrong, expected",
    [
        ("port", ["0", "65536", "-1", "1.5", ""], "from 1 to 65535"),
        ("reload_interval", ["-1", "301", "x"], "from 0 to 300"),
        ("enable_debugger", ["yes", "2", ""], "should be true, false, 1 or 0"),
        ("debugger_port", ["0", "65536"], "from 1 to 65535"),
        ("offline_debugger_mem_limit", ["511", "2147483648"], "from 512 to 2147483647"),
        ("max_offline_debugger_session_num", ["0", "9"], "from 1 to 8"),
        ("max_graph_node_size", ["0", "2000001"], "from 1 to 2000000"),
        ("url_path_prefix", ["a/./b", "a b", "ä"], "should be segments"),
    ],
)
def test_every_option_has_its_range(name, wrong, expected):
    option = f"--{name.replace('_', '-')}"
    for value in wrong:
        with pytest.raises(SettingError, match=f"{option} .*{expected}"):
            settings.of({name: value}, environ={})
        with pytest.raises(SettingError, match=f"MINDINSIGHT_{name.upper()} .*{expected}"):
            settings.of({}, environ={f"MINDINSIGHT_{name.upper()}": value})


@pytest.mark.parametrize(
    "name, value, expected",
    [
        ("enable_cors", "TRUE", True),
        ("api_prefix", "v2/x", "/v2/x"),
        ("support_request_methods", "get, post", "GET,POST"),
        ("log_level", "warning", "WARNING"),
        ("max_reload_interval", "600", 600),
        ("max_scalar_step_size_per_tag", "7", 7),
        ("max_tensor_response_data_size", "5", 5),
        ("enable_debugger", "0", False),
    ],
)
def test_settings_come_from_variables_and_configurations(tmp_path, name, value, expected):
    assert getattr(settings.of({}, environ={f"MYCELIA_INSIGHT_{name.upper()}": value}), name) == expected
    config = tmp_path / "config.json"
    config.write_text(json.dumps({name.upper(): value}))
    assert getattr(settings.of({}, f"file:{config}", {}), name) == expected


@pytest.mark.parametrize(
    "name, value",
    [("api_prefix", "/"), ("support_request_methods", "GET,TRACE"), ("support_request_methods", ""),
     ("log_level", "loud"), ("max_image_step_size_per_tag", "-1"), ("max_tensor_response_data_size", "0")],
)  # fmt: skip
def test_what_is_wrong_in_a_configuration_is_named(tmp_path, name, value):
    config = tmp_path / "config.toml"
    config.write_text(f"{name.upper()} = {json.dumps(value)}\n")
    with pytest.raises(SettingError, match=f"{name.upper()} of file:{config} should"):
        settings.of({}, f"file:{config}", {})


def test_configurations_in_python(tmp_path, monkeypatch):
    config = tmp_path / "mi_config.py"
    config.write_text("PORT = 4444\nSUPPORT_REQUEST_METHODS = {'POST', 'GET', 'PUT', 'DELETE'}\n")
    assert settings.of({}, f"file:{config}", {}).port == 4444
    monkeypatch.syspath_prepend(tmp_path)
    found = settings.of({}, "python:mi_config", {})
    assert (found.port, found.support_request_methods) == (4444, "DELETE,GET,POST,PUT")
    for wrong in ("mi_config", "file:x.yaml", "python:no.such", f"file:{tmp_path}/none.json"):
        with pytest.raises(SettingError, match="--config"):
            settings.of({}, wrong, {})


def test_the_longest_interval_is_a_setting():
    assert settings.of({"reload_interval": 301}, environ={"MINDINSIGHT_MAX_RELOAD_INTERVAL": "400"})
    with pytest.raises(SettingError, match="--reload-interval should be chosen from 0 to 10"):
        settings.of({"reload_interval": 11}, environ={"MINDINSIGHT_MAX_RELOAD_INTERVAL": "10"})


def test_every_setting_stands_in_the_page():
    text = PAGE.read_text()
    missing = [name for name in Settings.__dataclass_fields__ if name.upper() not in text]
    options = [f"--{name.replace('_', '-')}" for name in Settings.__dataclass_fields__]
    assert [name for name in missing if f"--{name.replace('_', '-')}" not in text] == []
    assert set(WITHOUT_EFFECT) < set(Settings.__dataclass_fields__) and options


@pytest.fixture
def ask(tmp_path):
    many = [scalar("loss", step, np.sin(step)) for step in range(500)]
    many += [recorded(4, "image", image_message(png(2, 2), 2, 2), step) for step in range(30)]
    many += [recorded(9, "histogram", bucket(step, 1, 5), step) for step in range(30)]
    table = number(1, 30) + number(2, 11) + field(3, np.arange(30, dtype="<f4").tobytes())
    many += [recorded(8, "tensor", table, step) for step in range(30)]
    write(tmp_path / "runs" / "run", many)
    library = Library(str(tmp_path / "runs"), str(tmp_path / "workspace"), 0)
    library.look()
    while library.read():
        pass

    def asked(path: str, method: str = "GET", **given):
        client = Client(make_app(Settings(**given), library))
        answer = client.ask(method, path)
        return answer.status_code, json.loads(answer.body) if answer.body[:1] in b"{[" else answer.body

    return asked


OLD = "/v1/mindinsight/datavisual"


def test_settings_bound_the_answers_of_mindinsights_interface(ask):
    def count(path: str, key: str, **given) -> int:
        return len(ask(f"{OLD}/{path}?train_id=./run&tag={key[:-1]}", **given)[1][key])

    values = ask(f"{OLD}/scalar/metadata?train_id=./run&tag=loss", max_scalar_step_size_per_tag=40)[1]
    steps = [one["step"] for one in values["metadatas"]]
    assert 20 <= len(steps) <= 40 and steps[0] == 0 and steps[-1] == 499
    assert len(ask(f"{OLD}/scalar/metadata?train_id=./run&tag=loss")[1]["metadatas"]) == 500
    for path, tag, key, name in (
        ("image/metadata", "image", "metadatas", "image"),
        ("histograms", "histogram", "histograms", "histogram"),
    ):
        address = f"{OLD}/{path}?train_id=./run&tag={tag}"
        assert len(ask(address)[1][key]) == 30
        for most in (1, 10):
            found = ask(address, **{f"max_{name}_step_size_per_tag": most})[1][key]
            assert len(found) == most and found[-1]["step"] == 29
    address = f"{OLD}/tensors?train_id=./run&tag=tensor&detail="
    assert len(ask(address + "stats", max_tensor_step_size_per_tag=4)[1]["tensors"][0]["values"]) == 4
    data = address + "data&step=3&dims=[:]"
    assert ask(data, max_tensor_response_data_size=30)[0] == 200
    status, told = ask(data, max_tensor_response_data_size=29)
    assert status == 400 and told["error_code"] == "50545013" and "29 values" in told["error_msg"]


def test_the_prefix_of_mindinsights_interface_is_a_setting(ask):
    assert ask("/other/ui-config", api_prefix="/other") == (200, {"enable_debugger": False})
    assert ask("/v1/mindinsight/ui-config", api_prefix="/other")[0] == 404


def test_addresses_and_methods_that_are_not_there_have_the_codes_of_mindinsight(ask):
    # As MindInsight 2.3.1 answers.
    assert ask("/v1/mindinsight/nope") == (404, {"error_code": "50545001", "error_msg": "404 Not Found."})
    refused = (405, {"error_code": "50545002", "error_msg": "405 Method Not Allowed."})
    assert ask(f"{OLD}/scalars", "DELETE") == refused
    assert ask(f"{OLD}/plugins", "PATCH") == refused
    assert ask("/v1/mindinsight/ui-config", support_request_methods="POST") == refused
    assert ask("/api/v1/runs", "TRACE") == refused
    assert ask("/api/v1/runs")[0] == 200


def test_pages_of_other_sites_may_ask_where_that_is_set(tmp_path):
    library = Library(str(tmp_path), str(tmp_path / "workspace"), 0)
    for allowed in (False, True):
        client = Client(make_app(Settings(enable_cors=allowed), library))
        answer = client.ask("GET", "/api/v1/runs", headers={"Origin": "http://other.example"})
        assert answer.headers.get("access-control-allow-origin") == ("*" if allowed else None)
        asked_before = {"Origin": "http://other.example", "Access-Control-Request-Method": "PUT"}
        assert client.ask("OPTIONS", "/api/v1/runs", headers=asked_before).status_code == (
            200 if allowed else 405
        )


def test_logs_have_their_modules_lines_and_modes(command):  # noqa: F811
    assert command.start(FIXTURE, "--token", "s3cret/x").returncode == 0
    for _ in range(2):
        command.get("/api/v1/runs?token=s3cret/x")
    assert command("stop", "--port", str(command.port)).returncode == 0
    folder, port = command.folder / "workspace" / "log", command.port
    files = {
        str(path.relative_to(folder)): path.read_text().splitlines()
        for path in folder.rglob("*") if path.is_file()
    }  # fmt: skip
    assert set(files) == {
        f"{name}.{port}.log"
        for name in ("datavisual/datavisual", "lineage/lineage", "restful_api/restful_api", "utils/utils",
                     "server/access", "server/error", "scripts/start", "scripts/stop")
    }  # fmt: skip
    for path in folder.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o600 if path.is_file() else 0o700)
    lines = [line for found in files.values() for line in found]
    assert all(LINE.fullmatch(line) for line in lines)
    assert "s3cret" not in "\n".join(lines)
    assert any(line.endswith(f"Summary base dir is {FIXTURE}") for line in files[f"scripts/start.{port}.log"])
    assert sum("GET /api/v1/runs?token=*** HTTP" in line for line in files[f"server/access.{port}.log"]) == 2


def test_a_log_is_begun_anew_when_it_is_full(tmp_path, monkeypatch):
    assert (logs._BYTES, logs._BACKUPS) == (52428800, 30)
    monkeypatch.setattr(logs, "_BYTES", 300)
    monkeypatch.setattr(logs, "_BACKUPS", 2)
    before = os.umask(0)
    try:
        handler = logs.LogFile(tmp_path / "log" / "x.log")
        for i in range(20):
            handler.emit(logging.LogRecord("scripts", logging.INFO, "f.py", 1, "line %d of one", (i,), None))
        handler.close()
    finally:
        os.umask(before)
    kept = sorted(path.name for path in (tmp_path / "log").iterdir())
    assert kept == ["x.log", "x.log.1", "x.log.2"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "log").iterdir()} == {0o600}
    assert "line 19 of one" in (tmp_path / "log" / "x.log").read_text()


def test_levels_leave_lines_out(command):  # noqa: F811
    assert command.start(FIXTURE).returncode == 0
    command("stop", "--port", str(command.port))
    log = command.folder / "workspace" / "log" / "server" / f"error.{command.port}.log"
    assert "Started server" in log.read_text()
    log.unlink()
    command.environment["MYCELIA_INSIGHT_LOG_LEVEL"] = "ERROR"
    assert command.start(FIXTURE).returncode == 0
    assert log.read_text() == ""


def test_abbreviations_are_refused_and_help_has_three_names(command):  # noqa: F811
    for wrong in (["start", "--sum", "x"], ["start", "--summary-base", "x"], ["stop", "--por", "1"]):
        found = command(*wrong)
        assert found.returncode == 2 and "No such option" in found.stderr
    shown = [command(*arguments) for arguments in ([], ["--help"], ["help"])]
    assert len({one.stdout for one in shown}) == 1 and {one.returncode for one in shown} == {0}
    told = command("--version")
    assert re.fullmatch(r"mycelia-insight \(\d+\.\d+\S*\)\n", told.stdout) and told.returncode == 0


def test_the_alias_of_the_command_does_the_same(command):  # noqa: F811
    arguments = ["-m", "mycelia.cli", "insight"]

    def alias(*more: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, *arguments, *more], text=True, capture_output=True, env=command.environment
        )

    told = alias("start", "--port", "99999")
    assert told.returncode == 2
    assert told.stderr.splitlines()[-1].endswith("error: --port should be chosen from 1 to 65535")
    started = alias("start", "--port", str(command.port), "--summary-base-dir", str(FIXTURE))
    assert started.returncode == 0 and started.stdout.endswith("service start state: success\n")
    assert alias("stop", "--port", str(command.port)).returncode == 0


def test_a_port_of_someone_else_is_told_with_its_process(command):  # noqa: F811
    holder = subprocess.Popen(
        [sys.executable, "-c", "import socket, time\ns = socket.socket()\n"
         "s.bind(('127.0.0.1', 0))\ns.listen()\nprint(s.getsockname()[1], flush=True)\ntime.sleep(60)"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        port = holder.stdout.readline().strip()
        found = command("start", "--port", port)
        assert found.returncode == 1 and found.stdout.strip() == (
            f"Port not available error. Detail: Mycelia Insight could not bind to port {port}, "
            f"it was already in use (pid {holder.pid})"
        )
    finally:
        holder.kill()
        holder.wait()


def test_a_service_in_the_foreground_is_found_and_ended(command):  # noqa: F811
    process = subprocess.Popen(
        [sys.executable, "-c", "from mycelia_insight.cli import app; app()", "start", "--foreground",
         "--port", str(command.port), "--summary-base-dir", str(FIXTURE)],
        stdout=subprocess.PIPE, text=True, env=command.environment,
    )  # fmt: skip
    (listed,) = until(lambda: json.loads(command("status", "--json").stdout))
    assert listed["pid"] == process.pid
    assert command("stop", "--port", str(command.port)).returncode == 0
    assert process.wait(10) == 0 and "Web address: " in process.stdout.read()


def test_a_workspace_that_cannot_be_written_to_is_told(command):  # noqa: F811
    (command.folder / "file").write_text("")
    found = command.start(FIXTURE, "--workspace", str(command.folder / "file"))
    assert found.returncode == 1
    assert found.stdout.endswith("service start state: failed\n")
    assert "The workspace cannot be written to" in found.stderr and "Traceback" not in found.stderr


def test_the_debugger_listens_at_its_port_if_it_is_asked_to(command):  # noqa: F811
    pytest.importorskip("grpc", reason="the debugger's connection is gRPC")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    found = command.start(FIXTURE, "--enable-debugger", "True", "--debugger-port", str(port))
    assert found.returncode == 0 and "[WARNING]" not in found.stdout
    socket.create_connection(("127.0.0.1", port)).close()
