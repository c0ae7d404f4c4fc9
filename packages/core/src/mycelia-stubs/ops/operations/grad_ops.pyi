# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.autodiff.jacobian_products import vjp as vjp
from mycelia.engine.ops.arrays.shape import as_ints as as_ints
from mycelia.ops.operations import (
    Atan2Grad as Atan2Grad, BiasAddGrad as BiasAddGrad, BinaryCrossEntropyGrad as BinaryCrossEntropyGrad,
    Conv2DBackpropFilter as Conv2DBackpropFilter, DropoutGrad as DropoutGrad, EluGrad as EluGrad,
    GeLUGrad as GeLUGrad, HShrinkGrad as HShrinkGrad, KLDivLossGrad as KLDivLossGrad,
    L2NormalizeGrad as L2NormalizeGrad, LayerNormGrad as LayerNormGrad,
    LayerNormGradGrad as LayerNormGradGrad, LogSoftmaxGrad as LogSoftmaxGrad, PReLUGrad as PReLUGrad,
    ReluGrad as ReluGrad, SeLUGrad as SeLUGrad,
    SigmoidCrossEntropyWithLogitsGrad as SigmoidCrossEntropyWithLogitsGrad,
    SmoothL1LossGrad as SmoothL1LossGrad, SoftShrinkGrad as SoftShrinkGrad, SoftmaxGrad as SoftmaxGrad,
    StridedSliceGrad as StridedSliceGrad,
)
from mycelia.ops.operations.define import registry as registry
from mycelia.ops.primitives.checks import (
    anything as anything, boolean as boolean, choice as choice, integer as integer, integers as integers,
    real as real,
)
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "Atan2Grad", "BiasAddGrad", "BinaryCrossEntropyGrad", "Conv2DBackpropFilter", "DropoutGrad", "EluGrad",
    "GeLUGrad", "HShrinkGrad", "KLDivLossGrad", "L2NormalizeGrad", "LayerNormGrad", "LayerNormGradGrad",
    "LogSoftmaxGrad", "PReLUGrad", "ReluGrad", "SeLUGrad", "SigmoidCrossEntropyWithLogitsGrad",
    "SmoothL1LossGrad", "SoftShrinkGrad", "SoftmaxGrad", "StridedSliceGrad", "Tensor", "anything",
    "as_ints", "boolean", "choice", "integer", "integers", "primitive", "real", "registry", "vjp",
]
