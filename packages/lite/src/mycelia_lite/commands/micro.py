"""`mycelia-lite micro`: C sources of models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def micro(
    models: Annotated[list[Path], typer.Argument(help=".ms files; several share kernels and arena.")],
    output_path: Annotated[
        Path, typer.Option("--output-path", "--outputPath", help="The folder that gets the sources.")
    ],
    input_shape: Annotated[
        str, typer.Option("--input-shape", "--inputShape", help="Sizes of inputs that are open, n:1,3;m:1,4.")
    ] = "",
    memory: Annotated[
        bool, typer.Option("--memory", help="Show where each value lies in the arena.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option("--svg", help="Write the picture of the (first) model's arena.")
    ] = None,
    ram_limit: Annotated[
        int | None,
        typer.Option(
            "--ram-limit", "--ramLimit", help="Most bytes of an arena; first layers are cut to fit."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the inputs for the self-test.")] = 0,
) -> None:
    """Turn .ms models into plain C99 with one arena of known size."""
    from mycelia import errors
    from mycelia.engine.base import terminal
    from mycelia.io.files import write_text
    from mycelia_lite import picture as pictures
    from mycelia_lite import show
    from mycelia_lite.converter import parse_shapes
    from mycelia_lite.micro import generate

    try:
        reports = generate(models, output_path, parse_shapes(input_shape), seed, ram_limit)
        if picture is not None:
            write_text(picture, pictures.svg(reports[0].plan) + "\n")
    except (errors.MyceliaError, OSError, RuntimeError, ValueError) as e:
        typer.echo(str(e), err=True)
        raise typer.Exit(1) from None
    terminal.console().print(show.arenas(reports))
    if memory:
        for report in reports:
            terminal.console().print(show.memory_plan(report.plan))
