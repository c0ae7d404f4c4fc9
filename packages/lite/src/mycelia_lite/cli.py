"""`mycelia lite`: commands of Mycelia Lite."""

from __future__ import annotations

import typer

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
