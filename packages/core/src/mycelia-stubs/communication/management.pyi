# Written by tools/gen_stubs.py.
from mycelia.communication import create_group as create_group
from mycelia.engine.communication.launch import (
    LaunchConfig as LaunchConfig, from_environment as from_environment,
)
from mycelia.faces.stand_ins.communication.management import (
    GlobalComm as GlobalComm, destroy_group as destroy_group, get_comm_name as get_comm_name,
    get_group_rank_from_world_rank as get_group_rank_from_world_rank, get_group_size as get_group_size,
    get_local_rank as get_local_rank, get_local_rank_size as get_local_rank_size,
    get_process_group_ranks as get_process_group_ranks, get_rank as get_rank,
    get_world_rank_from_group_rank as get_world_rank_from_group_rank, init as init, join as join,
    own_backend as own_backend, release as release, require_group as require_group,
)

__all__ = [
    "GlobalComm", "HCCL_WORLD_COMM_GROUP", "LaunchConfig", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP",
    "create_group", "destroy_group", "from_environment", "get_comm_name", "get_group_rank_from_world_rank",
    "get_group_size", "get_local_rank", "get_local_rank_size", "get_process_group_ranks", "get_rank",
    "get_world_rank_from_group_rank", "init", "join", "own_backend", "release", "require_group",
]

HCCL_WORLD_COMM_GROUP: str
MCCL_WORLD_COMM_GROUP: str
NCCL_WORLD_COMM_GROUP: str
