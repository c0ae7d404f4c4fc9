"""which: the run that made a file."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer


def which(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A checkpoint or an exported model.")],
    summary_base_dir: Annotated[
        str | None, typer.Option(help="The folder of runs; the current one if nothing is said.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell which run made a file, by its content, and of what; exit code 1 if no run lists it."""
    from mycelia_insight.commands.service import WrongOption, settings_of
    from mycelia_insight.exchange.output import folder
    from mycelia_insight.records import artifacts
    from mycelia_insight.runs.artifacts import Makers, digest_of
    from mycelia_insight.runs.discovery import find

    base = settings_of(context, {"summary_base_dir": summary_base_dir}).summary_base_dir
    folder(base, "--summary-base-dir")
    if not os.path.isfile(file):
        raise WrongOption(f"FILE: {file} is {'no file' if os.path.exists(file) else 'not there'}", context)
    try:
        digest = digest_of(file)
    except OSError as error:
        raise WrongOption(f"FILE: {file} cannot be read: {error.strerror}", context) from error
    listed = []
    for one in find(base, artifacts.FILE):
        try:
            listed.append((f"./{one.name}", artifacts.read(os.path.join(base, one.name))))
        except OSError as error:
            typer.echo(f"./{one.name} cannot be read: {error.strerror}", err=True)
    found = Makers(listed).of(digest)
    if as_json:
        typer.echo(json.dumps({"file": file, "sha256": digest, **found}, indent=2))
    else:
        for one in found["made_by"]:
            typer.echo(_described(one))
        for one in found["used_by"]:
            typer.echo(f"{_shown(one['run'])} was made of it{_time(one)}")
        if not found["made_by"]:
            typer.echo(f"no run below {base} lists that it made {file} (SHA-256 {digest})")
    raise typer.Exit(0 if found["made_by"] else 1)


def _time(told: dict) -> str:
    from mycelia_insight.runs.moments import when

    return f", {when(told['time'])}" if "time" in told else ""


def _described(told: dict) -> str:
    """What is said of the run that made the file."""
    step = "" if told["step"] is None else f" at step {told['step']}"
    network = f" of {_shown(told['network'])}" if "network" in told else ""
    lines = [f"{_shown(told['run'])} made it{step}: {told['role']}{network}{_time(told)}"]
    if "git_commit" in told:
        dirty = {True: ", files differed from it", False: ""}.get(told.get("git_dirty"), "")
        lines.append(f"  commit {_shown(told['git_commit'])}{dirty}")
    for one in told["inputs"]:
        by = f", made by {', '.join(map(_shown, one['made_by']))}" if one["made_by"] else ""
        if one["role"] == "run":
            lines.append(f"  goes on with the network{by}")
            continue
        kind = "data" if one["role"] == "data" else "parent"
        name = one["path"] or ", ".join(one["sources"]) or "in memory"
        digest = f" (SHA-256 {one['sha256'][:12]})" if one["sha256"] else ""
        lines.append(f"  {kind} {_shown(name)}{digest}{by}")
    return "\n".join(lines)


def _shown(text: str) -> str:
    """A text of a file as a terminal may show it."""
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in text)
