"""The examples that op blocks carry, as concrete cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from mycelia.engine import _C
from mycelia.engine.ops.define import OpDef


class Rand:
    """The source of arrays that `samples(rand)` receives; the same for the same seed."""

    def __init__(self, seed: int = 0):
        self.rng = np.random.default_rng(seed)

    def __call__(self, *shape, low=-1.0, high=1.0, dtype="float32") -> np.ndarray:
        """Uniform in [low, high)."""
        return np.asarray(self.rng.uniform(low, high, shape)).astype(dtype)

    def ints(self, low: int, high: int, shape=(), dtype="int32") -> np.ndarray:
        """Integers in [low, high)."""
        shape = (shape,) if isinstance(shape, int) else shape
        return np.asarray(self.rng.integers(low, high, shape)).astype(dtype)

    def positive(self, *shape, low=0.1, high=3.0, dtype="float32") -> np.ndarray:
        """Uniform and away from zero."""
        return self(*shape, low=low, high=high, dtype=dtype)

    def bools(self, *shape) -> np.ndarray:
        """Fair coin flips."""
        return np.asarray(self.rng.integers(0, 2, shape)).astype(np.bool_)

    def distinct(self, *shape, dtype="float32") -> np.ndarray:
        """Values at least 0.1 apart in random order: no ties for max and sort."""
        n = int(np.prod(shape))
        return (np.asarray(self.rng.permutation(n)).reshape(shape) * 0.1 - 0.05 * n).astype(dtype)


@dataclass
class Sample:
    """One call of an op: its tensor arguments, attributes and how it may be checked."""

    op: _C.Op
    index: int
    args: tuple
    attrs: dict
    options: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.op.name}-{self.index}"

    def tensors(self, args: tuple | None = None) -> list:
        """The arguments (or others in their place) as Tensors, prepared as option `_prepare` says."""
        given = [_tensors(a) for a in (self.args if args is None else args)]
        for position, prepare in self.options.get("_prepare", {}).items():
            given[position] = prepare(given[position])
        return given

    def call(self, args: tuple | None = None):
        """The op's results as a tuple of Tensors."""
        result = self.op(*self.tensors(args), **self.attrs)
        return result if isinstance(result, tuple) else (result,)


def _tensors(value):
    if isinstance(value, (list, tuple)):
        return [_tensors(v) for v in value]
    return _C.Tensor(np.array(value)) if isinstance(value, (np.ndarray, np.generic)) else value


def samples_of(definition: OpDef, seed: int = 0) -> Iterator[Sample]:
    """The samples of one op; `_dtypes` multiplies them."""
    if definition.sample_function is None:
        return
    index = 0
    for given in definition.sample_function(Rand(seed)):
        args = given if isinstance(given, tuple) else (given,)
        attrs = {}
        if args and isinstance(args[-1], dict):
            attrs, args = dict(args[-1]), args[:-1]
        options = {k: attrs.pop(k) for k in [k for k in attrs if k.startswith("_")]}
        yield Sample(definition.op, index, args, attrs, options)
        index += 1
        for dtype in options.get("_dtypes", ()):
            cast = tuple(_cast(a, dtype) for a in args)
            yield Sample(definition.op, index, cast, attrs, {**options, "_grad": False})
            index += 1


def _cast(value, dtype: str):
    if isinstance(value, (list, tuple)):
        return [_cast(v, dtype) for v in value]
    if isinstance(value, np.ndarray) and value.dtype == np.float32:
        return value.astype(dtype)
    return value


def all_samples(names=None) -> Iterator[Sample]:
    """The samples of all ops, also of those that plugins define, or of the ops in `names`."""
    import mycelia.engine.ops
    import mycelia.engine.tensors.tensor  # noqa: F401
    from mycelia.engine.base import plugins
    from mycelia.engine.ops.define import registry

    plugins.load_ops()
    for name in sorted(registry):
        if names is None or name in names:
            yield from samples_of(registry[name].definition)
