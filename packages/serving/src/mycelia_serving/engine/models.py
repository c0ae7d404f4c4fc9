"""A loaded model as instances see it: checks them, makes a batch of them, takes the results apart."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from dataclasses import dataclass

import numpy as np

from mycelia_serving.engine.calls import to_value
from mycelia_serving.engine.loaders import LoadedModel, ModelInput
from mycelia_serving.errors import Code, ServingError, clip
from mycelia_serving.request import TensorInfo, Value
from mycelia_serving.servable.declaration import ModelDeclaration

_LONG_KEY = (
    256  # bytes of inputs without batch dimension that are compared as they are; longer ones as a digest
)


@dataclass(slots=True, eq=False)
class _Input:
    """An input without the batch dimension."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]  # -1: open
    batched: bool
    open: bool  # whether any size is open
    bytes: int  # of a value, if none is open


def batch_sizes(largest: int) -> tuple[int, ...]:
    """The sizes of batches of a model that takes any: 1, 2, 3, 4, 6, 8, 12, 16, ... up to `largest`.

    Each costs a compilation at the start, and a batch is filled up to the next one, by a third at most.
    """
    sizes, size = {1, 2, 3, largest}, 4
    while size < largest:
        sizes |= {size, size * 3 // 2}
        size *= 2
    return tuple(sorted(s for s in sizes if s <= largest))


class BatchModel:
    """One sub-graph of a model.

    `limit`: most instances of a run. `grouped`: whether only some instances may share a run; `check` says
    by a key which. `run` may be called by several threads: the model itself runs one batch at a time.
    """

    def __init__(
        self, loaded: LoadedModel, declared: ModelDeclaration, subgraph: int, max_batch_size: int
    ) -> None:
        self.name = declared.files[subgraph] if declared.files else declared.key
        self.loaded = loaded
        self.allow_reshape = declared.allow_reshape
        self.with_batch_dim = declared.with_batch_dim
        self.outputs: tuple[TensorInfo, ...] = ()  # known after `warm_up`
        self.runs = getattr(loaded, "runs", 1)
        self._lock = threading.Lock() if self.runs == 1 else contextlib.nullcontext()
        count = len(loaded.inputs)
        wrong = [i for i in declared.unbatched if i >= count]
        if wrong:
            raise RuntimeError(
                f"'without_batch_dim_inputs' of the model '{declared.key}' has index {wrong[0]}, "
                f"but the model has {count} inputs"
            )
        unbatched = set(range(count)) if not declared.with_batch_dim else set(declared.unbatched)
        self.inputs = tuple(
            _without_batch(x, i not in unbatched, self.name) for i, x in enumerate(loaded.inputs)
        )
        size = self._batch_size({x.shape[0] for i, x in enumerate(loaded.inputs) if i not in unbatched})
        self.open_batch = size == -1
        self._sizes = batch_sizes(max_batch_size) if self.open_batch else (size,)
        self.limit = self._sizes[-1]
        self._keyed = tuple(i for i in declared.unbatched) if declared.with_batch_dim else ()
        self._open = any(i.open for i in self.inputs)
        self.grouped = self.limit > 1 and bool(self._keyed or self._open)
        self._fast = tuple((i.dtype, i.shape) for i in self.inputs)

    def _batch_size(self, sizes: set[int]) -> int:
        """The batch size of the inputs; 1 if there is none."""
        if not self.with_batch_dim:
            return 1
        fixed = sizes - {-1}
        if len(fixed) > 1 or not sizes:
            found = ", ".join(map(str, sorted(fixed))) or "none"
            raise RuntimeError(
                f"The inputs of the model '{self.name}' have different batch sizes: {found}; "
                "name inputs without it in 'without_batch_dim_inputs'"
            )
        size = fixed.pop() if fixed else -1
        if size == 0:
            raise RuntimeError(f"The batch size of the model '{self.name}' is 0")
        return size

    # ---- one instance --------------------------------------------------------------------------------------

    def check(self, values: tuple[Value, ...], made: bool) -> tuple[tuple[Value, ...], object]:
        """The values, and a key: instances with equal keys may share a run. Errors: ServingError.

        made: they come from functions of the servable, whose shapes may lack or have dimensions of size 1.
        """
        for value, (dtype, shape) in zip(values, self._fast, strict=True):
            if type(value) is not np.ndarray or value.dtype != dtype or value.shape != shape:
                values = tuple([self._fit(i, v, made) for i, v in enumerate(values)])
                break
        return values, self._key(values) if self.grouped else None

    def _fit(self, index: int, value: Value, made: bool) -> Value:
        wanted = self.inputs[index]
        where = f"Input {index} '{clip(wanted.name)}' of the model '{self.name}'"
        if not isinstance(value, np.ndarray):
            kind = type(value).__name__
            raise ServingError(Code.INVALID_INPUTS, f"{where} should be {wanted.dtype}, but is {kind}")
        if value.dtype != wanted.dtype:
            raise ServingError(Code.INVALID_INPUTS, f"{where} should be {wanted.dtype}, but is {value.dtype}")
        shape = wanted.shape
        if len(value.shape) == len(shape) and all(a == b or b == -1 for a, b in zip(value.shape, shape)):
            return value
        if not wanted.open and value.nbytes == wanted.bytes:
            if self.allow_reshape or (made and _long(value.shape) == _long(shape)):
                return value.reshape(shape)
        size = "" if wanted.open else f", {wanted.bytes} bytes"
        raise ServingError(
            Code.INVALID_INPUTS,
            f"{where} should have shape {_text(shape)}{size}, "
            f"but has {_text(value.shape)}, {value.nbytes} bytes",
        )

    def _key(self, values: tuple[Value, ...]) -> object:
        key: list = [v.shape for v in values] if self._open else []
        for i in self._keyed:
            data = values[i].tobytes()
            key.append(data if len(data) <= _LONG_KEY else hashlib.blake2b(data, digest_size=32).digest())
        return tuple(key)

    # ---- a batch -------------------------------------------------------------------------------------------

    def run(self, rows: list[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
        """The outputs for each of at most `limit` checked instances with equal keys."""
        if not self.with_batch_dim:
            with self._lock:
                outputs = self.loaded(list(rows[0]))
            for output in outputs:
                output.flags.writeable = False
            return [tuple(outputs)]
        count = len(rows)
        size = self._size(count)
        first = rows[0]
        arrays = []
        for i, one in enumerate(self.inputs):
            if not one.batched:
                arrays.append(first[i])
            elif size == 1:
                arrays.append(first[i][None])
            else:
                batch = np.empty((size, *first[i].shape), one.dtype)
                for k, row in enumerate(rows):
                    batch[k] = row[i]
                batch[count:] = first[i]
                arrays.append(batch)
        with self._lock:
            outputs = self.loaded(arrays)
        columns = []
        for output in outputs:
            if not output.ndim or len(output) != size:
                raise RuntimeError(f"an output has shape {output.shape}, but the batch has {size} instances")
            output.flags.writeable = False
            columns.append([output[k, ...] for k in range(count)])
        return list(zip(*columns))

    def _size(self, count: int) -> int:
        for size in self._sizes:
            if size >= count:
                return size
        raise ValueError(f"{count} instances, but a run takes {self.limit}")

    def call(self, instances: list[tuple]) -> list[tuple]:
        """The outputs for any number of instances, which came from a function. Errors: RuntimeError."""
        groups: dict[object, list[tuple[int, tuple]]] = {}
        for index, values in enumerate(instances):
            if len(values) != len(self.inputs):
                raise RuntimeError(
                    f"instance {index} has {len(values)} inputs, but the model has {len(self.inputs)}"
                )
            try:
                values, key = self.check(tuple([to_value(v) for v in values]), made=True)
            except ServingError as error:
                raise RuntimeError(f"instance {index}: {error.message}") from None
            except TypeError as error:
                raise RuntimeError(f"instance {index}: {error}") from None
            groups.setdefault(key, []).append((index, values))
        results: list = [None] * len(instances)
        for group in groups.values():
            for start in range(0, len(group), self.limit):
                part = group[start : start + self.limit]
                for (index, _), outputs in zip(part, self.run([values for _, values in part])):
                    results[index] = outputs
        return results

    def warm_up(self) -> None:
        """Runs each batch size once on zeros, which compiles it, and learns what the outputs look like.

        With open sizes beside the batch this is only a try. Errors: what the model raises.
        """
        row = tuple([np.zeros([1 if n == -1 else n for n in i.shape], i.dtype) for i in self.inputs])
        for size in self._sizes:
            try:
                outputs = self.run([row] * size)[0]
            except Exception:
                outputs = ()
                if self._open:
                    break
                raise
        reset = getattr(self.loaded, "reset", None)
        if reset is not None:
            reset()
        self.outputs = tuple(
            TensorInfo(f"output_{k}", str(o.dtype), (-1,) * o.ndim if self._open else o.shape)
            for k, o in enumerate(outputs)
        )


def _without_batch(given: ModelInput, batched: bool, model: str) -> _Input:
    if batched and not given.shape:
        raise RuntimeError(
            f"The input '{given.name}' of the model '{model}' is a scalar, so it has no batch dimension: "
            "declare the model with with_batch_dim=False, or name it in 'without_batch_dim_inputs'"
        )
    shape = given.shape[1:] if batched else given.shape
    return _Input(
        given.name, given.dtype, shape, batched, -1 in shape, int(np.prod(shape)) * given.dtype.itemsize
    )


def _long(shape: tuple[int, ...]) -> list[int]:
    return [n for n in shape if n != 1]


def _text(shape: tuple[int, ...]) -> str:
    return str(list(shape)) if len(shape) <= 16 else f"{list(shape[:16])} and {len(shape) - 16} more sizes"
