"""The debug bundle: all that a run left behind, in one archive that can be sent to someone else."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mycelia.debug.reading.folders import Dump
from mycelia.debug.reading.nonfinite import trace_nonfinite
from mycelia.debug.recorder.environment import environment
from mycelia.engine.base import errors
from mycelia.engine.base.redaction import HIDDEN, secrets

_DUMPS = 1 << 28  # bytes of tensors at most, the latest iterations first
_TEXT = (".json", ".txt", ".csv", ".ir", ".log", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".md")
_LOG = re.compile(r".*\.log(\..*)?|mycelia\.(INFO|WARNING|ERROR|CRITICAL)")
_SUMMARY = re.compile(r".*\.summary\..*|events\.out\..*|.*_MS(_.*)?|.*\.(pb|svg|html)")


def write_bundle(
    run: str | os.PathLike, out: str | os.PathLike, *, more: Sequence[str | os.PathLike] = (),
    first_bad: dict[str, Any] | None = None,
) -> list[str]:  # fmt: skip
    """Write the archive `out` of what lies below `run`, and of the folders `more`; the names in it.

    In it are configurations, logs, records of the run recorder, summaries, graphs, the last iterations of
    dumps (256 MB at most), `environment.json` with versions, settings and variables, and `first_bad.json`:
    {step, operator, slot, reason, source} of the first operator that is not finite, `first_bad` or what the
    run says of it. Values of variables whose names tell of a secret are left out of it and of all texts.
    Links are not followed. The archive appears whole.  Errors: ValueError if `run` is no folder; OSError.
    """
    folder = Path(run)
    if not folder.is_dir():
        raise errors.value_error("bundle", f"there is no folder {os.fspath(run)!r}")
    target = Path(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    names: list[str] = []
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in _made(folder, first_bad):
                archive.writestr(name, content)
                names.append(name)
            for place, head in _places(folder, more):
                for path in _chosen(place, {partial, target}):
                    name = f"{head}/{path.relative_to(place).as_posix()}"
                    if path.suffix in _TEXT or _LOG.fullmatch(path.name):
                        archive.writestr(name, _without_secrets(path.read_bytes()))
                    else:
                        archive.write(path, name)
                    names.append(name)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return names


def _places(folder: Path, more: Sequence[str | os.PathLike]) -> Iterator[tuple[Path, str]]:
    """Folders and what they are called in the archive, none within another."""
    yield folder, "run"
    known = [folder.resolve()]
    for number, place in enumerate(map(Path, more)):
        if place.is_dir() and not any(place.resolve().is_relative_to(k) for k in known):
            known.append(place.resolve())
            yield place, f"more_{number}"


def _made(folder: Path, first_bad: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    yield "environment.json", json.dumps(environment(), indent=2) + "\n"
    bad = first_bad if first_bad is not None else _first_bad(folder)
    if bad is not None:
        yield "first_bad.json", _without_secrets(json.dumps(bad, indent=2).encode()).decode() + "\n"


def _first_bad(folder: Path) -> dict[str, Any] | None:
    """What a record of the run says, else its dumps."""
    for path in sorted(folder.rglob("first_bad.json")):
        try:
            found = json.loads(path.read_bytes())
        except (ValueError, RecursionError, OSError):
            continue
        if isinstance(found, dict):
            return found
    for dump in _dumps(folder):
        for bad in (one for one in trace_nonfinite(dump) if not one.given):
            reason = f"{bad.count} of {bad.size} elements are {bad.kind}"
            return {
                "step": bad.iteration, "operator": bad.op_full_name, "slot": bad.slot, "reason": reason,
                "source": [str(line) for line in bad.source],
            }  # fmt: skip
    return None


def _dumps(folder: Path) -> Iterator[Dump]:
    places = {p.parent for p in folder.rglob("rank_*") if p.is_dir() and not p.is_symlink()}
    for place in sorted(places):
        try:
            yield Dump(place)
        except errors.MyceliaError:
            continue  # of the recorder or of logs


def _chosen(folder: Path, own: set[Path]) -> Iterator[Path]:
    """The files of a run that belong into the bundle."""
    kept, left = set[Path](), _DUMPS
    steps = [(step.iteration, step) for dump in _dumps(folder) for step in dump.steps]
    for _, step in sorted(steps, key=lambda s: -s[0]):
        size = sum(e.stat().st_size for e in os.scandir(step.folder) if e.is_file(follow_symlinks=False))
        left -= size
        if left < 0:
            break
        kept.add(step.folder)
    for place, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if not os.path.islink(os.path.join(place, f))]
        for name in sorted(files):
            path = Path(place) / name
            if path.is_symlink() or not path.is_file() or path in own or path.suffix == ".zip":
                continue
            text = path.suffix in _TEXT or _LOG.fullmatch(name) or _SUMMARY.fullmatch(name)
            if path.parent in kept or (text and path.suffix != ".npy" and not _is_of_another_step(path)):
                yield path


def _is_of_another_step(path: Path) -> bool:
    return path.name == "statistic.csv"  # of iterations that were not kept


def _without_secrets(content: bytes) -> bytes:
    for value in secrets():
        content = content.replace(value.encode(), HIDDEN.encode())
    return content
