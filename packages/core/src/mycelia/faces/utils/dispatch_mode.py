"""``with MyMode():`` every op that is called within goes through a method of one's own."""

from __future__ import annotations

import functools

from mycelia.engine import _C, dispatch

_NAMES = {"add": "AddExt", "sub": "SubExt"}  # where MindSpore's eager ops are not called as in MindIR


class _Called:
    """The op that was called: its name in MindSpore, and how to run it."""

    __slots__ = ("attrs", "name", "op")

    def __init__(self, op: _C.Op, inputs: tuple, attrs: tuple):
        self.op = op
        self.attrs = dict(zip((a.name for a in op.definition.attrs), attrs))
        self.name = _NAMES.get(op.name) or op.definition.mindir or op.name.title().replace("_", "")
        if op.name == "mul" and not all(isinstance(x, _C.Tensor) for x in inputs):
            self.name = "Muls"

    def __call__(self, *args):
        return self.op(*args, **self.attrs)


class MsDispatchMode:
    """Subclass it and define ``__ms_dispatch__(self, func, args, kwargs)``, which gives the op's result.

    `func` has a name and runs the op: ``func(*args)``. What the method itself calls goes to the block
    around this
    one, or runs. An instance also decorates functions.
    """

    def __ms_dispatch__(self, func, args, kwargs=None):
        raise NotImplementedError(
            "MsDispatchMode: a subclass must define __ms_dispatch__(self, func, args, kwargs)"
        )

    def __enter__(self) -> MsDispatchMode:
        self._old = dispatch.push_interceptor(self._intercept, dispatch.OBSERVING)
        return self

    def __exit__(self, *exc) -> None:
        dispatch.pop_interceptor(self._old)

    def __call__(self, function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return run

    def _intercept(self, op, inputs, attrs):
        dispatch.pop_interceptor(self._old)
        try:
            return self.__ms_dispatch__(_Called(op, inputs, attrs), tuple(inputs), {})
        finally:
            dispatch.push_interceptor(self._intercept, dispatch.OBSERVING)
