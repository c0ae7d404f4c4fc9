"""Debugging of values: dumps of every operator's tensors, reading them, and finding where a NaN was born.

`dump` writes what runs in a block, as ``MINDSPORE_DUMP_CONFIG=data_dump.json`` does for a whole process; the
command ``mycelia-debug DIR`` and `DumpAnalyzer` read it. What watches operators while they run is
`mycelia.engine.observing`.
"""

from mycelia.debug.analyzer import DebuggerTensor, DumpAnalyzer, Node, Watchpoint, WatchpointHit
from mycelia.debug.breaking import break_if
from mycelia.debug.determinism import deterministic, seed_all
from mycelia.debug.dump import dump
from mycelia.debug.operators import run_operator
from mycelia.debug.reading.nonfinite import NonFinite
from mycelia.debug.statistics import Statistics, statistics
from mycelia.debug.watch_conditions import (
    ConditionBase,
    OperatorOverflowCondition,
    TensorAllZeroCondition,
    TensorChangeAboveThresholdCondition,
    TensorChangeBelowThresholdCondition,
    TensorOverflowCondition,
    TensorRangeCondition,
    TensorTooLargeCondition,
    TensorTooSmallCondition,
    TensorUnchangedCondition,
    WatchCondition,
)

__all__ = [
    "ConditionBase", "DebuggerTensor", "DumpAnalyzer", "Node", "NonFinite", "OperatorOverflowCondition",
    "Statistics", "TensorAllZeroCondition", "TensorChangeAboveThresholdCondition",
    "TensorChangeBelowThresholdCondition", "TensorOverflowCondition", "TensorRangeCondition",
    "TensorTooLargeCondition", "TensorTooSmallCondition", "TensorUnchangedCondition", "WatchCondition",
    "Watchpoint", "WatchpointHit", "break_if", "deterministic", "dump", "run_operator", "seed_all",
    "statistics",
]  # fmt: skip
