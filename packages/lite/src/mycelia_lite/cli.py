"""`mycelia lite`: commands of Mycelia Lite."""

from __future__ import annotations

import sys
from typing import Annotated

if sys.version_info < (3, 11):  # noqa: UP036 - only the runtime is installed
    raise SystemExit("mycelia-lite: the commands need Python 3.11 or newer; this one only runs models")

import typer

from mycelia_lite.commands.benchmark import benchmark
from mycelia_lite.commands.convert import ConvertCommand, convert
from mycelia_lite.commands.crop import crop
from mycelia_lite.commands.inspect import inspect
from mycelia_lite.commands.micro import micro
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


app.command()(inspect)
app.command(cls=ConvertCommand)(convert)
app.command()(crop)
app.command()(benchmark)
app.command()(micro)
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
