# Written by tools/gen_stubs.py.
from . import (
    metrics as metrics, optim as optim, pipeline as pipeline, probability as probability, utils as utils,
    wrap as wrap,
)
from collections.abc import Iterator as Iterator
from mycelia.faces.mint.nn.basic import EmbeddingExt as EmbeddingExt, PReLUExt as PReLUExt
from mycelia.faces.mint.nn.norm import LayerNormExt as LayerNormExt
from mycelia.nn.activation import (
    CELU as CELU, ELU as ELU, GELU as GELU, GLU as GLU, HShrink as HShrink, Hardtanh as Hardtanh,
    LeakyReLU as LeakyReLU, LogSoftmax as LogSoftmax, PReLU as PReLU, RReLU as RReLU,
    SoftShrink as SoftShrink, Softmax as Softmax, Softmax2d as Softmax2d, Softmin as Softmin,
    Threshold as Threshold, get_activation as get_activation,
)
from mycelia.nn.attention import MultiheadAttention as MultiheadAttention
from mycelia.nn.cell import Cell as Cell, Cell as _Cell
from mycelia.nn.class_losses import (
    MultiClassDiceLoss as MultiClassDiceLoss, MultilabelMarginLoss as MultilabelMarginLoss,
    SampledSoftmaxLoss as SampledSoftmaxLoss,
)
from mycelia.nn.clipping import ClipByNorm as ClipByNorm
from mycelia.nn.combined import Conv2dBnAct as Conv2dBnAct, DenseBnAct as DenseBnAct
from mycelia.nn.container import (
    CellDict as CellDict, CellList as CellList, SequentialCell as SequentialCell,
)
from mycelia.nn.conv import (
    Conv1d as Conv1d, Conv1dTranspose as Conv1dTranspose, Conv2d as Conv2d,
    Conv2dTranspose as Conv2dTranspose, Conv3d as Conv3d, Conv3dTranspose as Conv3dTranspose,
)
from mycelia.nn.dense import (
    BiDense as BiDense, Dense as Dense, Flatten as Flatten, Identity as Identity, Linear as Linear,
    Unflatten as Unflatten,
)
from mycelia.nn.dropout import (
    Dropout as Dropout, Dropout1d as Dropout1d, Dropout2d as Dropout2d, Dropout3d as Dropout3d,
)
from mycelia.nn.dynamic_lr import (
    cosine_decay_lr as cosine_decay_lr, exponential_decay_lr as exponential_decay_lr,
    inverse_decay_lr as inverse_decay_lr, natural_exp_decay_lr as natural_exp_decay_lr,
    piecewise_constant_lr as piecewise_constant_lr, polynomial_decay_lr as polynomial_decay_lr,
    warmup_lr as warmup_lr,
)
from mycelia.nn.embedding import (
    Embedding as Embedding, EmbeddingLookup as EmbeddingLookup, OneHot as OneHot,
)
from mycelia.nn.graph_cell import GraphCell as GraphCell
from mycelia.nn.image import (
    CentralCrop as CentralCrop, ChannelShuffle as ChannelShuffle, PSNR as PSNR,
    PixelShuffle as PixelShuffle, PixelUnshuffle as PixelUnshuffle, ReduceLogSumExp as ReduceLogSumExp,
    Upsample as Upsample,
)
from mycelia.nn.learning_rate_schedule import (
    CosineDecayLR as CosineDecayLR, ExponentialDecayLR as ExponentialDecayLR,
    InverseDecayLR as InverseDecayLR, LearningRateSchedule as LearningRateSchedule,
    NaturalExpDecayLR as NaturalExpDecayLR, PolynomialDecayLR as PolynomialDecayLR, WarmUpLR as WarmUpLR,
)
from mycelia.nn.loss import (
    BCELoss as BCELoss, BCEWithLogitsLoss as BCEWithLogitsLoss, CTCLoss as CTCLoss,
    CosineEmbeddingLoss as CosineEmbeddingLoss, CrossEntropyLoss as CrossEntropyLoss, DiceLoss as DiceLoss,
    FocalLoss as FocalLoss, GaussianNLLLoss as GaussianNLLLoss, HingeEmbeddingLoss as HingeEmbeddingLoss,
    HuberLoss as HuberLoss, LossBase as LossBase, LossBase as _LossBase,
    MarginRankingLoss as MarginRankingLoss, MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss,
    MultiMarginLoss as MultiMarginLoss, NLLLoss as NLLLoss, PoissonNLLLoss as PoissonNLLLoss,
    RMSELoss as RMSELoss, SmoothL1Loss as SmoothL1Loss,
    SoftmaxCrossEntropyWithLogits as SoftmaxCrossEntropyWithLogits, TripletMarginLoss as TripletMarginLoss,
    TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss,
)
from mycelia.nn.matrix import (
    DiGamma as DiGamma, IGamma as IGamma, L1Regularizer as L1Regularizer, LBeta as LBeta, LGamma as LGamma,
    MatDet as MatDet, MatInverse as MatInverse, MatMul as MatMul, MatrixDiag as MatrixDiag,
    MatrixDiagPart as MatrixDiagPart, MatrixSetDiag as MatrixSetDiag, Moments as Moments, Norm as Norm,
    Range as Range, Roll as Roll, SparseTensorDenseMatmul as SparseTensorDenseMatmul,
    SparseToDense as SparseToDense, TimeDistributed as TimeDistributed, Tril as Tril, Triu as Triu,
    Unfold as Unfold,
)
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
from mycelia.nn.norm import (
    BatchNorm1d as BatchNorm1d, BatchNorm2d as BatchNorm2d, BatchNorm3d as BatchNorm3d,
    GroupNorm as GroupNorm, InstanceNorm1d as InstanceNorm1d, InstanceNorm2d as InstanceNorm2d,
    InstanceNorm3d as InstanceNorm3d, LRN as LRN, LayerNorm as LayerNorm, RMSNorm as RMSNorm,
    SyncBatchNorm as SyncBatchNorm,
)
from mycelia.nn.optim.adafactor import AdaFactor as AdaFactor
from mycelia.nn.optim.adam import (
    AdaMax as AdaMax, Adam as Adam, AdamOffload as AdamOffload, AdamWeightDecay as AdamWeightDecay,
    Lamb as Lamb, LazyAdam as LazyAdam,
)
from mycelia.nn.optim.adaptive import (
    Adadelta as Adadelta, Adagrad as Adagrad, FTRL as FTRL, LARS as LARS,
    ProximalAdagrad as ProximalAdagrad, RMSProp as RMSProp, Rprop as Rprop,
)
from mycelia.nn.optim.descent import ASGD as ASGD, Momentum as Momentum, SGD as SGD
from mycelia.nn.optim.optimizer import Optimizer as Optimizer
from mycelia.nn.padding import (
    ConstantPad1d as ConstantPad1d, ConstantPad2d as ConstantPad2d, ConstantPad3d as ConstantPad3d,
    Pad as Pad, _Padding as __Padding,
)
from mycelia.nn.pipeline.cells import PipelineCell as PipelineCell
from mycelia.nn.pooling import (
    AvgPool1d as AvgPool1d, AvgPool2d as AvgPool2d, AvgPool3d as AvgPool3d,
    FractionalMaxPool2d as FractionalMaxPool2d, FractionalMaxPool3d as FractionalMaxPool3d,
    LPPool1d as LPPool1d, LPPool2d as LPPool2d, MaxPool1d as MaxPool1d, MaxPool2d as MaxPool2d,
    MaxPool3d as MaxPool3d, MaxUnpool1d as MaxUnpool1d, MaxUnpool2d as MaxUnpool2d,
    MaxUnpool3d as MaxUnpool3d,
)
from mycelia.nn.rnn import (
    GRU as GRU, GRUCell as GRUCell, LSTM as LSTM, LSTMCell as LSTMCell, RNN as RNN, RNNCell as RNNCell,
)
from mycelia.nn.second_order import (
    Conv2dThor as Conv2dThor, DenseThor as DenseThor, EmbeddingLookupThor as EmbeddingLookupThor,
    EmbeddingThor as EmbeddingThor,
)
from mycelia.nn.similarity import ImageGradients as ImageGradients, MSSSIM as MSSSIM, SSIM as SSIM
from mycelia.nn.transformer import (
    Transformer as Transformer, TransformerDecoder as TransformerDecoder,
    TransformerDecoderLayer as TransformerDecoderLayer, TransformerEncoder as TransformerEncoder,
    TransformerEncoderLayer as TransformerEncoderLayer,
)
from mycelia.nn.wrap.cell_wrapper import (
    ForwardValueAndGrad as ForwardValueAndGrad, GradAccumulationCell as GradAccumulationCell,
    MicroBatchInterleaved as MicroBatchInterleaved, ParameterUpdate as ParameterUpdate,
    TrainOneStepCell as TrainOneStepCell, WithEvalCell as WithEvalCell, WithGradCell as WithGradCell,
    WithLossCell as WithLossCell,
)
from mycelia.nn.wrap.distributed import (
    DistributedGradReducer as DistributedGradReducer, GetNextSingleOp as GetNextSingleOp, Jvp as Jvp,
    VirtualDatasetCellTriple as VirtualDatasetCellTriple, Vjp as Vjp,
)
from mycelia.nn.wrap.loss_scale import (
    DynamicLossScaleUpdateCell as DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell as FixedLossScaleUpdateCell,
    TrainOneStepWithLossScaleCell as TrainOneStepWithLossScaleCell,
)
from mycelia.nn.wrap.pipeline_reducer import PipelineGradReducer as PipelineGradReducer
from typing import Any as Any

