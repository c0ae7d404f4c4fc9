"""What the functions of ATen ops share: the node at work, data types, numbers as tensors, the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mycelia as ms
from mycelia import ops
from mycelia.capture.trace import active
from mycelia_lite.converter import obstacles
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers.nodes import NodeCall

#: Name of an ATen op, as "aten.add.Tensor" -> ``(call, *arguments)`` -> a Tensor or a list of them.
OPERATORS: dict[str, Callable] = {}


def aten(*names: str) -> Callable:
    """Decorator: the function imports the ops of these names; without an overload it is the default one."""

    def enter(function: Callable) -> Callable:
        for name in names:
            OPERATORS[f"aten.{name}" if "." in name else f"aten.{name}.default"] = function
        return function

    return enter


class Call(NodeCall):
    """One node of the program."""

    def __init__(self, kind: str, node: Any) -> None:
        super().__init__(kind, node.name)
        self.node = node

    @property
    def dtype(self) -> Any:
        """The dtype that the program declares for the result, the first if there are several."""
        declared = self.node.meta["val"]
        declared = declared[0] if isinstance(declared, list | tuple) else declared
        return dtype_of(self, declared.dtype)

    def need(self, name: str, value: Any, *known: Any) -> None:
        """Errors: ConversionError if an argument has a value that is not imported."""
        if value not in known:
            raise self.fail(
                f"argument '{name}' is {value!r}, but must be one of {list(known)}", Code.INVALID_OP_ATTR
            )


def dtype_of(call: Call, dtype: Any) -> Any:
    """Core's dtype of torch's. Errors: ConversionError if there is none."""
    name = str(dtype).removeprefix("torch.")
    found = getattr(ms, {"bool": "bool_"}.get(name, name), None)
    if found is None:
        raise call.fail(f"the data type {name} is not imported")
    return found


def tensor_of(tensor: Any) -> ms.Tensor:
    """A weight."""
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        return ms.Tensor(tensor.float().numpy()).astype(ms.bfloat16)
    return ms.Tensor(tensor.contiguous().numpy())


def shape_of(value: Any) -> tuple:
    """Sizes of a value, numbers or formulas of open sizes."""
    return tuple(value.shape if value.traced is None else value.traced.type.shape)


def same_sizes(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether shapes are known to be equal: numbers that are, and the same formulas of open sizes."""
    return len(one) == len(other) and all(
        n is m or (type(n) is int and type(m) is int and n == m) for n, m in zip(one, other)
    )


def cast(x: Any, dtype: Any) -> Any:
    """x in a dtype; no node where it has it."""
    return x if x.dtype == dtype else ops.cast(x, dtype)


def as_tensor(value: Any, dtype: Any = ms.int64) -> Any:
    """A number or an open size as a tensor of `dtype`; a tensor, or what was passed over, as it is."""
    if isinstance(value, ms.Tensor) or value is obstacles.UNKNOWN:
        return value
    if isinstance(value, bool | int | float):
        return ms.Tensor(value, dtype)
    trace = active()
    return cast(trace.sizes.number(value, trace), dtype)


def in_dtype(call: Call, *values: Any) -> list[Any]:
    """Tensors and numbers in the dtype of the result."""
    return [cast(as_tensor(v, call.dtype), call.dtype) for v in values]
