# Written by tools/gen_stubs.py.
from mycelia.faces.mint.distributed.collectives import (
    all_gather as all_gather, all_gather_into_tensor as all_gather_into_tensor,
    all_gather_into_tensor_uneven as all_gather_into_tensor_uneven, all_reduce as all_reduce,
    all_to_all as all_to_all, all_to_all_single as all_to_all_single, barrier as barrier,
    broadcast as broadcast, gather as gather, reduce as reduce, reduce_scatter as reduce_scatter,
    reduce_scatter_tensor as reduce_scatter_tensor,
    reduce_scatter_tensor_uneven as reduce_scatter_tensor_uneven, scatter as scatter,
    set_comm_ops_inplace as set_comm_ops_inplace,
)
from mycelia.faces.mint.distributed.groups import (
    get_backend as get_backend, get_global_rank as get_global_rank, get_group_rank as get_group_rank,
    get_process_group_ranks as get_process_group_ranks, get_rank as get_rank,
    get_world_size as get_world_size, is_available as is_available, is_initialized as is_initialized,
)
from mycelia.faces.mint.distributed.pairs import (
    P2POp as P2POp, batch_isend_irecv as batch_isend_irecv, irecv as irecv, isend as isend,
    recv_object_list as recv_object_list,
)
from mycelia.faces.mint.distributed.store import TCPStore as TCPStore
from mycelia.ops import (
    all_gather_object as all_gather_object, broadcast_object_list as broadcast_object_list,
    destroy_process_group as destroy_process_group, gather_object as gather_object,
    init_process_group as init_process_group, new_group as new_group, recv as recv,
    scatter_object_list as scatter_object_list, send as send, send_object_list as send_object_list,
)

__all__ = [
    "P2POp", "TCPStore", "all_gather", "all_gather_into_tensor", "all_gather_into_tensor_uneven",
    "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv",
    "broadcast", "broadcast_object_list", "destroy_process_group", "gather", "gather_object", "get_backend",
    "get_global_rank", "get_group_rank", "get_process_group_ranks", "get_rank", "get_world_size",
    "init_process_group", "irecv", "is_available", "is_initialized", "isend", "new_group", "recv",
    "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_tensor_uneven",
    "scatter", "scatter_object_list", "send", "send_object_list", "set_comm_ops_inplace",
]
