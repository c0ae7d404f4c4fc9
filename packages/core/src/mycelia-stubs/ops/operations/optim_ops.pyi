# Written by tools/gen_stubs.py.
from mycelia.dtype import float16 as float16, float32 as float32
from mycelia.engine.base.dtypes import TensorType as TensorType
from mycelia.ops import assign as assign
from mycelia.ops.operations import (
    Adam as Adam, AdamNoUpdateParam as AdamNoUpdateParam, AdamWeightDecay as AdamWeightDecay,
    ApplyAdaMax as ApplyAdaMax, ApplyAdadelta as ApplyAdadelta, ApplyAdagrad as ApplyAdagrad,
    ApplyAdagradDA as ApplyAdagradDA, ApplyAdagradV2 as ApplyAdagradV2,
    ApplyAdamWithAmsgrad as ApplyAdamWithAmsgrad, ApplyAdamWithAmsgradV2 as ApplyAdamWithAmsgradV2,
    ApplyAddSign as ApplyAddSign, ApplyCenteredRMSProp as ApplyCenteredRMSProp, ApplyFtrl as ApplyFtrl,
    ApplyGradientDescent as ApplyGradientDescent, ApplyKerasMomentum as ApplyKerasMomentum,
    ApplyMomentum as ApplyMomentum, ApplyPowerSign as ApplyPowerSign,
    ApplyProximalAdagrad as ApplyProximalAdagrad,
    ApplyProximalGradientDescent as ApplyProximalGradientDescent, ApplyRMSProp as ApplyRMSProp,
    FusedAdaFactor as FusedAdaFactor, FusedAdaFactorWithGlobalNorm as FusedAdaFactorWithGlobalNorm,
    FusedCastAdamWeightDecay as FusedCastAdamWeightDecay,
    FusedWeightScaleApplyMomentum as FusedWeightScaleApplyMomentum, LARSUpdate as LARSUpdate, SGD as SGD,
)
from mycelia.ops.primitives.checks import (
    anything as anything, boolean as boolean, number as number, real as real,
)
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "Adam", "AdamNoUpdateParam", "AdamWeightDecay", "ApplyAdaMax", "ApplyAdadelta", "ApplyAdagrad",
    "ApplyAdagradDA", "ApplyAdagradV2", "ApplyAdamWithAmsgrad", "ApplyAdamWithAmsgradV2", "ApplyAddSign",
    "ApplyCenteredRMSProp", "ApplyFtrl", "ApplyGradientDescent", "ApplyKerasMomentum", "ApplyMomentum",
    "ApplyPowerSign", "ApplyProximalAdagrad", "ApplyProximalGradientDescent", "ApplyRMSProp",
    "FusedAdaFactor", "FusedAdaFactorWithGlobalNorm", "FusedCastAdamWeightDecay",
    "FusedWeightScaleApplyMomentum", "LARSUpdate", "SGD", "TensorType", "anything", "assign", "boolean",
    "float16", "float32", "number", "primitive", "real",
]
