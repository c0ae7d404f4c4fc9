"""What the nodes of a pipeline share: checks of arguments, columns as arrays and by name, errors of users."""

from __future__ import annotations

import os
import traceback

import numpy as np

from mycelia import errors
from mycelia.dataset.checks import INT32_MAX, integer
from mycelia.dataset.checks import kind as of_type

__all__ = ["INT32_MAX", "integer", "of_type"]  # checks of nodes begin here too


def names(owner: str, name: str, value, *, empty: bool = False) -> list[str]:
    """A name or a list of different names, as a list."""
    of_type(owner, name, value, str, list)
    items = [value] if isinstance(value, str) else list(value)
    if not items and not empty:
        raise errors.value_error(owner, f"{name} must not be empty")
    for item in items:
        of_type(owner, f"every element of {name}", item, str)
        if not item:
            raise errors.value_error(owner, f"{name} must not hold an empty name")
    if len(set(items)) != len(items):
        raise errors.value_error(owner, f"{name} must be different names, but got {items}")
    return items


def workers(owner: str, value) -> None:
    """Check `num_parallel_workers`: None or 1 .. the number of cores."""
    if value is not None:
        integer(owner, "num_parallel_workers", value, 1, os.cpu_count() or 1)


def keywords(owner: str, given: dict, known: dict) -> None:
    """Check rarer keywords: TypeError for one that `known` (name -> types) has not, or of another type."""
    for name, value in given.items():
        if name not in known:
            raise errors.type_error(owner, f"got an unexpected keyword argument {name!r}")
        if value is not None and known[name] is not None:
            of_type(owner, name, value, *known[name])
        if name == "max_rowsize":
            row_size(owner, value)


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
        raise errors.runtime_error(owner, f"columns {missing} are not among the columns {present}")
    return [present.index(n) for n in wanted]


def failed(owner: str, what: str, cause: BaseException) -> errors.MyceliaRuntimeError:
    """The error for a user's function that raised: RuntimeError with its traceback."""
    text = "".join(traceback.format_exception(cause)).rstrip()
    return errors.runtime_error(owner, f"{what} raised {type(cause).__name__}: {cause}\n{text}")


def cache(owner: str, value):
    """What is given as `cache=`: a `DatasetCache` or None. TypeError otherwise."""
    from mycelia.dataset import cache as module

    return module.checked(owner, value)


def batches(node, epoch: int, size: int, drop_remainder: bool):
    """The batches of a node that can make them faster than row by row, or None."""
    make = getattr(node, "batches", None)
    return None if make is None or node._run is None else make(epoch, size, drop_remainder)


def fused(operations: list) -> list:
    """The operations of a map, with runs of native ones as one (`fuse.fused`) unless that is switched off."""
    from mycelia.dataset import config

    if not config.get_enable_fusion():
        return operations
    from mycelia.dataset.fuse import fused as join

    return join(operations)
