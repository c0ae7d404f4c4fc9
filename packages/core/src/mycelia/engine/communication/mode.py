"""What the settings of parallel training mean for the processes that have joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mycelia.engine import _C
from mycelia.engine.base import errors, parallel_settings
from mycelia.engine.base.parallel_settings import ParallelMode
from mycelia.engine.communication import world
from mycelia.engine.communication.share import GridShare

#: What one collective takes where nothing else is said: fewer, longer ones cost less each, and this much no
# longer shows its start.
PART_BYTES = 25 << 20
#: Called with each division of a graph: the strategies of its operators, and where its Parameters lie, by
# name.
divisions: list[Callable[[dict[str, list[list[int]]], dict[str, GridShare]], object]] = []
_TOGETHER = (ParallelMode.DATA_PARALLEL, ParallelMode.HYBRID_PARALLEL)
_OF_GRAPHS = (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL)


_PARTS_OF_MICRO_BATCHES = "gradient_accumulation_shard would add gradients of micro-batches in parts"


def degree(subject: str) -> int:
    """How many processes train the same Parameters together, each on its share of the data; 1: this one
    trains them alone. Where networks are cut into stages these are the processes of a stage (`stages.py`).

    Errors: RuntimeError if settings ask for processes that have not joined, NotImplementedError for those
    that would cut the network into parts.
    """
    here = world.current()
    joined = 1 if here is None else here.communicator.size
    mode = parallel_settings.get_auto_parallel_context("parallel_mode")
    if joined == 1:
        parallel_settings.require_single(subject)
        return 1
    parallel_settings.require_no_servers(subject)
    asked = parallel_settings.get_auto_parallel_context("device_num")
    if asked != joined:
        raise errors.runtime_error(
            subject, f"device_num is {asked}, but {joined} processes have joined",
            hint="set_auto_parallel_context takes their number where device_num is left away",
        )  # fmt: skip
    count = parallel_settings.get_auto_parallel_context("pipeline_stages")
    if count > 1:
        return _width(subject, mode, joined, count)
    if mode in _TOGETHER:
        return joined
    if mode == ParallelMode.AUTO_PARALLEL:
        _require_propagation(subject)
    return 1  # graphs are divided, each rank computes its part of one step; or nothing is


def _require_propagation(subject: str) -> None:
    """NotImplementedError for a search for strategies that is not there."""
    asked = parallel_settings.search_mode()
    if asked != "sharding_propagation":
        raise errors.error(
            errors.NotSupportedError, subject,
            f"parallel_mode='auto_parallel' with search_mode={asked!r} would choose strategies of operators "
            "by their cost, which is not there",
            hint="search_mode='sharding_propagation' gives the strategies of some operators to the others",
        )  # fmt: skip


def _width(subject: str, mode: str, joined: int, count: int) -> int:
    """How many of `joined` processes have each of `count` stages.

    Errors: RuntimeError if they are not equally many, NotImplementedError for what stages cannot follow.
    """
    get = parallel_settings.get_auto_parallel_context
    if joined % count:
        raise errors.runtime_error(
            subject, f"pipeline_stages {count} does not divide the {joined} processes that have joined"
        )
    if mode == ParallelMode.STAND_ALONE:
        raise errors.runtime_error(
            subject, f"pipeline_stages={count} cuts a network that several processes train, but "
            "parallel_mode is 'stand_alone'",
            hint="set_auto_parallel_context(parallel_mode='semi_auto_parallel')",
        )  # fmt: skip
    missing = ""
    if get("pipeline_segments") > 1:
        missing = f"pipeline_segments={get('pipeline_segments')} would give each process several parts"
    elif get("pipeline_scheduler") not in parallel_settings.SCHEDULERS:
        missing = f"pipeline_scheduler={get('pipeline_scheduler')!r} is not there"
    if missing:
        raise errors.error(
            errors.NotSupportedError, subject, f"pipeline_stages={count}: {missing}",
            hint=f"pipeline_scheduler may be one of {list(parallel_settings.SCHEDULERS)}",
        )  # fmt: skip
    return joined // count


def stages() -> int:
    """Into how many stages networks are cut."""
    return int(parallel_settings.get_auto_parallel_context("pipeline_stages"))


def dividing(subject: str) -> int:
    """Among how many processes graphs are divided (`semi_auto_parallel`, `auto_parallel`); 1: none are, or
    this one is alone.

    Errors: as `degree`.
    """
    here = world.current()
    if here is None or here.communicator.size == 1:
        return 1
    mode = parallel_settings.get_auto_parallel_context("parallel_mode")
    if mode not in _OF_GRAPHS or stages() > 1:
        return 1
    degree(subject)
    return here.communicator.size


def spreads_layouts() -> bool:
    """Whether operators without a strategy take one from those around them."""
    mode = parallel_settings.get_auto_parallel_context("parallel_mode")
    return bool(mode == ParallelMode.AUTO_PARALLEL)


def trains_together(subject: str) -> bool:
    """Whether several processes train one network. Errors: as `degree`."""
    here = world.current()
    if here is None or here.communicator.size == 1:
        return False
    return degree(subject) > 1 or dividing(subject) > 1 or stages() > 1


def require_graph(subject: str) -> None:
    """RuntimeError where graphs are divided and none is captured: what runs eagerly runs on this rank
    alone.
    """
    if not _C.mode() & 1 and dividing(subject) > 1:
        mode = parallel_settings.get_auto_parallel_context("parallel_mode")
        raise errors.runtime_error(
            subject, f"parallel_mode={mode!r} divides graphs, but this runs eagerly",
            hint="set_context(mode=GRAPH_MODE), or jit around the whole training step",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dividing:
    """What processes that train the same Parameters divide among themselves: states of optimizers (`level`
    1), gradients, too (2), weights, too (3), of Parameters of at least `least_bytes`, among `size` each.
    """

    level: int
    least_bytes: int
    size: int


def dividing_states(subject: str) -> Dividing | None:
    """How optimizers of these settings divide their states; None: these are whole everywhere.

    Errors: as `degree`; ValueError for a number of parts that does not divide that of the processes,
    NotImplementedError for settings that would divide otherwise.
    """
    get = parallel_settings.get_auto_parallel_context
    joined = degree(subject)
    if joined == 1 or not get("enable_parallel_optimizer"):
        return None
    config = get("parallel_optimizer_config")
    asked = get("optimizer_weight_shard_size")
    size = joined if asked == -1 else asked
    level = int(config.get("optimizer_level", "level1")[-1])
    if size < 1 or joined % size:
        raise errors.value_error(
            subject, f"optimizer_weight_shard_size must divide the {joined} processes that train together, "
            f"but got {asked}",
        )  # fmt: skip
    missing = ""
    if config.get("gradient_accumulation_shard", False):
        missing = _PARTS_OF_MICRO_BATCHES
    elif level > 1 and stages() > 1:
        missing = f"optimizer_level='level{level}' would divide what stages of a pipeline hold"
    if missing:
        raise errors.error(errors.NotSupportedError, subject, f"enable_parallel_optimizer: {missing}")
    if size == 1:
        return None
    return Dividing(level, int(config.get("parallel_optimizer_threshold", 64)) << 10, size)


def dividing_states_of_graphs(subject: str) -> Dividing | None:
    """As `dividing_states`, of graphs that are divided: what each rank would keep alike is divided besides.

    Errors: as `dividing_states`.
    """
    get = parallel_settings.get_auto_parallel_context
    size = dividing(subject)
    if size == 1 or not get("enable_parallel_optimizer"):
        return None
    config, missing = get("parallel_optimizer_config"), ""
    level = int(config.get("optimizer_level", "level1")[-1])
    if config.get("gradient_accumulation_shard", False):
        missing = _PARTS_OF_MICRO_BATCHES
    elif level == 2:
        missing = "optimizer_level='level2': gradients of divided graphs are whole until the optimizer's step"
    elif get("optimizer_weight_shard_size") not in (-1, size):
        missing = (
            f"optimizer_weight_shard_size={get('optimizer_weight_shard_size')}: in divided graphs states are "
            "divided among all ranks that would keep the same"
        )
    if missing:
        raise errors.error(errors.NotSupportedError, subject, f"enable_parallel_optimizer: {missing}")
    return Dividing(level, int(config.get("parallel_optimizer_threshold", 64)) << 10, size)


def mean() -> bool:
    """Whether gradients of the processes are averaged, and not added."""
    return bool(parallel_settings.get_auto_parallel_context("gradients_mean"))


def fusion(parameters: Sequence[Any], fusion_type: int = 1) -> tuple[list[int], float]:
    """Which gradients one collective takes: a number for each of the Parameters, 0 for one that goes alone,
    and how many bytes it takes at most.

    As in MindSpore the Parameters' own `comm_fusion` comes first, where they differ; then, for `fusion_type`
    1, the places after which `all_reduce_fusion_config` cuts, or ``comm_fusion["allreduce"]`` of mode
    "index".
    """
    get = parallel_settings.get_auto_parallel_context
    asked = get("comm_fusion")
    if not asked["openstate"]:
        return [0] * len(parameters), PART_BYTES
    own = [int(getattr(parameter, "comm_fusion", 1)) for parameter in parameters]
    if len(set(own)) > 1:
        return own, float("inf")
    sums = asked["allreduce"]
    cuts = get("all_reduce_fusion_config") or (sums["config"] if sums["mode"] == "index" else [])
    if cuts and fusion_type == 1:
        return [1 + sum(cut < place for cut in cuts) for place in range(len(parameters))], float("inf")
    most = sums["config"] << 20 if sums["mode"] == "size" else PART_BYTES
    return [fusion_type] * len(parameters), most
