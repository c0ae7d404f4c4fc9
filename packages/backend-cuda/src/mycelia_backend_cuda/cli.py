"""`mycelia backend-cuda`: commands of the CUDA backend."""

from __future__ import annotations

import typer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: no word in brackets is taken for markup
    help="Kernels that run on NVIDIA GPUs.",
)


@app.callback()
def main() -> None:
    """Kernels that run on NVIDIA GPUs."""


@app.command()
def version() -> None:
    """Print the version of mycelia-backend-cuda."""
    import mycelia_backend_cuda

    typer.echo(mycelia_backend_cuda.__version__)
