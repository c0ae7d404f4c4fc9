# Written by tools/gen_stubs.py.
from mycelia.dtype import float32 as float32
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import Parameter as Parameter
from mycelia.faces.mint.nn.norm import (
    BatchNorm1d as BatchNorm1d, BatchNorm2d as BatchNorm2d, BatchNorm3d as BatchNorm3d,
    GroupNorm as GroupNorm, LayerNormExt as LayerNormExt, SyncBatchNorm as SyncBatchNorm,
)
from mycelia.nn.cell import Cell as Cell
from mycelia.nn.norm import statistics_of_all as statistics_of_all
from mycelia.nn.parameters import (
    check_group_norm as check_group_norm, check_positive as check_positive, parameters as parameters,
)
from mycelia.ops import assign as assign, assign_add as assign_add

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Cell", "GroupNorm", "LayerNormExt", "Parameter",
    "SyncBatchNorm", "Tensor", "assign", "assign_add", "check_group_norm", "check_positive", "float32",
    "parameters", "statistics_of_all",
]
