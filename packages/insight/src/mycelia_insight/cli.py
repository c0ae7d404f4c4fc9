"""`mycelia insight`: commands of Mycelia Insight."""

from __future__ import annotations

import typer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: no word in brackets is taken for markup
    help="Dashboards and debugger.",
)


@app.callback()
def main() -> None:
    """Dashboards and debugger."""


@app.command()
def version() -> None:
    """Print the version of mycelia-insight."""
    import mycelia_insight

    typer.echo(mycelia_insight.__version__)
