"""What the nodes of a pipeline share: checks of arguments, columns as arrays and by name, errors of users."""

from __future__ import annotations

import os
import traceback

import numpy as np

from mycelia.dataset.checks import INT32_MAX, between, integer
from mycelia.dataset.checks import kind as of_type
from mycelia.engine.base import errors, ignored

__all__ = ["INT32_MAX", "integer", "of_type"]  # checks of nodes begin here too

INT64_MAX = 2**63 - 1
FILE = ", file "  # what separates a row from its file in its origin
_REPORT = "\nDataset Pipeline Error Message:"


def names(owner: str, name: str, value, *, empty: bool = False) -> list[str]:
    """A name or a list of different names, as a list."""
    of_type(owner, name, value, str, list)
    items = [value] if isinstance(value, str) else list(value)
    if not items and not empty:
        raise errors.value_error(owner, f"{name} should not be empty.")
    for i, item in enumerate(items):
        of_type(owner, f"{name}[{i}]", item, str)
        if not item:
            raise errors.value_error(owner, f"{name}[{i}] should not be empty.")
    if len(set(items)) != len(items):
        raise errors.value_error(
            owner, f"Every column name should not be same with others in {name}, but they are {items}"
        )
    return items


def workers(owner: str, value) -> None:
    """Check `num_parallel_workers`: None or 1 .. the number of cores."""
    if value is not None:
        _count(owner, "num_parallel_workers", value, 1, os.cpu_count() or 1)


def samples(owner: str, value) -> int | None:
    """Check `num_samples`: None or an int of 0 or more."""
    return value if value is None else _count(owner, "num_samples", value, 0, INT64_MAX, "(INT64_MAX)")


def _count(owner: str, name: str, value, low: int, high: int, known_as: str = "") -> int:
    if not low <= of_type(owner, name, value, int) <= high:
        raise errors.value_error(
            owner, f"{name} exceeds the boundary between {low} and {high}{known_as}! It is {value}."
        )
    return value


def shards(owner: str, num_shards, shard_id, conflict=errors.runtime_error) -> None:
    """Check the two numbers of a share: `conflict` makes the error for one of them alone."""
    if num_shards is not None:
        integer(owner, "num_shards", num_shards, 1)
    if shard_id is not None:
        of_type(owner, "shard_id", shard_id, int)
    if num_shards is None and shard_id is not None:
        raise conflict(owner, "shard_id is specified but num_shards is not.")
    if num_shards is not None and shard_id is None:
        raise conflict(owner, "num_shards is specified and currently requires shard_id as well.")
    if num_shards is not None:
        between(owner, "shard_id", shard_id, 0, num_shards - 1)


def keywords(owner: str, given: dict, known: dict) -> None:
    """Check rarer keywords: TypeError for one that `known` (name -> types) has not, or of another type."""
    for name, value in given.items():
        if name not in known:
            raise errors.type_error(owner, f"got an unexpected keyword argument {name!r}")
        if value is not None and known[name] is not None:
            of_type(owner, name, value, *known[name])
        if name == "max_rowsize":
            row_size(owner, value)
        if name == "offload" and value:
            ignored.tell(owner, name, value, "operations run on the host")


def row_size(owner: str, value) -> None:
    """Check `max_rowsize`: None, or MB of a row (-1: no limit), or a list of them for each column's way."""
    of_type(owner, "max_rowsize", value, int, list, type(None))
    for size in value if isinstance(value, list) else [value]:
        if size is not None:
            integer(owner, "max_rowsize", size, -1)


PARALLEL = {"python_multiprocessing": (bool,), "max_rowsize": (int, list), "offload": (bool,)}


def column(value, owner: str):
    """A column of a row: an array, or a dict whose values are arrays or lists of arrays."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value
    if isinstance(value, dict):
        return {k: _nested(v, owner) for k, v in value.items()}
    if hasattr(value, "asnumpy"):
        return value.asnumpy()
    if value is None:
        raise errors.runtime_error(owner, "a column must be a number, array or text, but got None")
    array = np.asarray(value)
    if array.dtype == object:
        raise errors.runtime_error(
            owner, f"a column must be a number, array or text, but got {type(value).__name__}"
        )
    return array


def _nested(value, owner: str):
    if isinstance(value, (list, tuple)):
        return type(value)(_nested(v, owner) for v in value)
    return column(value, owner)


def places(owner: str, wanted: list[str], present: list[str]) -> list[int]:
    """Where the wanted columns are. RuntimeError for one that is not there: it is known only when reading."""
    missing = [n for n in wanted if n not in present]
    if missing:
        raise errors.runtime_error(
            owner,
            f"Invalid column name, column name: '{missing[0]}' does not exist among the columns {present}",
        )
    return [present.index(n) for n in wanted]


def failed(owner: str, what: str, cause: BaseException) -> errors.MyceliaRuntimeError:
    """The error for a user's function that raised: RuntimeError with its traceback."""
    text = "".join(traceback.format_exception(cause)).rstrip()
    return errors.runtime_error(
        owner,
        f"Exception thrown from user defined Python function in dataset: {what} raised "
        f"{type(cause).__name__}: {cause}\nPython Call Stack:\n{text}",
    )


def operation_failed(operation, own: bool, cause: Exception) -> errors.MyceliaRuntimeError:
    """The error for an operation of `map` that raised: it names the operation, PyFunc for a user's own."""
    name = getattr(operation, "__name__", type(operation).__name__)
    head = f"map operation: [{name if own else 'PyFunc'}] failed."
    if isinstance(cause, errors.MyceliaRuntimeError):
        if "map operation: [" not in cause.message:  # else an operation of several steps has named its step
            cause.message = f"{head} {cause.message}"
        return cause
    error = failed("Dataset.map", f"the operation {name}", cause)
    error.message += f"{_REPORT} {head}"
    return error


def at_row(error: errors.MyceliaError, row: str, origin: str) -> None:
    """Tell of an error which row it is about: "row 3 of epoch 1", and where that one comes from."""
    where, _, file = origin.partition(FILE)
    if _REPORT not in error.message:
        error.message += _REPORT
    if file:
        error.message += f" The corresponding data file is: {file}."
    error.message += f"\nin {row}" + (f": {where}" if where else "")


def batches(node, epoch: int, size: int, drop_remainder: bool):
    """The batches of a node that can make them faster than row by row, or None."""
    make = getattr(node, "batches", None)
    return None if make is None or node._run is None else make(epoch, size, drop_remainder)
