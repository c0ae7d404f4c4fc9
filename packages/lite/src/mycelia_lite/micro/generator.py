"""`.ms` files as a folder of C sources with a self-test and builds by Make and CMake."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mycelia_lite import picture
from mycelia_lite.micro import project
from mycelia_lite.micro.emit import Emitter
from mycelia_lite.micro.fit import fitted
from mycelia_lite.micro.program import read
from mycelia_lite.model import Model


@dataclass(frozen=True)
class Report:
    """What the C code of a model takes.

    `arena_bytes`: the memory that its caller gives; `live_bytes`: what lives at once where results may take
    the place of equal inputs; `least_bytes`: what no plan of these steps can go below; `weight_bytes`: of
    constants; `plan`: where each value lies, for `picture.svg` and `show.memory_plan`.
    """

    name: str
    arena_bytes: int
    live_bytes: int
    least_bytes: int
    weight_bytes: int
    plan: picture.MemoryPlan


def generate(
    model: str | os.PathLike | Sequence[str | os.PathLike],
    output_path: str | os.PathLike,
    input_shape: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
    ram_limit: int | None = None,
) -> list[Report]:
    """Write C sources of one `.ms` file, or of several that share kernels and arena, to a folder.

    `input_shape`: sizes of inputs by name, where the file leaves them open. `seed`: of the inputs for the
    self-test. `ram_limit`: bytes that the arena of each model may take; where it would take more, the first
    layers are computed in bands of rows, which takes more products. The folder has `include`, `src`,
    `benchmark`, a Makefile and a CMakeLists.txt; nothing is written before all of it is made.

    Errors: TypeError, ValueError for arguments and for a model that does not fit the limit, RuntimeError for
    files that cannot be loaded, NotImplementedError that names all that has no C code.
    """
    paths = [model] if isinstance(model, (str, os.PathLike)) else list(model)
    if not paths:
        raise ValueError("model must name at least one file")
    if ram_limit is not None and (isinstance(ram_limit, bool) or not isinstance(ram_limit, int)):
        raise TypeError(f"ram_limit must be a number of bytes or None, but is {ram_limit!r}")
    folder = Path(output_path)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"output_path must be a folder, but {folder} is a file")
    parts, reports = [], []
    names = _names([Path(p).stem for p in paths])
    for path, name in zip(paths, names):
        built = _built(path, dict(input_shape or {}))
        program, items, where = fitted(read(built), ram_limit)
        emitter = Emitter(program, items, where, name)
        given = _inputs(built, seed)
        parts.append(project.Part(emitter, given, _answers(built, given)))
        weights = sum(array.nbytes for *_, array in emitter.declared)
        placement = where.placement
        reports.append(
            Report(
                name, placement.arena_bytes, placement.live_bytes, placement.least_bytes, weights, where.plan
            )
        )
    project.write(folder, parts)
    return reports


def _names(stems: list[str]) -> list[str]:
    """Names for C, each another one."""
    found: list[str] = []
    for stem in stems:
        name = re.sub(r"\W", "_", stem, flags=re.ASCII)
        name = name if re.match(r"[A-Za-z]", name) else f"net_{name}"
        found.append(name if name not in found else f"{name}_{len(found)}")
    return found


def _built(path: str | os.PathLike, shapes: dict[str, Sequence[int]]) -> Model:
    model = Model()
    model.build_from_file(path)
    inputs = model.get_inputs()
    if unknown := shapes.keys() - {t.name for t in inputs}:
        raise ValueError(
            f"input_shape names {sorted(unknown)}, but the inputs are {[t.name for t in inputs]}"
        )
    wanted = [list(shapes.get(t.name, t.shape)) for t in inputs]
    for tensor, shape in zip(inputs, wanted):
        if min(shape, default=0) < 0:
            raise ValueError(f"input '{tensor.name}' has open sizes {shape}: input_shape must name it")
    if wanted != [t.shape for t in inputs]:
        model.resize(inputs, wanted)
    return model


def _inputs(model: Model, seed: int) -> list[np.ndarray]:
    chance = np.random.default_rng(seed)
    made = []
    for tensor in model.get_inputs():
        dtype = tensor.dtype.numpy
        if dtype.kind == "f":
            made.append(chance.standard_normal(tensor.shape).astype(dtype))
        elif tensor.quant_params:
            limits = np.iinfo(dtype)
            made.append(chance.integers(limits.min, limits.max, tensor.shape, dtype, endpoint=True))
        else:
            made.append(chance.integers(0, 2, tensor.shape).astype(dtype))
    return made


def _answers(model: Model, inputs: list[np.ndarray]) -> list[np.ndarray]:
    for tensor, x in zip(model.get_inputs(), inputs):
        tensor.set_data_from_numpy(x)
    return [t.get_data_to_numpy().copy() for t in model.predict(model.get_inputs())]
