# Written by tools/gen_stubs.py.
from mycelia.faces.stand_ins.communication.comm_func import P2POp as P2POp
from mycelia.ops.operations import (
    AllGather as AllGather, AllGatherV as AllGatherV, AllReduce as AllReduce, AlltoAll as AlltoAll,
    AlltoAllV as AlltoAllV, AlltoAllVC as AlltoAllVC, Barrier as Barrier, Broadcast as Broadcast,
    CollectiveGather as CollectiveGather, CollectiveScatter as CollectiveScatter, Receive as Receive,
    Reduce as Reduce, ReduceScatter as ReduceScatter, ReduceScatterV as ReduceScatterV, Send as Send,
)
from mycelia.ops.primitives.checks import anything as anything, integer as integer, text as text
from mycelia.ops.primitives.comm_ops import ReduceOp as ReduceOp
from mycelia.ops.primitives.define import (
    Operation as Operation, primitive as primitive, register as register,
)

__all__ = [
    "AllGather", "AllGatherV", "AllReduce", "AlltoAll", "AlltoAllV", "AlltoAllVC", "Barrier", "Broadcast",
    "CollectiveGather", "CollectiveScatter", "Operation", "P2POp", "Receive", "Reduce", "ReduceOp",
    "ReduceScatter", "ReduceScatterV", "Send", "anything", "integer", "primitive", "register", "text",
]
