"""What scripts ask MindSpore's modules of parallel training, below `mindspore.parallel`, for."""

from __future__ import annotations

from mycelia.engine.base import parallel_settings
from mycelia.faces import context
from mycelia.faces.stand_ins.communication import get_group_size, get_rank


class _AutoParallelContext:
    """The settings of parallel training, one by one: ``get_<key>()`` and ``set_<key>(value)``."""

    def get_device_num_is_set(self) -> bool:
        """Whether the number of devices was set."""
        return parallel_settings.is_set("device_num")

    def get_global_rank_is_set(self) -> bool:
        """Whether the rank was set."""
        return parallel_settings.is_set("global_rank")

    def get_parameter_broadcast_is_set(self) -> bool:
        """Whether it was set that Parameters are sent from the first device."""
        return parallel_settings.is_set("parameter_broadcast")

    def get_strategy_search_mode(self) -> str:
        """How strategies are searched."""
        return context.get_auto_parallel_context("search_mode")

    def set_strategy_search_mode(self, mode: str) -> None:
        """Set how strategies are searched."""
        context.set_auto_parallel_context(search_mode=mode)

    def set_all_reduce_fusion_split_indices(self, indices, group="") -> None:
        """Say after which gradients a sum over devices begins anew: there is one device."""
        context.set_auto_parallel_context(all_reduce_fusion_config=list(indices))

    def get_all_reduce_fusion_split_indices(self) -> list:
        """What was set."""
        return context.get_auto_parallel_context("all_reduce_fusion_config")

    def reset(self) -> None:
        """All settings back to their defaults."""
        context.reset_auto_parallel_context()

    def __getattr__(self, name: str):
        doing, _, key = name.partition("_")
        if doing not in ("get", "set") or not parallel_settings.is_key(key):
            raise AttributeError(f"the settings of parallel training have no {name!r}", name=name, obj=self)
        if doing == "get":
            return lambda: context.get_auto_parallel_context(key)
        return lambda value: context.set_auto_parallel_context(**{key: value})


_SETTINGS = _AutoParallelContext()


def auto_parallel_context() -> _AutoParallelContext:
    """The settings of parallel training."""
    return _SETTINGS


def _setting(key: str):
    def read():
        return context.get_auto_parallel_context(key)

    read.__name__, read.__doc__ = f"_get_{key}", f"The setting `{key}`."
    return read


_get_parallel_mode = _setting("parallel_mode")
_get_gradients_mean = _setting("gradients_mean")
_get_parameter_broadcast = _setting("parameter_broadcast")
_get_full_batch = _setting("full_batch")
_get_pipeline_stages = _setting("pipeline_stages")
_get_enable_parallel_optimizer = _setting("enable_parallel_optimizer")


def _get_device_num() -> int:
    """On how many devices is trained: what was set, else the size of the group of processes."""
    if _get_parallel_mode() == "stand_alone":
        return 1
    return _setting("device_num")() if _SETTINGS.get_device_num_is_set() else get_group_size()


def _get_stage_device_num() -> int:
    """How many devices a stage has."""
    return _get_device_num() // _get_pipeline_stages()


def _get_global_rank() -> int:
    """Which of the devices this is."""
    if _get_parallel_mode() == "stand_alone":
        return 0
    return _setting("global_rank")() if _SETTINGS.get_global_rank_is_set() else get_rank()


def _is_in_auto_parallel_mode() -> bool:
    return _get_parallel_mode() in ("semi_auto_parallel", "auto_parallel")


def _is_in_data_parallel_mode() -> bool:
    return _get_parallel_mode() == "data_parallel"


def _is_in_hybrid_parallel_mode() -> bool:
    return _get_parallel_mode() == "hybrid_parallel"


def _is_parallel_mode() -> bool:
    return _get_parallel_mode() != "stand_alone"


def _is_sharding_propagation() -> bool:
    return (
        _SETTINGS.get_strategy_search_mode() == "sharding_propagation" or _setting("sharding_propagation")()
    )


# -- parameter servers: no process here is one


def _is_role_sched() -> bool:
    return False


_is_role_worker = _is_role_pserver = _is_ps_mode = _enable_distributed_mindrt = _is_role_sched


def _set_multi_subgraphs(multi_subgraphs=True) -> None:
    """Tell the search for strategies that graphs have subgraphs."""
