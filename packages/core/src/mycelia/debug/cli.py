"""The command `mycelia-debug`: what a dump or a record holds, what went wrong first, questions to a dump."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mycelia.debug.analyzer import DumpAnalyzer
from mycelia.debug.dump.device_overflow import overflow_records
from mycelia.debug.reading.folders import Dump
from mycelia.debug.reading.nonfinite import NonFinite, trace_nonfinite
from mycelia.debug.reading.records import Record, read_records
from mycelia.debug.text.screen import short, told, visible
from mycelia.debug.text.source import DumpSource
from mycelia.engine.base import errors

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def report(
    folder: Annotated[
        str,
        typer.Argument(
            help="A dump or a record: its `path`, or rank_N; or http://HOST:PORT, a service of Mycelia "
            "Insight that debugs a training.",
            metavar="FOLDER|ADDRESS",
        ),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="A command of the text interface, such as: why, nodes relu, help.", metavar="[COMMAND]..."
        ),
    ] = None,
    iteration: Annotated[int | None, typer.Option(min=0, help="Look at this iteration alone.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many operators to show.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Write the report as JSON.")] = False,
    fail: Annotated[
        bool,
        typer.Option(
            "--fail", help="Exit with status 3 if a value is not finite, and is not what the code has."
        ),
    ] = False,
    session: Annotated[str, typer.Option(help="Of a service: the session; 0 are running trainings.")] = "0",
    token: Annotated[
        str, typer.Option(envvar="MYCELIA_DEBUGGER_TOKEN", help="Of a service: its token.")
    ] = "",
) -> None:
    """Tell what a data dump holds, and the operator that made the first value that is not finite; or what the
    run recorder left of a run that failed. In a terminal, without options, questions to the dump can be asked
    then; with a command, that one is answered alone. Of a service the same commands ask a running training,
    and move it.
    """
    if folder.startswith(("http://", "https://")):
        if as_json or fail:
            raise typer.BadParameter("--json and --fail are of dumps, not of a service")
        _serve(folder, session, token, command or [], iteration)
        return
    _report(_folder(folder), command or [], iteration, limit, as_json, fail)


def _folder(text: str) -> Path:
    found = Path(text)
    if not found.is_dir():
        what = "is a file" if found.exists() else "does not exist"
        raise typer.BadParameter(f"Directory {visible(text)!r} {what}.", param_hint="FOLDER")
    return found


def _report(
    folder: Path, command: list[str], iteration: int | None, limit: int, as_json: bool, fail: bool
) -> None:
    try:
        records = read_records(folder)
        if records:
            _show_records(records, as_json)
            return
        if command:
            _answer(folder, command, iteration)
            return
        dump = Dump(folder)
        found = trace_nonfinite(dump, iteration)
    except errors.MyceliaError as error:
        typer.echo(visible(told(error)), err=True)
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps(_as_json(dump, found), indent=2))
    else:
        _show(dump, found, limit)
    is_asked_more = as_json or fail or iteration is not None
    if not is_asked_more and sys.stdin.isatty() and sys.stdout.isatty():
        from mycelia.debug.text.shell import run_shell

        run_shell(DumpSource(DumpAnalyzer(folder)))
    if fail and not all(f.given for f in found):
        raise typer.Exit(3)


def _answer(folder: Path, command: list[str], iteration: int | None) -> None:
    """One command of the text interface."""
    from mycelia.debug.text.shell import run_command

    try:
        run_command(DumpSource(DumpAnalyzer(folder)), command, iteration)
    except errors.MyceliaError as error:
        typer.echo(visible(told(error)), err=True)
        raise typer.Exit(1) from None


def _serve(address: str, session: str, token: str, command: list[str], iteration: int | None) -> None:
    """The text interface over a session of a service."""
    from mycelia.debug.text.service import Service, ServiceSource
    from mycelia.debug.text.shell import run_command, run_shell

    try:
        source = ServiceSource(Service(address, token), session)
        if command:
            run_command(source, command, iteration)
        elif sys.stdin.isatty() and sys.stdout.isatty():
            run_shell(source)
        else:
            typer.echo(visible(f"{source.title}: {source.where()}"))
    except errors.MyceliaError as error:
        typer.echo(visible(told(error)), err=True)
        raise typer.Exit(1) from None


def _show_records(records: list[Record], as_json: bool) -> None:
    if as_json:
        found = [record.as_dict() for record in records]
        typer.echo(json.dumps(found[0] if len(found) == 1 else found, indent=2))
        return
    for record in records:
        typer.echo(f"{visible(str(record.folder))}: record of rank {record.rank}")
        for text in record.running:
            typer.echo(f"A process was killed. What it did at last: {text}")
        for text in record.faults:
            typer.echo(text.rstrip())
        typer.echo(record.readme.rstrip())


def _as_json(dump: Dump, found: list[NonFinite]) -> dict:
    return {
        "ranks": sorted(dump.ranks),
        "graphs": sorted({s.graph for s in dump.steps}),
        "iterations": dump.iterations(),
        "first": found[0].as_dict() if found else None,
        "nonfinite": [f.as_dict() for f in found],
    }


def _show(dump: Dump, found: list[NonFinite], limit: int) -> None:
    console = Console(highlight=False)
    nets = ", ".join(sorted({s.net for s in dump.steps}))
    graphs = sorted({s.graph for s in dump.steps})
    shown = _ranges(dump.iterations())
    console.print(
        Text(
            f"{visible(str(dump.folder))}: {nets}, ranks {_ranges(sorted(dump.ranks))}, "
            f"graphs {_ranges(graphs)}, iterations {shown}"
        )
    )
    flagged = [str(record.get("name") or record.get("op")) for _, record in overflow_records(dump.folder)]
    if flagged:
        text = f"By the status of the device {len(flagged)} tasks overflowed, at first that of {flagged[0]}"
        console.print(Text(f"{text}; what saturated is finite.", "yellow"), soft_wrap=True)
    if not found:
        console.print(Text("All values are finite.", "green"))
        return
    if found[0].given:
        text = "All values are finite but for infinities that the code has as numbers or constants."
        console.print(Text(text, "green"), soft_wrap=True)
    console.print(_why(found[0]), soft_wrap=True)
    if len(found) > 1:
        console.print(_table(found[:limit]))
    if len(found) > limit:
        console.print(Text(f"... and {len(found) - limit} more; --limit shows them"))


def _why(first: NonFinite) -> Text:
    """The answer to "why is this NaN"."""
    text = Text()
    what = {"nan": "NaN", "inf": "infinity", "-inf": "negative infinity"}[first.kind]
    text.append(f"The first {what}: ", "bold red")
    text.append(f"{visible(first.op_full_name)}, output {first.slot}, iteration {first.iteration}: ")
    text.append(f"{first.count} of {first.size} elements")
    if first.op_type == "Parameter":
        text.append("; it was there when the step began")
    elif first.given:
        text.append("; a number or a constant of the code is infinite")
    elif first.born:
        text.append("; all its inputs are finite")
    elif first.born is None:
        text.append("; its inputs were not dumped")
    for depth, line in enumerate(first.stack):
        text.append(
            f"\n  {'at' if depth == 0 else 'called from'} {visible(line.file)}:{line.line}: ",
            "bold" if depth == 0 else "",
        )
        text.append(visible(line.code))
    return text


def _table(found: list[NonFinite]) -> Table:
    table = Table(
        "iteration", "operator", "slot", "what", "count", "made here", "source", box=None, pad_edge=False
    )
    for f in found:
        made = "given" if f.given else "yes" if f.born else "?" if f.born is None else "no"
        source = f"{Path(f.stack[0].file).name}:{f.stack[0].line}" if f.stack else ""
        cells = (
            str(f.iteration),
            short(f.op_full_name),
            str(f.slot),
            f.kind,
            f"{f.count}/{f.size}",
            made,
            source,
        )
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def _ranges(numbers: list[int]) -> str:
    """Numbers in order, neighbours as a range: 0-3, 7."""
    parts: list[list[int]] = []
    for n in numbers:
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def main() -> None:
    app()
