"""Secrets of command lines and environments are not shown, and what is none stays."""

from __future__ import annotations

import json
import shlex

import pytest

from mycelia.engine.base import redaction
from mycelia.engine.base.redaction import HIDDEN

SECRET = "hunter2-0xBEEF"


@pytest.mark.parametrize(
    "words",
    [
        [f"--api-key={SECRET}"],
        ["--api-key", SECRET],
        ["--password", SECRET, "--lr", "0.1"],
        [f"-password={SECRET}"],
        [f"--passwd={SECRET} with, more; words"],
        ["--pwd", SECRET],
        ["--auth", SECRET],
        ["--oauth-token", SECRET],
        ["--hf_token", SECRET],
        ["--apiKey", SECRET],
        ["--credentials", SECRET, f"{SECRET}2"],
        ["--wandb.api_key", SECRET],
        [f"wandb.api_key={SECRET}"],  # as hydra has it
        ["-e", f"DB_PASSWORD={SECRET}"],
        ["--secret", "12345678" + SECRET],
        ["--enc_key", SECRET],
        ["--header", f"Authorization: Bearer {SECRET}"],
        ["--header", f"X-Api-Key: {SECRET}"],
        ["--config", json.dumps({"user": "me", "api_key": SECRET, "nested": {"passphrase": SECRET}})],
        ["--data", f"https://me:{SECRET}@example.org/data"],
        ["--data", f"s3://me:p@{SECRET}@example.org/data"],
        ["--data", f"https://{SECRET}@example.org/data"],
        ["--data", f"https://example.org/data?x=1&access_token={SECRET}&y=2"],
        ["-c", f"connect(host='a', password='{SECRET}')"],
        ["-c", f"connect(host='a', password=\"it's {SECRET}\")"],
        [f"--env=PASSWORD={SECRET}"],
        [f"--redis=redis://:{SECRET}@cache:6379"],
    ],
    ids=lambda words: shlex.join(words)[:50],
)  # fmt: skip
def test_secrets_of_a_command_line_are_not_shown(words):
    made = redaction.command(["python", "train.py", *words, "--epochs", "3"])
    assert SECRET not in " ".join(made), made
    assert HIDDEN in " ".join(made) and made[-2:] == ["--epochs", "3"], made


@pytest.mark.parametrize(
    "token",
    [
        "sk-proj-abcdefghijklmnop1234", "ghp_abcdefghijklmnopqrst1234", "hf_abcdefghijklmnop1234",
        "AKIAABCDEFGHIJKLMNOP", "xoxb-1234567890-abc", "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
        "glpat-abcdefghijklmnop",
    ],
)  # fmt: skip
def test_tokens_are_known_by_their_form(token):
    assert redaction.command(["train.py", token]) == ["train.py", HIDDEN]
    assert token not in redaction.text(f"taken from {token}, then used")


@pytest.mark.parametrize(
    "words",
    [
        ["--tokenizer", "bert-base", "--max-tokens", "512", "--tokens=300"],
        ["--num-key-value-heads=8", "--author", "me", "--monkey=1", "--keyboard", "de"],
        ["--data", "/data/mnist", "--url", "https://example.org:8080/a@b?x=1"],
        ["--lr=0.1", "loss:mse", "a==b", "C:\\data", "12:30:00", "x=y=z"],
        ["--use-auth=true", "--password=", "-m", "mycelia.train"],
        ["-c", "print({'a': 1, 'b': [2, 3]})", "é", "", "-", "--"],
    ],
)
def test_what_is_no_secret_stays(words):
    assert redaction.command(words) == words


def test_an_option_without_a_value_hides_no_other():
    assert redaction.command(["--token", "--lr", "0.1"]) == ["--token", "--lr", "0.1"]
    assert redaction.command(["--token"]) == ["--token"]
    assert redaction.command(["--token", "abc", "train.txt"]) == ["--token", HIDDEN, "train.txt"]


def test_values_of_the_environment_are_found_wherever_they_stand(monkeypatch):
    monkeypatch.setenv("MY_SERVICE_TOKEN", SECRET)
    monkeypatch.setenv("MY_MAX_TOKENS", "1234567")
    assert redaction.command(["train.py", f"x{SECRET}y", "1234567"]) == ["train.py", f"x{HIDDEN}y", "1234567"]
    assert SECRET in redaction.secrets() and "1234567" not in redaction.secrets()


def test_settings():
    assert redaction.shown("job_token", "abc") == HIDDEN
    assert redaction.shown("job_token", "") == "''" and redaction.shown("mode", 1) == "1"
    assert redaction.shown("proxy", f"http://me:{SECRET}@proxy") == repr(f"http://{HIDDEN}@proxy")


def test_the_folder_that_a_shell_is_in_is_no_secret(monkeypatch):
    monkeypatch.setenv("PWD", "/home/somebody/training")
    assert redaction.text("/home/somebody/training/net.py:3") == "/home/somebody/training/net.py:3"
    assert "hunter2" not in redaction.text("DRIVER=x;UID=me;PWD=hunter2")