__all__ = [
    "ASGD", "AUROC", "Accuracy", "AdaFactor", "AdaMax", "AdaSumByDeltaWeightWrapCell",
    "AdaSumByGradWrapCell", "Adadelta", "Adagrad", "Adam", "AdamOffload", "AdamWeightDecay",
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AveragePrecision", "AvgPool1d", "AvgPool1dExt", "AvgPool2d", "AvgPool2dExt",
    "AvgPool3d", "AvgPool3dExt", "BCELoss", "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d",
    "BatchNorm3d", "BiDense", "BleuScore", "CELU", "CTCLoss", "CalibrationError", "Cell", "CellDict",
    "CellList", "CentralCrop", "ChannelShuffle", "CharacterErrorRate", "ClipByNorm", "CohenKappa",
    "ConfusionMatrix", "ConfusionMatrixMetric", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Conv1d",
    "Conv1dTranspose", "Conv2d", "Conv2dBnAct", "Conv2dThor", "Conv2dTranspose", "Conv3d",
    "Conv3dTranspose", "CosineDecayLR", "CosineEmbeddingLoss", "CosineSimilarity", "CrossEntropyLoss",
    "Dense", "DenseBnAct", "DenseThor", "DiGamma", "Dice", "DiceLoss", "DistributedGradReducer", "Dropout",
    "Dropout1d", "Dropout2d", "Dropout2dExt", "Dropout3d", "DropoutExt", "DynamicLossScaleUpdateCell",
    "ELU", "Embedding", "EmbeddingExt", "EmbeddingLookup", "EmbeddingLookupThor", "EmbeddingThor",
    "ExponentialDecayLR", "F1", "FTRL", "FastGelu", "Fbeta", "FixedLossScaleUpdateCell", "Flatten",
    "FocalLoss", "ForwardValueAndGrad", "FractionalMaxPool2d", "FractionalMaxPool3d", "GELU", "GLU", "GRU",
    "GRUCell", "GaussianNLLLoss", "GetNextSingleOp", "GradAccumulationCell", "GraphCell", "GroupNorm",
    "HShrink", "HSigmoid", "HSwish", "Hardtanh", "HausdorffDistance", "HingeEmbeddingLoss", "HuberLoss",
    "IGamma", "Identity", "ImageGradients", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    "InverseDecayLR", "IoU", "Jvp", "KLDivLoss", "L1Loss", "L1LossExt", "L1Regularizer", "LARS", "LBeta",
    "LGamma", "LPPool1d", "LPPool2d", "LRN", "LSTM", "LSTMCell", "Lamb", "LayerNorm", "LayerNormExt",
    "LazyAdam", "LeakyReLU", "LearningRateSchedule", "Linear", "LogLoss", "LogSigmoid", "LogSoftmax",
    "LogSoftmaxExt", "Loss", "LossBase", "MAE", "MAELoss", "MSE", "MSELoss", "MSSSIM", "MarginRankingLoss",
    "MatDet", "MatInverse", "MatMul", "MatrixDiag", "MatrixDiagPart", "MatrixSetDiag",
    "MatthewsCorrelation", "MaxPool1d", "MaxPool2d", "MaxPool2dExt", "MaxPool3d", "MaxUnpool1d",
    "MaxUnpool2d", "MaxUnpool3d", "MeanIoU", "MeanSurfaceDistance", "Metric", "MicroBatchInterleaved",
    "Mish", "Moments", "Momentum", "MultiClassDiceLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
    "MultiheadAttention", "MultilabelMarginLoss", "NLLLoss", "NaturalExpDecayLR", "Norm",
    "OcclusionSensitivity", "OneHot", "OptTFTWrapper", "Optimizer", "PReLU", "PReLUExt", "PSNR", "Pad",
    "ParameterUpdate", "PeakSignalNoiseRatio", "Perplexity", "PipelineCell", "PipelineGradReducer",
    "PixelShuffle", "PixelUnshuffle", "PoissonNLLLoss", "PolynomialDecayLR", "Precision", "ProximalAdagrad",
    "R2Score", "RMSELoss", "RMSNorm", "RMSProp", "RNN", "RNNCell", "ROC", "RReLU", "Range", "ReLU", "ReLU6",
    "Recall", "ReduceLogSumExp", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d",
    "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Roll", "RootMeanSquareDistance",
    "RougeScore", "Rprop", "SGD", "SSIM", "SampledSoftmaxLoss", "SeLU", "SequentialCell", "SiLU", "Sigmoid",
    "SmoothL1Loss", "SoftMarginLoss", "SoftShrink", "Softmax", "Softmax2d", "SoftmaxCrossEntropyWithLogits",
    "SoftmaxExt", "Softmin", "Softsign", "SparseTensorDenseMatmul", "SparseToDense", "SpearmanCorrelation",
    "StructuralSimilarity", "SyncBatchNorm", "Tanh", "Tanhshrink", "Threshold", "TimeDistributed",
    "Top1CategoricalAccuracy", "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "TrainOneStepCell",
    "TrainOneStepWithLossScaleCell", "Transformer", "TransformerDecoder", "TransformerDecoderLayer",
    "TransformerEncoder", "TransformerEncoderLayer", "Tril", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss", "Triu", "Unflatten", "Unfold", "UnfoldExt", "Upsample", "UpsampleExt",
    "VirtualDatasetCellTriple", "Vjp", "WarmUpLR", "WithEvalCell", "WithGradCell", "WithLossCell",
    "WordErrorRate", "ZeroPad2d", "auc", "cosine_decay_lr", "exponential_decay_lr", "get_activation",
    "get_metric_fn", "get_metrics", "inverse_decay_lr", "names", "natural_exp_decay_lr",
    "no_init_parameters", "piecewise_constant_lr", "polynomial_decay_lr", "rearrange_inputs", "thor",
    "warmup_lr",
]


