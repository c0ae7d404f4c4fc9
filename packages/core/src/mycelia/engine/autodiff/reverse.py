"""The reverse-mode driver: from outputs and cotangents back to chosen variables.

The walk itself is `_C.backward`. It calls gradient rules, which are ordinary ops on Tensors: with data in
them they give numbers, under capture they give graph nodes, and inside an outer transform they are recorded
in turn. That is why one driver serves the tape, the graph and every order.
"""

from __future__ import annotations

from mycelia.engine import _C
from mycelia.engine.autodiff import divided_weights
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.methods.hooks import hooks_of, watch


class Recording:
    """``with Recording() as tape:`` records ops; `watch` marks variables, `gradients` differentiates.

    Variables that are watched directly (Parameters) get their earlier tape node back at the end.
    """

    def __init__(self):
        self._restore: list = []
        self._nodes: dict[int, _C.Node] = {}  # of what is in `_restore`
        self._old_level = 0

    def __enter__(self) -> Recording:
        self._old_level = _C.set_tape_level(_C.tape_level() + 1)
        return self

    def __exit__(self, *exc) -> None:
        for tensor, place, part in self._restore:
            if part is not None:
                divided_weights.reopen(tensor, part)
            tensor._tape_place = place
            _left.pop(id(tensor), None)
        _C.set_tape_level(self._old_level)

    def watch(self, tensor: _C.Tensor) -> tuple[_C.Tensor, _C.Node]:
        """An alias of `tensor` that is a variable of this recording, with its node."""
        alias = tensor._detach()
        alias._node = node = _leaf(tensor)
        return alias, node

    def watch_in_place(self, tensor: _C.Tensor) -> _C.Node:
        """Make `tensor` itself a variable until the recording ends; once, if it comes again."""
        node = self._nodes.get(id(tensor))
        if node is None:
            place, part = tensor._tape_place, divided_weights.close(tensor)
            self._restore.append((tensor, place, part))
            node = self._nodes[id(tensor)] = _leaf(tensor)
            tensor._node = node
        return node


_left: dict[int, tuple] = {}  # tape places of variables that do not require gradients for the time being


def set_followed(tensor: _C.Tensor, value: bool) -> None:
    """While `value` is False, recordings in progress do not see `tensor`."""
    if value:
        place = _left.pop(id(tensor), None)
        if place is not None:
            tensor._tape_place = place
    elif tensor._node is not None:
        _left[id(tensor)] = tensor._tape_place
        tensor._tape_place = None


def transpose(
    outputs: list, cotangents: list, variables: list[_C.Node], *, release: bool, ready=None
) -> list:
    """Gradients of sum(output * cotangent) for each variable; None where nothing flows.

    `release` frees the kept values of nodes as soon as they were used: the walk cannot be repeated.
    ``ready(i, gradient)`` is called on the way, as soon as the gradient of variable i is whole; if it returns
    True it has taken it, and there is None in its place.
    Of complex numbers these are plain derivatives, as the rules have them; users want `pullback`.
    """
    from mycelia.engine.ops.elementwise.math import add

    told = () if ready is None else (ready,)
    return _C.backward(outputs, cotangents, variables, add, release, *told)


def _leaf(tensor: _C.Tensor) -> _C.Node:
    node = _C.leaf(tensor)
    hooks = hooks_of(tensor)
    if hooks:
        watch(node, 0, hooks)
    return node


def pullback(outputs: list, cotangents: list, variables: list[_C.Node], *, release: bool, ready=None) -> list:
    """`transpose` with complex cotangents and gradients conjugated: a step against the gradient of a real
    function goes downhill, and where f is holomorphic the gradient is ``ct * conj(f')``.
    """
    cotangents = [conjugated(ct) for ct in cotangents]
    tell = ready and (lambda i, g: ready(i, conjugated(g)))
    return [conjugated(g) for g in transpose(outputs, cotangents, variables, release=release, ready=tell)]


def conjugated(tensor):
    """The conjugate of a complex Tensor; anything else as it is."""
    if tensor is None or not tensor.dtype.is_complex:
        return tensor
    from mycelia.engine.ops.elementwise.complex_numbers import conj

    return conj(tensor)


_scalar_ones: dict = {}  # dtype -> 0-d array of its bits


def ones_like(tensor: _C.Tensor) -> _C.Tensor:
    """The cotangent of a sum: ones of the tensor's type."""
    from mycelia.engine.ops.arrays.create import full

    if tensor.ndim:
        return full(tensor.shape, 1, dtype=tensor.dtype)
    # The usual case, a loss: copying 0-d bits is the quickest way to a fresh tensor.
    bits = _scalar_ones.get(tensor.dtype)
    if bits is None:
        bits = _scalar_ones[tensor.dtype] = full((), 1, dtype=tensor.dtype)._bits().copy()
    return _C.from_array(bits, tensor.dtype, False)


def zeros_of(type_or_tensor: TensorType | _C.Tensor) -> _C.Tensor:
    """Zeros of the given type."""
    from mycelia.engine.ops.arrays.create import full

    return full(divided_weights.whole_shape(type_or_tensor), 0, dtype=type_or_tensor.dtype)
