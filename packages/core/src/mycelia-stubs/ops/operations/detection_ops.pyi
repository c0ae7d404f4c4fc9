# Written by tools/gen_stubs.py.
from mycelia.ops.operations import (
    BoundingBoxDecode as BoundingBoxDecode, BoundingBoxEncode as BoundingBoxEncode,
    CheckValid as CheckValid, CombinedNonMaxSuppression as CombinedNonMaxSuppression, IOU as IOU,
    NMSWithMask as NMSWithMask, NonMaxSuppressionV3 as NonMaxSuppressionV3,
    NonMaxSuppressionWithOverlaps as NonMaxSuppressionWithOverlaps, ROIAlign as ROIAlign,
    SampleDistortedBoundingBoxV2 as SampleDistortedBoundingBoxV2,
)
from mycelia.ops.operations.array_ops import natural as natural, positive as positive
from mycelia.ops.primitives.checks import (
    Misfit as Misfit, boolean as boolean, integer as integer, real as real, within as within,
)
from mycelia.ops.primitives.define import primitive as primitive
from mycelia.ops.primitives.random_ops import next_key as next_key, own_stream as own_stream

__all__ = [
    "BoundingBoxDecode", "BoundingBoxEncode", "CheckValid", "CombinedNonMaxSuppression", "IOU", "Misfit",
    "NMSWithMask", "NonMaxSuppressionV3", "NonMaxSuppressionWithOverlaps", "ROIAlign",
    "SampleDistortedBoundingBoxV2", "boolean", "integer", "natural", "next_key", "own_stream", "positive",
    "primitive", "real", "within",
]
