"""Messages from one process to another. There is only one, and none sends to itself."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.faces.mint.distributed.collectives import check_tensor
from mycelia.faces.mint.distributed.groups import _no_more_processes, check_group


def _no_peer(owner: str, name: str, peer, group) -> Exception:
    if isinstance(peer, bool) or not isinstance(peer, int):
        raise errors.type_error(owner, f"{name} must be an int, but got {peer!r}")
    check_group(owner, group)
    if peer == 0:
        raise errors.value_error(owner, f"{name} must be another process, but 0 is this one")
    return _no_more_processes(owner, f"there is no process {peer}")


def send(tensor, dst=0, group=None, tag=0):
    """Send a tensor to process `dst`.

    Errors: ValueError if that is this process, RuntimeError if there is none.
    """
    check_tensor("send", "tensor", tensor)
    raise _no_peer("send", "dst", dst, group)


def recv(tensor, src=0, group=None, tag=0):
    """Receive a tensor from process `src`, in place.

    Errors: ValueError if that is this process, RuntimeError if there is none.
    """
    check_tensor("recv", "tensor", tensor)
    raise _no_peer("recv", "src", src, group)


def isend(tensor, dst=0, group=None, tag=0):
    """`send` that returns a handle to wait for."""
    check_tensor("isend", "tensor", tensor)
    raise _no_peer("isend", "dst", dst, group)


def irecv(tensor, src=0, group=None, tag=0):
    """`recv` that returns a handle to wait for."""
    check_tensor("irecv", "tensor", tensor)
    raise _no_peer("irecv", "src", src, group)


def send_object_list(object_list, dst, group=None, device=None):
    """Send objects to process `dst`."""
    raise _no_peer("send_object_list", "dst", dst, group)


def recv_object_list(object_list, src=0, group=None, device=None):
    """Receive objects from process `src`, into the list."""
    raise _no_peer("recv_object_list", "src", src, group)


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
