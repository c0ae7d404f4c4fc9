# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.ops.arrays.shape import as_ints as as_ints
from mycelia.numpy.creation import constant as constant
from mycelia.ops.operations import (
    BatchToSpace as BatchToSpace, BatchToSpaceND as BatchToSpaceND, BatchToSpaceNDV2 as BatchToSpaceNDV2,
    DataFormatDimMap as DataFormatDimMap, DataFormatVecPermute as DataFormatVecPermute,
    DepthToSpace as DepthToSpace, MirrorPad as MirrorPad, Pad as Pad, PadV3 as PadV3, Padding as Padding,
    SpaceToBatch as SpaceToBatch, SpaceToBatchND as SpaceToBatchND, SpaceToDepth as SpaceToDepth,
)
from mycelia.ops.operations.array_ops import positive as positive
from mycelia.ops.primitives.checks import (
    Misfit as Misfit, boolean as boolean, choice as choice, integer as integer, integers as integers,
    within as within,
)
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "BatchToSpace", "BatchToSpaceND", "BatchToSpaceNDV2", "DataFormatDimMap", "DataFormatVecPermute",
    "DepthToSpace", "MirrorPad", "Misfit", "Pad", "PadV3", "Padding", "SpaceToBatch", "SpaceToBatchND",
    "SpaceToDepth", "Tensor", "as_ints", "boolean", "choice", "constant", "integer", "integers", "positive",
    "primitive", "within",
]
