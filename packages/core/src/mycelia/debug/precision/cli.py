"""The command `mycelia-precision`: where the numbers of a run part from those of a trusted one.

Without a sub-command it asks for commands at a prompt, or reads them from standard input, one a line; a word
that is none is a command of the shell.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import click
import typer
from rich.console import Console

from mycelia.debug.dump import files
from mycelia.debug.precision import comparison, matching, msprobe, operator_check, report, runs, tables
from mycelia.debug.precision.bisect import Bisect, Metric
from mycelia.debug.precision.operators import (
    describe,
    operators,
    overflow_lines,
    subgraph,
    tensors_of,
)
from mycelia.debug.reading.folders import Dump
from mycelia.engine.base import errors

PROMPT = "PrecisionTool > "
_PLAIN, _DEVICE = "ND", "device"  # layouts of `convert`
#: What wrong options raise: click's class, or that of the copy that newer versions of typer hold.
_Usage = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
MISMATCH = 3  # exit status of `--fail` when a comparison found one

app = typer.Typer(
    rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, invoke_without_command=True
)
console = Console(highlight=False, soft_wrap=True)


class _Outcome:
    """Whether a comparison of this process found a mismatch."""

    mismatch = False


def _dump(folder: Path) -> Dump:
    if not folder.is_dir():
        raise errors.value_error("dump", f"there is no folder {os.fspath(folder)!r}")
    return Dump(folder)


@app.callback()
def main_options(
    context: typer.Context,
    fail: Annotated[
        bool, typer.Option("--fail", help="Exit with status 3 if a comparison found a mismatch.")
    ] = False,
) -> None:
    """Compare the numbers of a run with those of a trusted one."""
    context.obj = fail
    if context.invoked_subcommand is None:
        raise typer.Exit(_prompt())


@app.command("vc")
def compare_dumps(
    left: Annotated[Path, typer.Option("-lt", "--left", help="The dump of the run under test.")],
    right: Annotated[Path, typer.Option("-rt", "--right", help="The dump of the trusted run.")],
    graph: Annotated[int | None, typer.Option("-g", "--graph", help="Compare this graph alone.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The folder of the table.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Add columns that hide nothing.")] = False,
    by: Annotated[str, typer.Option(help="Match tensors by 'name' or by 'order'.")] = matching.BY_NAME,
    names: Annotated[
        Path | None, typer.Option("--map", help="JSON of names to names, or to lists of what was fused.")
    ] = None,
    threshold: Annotated[
        float, typer.Option("-c", min=0.0, max=1.0, help="Cosine from which tensors are alike; 1: equal.")
    ] = comparison.ALIKE,
    html: Annotated[Path | None, typer.Option(help="Write a report as a page, too.")] = None,
    as_msprobe: Annotated[
        bool, typer.Option("--msprobe", help="Write msprobe's tables, too, one for each rank and iteration.")
    ] = False,
) -> None:
    """Compare two dump folders: a CSV of all tensors, and the first operator that departs."""
    if by not in (matching.BY_NAME, matching.BY_ORDER):
        raise errors.one_of(by, (matching.BY_NAME, matching.BY_ORDER), subject="vc", what="--by")
    found = comparison.Comparison(
        _dump(left), _dump(right), graph=graph, by=by, strict=strict, threshold=threshold,
        names=None if names is None else matching.read_map(names),
    )  # fmt: skip
    stamp = time.strftime("%Y%m%d%H%M%S")
    folder = out or runs.working_folder() / "temp" / "vector_compare" / stamp
    path = folder / f"result_{stamp}.csv"
    with msprobe.Tables(folder, stamp) as like_msprobe:
        comparison.save(found, path, like_msprobe.add if as_msprobe else None)
    lacking = f", {found.unmatched} without a reference" if found.unmatched else ""
    console.print(
        f"{path}: {found.compared} tensors compared, {found.unlike} not alike{lacking}", markup=False
    )
    _Outcome.mismatch |= bool(found.unlike)
    first = found.divergence
    console.print(f"first divergence: {first.operator if first else 'none'}", markup=False)
    if first is not None:
        for line in first.lines:
            console.print(f"  {line}", markup=False)
    for table in like_msprobe.paths:
        console.print(f"msprobe's table: {table}", markup=False)
    if html is not None:
        report.write(found, comparison.read_table(path), html)
        console.print(f"report: {html}", markup=False)


@app.command("vcs")
def compared_summary(
    file: Annotated[Path | None, typer.Option("-f", help="The CSV; the newest if none is given.")] = None,
    cosine: Annotated[
        float, typer.Option("-c", help="Operators with a cosine below this.")
    ] = comparison.ALIKE,
    limit: Annotated[int, typer.Option("-l", min=1, help="At most so many.")] = 3,
) -> None:
    """List the operators of a comparison whose inputs or outputs differ, in order of execution."""
    path = file or runs.newest_table()
    needed = (*comparison.HEAD, "CosineSimilarity", comparison.FAIL)
    found = report.summarize(comparison.read_table(path, needed), cosine)
    for operator in found[:limit]:
        console.print(f"[{operator.index}] {operator.name}", markup=False)
        console.print(f"  left: {operator.name}  right: {operator.right}", markup=False)
        for io, cells in (("inputs", operator.inputs), ("outputs", operator.outputs)):
            console.print(f"  {io}: " + " ".join(f"[{i}]{c}" for i, c in cells), markup=False)
    if not found:
        console.print(f"no operator has a cosine similarity below {cosine:g}")
    _Outcome.mismatch |= bool(found)


@app.command("cp")
def compare_files(
    files: Annotated[list[Path], typer.Argument(help="LEFT.npy RIGHT.npy")],
    named: Annotated[bool, typer.Option("-n", hidden=True)] = False,
    print_count: Annotated[int, typer.Option("-p", min=1, help="Elements to print.")] = 20,
    atol: Annotated[float, typer.Option("-al", min=0.0, help="Absolute tolerance.")] = 0.001,
    rtol: Annotated[float, typer.Option("-rl", min=0.0, help="Relative tolerance.")] = 0.001,
    save: Annotated[bool, typer.Option("-s", help="Write both as text beside them.")] = False,
) -> None:
    """Compare two arrays element by element."""
    if len(files) != 2:
        raise errors.value_error("cp", f"expected two files, but got {len(files)}")
    left, right = (tables.load(path) for path in files)
    found = tables.compare_elements(left, right, atol, rtol, print_count)
    console.print(f"Error elements (al={atol:g}, rl={rtol:g}): {found.wrong_count} of {found.count}")
    if found.wrong:
        console.print(tables.element_table(found))
    console.print(f"First {min(print_count, found.count)} elements")
    console.print(tables.first_table(left, right, print_count))
    console.print(f"Count: {found.count}  AllClose: {found.all_close}  CosSim: {found.cosine:.6f}  "
                  f"ErrorPer: {found.error_share:.6f}")  # fmt: skip
    if save:
        for path, array in zip(files, (left, right)):
            _save_text(path, array)
    _Outcome.mismatch |= not found.all_close


@app.command("pt")
def print_tensor(
    file: Annotated[Path, typer.Argument(help="FILE.npy")],
    named: Annotated[bool, typer.Option("-n", hidden=True)] = False,
    convert: Annotated[bool, typer.Option("-c", help="Write it as text beside it.")] = False,
) -> None:
    """Print what an array is."""
    array = tables.load(file)
    for name, value in tables.summary(array, os.fspath(file)):
        console.print(f"{name}: {value}", markup=False)
    if convert:
        _save_text(file, array)


def _save_text(path: Path, array) -> None:
    target = path.with_name(path.name + ".txt")
    partial = target.with_name(f".{target.name}.partial")
    partial.write_text(tables.text_of(array), encoding="utf-8")
    os.replace(partial, target)
    console.print(f"Text: {target}", markup=False)


@app.command("ls")
def list_operators(
    name: Annotated[str, typer.Option("-n", help="Part of the name.")] = "",
    kind: Annotated[str, typer.Option("-t", help="Part of the type.")] = "",
    fusion: Annotated[
        str, typer.Option("-f", help="Passes of the compiler with this in their name, and what they fused.")
    ] = "",
    kernel: Annotated[str, typer.Option("-k", help="Part of the name of the op that ran.")] = "",
    passes: Annotated[bool, typer.Option("--passes", help="List the passes that can be switched.")] = False,
    folder: Annotated[
        Path | None, typer.Option("-d", help="The dump; of the run under test if not said.")
    ] = None,
) -> None:
    """List the operators of a dump, ``[Type][FusionPass] name``, or the passes of the compiler."""
    if fusion or passes:
        for found in runs.pass_names():
            if fusion.lower() in found.lower():
                console.print(found, markup=False)
    if passes:
        return
    try:
        place = folder or runs.dump_folder()
    except errors.MyceliaError:
        if fusion:  # it has listed passes
            return
        raise
    for operator in operators(_dump(place)):
        op = operator.recorded.op if operator.recorded else ""
        wanted = ((name, operator.name), (kind, operator.kind), (fusion, operator.made_by), (kernel, op))
        if all(part.lower() in text.lower() for part, text in wanted):
            console.print(operator.label, markup=False)


@app.command("ni")
def node_information(
    name: Annotated[str, typer.Argument(help="The full name of an operator, or a part of it.")],
    named: Annotated[bool, typer.Option("-n", hidden=True)] = False,
    graph: Annotated[int | None, typer.Option("-g", help="In this graph.")] = None,
    folder: Annotated[Path | None, typer.Option("-d", help="The dump of the run under test.")] = None,
    reference: Annotated[Path | None, typer.Option("-r", help="The dump of the trusted run.")] = None,
    attribute: Annotated[str | None, typer.Option("-a", help="Attributes with this in their name.")] = None,
    depth: Annotated[
        int | None, typer.Option("-s", min=1, help="Write what is so many edges away, for Graphviz.")
    ] = None,
) -> None:
    """Tell what an operator is: what feeds it, what it feeds, its lines, its dumped tensors on both sides."""
    right = reference or runs.reference_folder()
    dump = _dump(folder or runs.dump_folder())
    for line in describe(dump, name, graph, _dump(right) if right and right.is_dir() else None, attribute):
        console.print(line, markup=False)
    if depth is not None:
        text = subgraph(dump, name, depth, graph)
        path = (
            runs.working_folder()
            / "temp"
            / "op_graph"
            / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[-200:]}.dot"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(os.fspath(path), [text])
        console.print(f"graph: {path}", markup=False)


@app.command("ac")
def automatic_check(
    limit: Annotated[int, typer.Option("-l", min=1, help="At most so many operators.")] = 3,
    compare: Annotated[bool, typer.Option("-c", help="Compare the whole network, too.")] = False,
) -> None:
    """Check what was collected: fused operators, overflows, then, with -c, all tensors against the trusted
    run.
    """
    folder = runs.overflow_folder()
    if runs.is_clean(folder):
        console.print("0 outputs are not finite: no operator overflowed")
    else:
        _tell_overflows(_dump(folder if folder.is_dir() else runs.dump_folder()), limit)
    if compare:
        right = runs.reference_folder()
        if right is None:
            raise errors.value_error("ac", "there is no dump of a trusted run: collect one by ref_dump")
        compare_dumps(runs.dump_folder(), right)


def _tell_overflows(dump: Dump, limit: int) -> None:
    from mycelia.debug.dump.device_overflow import overflow_records
    from mycelia.debug.reading.nonfinite import trace_nonfinite

    fused = [o for o in operators(dump) if o.recorded and o.recorded.parts]
    console.print(f"{len(fused)} fused operators")
    for operator in fused[:limit]:
        parts = ", ".join(operator.recorded.parts if operator.recorded else ())
        console.print(f"{operator.label}: {parts}", markup=False)
    flagged = list(overflow_records(dump.folder))
    if flagged:
        console.print(f"{len(flagged)} tasks overflowed")
    for path, record in flagged[:limit]:
        for line in overflow_lines(dump, path, record):
            console.print(line, markup=False)
    bad = [found for found in trace_nonfinite(dump) if not found.given]
    console.print(f"{len(bad)} outputs are not finite")
    for found in bad[:limit]:
        console.print(f"[{found.op_type}] {found.op_full_name} output {found.slot}: {found.count} of "
                      f"{found.size} {found.kind}", markup=False)  # fmt: skip
        for line in (*found.source, *tensors_of(dump, found)):
            console.print(f"  {line}", markup=False)
    _Outcome.mismatch |= bool(bad or flagged)


@app.command("convert")
def convert_dump(
    source: Annotated[Path, typer.Option("-d", help="A file of an asynchronous dump, or a folder of them.")],
    out: Annotated[Path, typer.Option("-out", help="The folder of the converted files.")],
    layout: Annotated[
        str, typer.Option("-f", help="'ND' as the tensors are, 'device' as they lie in the device.")
    ] = "ND",
    kind: Annotated[str, typer.Option("-t", help="'npy', or 'bin' for bare bytes.")] = "npy",
) -> None:
    """Make a file of each tensor in asynchronous dumps, `NAME.{input|output}.{i}.{shape}.{dtype}.npy`."""
    from mycelia.io import async_dump

    if layout not in (_PLAIN, _DEVICE):
        raise errors.one_of(layout, (_PLAIN, _DEVICE), subject="convert", what="-f")
    if not source.exists():
        raise errors.value_error("convert", f"there is no file and no folder {os.fspath(source)!r}")
    files = sorted(filter(async_dump.is_named_as_dump, source.rglob("*"))) if source.is_dir() else [source]
    if not files:
        raise errors.value_error("convert", f"{os.fspath(source)!r} holds no file of an asynchronous dump")
    count = sum(len(async_dump.convert(file, out, kind, layout == _DEVICE)) for file in files)
    console.print(f"{len(files)} files, {count} tensors: {out}", markup=False)


@app.command("run", context_settings={"ignore_unknown_options": True})
def run_command(command: Annotated[list[str], typer.Argument(help="A command of the shell.")]) -> None:
    """Run a command of the shell."""
    raise typer.Exit(subprocess.call(" ".join(command), shell=True))


def _collect(action: str, command: str, steps: str, fused: bool = False) -> None:
    code = runs.collect_command(action, command, steps, fused)
    if code:
        raise typer.Exit(code)


_Command = Annotated[str, typer.Argument(help="The command that runs the script, in quotes.")]
_Steps = Annotated[str, typer.Option(help="Iterations to dump: 'all', or numbers and ranges, '0|5-8'.")]
_Fused = Annotated[
    bool, typer.Option("--fused", help="Dump compiled programs as they run, fused; steps are runs of each.")
]


@app.command("sim_dump")
@app.command("npu_dump")
def dump_under_test(command: _Command, steps: _Steps = "0", fused: _Fused = False) -> None:
    """Run a script with a dump of the run under test."""
    _collect("dump", command, steps, fused)


@app.command("ref_dump")
@app.command("tf_dump")
def dump_reference(command: _Command, steps: _Steps = "0", fused: _Fused = False) -> None:
    """Run a script with a dump of the trusted run."""
    _collect("reference", command, steps, fused)


@app.command("overflow")
@app.command("npu_overflow")
def dump_overflow(command: _Command, steps: _Steps = "all") -> None:
    """Run a script and keep the operators whose outputs are not finite."""
    _collect("overflow", command, steps)


@app.command("train")
def train_both(
    command: _Command,
    reference: Annotated[
        str, typer.Option(help="The command of the trusted run; the same without fusion.")
    ] = "",
    steps: _Steps = "0",
    fused: _Fused = False,
) -> None:
    """Run both sides, one after the other."""
    _collect("dump", command, steps, fused)
    if reference:
        _collect("reference", reference, steps, fused)
    else:
        _collect("reference_fusion_off", command, steps, fused)


@app.command("acc_check")
def check_operators(
    command: _Command,
    random: Annotated[
        bool, typer.Option("--random", help="On inputs drawn from the recorded ones, not on these.")
    ] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The table; default: below temp.")] = None,
    limit: Annotated[int, typer.Option("-l", min=1, help="At most so many operators that fail.")] = 10,
) -> None:
    """Run a script and check each operator of it alone against a reference in float64."""
    path = out or runs.working_folder() / "temp" / "acc_check" / f"{time.strftime('%Y%m%d%H%M%S')}.csv"
    path.unlink(missing_ok=True)
    action = operator_check.RANDOM if random else operator_check.RECORDED
    code = runs.run_command(command, runs.environment(action, path))
    if not path.is_file():
        raise errors.value_error("acc_check", f"{command!r}, status {code}, ran no operator of Mycelia")
    rows = comparison.read_table(path, operator_check.COLUMNS)
    verdicts = [row["Verdict"] for row in rows]
    for row in [r for r in rows if r["Verdict"] == operator_check.FAIL][:limit]:
        console.print(f"[{row['Op Type']}] {row['Op Name']}, output {row['Slot']}, {row['Data Type']} "
                      f"{row['Shape']}: {row['Reason']}", markup=False)  # fmt: skip
        console.print(f"  largest error {row['MaxAbsoluteError']}, bound {row['Bound']}, cosine "
                      f"{row['CosineSimilarity']}  {row['Source']}", markup=False)  # fmt: skip
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in operator_check.VERDICTS)
    console.print(f"{path}: {counts}", markup=False)
    _Outcome.mismatch |= operator_check.FAIL in verdicts
    if code:
        raise typer.Exit(code)


@app.command("bisect")
def bisect_passes(
    command: Annotated[str, typer.Option("--cmd", help="The command that trains and writes the metric.")],
    metric: Annotated[str, typer.Option(help="FILE.json:KEY, the number that tells good from bad.")],
    good: Annotated[float, typer.Option(help="A run is good if the number is at least this.")],
    passes: Annotated[
        str, typer.Option(help="Passes to choose from, comma-separated; default: those that ran.")
    ] = "",
) -> None:
    """Find the smallest set of compiler passes to blame for a bad number, then the first operator."""
    found = Bisect(command, Metric.parse(metric, good), [p for p in passes.split(",") if p])
    guilty = found.run(lambda text: console.print(text, markup=False))
    console.print(f"guilty: {', '.join(guilty) if guilty else 'none'}", markup=False)
    if guilty:
        first = found.first_operator(guilty)
        console.print(f"first operator: {first or 'none that is dumped differs'}", markup=False)
        _Outcome.mismatch = True


# ---- the prompt --------------------------------------------------------------------------------------------


def _prompt() -> int:
    """Commands until the end of input; the exit status: 0 if every one ran."""
    worst, asks = 0, sys.stdin.isatty()
    while True:
        if asks:
            print(PROMPT, end="", flush=True)
        line = sys.stdin.readline()
        if not line or line.strip() in ("exit", "quit"):
            return worst
        if line.strip():
            worst = _one(line.strip()) or worst


def _one(line: str) -> int:
    """The exit status of one command of the prompt."""
    command = typer.main.get_command(app)
    try:
        words = _options(shlex.split(line))
    except ValueError as cause:
        print(f"error: {cause}", file=sys.stderr)
        return 2
    if words[0] not in command.commands:  # type: ignore[attr-defined]
        return subprocess.call(line, shell=True)
    return _invoke(command, words)


def _options(words: list[str]) -> list[str]:
    """Pages print the hyphen of an option as a dash, and what is copied from them means the option."""
    return [re.sub("^[\u2013\u2014](?=[a-z])", "-", word) for word in words]


def _invoke(command: click.Command, words: list[str]) -> int:
    try:
        found = command.main(args=words, prog_name="mycelia-precision", standalone_mode=False)
    except _Usage as error:
        error.show()
        return error.exit_code
    except (errors.MyceliaError, OSError, json.JSONDecodeError) as error:
        if isinstance(error, errors.MyceliaError):
            error.place = None  # the caller is a terminal
        print(f"error: {error}", file=sys.stderr)
        return 1
    return found if isinstance(found, int) else 0


def main() -> None:
    """The entry point."""
    words = _options(sys.argv[1:])
    code = _invoke(typer.main.get_command(app), words)
    sys.exit(code or (MISMATCH if "--fail" in words and _Outcome.mismatch else 0))
