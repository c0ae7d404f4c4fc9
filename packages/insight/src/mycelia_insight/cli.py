"""`mycelia insight`: commands of Mycelia Insight."""

from __future__ import annotations

from typing import Annotated

import typer

from mycelia_insight.commands.alerts import alerts
from mycelia_insight.commands.check import check
from mycelia_insight.commands.export import export
from mycelia_insight.commands.html import html
from mycelia_insight.commands.import_runs import import_runs
from mycelia_insight.commands.parse_summary import parse_summary
from mycelia_insight.commands.service import start, status, stop
from mycelia_insight.commands.which import which

app = typer.Typer(
    no_args_is_help=False,
    rich_markup_mode=None,  # plain help: no word in brackets is taken for markup
    help="Dashboards of training runs.",
    add_completion=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        import mycelia_insight

        typer.echo(f"mycelia-insight ({mycelia_insight.__version__})")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Dashboards of training runs."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("help")
def show_help(context: typer.Context) -> None:
    """Print this help."""
    typer.echo(context.parent.get_help())


@app.command()
def version() -> None:
    """Print the version of mycelia-insight."""
    import mycelia_insight

    typer.echo(mycelia_insight.__version__)


app.command()(start)
app.command()(stop)
app.command()(status)
app.command()(check)
app.command()(alerts)
app.command()(which)
app.command()(export)
app.command()(html)
app.command("import")(import_runs)
app.command("parse_summary")(parse_summary)
