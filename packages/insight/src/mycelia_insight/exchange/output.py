"""What commands write: whole or not at all, and never over what is there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from urllib.parse import quote

import typer

_LONGEST = 150  # characters of a name, to which a step and an ending are added


class Refused(Exception):
    """A place that cannot be written to as asked."""


@contextlib.contextmanager
def new_folder(path: str) -> Iterator[str]:
    """A folder to write to, which takes its place at `path` when the block ends without an error.

    Until then it lies beside under a name of its own; on an error (a full disk, say) nothing is left.
    Errors: Refused if something other than an empty folder is at `path`; OSError.
    """
    path = os.path.abspath(path)
    _refuse_taken(path)
    parent, name = os.path.split(path)
    os.makedirs(parent, exist_ok=True)
    temporary = tempfile.mkdtemp(prefix=f".{name[:100]}.", suffix=".tmp", dir=parent)
    try:
        yield temporary
        _refuse_taken(path)
        with contextlib.suppress(FileNotFoundError, OSError):
            os.rmdir(path)
        os.rename(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _refuse_taken(path: str) -> None:
    if not os.path.lexists(path):
        return
    if os.path.islink(path) or not os.path.isdir(path) or os.listdir(path):
        raise Refused(f"{path} is there already; give the path of a new or an empty folder")


def refuse_inside(path: str, folder: str) -> None:
    """Errors: Refused if `path` lies in `folder`, whose content is only read."""
    inner, outer = os.path.realpath(path), os.path.realpath(folder)
    if os.path.commonpath([inner, outer]) == outer:
        raise Refused(f"{path} lies in {folder}, which is only read; give a path outside of it")


@contextlib.contextmanager
def all_or_nothing(done: str) -> Iterator[None]:
    """A command's work: what keeps it from being done is told, with exit code 1. done: "exported", say.

    SIGTERM ends it as Ctrl-C does, so that it leaves nothing behind.
    """
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    except (Refused, OSError) as error:
        typer.echo(f"Nothing was {done}: {error}", err=True)
        raise typer.Exit(1) from None
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def made_from(source: str, path: str, done: str) -> Iterator[str]:
    """`new_folder(path)` for what is made of the folder `source`, with `all_or_nothing(done)`."""
    with all_or_nothing(done):
        refuse_inside(path, source)
        with new_folder(path) as target:
            yield target


def _end(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def folder(path: str, option: str) -> str:
    """A folder that an option names.  Errors: BadParameter."""
    if not os.path.isdir(path):
        raise typer.BadParameter(f"{path} is not a folder", param_hint=option)
    return path


def file_name(tag: str) -> str:
    """A tag as a name of a file: characters other than letters, digits and `_.-~` as %XX; never longer than
    150 characters, where the end is a digest."""
    name = quote(tag.encode("utf-8", "surrogateescape"), safe="")
    if name.strip(".") == "":
        name = name.replace(".", "%2E") or "%"
    if len(name) > _LONGEST:
        name = f"{name[: _LONGEST - 17]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return name


def begin(seconds: float) -> float:
    """When a run began, as a name of a file can tell: what no clock shows is 0."""
    return seconds if 0 <= seconds < 2**40 else 0.0


def warn(text: str) -> None:
    """A line on the standard error; bytes of names that are no UTF-8 as `\\xNN`."""
    clean = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    typer.echo(f"[WARNING] {clean}", err=True)
