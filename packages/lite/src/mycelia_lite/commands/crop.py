"""`mycelia-lite crop`: options of MindSpore Lite's `cropper`, in both spellings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def crop(
    modelFile: Annotated[
        str, typer.Option("--model-file", "--modelFile", help="The .ms files that will ship, with commas.")
    ] = "",
    modelFolderPath: Annotated[
        str, typer.Option("--model-folder-path", "--modelFolderPath", help="A folder of them.")
    ] = "",
    outputFile: Annotated[
        str, typer.Option("--output-file", "--outputFile", help="Where the library goes.")
    ] = "libmycelia_lite.a",
    packageFile: Annotated[
        str,
        typer.Option("--package-file", "--packageFile", help="The library; by default this installation's."),
    ] = "",
    inputShape: Annotated[
        list[str] | None,
        typer.Option("--input-shape", "--inputShape", help="Further shapes that inputs will have."),
    ] = None,
    instructionSets: Annotated[
        str,
        typer.Option(
            "--instruction-sets", "--instructionSets", help="Of generic, avx2, avx512, neon; else all."
        ),
    ] = "",
    compiler: Annotated[str, typer.Option(help="The C++ compiler.")] = "c++",
    exceptions: Annotated[
        bool, typer.Option("--exceptions", help="Keep what catches exceptions, of delegates for example.")
    ] = False,
) -> None:
    """Cut the static library down to the operators and data types of given models.

    Programs link it with -Wl,--gc-sections.
    """
    from mycelia_lite.converter import ConversionError, parse_shapes
    from mycelia_lite.crop import CropError
    from mycelia_lite.crop import crop as run

    models = [name for name in modelFile.split(",") if name]
    if modelFolderPath:
        models += sorted(map(str, Path(modelFolderPath).glob("*.ms")))
    try:
        shapes = [parse_shapes(text) for text in inputShape or ()]
        sets = [name for name in instructionSets.split(",") if name]
        made = run(models, outputFile, packageFile, shapes, sets, compiler, exceptions)
    except (CropError, ConversionError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    typer.echo(
        f"{made.path}: {len(made.operators)} operators, {len(made.kernels)} kernels for "
        f"{', '.join(made.instruction_sets)}; {made.bytes[0]:,} bytes became {made.bytes[1]:,}"
    )
    if made.not_planned:
        typer.echo(
            f"{', '.join(made.not_planned)}: this processor does not run it, so that its kernels are "
            "those that other plans ask for; crop where it runs, or try the program there"
        )
