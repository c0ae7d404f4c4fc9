"""How the axes of a tensor are divided among devices: `Layout`, and `shard`, which asks for one."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

from mycelia.engine.base import errors
from mycelia.engine.sharding import annotate


class Layout:
    """A grid of devices whose axes have names: ``Layout((2, 4), ("dp", "mp"))``.

    Calling it gives the layout of a tensor: one name per axis, "None" where the axis is whole, or a tuple
    of names.
    Errors: TypeError unless tuples, ValueError for lengths that differ, unknown names and names used twice.
    """

    def __init__(self, device_matrix, alias_name, rank_list=None):
        for name, value in (("device_matrix", device_matrix), ("alias_name", alias_name)):
            if not isinstance(value, tuple):
                raise errors.type_error("Layout", f"{name} must be a tuple, but got {type(value).__name__}")
        if len(device_matrix) != len(alias_name):
            raise errors.value_error(
                "Layout", f"device_matrix has {len(device_matrix)} axes, but alias_name {len(alias_name)}"
            )
        for size in device_matrix:
            if isinstance(size, bool) or not isinstance(size, int):
                raise errors.type_error("Layout", f"device_matrix must hold ints, but got {size!r}")
        if "None" in alias_name:
            raise errors.value_error(
                "Layout", "'None' in alias_name would stand for an axis that is not divided"
            )
        if len(set(alias_name)) != len(alias_name):
            raise errors.value_error("Layout", f"the names in alias_name must differ, but got {alias_name}")
        if rank_list is not None and not isinstance(rank_list, list):
            raise errors.type_error("Layout", f"rank_list must be a list, but got {type(rank_list).__name__}")
        count = math.prod(device_matrix)
        if rank_list is not None and len(rank_list) != count:
            raise errors.value_error(
                "Layout", f"{count} devices need as many ranks, but got {len(rank_list)}"
            )
        self._device_matrix, self._alias_name = device_matrix, alias_name
        self._rank_list = list(range(count)) if rank_list is None else rank_list
        self._tensor_map: tuple | None = None

    def __call__(self, *tensor_map) -> Layout:
        used: set[str] = set()
        places = tuple(
            tuple(self._place(n, used) for n in names)
            if isinstance(names, tuple)
            else self._place(names, used)
            for names in tensor_map
        )
        result = copy.copy(self)
        result._tensor_map = places
        return result

    def _place(self, name: str, used: set[str]) -> int:
        """The axis of the grid counted from the last one, or -1."""
        if name == "None":
            return -1
        if name not in self._alias_name:
            raise errors.one_of(name, self._alias_name, subject="Layout", what="axis")
        if name in used:
            raise errors.value_error("Layout", f"the axis {name} divides more than one axis of the tensor")
        used.add(name)
        return len(self._alias_name) - 1 - self._alias_name.index(name)

    def to_dict(self) -> dict:
        """All that was said, as MindSpore writes it into strategy files.  Errors: ValueError before a
        call."""
        if self._tensor_map is None:
            raise errors.value_error(
                "Layout", "the tensor_map is missing: call the layout with the names of axes"
            )
        return {
            "device_matrix": self._device_matrix,
            "tensor_map": self._tensor_map,
            "interleaved_parallel": "interleaved_parallel" in self._alias_name,
            "alias_name": self._alias_name,
            "rank_list": self._rank_list,
        }


def shard(fn, in_strategy, out_strategy=None, parameter_plan=None) -> Callable:
    """`fn` with its tensors divided among the ranks of `semi_auto_parallel`: `in_strategy` and
    `out_strategy` have an entry for each tensor, a tuple of numbers of parts, a `Layout` or None;
    `parameter_plan` the same for Parameters of `fn`, a Cell, by their names. A process that trains alone has
    all of them whole.

    Errors: TypeError unless the strategies are tuples and `parameter_plan` is a dict; ValueError for unknown
    names.
    """
    if not callable(fn):
        raise errors.type_error("shard", f"fn must be callable, but got {type(fn).__name__}")
    return annotate.shard("shard", fn, in_strategy, out_strategy, annotate.plan(fn, parameter_plan))
