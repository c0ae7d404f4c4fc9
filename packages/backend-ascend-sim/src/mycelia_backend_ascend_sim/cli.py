"""`mycelia backend-ascend-sim`: commands of the Ascend simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: no word in brackets is taken for markup
    help="Ascend's dtype and format rules, simulated on the host.",
)


@app.callback()
def main() -> None:
    """Ascend's dtype and format rules, simulated on the host."""


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def profile(
    ctx: typer.Context,
    script: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="A script; its own arguments follow.")
    ],
    chip: Annotated[str, typer.Option(help="A chip of which there is a table.")] = "",
    out: Annotated[
        Path | None, typer.Option(help="Write aicore_intermediate_* files below this folder.")
    ] = None,
    rows: Annotated[int, typer.Option(min=0, help="How many rows to show, the longest first.")] = 30,
) -> None:
    """Run a script on the simulator and tell what its tasks would take on the chip, by a model."""
    import runpy
    import sys

    from mycelia import config
    from mycelia_backend_ascend_sim.profile import collect

    before = sys.argv
    sys.argv = [str(script), *ctx.args]
    try:
        with config.context(device_target="Ascend"), collect(chip or None) as found:
            runpy.run_path(str(script), run_name="__main__")
    except ValueError as error:
        if chip and chip in str(error):
            raise typer.BadParameter(str(error), param_hint="--chip") from None
        raise
    finally:
        sys.argv = before
    typer.echo(found.table(rows))
    if out is not None:
        for path in found.write(out):
            typer.echo(f"wrote {path}")


@app.command()
def version() -> None:
    """Print the version of mycelia-backend-ascend-sim."""
    import mycelia_backend_ascend_sim

    typer.echo(mycelia_backend_ascend_sim.__version__)
