"""Collectives as functions on tensors, eagerly and in graphs, with gradients.

Those of MindSpore return new tensors; with a parameter `async_op` they return the tensor and a handle (None
unless asked for).  Ranks are those of the world, `src` and `dst` too.
Errors: RuntimeError before `communication.init()` and as `mycelia.parallel.comm.Communicator` says.
"""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.communication import world
from mycelia.engine.ops.communication import collectives
from mycelia.engine.ops.control_flow.debug import is_captured
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.stand_ins.communication.handle import CommHandle as CommHandle
from mycelia.faces.stand_ins.communication.handle import done
from mycelia.faces.stand_ins.communication.management import HCCL_WORLD_COMM_GROUP, require_group
from mycelia.ops import transfers

_REDUCTIONS = ("sum", "prod", "max", "min")


def _check(owner: str, tensor, group, op: str = "sum") -> None:
    if not is_tensor(tensor):
        raise errors.type_error(owner, f"tensor must be a Tensor, but got {type(tensor).__name__}")
    if not isinstance(op, str):
        raise errors.type_error(owner, f"op must be a str, but got {type(op).__name__}")
    if op not in _REDUCTIONS:
        raise errors.one_of(op, _REDUCTIONS, subject=owner, what="op")
    require_group(owner, group)


def _only_at(place: int, group: str, result):
    """`result` at that member; the others get a tensor of shape [1] that means nothing, as in MindSpore."""
    if world.group("rank", group).rank == place:
        return result
    return result.reshape(-1)[:1] if result.size else ops.zeros((1,), result.dtype)


def all_reduce(tensor, op="sum", group=HCCL_WORLD_COMM_GROUP, async_op=False):
    """Reduced over all processes, to all. Returns (tensor, handle)."""
    _check("all_reduce", tensor, group, op)
    return collectives.all_reduce(tensor, op, group), done(async_op)


def all_gather_into_tensor(tensor, group=HCCL_WORLD_COMM_GROUP, async_op=False):
    """Those of all processes joined along the first axis. Returns (tensor, handle)."""
    _check("all_gather_into_tensor", tensor, group)
    return collectives.all_gather(tensor, group), done(async_op)


def reduce_scatter_tensor(tensor, op="sum", group=HCCL_WORLD_COMM_GROUP, async_op=False):
    """Reduced over all processes, each gets its part of the first axis. Returns (tensor, handle)."""
    _check("reduce_scatter_tensor", tensor, group, op)
    return collectives.reduce_scatter(tensor, op, group), done(async_op)


def reduce(tensor, dst, op="sum", group=HCCL_WORLD_COMM_GROUP):
    """Reduced over all processes, to process `dst`; the others get a tensor of shape [1] without meaning."""
    _check("reduce", tensor, group, op)
    place = world.index_of("reduce", dst, group)
    return _only_at(place, group, collectives.reduce(tensor, place, op, group))


def broadcast(tensor, src=0, group=HCCL_WORLD_COMM_GROUP):
    """The tensor of process `src`."""
    _check("broadcast", tensor, group)
    return collectives.broadcast_from(tensor, root=world.index_of("broadcast", src, group), group=group)


def scatter_tensor(tensor, src=0, group=HCCL_WORLD_COMM_GROUP):
    """The part of the first axis that process `src` has for this one; `tensor` has the same shape on all."""
    _check("scatter_tensor", tensor, group)
    root, size = world.index_of("scatter_tensor", src, group), world.size("scatter_tensor", group)
    return collectives.scatter_from(tensor, root=root, size=size, group=group)


def gather_into_tensor(tensor, dst=0, group=HCCL_WORLD_COMM_GROUP):
    """Those of all processes joined along the first axis, at process `dst`; the others get a tensor of shape
    [1] without meaning.
    """
    _check("gather_into_tensor", tensor, group)
    place, size = world.index_of("gather_into_tensor", dst, group), world.size("gather_into_tensor", group)
    return _only_at(place, group, collectives.gather_to(tensor, root=place, size=size, group=group))


def barrier(group=HCCL_WORLD_COMM_GROUP):
    """Wait until all processes of the group are here."""
    require_group("barrier", group)
    collectives.barrier(group)


