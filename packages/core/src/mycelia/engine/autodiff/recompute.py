"""Recomputation: a block whose values are not kept for the backward pass but computed again there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia.engine import _C, dispatch
from mycelia.engine.autodiff.reverse import Recording, transpose, zeros_of
from mycelia.engine.autodiff.structures import flatten
from mycelia.engine.base import errors
from mycelia.engine.ops.control_flow.control import _recomputed, stop_gradient
from mycelia.engine.ops.random.generator import _streams

__all__ = ["recompute"]


def recompute(block: Any, *args: Any, **kwargs: Any) -> Any:
    """``block(*args, **kwargs)`` that keeps only the arguments for the gradient and runs `block` again there.

    `block`: a Cell. Random numbers are drawn again as they were, and running statistics move once. In a
    compiled function it takes effect if the gradient is taken inside of it. Errors: TypeError for `block`.
    """
    if not hasattr(block, "construct"):
        raise errors.type_error("recompute", f"block must be a Cell, but got {type(block).__name__}")
    return run_twice(block, lambda a: block(*a, **kwargs), args)


def run_twice(block: Any, run: Callable[[tuple], Any], args: tuple) -> Any:
    """``run(args)``, which is a call of the Cell `block`, and once more where the gradient is wanted."""
    inputs: list = []
    rebuild = flatten(args, inputs)
    parameters = list(block.get_parameters())
    variables = [p for p in parameters if p._node is not None]
    followed = [i for i, t in enumerate(inputs) if t._node is not None]
    if _C.tape_level() == 0 or not (variables or followed):
        return run(args)
    generators = (_streams.default_generator(), *_streams.by_seed.values())
    states = [*(p for p in parameters if not p.requires_grad), *(g._state for g in generators)]
    before = [stop_gradient(s) for s in states]
    level = _C.set_tape_level(0)
    try:
        result = run(args)
    finally:
        _C.set_tape_level(level)
    outputs: list = []
    rebuild_result = flatten(result, outputs)
    outputs = [o._detach() for o in outputs]
    smooth = [i for i, o in enumerate(outputs) if o.dtype.is_floating or o.dtype.is_complex]

    def gradients(*cts: Any) -> list:
        outer = _C.tape_level()
        flowing = next(ct for ct in cts if ct is not None)
        tracing = bool(_C.mode() & dispatch.TRACING)
        now = [stop_gradient(s) for s in states]
        _set(states, before)
        try:
            with Recording() as tape:
                again = [_recomputed(t, flowing) if tracing else t for t in inputs]
                for i in followed:
                    if tracing:
                        again[i]._tape_place = inputs[i]._tape_place
                watched = [tape.watch(again[i]) for i in followed]
                for i, (alias, _) in zip(followed, watched):
                    again[i] = alias
                nodes = [node for _, node in watched] + [tape.watch_in_place(p) for p in variables]
                made: list = []
                flatten(run(rebuild(again)), made)
        finally:
            _set(states, now)
        pairs = [
            (made[i], zeros_of(made[i]) if ct is None else ct)
            for i, ct in zip(smooth, cts)
            if made[i]._node is not None
        ]
        return transpose([o for o, _ in pairs], [ct for _, ct in pairs], nodes, release=outer == 0)

    sources = (*(inputs[i] for i in followed), *variables)
    _C.custom(type(block).__name__, sources, tuple(outputs[i] for i in smooth), gradients)
    return rebuild_result(outputs)


def _set(tensors: list, values: list) -> None:
    for tensor, value in zip(tensors, values):
        tensor._assign(value)
