"""Cells, layers, losses, optimizers and learning rate schedules under MindSpore's names.

Names are looked up in the family modules on first use, so that importing one layer does not import all.
"""

from __future__ import annotations

import importlib
import sys

_FAMILIES = {
    "cell": "Cell",
    "graph_cell": "GraphCell",
    "container": "SequentialCell CellList CellDict",
    "activation": """ReLU ReLU6 Sigmoid LogSigmoid Tanh Tanhshrink SiLU Mish Softsign HSigmoid HSwish
    FastGelu SeLU GELU
        LeakyReLU ELU CELU PReLU RReLU GLU Softmax Softmax2d Softmin LogSoftmax Hardtanh HShrink SoftShrink
        Threshold get_activation""",
    "conv": "Conv1d Conv2d Conv3d Conv1dTranspose Conv2dTranspose Conv3dTranspose",
    "combined": "Conv2dBnAct DenseBnAct",
    "image": "Upsample PixelShuffle PixelUnshuffle ChannelShuffle CentralCrop PSNR ReduceLogSumExp",
    "dense": "Dense Linear BiDense Flatten Unflatten Identity",
    "dropout": "Dropout Dropout1d Dropout2d Dropout3d",
    "embedding": "Embedding EmbeddingLookup OneHot",
    "clipping": "ClipByNorm",
    "norm": """BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm GroupNorm InstanceNorm1d InstanceNorm2d
    InstanceNorm3d RMSNorm
        LRN SyncBatchNorm""",
    "rnn": "RNN LSTM GRU RNNCell LSTMCell GRUCell",
    "attention": "MultiheadAttention",
    "transformer": """TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder TransformerDecoder
        Transformer""",
    "padding": """Pad ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d
    ReplicationPad3d
        ZeroPad2d ConstantPad1d ConstantPad2d ConstantPad3d""",
    "pooling": """MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d
    AdaptiveAvgPool2d
        AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d LPPool1d LPPool2d MaxUnpool1d
        MaxUnpool2d MaxUnpool3d FractionalMaxPool2d FractionalMaxPool3d""",
    "loss": """LossBase MSELoss L1Loss MAELoss RMSELoss SmoothL1Loss HuberLoss KLDivLoss SoftMarginLoss
    CrossEntropyLoss
        NLLLoss SoftmaxCrossEntropyWithLogits BCELoss BCEWithLogitsLoss CosineEmbeddingLoss MarginRankingLoss
        HingeEmbeddingLoss TripletMarginLoss MultiMarginLoss MultiLabelSoftMarginLoss GaussianNLLLoss
        PoissonNLLLoss TripletMarginWithDistanceLoss CTCLoss DiceLoss FocalLoss""",
    "wrap": """WithLossCell WithEvalCell WithGradCell TrainOneStepCell ForwardValueAndGrad ParameterUpdate
        GradAccumulationCell MicroBatchInterleaved TrainOneStepWithLossScaleCell DynamicLossScaleUpdateCell
        FixedLossScaleUpdateCell""",
    "learning_rate_schedule": """LearningRateSchedule ExponentialDecayLR NaturalExpDecayLR InverseDecayLR
    CosineDecayLR
        PolynomialDecayLR WarmUpLR""",
    "dynamic_lr": """piecewise_constant_lr exponential_decay_lr natural_exp_decay_lr inverse_decay_lr
    cosine_decay_lr
        polynomial_decay_lr warmup_lr""",
    "metrics": """Accuracy F1 Fbeta Loss MAE MSE Metric Precision Recall Top1CategoricalAccuracy
    Top5CategoricalAccuracy
        TopKCategoricalAccuracy get_metric_fn get_metrics names rearrange_inputs BleuScore ConfusionMatrix
        ConfusionMatrixMetric CosineSimilarity Dice HausdorffDistance MeanSurfaceDistance
        OcclusionSensitivity Perplexity ROC RootMeanSquareDistance auc
        AUROC AveragePrecision CalibrationError LogLoss CohenKappa IoU MatthewsCorrelation MeanIoU
        R2Score SpearmanCorrelation CharacterErrorRate RougeScore WordErrorRate PeakSignalNoiseRatio
        StructuralSimilarity""",
    "optim.optimizer": "Optimizer",
    "optim.descent": "Momentum SGD ASGD",
    # Layers of mint that MindSpore has here, too; mint builds upon this package: it is asked late.
    ".mint.nn.layers": """AvgPool1dExt AvgPool2dExt AvgPool3dExt Dropout2dExt DropoutExt L1LossExt
        LogSoftmaxExt MaxPool2dExt SoftmaxExt UnfoldExt UpsampleExt""",
    ".mint.nn.norm": "LayerNormExt",
    ".mint.nn.basic": "EmbeddingExt PReLUExt",
    "matrix": """LGamma DiGamma IGamma LBeta MatMul MatInverse MatDet Moments MatrixDiag MatrixDiagPart
        MatrixSetDiag Tril Triu Norm Range Roll L1Regularizer SparseToDense SparseTensorDenseMatmul
        TimeDistributed Unfold""",
    "similarity": "SSIM MSSSIM ImageGradients",
    "class_losses": "MultiClassDiceLoss SampledSoftmaxLoss MultilabelMarginLoss",
    "second_order": "DenseThor Conv2dThor EmbeddingThor EmbeddingLookupThor thor",
    "pipeline.cells": "PipelineCell",
    "wrap.pipeline_reducer": "PipelineGradReducer",
    "wrap.distributed": """DistributedGradReducer VirtualDatasetCellTriple
        Jvp Vjp GetNextSingleOp AdaSumByGradWrapCell AdaSumByDeltaWeightWrapCell OptTFTWrapper""",
    "utils": "no_init_parameters",
    "optim.adam": "Adam AdaMax AdamWeightDecay Lamb LazyAdam AdamOffload",
    "optim.adafactor": "AdaFactor",
    "optim.adaptive": "FTRL LARS Adadelta Adagrad ProximalAdagrad RMSProp Rprop",
}  # fmt: skip

_HOMES = {name: module for module, names in _FAMILIES.items() for name in names.split()}
_MODULES = ("probability", "utils")
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f"mycelia.nn.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(
            f"module 'mycelia.nn' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        )
    value = getattr(importlib.import_module(f".{home}", "mycelia.nn"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
