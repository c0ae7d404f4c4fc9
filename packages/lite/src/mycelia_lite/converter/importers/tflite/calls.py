"""What the functions of operators share: the node at work, its options, the table of operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers.nodes import NodeCall, OperatorEntry
from mycelia_lite.converter.importers.onnx.calls import Sizes, is_number, known, scalar, shape_of
from mycelia_lite.converter.importers.onnx.calls import as_tensor as tensor_of_sizes
from mycelia_lite.converter.importers.tflite.file import TFL3, TensorInfo

OPERATORS: dict[str, Operator] = {}
_LARGEST = 1 << 24  # elements that a constant may have which the file does not declare


class Operator(OperatorEntry):
    """`raw`: of quantized tensors the function gets the integers and gives integers; otherwise it gets and
    gives the numbers that they stand for.
    """

    def __init__(self, function: Callable, sizes: Collection[int], raw: bool) -> None:
        super().__init__(function, sizes)
        self.raw = raw


def operator(*names: str, sizes: Collection[int] = (), raw: bool = False) -> Callable:
    """Decorator: the function imports the operators of these names."""

    def enter(function: Callable) -> Callable:
        OPERATORS.update(dict.fromkeys(names, Operator(function, sizes, raw)))
        return function

    return enter


class Call(NodeCall):
    """One node of the file: options are read by `get`; one that is set and that no one read is an error."""

    def __init__(
        self,
        kind: str,
        name: str,
        options: Any,
        custom: memoryview,
        inputs: Sequence[TensorInfo | None],
        outputs: Sequence[TensorInfo],
    ) -> None:
        super().__init__(kind, name)
        self.options, self.custom = options, custom
        self.inputs, self.outputs = inputs, outputs
        self.multiplier: Any = None  # of a product of integers: one of its steps in steps of the result
        self.sums = False  # whether the result of a product is its sums (`integer_products`)
        self.exact: Any = (
            None  # the product of integers of 8 bits, with the places of windows, instead of numbers
        )
        self.intermediates: Sequence[TensorInfo] = ()  # what is between steps of a cell
        self.around: Any = None  # of a node that runs graphs or has variables: graphs.Surroundings
        self.halves = False  # whether it widens weights of 16 bits
        self.read: set[str] = set()

    def get(self, table: str, name: str) -> Any:
        """A field of the node's options, a table of that type; its default where they are left out."""
        self.read.add(name)
        if self.options is None:
            return TFL3.tables[table].fields[name].default
        if self.options.kind != table:
            raise self.fail(
                f"its options are {self.options.kind}, {table} are expected", Code.GRAPH_FILE_ERROR
            )
        return getattr(self.options, name)

    def name_of(self, table: str, name: str) -> str:
        """The name of an enum's member. Errors: ConversionError for a number without one."""
        value = self.get(table, name)
        if not hasattr(value, "name"):
            raise self.option(name, value, "is not known")
        return value.name

    def unread(self) -> str | None:
        """An option that is set and not read."""
        if self.options is None:
            return None
        if self.options.unknown_fields:
            return f"number {self.options.unknown_fields[0]}"
        return next((f.name for f, _ in self.options.items() if f.name not in self.read), None)

    def option(self, name: str, value: Any, why: str) -> ConversionError:
        """An error about an option's value."""
        return self.fail(f"attribute '{name}' is {value!r}, which {why}", Code.INVALID_OP_ATTR)

    def limit(self, shape: Sequence[int], like: Any) -> None:
        """Errors: ConversionError for a result that is computed now and larger than what is declared."""
        if known(like) is None or not all(map(is_number, shape)):
            return
        declared = max((math.prod(o.table.shape) for o in self.outputs), default=0)
        if math.prod(shape) > max(declared, _LARGEST):
            raise self.fail(f"a constant of shape {list(shape)}", Code.GRAPH_FILE_ERROR)


def as_tensor(value: Any) -> Any:
    """Open sizes as a tensor of int32; what is a tensor stays."""
    return tensor_of_sizes(Sizes(value, ms.int32)) if isinstance(value, np.ndarray) else value


def activated(call: Call, table: str, x: Any) -> Any:
    """x after the activation that is part of the operator."""
    kind = call.name_of(table, "fused_activation_function")
    if kind == "NONE":
        return x
    if kind not in _ACTIVATIONS:
        raise call.option("fused_activation_function", kind, "is not imported")
    return _ACTIVATIONS[kind](x)


def bounded(x: Any, low: float, high: float) -> Any:
    return ops.maximum(ops.minimum(x, scalar(high, x)), scalar(low, x))


def relu(x: Any) -> Any:
    return ops.relu(x) if x.dtype.is_floating else ops.maximum(x, scalar(0, x))


_ACTIVATIONS = {
    "RELU": relu,
    "RELU6": lambda x: ops.relu6(x) if x.dtype.is_floating else bounded(x, 0, 6),
    "RELU_N1_TO_1": lambda x: bounded(x, -1, 1),
    "TANH": ops.tanh,
}


def to_first(x: Any) -> Any:
    """Images [N, H, W, C] as core's operators take them, [N, C, H, W]."""
    return ops.transpose(x, (0, 3, 1, 2))


def to_last(x: Any) -> Any:
    return ops.transpose(x, (0, 2, 3, 1))


def axes_of(call: Call, axes: Sequence[int], rank: int) -> list[int]:
    """Axes counted from the front, each once, in order."""
    for axis in axes:
        if not -rank <= axis < max(rank, 1):
            raise call.fail(f"axis {axis} does not exist: there are {rank}", Code.INVALID_OP_ATTR)
    return sorted({axis % rank for axis in axes}) if rank else []


def rank_of(value: Any) -> int:
    return len(shape_of(value))
