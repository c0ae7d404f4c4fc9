# Written by tools/gen_stubs.py.
from mycelia.engine.communication.transport import as_bytes as as_bytes, from_bytes as from_bytes
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.mint.distributed.collectives import (
    all_gather as all_gather, all_gather_into_tensor as all_gather_into_tensor,
    all_gather_into_tensor_uneven as all_gather_into_tensor_uneven, all_reduce as all_reduce,
    all_to_all as all_to_all, all_to_all_single as all_to_all_single, barrier as barrier,
    broadcast as broadcast, check_tensor as check_tensor, gather as gather, reduce as reduce,
    reduce_scatter as reduce_scatter, reduce_scatter_tensor as reduce_scatter_tensor,
    reduce_scatter_tensor_uneven as reduce_scatter_tensor_uneven, scatter as scatter,
    set_comm_ops_inplace as set_comm_ops_inplace,
)
from mycelia.faces.mint.distributed.groups import check_group as check_group, place_of as place_of
from mycelia.faces.stand_ins.communication.handle import done as done
from mycelia.ops import (
    all_gather_object as all_gather_object, broadcast_object_list as broadcast_object_list,
    gather_object as gather_object, scatter_object_list as scatter_object_list,
)

__all__ = [
    "all_gather", "all_gather_into_tensor", "all_gather_into_tensor_uneven", "all_gather_object",
    "all_reduce", "all_to_all", "all_to_all_single", "as_bytes", "barrier", "broadcast",
    "broadcast_object_list", "check_group", "check_tensor", "done", "from_bytes", "gather", "gather_object",
    "is_tensor", "place_of", "reduce", "reduce_scatter", "reduce_scatter_tensor",
    "reduce_scatter_tensor_uneven", "scatter", "scatter_object_list", "set_comm_ops_inplace",
]
