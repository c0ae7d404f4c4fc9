# Written by tools/gen_stubs.py.
from mycelia.engine.base.parallel_settings import (
    ParallelMode as ParallelMode, ask_for_the_world as ask_for_the_world,
    get_algo_parameters as get_algo_parameters, get_auto_parallel_context as get_auto_parallel_context,
    get_ps_context as get_ps_context, is_key as is_key, is_set as is_set,
    require_no_servers as require_no_servers, require_single as require_single,
    reset_algo_parameters as reset_algo_parameters,
    reset_auto_parallel_context as reset_auto_parallel_context, reset_ps_context as reset_ps_context,
    search_mode as search_mode, set_algo_parameters as set_algo_parameters,
    set_auto_parallel_context as set_auto_parallel_context, set_ps_context as set_ps_context,
)
from typing import Any as Any

__all__ = [
    "ParallelMode", "Row", "SCHEDULERS", "ask_for_the_world", "followers", "get_algo_parameters",
    "get_auto_parallel_context", "get_ps_context", "is_key", "is_set", "require_no_servers",
    "require_single", "reset_algo_parameters", "reset_auto_parallel_context", "reset_ps_context",
    "search_mode", "set_algo_parameters", "set_auto_parallel_context", "set_ps_context",
]

Row: Any
SCHEDULERS: tuple
followers: list
