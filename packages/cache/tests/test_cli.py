"""The command lines: `mycelia-cache`, and `cache_admin` in MindSpore's words."""

from __future__ import annotations

import json
import os
import re
import socket
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mycelia.dataset as ds
from mycelia import config
from mycelia_cache import admin, commands, daemon, owner, show, spill
from mycelia_cache.cli import app

REAL_SERVERS = True


def cli(*words) -> str:
    """What `mycelia-cache` prints."""
    result = CliRunner().invoke(app, [str(w) for w in words])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def admin_says(capsys):
    """What `cache_admin` prints, and its exit code."""

    def run(*words) -> tuple[int, str]:
        code = admin.main([str(w) for w in words])
        return code, capsys.readouterr().out

    return run


def test_version_command_prints_the_installed_version():
    assert cli("version").strip() == version("mycelia-cache")


# ---- wrong use -------------------------------------------------------------------------------------------

WRONG = {
    "": "Syntax:",
    "-p 5000": "No command provided",
    "--start --stop": "Only one command at a time is allowed.  Invalid command: --stop",
    "-g --list_sessions": "Only one command at a time is allowed.  Invalid command: --list_sessions",
    "--foo": "Invalid arguments provided:  --foo\nPlease try `dataset-cache --help` for more information",
    "-g extra": "Invalid arguments provided:  extra",
    "-p": "-p option requires an argument field.  Syntax: -p <field>",
    "--start -h": "-h option requires an argument field.  Syntax: -h <field>",
    "-d -p 5000": "-d option requires an argument field.  Syntax: -d <field>",
    "-d abc": "-d option requires an argument field.  Syntax: -d <field>",
    "--start -p abc": "Invalid numeric value: abc",
    "--start -r abc": "Invalid numeric value: abc",
    "--start -p 80": "Port must be in range (1025..65535).",
    "--start -p 65536": "Port must be in range (1025..65535).",
    "-p 5000 -p 5000 --list_sessions": "The -p argument was given more than once.",
    "-p 5000 --port 5000 -g": "The --port argument was given more than once.",
    "--start --start": "The --start argument was given more than once.",
    "--start -h 1.2.3.4": "Invalid host interface: 1.2.3.4. Current limitation, only 127.0.0.1 can be used.",
    "--start -h localhost": "Invalid host interface: localhost.",
    "--start -w 0": "Number of workers must be in range of 1 and ",
    "--start -w 100000": "Number of workers must be in range of 1 and ",
    "--start -l 9": "Log level must be in range (0..4).",
    "--start -m 0": "Shared memory size (in GB unit) must be positive",
    "--start -r 2": "Memory cap ratio should be positive and no greater than 1",
    "--start -s /nonexistent": "Spilling directory is not writable",
    "--start --keep": "needs a spilling directory",
    "--list_sessions -p 1025": "Cache server with port 1025 is unreachable.",
    "--server_info -p 1025": "GRPC Code 14",
    "-g -p 1025": "Make sure the server is running or started under the same user as the client.",
    "-d 5 -p 1025": "Network error. Cache server with port 1025 is unreachable.",
    "--stop -p 1025": "Server on port 1025 is not reachable or has been shutdown already.",
}


@pytest.mark.parametrize("words", WRONG, ids=lambda w: w or "nothing")
def test_wrong_use_of_cache_admin(words, admin_says, cache_dir):
    code, text = admin_says(*words.split())
    assert code == 1 and WRONG[words] in text


def test_help_of_cache_admin(admin_says):
    code, text = admin_says("--help")
    assert code == 0 and text.startswith("Syntax:\ndataset-cache [--start | --stop]")


@pytest.mark.parametrize("words", [["start", "-p", "80"], ["destroy", "5"], ["stop"], ["info"], ["list"]])
def test_commands_without_a_server_fail(words, cache_dir, monkeypatch):
    monkeypatch.setenv("MYCELIA_CACHE_PORT", "1025")
    config.reset("cache_port")
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1 and ("1025" in result.output)
    monkeypatch.undo()
    config.reset("cache_port")


def test_a_bad_variable_is_said_in_one_line(monkeypatch, cache_dir, admin_says):
    monkeypatch.setenv("MYCELIA_CACHE_PORT", "abc")
    config.reset("cache_port")
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 1 and len(result.output.strip().splitlines()) == 1
    code, text = admin_says("--list_sessions")
    assert code == 1 and "MYCELIA_CACHE_PORT" in text and "MYCELIA_CACHE_PORT" in result.output
    monkeypatch.undo()
    config.reset("cache_port")


# ---- a life ----------------------------------------------------------------------------------------------


