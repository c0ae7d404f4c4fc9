"""Weights of which each process keeps a part: a Cell gathers those that it uses while it computes, and again
where its gradient needs them, so that between the two nobody keeps them whole (Rajbhandari et al. 2020,
"ZeRO", stage 3).

A Cell uses Parameters that are attributes of it, and those of other Cells that its methods read by their
path: ``self.embedding.embedding_table``.
"""

from __future__ import annotations

import dis
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from mycelia import ops
from mycelia.engine import _C
from mycelia.engine.autodiff.divided_weights import part_of
from mycelia.engine.base import errors
from mycelia.engine.capture.trace import of_this_thread
from mycelia.engine.communication import stages
from mycelia.engine.communication.share import Share
from mycelia.engine.ir.graph import Value
from mycelia.engine.ops.communication.collectives import gather_all
from mycelia.engine.tensors.divided import CLOSED
from mycelia.engine.tensors.tensor import Parameter, Tensor


def gather(shares: Sequence[Share], own: Sequence[Tensor]) -> list[Tensor]:
    """The wholes of which all processes have these parts [length], which are of one dtype, by one
    collective.
    """
    size = shares[0].size
    group = stages.shard_group("enable_parallel_optimizer", size)
    rows = gather_all(ops.cat(own) if len(own) > 1 else own[0], size=size, group=group)
    rows, begin, found = rows.reshape(size, -1), 0, []
    for share in shares:
        whole = rows[:, begin : begin + share.length].reshape(-1)
        found.append(whole[: share.count].reshape(share.shape))
        begin += share.length
    return found


class _Kept(NamedTuple):
    """Stands for a gathered weight among the values that a gradient needs."""

    share: Share
    part: Tensor
    shape: tuple[int, ...]


class _Open(NamedTuple):
    share: Share
    part: Tensor
    whole: Tensor


class _Opened(threading.local):
    def __init__(self) -> None:
        self.weights: list[_Open] = []  # that this thread has gathered, the innermost Cell's last


_opened = _Opened()


def around(cell: Any, function: Callable) -> Callable:
    """`function`, which computes what `cell` does, with the divided weights that the Cell uses gathered."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        weights = [p for p in _used(cell) if p.divided and not _is_open(p)]
        if not weights:
            return function(*args, **kwargs)
        with _open(weights):
            return function(*args, **kwargs)

    return run


def _is_open(weight: Parameter) -> bool:
    return weight.own_part is not None and weight.traced is not CLOSED


@contextmanager
def _open(weights: Sequence[Parameter]) -> Iterator[None]:
    trace = of_this_thread()
    if trace is not None and trace.root.is_for_file:
        raise errors.error(
            errors.NotSupportedError, "export", f"the weight {weights[0].name!r} is divided among processes, "
            "which a file cannot be", hint="save_checkpoint joins it: export from one process",
        )  # fmt: skip
    held = []
    for weight in weights:
        shown, place, part = _alias(weight), weight._tape_place, part_of(weight)
        if weight.own_part is None:
            shown = part
        held.append((weight, shown, place, weight.own_part, part))
    depth = len(_opened.weights)
    hooks = None
    try:
        for dtype in dict.fromkeys(weight.dtype for weight in weights):
            some = [row for row in held if row[0].dtype is dtype]
            wholes = gather([w.share for w, *_ in some], [part for *_, part in some])
            for (weight, _, place, _, part), whole in zip(some, wholes):
                weight.own_part = part
                weight._assign(whole)
                weight._tape_place = place
                _opened.weights.append(_Open(weight.share, part, whole))
        if _C.tape_level():
            hooks = _C.set_saved_tensor_hooks(None), True
            _C.set_saved_tensor_hooks(_hooks(hooks[0]))
        yield
    finally:
        if hooks is not None:
            _C.set_saved_tensor_hooks(hooks[0])
        del _opened.weights[depth:]
        for weight, shown, place, own_part, _ in held:
            weight._assign(shown)
            weight._tape_place, weight.own_part = place, own_part


def _alias(tensor: Tensor) -> Tensor:
    return _C.empty(tensor.dtype, ())._assign(tensor)


def _hooks(outer: tuple[Callable, Callable] | None) -> tuple[Callable, Callable]:
    """How values for gradients are kept: gathered weights as the parts of them, others as they are, or as
    the hooks around say.
    """

    def pack(value: Tensor) -> Any:
        for weight in reversed(_opened.weights):
            if _is_of(value, weight.whole):
                return _Kept(weight.share, weight.part, value.shape)
        return value if outer is None or outer[0] is pack else outer[0](value)

    def unpack(kept: Any) -> Tensor:
        if type(kept) is _Kept:
            return gather([kept.share], [kept.part])[0].reshape(kept.shape)
        return kept if outer is None else outer[1](kept)

    return pack, unpack


def _is_of(value: Tensor, whole: Tensor) -> bool:
    """Whether a value is a gathered weight, perhaps in another shape."""
    if value.dtype is not whole.dtype or value.size != whole.size:
        return False
    if whole.traced is None:
        return value.traced is None and value._data_ptr == whole._data_ptr
    return _source(value.traced) is _source(whole.traced)


def _source(value: Value) -> Value:
    """Of what this is another shape."""
    while value is not None and value.producer is not None and value.producer.op.definition.view:
        value = value.producer.inputs[0]
    return value


def _used(cell: Any) -> list[Parameter]:
    """The Parameters that the Cell's own code may take. What stands in a ParameterTuple alone counts unless
    it is a list of what is trained: that of an optimizer, or of a step around the Cells that have it.
    """
    own = {name: p for name, p in cell._params.items() if p is not None}
    found = {id(p): p for name, p in own.items() if cell.__dict__.get(name) is p}
    if len(found) < len(own) and not getattr(type(cell), "updates_parameters", False):
        below = {id(p) for _, one in cell.cells_and_names() if one is not cell for p in one._params.values()}
        found.update((id(p), p) for p in own.values() if id(p) not in below)
    for path in _paths(type(cell)):
        at: Any = cell
        for name in path:
            at = vars(at).get(name) if hasattr(at, "construct") else None
        if isinstance(at, Parameter):
            found[id(at)] = at
    return list(found.values())


@functools.cache
def _paths(kind: type) -> tuple[tuple[str, ...], ...]:
    """Chains of two attributes and more of `self` that methods of a class read."""
    found = {}
    for cls in kind.__mro__:
        for name, method in vars(cls).items():
            code = getattr(method, "__code__", None)
            if code is None or name == "__init__" or not code.co_argcount:
                continue
            path: tuple[str, ...] | None = None
            for step in dis.get_instructions(code):
                if step.opname.startswith("LOAD_FAST") and step.argrepr.endswith(code.co_varnames[0]):
                    path = ()
                elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and path is not None:
                    path = (*path, step.argval)
                    if len(path) > 1:
                        found[path] = None
                else:
                    path = None
    return tuple(found)
