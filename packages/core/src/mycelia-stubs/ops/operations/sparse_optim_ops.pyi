# Written by tools/gen_stubs.py.
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.ops import assign as assign
from mycelia.ops.operations import (
    FusedSparseAdam as FusedSparseAdam, FusedSparseFtrl as FusedSparseFtrl,
    FusedSparseLazyAdam as FusedSparseLazyAdam, FusedSparseProximalAdagrad as FusedSparseProximalAdagrad,
    SparseApplyAdadelta as SparseApplyAdadelta, SparseApplyAdagrad as SparseApplyAdagrad,
    SparseApplyAdagradV2 as SparseApplyAdagradV2, SparseApplyFtrl as SparseApplyFtrl,
    SparseApplyFtrlV2 as SparseApplyFtrlV2, SparseApplyProximalAdagrad as SparseApplyProximalAdagrad,
    SparseApplyRMSProp as SparseApplyRMSProp,
)
from mycelia.ops.primitives.checks import Misfit as Misfit, boolean as boolean, within as within
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "FusedSparseAdam", "FusedSparseFtrl", "FusedSparseLazyAdam", "FusedSparseProximalAdagrad", "Misfit",
    "SparseApplyAdadelta", "SparseApplyAdagrad", "SparseApplyAdagradV2", "SparseApplyFtrl",
    "SparseApplyFtrlV2", "SparseApplyProximalAdagrad", "SparseApplyRMSProp", "assign", "boolean",
    "is_tensor", "primitive", "within",
]
