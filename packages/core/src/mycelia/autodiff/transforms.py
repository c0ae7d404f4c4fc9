"""Gradient transforms: grad, value_and_grad, vjp, jvp, jacobians, hessian, custom rules.

All are built on `Recording` and `pullback`; they nest to any order and work inside and around `jit`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from mycelia import _C, dispatch, errors
from mycelia.autodiff.reverse import Recording, ones_like, pullback, zeros_of
from mycelia.ops.control import stop_gradient

Tensor = _C.Tensor

__all__ = [
    "clip_by_global_norm", "clip_by_value", "custom_vjp", "get_grad", "grad", "hessian", "jacfwd", "jacrev",
    "jvp",
    "stop_gradient", "value_and_grad", "vjp",
]  # fmt: skip


def _flatten(value, leaves: list):
    """Collect the Tensors of nested tuples, lists and dicts;
    returns a function that rebuilds the structure.
    """
    if isinstance(value, Tensor):
        index = len(leaves)
        leaves.append(value)
        return lambda items: items[index]
    if isinstance(value, (tuple, list)):
        parts = [_flatten(v, leaves) for v in value]
        kind = type(value)
        if hasattr(value, "_fields"):
            return lambda items: kind(*(p(items) for p in parts))
        return lambda items: kind(p(items) for p in parts)
    if isinstance(value, dict):
        parts = {k: _flatten(v, leaves) for k, v in value.items()}
        return lambda items: {k: p(items) for k, p in parts.items()}
    return lambda items: value


def _positions(grad_position, n_args: int, where: str) -> tuple[int, ...]:
    positions = (grad_position,) if isinstance(grad_position, int) else tuple(grad_position)
    for p in positions:
        if isinstance(p, bool) or not isinstance(p, int):
            raise errors.type_error(
                where, f"grad_position must be an int or a tuple of int, but got {grad_position!r}"
            )
        if not 0 <= p < n_args:
            raise errors.value_error(
                where, f"grad_position {p} is out of range: the function got {n_args} arguments"
            )
    return positions


def _weights(weights, where: str) -> list:
    if isinstance(weights, Tensor):
        return [weights]
    found = list(weights)
    for w in found:
        if not isinstance(w, Tensor):
            raise errors.type_error(where, f"weights must be Parameters, but got {type(w).__name__}")
    return found


def value_and_grad(
    fn: Callable,
    grad_position: int | tuple[int, ...] | None = 0,
    weights=None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable:
    """A function that returns ``(fn(...), gradients)``.

    The gradient is of the sum of all elements of fn's output (of its first output with `has_aux`).
    `grad_position`: arguments to differentiate, an int, a tuple, or None;
    `weights`: Parameters to differentiate.
    Gradients: for an int position alone a Tensor; for a tuple a tuple; for weights alone a tuple
    (one Tensor for a single Parameter); for both a pair. With `return_ids` each gradient comes as
    ``(position or name, gradient)``.
    Errors: ValueError when neither positions nor weights are given; TypeError when an argument is no Tensor.
    """
    if grad_position is None and weights is None:
        raise errors.value_error("value_and_grad", "grad_position and weights cannot both be None")
    if not callable(fn):
        raise errors.type_error("value_and_grad", f"fn must be callable, but got {type(fn).__name__}")

    def run(*args, **kwargs):
        return _value_and_grad(fn, args, kwargs, grad_position, weights, has_aux, return_ids)

    return _named(run, fn)


def _named(run: Callable, fn: Callable) -> Callable:
    try:
        return functools.wraps(fn)(run)
    except AttributeError:  # a Cell has no __name__
        return run


def _value_and_grad(fn, args, kwargs, grad_position, weights, has_aux, return_ids):
    where = "grad"
    args = list(args)
    with Recording() as tape:
        nodes: list = []
        rebuild_args = None
        positions: tuple = ()
        if grad_position is not None:
            positions = _positions(grad_position, len(args), where)
            rebuild_args = []
            for p in positions:
                leaves: list = []
                rebuild = _flatten(args[p], leaves)
                if not leaves:
                    raise errors.type_error(
                        where,
                        f"argument {p} must be a Tensor to be differentiated, "
                        f"but got {type(args[p]).__name__}",
                    )
                watched = [tape.watch(t) for t in leaves]
                args[p] = rebuild([w[0] for w in watched])
                rebuild_args.append((rebuild, leaves, len(nodes)))
                nodes.extend(w[1] for w in watched)
        parameters = _weights(weights, where) if weights is not None else []
        first_weight = len(nodes)
        nodes.extend(tape.watch_in_place(w) for w in parameters)
        result = fn(*args, **kwargs)
        # Integer arguments keep no gradient; what fn returns must not carry
        # this recording's variables outside.
        outputs: list = []
        rebuild_result = _flatten(result, outputs)
        sources = outputs
        if has_aux:
            if not isinstance(result, (tuple, list)) or len(result) < 2:
                raise errors.value_error(where, "with has_aux=True the function must return (output, aux...)")
            sources = []
            _flatten(result[0], sources)
        if not sources:
            raise errors.type_error(
                where, f"the function must return a Tensor, but returned {type(result).__name__}"
            )
        outer = tape._old_level
        _C.set_tape_level(outer)
        sources = [s for s in sources if s.dtype.is_floating or s.dtype.is_complex]
        found = pullback(sources, [ones_like(s) for s in sources], nodes, release=outer == 0)
    if outer == 0:
        outputs = [o._detach() if o._node is not None else o for o in outputs]
    value = rebuild_result(outputs)

    def gradient(tensor, index):
        g = found[index]
        return zeros_of(tensor) if g is None else g

    of_args = None
    if grad_position is not None:
        grads = []
        for (rebuild, leaves, start), p in zip(rebuild_args, positions):
            g = rebuild([gradient(t, start + i) for i, t in enumerate(leaves)])
            grads.append((p, g) if return_ids else g)
        of_args = grads[0] if isinstance(grad_position, int) else tuple(grads)
    if weights is None:
        return value, of_args
    of_weights = tuple(gradient(w, first_weight + i) for i, w in enumerate(parameters))
    if return_ids:
        of_weights = tuple((w.name, g) for w, g in zip(parameters, of_weights))
    if isinstance(weights, Tensor):
        of_weights = of_weights[0]
    return value, (of_weights if of_args is None else (of_args, of_weights))


def grad(
    fn: Callable,
    grad_position: int | tuple[int, ...] | None = 0,
    weights=None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable:
    """A function that returns the gradients of `fn`; with `has_aux` it returns ``(gradients, aux...)``.

    Arguments as `value_and_grad`.
    """
    inner = value_and_grad(fn, grad_position, weights, has_aux, return_ids)

    def run(*args, **kwargs):
        value, gradients = inner(*args, **kwargs)
        if has_aux:
            aux = value[1:]
            return gradients, (aux[0] if len(aux) == 1 else tuple(aux))
        return gradients

    return _named(run, fn)


def get_grad(gradients, identifier):
    """The gradient of an argument position or Parameter from what ``grad(..., return_ids=True)`` returned.

    Raises ValueError when it is not among them.
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
        raise errors.value_error("get_grad", f"there is no gradient for {identifier!r}")
    return found


