"""`mycelia backend-ascend-sim`: commands of the Ascend simulator."""

from __future__ import annotations

import typer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: no word in brackets is taken for markup
    help="Ascend's dtype and format rules, simulated on the host.",
)


@app.callback()
def main() -> None:
    """Ascend's dtype and format rules, simulated on the host."""


@app.command()
def version() -> None:
    """Print the version of mycelia-backend-ascend-sim."""
    import mycelia_backend_ascend_sim

    typer.echo(mycelia_backend_ascend_sim.__version__)
