# Written by tools/gen_stubs.py.
from mycelia.train.callbacks.base import (
    Callback as Callback, CallbackManager as CallbackManager, RunContext as RunContext,
)
from mycelia.train.callbacks.checkpoint import (
    BackupAndRestore as BackupAndRestore, CheckpointConfig as CheckpointConfig,
    ModelCheckpoint as ModelCheckpoint,
)
from mycelia.train.callbacks.control import (
    EarlyStopping as EarlyStopping, LearningRateScheduler as LearningRateScheduler,
    ReduceLROnPlateau as ReduceLROnPlateau,
)
from mycelia.train.callbacks.exit import (
    FlopsUtilizationCollector as FlopsUtilizationCollector, OnRequestExit as OnRequestExit,
)
from mycelia.train.callbacks.fault_tolerance import TrainFaultTolerance as TrainFaultTolerance
from mycelia.train.callbacks.gradients import GradWatch as GradWatch
from mycelia.train.callbacks.monitor import (
    History as History, LambdaCallback as LambdaCallback, LossMonitor as LossMonitor,
    ProgressBar as ProgressBar, TimeMonitor as TimeMonitor,
)
from mycelia.train.callbacks.overflow import OverflowMonitor as OverflowMonitor, StopOnNaN as StopOnNaN
from mycelia.train.callbacks.summary import SummaryCollector as SummaryCollector

__all__ = [
    "BackupAndRestore", "Callback", "CallbackManager", "CheckpointConfig", "EarlyStopping", "History",
    "LambdaCallback", "LearningRateScheduler", "LossMonitor", "ModelCheckpoint", "ProgressBar",
    "ReduceLROnPlateau", "RunContext", "SummaryCollector", "FlopsUtilizationCollector", "OnRequestExit",
    "TrainFaultTolerance", "OverflowMonitor", "StopOnNaN", "GradWatch", "TimeMonitor",
]
