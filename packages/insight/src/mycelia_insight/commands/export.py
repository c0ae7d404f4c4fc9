"""export: runs in other formats."""

from __future__ import annotations

import enum
import os
import time
from typing import Annotated

import typer


class Format(enum.StrEnum):
    """What runs are exported to."""

    tensorboard = "tensorboard"
    csv = "csv"
    parquet = "parquet"
    jsonl = "jsonl"


def export(
    format: Annotated[Format, typer.Option(help="What to write.")],
    summary_dir: Annotated[str, typer.Option(help="A run, or a folder of runs.")],
    output: Annotated[str, typer.Option(help="A new folder, with a folder in it for each run.")],
    tags: Annotated[str, typer.Option(help="A regular expression: which tags; all if nothing is said.")] = "",
) -> None:
    """Write runs as TensorBoard's event files, or as tables with images, tensors and sounds as files."""
    from mycelia_insight.exchange import export as values
    from mycelia_insight.exchange.output import Refused, folder, made_from, warn
    from mycelia_insight.exchange.runs import opened, pattern

    folder(summary_dir, "--summary-dir")
    try:
        wanted = pattern(tags, "--tags")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    counts = values.Counts()
    with made_from(summary_dir, output, "exported") as target:
        make = _maker(format)
        with opened(summary_dir) as library:
            runs = library.runs()
            if not runs:
                raise Refused(f"there are no runs in {summary_dir}")
            for run in runs:
                place = os.path.join(target, run.name)
                os.makedirs(place, exist_ok=True)
                writer = make(place, min((tag.first_time for tag in run.tags()), default=time.time()))
                values.copy(run, wanted, writer, warn, counts)
                writer.close()
                for path, count, _ in run.broken():
                    many = "s" if count > 1 else ""
                    warn(f"{path}: {count} broken record{many}, see `mycelia-insight check`")
    typer.echo(counts.told(len(runs), output))
    if counts.left:
        warn(f"left out, as {format.value} has no place for them: {counts.told_left()}")


def _maker(format: Format):
    from mycelia_insight.exchange.output import Refused

    if format == Format.tensorboard:
        from mycelia_insight.exchange.to_tensorboard import TensorBoardWriter

        return TensorBoardWriter
    from mycelia_insight.exchange import to_tables

    if format == Format.parquet:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise Refused('parquet needs pyarrow: pip install "mycelia-insight[parquet]"') from None
    kinds = {
        Format.csv: to_tables.CsvTable,
        Format.jsonl: to_tables.JsonTable,
        Format.parquet: to_tables.ParquetTable,
    }
    return lambda folder, _seconds: to_tables.TablesWriter(folder, kinds[format])