def test_a_life_of_a_server_in_the_words_of_cache_admin(make_server, admin_says, tmp_path, lines):
    server = make_server(workers=2)
    at = ("-p", server.port)
    commands.stop("127.0.0.1", server.port)
    code, text = admin_says("--start", *at, "-w", 2, "-s", tmp_path, "-l", 0, "-m", 1, "-r", 0.5)
    assert code == 0 and text.startswith("Cache server startup completed successfully!\n")
    server.pid = int(re.search(r"as process id (\d+) and listening on port (\d+)", text)[1])
    assert admin_says("--start", *at) == (1, "Cache server is already up and running\n")
    listing = f"Listing sessions for server on port {server.port}\n\n"
    assert admin_says("--list_sessions", *at) == (0, f"{listing}No active sessions.\n")

    code, text = admin_says("--generate_session", *at)
    assert code == 0 and text.startswith(f"Session created for server on port {server.port}: ")
    session = int(text.split()[-1])
    code, text = admin_says("--list_sessions", *at)
    head = "     Session    Cache Id  Mem cached Disk cached  Avg cache size  Numa hit\n"
    empty = f"{session:>12}         n/a         n/a         n/a             n/a       n/a\n"
    assert (code, text) == (0, listing + head + empty)

    list(ds.TextFileDataset(lines, cache=server.cache(session)))
    row = admin_says("--list_sessions", *at)[1].splitlines()[-1].split()
    assert row[0] == str(session) and row[2:4] == ["100", "n/a"] and row[5] == "100" and row[4].isdigit()

    text = admin_says("--server_info", *at)[1]
    for name, value in (
        ("port", server.port),
        ("number of workers", 2),
        ("log level", 0),
        ("spill dir", tmp_path),
    ):
        assert re.search(rf"^{name} +{value} *$", text, re.M), text
    assert text.endswith(f"Active sessions: \n{session}\n")
    table = json.loads(admin_says("--server_info", "--json", *at)[1])
    assert table["sessions"][0]["caches"][0]["num_mem_cached"] == 100 and table["memory_cap"] <= 1 << 30

    other = commands.new_session("127.0.0.1", server.port)
    code, text = admin_says("-d", session, other, *at)
    assert (code, text) == (
        0,
        f"Drop session {session} successfully for server on port {server.port}\n"
        f"Drop session {other} successfully for server on port {server.port}\n",
    )
    code, text = admin_says("-d", 77, *at)
    assert code == 1 and f"Session id 77 not found in server on port {server.port}." in text
    assert admin_says("--stop", *at) == (
        0, f"Cache server on port {server.port} has been stopped successfully.\n",
    )  # fmt: skip
    assert admin_says("--stop", *at)[0] == 1


def test_the_form_of_the_first_design(make_server, admin_says, tmp_path):
    server = make_server()
    commands.stop("127.0.0.1", server.port)
    code, text = admin_says("start", "-d", tmp_path, "-m", 2, "-p", server.port)
    assert code == 0
    server.pid = int(re.search(r"as process id (\d+)", text)[1])
    assert commands.overview("127.0.0.1", server.port).spill_dir == str(tmp_path)
    assert admin_says("session", "-p", server.port)[1].split()[-1].isdigit()


def test_the_commands_of_mycelia_cache(make_server, lines):
    server = make_server()
    commands.stop("127.0.0.1", server.port)
    text = cli("start", "-p", server.port, "-m", 0.5)
    server.pid = int(re.search(r"process (\d+)", text)[1])
    session = int(cli("session", "-p", server.port))
    dataset = ds.TextFileDataset(lines, cache=server.cache(session))
    list(dataset)
    list(dataset)
    assert str(session) in cli("list", "-p", server.port)
    table = json.loads(cli("list", "--json", "-p", server.port))
    assert table["sessions"][0]["caches"][0]["pipeline"] == "TextFile"
    text = cli("info", "-p", server.port)
    assert str(session) in text.replace("\n", "") or "100" in text
    assert cli("destroy", session, "-p", server.port) == f"Session {session} is destroyed.\n"
    assert "No active sessions." in cli("list", "-p", server.port)
    assert "has been stopped successfully" in cli("stop", "-p", server.port)


def test_info_shows_hit_rate_and_speed(server, lines):
    from rich.console import Console

    dataset = ds.TextFileDataset(lines, cache=server.cache())
    for _ in range(2):
        list(dataset)
    before = commands.overview("127.0.0.1", server.port)
    list(dataset)
    after = commands.overview("127.0.0.1", server.port)
    console = Console(width=200, record=True, file=open("/dev/null", "w"))
    with console.file:
        console.print(show.page(after, before, 0.5))
    text = console.export_text()
    assert "75.0 %" in text and "200" in text and "fetch" in text and "TextFile" in text


