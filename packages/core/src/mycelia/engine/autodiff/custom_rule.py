"""Functions with a gradient of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable

from mycelia.engine import _C, dispatch
from mycelia.engine.autodiff.reverse import conjugated, zeros_of
from mycelia.engine.autodiff.structures import flatten
from mycelia.engine.base import errors


class _WithRule:
    """A function that is told its gradient later."""

    def __init__(self, fn: Callable) -> None:
        functools.update_wrapper(self, fn)
        self._run = fn

    def defbwd(self, bwd: Callable) -> None:
        """Set the rule of the gradient."""
        self._run = custom_vjp(self.__wrapped__, bwd)

    def __call__(self, *args, **kwargs):
        return self._run(*args, **kwargs)


def custom_vjp(fn: Callable, rule: Callable | None = None, fill: Callable | None = None) -> Callable:
    """`fn` with its own gradient: ``rule(*inputs, output, cotangent)`` returns the inputs' gradients.

    Output and cotangent are as `fn` returns them (nested tuples for several outputs); the rule returns one
    Tensor or None for one input, else a tuple.  This is what a Cell's `bprop` method means.
    As a decorator, without a rule: the function gets it by `fn.defbwd(rule)`. `fill` says, after the call,
    whether a cotangent that nothing flows into is zeros, else it is None.
    """
    if rule is None:
        return _WithRule(fn)

    def run(*args, **kwargs):
        # While a graph is captured, the rule becomes part of it.
        if dispatch.custom_rule is not None and _C.mode() & dispatch.TRACING:
            return dispatch.custom_rule(fn, rule, args, kwargs)
        inputs: list = []
        flatten(args, inputs)
        if _C.tape_level() == 0 or not any(t._node is not None for t in inputs):
            return fn(*args, **kwargs)
        level = _C.set_tape_level(0)
        try:
            result = fn(*_without_history(args), **kwargs)
        finally:
            _C.set_tape_level(level)
        outputs: list = []
        rebuild = flatten(result, outputs)
        outputs = [o._detach() for o in outputs]
        count = len(outputs)

        def gradients(*values):  # the outputs, which the tape keeps, and their cotangents
            made, cts = values[:count], values[count:]
            if fill is None or fill():
                cts = [zeros_of(o) if ct is None else ct for ct, o in zip(cts, made)]
            cts = list(map(conjugated, cts))
            found = rule(*args, rebuild(made), rebuild(cts))
            found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
            if len(args) == 1 and len(found) != 1:
                found = (found,)  # one argument that holds several Tensors
            if len(found) < len(args):
                raise errors.error(
                    errors.MyceliaRuntimeError,
                    name,
                    f"bprop must return {len(args)} gradients, one per argument, but returned {len(found)}",
                )
            flat: list = []
            for position, (arg, g) in enumerate(zip(args, found)):
                leaves: list = []
                flatten(arg, leaves)
                if not leaves:
                    continue
                members: list = [None] * len(leaves) if g is None else []
                flatten(g, members)
                if len(members) != len(leaves):
                    raise errors.error(
                        errors.MyceliaRuntimeError,
                        name,
                        f"bprop must return {len(leaves)} Tensor(s) or None "
                        f"as the gradient of argument {position}, "
                        f"but returned {type(g).__name__}: {g!r:.60}",
                    )
                fitting = (_of_shape(m, leaf, name) for m, leaf in zip(members, leaves))
                flat.extend(map(conjugated, fitting))
            return tuple(flat)

        name = getattr(fn, "__qualname__", "custom_vjp")
        _C.custom(name, tuple(inputs), tuple(outputs), gradients, True)
        return rebuild(outputs)

    return run


def _of_shape(gradient, tensor, name: str):
    """What a bprop returned for `tensor`: summed over axes that broadcasting had repeated."""
    if gradient is None or gradient.shape == tensor.shape:
        return gradient
    from mycelia.engine.ops.infer import broadcast_shapes, unbroadcast

    try:
        if broadcast_shapes(gradient.shape, tensor.shape) == gradient.shape:
            return unbroadcast(gradient, tensor.shape)
    except ValueError:
        pass
    raise errors.error(
        errors.MyceliaRuntimeError,
        name,
        f"bprop returned a gradient of shape {list(gradient.shape)} "
        f"for an input of shape {list(tensor.shape)}",
    )


def _without_history(args):
    leaves: list = []
    rebuild = flatten(args, leaves)
    return rebuild([t._detach() for t in leaves])
