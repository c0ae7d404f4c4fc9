"""Settings of parallel training: `set_auto_parallel_context`, parameter servers, and the search for
strategies.

They are checked, kept and given back. What no part of training follows is warned of when it is set;
`engine/communication/mode.py` says what the others mean for the processes that have joined.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from mycelia.engine.base import errors, ignored


class ParallelMode:
    """How training is divided among devices; each is a text."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = [STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL]


Row = tuple[Any, type | tuple[type, ...], Callable[[Any], bool] | None, str]


def _among(*values) -> tuple[Callable[[Any], bool], str]:
    return lambda value: value in values, f"one of {list(values)}"


def _from(low: int, high: int | None = None) -> tuple[Callable[[Any], bool], str]:
    expected = f"{low} or more" if high is None else f"in [{low}, {high}]"
    return lambda value: value >= low and (high is None or value <= high), expected


def _row(default, types, check=(None, "")) -> Row:
    return default, types, *check


#: Orders in which stages of a pipeline take micro-batches.
SCHEDULERS = ("1f1b", "gpipe")
_OTHER_SCHEDULERS = ("seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v")
_FUSION = {"mode": "auto", "config": None}
_SEARCH = _among("recursive_programming", "dynamic_programming", "sharding_propagation")
_AUTO: dict[str, Row] = {
    "device_num": _row(1, int, _from(1)), "global_rank": _row(0, int, _from(0, 4095)),
    "gradients_mean": _row(False, bool), "gradient_fp32_sync": _row(True, bool),
    "loss_repeated_mean": _row(True, bool),
    "parallel_mode": _row("stand_alone", str, _among(*ParallelMode.MODE_LIST)),
    "auto_parallel_search_mode": _row("recursive_programming", str, _SEARCH),
    "search_mode": _row("recursive_programming", str, _SEARCH), "parameter_broadcast": _row(False, bool),
    "strategy_ckpt_load_file": _row("", str), "strategy_ckpt_save_file": _row("", str),
    "full_batch": _row(False, bool), "dataset_strategy": _row("data_parallel", (str, tuple, list)),
    "enable_parallel_optimizer": _row(False, bool), "force_fp32_communication": _row(False, bool),
    "enable_alltoall": _row(False, bool), "all_reduce_fusion_config": _row([], list),
    "pipeline_stages": _row(1, int, _from(1)), "pipeline_result_broadcast": _row(False, bool),
    "pipeline_config": _row({}, dict), "pipeline_segments": _row(1, int, _from(1)),
    "pipeline_interleave": _row(False, bool),
    "pipeline_scheduler": _row("1f1b", str, _among(*SCHEDULERS, *_OTHER_SCHEDULERS)),
    "auto_pipeline": _row(False, bool), "grad_accumulation_step": _row(1, int, _from(1)),
    "parallel_optimizer_config": _row({}, dict),
    "comm_fusion": _row(
        {"openstate": True, "allreduce": _FUSION, "allgather": _FUSION, "reducescatter": _FUSION}, dict
    ),
    "strategy_ckpt_config": _row({"load_file": "", "save_file": "", "only_trainable_params": True}, dict),
    "group_ckpt_save_file": _row("", str), "sharding_propagation": _row(False, bool),
    "communi_parallel_mode": _row(
        "all_group_parallel", str,
        _among("all_group_parallel", "same_server_group_parallel", "no_group_parallel"),
    ),
    "optimizer_weight_shard_size": _row(-1, int), "init_param_in_compile": _row(True, bool),
    "optimizer_weight_shard_aggregated_save": _row(False, bool), "dump_local_norm": _row(False, bool),
    "dump_local_norm_path": _row("", str), "dump_device_local_norm": _row(False, bool),
}  # fmt: skip

