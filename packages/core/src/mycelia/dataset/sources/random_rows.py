"""Rows of arbitrary numbers, to try a pipeline without data."""

from __future__ import annotations

import numpy as np

from mycelia.dataset import config, nodes
from mycelia.dataset.schema import Schema
from mycelia.dataset.sources.numbered import MappableDataset
from mycelia.engine.base import errors

_MOST_ROWS, _MOST_COLUMNS, _MOST_AXES, _MOST_ITEMS = 1024, 4, 4, 32  # of what is not given
_DTYPES = (
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float32",
    "float64",
    "bool",
)


class RandomDataset(MappableDataset):
    """`total_rows` rows of random bytes in the dtypes and shapes of `schema`; what is not given is arbitrary.

    Columns are those of the schema, else of `columns_list`, else c0, c1, ... An axis of the schema that is
    not known has an arbitrary length in each row. Errors: TypeError, ValueError.
    """

    def __init__(
        self,
        total_rows=None,
        schema=None,
        columns_list=None,
        num_samples=None,
        num_parallel_workers=None,
        cache=None,
        shuffle=None,
        num_shards=None,
        shard_id=None,
    ):
        owner = "RandomDataset"
        nodes.of_type(owner, "total_rows", total_rows, int, type(None))
        if total_rows is not None and total_rows < 0:
            raise errors.value_error(owner, f"total_rows must not be negative, but got {total_rows}")
        nodes.of_type(owner, "columns_list", columns_list, list, type(None))
        nodes.of_type(owner, "schema", schema, str, Schema, type(None))
        schema = Schema(schema) if isinstance(schema, str) else schema
        rng = config.generator(0, 0)
        columns = schema.columns if schema is not None else _columns(columns_list, rng)
        if columns_list:
            table = {column["name"]: column for column in columns}
            missing = [name for name in columns_list if name not in table]
            if missing:
                raise errors.runtime_error(owner, f"columns_list {missing} are not among {list(table)}")
            columns = [table[name] for name in columns_list]
        super().__init__(
            [column["name"] for column in columns],
            num_samples,
            shuffle,
            None,
            num_shards,
            shard_id,
            num_parallel_workers,
            cache,
        )
        self._described = columns
        known = num_samples or total_rows or (schema.num_rows if schema is not None else 0)
        self.total_rows = known or int(rng.integers(1, _MOST_ROWS + 1))

    def source_size(self):
        return self.total_rows

    def row(self, index):
        rng = np.random.default_rng((config.stream_seed(), index))
        return tuple(_values(column, rng) for column in self._described)


def _columns(names: list[str] | None, rng) -> list[dict]:
    names = names or [f"c{i}" for i in range(int(rng.integers(1, _MOST_COLUMNS + 1)))]
    shapes = [rng.integers(1, _MOST_ITEMS + 1, int(rng.integers(1, _MOST_AXES + 1))).tolist() for _ in names]
    dtypes = rng.choice(_DTYPES, len(names))
    return [{"name": n, "type": str(t), "shape": s} for n, t, s in zip(names, dtypes, shapes)]


def _values(column: dict, rng) -> np.ndarray:
    shape = [n if n >= 0 else int(rng.integers(1, _MOST_ITEMS + 1)) for n in column.get("shape") or []]
    if column["type"] in ("string", "bytes"):
        return np.full(shape, f"{rng.integers(256):02x}")
    dtype = np.dtype(column["type"])
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    # One byte everywhere, so that floats have a pattern as arbitrary as that of integers.
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.full(count, rng.integers(256), np.uint8).view(dtype).reshape(shape)
