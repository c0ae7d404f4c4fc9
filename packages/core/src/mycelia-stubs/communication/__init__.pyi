# Written by tools/gen_stubs.py.
from . import comm_func as comm_func, management as management
from mycelia.faces.stand_ins.communication.management import (
    GlobalComm as GlobalComm, destroy_group as destroy_group, get_comm_name as get_comm_name,
    get_group_rank_from_world_rank as get_group_rank_from_world_rank, get_group_size as get_group_size,
    get_local_rank as get_local_rank, get_local_rank_size as get_local_rank_size,
    get_process_group_ranks as get_process_group_ranks, get_rank as get_rank,
    get_world_rank_from_group_rank as get_world_rank_from_group_rank, init as init, release as release,
)

__all__ = [
    "HCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "GlobalComm", "comm_func",
    "create_group", "destroy_group", "get_comm_name", "get_group_rank_from_world_rank", "get_group_size",
    "get_local_rank", "get_local_rank_size", "get_process_group_ranks", "get_rank",
    "get_world_rank_from_group_rank", "init", "management", "release",
]

HCCL_WORLD_COMM_GROUP: str
MCCL_WORLD_COMM_GROUP: str
NCCL_WORLD_COMM_GROUP: str

def create_group(group: str, rank_ids: list[int], options=None) -> None:
    """Give some processes of the world a name; others may call it, too, but cannot use the group. One that is there stays as it is."""
