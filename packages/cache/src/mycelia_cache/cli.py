"""`mycelia cache`: commands of Mycelia Cache."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True, help="A dataset cache server.")


@app.callback()
def main() -> None:
    """A dataset cache server."""


@app.command()
def version() -> None:
    """Print the version of mycelia-cache."""
    import mycelia_cache

    typer.echo(mycelia_cache.__version__)
