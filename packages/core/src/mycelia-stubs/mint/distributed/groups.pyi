# Written by tools/gen_stubs.py.
from mycelia.engine.communication.launch import (
    LaunchConfig as LaunchConfig, from_environment as from_environment,
)
from mycelia.faces.mint.distributed.groups import (
    check_group as check_group, get_backend as get_backend, get_global_rank as get_global_rank,
    get_group_rank as get_group_rank, get_process_group_ranks as get_process_group_ranks,
    get_rank as get_rank, get_world_size as get_world_size, is_available as is_available,
    is_initialized as is_initialized, place_of as place_of,
)
from mycelia.ops import (
    destroy_process_group as destroy_process_group, init_process_group as init_process_group,
    new_group as new_group,
)

__all__ = [
    "LaunchConfig", "check_group", "destroy_process_group", "from_environment", "get_backend",
    "get_global_rank", "get_group_rank", "get_process_group_ranks", "get_rank", "get_world_size",
    "init_process_group", "is_available", "is_initialized", "new_group", "place_of",
]