#: What does not happen, by setting.
_MISSING = {
    **dict.fromkeys(("full_batch", "dataset_strategy"), "datasets are divided by num_shards and shard_id"),
    **dict.fromkeys(("gradient_fp32_sync", "loss_repeated_mean", "force_fp32_communication",
                     "enable_alltoall", "communi_parallel_mode"), "operators are not cut among processes"),
    **dict.fromkeys(("auto_parallel_search_mode", "search_mode", "sharding_propagation",
                     "strategy_ckpt_load_file", "strategy_ckpt_save_file", "strategy_ckpt_config",
                     "group_ckpt_save_file"), "there are no strategies: nothing is cut into parts"),
    "optimizer_weight_shard_aggregated_save": "integrated_save of checkpoints says whether parts are joined",
    "auto_pipeline": "stages are those that cells are given: cell.pipeline_stage",
    "grad_accumulation_step": "nn.wrap.GradAccumulationCell accumulates gradients",
    "init_param_in_compile": "Parameters have their values before anything is compiled",
    **dict.fromkeys(("dump_local_norm", "dump_local_norm_path", "dump_device_local_norm"),
                    "norms of gradients are not written"),
}  # fmt: skip

_SERVERS: dict[str, Row] = {
    "enable_ps": _row(False, bool), "config_file_path": _row("", str), "enable_ssl": _row(False, bool),
    "client_password": _row("", str), "server_password": _row("", str), "scheduler_ip": _row("127.0.0.1",
    str),
    "scheduler_port": _row(6667, int, _from(1, 65535)), "server_num": _row(0, int, _from(0)),
    "worker_num": _row(0, int, _from(0)), "server_mode": _row("", str), "ms_role": _row("MS_NOT_PS", str),
}  # fmt: skip

_SEARCHES: dict[str, Row] = {
    "fully_use_devices": _row(False, bool), "elementwise_op_strategy_follow": _row(False, bool),
    "enable_algo_approxi": _row(False, bool), "algo_approxi_epsilon": _row(0.1, float, _from(0, 1)),
    "tensor_slice_align_enable": _row(False, bool), "tensor_slice_align_size": _row(16, int, _from(1, 1024)),
}  # fmt: skip


class _Settings:
    """A table of settings with the values that were set."""

    def __init__(self, owner: str, table: dict[str, Row], missing: dict[str, str]):
        self.owner, self.table, self.missing = owner, table, missing
        self.values: dict[str, Any] = {}

    followed: Callable[[str], bool] = staticmethod(
        lambda key: False
    )  # whether a setting of `missing` counts now

    def set(self, given: dict[str, Any]) -> None:
        """Errors: ValueError for an unknown key or a value out of range, TypeError; then nothing is
        changed."""
        for key, value in given.items():
            _, types, check, expected = self._row("set", key)
            types = types if isinstance(types, tuple) else (types,)
            if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
                names = " or ".join(t.__name__ for t in types)
                raise errors.type_error(
                    f"set_{self.owner}", f"{key} must be {names}, but got {type(value).__name__}"
                )
            if check is not None and not check(value):
                raise errors.value_error(f"set_{self.owner}", f"{key} must be {expected}, but got {value!r}")
        for key, value in given.items():
            default = self.table[key][0]
            self.values[key] = {**default, **value} if isinstance(value, dict) else value
        for key, value in given.items():
            default = self.table[key][0]
            if self.values[key] != default and key in self.missing and not self.followed(key):
                ignored.tell(f"set_{self.owner}", key, value, self.missing[key])

    def get(self, key: str):
        """Errors: ValueError for an unknown key."""
        default = self._row("get", key)[0]
        return copy.deepcopy(self.values.get(key, default))

    def _row(self, doing: str, key: str) -> Row:
        if key not in self.table:
            raise errors.one_of(key, self.table, subject=f"{doing}_{self.owner}", what="key")
        return self.table[key]

    def reset(self) -> None:
        self.values.clear()


_auto = _Settings("auto_parallel_context", _AUTO, _MISSING)
_SEARCH_MODES = ("search_mode", "auto_parallel_search_mode")
_OF_GRAPHS = ("full_batch", "dataset_strategy", "strategy_ckpt_save_file", "strategy_ckpt_config")
_OF_SEARCHES = (*_OF_GRAPHS, *_SEARCH_MODES, "sharding_propagation")


def _is_followed(key: str) -> bool:
    mode = _auto.get("parallel_mode")
    return (mode == ParallelMode.SEMI_AUTO_PARALLEL and key in _OF_GRAPHS) or (
        mode == ParallelMode.AUTO_PARALLEL and key in _OF_SEARCHES
    )


_auto.followed = _is_followed
#: Called when settings of parallel training have changed.
followers: list[Callable[[], object]] = []
_servers = _Settings("ps_context", _SERVERS, dict.fromkeys(_SERVERS, "there are no parameter servers"))
_searches = _Settings("algo_parameters", _SEARCHES, dict.fromkeys(_SEARCHES, "no strategies are searched"))


