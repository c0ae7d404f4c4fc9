"""Models that were made as tables, run on arrays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

import numpy as np

from mycelia_lite import format as ms_format
from mycelia_lite.format import Table
from mycelia_lite.model import Model


def draw(shapes: Sequence[Sequence[int]], dtypes: Sequence[np.dtype], seed: int = 0) -> list[np.ndarray]:
    """Random arrays, the same for the same seed: of floats normal, of other types 0 and 1."""
    rng = np.random.default_rng(seed)
    arrays = []
    for shape, dtype in zip(shapes, dtypes, strict=True):
        drawn = rng.normal(size=shape) if dtype.kind == "f" else rng.integers(0, 2, shape)
        arrays.append(np.asarray(drawn).astype(dtype))
    return arrays


def random_inputs(model: Model) -> list[np.ndarray]:
    """Arrays for the inputs of a model; open sizes are 1."""
    inputs = model.get_inputs()
    return draw([[1 if n < 0 else n for n in t.shape] for t in inputs], [t.dtype.numpy for t in inputs])


def answers(model: Model, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a model for these inputs. Errors: RuntimeError of the runtime."""
    inputs = model.get_inputs()
    if [t.shape for t in inputs] != [list(a.shape) for a in arrays]:
        model.resize(inputs, [a.shape for a in arrays])
    for tensor, array in zip(inputs, arrays):
        tensor.set_data_from_numpy(array)
    return [t.get_data_to_numpy() for t in model.predict(inputs)]


def loaded(model: Table) -> Model:
    """The model in the runtime. Errors: RuntimeError if it cannot be loaded."""
    with tempfile.TemporaryDirectory(prefix="mycelia-lite-") as folder:
        path = os.path.join(folder, "trial.ms")
        ms_format.write(path, model)
        made = Model()
        made.build_from_file(path)  # the file stays mapped when its name is gone
    return made
