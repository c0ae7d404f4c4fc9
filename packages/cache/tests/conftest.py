"""A real cache server for tests: in private directories, on a port that was free, ended whatever happens."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mycelia.dataset as ds
from mycelia import config, errors
from mycelia_cache import commands, daemon

WAIT_S = 60.0
NURSERY = """
import io, json, os, signal, sys
from mycelia_cache import daemon, server
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # servers that end leave nothing behind
for line in sys.stdin:
    wish = json.loads(line)
    ready, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        log = os.open(wish["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        null = os.open(os.devnull, os.O_RDWR)
        for theirs_too, fd in ((null, 0), (log, 1), (log, 2)):
            os.dup2(theirs_too, fd)
        os.close(ready)
        code = 1
        try:
            sys.stdin = io.StringIO(json.dumps(wish["settings"]))
            code = daemon.main([str(theirs)])
        finally:
            os._exit(code)
    os.close(theirs)
    with os.fdopen(ready) as pipe:
        print(json.dumps([pid, pipe.read()]), flush=True)
"""


@dataclasses.dataclass
class Running:
    """A server and how to reach it."""

    port: int
    pid: int
    directory: Path
    options: dict

    def session(self) -> int:
        return commands.new_session("127.0.0.1", self.port)

    def cache(self, session: int | None = None, **arguments) -> ds.DatasetCache:
        """A DatasetCache of a session of this server, by default a new one."""
        return ds.DatasetCache(self.session() if session is None else session, port=self.port, **arguments)

    def kill(self) -> None:
        """End the server as a crash would."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self.wait_for(lambda: not Path(f"/proc/{self.pid}").exists())

    def again(self) -> None:
        """Start a server on the same port."""
        self.pid = commands.start(commands.settings(self.port, **self.options))

    def wait_for(self, condition) -> None:
        """Wait until a function is true."""
        end = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < end, "it does not come true"
            time.sleep(0.02)


def free_port() -> int:
    """A port that is free now. Another program may take it: who starts a server there tries again."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port > 1024:
            return port


def start(directory: Path, **options) -> Running:
    """Start a server."""
    for _ in range(20):
        port = free_port()
        try:
            pid = commands.start(commands.settings(port, **options))
        except commands.Failed as e:
            if "in use" in str(e):
                continue
            raise
        return Running(port, pid, directory, options)
    raise AssertionError("no port stays free")


@pytest.fixture(scope="session")
def nursery():
    """Starts servers by forking a process that has loaded what they need: an interpreter each takes long."""
    process = subprocess.Popen(
        [sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
    )

    def start(settings) -> int:
        log = daemon.log_file(settings.port)
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        wish = {"settings": dataclasses.asdict(settings), "log": str(log)}
        process.stdin.write(json.dumps(wish) + "\n")
        process.stdin.flush()
        pid, said = json.loads(process.stdout.readline())
        if said != "ready":
            raise errors.runtime_error("", said)
        return pid

    yield start
    process.stdin.close()
    process.wait(WAIT_S)
    process.stdout.close()


@pytest.fixture(autouse=True, scope="module")
def quick_servers(request, nursery):
    """Servers come from the nursery, but for modules that start them as users do (`REAL_SERVERS`)."""
    with pytest.MonkeyPatch.context() as patch:
        if not getattr(request.module, "REAL_SERVERS", False):
            patch.setattr(daemon, "start", nursery)
        yield


@contextlib.contextmanager
def private_directory(path: Path):
    """Servers of this test do not meet those of others."""
    path.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MS_CACHE_HOST", "MS_CACHE_PORT", "MYCELIA_CACHE_HOST", "MYCELIA_CACHE_PORT"):
            patch.delenv(name, raising=False)
        patch.setenv("MYCELIA_CACHE_DIR", str(path))
        config.reset("cache_dir", "cache_host", "cache_port", "cache_token", "cache_tls")
        yield path
    config.reset("cache_dir", "cache_host", "cache_port", "cache_token", "cache_tls")


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory, quick_servers):
    """The runtime directory of this module's servers."""
    with private_directory(tmp_path_factory.mktemp("cache") / "run") as path:
        yield path


@pytest.fixture(scope="module")
def server(cache_dir, tmp_path_factory):
    """One server for the tests of a module, with a spill directory."""
    running = start(cache_dir, spill_dir=str(tmp_path_factory.mktemp("spill")))
    yield running
    running.kill()


@pytest.fixture
def make_server(cache_dir):
    """Servers of a test's own."""
    running = []

    def make(**options) -> Running:
        running.append(start(cache_dir, **options))
        return running[-1]

    yield make
    for one in running:
        one.kill()


@pytest.fixture(autouse=True)
def seeded():
    """The same order of rows in every run; the seed of others is put back."""
    before = dict(ds.config._state)
    ds.config.set_seed(11)
    yield
    ds.config._state.clear()
    ds.config._state.update(before)


@pytest.fixture
def warned():
    """Texts of the warnings of clients; whether loggers pass them on depends on who set logging up before."""
    texts: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record):
            texts.append(record.getMessage())

    logger, keep = logging.getLogger("mycelia_cache.client"), Keep(logging.WARNING)
    logger.addHandler(keep)
    yield texts
    logger.removeHandler(keep)


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """A folder of 24 small images in two classes."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(5)
    for name in ("cat", "dog"):
        (folder / name).mkdir()
        for i in range(12):
            Image.fromarray(rng.integers(0, 256, (10, 12, 3), np.uint8)).save(folder / name / f"{i:02}.png")
    return str(folder)


@pytest.fixture(scope="session")
def lines(tmp_path_factory):
    """A text file of 100 lines."""
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    path.write_text("".join(f"line {i}\n" for i in range(100)))
    return str(path)
