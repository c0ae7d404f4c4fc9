"""From a model file of another framework to a `.ms` file."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mycelia_lite import format as ms_format
from mycelia_lite.converter import fusions
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers import IMPORTERS
from mycelia_lite.converter.rules import RULES
from mycelia_lite.converter.writer import Writer
from mycelia_lite.enums import FmkType


@dataclass(frozen=True)
class Report:
    """What a conversion did: the file, and how often each fusion fired."""

    path: str
    fusions: Mapping[str, int]


def convert(
    framework: FmkType,
    model_file: str,
    output_file: str,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    without_fusions: Collection[str] = (),
) -> Report:
    """Write the model of `model_file` to `output_file`, whose name gets the suffix `.ms`.

    Errors: ConversionError with the code and the reason; then nothing is written.
    """
    if framework not in IMPORTERS:
        there = ", ".join(f.name for f in IMPORTERS)
        raise ConversionError(
            Code.NOT_SUPPORT,
            f"models of {framework.name} cannot be imported yet: there is an importer for {there}",
        )
    if not os.path.isfile(model_file):
        raise ConversionError(Code.INPUT_PARAM_INVALID, f"the model file {model_file} does not exist")
    path = output_file if output_file.endswith(".ms") else output_file + ".ms"
    if os.path.isdir(path) or os.path.isdir(output_file):
        raise ConversionError(Code.INPUT_PARAM_INVALID, f"the output file {output_file} is a folder")
    for name in without_fusions:
        if name not in fusions.FUSIONS:
            raise ConversionError(
                Code.INPUT_PARAM_INVALID, f"no fusion is called '{name}': there are {sorted(fusions.FUSIONS)}"
            )
    source = IMPORTERS[framework](model_file, input_shapes or {})
    model = Writer(source).run(RULES)
    fired = fusions.run(model, without_fusions)
    ms_format.write(path, model)
    return Report(path, fired)


def parse_shapes(text: str) -> dict[str, list[int]]:
    """``"a:1,3,8,8;b:1,4"`` as shapes by name; a name may itself hold a colon.

    Errors: ConversionError for what is no such text.
    """
    shapes = {}
    for part in filter(None, text.split(";")):
        name, colon, sizes = part.rpartition(":")
        try:
            shapes[name] = [int(n) for n in sizes.split(",")]
        except ValueError:
            colon = ""
        if not colon or any(n == 0 or n < -1 for n in shapes[name]):
            raise ConversionError(
                Code.INPUT_PARAM_INVALID,
                f"inputShape must be like 'name:1,3,8,8;other:1,4', but has {part!r}",
            )
    return shapes
