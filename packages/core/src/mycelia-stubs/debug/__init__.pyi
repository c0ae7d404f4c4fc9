# Written by tools/gen_stubs.py.
from . import conditions as conditions, messages as messages, reading as reading, recorder as recorder
from collections.abc import Iterator as Iterator, Mapping as Mapping
from mycelia.debug.analyzer import (
    DebuggerTensor as DebuggerTensor, DumpAnalyzer as DumpAnalyzer, Node as Node, Watchpoint as Watchpoint,
    WatchpointHit as WatchpointHit,
)
from mycelia.debug.breaking import break_if as break_if
from mycelia.debug.determinism import deterministic as deterministic, seed_all as seed_all
from mycelia.debug.operators import run_operator as run_operator
from mycelia.debug.reading.nonfinite import NonFinite as NonFinite
from mycelia.debug.statistics import Statistics as Statistics, statistics as statistics
from mycelia.debug.watch_conditions import (
    ConditionBase as ConditionBase, OperatorOverflowCondition as OperatorOverflowCondition,
    TensorAllZeroCondition as TensorAllZeroCondition,
    TensorChangeAboveThresholdCondition as TensorChangeAboveThresholdCondition,
    TensorChangeBelowThresholdCondition as TensorChangeBelowThresholdCondition,
    TensorOverflowCondition as TensorOverflowCondition, TensorRangeCondition as TensorRangeCondition,
    TensorTooLargeCondition as TensorTooLargeCondition, TensorTooSmallCondition as TensorTooSmallCondition,
    TensorUnchangedCondition as TensorUnchangedCondition, WatchCondition as WatchCondition,
)
from typing import Any as Any

__all__ = [
    "ConditionBase", "DebuggerTensor", "DumpAnalyzer", "Node", "NonFinite", "OperatorOverflowCondition",
    "Statistics", "TensorAllZeroCondition", "TensorChangeAboveThresholdCondition",
    "TensorChangeBelowThresholdCondition", "TensorOverflowCondition", "TensorRangeCondition",
    "TensorTooLargeCondition", "TensorTooSmallCondition", "TensorUnchangedCondition", "WatchCondition",
    "Watchpoint", "WatchpointHit", "break_if", "deterministic", "dump", "run_operator", "seed_all",
    "statistics",
]


def dump(settings: Mapping[str, Any] | str) -> Any:
    """In this block all that runs is dumped: compiled functions, and the eager operators of this thread."""
