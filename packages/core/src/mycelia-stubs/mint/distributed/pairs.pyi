# Written by tools/gen_stubs.py.
from mycelia.engine.communication.transport import as_bytes as as_bytes, from_bytes as from_bytes
from mycelia.engine.ops.control_flow.debug import is_captured as is_captured
from mycelia.faces.mint.distributed.collectives import check_tensor as check_tensor
from mycelia.faces.mint.distributed.groups import check_group as check_group
from mycelia.faces.mint.distributed.pairs import (
    P2POp as P2POp, batch_isend_irecv as batch_isend_irecv, irecv as irecv, isend as isend,
    recv_object_list as recv_object_list,
)
from mycelia.faces.stand_ins.communication.handle import CommHandle as CommHandle
from mycelia.ops import recv as recv, send as send, send_object_list as send_object_list

__all__ = [
    "CommHandle", "P2POp", "as_bytes", "batch_isend_irecv", "check_group", "check_tensor", "from_bytes",
    "irecv", "is_captured", "isend", "recv", "recv_object_list", "send", "send_object_list",
]
