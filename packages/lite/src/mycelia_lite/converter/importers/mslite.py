"""`.ms` files, MindSpore Lite's own or ours, as they are: tables are read, not turned into core's IR.

Operators that this runtime does not have pass through; borders, fusions and storage work on the tables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mycelia_lite import format as ms_format
from mycelia_lite.converter import comparison, trial
from mycelia_lite.converter.errors import Code, ConversionError, NotAvailable
from mycelia_lite.converter.importers.inputs import given_shape, require_inputs
from mycelia_lite.format import Table


def load(path: str, input_shapes: Mapping[str, Sequence[int]]) -> Table:
    """The tables of a file, weights that lie beside it included, with inputs of these shapes.

    Errors: ConversionError if the file cannot be read, is obfuscated, or an input has no such name or
    dimensions.
    """
    try:
        model = ms_format.read(path).copy()
        for tensor in model.allTensors:
            if tensor.externalData:
                tensor.data = ms_format.data_of(tensor, os.path.dirname(path) or ".")
                tensor.externalData = []
    except (ms_format.FormatError, OSError) as error:
        raise ConversionError(Code.GRAPH_FILE_ERROR, str(error)) from error
    if model.obfuscate:
        raise NotAvailable(f"{path}: an obfuscated model is not converted again")
    count = len(model.allTensors)
    for i in (*model.inputIndex, *model.outputIndex):
        if i >= count:
            raise ConversionError(
                Code.GRAPH_FILE_ERROR, f"{path}: a border is tensor {i}, but there are {count}"
            )
    if input_shapes:
        _reshape(model, path, input_shapes)
    return model


def _reshape(model: Table, path: str, shapes: Mapping[str, Sequence[int]]) -> None:
    """Give inputs other shapes; those of the other tensors are what the runtime finds for them."""
    inputs = {model.allTensors[i].name: model.allTensors[i] for i in model.inputIndex}
    require_inputs(inputs, shapes)
    for name, tensor in inputs.items():
        dims = list(given_shape(name, tensor.dims, shapes))
        if model.fixedBy and any(n not in (-1, wanted) for n, wanted in zip(tensor.dims, dims)):
            raise ConversionError(
                Code.NOT_SUPPORT,
                f"{path}: the input '{name}' has the sizes {list(tensor.dims)}, of which {model.fixedBy} made"
                f" constants: {dims} needs a new conversion of the source",
            )
        tensor.dims = dims
    if any(n < 0 for t in inputs.values() for n in t.dims):
        raise NotAvailable(f"{path}: inputShape must give all sizes of the inputs of a .ms file")
    try:
        found = comparison.every_value(model, trial.random_inputs(trial.loaded(model)))
    except RuntimeError as error:
        raise ConversionError(
            Code.NOT_SUPPORT, f"{path}: the shapes behind inputShape cannot be found: {error}"
        ) from error
    for i, array in found.items():
        model.allTensors[i].dims = list(array.shape)
