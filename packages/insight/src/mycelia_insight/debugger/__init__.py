"""The debugger: questions to dumps with MindInsight's names, and sessions that the interface and pages use.

`mindinsight.debugger` is this module's model; the classes are core's `mycelia.debug`.
"""

from mycelia.debug import (
    ConditionBase,
    DebuggerTensor,
    DumpAnalyzer,
    Node,
    OperatorOverflowCondition,
    TensorAllZeroCondition,
    TensorChangeAboveThresholdCondition,
    TensorChangeBelowThresholdCondition,
    TensorOverflowCondition,
    TensorRangeCondition,
    TensorTooLargeCondition,
    TensorTooSmallCondition,
    TensorUnchangedCondition,
    Watchpoint,
    WatchpointHit,
)

__all__ = [
    "ConditionBase", "DebuggerTensor", "DumpAnalyzer", "Node", "OperatorOverflowCondition",
    "TensorAllZeroCondition", "TensorChangeAboveThresholdCondition", "TensorChangeBelowThresholdCondition",
    "TensorOverflowCondition", "TensorRangeCondition", "TensorTooLargeCondition", "TensorTooSmallCondition",
    "TensorUnchangedCondition", "Watchpoint", "WatchpointHit",
]  # fmt: skip
