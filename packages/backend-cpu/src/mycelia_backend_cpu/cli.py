"""`mycelia backend-cpu`: commands of the CPU backend."""

from __future__ import annotations

import typer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: no word in brackets is taken for markup
    help="Kernels that run on the host's processor.",
)


@app.callback()
def main() -> None:
    """Kernels that run on the host's processor."""


@app.command()
def version() -> None:
    """Print the version of mycelia-backend-cpu."""
    import mycelia_backend_cpu

    typer.echo(mycelia_backend_cpu.__version__)
