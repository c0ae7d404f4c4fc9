# Written by tools/gen_stubs.py.
from . import callbacks as callbacks, metrics as metrics, summary as summary
from mycelia.io import (
    ckpt_to_safetensors as ckpt_to_safetensors, export as export, load as load,
    load_checkpoint as load_checkpoint, load_param_into_net as load_param_into_net,
    safetensors_to_ckpt as safetensors_to_ckpt, save_checkpoint as save_checkpoint,
)
from mycelia.io.checkpoint import (
    async_ckpt_thread_status as async_ckpt_thread_status, load_checkpoint_async as load_checkpoint_async,
)
from mycelia.io.other_devices import export_split_mindir as export_split_mindir
from mycelia.nn import get_metric_fn as get_metric_fn, names as names
from mycelia.nn.metrics.agreement import (
    CohenKappa as CohenKappa, IoU as IoU, MatthewsCorrelation as MatthewsCorrelation, MeanIoU as MeanIoU,
    R2Score as R2Score, SpearmanCorrelation as SpearmanCorrelation,
)
from mycelia.nn.metrics.base import Metric as Metric, rearrange_inputs as rearrange_inputs
from mycelia.nn.metrics.classification import (
    Accuracy as Accuracy, F1 as F1, Fbeta as Fbeta, Precision as Precision, Recall as Recall,
    Top1CategoricalAccuracy as Top1CategoricalAccuracy, Top5CategoricalAccuracy as Top5CategoricalAccuracy,
    TopKCategoricalAccuracy as TopKCategoricalAccuracy,
)
from mycelia.nn.metrics.confusion import (
    ConfusionMatrix as ConfusionMatrix, ConfusionMatrixMetric as ConfusionMatrixMetric,
)
from mycelia.nn.metrics.curve import ROC as ROC, auc as auc
from mycelia.nn.metrics.images import (
    PeakSignalNoiseRatio as PeakSignalNoiseRatio, StructuralSimilarity as StructuralSimilarity,
)
from mycelia.nn.metrics.occlusion import OcclusionSensitivity as OcclusionSensitivity
from mycelia.nn.metrics.regression import Loss as Loss, MAE as MAE, MSE as MSE
from mycelia.nn.metrics.scores import (
    AUROC as AUROC, AveragePrecision as AveragePrecision, CalibrationError as CalibrationError,
    LogLoss as LogLoss,
)
from mycelia.nn.metrics.segmentation import (
    Dice as Dice, HausdorffDistance as HausdorffDistance, MeanSurfaceDistance as MeanSurfaceDistance,
    RootMeanSquareDistance as RootMeanSquareDistance,
)
from mycelia.nn.metrics.similarity import CosineSimilarity as CosineSimilarity
from mycelia.nn.metrics.text import BleuScore as BleuScore, Perplexity as Perplexity
from mycelia.nn.metrics.words import (
    CharacterErrorRate as CharacterErrorRate, RougeScore as RougeScore, WordErrorRate as WordErrorRate,
)
from mycelia.parallel import load_distributed_checkpoint as load_distributed_checkpoint
from mycelia.parallel.checkpoints import (
    build_searched_strategy as build_searched_strategy,
    get_ckpt_path_with_strategy as get_ckpt_path_with_strategy,
    merge_sliced_parameter as merge_sliced_parameter, restore_group_info_list as restore_group_info_list,
)
from mycelia.train.amp import build_train_network as build_train_network
from mycelia.train.callbacks.base import Callback as Callback, RunContext as RunContext
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
from mycelia.train.convert import ConvertModelUtils as ConvertModelUtils, ConvertNetUtils as ConvertNetUtils
from mycelia.train.dataset_helper import (
    DatasetHelper as DatasetHelper, connect_network_with_dataset as connect_network_with_dataset,
    data_sink as data_sink,
)
from mycelia.train.loss_scale_manager import (
    DynamicLossScaleManager as DynamicLossScaleManager, FixedLossScaleManager as FixedLossScaleManager,
    LossScaleManager as LossScaleManager,
)
from mycelia.train.model import Model as Model
from mycelia.train.summary.landscape import SummaryLandscape as SummaryLandscape
from mycelia.train.summary.summary_record import SummaryRecord as SummaryRecord

__all__ = [
    "AUROC", "Accuracy", "AveragePrecision", "BackupAndRestore", "BleuScore", "CalibrationError",
    "Callback", "CharacterErrorRate", "CheckpointConfig", "CohenKappa", "ConfusionMatrix",
    "ConfusionMatrixMetric", "ConvertModelUtils", "ConvertNetUtils", "CosineSimilarity", "DatasetHelper",
    "Dice", "DynamicLossScaleManager", "EarlyStopping", "F1", "Fbeta", "FixedLossScaleManager",
    "FlopsUtilizationCollector", "GradWatch", "HausdorffDistance", "History", "IoU", "LambdaCallback",
    "LearningRateScheduler", "LogLoss", "Loss", "LossMonitor", "LossScaleManager", "MAE", "MSE",
    "MatthewsCorrelation", "MeanIoU", "MeanSurfaceDistance", "Metric", "Model", "ModelCheckpoint",
    "OcclusionSensitivity", "OnRequestExit", "OverflowMonitor", "PeakSignalNoiseRatio", "Perplexity",
    "Precision", "ProgressBar", "R2Score", "ROC", "Recall", "ReduceLROnPlateau", "RootMeanSquareDistance",
    "RougeScore", "RunContext", "SpearmanCorrelation", "StopOnNaN", "StructuralSimilarity",
    "SummaryCollector", "SummaryLandscape", "SummaryRecord", "TimeMonitor", "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "TrainFaultTolerance", "WordErrorRate",
    "async_ckpt_thread_status", "auc", "build_searched_strategy", "build_train_network",
    "ckpt_to_safetensors", "connect_network_with_dataset", "data_sink", "export", "export_split_mindir",
    "get_ckpt_path_with_strategy", "get_metric_fn", "load", "load_checkpoint", "load_checkpoint_async",
    "load_distributed_checkpoint", "load_param_into_net", "merge_sliced_parameter", "metrics", "names",
    "rearrange_inputs", "restore_group_info_list", "safetensors_to_ckpt", "save_checkpoint",
]
