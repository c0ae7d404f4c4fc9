"""Collectives. In a group of one process they give back what they get; messages need a second one.

Errors: RuntimeError before `communication.init()`, and for messages to other processes.
"""

import importlib
import inspect

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.ops.primitives.checks import anything, integer, text
from mycelia.ops.primitives.define import Operation, primitive, register

_WORLD = "hccl_world_group"
_KEPT = {"no_eliminate": True}


def _communication():  # it lies above the ops
    return importlib.import_module("mycelia.faces.stand_ins.communication.management")


def _alone(owner, group, tensor=None):
    """Ask for the group; `tensor`, which the operation gives back."""
    _communication().require_group(owner, group)
    return None if tensor is None else ops.stop_gradient(tensor) if tensor.dtype.is_integer else tensor + 0


class ReduceOp:
    """Names of what collectives do with the values of several processes."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


@primitive(extra={"fusion": 0, "index": 0, **_KEPT})
def AllReduce(input_x, *, op: text = "sum", group: text = _WORLD):
    """Values of all processes combined, to all."""
    return _alone("AllReduce", group, input_x)


@primitive(extra={"rank_size": 1, "fusion": 0, "mean_flag": False, **_KEPT})
def AllGather(input_x, *, group: text = _WORLD):
    """Values of all processes joined along the first axis, to all."""
    return _alone("AllGather", group, input_x)


@primitive(extra={"rank_size": 1, "fusion": 0, **_KEPT})
def ReduceScatter(input_x, *, op: text = "sum", group: text = _WORLD):
    """Values of all processes combined, to each its part of the first axis."""
    return _alone("ReduceScatter", group, input_x)


@primitive(extra=_KEPT)
def Broadcast(inputs, *, root_rank: integer, group: text = _WORLD):
    """Values of one process, to all; a tuple of tensors."""
    return tuple(_alone("Broadcast", group, x) for x in inputs)


@primitive
def Reduce(input_x, *, dest_rank: integer, op: text = "sum", group: text = _WORLD):
    """Values of all processes combined, to one."""
    return _alone("Reduce", group, input_x)


@primitive
def CollectiveGather(input_x, *, dest_rank: integer, group: text = _WORLD):
    """Values of all processes joined along the first axis, to one."""
    return _alone("CollectiveGather", group, input_x)


@primitive
def CollectiveScatter(input_x, *, src_rank: integer = 0, group: text = _WORLD):
    """Parts of one process's values along the first axis, to each its own."""
    return _alone("CollectiveScatter", group, input_x)


@primitive(extra={"side_effect_mem": True})
def Barrier(*, group: text = _WORLD):
    """Wait for all processes."""
    return _alone("Barrier", group)


@primitive(extra=_KEPT)
def AlltoAll(
    input_x, *, split_count: integer, split_dim: integer, concat_dim: integer, group: text = _WORLD
):  # fmt: skip
    """Parts of each process's values along one axis, to each its own, joined along another."""
    return _alone("AlltoAll", group, input_x)


class _Distributed(Operation):
    """An operation whose work is a message to other processes: a single one cannot do it."""

    def __call__(self, *inputs, **named):
        _communication().require_group(type(self).__name__, self.constants.get("group", _WORLD))
        raise errors.error(
            errors.NotSupportedError,
            type(self).__name__,
            "it sends tensors to other processes, which the backends hccl (Ascend) and nccl (GPU) do",
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
                    "__doc__": "A message between processes, which a single one cannot send.",
                    "__module__": __name__, "__signature__": signature, "_constants": signature,
                    "_checks": dict.fromkeys(constants, anything), "_shown": {}, "_extra": {}, "arity": None,
                },
            )
        )  # fmt: skip


_REQUIRED = inspect.Parameter.empty
_messages({
    "AllGatherV": dict(group=_WORLD),
    "AlltoAllV": dict(group=_WORLD, block_size=1),
    "AlltoAllVC": dict(group=_WORLD, block_size=1, transpose=False),
    "ReduceScatterV": dict(op="sum", group=_WORLD),
    "Send": dict(sr_tag=_REQUIRED, dest_rank=_REQUIRED, group=_WORLD, group_back=_WORLD),
    "Receive": dict(
        sr_tag=_REQUIRED, src_rank=_REQUIRED, shape=_REQUIRED, dtype=_REQUIRED, group=_WORLD,
        group_back=_WORLD,
    ),
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
