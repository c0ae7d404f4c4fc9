"""What the functions of ONNX operators share: the node at work, what is known, the table of operators.

A value of the model is a Tensor: one with data is known, one that stands for a graph value is not. Sizes that
are left open are a NumPy array of objects, numbers or formulas (see `sizes`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.capture.trace import active
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers.nodes import NodeCall, OperatorEntry

OPERATORS: dict[str, Operator] = {}


class Sizes(np.ndarray):
    """Numbers and formulas of open sizes, an array of objects; `kind`: the dtype that the model has there."""

    kind = ms.int64

    def __new__(cls, array: np.ndarray, kind: Any = ms.int64) -> Sizes:
        made = np.asarray(array, object).view(cls)
        made.kind = kind
        return made

    def __array_finalize__(self, other: Any) -> None:
        self.kind = getattr(other, "kind", ms.int64)


class Operator(OperatorEntry):
    def __init__(self, function: Callable, sizes: Collection[int], first: int) -> None:
        super().__init__(function, sizes)
        self.first = first  # the version in which the operator came


def operator(*names: str, sizes: Collection[int] = (), first: int = 1) -> Callable:
    """Decorator: the function imports the operators of these names."""

    def enter(function: Callable) -> Callable:
        OPERATORS.update(dict.fromkeys(names, Operator(function, sizes, first)))
        return function

    return enter


def plain(name: str, op: Callable) -> None:
    """Enters an operator of one input without attributes that is an op of core with the same meaning."""
    operator(name)(lambda call, x: op(x))


class Call(NodeCall):
    """One node of the file: attributes are read by `get`; one that no one read is an error."""

    def __init__(
        self, kind: str, name: str, version: int, attributes: Mapping[str, Any], outputs: Sequence[str]
    ):
        super().__init__(kind, name)
        self.version = version
        self.attributes = attributes
        self.outputs = outputs
        self.kinds: Sequence[int | None] = ()  # of inputs that have a type core lacks (`small`)
        self.narrowed: int | None = None  # the type of the first result, if it is such a one
        self.read: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        value = self.attributes.get(name, default)
        if value is None and name in self.attributes:
            raise self.attribute(name, "must have a value")
        return value

    def need(self, name: str) -> Any:
        """An attribute without a default."""
        if name not in self.attributes:
            raise self.fail(f"the attribute '{name}' is missing", Code.INVALID_OP_ATTR)
        return self.get(name)

    def choice(self, name: str, default: Any, known: Collection[Any]) -> Any:
        """An attribute of which only the values `known` are imported."""
        value = self.get(name, default)
        if value not in known:
            raise self.attribute(name, f"must be one of {sorted(known)}")
        return value

    def wants(self, position: int) -> bool:
        """Whether the model uses the output at this position."""
        return position < len(self.outputs) and bool(self.outputs[position])

    def unread(self) -> str | None:
        return min(set(self.attributes) - self.read, default=None)

    def attribute(self, name: str, why: str) -> ConversionError:
        """An error about an attribute's value."""
        return self.fail(
            f"attribute '{name}' is {self.attributes.get(name)!r}, but {why}", Code.INVALID_OP_ATTR
        )


@dataclass(frozen=True, eq=False)
class TensorList:
    """A sequence of tensors, which no operator of the model holds."""

    items: tuple


def shape_of(value: Any) -> tuple:
    """Sizes of a value, numbers or formulas of open sizes."""
    if isinstance(value, np.ndarray):
        return value.shape
    return tuple(value.shape if value.traced is None else value.traced.type.shape)


def is_number(size: Any) -> bool:
    """Whether a size is known."""
    return type(size) is int


def same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are the same, whatever the open ones turn out to be."""
    if is_number(a) and is_number(b):
        return a == b
    return a is b or bool(b.agrees(a) if is_number(a) else a.agrees(b))


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two sizes, a formula where it is open which."""
    return _chosen(min, a, b)


def larger(a: Any, b: Any) -> Any:
    """The larger of two sizes, a formula where it is open which."""
    return _chosen(max, a, b)


def _chosen(choose: Callable, a: Any, b: Any) -> Any:
    if is_number(a) and is_number(b):
        return choose(a, b)
    if choose is max and (is_number(a) and a <= 0 and b.positive or is_number(b) and b <= 0 and a.positive):
        return b if is_number(a) else a
    table = (b if is_number(a) else a).table
    return table.combined(choose, *(table.constant(n) if is_number(n) else n for n in (a, b)))


def known_shape(call: Call, value: Any, axes: Sequence[int] | None = None) -> tuple[int, ...]:
    """The sizes of `value`. Errors: ConversionError if one of those along `axes` (all) is open."""
    shape = shape_of(value)
    for axis in range(len(shape)) if axes is None else axes:
        if not is_number(shape[axis]):
            raise call.fail(f"size {axis} of its input is open, but must be known: give inputShape")
    return shape


def known(value: Any) -> np.ndarray | None:
    """The numbers of a value that does not depend on the inputs, else None."""
    if isinstance(value, np.ndarray):
        return np.asarray(value).astype(value.kind.np) if all(map(is_number, value.flat)) else None
    if value.traced is None:
        return value.asnumpy()
    return value.traced.constant.asnumpy() if value.traced.is_constant else None


def need_known(call: Call, value: Any, name: str) -> np.ndarray:
    """The numbers of an input. Errors: ConversionError if they show only when the model runs."""
    found = known(value)
    if found is None:
        raise call.fail(f"its input '{name}' is known only when the model runs, but must be a constant")
    return found


def integers(call: Call, value: Any, name: str) -> list:
    """The integers of a vector, some of which may be open sizes."""
    if isinstance(value, np.ndarray):
        return [n if type(n) is not np.int64 else int(n) for n in value.reshape(-1).tolist()]
    return [int(n) for n in need_known(call, value, name).reshape(-1)]


def as_tensor(value: Any) -> Any:
    """Open sizes as a tensor of int64; a tensor stays. Errors: ValueError for a sequence of tensors."""
    if isinstance(value, TensorList):
        raise ValueError("a sequence of tensors where a tensor is needed")
    if not isinstance(value, np.ndarray):
        return value
    trace = active()
    numbers = [
        ms.Tensor(n, value.kind) if is_number(n) else cast(trace.sizes.number(n, trace), value.kind)
        for n in np.asarray(value).reshape(-1)
    ]
    return ops.reshape(ops.stack(numbers), value.shape)


def cast(x: Any, dtype: Any) -> Any:
    """x in a dtype; no node where it has it."""
    return x if x.dtype == dtype else ops.cast(x, dtype)


def scalar(number: Any, like: Any) -> ms.Tensor:
    """A number as a tensor of rank 0 with the dtype of `like`."""
    return cast(ms.Tensor(np.asarray(number)), like.dtype)


def positive_axis(call: Call, axis: int, rank: int, name: str = "axis") -> int:
    """An axis counted from the front. Errors: ConversionError if there is none."""
    if not -rank <= axis < rank:
        raise call.misfit(f"{name} {axis} does not exist: the input has {rank} axes", Code.INVALID_OP_ATTR)
    return axis % rank


def along(vector: Any, axis: int, rank: int) -> Any:
    """A vector as a tensor of this rank that broadcasts along `axis`."""
    return ops.reshape(vector, (1,) * axis + (-1,) + (1,) * (rank - axis - 1))
