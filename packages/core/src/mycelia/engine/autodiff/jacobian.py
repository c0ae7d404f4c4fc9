"""Jacobians by reverse and forward mode, the Hessian, and linearization."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mycelia.engine import _C
from mycelia.engine.autodiff.jacobian_products import jvp, vjp
from mycelia.engine.autodiff.transforms import _named, _positions, check_transform
from mycelia.engine.base import errors

Tensor = _C.Tensor

__all__ = ["hessian", "jacfwd", "jacrev", "linearize"]


def _units(size: int, like: Tensor):
    """The unit vectors of a space of `size` elements, each in the shape of `like`."""
    from mycelia.engine.ops.arrays.create import zeros
    from mycelia.engine.ops.arrays.shape import reshape

    for i in range(size):
        unit = zeros((size,), like.dtype)
        unit[i] = 1
        yield reshape(unit, like.shape)


def _outputs_of(result, where: str) -> tuple[Tensor, ...]:
    outputs = (result,) if isinstance(result, Tensor) else result
    if not isinstance(outputs, (tuple, list)) or not all(isinstance(o, Tensor) for o in outputs):
        raise errors.type_error(
            where, f"the function must return Tensors, but returned {type(result).__name__}"
        )
    return tuple(outputs)


def _arranged(blocks: Sequence[Sequence[Tensor]]):
    """Blocks [output][input]: a level with one member is left out."""
    rows = [row[0] if len(row) == 1 else tuple(row) for row in blocks]
    return rows[0] if len(rows) == 1 else tuple(rows)


def _of_positions(fn: Callable, args: tuple, positions: tuple[int, ...]) -> Callable:
    """`fn` as a function of the arguments at `positions` alone."""

    def called(*chosen):
        full = list(args)
        for p, c in zip(positions, chosen):
            full[p] = c
        return fn(*full)

    return called


def _checked(where: str, args: tuple, grad_position) -> tuple[int, ...]:
    positions = _positions(grad_position, len(args), where)
    for p in positions:
        if not isinstance(args[p], Tensor):
            raise errors.type_error(
                where, f"argument {p} must be a Tensor to be differentiated, but got {type(args[p]).__name__}"
            )
    return positions


def jacrev(fn: Callable, grad_position: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that returns the Jacobian of `fn` row by row (reverse mode): shape out.shape + in.shape.

    A tuple over several positions, and around it one over several outputs; ``(jacobian, aux)`` with
    `has_aux`. Errors: as `grad`.
    """
    check_transform("jacrev", fn, has_aux)

    def run(*args):
        from mycelia.engine.ops.arrays.create import zeros
        from mycelia.engine.ops.arrays.joining import stack
        from mycelia.engine.ops.arrays.shape import reshape

        positions = _checked("jacrev", args, grad_position)
        called = _of_positions(fn, args, positions)
        result, pull, *aux = vjp(called, *(args[p] for p in positions), has_aux=has_aux)
        outputs = _outputs_of(result, "jacrev")
        zero = [zeros(o.shape, o.dtype) for o in outputs]
        blocks = []
        for k, output in enumerate(outputs):
            rows = [pull(*zero[:k], unit, *zero[k + 1 :]) for unit in _units(output.size, output)]
            blocks.append(
                [
                    reshape(stack([r[i] for r in rows]), output.shape + args[p].shape)
                    if rows
                    else zeros(output.shape + args[p].shape)
                    for i, p in enumerate(positions)
                ]
            )
        return (_arranged(blocks), *aux) if has_aux else _arranged(blocks)

    return _named(run, fn)


def jacfwd(fn: Callable, grad_position: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that returns the Jacobian of `fn` column by column (forward mode):
    shape out.shape + in.shape; the result is arranged as `jacrev`'s.
    """
    check_transform("jacfwd", fn, has_aux)

    def run(*args):
        from mycelia.engine.ops.arrays.joining import stack
        from mycelia.engine.ops.arrays.shape import reshape

        positions = _checked("jacfwd", args, grad_position)
        of_inputs = []
        aux: list = []
        for p in positions:
            x = args[p]
            called = _of_positions(fn, args, (p,))
            columns = []
            for unit in _units(x.size, x):
                output, tangent, *aux = jvp(called, x, unit, has_aux=has_aux)
                outputs = _outputs_of(output, "jacfwd")
                columns.append(_outputs_of(tangent, "jacfwd"))
            if not columns:
                raise errors.value_error("jacfwd", f"argument {p} has no elements")
            of_inputs.append(
                [
                    reshape(stack([c[k] for c in columns], axis=-1), output.shape + x.shape)
                    for k, output in enumerate(outputs)
                ]
            )
        arranged = _arranged(list(zip(*of_inputs)))
        return (arranged, *aux) if has_aux else arranged

    return _named(run, fn)


def hessian(fn: Callable, grad_position: int = 0) -> Callable:
    """A function that returns the matrix of second derivatives of a scalar function:
    shape in.shape + in.shape.
    """
    from mycelia.engine.autodiff.transforms import grad

    return jacrev(grad(fn, grad_position), grad_position)


def linearize(fn: Callable, inputs):
    """``(fn(*inputs), jvp_function)``: `jvp_function` takes a tangent, or a tuple of them for several
    inputs, and returns the derivative of `fn` at `inputs` along it.

    Errors: TypeError unless `inputs` is a Tensor, or a tuple or list of Tensors.
    """
    if not isinstance(inputs, (Tensor, tuple, list)):
        raise errors.type_error(
            "linearize",
            f"inputs must be a Tensor, or a tuple or list of them, but got {type(inputs).__name__}",
        )
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)

    def directional(*tangents):
        if len(tangents) == 1:
            return jvp(fn, given, tangents[0])[1]
        return jvp(fn, given, tangents)[1]

    return fn(*given), directional
