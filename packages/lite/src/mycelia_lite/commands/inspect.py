"""`mycelia-lite inspect`: what a model holds, and how it will run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def inspect(
    model: Annotated[Path | None, typer.Argument(help="A .ms file.", show_default=False)] = None,
    text: Annotated[
        Path | None, typer.Option("--text", help="Write the whole model as text to this file; - prints it.")
    ] = None,
    data: Annotated[
        str, typer.Option(help="Weights in the text: inline, or hash for their SHA-256.")
    ] = "inline",
    from_text: Annotated[Path | None, typer.Option("--from-text", help="Make a model of this text.")] = None,
    output_file: Annotated[Path | None, typer.Option(help="Where the model made of text goes.")] = None,
    memory: Annotated[bool, typer.Option("--memory", help="Show the memory plan of the runtime.")] = False,
    page: Annotated[
        Path | None, typer.Option("--html", help="Write a page: borders, picture of the plan, nodes.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--svg", help="Write the picture of the memory plan.")
    ] = None,
    input_shape: Annotated[
        str, typer.Option("--input-shape", "--inputShape", help="Shapes for the plan; open sizes are 1.")
    ] = "",
    loops: Annotated[int, typer.Option(min=0, help="Runs that are timed for the page.")] = 0,
) -> None:
    """Show what a .ms model holds, write it as text, or make it from text; show how it will run.

    Text with hashes takes the weights from the model that is given too.
    """
    from mycelia import errors
    from mycelia_lite import format

    try:
        if from_text is not None:
            if output_file is None or text is not None:
                raise typer.BadParameter("--from-text needs --output-file and takes no --text")
            weights = None if model is None else format.read(model)
            try:
                made = format.from_text(from_text.read_text(encoding="utf-8"), weights)
            except format.FormatError as e:
                e.subject = str(from_text)
                raise
            format.write(output_file, made)
            return
        if model is None or output_file is not None:
            raise typer.BadParameter("give a model, or --from-text with --output-file")
        read = format.read(model)
        if memory or page is not None or picture is not None:
            _show_plan(model, read, memory, page, picture, input_shape, loops)
        elif text is None:
            from mycelia.engine.base import terminal
            from mycelia_lite import show

            terminal.console().print(show.page(model, read))
        elif str(text) == "-":
            typer.echo(format.to_text(read, data), nl=False)
        else:
            from mycelia.io.files import write_text

            write_text(text, format.to_text(read, data))
    except (errors.MyceliaError, OSError, UnicodeDecodeError, RuntimeError) as e:
        typer.echo(str(e), err=True)
        raise typer.Exit(1) from None


def _show_plan(
    path: Path, read: Any, memory: bool, page: Path | None, picture: Path | None, input_shape: str, loops: int
) -> None:
    from mycelia.engine.base import terminal
    from mycelia.io.files import write_text
    from mycelia_lite import picture as pictures
    from mycelia_lite import show
    from mycelia_lite.converter import parse_shapes
    from mycelia_lite.model import Model

    shapes = parse_shapes(input_shape)
    model = Model()
    model.build_from_file(path)
    inputs = model.get_inputs()
    for name in shapes:
        if name not in [t.name for t in inputs]:
            names = [t.name for t in inputs]
            raise typer.BadParameter(f"--input-shape names '{name}', but the inputs are {names}")
    wanted = [shapes.get(t.name, [1 if n < 0 else n for n in t.shape]) for t in inputs]
    if wanted != [t.shape for t in inputs]:
        model.resize(inputs, wanted)
    plan = pictures.plan_of(model)
    if memory:
        terminal.console().print(show.memory_plan(plan))
    if picture is not None:
        write_text(picture, pictures.svg(plan) + "\n")
    if page is not None:
        write_text(page, pictures.page(path, read, model, loops))
