# Written by tools/gen_stubs.py.
from mycelia.ops.operations import (
    BCEWithLogitsLoss as BCEWithLogitsLoss, BinaryCrossEntropy as BinaryCrossEntropy,
    CTCGreedyDecoder as CTCGreedyDecoder, CTCLoss as CTCLoss, CTCLossV2 as CTCLossV2,
    KLDivLoss as KLDivLoss, MultiMarginLoss as MultiMarginLoss,
    MultilabelMarginLoss as MultilabelMarginLoss, NLLLoss as NLLLoss,
    SigmoidCrossEntropyWithLogits as SigmoidCrossEntropyWithLogits, SmoothL1Loss as SmoothL1Loss,
    SoftMarginLoss as SoftMarginLoss, SoftmaxCrossEntropyWithLogits as SoftmaxCrossEntropyWithLogits,
    SparseSoftmaxCrossEntropyWithLogits as SparseSoftmaxCrossEntropyWithLogits,
    SparseSoftmaxCrossEntropyWithLogitsV2 as SparseSoftmaxCrossEntropyWithLogitsV2,
    TripletMarginLoss as TripletMarginLoss,
)
from mycelia.ops.operations.array_ops import natural as natural
from mycelia.ops.primitives.checks import (
    anything as anything, boolean as boolean, choice as choice, integer as integer, real as real,
    within as within,
)
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "BCEWithLogitsLoss", "BinaryCrossEntropy", "CTCGreedyDecoder", "CTCLoss", "CTCLossV2", "KLDivLoss",
    "MultiMarginLoss", "MultilabelMarginLoss", "NLLLoss", "SigmoidCrossEntropyWithLogits", "SmoothL1Loss",
    "SoftMarginLoss", "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogitsV2", "TripletMarginLoss", "anything", "boolean", "choice",
    "integer", "natural", "primitive", "real", "within",
]
