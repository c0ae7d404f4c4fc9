"""`mycelia-lite obfuscate`: options of MindSpore Lite's `msobfuscator`, in both spellings."""

from __future__ import annotations

from typing import Annotated

import typer


def obfuscate(
    modelFile: Annotated[str, typer.Option("--model-file", "--modelFile", help="A .ms file.")],
    outputFile: Annotated[str, typer.Option("--output-file", "--outputFile", help="Where the result goes.")],
    obfDegree: Annotated[
        float, typer.Option("--obf-degree", "--obfDegree", help="Share of operators that are hidden, to 1.")
    ] = 0.2,
) -> None:
    """Hide the structure of a model: names, types of operators, and false nodes. The runtime undoes it."""
    from mycelia import errors
    from mycelia_lite import format
    from mycelia_lite.obfuscate import obfuscate as run

    try:
        format.write(outputFile, run(format.read(modelFile), obfDegree))
    except (errors.MyceliaError, ValueError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
