"""How tensors of a dump become files and rows of statistic.csv. What names, headers and cells look like is
said here; native code puts them together for all tensors of a step (`_C.StepFiles`).
"""

from __future__ import annotations

import csv
import functools
import io
import itertools
from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from mycelia.debug.device_statistics import device_statistics
from mycelia.debug.dump import files
from mycelia.debug.dump.config import DumpConfig
from mycelia.debug.dump.groups import Group
from mycelia.debug.statistics import COLUMNS, Statistics, array_of, digest, statistics
from mycelia.engine import _C
from mycelia.engine.base import dtypes
from mycelia.engine.base.dtypes import bfloat16
from mycelia.engine.compile import measuring
from mycelia.engine.tensors.tensor import Tensor

_DIGEST = -1  # instead of the number of a statistic
_DIGESTS = ("MD5", "SHA1")
_MOST_DESCRIBED = 4096  # dtypes and shapes that are remembered

_HEAD = (
    "Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size", "Data Type",
    "Shape",
)  # fmt: skip


class TensorFiles:
    """Writes groups of tensors as `found` says. `header`: the first line of statistic.csv."""

    def __init__(self, found: DumpConfig) -> None:
        self.has_files, self.has_rows = found.saved_data != "statistic", found.saved_data != "tensor"
        self.compressed = found.compression == "zstd"
        self.device_statistics = found.device_statistics
        self.short, self.raw = found.naming == "2.0", found.layout == "bin"
        columns = found.columns if self.has_rows else []
        self.header = _line([*_HEAD, *columns])
        self.digested = tuple(column for column in columns if column in _DIGESTS)
        self.described: dict[str, dict[bytes, tuple[str, str, bytes]]] = {}  # by layout
        self.head = (
            self.raw,
            tuple(_DIGEST if c in _DIGESTS else Statistics._fields.index(COLUMNS[c]) for c in columns),
            () if self.device_statistics or not columns else _gauges(),
            functools.lru_cache(maxsize=4096)(self.names),
        )  # fmt: skip
        self.tail = (
            array_of, self.numbers if self.device_statistics else statistics, self.digests, files.fitting,
        )  # fmt: skip

    def write(
        self, to: _C.StepFiles, groups: list[Group], long_names: list[tuple[str, str]], at_once: bool
    ) -> bytes:
        """Rows of statistic.csv, empty if none are wanted. `long_names` takes which names stand for which
        longer ones; unless `at_once`, the files are there when `to` has finished.

        Errors: OSError; what is whole by then stays.
        """
        rows = []
        for layout, members in itertools.groupby(groups, key=attrgetter("layout")):
            described = self.described.setdefault(layout, {})
            if len(described) > _MOST_DESCRIBED:
                described.clear()
            describe = functools.partial(self.describe, layout)
            settings = (*self.head, described, describe, *self.tail)
            rows.append(to.write(list(members), settings, long_names, at_once))
        return b"".join(rows)

    def op_name(self, full_name: str) -> str:
        """As files and tables have it."""
        return (files.short_op_name if self.short else files.op_name)(full_name)

    def names(self, kind: str, name: str) -> tuple[str, str]:
        """What rows of an operator begin with, and names of its files."""
        row = _line([kind, self.op_name(name), "0", "0"])[:-1]
        if self.raw:
            return row, files.old_stem(name)
        return row, (files.short_stem if self.short else files.stem)(kind, name)

    def describe(self, layout: str, tensor: Tensor) -> tuple[str, str, bytes]:
        """What names of files end in, the cells that size, dtype and shape have, and what a file begins with;
        of all tensors with this layout, dtype and shape.
        """
        dtype, shape = files.dtype_name(tensor.dtype), tensor.shape
        stored = np.dtype(np.float32) if tensor.dtype is bfloat16 else tensor.dtype.np
        size = tensor.nbytes if self.device_statistics else tensor.size * stored.itemsize
        shown = f"({','.join(map(str, shape))})"
        cells = _line([str(size), tensor.dtype.name, shown])[:-1]
        if self.raw:
            return files.old_ending(shape, dtype, layout), cells, b""
        ending = files.short_ending(layout) if self.short else files.ending(dtype, layout)
        return ending, cells, files.header(stored, shape)

    def numbers(self, tensor: Tensor) -> list[float]:
        """Those that the device computes, at the places that they have in `Statistics`."""
        found = device_statistics(tensor, self.device_statistics)
        of_fields = {COLUMNS[column]: value for column, value in found.items()}
        return [of_fields.get(name, 0.0) for name in Statistics._fields]

    def digests(self, tensor: Tensor) -> tuple[str, ...]:
        array = array_of(tensor)
        return tuple(digest(column.lower(), array) for column in self.digested)


def _gauges() -> tuple:
    """Kernels for the numbers of tensors, by dtype."""
    return measuring.gauges(measuring.STATISTICS, dtypes.ALL)


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
