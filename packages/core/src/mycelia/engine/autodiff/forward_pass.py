"""Forward passes that wait for their gradient.

A call of a Cell that `set_grad` has marked records what its gradient needs. The next gradient of this Cell by
the same arguments starts there instead of running the Cell again. So in a training step that calls the
network for its loss and then a gradient function, running statistics and counters move once, and the loss and
its gradient see the same random numbers. A pass is used once, and only if its arguments and the trainable
Parameters of the Cell are still what they were.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from mycelia.engine import _C, dispatch
from mycelia.engine.autodiff.reverse import Recording
from mycelia.engine.autodiff.structures import flatten

Tensor = _C.Tensor

_MOST = 4  # that one Cell keeps, each with the values that its gradient needs: GANs and triplets need 2 or 3
_PLACE = object()  # stands for a Tensor in the structure of arguments
_NUMBERS = (bool, int, float, complex)


class ForwardPass:
    """One recorded call: `nodes` are the tape nodes of its variables by the id of their Tensor, `outputs` its
    Tensors on the tape, and `rebuild` makes of Tensors what the call returned. `hooked` are nodes that the
    gradient must reach, wanted or not, since hooks of Cells lie on the way."""

    __slots__ = (
        "__weakref__", "arguments", "contents", "hooked", "nodes", "outputs", "owner", "rebuild", "structure",
        "training",
    )  # fmt: skip

    def __init__(self, cell: Any, args: tuple, kwargs: dict) -> None:
        self.owner, self.training = id(cell), cell.training
        self.nodes: dict[int, _C.Node] = {}
        self.hooked: list[_C.Node] = []
        self.outputs: list[Tensor] = []
        self.rebuild: Callable[[list], Any] | None = None
        self.contents: list[tuple[weakref.ref, Any]] = []
        self.structure, leaves = _taken_apart(args, kwargs)
        me = weakref.ref(self)

        def forget(_: Any) -> None:  # nobody can ask for the gradient by an argument that is gone
            found = me()
            if found is not None:
                found.outputs, found.nodes, found.hooked, found.contents = [], {}, [], []

        self.arguments = [weakref.ref(t, forget) for t in leaves]

    def record(self, cell: Any, args: tuple, kwargs: dict) -> Any:
        """Runs the Cell and returns what it returns, free of the tape."""
        leaves: list[Tensor] = []
        build = flatten((args, kwargs), leaves)
        tracing = bool(_C.mode() & dispatch.TRACING)
        variables = [t for t in leaves if is_smooth(t)]
        with Recording() as tape:
            for i, t in enumerate(leaves):
                if not is_smooth(t):
                    self.nodes[id(t)] = _C.leaf(t)  # nothing flows there
                elif not tracing and not t._node_output:
                    self.nodes[id(t)] = tape.watch_in_place(t)  # as `differentiate` does
                else:
                    leaves[i], self.nodes[id(t)] = tape.watch(t)
            of_arguments = list(self.nodes.values())
            for _, part in cell.cells_and_names():
                if part._backward_hooks or part._backward_pre_hooks:
                    self.hooked = of_arguments
                for parameter in part._params.values():
                    if parameter is None or id(parameter) in self.nodes:
                        continue
                    if parameter.requires_grad:
                        variables.append(parameter)
                    if parameter.requires_grad or tracing and is_smooth(parameter):
                        self.nodes[id(parameter)] = tape.watch_in_place(parameter)
            given, named = build(leaves)
            result = cell._run(given, named)
            made: list[Tensor] = []
            self.rebuild = flatten(result, made)
            # In objects of our own: a Parameter that is returned as it is leaves the tape with the recording.
            self.outputs = [t._detach()._assign(t) for t in made]
        self.contents = [(weakref.ref(t), _content(t)) for t in variables]
        return self.rebuild([t if t._node is None else t._detach() for t in made])

    def is_of(self, cell: Any, args: tuple, kwargs: dict) -> bool:
        """Whether it was this call."""
        if self.owner != id(cell) or not self.nodes:
            return False
        structure, leaves = _taken_apart(args, kwargs)
        return _equal(structure, self.structure) and all(
            reference() is t for reference, t in zip(self.arguments, leaves, strict=True)
        )

    def is_current(self) -> bool:
        """Whether its arguments and Parameters still are what they were."""
        return bool(self.nodes) and all(
            (tensor := reference()) is not None and _holds(tensor, content)
            for reference, content in self.contents
        )


def keep(cell: Any, args: tuple, kwargs: dict) -> Any:
    """A call of a marked Cell outside of all recordings; its pass waits for a gradient."""
    made = ForwardPass(cell, args, kwargs)
    result = made.record(cell, args, kwargs)
    passes = _passes_of(cell)
    left = [p for p in passes if not p.is_of(cell, args, kwargs) and p.is_current()]
    passes[:] = [*left[-_MOST + 1 :], made]
    return result


def take(cell: Any, args: tuple, kwargs: dict, wanted: Sequence[Tensor]) -> ForwardPass | None:
    """The pass from which the gradients by `wanted` of this call start, or None; it waits no more."""
    if not (hasattr(cell, "construct") and cell.requires_grad) or _C.tape_level():
        return None
    passes = _passes_of(cell)
    for found in passes:
        if found.is_of(cell, args, kwargs):
            passes.remove(found)
            same = found.training == cell.training and found.is_current()
            return found if same and all(id(t) in found.nodes for t in wanted) else None
    return None


def is_smooth(tensor: Tensor) -> bool:
    """Whether a gradient can flow to it."""
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def _passes_of(cell: Any) -> list[ForwardPass]:
    if _C.mode() & dispatch.TRACING:
        return dispatch.forward_passes
    return cell.__dict__.setdefault("_forward_passes", [])


def _taken_apart(args: tuple, kwargs: dict) -> tuple[Any, list[Tensor]]:
    """The structure of arguments, and the Tensors in it."""
    leaves: list[Tensor] = []
    build = flatten((args, kwargs), leaves)
    return build([_PLACE] * len(leaves)), leaves


def _equal(a: Any, b: Any) -> bool:
    """Equal numbers and texts of the same type in equal containers; anything else must be the same object."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(_equal, a.values(), b.values()))
    return isinstance(a, (*_NUMBERS, str)) and a == b


def _content(tensor: Tensor) -> Any:
    """Something that tells whether the tensor's value is still the same: a graph value, or the memory, which
    is copied before it is changed because this looks at it, too."""
    return tensor.traced if tensor.traced is not None else tensor._detach()


def _holds(tensor: Tensor, content: Any) -> bool:
    if not isinstance(content, Tensor):
        return tensor.traced is content
    return tensor.traced is None and tensor._data_ptr == content._data_ptr and tensor.shape == content.shape
