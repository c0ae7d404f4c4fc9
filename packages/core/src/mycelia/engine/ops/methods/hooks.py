"""Hooks on the gradients of single tensors: ``x.register_hook(function)``.

A hook belongs to the tape node that made the tensor, and sees its cotangent when all of it has arrived.
Tensors that are the variables of a gradient get their node when the gradient is asked for: their hooks wait
until then. A hook that captured code registers becomes part of the graph (`capture/hooks.py`).
"""

import itertools
import weakref

from mycelia.engine import _C, dispatch
from mycelia.engine.base import errors
from mycelia.engine.ops.methods.properties import marks, noted
from mycelia.engine.tensors.attach import attach

_numbers = itertools.count()


class TensorHookHandle:
    """What `register_hook` returns: `remove()` takes the hook away again."""

    def __init__(self, tensor, table: dict, number: int):
        self.tensor_weakref, self.id, self._table = weakref.ref(tensor), number, table

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        self._table.pop(self.id, None)


def _register_hook(self, hook):
    """Call ``hook(gradient)`` when the gradient of this tensor is known; what it returns replaces it.

    Returns a handle to remove it. In a graph a tensor may have one hook.
    Errors: TypeError unless `hook` can be called; RuntimeError for a Parameter without gradient and for a
    second hook in a graph; ValueError for a Parameter in a graph.
    """
    if not callable(hook):
        raise errors.type_error(
            "Tensor.register_hook", f"hook must be callable, but got {type(hook).__name__}"
        )
    if self._is_parameter and not getattr(self, "requires_grad", True):
        raise errors.error(
            errors.MyceliaRuntimeError,
            "Tensor.register_hook",
            "The tensor requires grad is false, which can not register tensor hook",
        )
    number, table = next(_numbers), {}
    if dispatch.tensor_hook is not None and _C.mode() & dispatch.TRACING:
        if self.traced is not None or self._is_parameter:  # nothing flows to a constant
            table[number] = hook
            dispatch.tensor_hook(self, table)
        return TensorHookHandle(self, table, number)
    notes = marks(self)
    table = notes.setdefault("hooks", table)
    if self._node is not None:
        watch(self._node, self._node_output, table)
    table[number] = hook
    return TensorHookHandle(self, table, number)


def hooks_of(tensor) -> dict | None:
    """The hooks on a tensor by number, or None."""
    return noted(tensor, "hooks")


def watch(node: _C.Node, output: int, table: dict) -> None:
    """Let the hooks of `table` see the cotangent of one output of a tape node."""
    before = node.hook
    if getattr(before, "table", None) is not table:
        node.hook = _Watch(output, table, before)


class _Watch:
    """The function behind the hooks of one tensor, in front of those of the node's other outputs."""

    __slots__ = ("before", "output", "table")

    def __init__(self, output: int, table: dict, before):
        self.output, self.table, self.before = output, table, before

    def __call__(self, output: int, ct):
        if self.before is not None:
            ct = self.before(output, ct)
        if output != self.output:
            return ct
        return hooked(self.table, ct)


def hooked(table: dict, ct):
    """The cotangent after all hooks of a table."""
    for hook in tuple(table.values()):
        changed = hook(ct)
        if changed is not None:
            ct = changed
    return ct


def _hooks(self):
    """The hooks on its gradient."""
    return list((hooks_of(self) or {}).values())


def _remove_hook(handle):
    """Take away the hook that `handle` stands for."""
    handle.remove()


attach("register_hook", _register_hook)
attach("hooks", _hooks)
attach("remove_hook", staticmethod(_remove_hook))

__all__ = []
