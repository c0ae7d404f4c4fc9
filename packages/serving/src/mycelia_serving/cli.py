"""`mycelia serving`: commands of Mycelia Serving."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True, help="A model server.")


@app.callback()
def main() -> None:
    """A model server."""


@app.command()
def version() -> None:
    """Print the version of mycelia-serving."""
    import mycelia_serving

    typer.echo(mycelia_serving.__version__)
