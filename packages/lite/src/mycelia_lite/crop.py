"""The static library cut down to the operators and data types of given models.

Operators and kernels are named by two tables alone. Both are compiled anew with what the models need and
linked before the library, so that the linker takes nothing else from it. So are functions by the names of
parts of kernels and features of the runtime that the models do not need. The runtime is taken from a library
beside it that is built without exceptions.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mycelia_lite import runtime

if TYPE_CHECKING:
    from mycelia_lite.model import Model

INSTRUCTION_SETS = ("generic", "avx2", "avx512", "neon")
_OPTIONS = (
    *("-std=c++17", "-Os", "-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"),
    *("-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables"),
)


class CropError(RuntimeError):
    """A library that cannot be cropped; the message has the reason."""


@dataclass(frozen=True)
class Cropped:
    """The library at `path`, and what it has; `bytes` before and after.

    `parts` of kernels and of the runtime are those that programs can do without, such as Winograd's
    convolution, or subgraphs. `not_planned`: instruction sets that this processor lacks: models were not
    run for them, a kernel that their plans alone ask for is missing, and told when a model is loaded.
    """

    path: str
    operators: tuple[str, ...]
    kernels: tuple[str, ...]
    parts: tuple[str, ...]
    instruction_sets: tuple[str, ...]
    bytes: tuple[int, int]
    not_planned: tuple[str, ...] = ()


def crop(
    models: Sequence[str],
    output_file: str,
    package_file: str = "",
    input_shapes: Sequence[Mapping[str, Sequence[int]]] = (),
    instruction_sets: Collection[str] = (),
    compiler: str = "c++",
    exceptions: bool = False,
) -> Cropped:
    """Write a library with what `models` need to `output_file`.

    package_file: the library that is cut; that of this installation. input_shapes: further shapes that the
    models will be given, by name of the input: other shapes may need other kernels, and one that is missing
    is an error when the model is resized. instruction_sets: of `INSTRUCTION_SETS`; empty: all that there are;
    avx512 brings the kernels of avx2 that have no form for AVX-512.
    exceptions: whether the runtime catches what delegates and callbacks throw, and tells a lack of memory for
    a few bytes by a code, rather than ending the program; it is a third larger then.

    Errors: CropError for models that do not run here, a compiler that is missing or fails; OSError.
    """
    package = Path(package_file) if package_file else runtime.folder() / "libmycelia_lite.a"
    if not package.is_file():
        raise CropError(f"the library {package} does not exist")
    if not models:
        raise CropError("no model is given: what they use is what the library keeps")
    for tool in (compiler, "nm", "ar"):
        if shutil.which(tool) is None:
            raise CropError(f"'{tool}' is not installed")
    sets = _instruction_sets(package, instruction_sets)
    operators, kernels, parts, not_planned = _used(models, input_shapes, sets)
    with tempfile.TemporaryDirectory(prefix="mycelia-lite-crop-") as name:
        folder = Path(name)
        _write_tables(folder, operators, kernels)
        (folder / "missing_parts.cc").write_text(_missing_parts(parts, sets))
        names = ("kernel_tables", "operators", "missing_parts", "missing_features")
        defines = [f"-DMYC_WITH_{s.upper()}" for s in sets]
        defines += [f"-DLITE_WITHOUT_{f.upper()}" for f in _features() if f not in parts]
        defines += ["-DLITE_SHARED"] * (len(sets) > 1)
        includes = [f"-I{folder}", f"-I{runtime.folder() / 'include'}"]
        sources = [str(folder / f"{name}.cc") for name in names]
        _run([compiler, *_OPTIONS, *defines, *includes, "-c", *sources], folder)
        # Whatever the C interface leads to; what a program does not call goes when it is linked.
        roots = [f"-Wl,-u,{function}" for function in _interface()]
        objects = [f"{name}.o" for name in names]
        lean = package.resolve().with_name(f"{package.stem}_lean{package.suffix}")
        libraries = [lean] * (lean.is_file() and not exceptions) + [package.resolve()]
        _run([compiler, "-r", "-nostdlib", *roots, *objects, *map(str, libraries), "-o", "lite.o"], folder)
        _run(["ar", "rcsD", "cropped.a", "lite.o"], folder)
        _place(folder / "cropped.a", output_file)
    sizes = package.stat().st_size, os.path.getsize(output_file)
    names = (tuple(sorted(found)) for found in (operators, kernels, parts))
    return Cropped(output_file, *names, sets, sizes, tuple(s for s in sets if s in not_planned))


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise CropError(f"{command[0]} failed: {done.stderr.strip()[-2000:]}")


def _place(made: Path, output_file: str) -> None:
    from mycelia.io.files import atomic_write

    with atomic_write(output_file) as file:
        file.write(made.read_bytes())


# ---- what models use


def _used(
    models: Sequence[str], input_shapes: Sequence[Mapping[str, Sequence[int]]], sets: Collection[str]
) -> tuple[set[str], set[str], set[str], set[str]]:
    """Kinds of operators, kernels as "op dtypes", parts, and the sets that this processor lacks.

    Found by processes that run the models, one for each instruction set: plans depend on it.
    """
    from mycelia_lite import obfuscate
    from mycelia_lite.format import FormatError, read

    operators = set()
    for model in models:
        try:
            operators |= obfuscate.operators(read(model))
        except FormatError as error:
            error.subject = error.subject or os.fspath(model)
            raise CropError(str(error)) from error
    code = "import sys, mycelia_lite.crop as crop; crop.probe(eval(sys.argv[1]), eval(sys.argv[2]))"
    shapes = [{name: list(sizes) for name, sizes in given.items()} for given in input_shapes]
    paths = [os.path.abspath(m) for m in models]
    lines, names, lacking = set(), list(sets), set()
    while names:
        isa = names.pop()
        done = subprocess.run(
            [sys.executable, "-c", code, repr(paths), repr(shapes)],
            capture_output=True,
            text=True,
            env=os.environ | {"MYCELIA_ISA": isa},
        )
        if done.returncode and isa and "this processor runs none of the library's kernels" in done.stderr:
            lacking.add(isa)
            names += [""] * (not names and not lines)  # another processor's library: as this one plans
            continue
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1] if done.stderr else "the models do not run"
            raise CropError(reason)
        lines |= set(filter(None, done.stdout.splitlines()))
    parts = {line.removeprefix("part ") for line in lines if line.startswith("part ")}
    return operators, {line for line in lines if not line.startswith("part ")}, parts, lacking


def probe(models: Sequence[str], input_shapes: Sequence[Mapping[str, Sequence[int]]]) -> None:
    """Run each model for its own shapes, open sizes as 1, and for the given ones; print the kernels.

    Inputs are the same whenever a model is cropped: floats as `draw` has them; where there are integers and
    truths, these as it has them, then all 0, then all 1: both may lead to other branches, and of indices one
    may be out of range. One of these must run. A model need not run with sizes of 1 if there are others for
    it.  Errors: RuntimeError.
    """
    from mycelia_lite.model import Model

    for path in models:
        model = Model()
        model.build_from_file(path)
        described = {t.name: t.shape for t in model.get_inputs()}
        is_open = any(n < 0 for sizes in described.values() for n in sizes)
        others = [given for given in input_shapes if not described.keys().isdisjoint(given)]
        for given in ({}, *others):
            model = Model()
            model.build_from_file(path)
            inputs = model.get_inputs()
            shapes = [given.get(t.name, [1 if n < 0 else n for n in t.shape]) for t in inputs]
            try:
                _run_once_at_least(model, shapes, [t.dtype.numpy for t in inputs])
            except RuntimeError as error:
                if given or not is_open:
                    raise RuntimeError(f"{path}: {error}") from error
                if not others:
                    raise RuntimeError(
                        f"{path} does not run with open sizes of 1 (give inputShape): {error}"
                    ) from error
    print(runtime.library().MSKernelsInUse().decode(), end="")


def _run_once_at_least(model: Model, shapes: Sequence[Sequence[int]], dtypes: Sequence[np.dtype]) -> None:
    from mycelia_lite.converter.trial import answers, draw

    drawn = draw(shapes, dtypes)
    tries = [drawn]
    if any(array.dtype.kind != "f" for array in drawn):
        tries += [[a if a.dtype.kind == "f" else np.full_like(a, value) for a in drawn] for value in (0, 1)]
    errors = []
    for arrays in tries:
        try:
            answers(model, arrays)
        except RuntimeError as error:
            errors.append(error)
    if len(errors) == len(tries):
        raise errors[0]


# ---- the tables


def _tables() -> Path:
    return runtime.folder() / "tables"


def _interface() -> list[str]:
    """The functions of the C interface."""
    header = (runtime.folder() / "include" / "mycelia" / "lite" / "c_api.h").read_text()
    return sorted(set(re.findall(r"(?m)^MS_API [^;(]*?\b(MS\w+)\(", header)))


def _write_tables(folder: Path, operators: Collection[str], kernels: Collection[str]) -> None:
    shutil.copytree(_tables(), folder, dirs_exist_ok=True)
    kept = [
        line
        for line in (_tables() / "operators.def").read_text().splitlines(keepends=True)
        if (found := re.match(r"LITE_OPERATOR\((\w+)\)", line)) and found[1] in operators
    ]
    (folder / "operators.def").write_text("".join(kept))
    for table in ("kernels.def", "own/own.def"):
        kept = [
            line
            for line in (_tables() / table).read_text().splitlines(keepends=True)
            if (found := re.match(r'LITE_\w+\((\w+), \w+, "([^"]*)"\)', line))
            and f"{found[1]} {found[2]}" in kernels
        ]
        (folder / table).write_text("".join(kept))


def _features() -> list[str]:
    """Parts of the runtime that programs can do without."""
    return re.findall(r"(?m)^LITE_FEATURE\((\w+)\)", (_tables() / "features.def").read_text())


def _missing_parts(parts: Collection[str], sets: Collection[str]) -> str:
    """A source with functions by the names of those parts of kernels that are left out, or another set's."""
    table = (_tables() / "kernel_parts.def").read_text()
    fallback = {"avx2"} if "avx512" in sets else set()  # whose kernels stand in the table of avx512
    lines = ['#include "mycelia/abi.h"']

    def left_out(function: str, name: str) -> str:
        return f'extern "C" int32_t {_part(function, name)}() {{ return MYC_E_UNSUPPORTED; }}'

    for part, function in re.findall(r"(?m)^LITE_PART\((\w+), (\w+)\)", table):
        for name in sorted({"generic", *sets, *fallback}):  # plain code is generic
            if part not in parts:
                lines.append(left_out(function, name))
    for function, name, other in re.findall(r"(?m)^LITE_PART_OF\((\w+), (\w+), (\w+)\)", table):
        if name in sets and other in sets:
            own, its = _part(function, name), _part(function, other)
            lines.append(f'extern "C" int32_t {its}(void*);')
            lines.append(f'extern "C" int32_t {own}(void* found) {{ return {its}(found); }}')
        elif other == "none" and len(sets) > 1:
            lines.append(left_out(function, name))
    return "\n".join(dict.fromkeys(lines)) + "\n"


def _part(function: str, instruction_set: str) -> str:
    """The symbol of a part of kernels."""
    return f"myc_cpu_{function}_part{_suffix(instruction_set)}"


def _suffix(instruction_set: str) -> str:
    """What names of kernels for it end with."""
    return "" if instruction_set == "generic" else f"_{instruction_set}"


def _instruction_sets(package: Path, wanted: Collection[str]) -> tuple[str, ...]:
    """Those for which the library has kernels, of the ones that are wanted."""
    listing = subprocess.run(["nm", "--defined-only", package], capture_output=True, text=True).stdout
    names = set(re.findall(r"(?m) T (myc_cpu_linear_f32\w*)$", listing))
    there = [s for s in INSTRUCTION_SETS if f"myc_cpu_linear_f32{_suffix(s)}" in names]
    for name in wanted:
        if name not in there:
            raise CropError(f"instruction set {name}: the library has {', '.join(there)}")
    return tuple(s for s in there if not wanted or s in wanted)
