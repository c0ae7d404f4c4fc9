"""Metrics and their names."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.nn.metrics.agreement import (
    CohenKappa,
    IoU,
    MatthewsCorrelation,
    MeanIoU,
    R2Score,
    SpearmanCorrelation,
)
from mycelia.nn.metrics.base import Metric, rearrange_inputs
from mycelia.nn.metrics.classification import (
    F1,
    Accuracy,
    Fbeta,
    Precision,
    Recall,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from mycelia.nn.metrics.confusion import ConfusionMatrix, ConfusionMatrixMetric
from mycelia.nn.metrics.curve import ROC, auc
from mycelia.nn.metrics.images import PeakSignalNoiseRatio, StructuralSimilarity
from mycelia.nn.metrics.occlusion import OcclusionSensitivity
from mycelia.nn.metrics.regression import MAE, MSE, Loss
from mycelia.nn.metrics.scores import AUROC, AveragePrecision, CalibrationError, LogLoss
from mycelia.nn.metrics.segmentation import (
    Dice,
    HausdorffDistance,
    MeanSurfaceDistance,
    RootMeanSquareDistance,
)
from mycelia.nn.metrics.similarity import CosineSimilarity
from mycelia.nn.metrics.text import BleuScore, Perplexity
from mycelia.nn.metrics.words import CharacterErrorRate, RougeScore, WordErrorRate

_FACTORIES = {
    "accuracy": Accuracy, "acc": Accuracy, "precision": Precision, "recall": Recall, "F1": F1, "loss": Loss,
        "mae": MAE,
    "mse": MSE, "topk": TopKCategoricalAccuracy, "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy, "auc": auc, "bleu_score": BleuScore,
        "confusion_matrix": ConfusionMatrix,
    "confusion_matrix_metric": ConfusionMatrixMetric, "cosine_similarity": CosineSimilarity, "dice": Dice,
    "hausdorff_distance": HausdorffDistance, "mean_surface_distance": MeanSurfaceDistance,
    "occlusion_sensitivity": OcclusionSensitivity, "perplexity": Perplexity, "roc": ROC,
    "root_mean_square_distance": RootMeanSquareDistance,
    "auroc": AUROC,
    "average_precision": AveragePrecision,
    "calibration_error": CalibrationError,
    "log_loss": LogLoss,
    "cohen_kappa": CohenKappa,
    "iou": IoU,
    "matthews_correlation": MatthewsCorrelation,
    "mean_iou": MeanIoU,
    "r2": R2Score,
    "spearman_correlation": SpearmanCorrelation,
    "character_error_rate": CharacterErrorRate,
    "rouge": RougeScore,
    "word_error_rate": WordErrorRate,
    "psnr": PeakSignalNoiseRatio,
    "ssim": StructuralSimilarity,
}  # fmt: skip


def names() -> list[str]:
    """The names `get_metric_fn` knows."""
    return sorted(_FACTORIES)


def get_metric_fn(name: str, *args, **kwargs) -> Metric:
    """A new metric by name. Raises KeyError naming the ones there are."""
    if name not in _FACTORIES:
        raise errors.error(
            errors.MyceliaKeyError, "get_metric_fn", f"metric {name!r} is not known; known are {names()}"
        )
    return _FACTORIES[name](*args, **kwargs)


def get_metrics(metrics) -> dict[str, Metric]:
    """Metrics by name from a set or list of names, or a dict name -> Metric. Errors: TypeError."""
    if isinstance(metrics, dict):
        for name, metric in metrics.items():
            if not isinstance(name, str) or not isinstance(metric, Metric):
                raise errors.type_error(
                    "Model", f"metrics must map names to Metrics, but got {name!r}: {type(metric).__name__}"
                )
        return dict(metrics)
    if not isinstance(metrics, (set, list, tuple)):
        raise errors.type_error(
            "Model", f"metrics must be None, a dict or a set of names, but got {type(metrics).__name__}"
        )
    ordered = (
        sorted(metrics, key=str) if isinstance(metrics, set) else metrics
    )  # the same order in every process
    return {name: get_metric_fn(name) for name in ordered}


__all__ = [
    "AUROC", "F1", "MAE", "MSE", "ROC", "Accuracy", "AveragePrecision", "BleuScore", "CalibrationError",
    "CharacterErrorRate", "CohenKappa", "ConfusionMatrix", "ConfusionMatrixMetric", "CosineSimilarity",
    "Dice", "Fbeta", "HausdorffDistance", "IoU", "LogLoss", "Loss", "MatthewsCorrelation", "MeanIoU",
    "MeanSurfaceDistance", "Metric", "OcclusionSensitivity", "PeakSignalNoiseRatio", "Perplexity",
    "Precision", "R2Score", "Recall", "RootMeanSquareDistance", "RougeScore", "SpearmanCorrelation",
    "StructuralSimilarity", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy", "WordErrorRate", "auc", "get_metric_fn", "get_metrics", "names",
    "rearrange_inputs",
]  # fmt: skip
