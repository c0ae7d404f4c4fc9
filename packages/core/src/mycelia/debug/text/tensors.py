"""Commands about tensors: statistics, slices, other iterations, files."""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path

import numpy as np

from mycelia.debug.analyzer import DebuggerTensor
from mycelia.debug.slices import indices
from mycelia.debug.statistics import Statistics, statistics
from mycelia.debug.text.commands import command
from mycelia.debug.text.place import Place
from mycelia.debug.text.screen import Screen, number, short
from mycelia.engine.base import errors

_HEADS = ("dtype", "shape", "min", "max", "mean", "l2norm", "nan", "inf", "-inf", "zeros")
_MOST_ELEMENTS = 1000  # of a slice
_MOST_ROWS = 10  # elements that differ


def name_of(tensor: DebuggerTensor) -> str:
    """``NODE:SLOT``, or ``NODE:input:SLOT``, short."""
    return f"{short(tensor.node.name)}:{'input:' if tensor.io == 'input' else ''}{tensor.slot}"


def _cells(tensor: DebuggerTensor) -> tuple[tuple[object, ...], bool]:
    """Of a table, and whether all is finite."""
    value = tensor.value()
    found = tensor.statistics()
    dtype, shape = ("", "") if value is None else (str(value.dtype), str(list(value.shape)))
    if found is None:
        return (dtype, shape, *[""] * 8), True
    return (dtype, shape, *_numbers(found)), found.is_finite


def _numbers(found: Statistics) -> tuple[object, ...]:
    ends = tuple(map(number, (found.min, found.max, found.mean, found.l2norm)))
    return (*ends, found.nan, found.positive_inf, found.negative_inf, found.zero)


@command("tensors", "NODE", takes="node", also=("t",), least=1, most=1)
def _tensors(place: Place, screen: Screen, words: list[str]) -> None:
    """What a node read and made in this iteration, with statistics of the finite elements."""
    node = place.node(words[0])
    steps = [place.iteration]
    found = [*node.get_input_tensors(iterations=steps), *node.get_output_tensors(iterations=steps)]
    screen.line(f"{node.name}  {node.kind}", "bold")
    if not found:
        screen.line(f"  There is nothing of it in {place.when()}.")
        return
    told = [_cells(tensor) for tensor in found]
    rows = [(f"{t.io}:{t.slot}", *cells) for t, (cells, _) in zip(found, told, strict=True)]
    screen.table(("", *_HEADS), rows, [i for i, (_, is_finite) in enumerate(told) if not is_finite])


@command("show", "TENSOR [SLICE]", takes="tensor", also=("p",), least=1, most=2)
def _show(place: Place, screen: Screen, words: list[str]) -> None:
    """The elements of a tensor, or of a slice such as [0,:,2:5]; at most 1000 of them."""
    tensor = place.tensor(words[0])
    value = place.array(tensor)
    part = np.asarray(value[indices(words[1], value.shape)] if len(words) > 1 else value)
    screen.line(
        f"{name_of(tensor)}  {value.dtype} {list(value.shape)}  {place.when(tensor.iteration)}", "bold"
    )
    with np.printoptions(precision=6, suppress=False, threshold=_MOST_ELEMENTS, linewidth=110):
        screen.line(str(part))


@command("history", "TENSOR", takes="tensor", least=1, most=1)
def _history(place: Place, screen: Screen, words: list[str]) -> None:
    """Statistics of a tensor in each iteration that has it."""
    here = place.tensor(words[0])
    node = here.node
    all_ = (node.get_input_tensors if here.io == "input" else node.get_output_tensors)([here.slot])
    told = [_cells(tensor) for tensor in all_]
    screen.line(name_of(here), "bold")
    rows = [(t.iteration, *cells) for t, (cells, _) in zip(all_, told, strict=True)]
    screen.table(
        (place.source.unit, *_HEADS), rows, [i for i, (_, is_finite) in enumerate(told) if not is_finite]
    )


