"""The table of rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia.engine.base.dtypes import DType
from mycelia.engine.ir import Node
from mycelia.io.onnx.types import SINCE

_rules: dict[str, Callable] = {}


def rule(*names: str) -> Callable:
    """Decorator: the function writes the ops of these names."""

    def enter(function: Callable) -> Callable:
        for name in names:
            _rules[name] = function
        return function

    return enter


def find(op: Any, opset: int) -> Callable | None:
    """The rule of an op for a version of the operators, or None."""
    if op.name in _rules:
        return _rules[op.name]
    kind = op.definition.onnx
    return by_name if kind and SINCE.get(kind, 0) <= opset else None


def by_name(w: Any, node: Node, *inputs: Any) -> Any:
    """The operator that the op names, with the same inputs and attributes."""
    same = node.inputs[0].type.dtype is node.outputs[0].type.dtype
    dtype: DType | None = None if same else node.outputs[0].type.dtype
    return w.op(node.op.definition.onnx, *inputs, dtype=dtype, **node.attrs)