class AdaSumByDeltaWeightWrapCell(_Cell):
    """An optimizer over several devices: not there. Raises NotSupportedError; Ascend would have it."""
    def __init__(self, optimizer, *args, **kwargs) -> None: ...

class AdaSumByGradWrapCell(_Cell):
    """An optimizer over several devices: not there. Raises NotSupportedError; Ascend would have it."""
    def __init__(self, optimizer, *args, **kwargs) -> None: ...

class AdaptiveAvgPool1d(_Cell):
    """Mean pooling to [N, C, output_size]."""
    def __init__(self, output_size) -> None: ...

class AdaptiveAvgPool2d(_Cell):
    """Mean pooling to [N, C, *output_size]."""
    def __init__(self, output_size) -> None: ...

class AdaptiveAvgPool3d(_Cell):
    """Mean pooling to [N, C, *output_size]."""
    def __init__(self, output_size) -> None: ...

class AdaptiveMaxPool1d(_Cell):
    """Max pooling to [N, C, output_size]."""
    def __init__(self, output_size) -> None: ...

class AdaptiveMaxPool2d(_Cell):
    """Max pooling to [N, C, *output_size]."""
    def __init__(self, output_size, return_indices=False) -> None: ...

class AdaptiveMaxPool3d(_Cell):
    """Max pooling to [N, C, *output_size]."""
    def __init__(self, output_size, return_indices=False) -> None: ...

