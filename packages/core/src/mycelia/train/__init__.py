"""Training: `Model`, its callbacks, and the metrics under MindSpore's path."""

from __future__ import annotations

import importlib

_HOMES = {
    "Model": "mycelia.train.model",
    "build_train_network": "mycelia.train.amp",
    **dict.fromkeys(
        ("DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager"),
        "mycelia.train.loss_scale_manager",
    ),
    **dict.fromkeys(
        """build_searched_strategy get_ckpt_path_with_strategy load_distributed_checkpoint
        merge_sliced_parameter restore_group_info_list""".split(),
        "mycelia.parallel",
    ),
    "export_split_mindir": "mycelia.io",
    "SummaryRecord": "mycelia.train.summary",
    "SummaryLandscape": "mycelia.train.summary.landscape",
    **dict.fromkeys(
        ("DatasetHelper", "connect_network_with_dataset", "data_sink"), "mycelia.train.dataset_helper"
    ),
    **dict.fromkeys(("ConvertModelUtils", "ConvertNetUtils"), "mycelia.train.convert"),
    **dict.fromkeys(
        """save_checkpoint load_checkpoint load_checkpoint_async load_param_into_net async_ckpt_thread_status
        ckpt_to_safetensors safetensors_to_ckpt export load""".split(),
        "mycelia.io",
    ),
    **dict.fromkeys(
        """BackupAndRestore Callback CheckpointConfig EarlyStopping History LambdaCallback
        LearningRateScheduler LossMonitor ModelCheckpoint ProgressBar ReduceLROnPlateau RunContext
        SummaryCollector TimeMonitor OverflowMonitor StopOnNaN FlopsUtilizationCollector OnRequestExit
        TrainFaultTolerance GradWatch""".split(),
        "mycelia.train.callbacks",
    ),
    **dict.fromkeys(
        """Accuracy BleuScore ConfusionMatrix ConfusionMatrixMetric CosineSimilarity Dice F1 Fbeta
        HausdorffDistance Loss MAE MSE MeanSurfaceDistance Metric OcclusionSensitivity Perplexity Precision
        ROC Recall RootMeanSquareDistance Top1CategoricalAccuracy Top5CategoricalAccuracy
        TopKCategoricalAccuracy auc get_metric_fn names rearrange_inputs AUROC AveragePrecision
        CalibrationError CharacterErrorRate CohenKappa IoU LogLoss MatthewsCorrelation MeanIoU
        PeakSignalNoiseRatio R2Score RougeScore SpearmanCorrelation StructuralSimilarity
        WordErrorRate""".split(),
        "mycelia.nn.metrics",
    ),
}
__all__ = sorted([*_HOMES, "metrics"])


def __getattr__(name: str):
    if name == "metrics":
        return importlib.import_module("mycelia.train.metrics")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'mycelia.train' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value
