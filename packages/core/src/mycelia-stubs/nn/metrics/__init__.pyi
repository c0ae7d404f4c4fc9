# Written by tools/gen_stubs.py.
from mycelia.nn import get_metric_fn as get_metric_fn, get_metrics as get_metrics, names as names
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
from mycelia.nn.metrics.occlusion import OcclusionSensitivity as OcclusionSensitivity
from mycelia.nn.metrics.regression import Loss as Loss, MAE as MAE, MSE as MSE
from mycelia.nn.metrics.segmentation import (
    Dice as Dice, HausdorffDistance as HausdorffDistance, MeanSurfaceDistance as MeanSurfaceDistance,
    RootMeanSquareDistance as RootMeanSquareDistance,
)
from mycelia.nn.metrics.similarity import CosineSimilarity as CosineSimilarity
from mycelia.nn.metrics.text import BleuScore as BleuScore, Perplexity as Perplexity

__all__ = [
    "F1", "MAE", "MSE", "ROC", "Accuracy", "BleuScore", "ConfusionMatrix", "ConfusionMatrixMetric",
    "CosineSimilarity", "Dice", "Fbeta", "HausdorffDistance", "Loss", "MeanSurfaceDistance", "Metric",
    "OcclusionSensitivity", "Perplexity", "Precision", "Recall", "RootMeanSquareDistance",
    "Top1CategoricalAccuracy", "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "auc", "get_metric_fn",
    "get_metrics", "names", "rearrange_inputs",
]
