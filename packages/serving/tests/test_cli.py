"""The command line of Mycelia Serving."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from mycelia_serving.actions import control
from mycelia_serving.cli import app
from mycelia_serving.frontend import start_grpc
from mycelia_serving.frontend.tls import SSLConfig


def test_version_command_prints_the_installed_version():
    result = CliRunner().invoke(app, ["version"])
    assert result.exit_code == 0, result.output
    assert result.output.strip() == version("mycelia-serving")


REASON = "[Errno 2] no such file: " + "a long way down/" * 12


def test_status_in_a_pipe_is_whole_lines_and_no_markup(monkeypatch, capsys):
    worker = {
        "address": "[::1]:6100", "state": "lost", "device": "CPU", "outstanding": 12345, "answered": 678901,
        "restarts": 3, "reason": REASON,
    }  # fmt: skip
    told = {
        "pid": 1, "ready": True, "stopping": False, "waiting_requests": 0, "lost_workers": 1,
        "addresses": [{"protocol": "grpc", "address": f"[::1]:{port}"} for port in range(5500, 5530)],
        "servables": [{"name": "s" * 70, "version": 1, "state": "ready", "reason": "", "workers": [worker]}],
    }  # fmt: skip
    monkeypatch.setattr(control, "command", lambda pid, what: told)
    control.show_status(None, False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("grpc [::1]:5529")
    (row,) = [line for line in lines if REASON in line]
    assert all(text in row for text in ("s" * 70, "[::1]:6100 lost", "12345", "678901"))


ADD = ("add.add_common", '{"x1": [[1.0, 2.0], [3.0, 4.0]], "x2": [[1.0, 1.0], [1.0, 1.0]]}')
BENCH = ("bench", *ADD, "--seconds", "0.1", "-c", "2", "--json")


@pytest.fixture
def shell(echo, certificates):
    """shell(words, environment) -> exit code, output: to a server that wants a token and a certificate."""
    config = SSLConfig(certificates["server"], certificates["server_key"], certificates["ca"], True)
    server = start_grpc(echo, "127.0.0.1:0", ssl_config=config, token="s3cret")

    def run(*words: str, **environment: str) -> tuple[int, str]:
        words = (*words, "--address", f"127.0.0.1:{server.port}")
        done = CliRunner().invoke(app, words, env=environment)
        return done.exit_code, done.output

    yield run
    server.stop()


def test_call_and_bench_with_tls_and_tokens(shell, certificates, tmp_path):
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    token = ("--token-file", str(secret))
    ca = ("--tls-ca", certificates["ca"])
    mine = ("--tls-cert", certificates["client"], "--tls-key", certificates["client_key"])
    answer = (0, '[{"y": [[2.0, 3.0], [4.0, 5.0]]}]\n')
    assert shell("call", *ADD, *ca, *mine, *token) == answer
    assert shell("call", *ADD, *ca, *mine, MYCELIA_SERVING_TOKEN="s3cret") == answer
    code, text = shell(*BENCH, *ca, *mine, *token)
    assert code == 0 and json.loads(text)["requests"] > 0
    brief = ("--timeout", "5")
    for words, reason in (
        ((*ca, *mine), "the token is missing or wrong"),
        ((*mine, *token), "failed to connect"),  # to a server whose authority the system does not know
        (("--tls", *token), "failed to connect"),
        ((*ca, *token), "Grpc Error"),  # without a certificate
        (token, "Grpc Error"),  # without TLS
        ((*ca, *mine[:2], *token), "--tls-cert and --tls-key are given together"),
        ((*ca, *mine, "--token-file", str(tmp_path / "none")), "cannot be read"),
        ((*ca, *mine, *token, "--token", "t"), "given both"),
        (("--tls-ca", str(tmp_path / "none")), "there is no file"),
    ):
        code, text = shell("call", *ADD, *brief, *words)
        assert code == 1 and reason in text, (words, text)
