"""Hooks on gradients that captured code registers: they become part of the graph.

A hooked tensor passes the identity, whose gradient is what the hook makes of it. Every use of the tensor
counts, as with hooks outside of graphs, also one that came before the hook: so the identity stands right
behind what makes the tensor.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from mycelia.engine import _C
from mycelia.engine.base import errors
from mycelia.engine.capture import source
from mycelia.engine.capture.calls import callee
from mycelia.engine.capture.gradients import custom_call
from mycelia.engine.capture.trace import Trace
from mycelia.engine.ops.methods.hooks import hooked, watch
from mycelia.engine.tensors.tensor import Tensor


def register(trace: Trace, tensor: Tensor, table: dict[int, Callable[[Tensor], Any]]) -> None:
    """`tensor`, from now on with the hook in `table` on its gradient, unless that is removed."""
    if tensor._is_parameter:
        raise errors.value_error(
            "jit",
            "Register hook for Parameter inside graph is not supported.",
            hint="register it before the function is called",
        )
    value = trace.value_of(tensor)
    code = _user_code()
    if trace.root.hooked.get(value) is code:
        raise errors.error(
            errors.MyceliaRuntimeError,
            "jit",
            "It is not supported to register multiple hooks for a Tensor.",
            hint="one function can do what both do",
        )
    for number, hook in table.items():
        table[number] = callee(hook)
    if _C.tape_level() and tensor._node is not None:  # the gradient is a part of this graph
        watch(tensor._node, tensor._node_output, table)
        trace.root.hooked[value] = code
        return

    def rule(x: Tensor, out: Tensor, ct: Tensor) -> Tensor:
        return hooked(table, ct)

    nodes = trace.graph.nodes
    before = len(nodes)
    made = custom_call(_same, rule, (tensor,), {})
    fresh = trace.value_of(made)
    if value in trace.owned and len(nodes) == before + 1:
        node = nodes.pop()
        first = nodes.index(value.producer) + 1 if value.producer is not None else 0
        for user in nodes[first:]:
            user.inputs = [fresh if v is value else v for v in user.inputs]
        nodes.insert(first, node)
    trace.see(tensor)
    tensor._assign(made)
    trace.root.hooked[fresh] = code


def _same(tensor: Tensor) -> Tensor:
    from mycelia.engine.ops.arrays.shape import reshape

    return reshape(tensor, tensor.shape)


def _user_code() -> CodeType | None:
    frame = sys._getframe(1)
    while frame is not None and source.is_library_file(frame.f_code.co_filename):
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else frame.f_code


Trace.tensor_hook = register
