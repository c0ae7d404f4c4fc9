"""html: a report of runs in one file."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer


def html(
    summary_dir: Annotated[str, typer.Option(help="A run, or a folder of runs.")],
    output: Annotated[str, typer.Option("-o", "--output", help="The file to write.")],
    runs: Annotated[str, typer.Option(help="A regular expression: which runs, by name.")] = "",
    query: Annotated[str, typer.Option(help='Which runs: `loss < 0.1 and optimizer == "Adam"`.')] = "",
    tags: Annotated[str, typer.Option(help="A regular expression: which tags.")] = "",
    title: Annotated[str, typer.Option(help="The title; the folder's name if nothing is said.")] = "",
    images: Annotated[int, typer.Option(min=0, max=1000, help="Images of a tag at most.")] = 8,
    max_size: Annotated[int, typer.Option(min=1, max=500, help="Megabytes of values at most.")] = 32,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a report of runs, one file that opens in a browser without a network."""
    from mycelia.io.files import atomic_write
    from mycelia_insight.exchange.output import Refused, all_or_nothing, folder, refuse_inside, warn
    from mycelia_insight.exchange.report import written
    from mycelia_insight.exchange.runs import opened, pattern
    from mycelia_insight.service.endpoints import RequestError

    folder(summary_dir, "--summary-dir")
    try:
        of_runs, of_tags = pattern(runs, "--runs"), pattern(tags, "--tags")
        with all_or_nothing("written"), opened(summary_dir) as library:
            refuse_inside(output, summary_dir)
            if os.path.lexists(output) and not force:
                raise Refused(f"{output} is there already; --force writes over it")
            name = title or os.path.basename(os.path.abspath(summary_dir))
            page, count, left = written(
                library, of_runs, query, of_tags, name, time.time(), max_size << 20, images
            )
            if not count:
                raise Refused(f"there are no such runs in {summary_dir}")
            with atomic_write(output) as file:
                file.write(page)
    except (ValueError, RequestError) as error:
        raise typer.BadParameter(str(error).replace("'query'", "--query")) from None
    for one in left[:20]:
        warn(f"left out: {one}")
    if len(left) > 20:
        warn(f"left out: {len(left) - 20} more, which the report names")
    typer.echo(f"{count} run{'s' if count > 1 else ''} in {os.path.abspath(output)}, {len(page):,} bytes")
