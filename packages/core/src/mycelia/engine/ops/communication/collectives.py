"""Collectives as ops: each member of a group calls the same, eagerly or in a graph.

Calls are effects: none is removed, folded, joined with another or moved past another, since the other ranks
wait for it. A gradient is that of the sum of what all ranks compute: that of a sum over ranks is a sum over
ranks. Results that only one rank has (`reduce_to`, `gather_to`) are zeros on the others, so that all ranks
run the same graph; `size`, the number of members, makes shapes known without asking the group.

Errors of all: RuntimeError before `communication.init()`, for a rank that is missing and for ranks that call
different collectives, ValueError for a group that does not exist.
"""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.communication import Communicator, name_of, world
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op
from mycelia.engine.ops.infer import same
from mycelia.engine.ops.late import ops

__all__: list[str] = []

GROUP = world.WORLDS[0]


def _parts(owner: str, x: np.ndarray, sizes) -> list[np.ndarray]:
    """`x` cut along its first axis."""
    if sum(sizes) != x.shape[0]:
        raise errors.shape_error(owner, f"parts of {list(sizes)} rows do not make up {x.shape[0]}")
    ends = np.cumsum(sizes).tolist()
    return [x[end - size : end] for end, size in zip(ends, sizes)]


def _first_axis(owner: str, x: TensorType) -> int:
    if not x.shape:
        raise errors.shape_error(
            owner, "a number has no first axis to join or cut: give it at least one axis"
        )
    return x.shape[0]