class AvgPool1dExt(_Cell):
    """`mint.nn.functional.avg_pool1d` as a layer."""
    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True) -> None: ...

class AvgPool2dExt(_Cell):
    """`mint.nn.functional.avg_pool2d` as a layer."""
    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None) -> None: ...

class AvgPool3dExt(_Cell):
    """`mint.nn.functional.avg_pool3d` as a layer."""
    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None) -> None: ...

class Dropout2dExt(_Cell):
    """`mint.nn.functional.dropout2d` as a layer, which does nothing but in training."""
    def __init__(self, p=0.5, inplace=False) -> None: ...

class DropoutExt(_Cell):
    """`mint.nn.functional.dropout` as a layer, which does nothing but in training."""
    def __init__(self, p=0.5, inplace=False) -> None: ...

class FastGelu(_Cell):
    """A quick approximation of GELU. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class HSigmoid(_Cell):
    """``clip(x + 3, 0, 6) / 6``. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class HSwish(_Cell):
    """``x * hardsigmoid(x)``. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class KLDivLoss(_LossBase):
    """``labels * (log labels - logits)`` with logits in the log domain, reduced."""
    def __init__(self, reduction: str = 'mean') -> None: ...

class L1Loss(_LossBase):
    """``|logits - labels|``, reduced."""
    def __init__(self, reduction: str = 'mean') -> None: ...

class L1LossExt(_Cell):
    """`mint.nn.functional.l1_loss` as a layer."""
    def __init__(self, reduction='mean') -> None: ...

class LogSigmoid(_Cell):
    """``log(sigmoid(x))``. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class LogSoftmaxExt(_Cell):
    """`mint.nn.functional.log_softmax` as a layer."""
    def __init__(self, dim=None) -> None: ...

