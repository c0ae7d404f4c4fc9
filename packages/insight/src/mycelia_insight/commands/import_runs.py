"""import: runs of other programs as runs of MindSpore's summaries."""

from __future__ import annotations

import contextlib
import enum
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mycelia_insight.exchange.sources import Source


class Origin(enum.StrEnum):
    """What runs are imported from."""

    tensorboard = "tensorboard"
    wandb_offline = "wandb-offline"
    mlflow = "mlflow"


def import_runs(
    format: Annotated[Origin, typer.Option(help="What recorded the runs.")],
    input: Annotated[str, typer.Option(help="A folder with runs, at any depth.")],
    output: Annotated[str, typer.Option(help="A new folder, with a folder in it for each run.")],
) -> None:
    """Write runs of TensorBoard, W&B (offline) or MLflow (files) as MindSpore's summaries."""
    from mycelia_insight.exchange.export import Counts
    from mycelia_insight.exchange.output import Refused, folder, made_from, warn
    from mycelia_insight.exchange.run_writer import RunWriter

    folder(input, "--input")
    counts = Counts()
    with made_from(input, output, "imported") as target, _sources(format, input) as found:
        if not found:
            raise Refused(f"there are no runs of {format.value} in {input}")
        for source in found:
            place, again = os.path.join(target, source.name), 1
            while os.path.lexists(place) and os.listdir(place):
                again += 1
                place = os.path.join(target, f"{source.name} ({again})")
            os.makedirs(place, exist_ok=True)
            writer = RunWriter(place, source.seconds)
            source.write(writer, counts, warn)
            writer.close()
            if writer.overflowed:
                warn(f"{source.name}: numbers beyond single precision, now infinite: {writer.overflowed}")
    typer.echo(counts.told(len(found), output))
    if counts.left:
        warn(f"left out, as there is no place for them: {counts.told_left()}")


@contextlib.contextmanager
def _sources(format: Origin, folder: str) -> Iterator[list[Source]]:
    from mycelia_insight.exchange.output import warn

    if format == Origin.tensorboard:
        from mycelia_insight.exchange import from_tensorboard
        from mycelia_insight.exchange.runs import opened

        with opened(folder) as library:
            yield from_tensorboard.sources(library)
    elif format == Origin.mlflow:
        from mycelia_insight.exchange import from_mlflow

        yield from_mlflow.sources(folder, warn)
    else:
        from mycelia_insight.exchange import from_wandb

        yield from_wandb.sources(folder, warn)
