"""The op of core's IR for operators of a file whose results have sizes that are known only when the model runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.ir import TensorType
from mycelia.ops.define import op

OPEN = -1  # a size that shows when the model runs


@op(name="file_operator", outputs=None, dynamic=True, nondiff=True)
def file_operator(inputs: "tensors", *, kind: "any", fields: "any", types: "any"):
    """The operator `kind` of MindSpore Lite with the attributes `fields`, (name, value) each, on inputs in the
    order of the file; `types` of its results have -1 for what is not known.
    """
    raise NotImplementedError(f"operator {kind} is computed by the Lite runtime only")


@file_operator.infer
def file_operator(inputs, *, kind, fields, types):
    return types


def at_run_time(kind: str, inputs: Sequence[Any], types: Sequence[tuple[Any, Sequence[int]]], **fields: Any) -> Any:
    """The results of an operator of the file, each a new tensor of (dtype, sizes); one alone if it is one."""
    described = tuple(TensorType(dtype, tuple(shape)) for dtype, shape in types)
    made = file_operator(tuple(inputs), kind=kind, fields=tuple(sorted(fields.items())), types=described)
    return made[0] if len(made) == 1 else made