_asked: list[Callable[[], tuple[int, int] | None]] = []


def ask_for_the_world(place: Callable[[], tuple[int, int] | None]) -> None:
    """`place()` says rank and number of the processes that have joined: settings that nobody has set."""
    _asked[:] = [place]


def require_no_servers(subject: str) -> None:
    """RuntimeError if the settings ask for parameter servers."""
    if _servers.get("enable_ps"):
        raise errors.error(
            errors.MyceliaRuntimeError, subject,
            "set_ps_context(enable_ps=True) asks for parameter servers, which are not there",
            hint="parallel_mode='data_parallel' adds gradients of several processes; reset_ps_context() does "
            "without",
        )  # fmt: skip


def require_single(subject: str) -> None:
    """RuntimeError if the settings say that other processes take part as well: none has joined."""
    require_no_servers(subject)
    mode, count = _auto.get("parallel_mode"), _auto.get("device_num")
    stages = _auto.get("pipeline_stages")
    if (mode != ParallelMode.STAND_ALONE and count > 1) or stages > 1:
        parts = f"parallel_mode={mode!r}, device_num={count}, pipeline_stages={stages}"
        asked = f"set_auto_parallel_context({parts}) asks for several processes"
        raise errors.error(
            errors.MyceliaRuntimeError, subject, f"{asked}, but this one trains alone",
            hint="communication.init() joins the processes that `mycelia msrun` started; "
            "reset_auto_parallel_context() trains in one",
        )  # fmt: skip


def set_auto_parallel_context(**kwargs) -> None:
    """Set how training is divided among devices.

    Errors: ValueError for an unknown key or a value out of range, TypeError; then nothing is changed.
    """
    strategy = kwargs.get("dataset_strategy")
    if isinstance(strategy, str) and strategy not in ("full_batch", "data_parallel"):
        raise errors.one_of(
            strategy,
            ("full_batch", "data_parallel"),
            subject="set_auto_parallel_context",
            what="dataset_strategy",
        )
    _check_fusion(kwargs)
    _check_parallel_optimizer(kwargs)
    _auto.set({**kwargs, **_pipeline(kwargs), **_search(kwargs)})
    for follower in followers:
        follower()
    for what in ("allgather", "reducescatter"):
        asked = kwargs.get("comm_fusion", {}).get(what, _FUSION)
        if asked != _FUSION:
            ignored.tell("set_auto_parallel_context", f"comm_fusion[{what!r}]", asked, "only sums are joined")


def _check_parallel_optimizer(given: dict[str, Any]) -> None:
    """Errors: TypeError, ValueError for a `parallel_optimizer_config` that says nothing."""
    owner, config = "set_auto_parallel_context", given.get("parallel_optimizer_config")
    if not isinstance(config, dict):
        return
    known = ("gradient_accumulation_shard", "parallel_optimizer_threshold", "optimizer_level")
    levels = ("level1", "level2", "level3")
    for name, value in config.items():
        where = f"parallel_optimizer_config[{name!r}]"
        if name not in known:
            raise errors.one_of(name, known, subject=owner, what="parallel_optimizer_config")
        if name == known[0] and not isinstance(value, bool):
            raise errors.type_error(owner, f"{where} must be bool, but got {value!r}")
        if name == known[1] and type(value) is not int:
            raise errors.type_error(owner, f"{where} must be int, but got {value!r}")
        if name == known[1] and value < 0:
            raise errors.value_error(owner, f"{where} must be a number of KB from 0 on, but got {value}")
        if name == known[2] and value not in levels:
            raise errors.one_of(value, levels, subject=owner, what=where)


def _pipeline(given: dict[str, Any]) -> dict[str, Any]:
    """The settings that `pipeline_config` stands for. Errors: ValueError for another key."""
    config = given.get("pipeline_config")
    if not isinstance(config, dict):
        return {}
    known = ("pipeline_interleave", "pipeline_scheduler")
    for name in config:
        if name not in known:
            raise errors.one_of(name, known, subject="set_auto_parallel_context", what="pipeline_config")
    return config


