"""Optimizers whose states are divided among the processes that train together (Rajbhandari et al. 2020,
"ZeRO", stage 1): each keeps and updates an equal part of each large Parameter, and all get the parts of all.

The parts of a step are tensors that live as long as it: nothing is kept but the states' parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mycelia import ops
from mycelia.engine.communication import mode, stages, world
from mycelia.engine.communication.share import Share
from mycelia.engine.ops.communication.collectives import gather_all
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.tensors.tensor import Parameter, Tensor

Shares = tuple[Share | None, ...]


def planned(parameters: Sequence[Parameter], least_bytes: int) -> Shares:
    """A part for each Parameter of at least `least_bytes`; None for one that all keep whole: a smaller one,
    one whose `parallel_optimizer` is False, and one that is not the same everywhere (`layerwise_parallel`).
    """
    communicator = world.group("enable_parallel_optimizer", stages.data_group("enable_parallel_optimizer"))
    rank, size = communicator.rank, communicator.size
    return tuple(
        Share(rank, size, tuple(p.shape))
        if p.parallel_optimizer and not p.layerwise_parallel and p.size >= size
        and p.size * p.dtype.itemsize >= least_bytes
        else None
        for p in parameters
    )  # fmt: skip


def part(share: Share, whole: Tensor) -> Tensor:
    """The own part [length] of a tensor."""
    begin, end = share.place
    found = whole.reshape(-1)[begin:end]
    missing = share.length - (end - begin)
    return ops.cat([found, ops.zeros((missing,), whole.dtype)]) if missing else found


def divided(share: Share | None, parameter: Parameter) -> Parameter:
    """A Parameter of the own part, if there is one."""
    if share is None:
        return parameter
    return Parameter(part(share, parameter), parameter.name, parameter.requires_grad)


def parts(shares: Shares, tensors: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    """The own parts; what has no share, what is a part already, and what another stage has, as it is."""
    return tuple(
        x if share is None or x is None or tuple(x.shape) == (share.length,) else part(share, x)
        for share, x in zip(shares, tensors)
    )


def joined(shares: Sequence[Share], gradients: Sequence[Tensor]) -> Tensor:
    """All parts of the gradients, those of each process together, flat."""
    rows = [_rows(share, gradient) for share, gradient in zip(shares, gradients)]
    return (ops.cat(rows, 1) if len(rows) > 1 else rows[0]).reshape(-1)


def cut(x: Tensor, lengths: list[int]) -> Sequence[Tensor]:
    """Pieces of these lengths."""
    return ops.split(x, lengths) if len(lengths) > 1 else [x]


def update(shares: Shares, parameters: Sequence[Parameter], change: Callable[[int, Tensor], object]) -> None:
    """Calls ``change(i, own part)``, which overwrites it, and gives all processes the parts of all; as many
    at a time as one collective takes, so that few parts are there at once. What has no share is changed.
    """
    for i, share in enumerate(shares):
        if share is None:
            change(i, parameters[i])
    for places in together(shares, parameters):
        own = []
        for i in places:
            own.append(part(shares[i], parameters[i]))  # type: ignore[arg-type]
            change(i, own[-1])
        size = shares[places[0]].size  # type: ignore[union-attr]
        group = stages.data_group("enable_parallel_optimizer")
        rows = gather_all(ops.cat(own) if len(own) > 1 else own[0], size=size, group=group)
        rows, begin = rows.reshape(size, -1), 0
        for i in places:
            share = shares[i]
            assert share is not None
            whole = rows[:, begin : begin + share.length].reshape(-1)
            assign(parameters[i], whole[: share.count].reshape(share.shape))
            begin += share.length


def _rows(share: Share, whole: Tensor) -> Tensor:
    """All parts, one in each row."""
    flat = whole.reshape(-1)
    missing = share.size * share.length - share.count
    if missing:
        flat = ops.cat([flat, ops.zeros((missing,), whole.dtype)])
    return flat.reshape(share.size, share.length)


def together(
    shares: Sequence[Share | None], tensors: Sequence[Tensor], order: Iterable[int] | None = None
) -> list[list[int]]:
    """Places of tensors with a share that one collective takes, in `order`: of one dtype, up to 25 MB of the
    whole tensors.
    """
    groups: list[list[int]] = []
    dtype, size = None, 0.0
    for i in range(len(shares)) if order is None else order:
        share, x = shares[i] if shares else None, tensors[i]
        if share is None:
            continue
        count = share.count * x.dtype.itemsize
        if not groups or x.dtype is not dtype or size + count > mode.PART_BYTES:
            groups.append([])
            dtype, size = x.dtype, 0.0
        groups[-1].append(i)
        size += count
    return groups


def is_elementwise(kind: type, base: type) -> bool:
    """Whether a class of optimizers says of its own steps that they treat each element alone: by an attribute
    `elementwise` of the class that defines the step, or of one that is derived of it.
    """
    order = kind.__mro__
    for step in ("update", "construct"):
        definer = next(c for c in order if step in vars(c))
        if definer is base:
            continue
        below = order[: order.index(definer) + 1]
        if not next((vars(c)["elementwise"] for c in below if "elementwise" in vars(c)), False):
            return False
    return True
