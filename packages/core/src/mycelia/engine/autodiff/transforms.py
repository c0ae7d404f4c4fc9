"""Gradients of functions: grad, value_and_grad, and what they are made of.

All are built on `Recording` and `pullback`; they nest to any order and work inside and around `jit`.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from operator import not_
from typing import Any

from mycelia.engine import _C, dispatch
from mycelia.engine.autodiff.forward_pass import ForwardPass, take
from mycelia.engine.autodiff.reverse import Recording, ones_like, pullback, set_followed, zeros_of
from mycelia.engine.autodiff.structures import flatten
from mycelia.engine.base import config, errors
from mycelia.engine.ops.control_flow.control import stop_gradient
from mycelia.engine.ops.methods.hooks import hooked, hooks_of

Tensor = _C.Tensor


class _NoGradients(threading.local):
    active = False


no_gradients = _NoGradients()  # `active` inside of `no_grad`

__all__ = ["differentiate", "get_grad", "grad", "split_cotangent", "stop_gradient", "value_and_grad"]


def _positions(grad_position, n_args: int, where: str) -> tuple[int, ...]:
    """The arguments to differentiate, checked."""
    if isinstance(grad_position, int):
        positions: tuple = (int(grad_position),)
    elif isinstance(grad_position, tuple):
        positions = grad_position
    else:
        raise errors.type_error(
            where, f"grad_position must be an int or a tuple of int, but got {grad_position!r}"
        )
    if not positions:
        raise errors.error(errors.MyceliaRuntimeError, where, "grad_position must not be an empty tuple")
    for p in positions:
        if not isinstance(p, int):
            raise errors.type_error(
                where, f"grad_position must be an int or a tuple of int, but got {grad_position!r}"
            )
        if not 0 <= p < n_args:
            kind = errors.MyceliaValueError if p < 0 else errors.MyceliaRuntimeError
            message = f"grad_position {p} is out of range: the function got {n_args} arguments"
            raise errors.error(kind, where, message)
    if len(set(positions)) != len(positions):
        raise errors.value_error(where, f"grad_position has duplicate members: {positions}")
    return positions


def weights_of(weights, where: str) -> list:
    if isinstance(weights, Tensor):
        return [weights]
    if not isinstance(weights, (list, tuple)):
        raise errors.type_error(
            where, f"weights must be a Parameter, or a list or tuple of them, but got {weights!r:.60}"
        )
    found = list(weights)
    for w in found:
        if not isinstance(w, Tensor):
            raise errors.type_error(where, f"weights must be Parameters, but got {type(w).__name__}")
    return found


def check_transform(where: str, fn, has_aux, return_ids=False, sens_param=False) -> None:
    if not callable(fn):
        raise errors.type_error(where, f"fn must be callable, but got {type(fn).__name__}")
    for name, value in (("has_aux", has_aux), ("return_ids", return_ids), ("sens_param", sens_param)):
        if not isinstance(value, bool):
            raise errors.type_error(where, f"{name} must be a bool, but got {type(value).__name__}")


def value_and_grad(
    fn: Callable,
    grad_position: int | tuple[int, ...] | None = 0,
    weights=None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable:
    """A function that returns ``(fn(...), gradients)``.

    The gradient is of the sum of all elements of fn's output (of its first output with `has_aux`); with
    `sens_param` the last argument is the cotangent of that output instead of ones.
    `grad_position`: arguments to differentiate, an int, a tuple, or None;
    `weights`: Parameters to differentiate.
    Gradients: for one position a Tensor, for several a tuple; for weights alone a tuple
    (one Tensor for a single Parameter); for both a pair. With `return_ids` each gradient comes as
    ``(position or name, gradient)``.
    Errors: ValueError when neither positions nor weights are given; TypeError when an argument is no Tensor.
    """
    if grad_position is None and weights is None:
        raise errors.value_error("value_and_grad", "grad_position and weights cannot both be None")
    check_transform("value_and_grad", fn, has_aux, return_ids, sens_param)
    if grad_position is not None and not isinstance(grad_position, (int, tuple)):
        raise errors.type_error(
            "value_and_grad", f"grad_position must be an int or a tuple of int, but got {grad_position!r}"
        )

    def run(*args, **kwargs):
        cotangent = None
        if sens_param:
            args, kwargs, cotangent = split_cotangent(args, kwargs)
        if not kwargs:
            return _value_and_grad(fn, args, grad_position, weights, has_aux, return_ids, cotangent)
        called = _by_position(fn, len(args), tuple(kwargs))
        args = (*args, *kwargs.values())
        return _value_and_grad(called, args, grad_position, weights, has_aux, return_ids, cotangent)

    return _named(run, fn)


def split_cotangent(args: tuple, kwargs: dict) -> tuple[tuple, dict, object]:
    """Arguments of a call with `sens_param`: (arguments of the function, its keywords, cotangent)."""
    if "sens" in kwargs:
        rest = dict(kwargs)
        return args, rest, rest.pop("sens")
    if not args:
        raise errors.type_error("grad", "with sens_param=True the last argument must be the cotangent")
    return args[:-1], kwargs, args[-1]


def _by_position(fn: Callable, count: int, names: tuple[str, ...]) -> Callable:
    """`fn` with its keywords as further positions: they are differentiated like arguments."""

    def positional(*args):
        return fn(*args[:count], **dict(zip(names, args[count:])))

    positional.called = fn, count, names
    return positional


def _named(run: Callable, fn: Callable) -> Callable:
    try:
        return functools.wraps(fn)(run)
    except AttributeError:  # a Cell has no __name__
        return run


def _source_tensors(result, has_aux: bool, where: str) -> list:
    """The output Tensors whose sum is differentiated."""
    if has_aux:
        if not isinstance(result, tuple) or len(result) < 2:
            raise errors.value_error(
                where, "with has_aux=True the function must return a tuple (output, aux...)"
            )
        result = result[0]
    sources: list = []
    flatten(result, sources)
    return sources


def _cotangents(sources: list, given) -> list:
    """One cotangent per source: ones, or what the caller gave in the same structure."""
    if given is None:
        return [ones_like(s) for s in sources]
    flat: list = []
    flatten(given, flat)
    if not flat and isinstance(given, (int, float)) and len(sources) == 1:
        from mycelia.engine.ops.arrays.create import full

        return [full(sources[0].shape, given, dtype=sources[0].dtype)]
    if len(flat) != len(sources):
        raise errors.value_error(
            "grad", f"the cotangent must have one Tensor per output: {len(sources)}, but it has {len(flat)}"
        )
    for source, ct in zip(sources, flat):
        if ct.shape != source.shape:
            raise errors.shape_error(
                "grad", f"the cotangent has shape {list(ct.shape)}, but its output {list(source.shape)}"
            )
    return [ct if ct.dtype is s.dtype else ct.astype(s.dtype) for s, ct in zip(sources, flat)]


class _Watched(threading.local):
    parameters: Sequence[Any] = ()
    ready: Callable[[int, Tensor], bool] | None = None


_watched = _Watched()


@contextlib.contextmanager
def watching(parameters: Sequence[Any], ready: Callable[[int, Tensor], bool]) -> Iterator[None]:
    """The first eager gradient of this thread by exactly these Parameters calls ``ready(i, gradient)`` as
    soon as one of them is whole, while the others are still computed. Those to which nothing flows are not
    told. Where `ready` returns True it has taken the gradient, which is None in the end.
    """
    _watched.parameters, _watched.ready = tuple(parameters), ready
    try:
        yield
    finally:
        _watched.parameters, _watched.ready = (), None


def _watcher(parameters: Sequence[Any]) -> Callable[[int, Tensor], bool] | None:
    """Who is told of these gradients, once."""
    ready = _watched.ready
    if ready is None or len(parameters) != len(_watched.parameters):
        return None
    if any(a is not b for a, b in zip(parameters, _watched.parameters)):
        return None
    _watched.ready = None
    return ready


#: Who hears of gradients: called with the function, its arguments and the Parameters before an eager one that
#: is within no other, each gives what is called with the function's value.
listeners: list[Callable[[Callable, list, list], Callable[[Any], None]]] = []


def differentiate(fn, args, positions: Sequence[int], parameters: list, has_aux=False, cotangent=None):
    """``(value, [gradient per position], [gradient per parameter])``: what all reverse transforms rest on.

    Each gradient has the structure and dtypes of its argument. `cotangent`: of the output, else ones. Eagerly
    an argument is a variable wherever the Tensor object is used, as in MindSpore: twice among the arguments,
    say, or in an outer variable of `fn`. A call of a marked Cell that waits for its gradient is not repeated.
    """
    where = "grad"
    args = list(args)
    eager = config.get("mode") == config.PYNATIVE_MODE and not _C.mode()
    if eager and no_gradients.active:
        raise errors.error(errors.MyceliaRuntimeError, "In no_grad context, you can not calculate gradient")
    is_within = _C.mode() & dispatch.TRACING or _C.tape_level()
    told = [listener(fn, args, parameters) for listener in ([] if is_within else listeners)]
    frozen = config.get("mode") == config.PYNATIVE_MODE and not _C.mode() & dispatch.TRACING
    held = [frozen and _is_frozen(w) for w in parameters]
    tell_ready = None if is_within else _watcher(parameters)
    whole: dict[int, Tensor | None] = {}  # gradients of Parameters that were told; None: taken

    def ready(i: int, gradient: Tensor) -> bool:
        i -= first_weight
        if 0 <= i < len(parameters) and not (frozen and _is_frozen(parameters[i])):
            given = of_type(gradient, parameters[i])
            is_taken = tell_ready(i, given)
            whole[i] = None if is_taken else given
            return is_taken
        return False

    known = _forward_pass(fn, args, [*(args[p] for p in positions), *compress(parameters, map(not_, held))])
    with Recording() as tape:
        nodes: list = []
        rebuild_args = []
        for p in positions:
            leaves: list = []
            rebuild = flatten(args[p], leaves)
            rebuild_args.append((rebuild, leaves, len(nodes)))
            if known is not None:
                nodes.extend(known.nodes[id(t)] for t in leaves)
                continue
            watched = [
                (t, tape.watch_in_place(t)) if eager and not t._node_output else tape.watch(t) for t in leaves
            ]
            args[p] = rebuild([w[0] for w in watched])
            nodes.extend(w[1] for w in watched)
        first_weight = len(nodes)
        for weight, is_held in zip(parameters, held):
            if known is None:
                nodes.append(tape.watch_in_place(weight))
                if is_held:
                    set_followed(weight, False)
            else:
                nodes.append(_C.leaf(weight) if is_held else known.nodes[id(weight)])
        nodes.extend([] if known is None else known.hooked)
        result = fn(*args) if known is None else known.rebuild(known.outputs)
        # What fn returns must not carry this recording's variables outside.
        outputs: list = []
        rebuild_result = flatten(result, outputs)
        sources = outputs if not has_aux else _source_tensors(result, True, where)
        outer = tape._old_level
        _C.set_tape_level(outer)
        pairs = [(s, ct) for s, ct in zip(sources, _cotangents(sources, cotangent)) if s._node is not None]
        found = pullback(
            [s for s, _ in pairs], [ct for _, ct in pairs], nodes, release=outer == 0,
            ready=tell_ready and ready,
        )  # fmt: skip
    if outer == 0:
        outputs = [o._detach() if o._node is not None else o for o in outputs]

    of_args = [
        rebuild([of_type(found[start + i], t) for i, t in enumerate(leaves)])
        for rebuild, leaves, start in rebuild_args
    ]
    found_of_weights = [  # `fn` may have frozen one
        None if frozen and _is_frozen(w) else g for g, w in zip(found[first_weight:], parameters)
    ]
    of_weights = [
        whole[i]
        if i in whole and (g is not None or whole[i] is None)
        else None
        if g is None and getattr(w, "elsewhere", False)
        else of_type(g, w)
        for i, (g, w) in enumerate(zip(found_of_weights, parameters))
    ]
    if eager:  # hooks see zeros too
        for i, (gradient, weight) in enumerate(zip(found_of_weights, parameters)):
            hooks = hooks_of(weight) if gradient is None else None
            if hooks and of_weights[i] is not None:
                of_weights[i] = of_type(hooked(hooks, of_weights[i]), weight)
    value = rebuild_result(outputs)
    for tell in told:
        tell(value)
    return value, of_args, of_weights


def _forward_pass(fn, args: list, wanted: list) -> ForwardPass | None:
    """The recorded call of a Cell that `fn(*args)` would repeat, for the gradients of `wanted`."""
    cell, count, names = getattr(fn, "called", (fn, len(args), ()))
    leaves: list = []
    flatten(wanted, leaves)
    return take(cell, tuple(args[:count]), dict(zip(names, args[count:])), leaves)


def _is_frozen(weight) -> bool:
    """A Parameter that says it has no gradient: eagerly it gets zeros, as in MindSpore."""
    return getattr(weight, "requires_grad", True) is False


def _holds_tensor(value) -> bool:
    leaves: list = []
    flatten(value, leaves)
    return bool(leaves)


def _value_and_grad(fn, args, grad_position, weights, has_aux, return_ids, cotangent):
    positions: tuple = ()
    if grad_position is not None:
        given = _positions(grad_position, len(args), "grad")
        positions = tuple(p for p in given if _holds_tensor(args[p]))  # numbers have no gradient
    parameters = weights_of(weights, "grad") if weights is not None else []
    value, grads, of_weights = differentiate(fn, args, positions, parameters, has_aux, cotangent)
    of_args = None
    if grad_position is not None:
        if return_ids:
            grads = list(zip(positions, grads))
        of_args = grads[0] if len(grads) == 1 else tuple(grads)
        if return_ids and weights is None and grad_position not in (0, (0,)) and len(grads) == 1:
            of_args = (of_args,)
    if weights is None:
        return value, of_args
    if return_ids:
        of_weights = [(w.name, g) for w, g in zip(parameters, of_weights)]
    of_weights = of_weights[0] if isinstance(weights, Tensor) else tuple(of_weights)
    return value, (of_weights if of_args is None else (of_args, of_weights))


def grad(
    fn: Callable,
    grad_position: int | tuple[int, ...] | None = 0,
    weights=None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable:
    """A function that returns the gradients of `fn`; with `has_aux` it returns ``(gradients, (aux, ...))``.

    Arguments as `value_and_grad`.
    """
    check_transform("grad", fn, has_aux, return_ids, sens_param)
    inner = value_and_grad(fn, grad_position, weights, has_aux, return_ids, sens_param)

    def run(*args, **kwargs):
        value, gradients = inner(*args, **kwargs)
        return (gradients, tuple(value[1:])) if has_aux else gradients

    return _named(run, fn)


def get_grad(gradients, identifier):
    """The gradient of an argument position or Parameter from what ``grad(..., return_ids=True)`` returned.

    Raises RuntimeError when it is not among them.
    """
    wanted = identifier.name if isinstance(identifier, Tensor) else identifier

    def search(item):
        if (
            isinstance(item, tuple)
            and len(item) == 2
            and isinstance(item[0], (int, str))
            and item[0] == wanted
        ):
            return item[1]
        if isinstance(item, tuple):
            for member in item:
                found = search(member)
                if found is not None:
                    return found
        return None

    found = search(gradients)
    if found is None:
        raise errors.error(errors.MyceliaRuntimeError, "get_grad", f"there is no gradient for {identifier!r}")
    return found


def split_aux(result, where: str) -> tuple:
    """``(output, aux)`` of a function with auxiliary outputs: one of them alone, several as a tuple."""
    if not isinstance(result, tuple) or len(result) < 2:
        raise errors.value_error(where, "with has_aux=True the function must return a tuple (output, aux...)")
    return result[0], (result[1] if len(result) == 2 else tuple(result[1:]))


def of_type(gradient, tensor):
    """The gradient of `tensor` in its dtype; zeros where nothing flowed."""
    if gradient is None:
        return zeros_of(tensor)
    return gradient if gradient.dtype is tensor.dtype else gradient.astype(tensor.dtype)