def _share(owner: str, x: TensorType, size: int) -> TensorType:
    """The type of one of `size` equal parts."""
    rows = _first_axis(owner, x)
    if type(rows) is int and rows >= 0 and rows % size:
        raise errors.shape_error(owner, f"{rows} rows cannot be cut into {size} equal parts")
    return TensorType(x.dtype, (rows // size if rows != -1 else -1, *x.shape[1:]))


def _joined(owner: str, x: TensorType, size: int) -> TensorType:
    rows = _first_axis(owner, x)
    return TensorType(x.dtype, (rows * size if rows != -1 else -1, *x.shape[1:]))


# ---------------------------------------------------------------------------------------------- reductions


@op(infer=same(), effect=True, on_host=True, mindir="AllReduce")
def all_reduce_sum(x, *, reduction: "sum|avg" = "sum", group: "str" = GROUP):
    """The sum, or the average, of `x` over all members, to all; float16 and bfloat16 are added in float32.

    Shapes: any -> same.  dtypes: any; of averages floating.  Sums are made in the order of the ranks.
    """
    return world.group("all_reduce", group).all_reduce(x, reduction)


@all_reduce_sum.vjp
def all_reduce_sum(ct, *, reduction, group):
    return all_reduce_sum(ct, reduction=reduction, group=group)


@op(infer=same(), effect=True, on_host=True)
def all_reduce_pick(x, *, reduction: "max|min|prod", group: "str" = GROUP):
    """The largest, the smallest, or the product of `x` over all members, to all.

    Shapes: any -> same.  dtypes: any.  The gradient of an extremum goes to each rank that has it.
    """
    return world.group("all_reduce", group).all_reduce(x, reduction)


@all_reduce_pick.vjp
def all_reduce_pick(ct, x, out, *, reduction, group):
    total = all_reduce_sum(ct, group=group)
    if reduction != "prod":
        return total * (x == out).astype(x.dtype)
    zero = (x == 0).astype(x.dtype)
    zeros = all_reduce_sum(zero, group=group)
    rest = all_reduce_pick(x + zero, reduction="prod", group=group)  # of what is not zero
    # Of two ranks with a zero none has a gradient; of one only that rank has.
    alone = (zeros == zero).astype(x.dtype)
    return total * alone * rest / (x + zero)


@op(effect=True, on_host=True)
def reduce_to(x, *, root: "int", reduction: "sum|avg" = "sum", group: "str" = GROUP):
    """The sum, or the average, of `x` over all members, to member `root`; zeros to the others.

    Shapes: any -> same.  dtypes: any; of averages floating.
    """
    found = world.group("reduce", group).reduce(x, root, reduction)
    return np.zeros_like(x) if found is None else found


@reduce_to.infer
def reduce_to(x, *, root, reduction, group):
    return x


@reduce_to.vjp
def reduce_to(ct, *, root, reduction, group):
    total = broadcast_from(ct, root=root, group=group)
    return total / world.size("reduce", group) if reduction == "avg" else total


@op(effect=True, on_host=True, mindir="ReduceScatter")
def reduce_scatter_sum(x, *, size: "int", reduction: "sum|avg" = "sum", group: "str" = GROUP):
    """The sum, or the average, of `x` over all members, to member i the i-th of `size` equal parts.

    Shapes: x [n * size, ...] -> [n, ...].  dtypes: any; of averages floating.
    """
    cuts = _parts("reduce_scatter", x, [x.shape[0] // size] * size)
    return world.group("reduce_scatter", group).reduce_scatter(cuts, reduction)


@reduce_scatter_sum.infer
def reduce_scatter_sum(x, *, size, reduction, group):
    return _share("reduce_scatter", x, size)


@reduce_scatter_sum.vjp
def reduce_scatter_sum(ct, *, size, reduction, group):
    joined = gather_all(ct, size=size, group=group)
    return joined / size if reduction == "avg" else joined


# -------------------------------------------------------------------------------------- moving whole tensors


@op(effect=True, on_host=True, mindir="AllGather")
def gather_all(x, *, size: "int", group: "str" = GROUP):
    """Those of all `size` members joined along the first axis, to all.

    Shapes: x [n, ...] -> [n * size, ...].  dtypes: any.
    """
    return np.concatenate(world.group("all_gather", group).all_gather(x))


@gather_all.infer
def gather_all(x, *, size, group):
    return _joined("all_gather", x, size)


@gather_all.vjp
def gather_all(ct, *, size, group):
    return reduce_scatter_sum(ct, size=size, group=group)


@op(infer=same(), effect=True, on_host=True)
def broadcast_from(x, *, root: "int", group: "str" = GROUP):
    """What member `root` has, to all.

    Shapes: any -> same.  dtypes: any.  The gradient is that of `root`, the sum over all ranks.
    """
    return world.group("broadcast", group).broadcast(x, root)


@broadcast_from.vjp
def broadcast_from(ct, *, root, group):
    return reduce_to(ct, root=root, group=group)


@op(effect=True, on_host=True)
def gather_to(x, *, root: "int", size: "int", group: "str" = GROUP):
    """Those of all `size` members joined along the first axis, to member `root`; zeros to the others.

    Shapes: x [n, ...] -> [n * size, ...].  dtypes: any.
    """
    found = world.group("gather", group).gather(x, root)
    return np.zeros((x.shape[0] * size, *x.shape[1:]), x.dtype) if found is None else np.concatenate(found)


@gather_to.infer
def gather_to(x, *, root, size, group):
    return _joined("gather", x, size)


@gather_to.vjp
def gather_to(ct, *, root, size, group):
    return scatter_from(ct, root=root, size=size, group=group)


@op(effect=True, on_host=True)
def scatter_from(x, *, root: "int", size: "int", group: "str" = GROUP):
    """The i-th of `size` equal parts of what member `root` has, to member i; what the others have is not
    used.

    Shapes: x [n * size, ...] -> [n, ...], the same on all members.  dtypes: any.
    """
    communicator = world.group("scatter", group)
    rows = x.shape[0] // size
    cuts = _parts("scatter", x, [rows] * size) if communicator.rank == root else None
    found = communicator.scatter(cuts, root)
    if found.shape != (rows, *x.shape[1:]) or found.dtype != x.dtype:
        raise errors.shape_error(
            "scatter",
            f"rank {communicator.ranks[root]} gives {name_of(found.dtype)} {list(found.shape)}, but "
            f"here parts are {name_of(x.dtype)} {[rows, *x.shape[1:]]}",
        )  # fmt: skip
    return found


@scatter_from.infer
def scatter_from(x, *, root, size, group):
    return _share("scatter", x, size)


@scatter_from.vjp
def scatter_from(ct, *, root, size, group):
    return gather_to(ct, root=root, size=size, group=group)


@op(effect=True, on_host=True)
def exchange_parts(x, *, give: "code", take: "code", group: "str" = GROUP):
    """Parts of the first axis, ``give[i]`` rows to member i, exchanged with ``take[i]`` rows from it.

    Shapes: x [sum(give), ...] -> [sum(take), ...].  dtypes: any.
    """
    communicator = world.group("all_to_all", group)
    found = communicator.all_to_all(_parts("all_to_all", x, give))
    for member, (part, rows) in enumerate(zip(found, take, strict=True)):
        if part.shape != (rows, *x.shape[1:]):
            raise errors.shape_error(
                "all_to_all", f"rank {communicator.ranks[member]} gives {list(part.shape)}, but "
                f"{[rows, *x.shape[1:]]} are to be taken",
            )  # fmt: skip
    return np.concatenate(found)


@exchange_parts.infer
def exchange_parts(x, *, give, take, group):
    rows = _first_axis("all_to_all", x)
    if type(rows) is int and rows not in (-1, sum(give)):
        raise errors.shape_error("all_to_all", f"parts of {list(give)} rows do not make up {rows}")
    return TensorType(x.dtype, (sum(take), *x.shape[1:]))


@exchange_parts.vjp
def exchange_parts(ct, *, give, take, group):
    return exchange_parts(ct, give=take, take=give, group=group)


# ---------------------------------------------------------------------------------------- without elements


@op(name="wait_for_all", outputs=None, effect=True, on_host=True, nondiff=True)
def _wait_for_all(*, group: "str" = GROUP):
    """Comes back when all members have come."""
    world.group("barrier", group).barrier()
    return ()


@_wait_for_all.infer
def _wait_for_all(*, group):
    return ()


# -------------------------------------------------------------------------------------- from one to one


@op(infer=same(), effect=True, on_host=True)
def send_to(x, *, to: "int", tag: "int" = 0, group: "str" = GROUP):
    """`x` itself, after it was sent to member `to`. Its gradient is what `receive_from` there got, added.

    Shapes: any -> same.  dtypes: any.
    """
    world.group("send", group).send(x, to, tag)
    return x


@send_to.vjp
def send_to(ct, *, to, tag, group):
    return ct + receive_from(ct, source=to, tag=tag, shape=ct.shape, group=group)


def fitting(communicator: Communicator, source: int, found: np.ndarray, dtype, shape) -> np.ndarray:
    """What member `source` has sent. Errors: ShapeError if it is of another shape or dtype."""
    if found.shape != tuple(shape) or found.dtype != dtype:
        raise errors.shape_error(
            "receive",
            f"rank {communicator.ranks[source]} has sent {name_of(found.dtype)} {list(found.shape)}, but "
            f"{name_of(dtype)} {list(shape)} was to come",
        )  # fmt: skip
    return found


@op(effect=True, on_host=True)
def receive_from(after, *, source: "int", shape: "code", tag: "int" = 0, group: "str" = GROUP):
    """The next message of member `source` with this tag, of the dtype of `after`, which is otherwise not
    used.

    Shapes: after any -> `shape`.  dtypes: any.  The gradient goes to the sender.
    Errors: ShapeError if the message is of another shape or dtype.
    """
    communicator = world.group("receive", group)
    return fitting(communicator, source, communicator.receive(source, tag), after.dtype, shape)


@receive_from.infer
def receive_from(after, *, source, shape, tag, group):
    return TensorType(after.dtype, tuple(shape))


@receive_from.vjp
def receive_from(ct, after, *, source, tag, group):
    sent = send_to(ct, to=source, tag=tag, group=group)
    return ops.zeros_like(after) + ops.nan_to_num(ops.sum(sent)) * 0  # what is sent counts as used


# ---------------------------------------------------------------------------- what the others are made of


def all_reduce(x, reduction: str = "sum", group: str = GROUP):
    """`x` over all members combined by "sum", "avg", "max", "min" or "prod"."""
    make = all_reduce_sum if reduction in ("sum", "avg") else all_reduce_pick
    return make(x, reduction=reduction, group=group)


def fold(parts, reduction: str):
    """What members gave, one along the first axis each, combined in the order of ranks."""
    steps = {"max": ops.maximum, "min": ops.minimum, "prod": ops.multiply}
    total = parts[0]
    for i in range(1, parts.shape[0]):
        total = steps.get(reduction, ops.add)(total, parts[i])
    return total / parts.shape[0] if reduction == "avg" else total


def reduce(x, root: int, reduction: str = "sum", group: str = GROUP):
    """`all_reduce` to member `root`; zeros to the others."""
    if reduction in ("sum", "avg"):
        return reduce_to(x, root=root, reduction=reduction, group=group)
    size = world.size("reduce", group)
    return fold(gather_to(x.reshape((1, *x.shape)), root=root, size=size, group=group), reduction)


def reduce_scatter(x, reduction: str = "sum", group: str = GROUP):
    """Member i gets the i-th part of `all_reduce`."""
    size = world.size("reduce_scatter", group)
    if reduction in ("sum", "avg"):
        return reduce_scatter_sum(x, size=size, reduction=reduction, group=group)
    part = _share("reduce_scatter", x, size).shape
    give = (part[0],) * size
    parts = exchange_parts(x, give=give, take=give, group=group)
    return fold(parts.reshape((size, *part)), reduction)


def all_gather(x, group: str = GROUP):
    """Those of all members joined along the first axis, to all."""
    return gather_all(x, size=world.size("all_gather", group), group=group)


def all_to_all(x, split_dim: int, concat_dim: int, group: str = GROUP):
    """`x` cut along `split_dim` into equal parts, part i to member i; what comes is joined along
    `concat_dim`.
    """
    size = world.size("all_to_all", group)
    if x.shape[split_dim] % size:
        raise errors.shape_error(
            "all_to_all", f"axis {split_dim} of {x.shape[split_dim]} cannot be cut into {size} equal parts"
        )
    # The parts become the first axis, are exchanged as rows, and are joined where they belong.
    parts = ops.stack(ops.split(x, x.shape[split_dim] // size, split_dim), 0)
    found = exchange_parts(parts, give=(1,) * size, take=(1,) * size, group=group)
    return ops.cat([found[i] for i in range(size)], concat_dim)


def barrier(group: str = GROUP) -> None:
    """Comes back when all members have come."""
    _wait_for_all(group=group)