def vjp(fn: Callable, *inputs, weights=None, has_aux: bool = False):
    """``(output, vjp_function)``, or ``(output, vjp_function, aux...)`` with `has_aux`.

    ``vjp_function(*cotangents)`` gives the gradients of the inputs (one Tensor for one input, else a tuple);
    with `weights` a pair of those and the weights' gradients.  It may be called again and again.
    """
    with Recording() as tape:
        watched = [tape.watch(_tensor(x, "vjp", i)) for i, x in enumerate(inputs)]
        parameters = _weights(weights, "vjp") if weights is not None else []
        nodes = [n for _, n in watched] + [tape.watch_in_place(w) for w in parameters]
        result = fn(*(x for x, _ in watched))
    aux: tuple = ()
    if has_aux:
        result, aux = result[0], tuple(result[1:])
    outputs: list = []
    rebuild = _flatten(result, outputs)

    def run(*cotangents):
        given: list = []
        _flatten(cotangents, given)
        if len(given) != len(outputs):
            raise errors.value_error(
                "vjp", f"{len(outputs)} cotangents are needed, one per output, but got {len(given)}"
            )
        for out, ct in zip(outputs, given):
            if ct.shape != out.shape:
                raise errors.shape_error(
                    "vjp", f"a cotangent has shape {list(ct.shape)}, but its output {list(out.shape)}"
                )
        found = pullback(outputs, given, nodes, release=False)
        found = [zeros_of(t) if g is None else g for g, t in zip(found, [*inputs, *parameters])]
        of_inputs = found[: len(inputs)]
        first = of_inputs[0] if len(of_inputs) == 1 else tuple(of_inputs)
        return first if weights is None else (first, tuple(found[len(inputs) :]))

    plain = rebuild([o._detach() for o in outputs] if _C.tape_level() == 0 else outputs)
    return (plain, run, *aux)