def _search(given: dict[str, Any]) -> dict[str, Any]:
    """Both names of the search for strategies, if one is given."""
    for name in _SEARCH_MODES:
        if name in given:
            return dict.fromkeys(_SEARCH_MODES, given[name])
    return {}


def search_mode() -> str:
    """How strategies are found that nobody has given."""
    is_old = _auto.get("sharding_propagation") and not is_set("search_mode")
    return "sharding_propagation" if is_old else str(_auto.get("search_mode"))


def _check_fusion(given: dict[str, Any]) -> None:
    """Errors: TypeError, ValueError for what does not say which gradients go together."""
    owner = "set_auto_parallel_context"
    indices = given.get("all_reduce_fusion_config")
    if isinstance(indices, list):
        _check_indices(owner, "all_reduce_fusion_config", indices)
    fusion = given.get("comm_fusion")
    if not isinstance(fusion, dict):
        return
    for name, value in fusion.items():
        if name not in _AUTO["comm_fusion"][0]:
            raise errors.one_of(name, _AUTO["comm_fusion"][0], subject=owner, what="comm_fusion")
        if name == "openstate":
            if not isinstance(value, bool):
                raise errors.type_error(owner, f"comm_fusion['openstate'] must be bool, but got {value!r}")
            continue
        if not isinstance(value, dict) or value.keys() != {"mode", "config"}:
            raise errors.value_error(
                owner, f"comm_fusion[{name!r}] must be a dict of 'mode' and 'config', but got {value!r}"
            )
        modes = ("auto", "size", "index") if name == "allreduce" else ("auto", "size")
        mode, config = value["mode"], value["config"]
        if mode not in modes:
            raise errors.one_of(mode, modes, subject=owner, what=f"comm_fusion[{name!r}]['mode']")
        if mode == "size" and (isinstance(config, bool) or not isinstance(config, int) or config <= 0):
            raise errors.value_error(
                owner, f"comm_fusion[{name!r}]['config'] must be a positive number of MB, but got {config!r}"
            )
        if mode == "index":
            _check_indices(owner, "comm_fusion['allreduce']['config']", config)


def _check_indices(owner: str, name: str, indices: Any) -> None:
    are_ints = isinstance(indices, list) and all(type(i) is int for i in indices)
    if not are_ints:
        raise errors.type_error(owner, f"{name} must be a list of int, but got {indices!r}")
    if indices != sorted(set(indices)) or any(i < 0 for i in indices):
        raise errors.value_error(
            owner, f"{name} must have places of Parameters in ascending order, each once, but got {indices}"
        )


def get_auto_parallel_context(attr_key: str):
    """One setting of parallel training; `device_num` and `global_rank` are those of the processes that have
    joined, unless they were set.  Errors: ValueError for an unknown key.
    """
    if attr_key in ("device_num", "global_rank") and attr_key not in _auto.values and _asked:
        place = _asked[0]()
        if place is not None:
            return place[attr_key == "device_num"]
    return _auto.get(attr_key)


def reset_auto_parallel_context() -> None:
    """All settings of parallel training back to their defaults."""
    _auto.reset()
    for follower in followers:
        follower()


def set_ps_context(**kwargs) -> None:
    """Set how parameter servers are used. Errors: as `set_auto_parallel_context`."""
    _servers.set(kwargs)


def get_ps_context(attr_key: str):
    """One setting of parameter servers.  Errors: ValueError for an unknown key, and for passwords."""
    if attr_key in ("client_password", "server_password"):
        raise errors.value_error("get_ps_context", f"{attr_key} is not given away")
    return _servers.get(attr_key)


def reset_ps_context() -> None:
    """All settings of parameter servers back to their defaults."""
    _servers.reset()


def set_algo_parameters(**kwargs) -> None:
    """Set how strategies are searched. Errors: as `set_auto_parallel_context`."""
    _searches.set(kwargs)


def get_algo_parameters(attr_key: str):
    """One setting of the search for strategies.  Errors: ValueError for an unknown key."""
    return _searches.get(attr_key)


def reset_algo_parameters() -> None:
    """All settings of the search for strategies back to their defaults."""
    _searches.reset()


def is_key(key: str) -> bool:
    """Whether parallel training has a setting of this name."""
    return key in _AUTO


def is_set(key: str) -> bool:
    """Whether this setting of parallel training was given a value."""
    return key in _auto.values
