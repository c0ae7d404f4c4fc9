# Written by tools/gen_stubs.py.
from mycelia.nn import get_metric_fn as get_metric_fn, get_metrics as get_metrics, names as names
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

__all__ = [
    "AUROC", "F1", "MAE", "MSE", "ROC", "Accuracy", "AveragePrecision", "BleuScore", "CalibrationError",
    "CharacterErrorRate", "CohenKappa", "ConfusionMatrix", "ConfusionMatrixMetric", "CosineSimilarity",
    "Dice", "Fbeta", "HausdorffDistance", "IoU", "LogLoss", "Loss", "MatthewsCorrelation", "MeanIoU",
    "MeanSurfaceDistance", "Metric", "OcclusionSensitivity", "PeakSignalNoiseRatio", "Perplexity",
    "Precision", "R2Score", "Recall", "RootMeanSquareDistance", "RougeScore", "SpearmanCorrelation",
    "StructuralSimilarity", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy", "TopKCategoricalAccuracy",
    "WordErrorRate", "auc", "get_metric_fn", "get_metrics", "names", "rearrange_inputs",
]
