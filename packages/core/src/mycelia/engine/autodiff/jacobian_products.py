"""Products with the Jacobian of a function: of its transpose with cotangents, of itself with tangents.

Both are built on `Recording` and `pullback`; they nest to any order and work inside and around `jit`.
"""

from __future__ import annotations

from collections.abc import Callable

from mycelia.engine import _C
from mycelia.engine.autodiff.reverse import Recording, pullback, zeros_of
from mycelia.engine.autodiff.structures import flatten
from mycelia.engine.autodiff.transforms import check_transform, of_type, split_aux, weights_of
from mycelia.engine.base import errors

Tensor = _C.Tensor


def vjp(fn: Callable, *inputs, weights=None, has_aux: bool = False):
    """``(output, vjp_function)``, or ``(output, vjp_function, aux)`` with `has_aux`.

    ``vjp_function(*cotangents)`` gives a tuple with the gradient of each input; with `weights` a pair of it
    and the weights' gradients.  It may be called again and again.
    """
    check_transform("vjp", fn, has_aux)
    with Recording() as tape:
        leaves: list = []
        rebuild_inputs = flatten(inputs, leaves)
        for i, x in enumerate(inputs):
            if not isinstance(x, (Tensor, tuple, list)):
                raise errors.type_error("vjp", f"input {i} must be a Tensor, but got {type(x).__name__}")
        watched = [tape.watch(x) for x in leaves]
        parameters = weights_of(weights, "vjp") if weights is not None else []
        nodes = [n for _, n in watched] + [tape.watch_in_place(w) for w in parameters]
        result = fn(*rebuild_inputs([x for x, _ in watched]))
    aux = None
    if has_aux:
        result, aux = split_aux(result, "vjp")
    outputs: list = []
    rebuild = flatten(result, outputs)
    aux_leaves: list = []
    rebuild_aux = flatten(aux, aux_leaves)
    variables = [*leaves, *parameters]

    def run(*cotangents):
        given: list = []
        flatten(cotangents, given)
        if len(given) != len(outputs):
            raise errors.value_error(
                "vjp", f"{len(outputs)} cotangents are needed, one per output, but got {len(given)}"
            )
        for out, ct in zip(outputs, given):
            if ct.shape != out.shape:
                raise errors.shape_error(
                    "vjp", f"a cotangent has shape {list(ct.shape)}, but its output {list(out.shape)}"
                )
        pairs = [(out, ct) for out, ct in zip(outputs, given) if out._node is not None]
        found = pullback([out for out, _ in pairs], [ct for _, ct in pairs], nodes, release=False)
        found = [of_type(g, t) for g, t in zip(found, variables)]
        of_inputs = rebuild_inputs(found[: len(leaves)])
        if weights is None:
            return of_inputs
        of_weights = tuple(found[len(leaves) :])
        return of_inputs, (of_weights[0] if isinstance(weights, Tensor) else of_weights)

    if _C.tape_level() == 0:
        plain = rebuild([o._detach() for o in outputs])
        aux = rebuild_aux([o._detach() for o in aux_leaves])
    else:
        plain = rebuild(outputs)
    return (plain, run, aux) if has_aux else (plain, run)


def _tensor(value, where: str, index: int) -> Tensor:
    if not isinstance(value, Tensor):
        raise errors.type_error(where, f"input {index} must be a Tensor, but got {type(value).__name__}")
    return value


def jvp(fn: Callable, inputs, v, has_aux: bool = False):
    """``(output, J v)``, the derivative along `v`; with `has_aux` also the auxiliary outputs.

    `inputs`, `v`: a Tensor or a tuple of Tensors; `v` is broadcast to the shapes of `inputs`. The transpose
    of the transpose: the vjp is linear in its cotangent, so its own vjp at any point is the jvp
    (Townsend 2017).
    """
    xs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    vs = (v,) if isinstance(v, Tensor) else tuple(v)
    if len(xs) != len(vs):
        raise errors.value_error("jvp", f"inputs has {len(xs)} members, but v has {len(vs)}")
    vs = tuple(_direction(x, d, i) for i, (x, d) in enumerate(zip(xs, vs)))
    with Recording() as outer:
        output, pull, *aux = vjp(fn, *xs, has_aux=has_aux)
        outputs: list = []
        rebuild = flatten(output, outputs)
        watched = [outer.watch(zeros_of(o)) for o in outputs]
        pulled = pull(*(u for u, _ in watched))
    pairs = [(p, d) for p, d in zip(pulled, vs) if p._node is not None]
    found = pullback([p for p, _ in pairs], [d for _, d in pairs], [n for _, n in watched], release=False)
    tangents = rebuild([of_type(g, o) for g, o in zip(found, outputs)])
    output = rebuild([o._detach() for o in outputs] if _C.tape_level() == 0 else outputs)
    return (output, tangents, *aux)


def _direction(x, d, index: int) -> Tensor:
    """The tangent `d` of input `x`, in its shape."""
    _tensor(x, "jvp", index)
    _tensor(d, "jvp", index)
    if x.shape == d.shape:
        return d
    try:
        return d.broadcast_to(x.shape)
    except ValueError:
        raise errors.shape_error(
            "jvp", f"inputs[{index}] has shape {list(x.shape)}, but v[{index}] has {list(d.shape)}"
        ) from None
