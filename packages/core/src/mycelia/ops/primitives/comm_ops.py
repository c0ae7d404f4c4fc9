"""Collectives and messages between processes, as primitives. Ranks are those of the world.

Errors: RuntimeError before `communication.init()`, and as `mycelia.parallel.comm.Communicator` says.
"""

import importlib
import inspect

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.communication import world
from mycelia.engine.ops.communication import collectives
from mycelia.ops import transfers
from mycelia.ops.primitives.checks import anything, integer, text
from mycelia.ops.primitives.define import Operation, primitive, register

_WORLD = world.WORLDS[0]
_KEPT = {"no_eliminate": True}


def _at(place, group, result):
    """`result` at that member; the others get a tensor of shape [1] that means nothing, as in MindSpore."""
    mine = world.group("rank", group).rank == place
    return result if mine or not result.size else result.reshape(-1)[:1]


class ReduceOp:
    """Names of what collectives do with the values of several processes."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


@primitive(extra={"fusion": 0, "index": 0, **_KEPT})
def AllReduce(input_x, *, op: text = "sum", group: text = _WORLD):
    """Values of all processes combined, to all."""
    return collectives.all_reduce(input_x, op, group)


@primitive(extra={"rank_size": 1, "fusion": 0, "mean_flag": False, **_KEPT})
def AllGather(input_x, *, group: text = _WORLD):
    """Values of all processes joined along the first axis, to all."""
    return collectives.all_gather(input_x, group)


@primitive(extra={"rank_size": 1, "fusion": 0, **_KEPT})
def ReduceScatter(input_x, *, op: text = "sum", group: text = _WORLD):
    """Values of all processes combined, to each its part of the first axis."""
    return collectives.reduce_scatter(input_x, op, group)


@primitive(extra=_KEPT)
def Broadcast(inputs, *, root_rank: integer, group: text = _WORLD):
    """Values of one process, to all; a tuple of tensors."""
    root = world.index_of("Broadcast", root_rank, group)
    return tuple(collectives.broadcast_from(x, root=root, group=group) for x in inputs)


@primitive
def Reduce(input_x, *, dest_rank: integer, op: text = "sum", group: text = _WORLD):
    """Values of all processes combined, to one."""
    place = world.index_of("Reduce", dest_rank, group)
    return _at(place, group, collectives.reduce(input_x, place, op, group))


@primitive
def CollectiveGather(input_x, *, dest_rank: integer, group: text = _WORLD):
    """Values of all processes joined along the first axis, to one."""
    place, size = world.index_of("CollectiveGather", dest_rank, group), world.size("CollectiveGather", group)
    return _at(place, group, collectives.gather_to(input_x, root=place, size=size, group=group))


@primitive
def CollectiveScatter(input_x, *, src_rank: integer = 0, group: text = _WORLD):
    """Parts of one process's values along the first axis, to each its own."""
    root, size = world.index_of("CollectiveScatter", src_rank, group), world.size("CollectiveScatter", group)
    return collectives.scatter_from(input_x, root=root, size=size, group=group)


@primitive(extra={"side_effect_mem": True})
def Barrier(*, group: text = _WORLD):
    """Wait for all processes."""
    collectives.barrier(group)


@primitive(extra=_KEPT)
def AlltoAll(
    input_x, *, split_count: integer, split_dim: integer, concat_dim: integer, group: text = _WORLD
):  # fmt: skip
    """Parts of each process's values along one axis, to each its own, joined along another."""
    size = world.size("AlltoAll", group)
    if split_count != size:
        raise errors.value_error(
            "AlltoAll", f"split_count must be the size of the group, {size}, but got {split_count}"
        )
    return collectives.all_to_all(input_x, split_dim, concat_dim, group)


@primitive
def AlltoAllV(input_x, send_numel_list, recv_numel_list, *, group: text = _WORLD, block_size: integer = 1):
    """Elements, in blocks of `block_size`, to each process as many as the list says, and from each."""
    give, take = ([n * block_size for n in sizes] for sizes in (send_numel_list, recv_numel_list))
    return transfers.exchange_rows("AlltoAllV", input_x.reshape(-1), sum(take), take, give, group)


