# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.faces.stand_ins.communication.comm_func import (
    P2POp as P2POp, all_gather_into_tensor as all_gather_into_tensor, all_reduce as all_reduce,
    all_to_all_single_with_output_shape as all_to_all_single_with_output_shape,
    all_to_all_v_c as all_to_all_v_c, all_to_all_with_output_shape as all_to_all_with_output_shape,
    batch_isend_irecv as batch_isend_irecv, irecv as irecv, isend as isend, reduce as reduce,
    reduce_scatter_tensor as reduce_scatter_tensor,
)
from mycelia.ops import gather_into_tensor as gather_into_tensor, scatter_tensor as scatter_tensor

__all__ = [
    "P2POp", "all_gather_into_tensor", "all_reduce", "all_to_all_single_with_output_shape",
    "all_to_all_v_c", "all_to_all_with_output_shape", "barrier", "batch_isend_irecv", "broadcast",
    "gather_into_tensor", "irecv", "isend", "recv", "reduce", "reduce_scatter_tensor", "scatter_tensor",
    "send",
]


def barrier(group='hccl_world_group') -> None:
    """Wait until all processes of the group are here."""

def broadcast(tensor, src=0, group='hccl_world_group') -> Tensor:
    """The tensor of process `src`."""

def recv(tensor, src=0, group='hccl_world_group', tag=0) -> Tensor:
    """A tensor from another process, of the shape and dtype of `tensor`."""

def send(tensor, dst=0, group='hccl_world_group', tag=0) -> None:
    """Send a tensor to another process."""
