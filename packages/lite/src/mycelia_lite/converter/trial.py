"""Running a model that was made, before it is written."""

from __future__ import annotations

from collections.abc import Mapping

from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.format import Table
from mycelia_lite.running import answers, draw, loaded, random_inputs

__all__ = ["answers", "draw", "loaded", "random_inputs", "run"]


def run(model: Table) -> Mapping[str, tuple[int, ...]]:
    """Load the model, run it on random inputs; the shapes of its outputs by name.

    Errors: ConversionError with the runtime's reason.
    """
    try:
        made = loaded(model)
        found = answers(made, random_inputs(made))
    except RuntimeError as error:
        raise ConversionError(Code.ERROR, f"infer: the result does not run: {error}") from error
    return {tensor.name: array.shape for tensor, array in zip(made.get_outputs(), found)}
