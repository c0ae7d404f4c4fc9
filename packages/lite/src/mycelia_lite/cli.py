"""`mycelia lite`: commands of Mycelia Lite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mycelia_lite.commands.benchmark import benchmark
from mycelia_lite.commands.convert import ConvertCommand, convert
from mycelia_lite.commands.crop import crop
from mycelia_lite.commands.obfuscate import obfuscate

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: no word in brackets is taken for markup
    help="Models for devices.",
)


@app.callback()
def main() -> None:
    """Models for devices."""


@app.command()
def version() -> None:
    """Print the version of mycelia-lite."""
    import mycelia_lite

    typer.echo(mycelia_lite.__version__)


@app.command()
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
) -> None:
    """Show what a .ms model holds, write it as text, or make it from text.

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
        if text is None:
            from mycelia.engine.base import terminal
            from mycelia_lite.show import page

            terminal.console().print(page(model, read))
        elif str(text) == "-":
            typer.echo(format.to_text(read, data), nl=False)
        else:
            from mycelia.io.files import write_text

            write_text(text, format.to_text(read, data))
    except (errors.MyceliaError, OSError, UnicodeDecodeError) as e:
        typer.echo(str(e), err=True)
        raise typer.Exit(1) from None


app.command(cls=ConvertCommand)(convert)
app.command()(crop)
app.command()(benchmark)
app.command()(obfuscate)


@app.command()
def config(
    libraries: Annotated[
        bool, typer.Option("--libraries", help="Print the folder of the runtime's libraries and headers.")
    ] = False,
) -> None:
    """Print what programs in C and C++ need to link the runtime."""
    from mycelia_lite import runtime

    if not libraries:
        raise typer.BadParameter("give --libraries")
    typer.echo(str(runtime.folder()))