def _tensor(value, where: str, index: int) -> Tensor:
    if not isinstance(value, Tensor):
        raise errors.type_error(where, f"input {index} must be a Tensor, but got {type(value).__name__}")
    return value


def jvp(fn: Callable, inputs, v, has_aux: bool = False):
    """``(output, J v)``, the derivative along `v`; with `has_aux` also the auxiliary outputs.

    `inputs`, `v`: a Tensor or a tuple of Tensors with equal shapes. The transpose of the transpose: the vjp
    is linear in its cotangent, so its own vjp at any point is the jvp (Townsend 2017).
    """
    single = isinstance(inputs, Tensor)
    xs = (inputs,) if single else tuple(inputs)
    vs = (v,) if isinstance(v, Tensor) else tuple(v)
    if len(xs) != len(vs):
        raise errors.value_error("jvp", f"inputs has {len(xs)} members, but v has {len(vs)}")
    for i, (x, d) in enumerate(zip(xs, vs)):
        if _tensor(x, "jvp", i).shape != _tensor(d, "jvp", i).shape:
            raise errors.shape_error(
                "jvp", f"inputs[{i}] has shape {list(x.shape)}, but v[{i}] has {list(d.shape)}"
            )
    with Recording() as outer:
        output, pull, *aux = vjp(fn, *xs, has_aux=has_aux)
        outputs: list = []
        rebuild = _flatten(output, outputs)
        watched = [outer.watch(zeros_of(o)) for o in outputs]
        pulled = pull(*(u for u, _ in watched))
        pulled = (pulled,) if isinstance(pulled, Tensor) else pulled
    found = pullback(list(pulled), list(vs), [n for _, n in watched], release=False)
    tangents = rebuild([zeros_of(o) if g is None else g for g, o in zip(found, outputs)])
    output = rebuild([o._detach() for o in outputs] if _C.tape_level() == 0 else outputs)
    return (output, tangents, *aux)


