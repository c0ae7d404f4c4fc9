"""Collectives as functions on tensors, for a group of one process: it gathers, scatters and reduces what
it has.

Those of MindSpore return new tensors; with a parameter `async_op` they return the tensor and a handle
(None unless
asked for).  Errors: RuntimeError before `communication.init()`, and for messages to other processes.
"""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.stand_ins.communication.handle import CommHandle as CommHandle
from mycelia.faces.stand_ins.communication.handle import done
from mycelia.faces.stand_ins.communication.management import HCCL_WORLD_COMM_GROUP, require_group

_REDUCTIONS = ("sum", "prod", "max", "min")


def _given(owner: str, tensor, group, op: str = "sum"):
    if not is_tensor(tensor):
        raise errors.type_error(owner, f"tensor must be a Tensor, but got {type(tensor).__name__}")
    if not isinstance(op, str):
        raise errors.type_error(owner, f"op must be a str, but got {type(op).__name__}")
    if op not in _REDUCTIONS:
        raise errors.one_of(op, _REDUCTIONS, subject=owner, what="op")
    require_group(owner, group)
    return tensor.copy()


def all_reduce(tensor, op="sum", group=HCCL_WORLD_COMM_GROUP, async_op=False):
    """Reduced over all processes, to all. Returns (tensor, handle)."""
    return _given("all_reduce", tensor, group, op), done(async_op)


def all_gather_into_tensor(tensor, group=HCCL_WORLD_COMM_GROUP, async_op=False):
    """Those of all processes joined along the first axis. Returns (tensor, handle)."""
    return _given("all_gather_into_tensor", tensor, group), done(async_op)


def reduce_scatter_tensor(tensor, op="sum", group=HCCL_WORLD_COMM_GROUP, async_op=False):
    """Reduced over all processes, each gets its part of the first axis. Returns (tensor, handle)."""
    return _given("reduce_scatter_tensor", tensor, group, op), done(async_op)


def reduce(tensor, dst, op="sum", group=HCCL_WORLD_COMM_GROUP):
    """Reduced over all processes, to process `dst`."""
    result = _given("reduce", tensor, group, op)
    _present("reduce", dst)
    return result


def broadcast(tensor, src=0, group=HCCL_WORLD_COMM_GROUP):
    """The tensor of process `src`."""
    result = _given("broadcast", tensor, group)
    _present("broadcast", src)
    return result


def scatter_tensor(tensor, src=0, group=HCCL_WORLD_COMM_GROUP):
    """The part of the first axis that process `src` has for this one."""
    result = _given("scatter_tensor", tensor, group)
    _present("scatter_tensor", src)
    return result


def gather_into_tensor(tensor, dst=0, group=HCCL_WORLD_COMM_GROUP):
    """Those of all processes joined along the first axis, at process `dst`."""
    result = _given("gather_into_tensor", tensor, group)
    _present("gather_into_tensor", dst)
    return result


def barrier(group=HCCL_WORLD_COMM_GROUP):
    """Wait until all processes of the group are here."""
    require_group("barrier", group)


def all_to_all_with_output_shape(output_shape_list, input_tensor_list, group=None, async_op=False):
    """Member i of the result comes from process i. Returns (tensors, handle)."""
    owner = "all_to_all_with_output_shape"
    if len(output_shape_list) != 1 or len(input_tensor_list) != 1:
        raise errors.value_error(owner, "the group has one process, so one tensor goes in and one comes out")
    return (_given(owner, input_tensor_list[0], group or HCCL_WORLD_COMM_GROUP),), done(async_op)


def all_to_all_single_with_output_shape(
    output_shape, tensor, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False
):
    """Parts of the first axis exchanged among all processes. Returns (tensor, handle)."""
    del output_split_sizes, input_split_sizes  # one process keeps all
    owner = "all_to_all_single_with_output_shape"
    result = _given(owner, tensor, group or HCCL_WORLD_COMM_GROUP)
    return result.reshape(tuple(getattr(output_shape, "shape", output_shape))), done(async_op)


def all_to_all_v_c(output, input, send_count_matrix, group=None, async_op=False):
    """Elements exchanged among all processes, into `output`; a matrix says how many go where."""
    del send_count_matrix  # one process keeps all
    output._assign(_given("all_to_all_v_c", input, group or HCCL_WORLD_COMM_GROUP))
    return done(async_op)


def _present(owner: str, rank) -> None:
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise errors.type_error(owner, f"a rank must be an int, but got {rank!r}")
    if rank != 0:
        raise errors.value_error(owner, f"the group has the rank 0 only, but got {rank}")


def _no_peer(owner: str, peer, group):
    require_group(owner, group)
    return errors.error(
        errors.MyceliaRuntimeError, owner, f"there is no other process, and {peer!r} cannot be one",
        hint="hccl on Ascend and nccl on GPU connect several processes",
    )  # fmt: skip


def send(tensor, dst=0, group=HCCL_WORLD_COMM_GROUP, tag=0):
    """Send a tensor to another process: RuntimeError, there is none."""
    raise _no_peer("send", dst, group)


def recv(tensor, src=0, group=HCCL_WORLD_COMM_GROUP, tag=0):
    """A tensor from another process: RuntimeError, there is none."""
    raise _no_peer("recv", src, group)


def isend(tensor, dst=0, group=HCCL_WORLD_COMM_GROUP, tag=0):
    """Start to send a tensor to another process: RuntimeError, there is none."""
    raise _no_peer("isend", dst, group)


def irecv(tensor, src=0, group=HCCL_WORLD_COMM_GROUP, tag=0):
    """Start to receive a tensor from another process: RuntimeError, there is none."""
    raise _no_peer("irecv", src, group)


class P2POp:
    """One message of `batch_isend_irecv`: `op` is `isend` or `irecv`, the function or its name.

    Errors: TypeError for another `op`, or a tensor that is none.
    """

    def __init__(self, op, tensor, peer, group=None, tag=0, *, recv_dtype=None):
        name = op if isinstance(op, str) else getattr(op, "__name__", "")
        if name not in ("isend", "irecv"):
            raise errors.type_error("P2POp", f"op must be isend or irecv, but got {op!r}")
        if not is_tensor(tensor) and (name == "isend" or not isinstance(tensor, tuple)):
            raise errors.type_error("P2POp", f"tensor must be a Tensor, but got {type(tensor).__name__}")
        if isinstance(peer, bool) or not isinstance(peer, int):
            raise errors.type_error("P2POp", f"peer must be an int, but got {peer!r}")
        self.op, self.tensor, self.peer = name, tensor, peer
        self.group, self.tag, self.recv_dtype = group or HCCL_WORLD_COMM_GROUP, tag, recv_dtype


def batch_isend_irecv(p2p_op_list):
    """Start several messages.  Errors: TypeError for members that are no P2POp, RuntimeError: there is no
    peer."""
    for one in p2p_op_list:
        if not isinstance(one, P2POp):
            raise errors.type_error("batch_isend_irecv", f"every member must be a P2POp, but got {one!r}")
    return tuple(
        {"isend": isend, "irecv": irecv}[one.op](one.tensor, one.peer, one.group, one.tag)
        for one in p2p_op_list
    )


__all__ = [
    "P2POp", "all_gather_into_tensor", "all_reduce", "all_to_all_single_with_output_shape", "all_to_all_v_c",
    "all_to_all_with_output_shape", "barrier", "batch_isend_irecv", "broadcast", "gather_into_tensor",
    "irecv",
    "isend", "recv", "reduce", "reduce_scatter_tensor", "scatter_tensor", "send",
]  # fmt: skip
