# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor, TensorLike as TensorLike
from mycelia.ops.operations import (
    BatchMatMul as BatchMatMul, Cholesky as Cholesky, CholeskyInverse as CholeskyInverse,
    CholeskySolve as CholeskySolve, Eig as Eig, FFTWithSize as FFTWithSize,
    LogMatrixDeterminant as LogMatrixDeterminant, Lstsq as Lstsq, LuSolve as LuSolve, LuUnpack as LuUnpack,
    MatMul as MatMul, MatrixInverse as MatrixInverse, MatrixLogarithm as MatrixLogarithm,
    MatrixPower as MatrixPower, MatrixSolve as MatrixSolve, MatrixSolveLs as MatrixSolveLs,
    MatrixTriangularSolve as MatrixTriangularSolve, NuclearNorm as NuclearNorm, Ormqr as Ormqr, Qr as Qr,
    STFT as STFT, Svd as Svd, TridiagonalMatMul as TridiagonalMatMul,
)
from mycelia.ops.operations.array_ops import positive as positive
from mycelia.ops.primitives.checks import (
    Misfit as Misfit, anything as anything, boolean as boolean, choice as choice, integer as integer,
    integers as integers, within as within,
)
from mycelia.ops.primitives.define import primitive as primitive, table as table

__all__ = [
    "BatchMatMul", "Cholesky", "CholeskyInverse", "CholeskySolve", "Eig", "FFTWithSize",
    "LogMatrixDeterminant", "Lstsq", "LuSolve", "LuUnpack", "MatMul", "MatrixInverse", "MatrixLogarithm",
    "MatrixPower", "MatrixSolve", "MatrixSolveLs", "MatrixTriangularSolve", "Misfit", "NuclearNorm",
    "Ormqr", "Qr", "STFT", "Svd", "TridiagonalMatMul", "anything", "batch_matmul", "boolean", "choice",
    "integer", "integers", "mat_mul", "positive", "primitive", "table", "within",
]


def batch_matmul(x: TensorLike, y: TensorLike, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """Products of the matrices in the last two axes, either side transposed; the axes before them broadcast."""

def mat_mul(x: TensorLike, y: TensorLike, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """Product of two matrices, either of them transposed on the way: ``op(x) @ op(y)``."""
