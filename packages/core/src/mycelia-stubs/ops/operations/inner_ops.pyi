# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.ops.arrays.shape import as_ints as as_ints
from mycelia.ops.operations import (
    ClipByNorm as ClipByNorm, ConcatOffset as ConcatOffset, ConcatOffsetV1 as ConcatOffsetV1,
    ConvertToDynamic as ConvertToDynamic, FlattenGrad as FlattenGrad, InSequence as InSequence,
    IsInstance as IsInstance, IsSubClass as IsSubClass, ListToTensor as ListToTensor, Load as Load,
    MatrixDiag as MatrixDiag, MatrixDiagPart as MatrixDiagPart, MatrixSetDiag as MatrixSetDiag,
    SameTypeShape as SameTypeShape, SequenceAdd as SequenceAdd, SequenceAddN as SequenceAddN,
    SequenceConcat as SequenceConcat, SequenceCount as SequenceCount, SequenceIndex as SequenceIndex,
    SequenceMax as SequenceMax, SequenceMin as SequenceMin, SequenceMul as SequenceMul,
    SequenceSlice as SequenceSlice, SequenceStack as SequenceStack, SequenceUnstack as SequenceUnstack,
    SequenceZerosLike as SequenceZerosLike, TensorCopySlices as TensorCopySlices,
    TensorToList as TensorToList, TupleToTensor as TupleToTensor,
)
from mycelia.ops.primitives.checks import anything as anything, boolean as boolean, integer as integer
from mycelia.ops.primitives.define import primitive as primitive, table as table

__all__ = [
    "ClipByNorm", "ConcatOffset", "ConcatOffsetV1", "ConvertToDynamic", "FlattenGrad", "InSequence",
    "IsInstance", "IsSubClass", "ListToTensor", "Load", "MatrixDiag", "MatrixDiagPart", "MatrixSetDiag",
    "SameTypeShape", "SequenceAdd", "SequenceAddN", "SequenceConcat", "SequenceCount", "SequenceIndex",
    "SequenceMax", "SequenceMin", "SequenceMul", "SequenceSlice", "SequenceStack", "SequenceUnstack",
    "SequenceZerosLike", "Tensor", "TensorCopySlices", "TensorToList", "TupleToTensor", "anything",
    "as_ints", "boolean", "integer", "primitive", "table",
]