def all_to_all_with_output_shape(output_shape_list, input_tensor_list, group=None, async_op=False):
    """Member i of the result comes from process i. Returns (tensors, handle)."""
    owner = "all_to_all_with_output_shape"
    group = group or HCCL_WORLD_COMM_GROUP
    for tensor in input_tensor_list:
        _check(owner, tensor, group)
    shapes = [tuple(getattr(shape, "shape", shape)) for shape in output_shape_list]
    return transfers.exchange_lists(owner, input_tensor_list, shapes, group), done(async_op)


def all_to_all_single_with_output_shape(
    output_shape, tensor, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False
):
    """Parts of the first axis exchanged among all processes, equal ones unless sizes are given.

    Returns (tensor, handle).
    """
    owner = "all_to_all_single_with_output_shape"
    group = group or HCCL_WORLD_COMM_GROUP
    _check(owner, tensor, group)
    shape = tuple(getattr(output_shape, "shape", output_shape))
    found = transfers.exchange_rows(owner, tensor, shape[0], output_split_sizes, input_split_sizes, group)
    return found.reshape(shape), done(async_op)


def all_to_all_v_c(output, input, send_count_matrix, group=None, async_op=False):
    """Elements exchanged among all processes, into `output`; entry ``i * n + j`` of the matrix says how many
    go from process i to process j.
    """
    group = group or HCCL_WORLD_COMM_GROUP
    _check("all_to_all_v_c", input, group)
    found = transfers.exchange_by_matrix("all_to_all_v_c", input, send_count_matrix, group)
    output.assign_value(found.reshape(output.shape))
    return done(async_op)


def send(tensor, dst=0, group=HCCL_WORLD_COMM_GROUP, tag=0):
    """Send a tensor to another process."""
    transfers.send("send", tensor, dst, group, tag)


def recv(tensor, src=0, group=HCCL_WORLD_COMM_GROUP, tag=0):
    """A tensor from another process, of the shape and dtype of `tensor`."""
    return transfers.receive("recv", tensor, src, group, tag)


def isend(tensor, dst=0, group=HCCL_WORLD_COMM_GROUP, tag=0):
    """`send` that returns a handle to wait for."""
    transfers.send("isend", tensor, dst, group, tag)
    return CommHandle()


def irecv(tensor, src=0, group=HCCL_WORLD_COMM_GROUP, tag=0):
    """Start to receive a tensor from another process. Returns (tensor, handle): it has its value after
    `wait`. Messages go to receives in the order in which these were started.

    In a graph it has its value at once.
    """
    if is_captured():
        return recv(tensor, src, group, tag), CommHandle()
    if not is_tensor(tensor):
        raise errors.type_error("irecv", f"tensor must be a Tensor, but got {type(tensor).__name__}")
    found = tensor.copy()
    return found, CommHandle(transfers.start_receive("irecv", found, src, group, tag))


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
    """Several messages at once; a tensor for each, of those that are sent a number without meaning.

    Errors: TypeError for members that are no P2POp, and for a shape without `recv_dtype`.
    """
    owner = "batch_isend_irecv"
    for one in p2p_op_list:
        if not isinstance(one, P2POp):
            raise errors.type_error(owner, f"every member must be a P2POp, but got {one!r}")
        if isinstance(one.tensor, tuple) and one.recv_dtype is None:
            raise errors.type_error(owner, f"a shape needs recv_dtype, but got {one.tensor} alone")
    for one in p2p_op_list:  # all are on their way before the first is waited for
        if one.op == "isend":
            transfers.send(owner, one.tensor, one.peer, one.group, one.tag)
    results = []
    for one in p2p_op_list:
        if one.op == "isend":
            results.append(ops.zeros((), one.tensor.dtype))
        else:
            like = ops.zeros(one.tensor, one.recv_dtype) if isinstance(one.tensor, tuple) else one.tensor
            results.append(transfers.receive(owner, like, one.peer, one.group, one.tag))
    return tuple(results)


__all__ = [
    "P2POp", "all_gather_into_tensor", "all_reduce", "all_to_all_single_with_output_shape", "all_to_all_v_c",
    "all_to_all_with_output_shape", "barrier", "batch_isend_irecv", "broadcast", "gather_into_tensor",
    "irecv",
    "isend", "recv", "reduce", "reduce_scatter_tensor", "scatter_tensor", "send",
]  # fmt: skip
