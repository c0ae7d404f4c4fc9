"""Messages from one process to another."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.engine.communication import as_bytes, from_bytes, world
from mycelia.engine.ops.control_flow.debug import is_captured
from mycelia.faces.mint.distributed.collectives import check_tensor
from mycelia.faces.mint.distributed.groups import check_group
from mycelia.faces.stand_ins.communication.handle import CommHandle
from mycelia.ops import transfers


def send(tensor, dst=0, group=None, tag=0):
    """Send a tensor to process `dst`.

    Errors: ValueError if that is this process, or not one of the group.
    """
    check_tensor("send", "tensor", tensor)
    transfers.send("send", tensor, dst, check_group("send", group), tag)


def recv(tensor, src=0, group=None, tag=0):
    """Receive a tensor from process `src`, in place.

    Errors: ValueError if that is this process, or not one of the group; ShapeError if another shape comes.
    """
    check_tensor("recv", "tensor", tensor)
    tensor.assign_value(transfers.receive("recv", tensor, src, check_group("recv", group), tag))


def isend(tensor, dst=0, group=None, tag=0):
    """`send` that returns a handle to wait for."""
    check_tensor("isend", "tensor", tensor)
    transfers.send("isend", tensor, dst, check_group("isend", group), tag)
    return CommHandle()


def irecv(tensor, src=0, group=None, tag=0):
    """`recv` that returns a handle: the tensor has its value after `wait`. Messages go to receives in the
    order in which these were started.

    In a graph it has its value at once.
    """
    check_tensor("irecv", "tensor", tensor)
    if is_captured():
        recv(tensor, src, group, tag)
        return CommHandle()
    return CommHandle(transfers.start_receive("irecv", tensor, src, check_group("irecv", group), tag))


def send_object_list(object_list, dst, group=None, device=None):
    """Send objects to process `dst`."""
    del device  # objects lie in the host's memory
    owner = "send_object_list"
    _check_list(owner, object_list)
    name = check_group(owner, group)
    place = transfers.place_of_peer(owner, dst, name)
    world.group(owner, name).send(as_bytes(object_list), place, transfers.OBJECTS)


def recv_object_list(object_list, src=0, group=None, device=None):
    """Receive as many objects from process `src`, into the list. Returns the rank that sent them."""
    del device
    owner = "recv_object_list"
    _check_list(owner, object_list)
    name = check_group(owner, group)
    place = transfers.place_of_peer(owner, src, name)
    found = from_bytes(world.group(owner, name).receive(place, transfers.OBJECTS))
    if len(found) != len(object_list):
        raise errors.value_error(
            owner, f"the list has {len(object_list)} entries, but {len(found)} were sent"
        )
    object_list[:] = found
    return src


def _check_list(owner: str, value) -> None:
    if not isinstance(value, list) or not value:
        raise errors.type_error(owner, f"object_list must be a list that is not empty, but got {value!r:.60}")


class P2POp:
    """One message of `batch_isend_irecv`: `isend` or `irecv`, its tensor, and the other process."""

    def __init__(self, op, tensor, peer, group=None, tag=0):
        self.op = {"isend": isend, "irecv": irecv}.get(op) if isinstance(op, str) else op
        if self.op not in (isend, irecv):
            raise errors.type_error("P2POp", f"op must be isend or irecv, but got {op!r}")
        check_tensor("P2POp", "tensor", tensor)
        if isinstance(peer, bool) or not isinstance(peer, int):
            raise errors.type_error("P2POp", f"peer must be an int, but got {peer!r}")
        if tag != 0:
            raise errors.error(errors.NotSupportedError, "P2POp", f"tag must be 0, but got {tag}")
        self.tensor, self.peer, self.group, self.tag = tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list):
    """Start all messages of a list of `P2POp`; the handles to wait for.

    Errors: TypeError for an empty list or other entries.
    """
    owner = "batch_isend_irecv"
    if not isinstance(p2p_op_list, list) or not p2p_op_list:
        raise errors.type_error(owner, "p2p_op_list must be a list that is not empty")
    for entry in p2p_op_list:
        if not isinstance(entry, P2POp):
            raise errors.type_error(owner, f"p2p_op_list must hold P2POp, but got {type(entry).__name__}")
    return [entry.op(entry.tensor, entry.peer, entry.group) for entry in p2p_op_list]
