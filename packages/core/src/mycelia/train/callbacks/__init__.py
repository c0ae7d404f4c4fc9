"""Callbacks of `Model`."""

from mycelia.train.callbacks.base import Callback, CallbackManager, RunContext
from mycelia.train.callbacks.checkpoint import BackupAndRestore, CheckpointConfig, ModelCheckpoint
from mycelia.train.callbacks.control import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau
from mycelia.train.callbacks.exit import FlopsUtilizationCollector, OnRequestExit
from mycelia.train.callbacks.fault_tolerance import TrainFaultTolerance
from mycelia.train.callbacks.gradients import GradWatch
from mycelia.train.callbacks.monitor import History, LambdaCallback, LossMonitor, ProgressBar, TimeMonitor
from mycelia.train.callbacks.overflow import OverflowMonitor, StopOnNaN
from mycelia.train.callbacks.summary import SummaryCollector

__all__ = [
    "BackupAndRestore", "Callback", "CallbackManager", "CheckpointConfig", "EarlyStopping", "History",
        "LambdaCallback",
    "LearningRateScheduler", "LossMonitor", "ModelCheckpoint", "ProgressBar", "ReduceLROnPlateau",
        "RunContext", "SummaryCollector", "FlopsUtilizationCollector", "OnRequestExit", "TrainFaultTolerance",
    "OverflowMonitor", "StopOnNaN", "GradWatch", "TimeMonitor",
]  # fmt: skip
