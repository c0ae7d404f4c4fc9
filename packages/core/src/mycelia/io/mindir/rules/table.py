"""The table of rules, and what rules share: types, scalars, casts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycelia.engine.base.dtypes import DType
from mycelia.engine.ir import Node, TensorType
from mycelia.engine.ir.types import agree
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.compositions import Unsupported
from mycelia.io.mindir.values import id_of_dtype

_rules: dict[str, Callable] = {}
_steps: dict[str, Callable] = {}


def rule(*names: str) -> Callable:
    """Decorator: the function writes the ops of these names."""

    def enter(function: Callable) -> Callable:
        for name in names:
            _rules[name] = function
        return function

    return enter


def step(*names: str) -> Callable:
    """Decorator: the function writes the ops of these names as operators that change Parameters in place.

    It gets the GraphWriter, the node, the names of its inputs, references where they are changed, and the
    state of the Parameters; it returns the name of the call, with the places of results behind the changed
    Parameters where the op has such, or None for what the operator lacks.
    """

    def enter(function: Callable) -> Callable:
        for name in names:
            _steps[name] = function
        return function

    return enter


def find_step(op: Any) -> Callable | None:
    """What writes an op as an operator that changes Parameters, or None."""
    return _steps.get(op.name)


def find(op: Any) -> Callable | None:
    """The rule of an op, or None."""
    if op.name in _rules:
        return _rules[op.name]
    definition = op.definition
    return by_name if definition.mindir and not definition.updates else None


def by_name(w: Any, node: Node, inputs: list) -> Any:
    """The operator that the op names, with the same inputs and attributes."""
    definition = node.op.definition
    operator, out = definition.mindir, result_type(node)
    arguments = definition.group(tuple(inputs), (len(inputs) - len(definition.params) + 1,))
    arguments = [w.tuple(a) if isinstance(a, tuple) else a for a in arguments]
    attributes = {name: plain(value) for name, value in node.attrs.items()}
    if definition.mindir_attributes:
        name = w.primitive(operator, *arguments, out=out, **attributes)
    else:
        name = w.op(operator, *arguments, *attributes.values(), out=out)
    return [w.item(name, i, t) for i, t in enumerate(out)] if isinstance(out, tuple) else name


def result_type(node: Node) -> Any:
    """The type of the result: one TensorType, or a tuple of them where the op returns a tuple."""
    types = tuple(v.type for v in node.outputs)
    return types[0] if len(types) == 1 and node.op.definition.outputs is not None else types


def plain(value: Any) -> Any:
    """An attribute as MindIR has it: type ids for dtypes."""
    return id_of_dtype(value) if isinstance(value, DType) else value


def attributes(node: Node, *names: str) -> tuple:
    """The values of these attributes of a node."""
    return tuple(node.attrs[name] for name in names)


def shaped(like: TensorType, shape: Sequence[int]) -> TensorType:
    """The type of tensors like `like` in another shape."""
    return TensorType(like.dtype, tuple(shape))


def scalar(value: Any, dtype: DType) -> Tensor:
    """A 0-d tensor."""
    return Tensor(np.asarray(value), dtype)


def cast_to(w: Any, name: Any, source: TensorType, dtype: DType) -> Any:
    """The value in another dtype."""
    return (
        name
        if source.dtype is dtype
        else w.op("Cast", name, id_of_dtype(dtype), out=TensorType(dtype, source.shape))
    )


def reshape_to(w: Any, name: Any, type: TensorType, shape: Sequence[int]) -> Any:
    """The value in another shape."""
    return (
        name
        if len(shape) == type.rank and all(map(agree, shape, type.shape))
        else w.op("Reshape", name, tuple(shape), out=shaped(type, shape))
    )


def require_static(node: Node, *types: TensorType) -> None:
    """Errors: Unsupported when a size of one of the types is not known."""
    if not all(t.is_static for t in types):
        raise Unsupported(f"{node.op.name} with sizes that are not known")