def test_info_watch_is_live_until_it_is_interrupted(server, lines):
    import io

    from rich.console import Console

    dataset = ds.TextFileDataset(lines, cache=server.cache())
    asked = []

    def overview():
        """Each look at the server comes after one more epoch; then somebody presses Ctrl-C."""
        asked.append(len(asked))
        if len(asked) > 3:
            raise KeyboardInterrupt
        list(dataset)
        return commands.overview("127.0.0.1", server.port)

    terminal = io.StringIO()
    show.watch(overview, Console(file=terminal, force_terminal=True, width=200, height=40), every_s=0.0)
    drawn = terminal.getvalue()
    assert "\x1b[" in drawn and "hit rate" in drawn and "TextFile" in drawn
    assert "75.0 %" in drawn, "the last of the pages that were drawn over each other"


@pytest.mark.parametrize(
    "size, text", [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KB"), (5 << 40, "5120.0 GB")]
)
def test_bytes_as_text(size, text):
    assert show.bytes_text(size) == text


# ---- processes -------------------------------------------------------------------------------------------


def _state(pid: int) -> str:
    """The letter of a process's state; empty if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def test_nothing_of_a_stopped_server_is_left(make_server, tmp_path):
    server = make_server(spill_dir=str(tmp_path))
    for _ in range(3):
        assert _state(server.pid) in "SR"
        cli("stop", "-p", server.port)
        assert _state(server.pid) in ("", "Z"), "a process that nobody has waited for has no memory either"
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", server.port))
        assert not (daemon.directory_of(server.port) / "socket").exists()
        server.again()


def test_a_token_is_in_no_command_line_and_no_environment(make_server, monkeypatch):
    monkeypatch.setenv("MYCELIA_CACHE_TOKEN", "a secret word")
    config.reset("cache_token")
    try:
        server = make_server(backend="")
        for name in ("cmdline", "environ"):
            assert b"secret" not in Path(f"/proc/{server.pid}/{name}").read_bytes()
        assert daemon.token_of(server.port) == "a secret word"
        assert (daemon.directory_of(server.port) / "server.json").stat().st_mode & 0o077 == 0
    finally:
        monkeypatch.undo()
        config.reset("cache_token")


# ---- owners ----------------------------------------------------------------------------------------------


@pytest.fixture
def somebody_else(monkeypatch):
    """This process takes itself for another user."""
    real = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: real + 4321)


def test_the_directory_of_another_user_is_refused(cache_dir, somebody_else, tmp_path):
    for words in (["start", "-p", "50999"], ["list", "-p", "50999"]):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 1 and "belongs to another user" in result.output
    with pytest.raises(RuntimeError, match="belongs to another user"):
        ds.TextFileDataset(__file__, cache=ds.DatasetCache(1, port=50999)).create_tuple_iterator()


def test_root_is_no_exception(tmp_path, monkeypatch):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    if os.getuid() == 0:
        os.chown(foreign, 4321, 4321)
    else:
        found = os.lstat(foreign)
        monkeypatch.setattr(os, "getuid", lambda: 0)
        assert found.st_uid != 0
    with pytest.raises(RuntimeError, match="belongs to another user"):
        owner.require(foreign)
    with pytest.raises(RuntimeError, match="belongs to another user"):
        spill.SpillFile(foreign, spill.Quota(None), False)


def test_links_and_directories_for_all_are_refused(tmp_path):
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "own")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    owner.require(tmp_path / "own", private=True)
    with pytest.raises(RuntimeError, match="a link to one"):
        owner.require(tmp_path / "link")
    with pytest.raises(RuntimeError, match="others may write"):
        owner.require(tmp_path / "open", private=True)


def test_a_server_of_another_user_is_not_talked_to(server, monkeypatch):
    monkeypatch.setattr(owner, "of_peer", lambda connection: (server.pid, os.getuid() + 1))
    result = CliRunner().invoke(app, ["list", "-p", str(server.port)])
    assert result.exit_code == 1 and "belongs to another user" in result.output


def test_a_spill_file_that_is_a_link_is_not_opened(tmp_path):
    directory = tmp_path / "spill"
    directory.mkdir(mode=0o700)
    (tmp_path / "victim").write_text("untouched")
    (directory / "rows").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError):
        spill.SpillFile(directory, spill.Quota(None), False)
    assert (tmp_path / "victim").read_text() == "untouched"
