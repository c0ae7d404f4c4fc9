"""Optimizers whose states are divided among the processes that train together (Rajbhandari et al. 2020,
"ZeRO"): each keeps and updates an equal part of each large Parameter, and all get the parts of all (stage 1).
Each may have its part of the gradients alone (stage 2), and of the weights between the steps (stage 3).

The parts of a step are tensors that live as long as it: nothing is kept but the states' parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mycelia import ops
from mycelia.engine.base.parallel_settings import get_auto_parallel_context
from mycelia.engine.communication import mode, stages, world
from mycelia.engine.communication.share import Share
from mycelia.engine.ops.communication.collectives import broadcast_from, gather_all
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.nn import cell
from mycelia.nn.gathered import gather

Shares = tuple[Share | None, ...]
#: What one collective takes where whole gradients and weights are not kept: it is there besides the parts.
LEAN_BYTES = 4 << 20
_OWNER = "enable_parallel_optimizer"


def planned(parameters: Sequence[Parameter], dividing: mode.Dividing) -> Shares:
    """A part for each Parameter that is large enough; None for one that all keep whole: a smaller one,
    one whose `parallel_optimizer` is False, and one that is not the same everywhere (`layerwise_parallel`).
    """
    rank = world.group(_OWNER, stages.data_group(_OWNER)).rank % dividing.size
    return tuple(
        p.share
        if p.divided
        else Share(rank, dividing.size, tuple(p.shape))
        if is_divisible(p, dividing) and p.size >= dividing.size
        else None
        for p in parameters
    )  # fmt: skip


def is_divisible(parameter: Parameter, dividing: mode.Dividing) -> bool:
    """Whether processes are to have a Parameter's states in parts."""
    is_large = parameter.size * parameter.dtype.itemsize >= dividing.least_bytes
    return is_large and parameter.parallel_optimizer and not parameter.layerwise_parallel


def divide_weights(shares: Shares, parameters: Sequence[Parameter]) -> None:
    """Leaves the own parts of Parameters that have a share; Cells gather them from now on."""
    is_sent = get_auto_parallel_context("parameter_broadcast")
    now = []
    for share, parameter in zip(shares, parameters):
        if share is None or parameter.divided:
            continue
        value: Tensor = parameter
        if is_sent:
            value = broadcast_from(parameter, root=0, group=stages.data_group(_OWNER))
        parameter.set_data(part(share, value))
        parameter.share, parameter.divided, parameter.sliced = share, True, True
        now.append(parameter)
    if now:
        cell.gather_weights(now)


def part(share: Share, whole: Tensor) -> Tensor:
    """The own part [length] of a tensor."""
    begin, end = share.place
    found = whole.reshape(-1)[begin:end]
    missing = share.length - (end - begin)
    return ops.cat([found, ops.zeros((missing,), whole.dtype)]) if missing else found


def divided(share: Share | None, parameter: Parameter) -> Parameter:
    """A Parameter of the own part, if there is one."""
    if share is None or parameter.divided:
        return parameter
    return Parameter(part(share, parameter), parameter.name, parameter.requires_grad)


def parts(shares: Shares, tensors: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    """The own parts; what has no share, what is a part already, and what another stage has, as it is."""
    return tuple(
        x if share is None or x is None or tuple(x.shape) == (share.length,) else part(share, x)
        for share, x in zip(shares, tensors)
    )


def joined(shares: Sequence[Share], gradients: Sequence[Tensor]) -> Tensor:
    """What each of the processes that train together adds up of the gradients, that of each process together,
    flat: its part, or a piece of it where several have the same part.
    """
    count = world.size(_OWNER, stages.data_group(_OWNER))
    rows = [_rows(share, gradient, count) for share, gradient in zip(shares, gradients)]
    return (ops.cat(rows, 1) if len(rows) > 1 else rows[0]).reshape(-1)


def pieces(shares: Sequence[Share]) -> list[int]:
    """How many elements of each tensor a process adds up."""
    copies = world.size(_OWNER, stages.data_group(_OWNER)) // shares[0].size
    return [-(-share.length // copies) for share in shares]


def own_parts(shares: Sequence[Share], added: Tensor) -> Sequence[Tensor]:
    """The own parts of tensors of which this process has added up pieces."""
    lengths, size = pieces(shares), shares[0].size
    if lengths == [share.length for share in shares]:
        return cut(added, lengths)
    group = stages.replica_group(_OWNER, size)
    copies = world.size(_OWNER, group)
    rows = cut(gather_all(added, size=copies, group=group).reshape(copies, -1), lengths, 1)
    return [row.reshape(-1)[: share.length] for share, row in zip(shares, rows)]


def cut(x: Tensor, lengths: list[int], axis: int = 0) -> Sequence[Tensor]:
    """Pieces of these lengths."""
    return ops.split(x, lengths, axis) if len(lengths) > 1 else [x]


def update(
    shares: Shares, parameters: Sequence[Parameter], change: Callable[[int, Tensor], object], most_bytes: int
) -> None:
    """Calls ``change(i, own part)``, which overwrites it, and gives all processes the parts of all, but of
    weights that stay divided; up to `most_bytes` of whole tensors at a time, so that few parts are there at
    once. What has no share is changed.
    """
    for i, share in enumerate(shares):
        if share is None or parameters[i].divided:
            change(i, parameters[i])
    whole = [None if p.divided else share for share, p in zip(shares, parameters)]
    for places in together(whole, parameters, None, most_bytes):
        some = [share for i in places if (share := shares[i]) is not None]
        own = []
        for i, share in zip(places, some):
            own.append(part(share, parameters[i]))
            change(i, own[-1])
        for i, made in zip(places, gather(some, own)):
            assign(parameters[i], made)


def _rows(share: Share, whole: Tensor, count: int) -> Tensor:
    """What each of `count` processes adds up of a tensor, one in each row."""
    flat, copies = whole.reshape(-1), count // share.size
    missing = share.size * share.length - share.count
    if missing:
        flat = ops.cat([flat, ops.zeros((missing,), whole.dtype)])
    rows = flat.reshape(share.size, share.length)
    if copies == 1:
        return rows
    missing = -share.length % copies
    if missing:
        rows = ops.cat([rows, ops.zeros((share.size, missing), whole.dtype)], 1)
    return rows.reshape(share.size, copies, -1).transpose(1, 0, 2).reshape(count, -1)


def together(
    shares: Sequence[Share | None], tensors: Sequence[Tensor], order: Iterable[int] | None = None,
    most_bytes: int = mode.PART_BYTES,
) -> list[list[int]]:  # fmt: skip
    """Places of tensors with a share that one collective takes, in `order`: of one dtype, up to `most_bytes`
    of the whole tensors.
    """
    groups: list[list[int]] = []
    dtype, size = None, 0.0
    for i in range(len(shares)) if order is None else order:
        share, x = shares[i] if shares else None, tensors[i]
        if share is None:
            continue
        count = share.count * x.dtype.itemsize
        if not groups or x.dtype is not dtype or size + count > most_bytes:
            groups.append([])
            dtype, size = x.dtype, 0.0
        groups[-1].append(i)
        size += count
    return groups


def says(kind: type, base: type, attribute: str) -> bool:
    """Whether a class of optimizers says something of its own steps: by an attribute of the class that
    defines the step, or of one that is derived of it.
    """
    order = kind.__mro__
    for step in ("update", "implementation", "construct"):
        definer = next((c for c in order if step in vars(c)), base)
        if definer is base:
            continue
        below = order[: order.index(definer) + 1]
        if not next((vars(c)[attribute] for c in below if attribute in vars(c)), False):
            return False
    return True
