"""What `mycelia doctor` does with --train and --summary-dir: print every check, exit with 1 if one found
something.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from mycelia.engine.base import errors
from mycelia.io.files import write_text
from mycelia.train.checks.recorded import examine_recorded
from mycelia.train.checks.results import FOUND, NEEDS_YOU, NOT_FOUND, Result, examine
from mycelia.train.checks.summaries import read_summaries
from mycelia.train.checks.watching import collecting


def check_training(
    run: Callable[[], None], script: Path, missing_names: list[str], as_json: bool = False,
    report: Path | None = None, reference: Path | None = None,
) -> int:  # fmt: skip
    """The exit status: 1 if a check found something or the script failed, else 0.

    `run` runs `script`; `report` takes what a later run is compared with, `reference` is such a file.
    Errors: ValueError for a reference that is none, before anything runs.
    """
    known = None if reference is None else _read(reference)
    failed = 0
    with collecting(script) as facts:
        facts.missing_names = missing_names
        try:
            run()
        except SystemExit as end:  # as scripts end
            failed = 0 if end.code in (None, 0) else 1
    results = examine(facts, known)
    if report is not None:
        write_text(report, json.dumps(facts.summary()))
    show(results, as_json)
    return 1 if failed or any(r.verdict == FOUND for r in results) else 0


def check_summaries(folder: Path, as_json: bool = False) -> int:
    """The same of what a training recorded, without a run. Errors: ValueError for a folder without events."""
    summaries = read_summaries(folder)
    for note in summaries.notes:
        print(note, file=sys.stderr)
    results = examine_recorded(summaries)
    show(results, as_json)
    return 1 if any(r.verdict == FOUND for r in results) else 0


def show(results: list[Result], as_json: bool) -> None:
    """Print what checks say."""
    if as_json:
        print(json.dumps([r.as_dict() for r in results], indent=2))
        return
    for result in results:
        print(f"{result.check}  {result.verdict:9}  {result.title}: {result.evidence}")
    counts = [f"{sum(r.verdict == v for r in results)} {v}" for v in (FOUND, NOT_FOUND, NEEDS_YOU)]
    print(", ".join(counts))


def _read(path: Path) -> dict:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as cause:
        raise errors.value_error("--reference", f"{path} is no report of the doctor: {cause}") from None
    if (
        not isinstance(found, dict)
        or not {"fingerprint", "rows", "losses", "hyper_parameters"} <= found.keys()
    ):
        raise errors.value_error("--reference", f"{path} is no report of the doctor")
    return found