class MAELoss(_LossBase):
    """``|logits - labels|``, reduced."""
    def __init__(self, reduction: str = 'mean') -> None: ...

class MSELoss(_LossBase):
    """``(logits - labels)^2``, reduced."""
    def __init__(self, reduction: str = 'mean') -> None: ...

class MaxPool2dExt(_Cell):
    """`mint.nn.functional.max_pool2d` as a layer."""
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False) -> None: ...

class Mish(_Cell):
    """``x * tanh(softplus(x))``. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class OptTFTWrapper(_Cell):
    """An optimizer over several devices: not there. Raises NotSupportedError; Ascend would have it."""
    def __init__(self, optimizer, *args, **kwargs) -> None: ...

class ReLU(_Cell):
    """``max(x, 0)``. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class ReLU6(_Cell):
    """``min(max(x, 0), 6)``. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class ReflectionPad1d(__Padding):
    """Pads the last 1 dimension with the mirrored content; `padding`: one int, or before and after, last first."""
    def __init__(self, padding) -> None: ...

class ReflectionPad2d(__Padding):
    """Pads the last 2 dimensions with the mirrored content; `padding`: one int, or before and after, last first."""
    def __init__(self, padding) -> None: ...

class ReflectionPad3d(__Padding):
    """Pads the last 3 dimensions with the mirrored content; `padding`: one int, or before and after, last first."""
    def __init__(self, padding) -> None: ...

class ReplicationPad1d(__Padding):
    """Pads the last 1 dimension with the border value; `padding`: one int, or before and after, last first."""
    def __init__(self, padding) -> None: ...

class ReplicationPad2d(__Padding):
    """Pads the last 2 dimensions with the border value; `padding`: one int, or before and after, last first."""
    def __init__(self, padding) -> None: ...

class ReplicationPad3d(__Padding):
    """Pads the last 3 dimensions with the border value; `padding`: one int, or before and after, last first."""
    def __init__(self, padding) -> None: ...

class SeLU(_Cell):
    """Self-normalizing exponential unit (Klambauer et al. 2017). Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class SiLU(_Cell):
    """``x * sigmoid(x)``. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class Sigmoid(_Cell):
    """``1 / (1 + exp(-x))``. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class SoftMarginLoss(_LossBase):
    """``log(1 + exp(-labels * logits))``, reduced."""
    def __init__(self, reduction: str = 'mean') -> None: ...

class SoftmaxExt(_Cell):
    """`mint.nn.functional.softmax` as a layer."""
    def __init__(self, dim=None) -> None: ...

class Softsign(_Cell):
    """``x / (1 + |x|)``. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class Tanh(_Cell):
    """Hyperbolic tangent. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class Tanhshrink(_Cell):
    """``x - tanh(x)``. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class UnfoldExt(_Cell):
    """`mint.nn.functional.unfold` as a layer."""
    def __init__(self, kernel_size, dilation=1, padding=0, stride=1) -> None: ...

class UpsampleExt(_Cell):
    """`mint.nn.functional.interpolate` as a layer."""
    def __init__(self, size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None) -> None: ...

class ZeroPad2d(__Padding):
    """Pads the last 2 dimensions with zeros; `padding`: one int, or before and after, last first."""
    def __init__(self, padding) -> None: ...

def get_metric_fn(name: str, *args, **kwargs) -> Any:
    """A new metric by name. Raises KeyError naming the ones there are."""

def get_metrics(metrics) -> Any:
    """Metrics by name from a set or list of names, or a dict name -> Metric. Errors: TypeError."""

def names() -> list[str]:
    """The names `get_metric_fn` knows."""

def no_init_parameters() -> Iterator[None]:
    """Taken for networks whose values come from a checkpoint: Parameters have values from the start here."""

def thor(net, learning_rate, damping, momentum, weight_decay=0.0, loss_scale=1.0, batch_size=32, use_nesterov=False, decay_filter=..., split_indices=None, enable_clip_grad=False, frequency=100) -> Any:
    """The second-order optimizer, made and checked as `Momentum`; a step raises NotSupportedError, since it needs the matrix kernels of an Ascend or GPU backend."""