@primitive
def AlltoAllVC(
    input_x, send_count_matrix, *, group: text = _WORLD, block_size: integer = 1, transpose: anything = False
):  # fmt: skip
    """Elements exchanged: entry ``i * n + j`` of the matrix says how many blocks go from process i to j."""
    counts = [n * block_size for n in send_count_matrix]
    if transpose:
        n = world.size("AlltoAllVC", group)
        counts = [counts[j * n + i] for i in range(n) for j in range(n)]
    return transfers.exchange_by_matrix("AlltoAllVC", input_x, counts, group)


@primitive
def AllGatherV(input_x, output_split_sizes, *, group: text = _WORLD):
    """Values of all processes, of different lengths, one after the other, to all."""
    return transfers.gather_uneven("AllGatherV", input_x, output_split_sizes, group)


@primitive
def ReduceScatterV(input_x, input_split_sizes, *, op: text = "sum", group: text = _WORLD):
    """Values of all processes combined, to each its part of the first axis; parts differ in length."""
    return transfers.reduce_scatter_uneven("ReduceScatterV", input_x, input_split_sizes, op, group)


@primitive
def Send(
    input_x, *, sr_tag: integer, dest_rank: integer, group: text = _WORLD, group_back: anything = _WORLD
):  # fmt: skip
    """A tensor to another process; the tensor itself."""
    return transfers.send("Send", input_x, dest_rank, group, sr_tag)


@primitive
def Receive(
    input_x=None, *, sr_tag: integer, src_rank: integer, shape: anything, dtype: anything,
    group: text = _WORLD, group_back: anything = _WORLD,
):  # fmt: skip
    """A tensor from another process; `input_x` takes no part but in the order of a gradient."""
    like = ops.zeros(tuple(shape), dtype)
    if input_x is not None:
        like = like + (input_x.sum() * 0).astype(dtype)
    return transfers.receive("Receive", like, src_rank, group, sr_tag)


class _Distributed(Operation):
    """An operation between processes that is not there."""

    def __call__(self, *inputs, **named):
        world.ranks_of(type(self).__name__, self.constants.get("group", _WORLD))
        raise errors.error(
            errors.NotSupportedError,
            type(self).__name__,
            "it is not there; AlltoAllV, Send and Receive move the same elements",
        )


_PLACE = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _messages(names: dict[str, dict]) -> None:
    """A class for each ``{name: {constant: default}}``; a default `Parameter.empty` is none."""
    for name, constants in names.items():
        signature = inspect.Signature(
            [
                inspect.Parameter(k, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=v)
                for k, v in constants.items()
            ]
        )
        register(
            type(
                name, (_Distributed,),
                {
                    "__doc__": "An exchange with neighbours that is not there; calling it says so.",
                    "__module__": __name__, "__signature__": signature, "_constants": signature,
                    "_checks": dict.fromkeys(constants, anything), "_shown": {}, "_extra": {}, "arity": None,
                },
            )
        )  # fmt: skip


_REQUIRED = inspect.Parameter.empty
_messages({
    "BatchISendIRecv": dict(
        op_types=_REQUIRED, remote_ranks=_REQUIRED, receive_shapes=None, receive_dtypes=None, group=_WORLD
    ),
    "NeighborExchange": dict(
        send_rank_ids=_REQUIRED, recv_rank_ids=_REQUIRED, recv_shapes=_REQUIRED, send_shapes=_REQUIRED,
        recv_type=_REQUIRED, group=_WORLD,
    ),
    "NeighborExchangeV2": dict(
        send_rank_ids=_REQUIRED, send_lens=_REQUIRED, recv_rank_ids=_REQUIRED, recv_lens=_REQUIRED,
        data_format=_REQUIRED, group=_WORLD,
    ),
    "Reshard": dict(in_layout=_REQUIRED, out_layout=_REQUIRED, in_strategy=_REQUIRED),
})  # fmt: skip


register(ReduceOp)
P2POp = register(importlib.import_module("mycelia.faces.stand_ins.communication.comm_func").P2POp)