def jacrev(fn: Callable, grad_position: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that returns the Jacobian of `fn` row by row (reverse mode): shape out.shape + in.shape.

    One array per position for a tuple of positions.
    """

    def run(*args):
        from mycelia.ops.create import zeros
        from mycelia.ops.joining import stack
        from mycelia.ops.shape import reshape

        positions = _positions(grad_position, len(args), "jacrev")

        def of_positions(*chosen):
            full = list(args)
            for p, c in zip(positions, chosen):
                full[p] = c
            return fn(*full)

        output, pull, *aux = vjp(of_positions, *(args[p] for p in positions), has_aux=has_aux)
        if not isinstance(output, Tensor):
            raise errors.type_error("jacrev", "the function must return one Tensor")
        rows = []
        for i in range(output.size):
            unit = zeros((output.size,), output.dtype)
            unit[i] = 1
            found = pull(reshape(unit, output.shape))
            rows.append((found,) if isinstance(found, Tensor) else found)
        jacobians = [
            reshape(stack([r[k] for r in rows]), output.shape + args[p].shape)
            if rows
            else zeros(output.shape + args[p].shape)
            for k, p in enumerate(positions)
        ]
        result = jacobians[0] if isinstance(grad_position, int) else tuple(jacobians)
        return (result, *aux) if has_aux else result

    return _named(run, fn)


def jacfwd(fn: Callable, grad_position: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that returns the Jacobian of `fn` column by column (forward mode):
    shape out.shape + in.shape.
    """

    def run(*args):
        from mycelia.ops.create import zeros
        from mycelia.ops.joining import stack
        from mycelia.ops.shape import reshape

        positions = _positions(grad_position, len(args), "jacfwd")
        results, aux = [], []
        for p in positions:

            def of_one(x, p=p):
                full = list(args)
                full[p] = x
                return fn(*full)

            x = args[p]
            columns = []
            shape = None
            for i in range(x.size):
                unit = zeros((x.size,), x.dtype)
                unit[i] = 1
                output, tangent, *aux = jvp(of_one, x, reshape(unit, x.shape), has_aux=has_aux)
                shape = output.shape
                columns.append(tangent)
            if not columns:
                raise errors.value_error("jacfwd", f"argument {p} has no elements")
            results.append(reshape(stack(columns, axis=-1), shape + x.shape))
        result = results[0] if isinstance(grad_position, int) else tuple(results)
        return (result, *aux) if has_aux else result

    return _named(run, fn)


def hessian(fn: Callable, grad_position: int = 0) -> Callable:
    """A function that returns the matrix of second derivatives of a scalar function:
    shape in.shape + in.shape.
    """
    return jacrev(grad(fn, grad_position), grad_position)


def custom_vjp(fn: Callable, rule: Callable) -> Callable:
    """`fn` with its own gradient: ``rule(*inputs, output, cotangent)`` returns the inputs' gradients.

    Output and cotangent are as `fn` returns them (nested tuples for several outputs); the rule returns one
    Tensor or None for one input, else a tuple.  This is what a Cell's `bprop` method means.
    """

    def run(*args, **kwargs):
        # While a graph is captured, the rule becomes part of it.
        if dispatch.custom_rule is not None and _C.mode() & dispatch.TRACING:
            return dispatch.custom_rule(fn, rule, args, kwargs)
        inputs: list = []
        _flatten(args, inputs)
        if _C.tape_level() == 0 or not any(t._node is not None for t in inputs):
            return fn(*args, **kwargs)
        level = _C.set_tape_level(0)
        try:
            result = fn(*_without_history(args), **kwargs)
        finally:
            _C.set_tape_level(level)
        outputs: list = []
        rebuild = _flatten(result, outputs)
        outputs = [o._detach() for o in outputs]
        count = len(outputs)

        def gradients(*values):  # the outputs, which the tape keeps, and their cotangents
            made, cts = values[:count], values[count:]
            cts = [zeros_of(o) if ct is None else ct for ct, o in zip(cts, made)]
            found = rule(*args, rebuild(made), rebuild(cts))
            found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
            if len(args) == 1 and len(found) != 1:
                found = (found,)  # one argument that holds several Tensors
            if len(found) < len(args):
                raise errors.value_error(
                    name,
                    f"bprop must return {len(args)} gradients, one per argument, but returned {len(found)}",
                )
            flat: list = []
            for position, (arg, g) in enumerate(zip(args, found)):
                leaves: list = []
                _flatten(arg, leaves)
                if not leaves:
                    continue
                members: list = [None] * len(leaves) if g is None else []
                _flatten(g, members)
                if len(members) != len(leaves):
                    raise errors.type_error(
                        name,
                        f"bprop must return {len(leaves)} Tensor(s) or None "
                        f"as the gradient of argument {position}, "
                        f"but returned {type(g).__name__}: {g!r:.60}",
                    )
                flat.extend(members)
            return tuple(flat)

        name = getattr(fn, "__qualname__", "custom_vjp")
        _C.custom(name, tuple(inputs), tuple(outputs), gradients, True)
        return rebuild(outputs)

    return run


def _without_history(args):
    leaves: list = []
    rebuild = _flatten(args, leaves)
    return rebuild([t._detach() for t in leaves])


def clip_by_value(x, clip_value_min=None, clip_value_max=None):
    """Limit the elements of a Tensor, or of each Tensor in a list or tuple,
    to [clip_value_min, clip_value_max].
    """
    from mycelia.ops.clipping import clamp

    if isinstance(x, (list, tuple)):
        return type(x)(clip_by_value(t, clip_value_min, clip_value_max) for t in x)
    return clamp(x, clip_value_min, clip_value_max)


def clip_by_global_norm(x: Sequence, clip_norm: float = 1.0, use_norm=None):
    """Scale the Tensors so that the 2-norm of all elements together is at most `clip_norm`.

    `use_norm`: a norm that is already known.  Raises ValueError for a clip_norm that is not positive.
    """
    from mycelia.ops.clipping import maximum
    from mycelia.ops.math import mul, square
    from mycelia.ops.math import sqrt as root

    if not isinstance(x, (list, tuple)) or not x:
        raise errors.type_error(
            "clip_by_global_norm", f"x must be a list or tuple of Tensors, but got {type(x).__name__}"
        )
    if not clip_norm > 0:
        raise errors.value_error("clip_by_global_norm", f"clip_norm must be positive, but got {clip_norm}")
    if use_norm is None:
        total = square(x[0]).sum()
        for t in x[1:]:
            total = total + square(t).sum()
        use_norm = root(total)
    scale = clip_norm / maximum(use_norm, clip_norm)
    return type(x)(mul(t, scale) for t in x)
