"""check: whether all records of event files are whole."""

from __future__ import annotations

import os
from typing import Annotated

import typer


def check(folder: Annotated[str, typer.Argument(metavar="DIR", help="A run, or a folder of runs.")]) -> None:
    """Verify the checksums of every record; name the place of the first broken one of each file."""
    from mycelia_insight.exchange.runs import opened

    if not os.path.isdir(folder):
        raise typer.BadParameter(f"{folder} is not a folder")
    with opened(folder) as library:
        runs = library.runs()
        broken = [found for run in runs for found in run.broken()]
        files = sum(run.file_count(lineage=False) + run.file_count(lineage=True) for run in runs)
    for path, count, first in broken:
        offset, what = first[0]
        typer.echo(
            f"{path}: {count} broken record{'s' if count > 1 else ''}, the first at byte {offset}: {what}"
        )
    typer.echo(f"{files} files, {len(broken)} with broken records")
    raise typer.Exit(1 if broken else 0)
