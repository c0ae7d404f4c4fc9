# Written by tools/gen_stubs.py.
from mycelia.faces.numpy._arguments import (
    axes_of as axes_of, one_axis as one_axis, result_dtype as result_dtype, same_dtype as same_dtype,
)
from mycelia.faces.numpy.products import (
    cross as cross, matrix_power as matrix_power, multi_dot as multi_dot,
)
from mycelia.numpy import (
    dot as dot, inner as inner, kron as kron, matmul as matmul, outer as outer, tensordot as tensordot,
)
from mycelia.numpy.creation import as_tensor as as_tensor, to_dtype as to_dtype
from mycelia.numpy.elementwise import only_tensor as only_tensor

__all__ = [
    "as_tensor", "axes_of", "cross", "dot", "inner", "kron", "matmul", "matrix_power", "multi_dot",
    "one_axis", "only_tensor", "outer", "result_dtype", "same_dtype", "tensordot", "to_dtype",
]
