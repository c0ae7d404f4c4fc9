"""Hooks on the values that a backward pass keeps: pack them when they are kept, unpack them when they are
used."""

from __future__ import annotations

import functools
from collections.abc import Callable

from mycelia.engine import _C
from mycelia.engine.base import errors


class saved_tensors_hooks:
    """``with saved_tensors_hooks(pack, unpack):`` ops within keep ``pack(value)`` for their gradient.

    ``unpack`` makes a Tensor of it again when the gradient is computed. `pack` may return anything, such
    as the name
    of a file. Blocks may be nested, the innermost one holds.
    """

    def __init__(self, pack_hook: Callable, unpack_hook: Callable):
        for name, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
            if not callable(hook):
                raise errors.type_error(
                    "saved_tensors_hooks", f"{name} must be callable, but got {type(hook).__name__}"
                )
        self._pair = pack_hook, unpack_hook
        self._before: list = []

    def __enter__(self) -> None:
        self._before.append(_C.set_saved_tensor_hooks(self._pair))

    def __exit__(self, *exc) -> None:
        _C.set_saved_tensor_hooks(self._before.pop())


def register_saved_tensors_hooks(pack_hook: Callable, unpack_hook: Callable) -> Callable:
    """A decorator: the whole function runs under `saved_tensors_hooks`."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def run(*args, **kwargs):
            with saved_tensors_hooks(pack_hook, unpack_hook):
                return function(*args, **kwargs)

        return run

    return decorate
