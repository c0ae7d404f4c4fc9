"""Servers as processes: the directory in which they find one another, starting one, what a dead one left.

<cache_dir>/<port>/lock         held by the server as long as it lives
                   server.json  pid, token, spill directory
                   socket       for clients of the same user on this host
<cache_dir>/log/cache_server_<port>.log
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from mycelia import config, errors
from mycelia_cache import owner


def base_directory() -> Path:
    """The runtime directory of this user's servers, made at need. RuntimeError if it is not ours."""
    named = config.get("cache_dir")
    path = Path(named) if named else Path(tempfile.gettempdir()) / f"mycelia-cache-{os.getuid()}"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner.require(path.resolve() if named else path, "the directory", private=not named)
    return path


def directory_of(port: int) -> Path:
    """The runtime directory of the server on a port."""
    return base_directory() / str(port)


def log_file(port: int) -> Path:
    """Where the server on a port writes its log."""
    return base_directory() / "log" / f"cache_server_{port}.log"


def token_of(port: int) -> str:
    """What clients of the same user show to the server on a port; empty if there is none."""
    token = _description(directory_of(port)).get("token")
    return token if isinstance(token, str) else ""


def _description(directory: Path) -> dict:
    """What the server in a directory says of itself; empty if there is none, or none that can be read."""
    try:
        found = json.loads((directory / "server.json").read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@contextlib.contextmanager
def _locked(directory: Path):
    """The lock of a port, or None if a server holds it."""
    fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield None
            return
        yield fd
    finally:
        os.close(fd)


def remove_leftovers(directory: Path, *, keep: bool) -> None:
    """Remove what a dead server left: socket, description, and its spilled rows unless they are to be kept.

    Its memory is gone with it: nothing of it has a name.
    """
    from mycelia_cache.settings import Settings

    spill = _description(directory).get("spill")
    # A damaged name may be that of anything.
    if isinstance(spill, str) and Path(spill).name == Settings.spill_name(directory.name) and not keep:
        shutil.rmtree(spill, ignore_errors=True)
    for name in ("server.json", "socket"):
        (directory / name).unlink(missing_ok=True)


def serve(settings, ready=None) -> int:
    """Be the server until it is stopped. `ready` is called once: with "" if it listens, else with why not."""
    from mycelia_cache.server import PortTaken, Server

    ready = ready or (lambda text: None)
    directory = Path(settings.directory)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner.require(directory, "the directory", private=True)
    with _locked(directory) as lock:
        if lock is None:
            ready("Cache server is already up and running")
            return 1
        remove_leftovers(directory, keep=settings.keep)
        settings.token = settings.token or secrets.token_hex(16)
        spill = settings.spill_place()
        description = {"pid": os.getpid(), "token": settings.token, "spill": str(spill) if spill else ""}
        path = directory / "server.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(description))
        server, failure = None, ""
        try:
            server = Server(settings)
            server.start()
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: server.stop())
            ready("")
            server.run()
        except PortTaken:
            failure = f"Port {settings.port} is in use by another program"
        except (errors.MyceliaError, OSError) as e:
            failure = str(e) or type(e).__name__
        finally:
            remove_leftovers(directory, keep=settings.keep)
            fcntl.flock(lock, fcntl.LOCK_UN)
            if server is not None:
                server.hang_up()
    if failure:
        ready(failure)  # when nothing of it is left
    return int(bool(failure))


@contextlib.contextmanager
def end_of(pid: int):
    """A function that waits for the end of a process, `wait(seconds)`, and says whether it came."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        yield lambda wait_s: True
        return
    try:
        yield lambda wait_s: bool(select.select([fd], [], [], wait_s)[0])
    finally:
        os.close(fd)


def start(settings) -> int:
    """Start a server that outlives this process; its pid. RuntimeError if it does not come up."""
    log_path = log_file(settings.port)
    log_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    ready, theirs = os.pipe()
    # The settings, a token and a store's password among them, go by a pipe: others can read command lines,
    # and the environment of a process stays readable as long as it lives.
    environment = {k: v for k, v in os.environ.items() if k not in config.SETTINGS["cache_token"].env}
    try:
        with open(log_path, "ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "mycelia_cache.daemon", str(theirs)],
                stdin=subprocess.PIPE, stdout=output, stderr=output,
                pass_fds=(theirs,), start_new_session=True, cwd="/", env=environment,
            )  # fmt: skip
        os.close(theirs)
        theirs = -1
        with contextlib.suppress(BrokenPipeError), process.stdin:  # one that ended at once says why
            process.stdin.write(json.dumps(dataclasses.asdict(settings)).encode())
        with os.fdopen(ready, "r") as pipe:
            said = pipe.read()  # ends when the server listens, or is gone
    finally:
        if theirs >= 0:
            os.close(theirs)
    if said == "ready":
        process.returncode = 0  # it is on its own from here: nobody waits for it
        return process.pid
    process.wait()
    raise errors.runtime_error("", said or f"The cache server ended at once; its log is {log_path}")


def main(arguments: list[str]) -> int:
    """The process of a server: settings as JSON on its standard input, and as argument the descriptor on
    which to tell that it listens.
    """
    from mycelia import log
    from mycelia_cache.settings import Settings

    settings, fd = Settings(**json.load(sys.stdin)), int(arguments[0])
    log.set_level(settings.log_level)

    def ready(text: str) -> None:
        with os.fdopen(fd, "w") as pipe:
            pipe.write(text or "ready")

    return serve(settings, ready)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