@command("compare", "TENSOR [ITERATION] [tolerance=SHARE]", takes="tensor", least=1, most=3)
def _compare(place: Place, screen: Screen, words: list[str]) -> None:
    """A tensor beside itself in another iteration, the one before if none is said: how many elements differ
    by more than tolerance times the other's absolute, and the first of them.
    """
    tolerance, other = 0.0, None
    for word in words[1:]:
        if word.startswith("tolerance="):
            tolerance = _tolerance(word[10:])
        elif word.isdecimal():
            other = int(word)
        else:
            raise errors.value_error("compare", f"ITERATION must be a whole number, but is {word!r}")
    tensor = place.tensor(words[0])
    if other is None:
        other = _before(place, tensor)
    a, b = place.array(tensor), place.array(place.tensor(words[0], other))
    if a.shape != b.shape:
        raise errors.value_error(
            "compare", f"the shape is {list(a.shape)} now and {list(b.shape)} in {place.when(other)}"
        )
    x, y = (v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (a, b))
    with np.errstate(invalid="ignore"):
        apart = x - y
        alike = (np.abs(apart) <= tolerance * np.abs(y)) | (x == y) | (np.isnan(x) & np.isnan(y))
    places = np.argwhere(~alike)
    screen.line(
        f"{name_of(tensor)}: {len(places)} of {a.size} elements of {place.when(tensor.iteration)} differ "
        f"from {place.when(other)}", "bold"
    )  # fmt: skip
    if len(places):
        numbers = statistics(np.abs(apart[~alike]))
        screen.line(f"  difference: greatest {number(numbers.max)}, mean {number(numbers.mean)}")
        rows = [
            (list(map(int, at)), *(number(v[tuple(at)]) for v in (a, b, apart))) for at in places[:_MOST_ROWS]
        ]
        screen.table(("index", place.when(tensor.iteration), place.when(other), "difference"), rows)
        if len(places) > _MOST_ROWS:
            screen.line(f"  ... and {len(places) - _MOST_ROWS} more")


def _before(place: Place, tensor: DebuggerTensor) -> int:
    """The iteration before this one in which the graph of a tensor ran.  Errors: ValueError if none did."""
    for one in reversed(place.iterations):
        if one < place.iteration and tensor.node.graph in place.source.graphs(place.rank, one):
            return one
    raise errors.value_error(
        "compare", f"there is no {place.source.unit} before this one that ran its graph", hint="name another"
    )


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < np.inf:
        raise errors.value_error("compare", f"tolerance must be a number from 0 on, but is {text!r}")
    return value


@command("export", "NODE | TENSOR FILE.npy or FOLDER", takes="tensor", least=2, most=2)
def _export(place: Place, screen: Screen, words: list[str]) -> None:
    """Write a tensor into a file, or all that a node read and made into a folder, as .npy."""
    target = Path(words[1]).expanduser()
    if target.suffix == ".npy":
        tensor = place.tensor(words[0])
        save(target, npy(place.array(tensor)))
        screen.line(f"{target}: {name_of(tensor)}, {place.when(tensor.iteration)}")
        return
    node = place.node(words[0])
    steps = [place.iteration]
    found = [*node.get_input_tensors(iterations=steps), *node.get_output_tensors(iterations=steps)]
    arrays = [(tensor, place.array(tensor)) for tensor in found]
    if not arrays:
        raise errors.value_error("export", f"there is nothing of {node.name} in {place.when()}")
    for tensor, array in arrays:
        path = target / f"{tensor.io}_{tensor.slot}.npy"
        save(path, npy(array))
        screen.line(f"{path}: {array.dtype} {list(array.shape)}")


def npy(array: np.ndarray) -> bytes:
    """The array as a file has it."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def save(path: Path, content: bytes) -> None:
    """The file is whole or not there.  Errors: ValueError if it cannot be written."""
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(suffix=path.suffix, dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError as cause:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise errors.value_error("export", f"{path} cannot be written: {cause}") from None
