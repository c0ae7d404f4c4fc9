"""What the spellings of messages and uneven exchanges share: checks, sizes of parts, ranks of the world."""

from __future__ import annotations

import math

import numpy as np

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.communication import world
from mycelia.engine.ops.communication import collectives
from mycelia.engine.tensors.tensor import Tensor, is_tensor

OBJECTS = -1  # the tag of messages that are pickles; those of tensors are users'


def _sizes(owner: str, name: str, sizes, members: int) -> tuple[int, ...]:
    """One size a member. Errors: TypeError, ValueError."""
    given = list(sizes.asnumpy().reshape(-1).tolist() if is_tensor(sizes) else sizes)
    if any(isinstance(n, bool) or not isinstance(n, int) for n in given):
        raise errors.type_error(owner, f"{name} must hold ints, but got {given}")
    if len(given) != members or min(given) < 0:
        raise errors.value_error(
            owner, f"{name} must have {members} entries from 0 on, one a rank, but got {given}"
        )
    return tuple(given)


def _equal(owner: str, name: str, rows: int, members: int) -> tuple[int, ...]:
    if rows % members:
        raise errors.value_error(owner, f"{rows} rows of {name} cannot be cut into {members} equal parts")
    return (rows // members,) * members


def exchange_rows(owner: str, tensor, rows: int, take, give, group: str):
    """Parts of the first axis exchanged; `take`, `give`: rows from and to each rank, None: equal shares of
    what comes, `rows`, and of what there is.
    """
    members = world.size(owner, group)
    give = _equal(owner, "the input", tensor.shape[0], members) if give is None else _sizes(
        owner, "input_split_sizes", give, members)  # fmt: skip
    take = _equal(owner, "the output", rows, members) if take is None else _sizes(
        owner, "output_split_sizes", take, members)  # fmt: skip
    return collectives.exchange_parts(tensor, give=give, take=take, group=group)


def exchange_lists(owner: str, tensors, shapes, group: str) -> tuple:
    """Tensor i of the list to rank i; those that come, of these shapes. All have one dtype."""
    members = world.size(owner, group)
    for name, given in (("the list of inputs", tensors), ("the list of outputs", shapes)):
        if len(given) != members:
            raise errors.value_error(
                owner, f"{name} must have {members} entries, one a rank, but has {len(given)}"
            )
    if len({t.dtype for t in tensors}) > 1:
        raise errors.type_error(
            owner, f"all inputs must have one dtype, but got {[str(t.dtype) for t in tensors]}"
        )
    take = tuple(math.prod(shape) for shape in shapes)
    flat = ops.cat([t.reshape(-1) for t in tensors])
    found = collectives.exchange_parts(flat, give=tuple(t.size for t in tensors), take=take, group=group)
    parts = ops.split(found, list(take)) if members > 1 else [found]
    return tuple(part.reshape(shape) for part, shape in zip(parts, shapes))


def exchange_by_matrix(owner: str, tensor, matrix, group: str):
    """Elements exchanged; entry ``i * n + j`` of the matrix: how many go from rank i to rank j."""
    communicator = world.group(owner, group)
    n, rank = communicator.size, communicator.rank
    counts = _sizes(owner, "send_count_matrix", matrix, n * n)
    give, take = counts[rank * n : rank * n + n], counts[rank::n]
    return collectives.exchange_parts(tensor.reshape(-1), give=give, take=take, group=group)


def gather_uneven(owner: str, tensor, sizes, group: str):
    """Those of all ranks, which have ``sizes[i]`` rows, joined along the first axis."""
    members = world.size(owner, group)
    take = _sizes(owner, "output_split_sizes", sizes, members)
    many = ops.cat([tensor] * members)
    return collectives.exchange_parts(many, give=(tensor.shape[0],) * members, take=take, group=group)


def reduce_scatter_uneven(owner: str, tensor, sizes, reduction: str, group: str):
    """Those of all ranks reduced; rank i gets its part of ``sizes[i]`` rows."""
    communicator = world.group(owner, group)
    give = _sizes(owner, "input_split_sizes", sizes, communicator.size)
    rows = give[communicator.rank]
    parts = collectives.exchange_parts(tensor, give=give, take=(rows,) * communicator.size, group=group)
    return collectives.fold(parts.reshape((communicator.size, rows, *tensor.shape[1:])), reduction)


def place_of_peer(owner: str, rank, group: str) -> int:
    """The place in a group of another rank. Errors: RuntimeError if there is no other, ValueError,
    TypeError.
    """
    communicator = world.group(owner, group)
    if rank == communicator.ranks[communicator.rank]:
        raise errors.value_error(owner, f"the rank must be another process, but {rank} is this one")
    if communicator.size == 1 and isinstance(rank, int):
        raise errors.runtime_error(owner, f"there is no other process in {group!r}, and {rank} cannot be one")
    return world.index_of(owner, rank, group)


def peer(owner: str, tensor, rank, group: str) -> int:
    """`place_of_peer` for a message that `tensor` is, or takes."""
    if not is_tensor(tensor):
        raise errors.type_error(owner, f"tensor must be a Tensor, but got {type(tensor).__name__}")
    return place_of_peer(owner, rank, group)


def send(owner: str, tensor, to, group: str, tag: int):
    """`tensor`, after it was sent to a rank of the world."""
    return collectives.send_to(tensor, to=peer(owner, tensor, to, group), tag=tag, group=group)


def receive(owner: str, like, source, group: str, tag: int):
    """A tensor like `like` from a rank of the world."""
    place = peer(owner, like, source, group)
    return collectives.receive_from(like, source=place, shape=like.shape, tag=tag, group=group)


def start_receive(owner: str, target, source, group: str, tag: int):
    """What to call before `target` has its value from a rank of the world. Messages go to receives in the
    order in which these were started, whichever is waited for first.
    """
    place = peer(owner, target, source, group)
    communicator = world.group(owner, group)
    pending = communicator.start_receive(place, tag)
    is_half = target.dtype is dtypes.bfloat16
    sent_as = dtypes.BFLOAT16_BITS if is_half else target.dtype.np

    def finish() -> None:
        found = collectives.fitting(communicator, place, pending.wait(), sent_as, target.shape)
        if is_half:
            found = dtypes.from_bfloat16_bits(found.view(np.uint16))
        target.assign_value(ops.cast(Tensor(found), target.dtype))

    return finish
