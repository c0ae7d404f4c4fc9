"""Functions of sparse matrices: element by element, sums and products, and from one form to another.

What they compute on is `mycelia.sparse`; gradients flow to the values.
"""

from __future__ import annotations

from typing import Any

from mycelia.engine import ops
from mycelia.engine.base import errors
from mycelia.engine.tensors.sparse import COOTensor, CSRTensor, dense_to_sparse_coo, dense_to_sparse_csr
from mycelia.engine.tensors.tensor import Tensor, is_tensor

_ELEMENTWISE = """abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor inv isfinite isinf isnan
    log log1p neg relu relu6 round sigmoid sin sinh softsign sqrt square tan tanh""".split()


def _expect(kind: type, x: Any, owner: str) -> None:
    if not isinstance(x, kind):
        raise errors.type_error(owner, f"a {kind.__name__} is expected, but got {type(x).__name__}")


def _on_values(kind: type, function: str):
    name = f"{kind.__name__[:3].lower()}_{function}"

    def of_values(x):
        _expect(kind, x, name)
        return x.with_values(getattr(ops, function)(x.values))

    of_values.__name__ = of_values.__qualname__ = name
    of_values.__doc__ = f"The {kind.__name__} of `{function}` of each value that `x` holds."
    return of_values


for _function in _ELEMENTWISE:
    for _kind in (COOTensor, CSRTensor):
        _made = _on_values(_kind, _function)
        globals()[_made.__name__] = _made

__all__ = [f"{kind}_{name}" for name in _ELEMENTWISE for kind in ("coo", "csr")]
__all__ += ["coo2csr", "coo_add", "coo_concat", "csr2coo", "csr_add", "csr_div", "csr_gather", "csr_mm"]
__all__ += ["csr_mul", "csr_mv", "csr_reduce_sum", "csr_softmax", "csr_to_coo", "csr_to_dense"]
__all__ += ["dense_to_sparse_coo", "dense_to_sparse_csr"]


def coo2csr(row_indices: Tensor, height: int) -> Tensor:
    """Where the rows begin, [height + 1], given the row of each value in ascending order."""
    import numpy as np

    counts = np.bincount(row_indices.asnumpy(), minlength=height)
    return Tensor(np.concatenate([[0], np.cumsum(counts)]), row_indices.dtype)


def csr2coo(indptr: Tensor, nnz: int) -> Tensor:
    """The row of each of the `nnz` values, given where the rows begin.

    Errors: ValueError if the last entry of `indptr` is not `nnz`.
    """
    import numpy as np

    pointers = indptr.asnumpy()
    if pointers[-1] != nnz:
        raise errors.value_error("csr2coo", f"indptr ends with {pointers[-1]}, but there are {nnz} values")
    return Tensor(np.repeat(np.arange(len(pointers) - 1), np.diff(pointers)), indptr.dtype)


def csr_gather(indptr: Tensor, indices: Tensor, dense: Tensor, sparse_shape: tuple) -> Tensor:
    """The elements of `dense`, broadcast to `sparse_shape`, at the places of a CSRTensor."""
    places = ops.stack((csr2coo(indptr, indices.shape[0]).astype(indices.dtype), indices), 1)
    return ops.gather_nd(ops.broadcast_to(dense, sparse_shape), places)


def _combined(x: CSRTensor, y: Any, values, owner: str):
    _expect(CSRTensor, x, owner)
    number = not is_tensor(y) or y.size == 1
    if is_tensor(y) and y.ndim > x.ndim:
        raise errors.value_error(owner, f"y of shape {y.shape} cannot be broadcast to {x.shape}")
    return values if number else x.with_values(values)


def csr_mul(x: CSRTensor, y: Tensor):
    """`x` times a dense tensor that is broadcast to it: a CSRTensor; times a number: the values alone.

    Errors: TypeError unless `x` is a CSRTensor, ValueError if y has more axes.
    """
    return _combined(x, y, x * y, "csr_mul")


def csr_div(x: CSRTensor, y: Tensor):
    """`x` divided by a dense tensor that is broadcast to it: a CSRTensor; by a number: the values alone.

    Errors: TypeError unless `x` is a CSRTensor, ValueError if y has more axes.
    """
    return _combined(x, y, x / y, "csr_div")


def csr_mv(csr_tensor: CSRTensor, dense: Tensor) -> Tensor:
    """The product with a column [n, 1]."""
    return csr_tensor.mv(dense)


def csr_mm(
    a: CSRTensor,
    b: CSRTensor,
    trans_a: bool = False,
    trans_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
):
    """The product of `a` and `b`, each transposed (adjoint: and conjugated) first if so asked.

    Shapes: [m, n], [n, k] -> a Tensor [m, k] if `b` is a Tensor, else a CSRTensor.
    Errors: TypeError unless `a` is a CSRTensor.
    """
    _expect(CSRTensor, a, "csr_mm")

    def turned(matrix, transposed, adjoint):
        dense = matrix.to_dense() if isinstance(matrix, CSRTensor) else matrix
        dense = ops.transpose(dense, (1, 0)) if transposed or adjoint else dense
        return ops.conj(dense) if adjoint and dense.dtype.is_complex else dense

    product = ops.matmul(turned(a, trans_a, adjoint_a), turned(b, trans_b, adjoint_b))
    return product if is_tensor(b) else dense_to_sparse_csr(product)


def csr_reduce_sum(csr_tensor: CSRTensor, axis: int) -> Tensor:
    """The sums of rows, [m, 1] (axis 1)."""
    return csr_tensor.sum(axis)


def csr_to_coo(tensor: CSRTensor) -> COOTensor:
    """The same matrix by places.

    Errors: TypeError unless a CSRTensor, ValueError unless a matrix.
    """
    _expect(CSRTensor, tensor, "csr_to_coo")
    if tensor.ndim != 2:
        raise errors.value_error("csr_to_coo", f"a matrix is needed, but the shape is {tensor.shape}")
    return tensor.to_coo()


def csr_to_dense(csr_tensor: CSRTensor) -> Tensor:
    """The matrix with all elements.

    Errors: TypeError unless a CSRTensor, ValueError unless a matrix.
    """
    _expect(CSRTensor, csr_tensor, "csr_to_dense")
    if csr_tensor.ndim != 2:
        raise errors.value_error("csr_to_dense", f"a matrix is needed, but the shape is {csr_tensor.shape}")
    return csr_tensor.to_dense()


def csr_add(a: CSRTensor, b: CSRTensor, alpha: Tensor, beta: Tensor) -> CSRTensor:
    """``alpha * a + beta * b``.

    Errors: TypeError unless CSRTensors.
    """
    _expect(CSRTensor, a, "csr_add")
    return a.add(b, alpha, beta)


def csr_softmax(logits: CSRTensor, dtype) -> CSRTensor:
    """The softmax of each row, over the values that are held; computed in `dtype`.

    Errors: TypeError unless a CSRTensor.
    """
    _expect(CSRTensor, logits, "csr_softmax")
    values, rows = logits.values.astype(dtype), csr2coo(logits.indptr, logits.size)
    peaks = ops.unsorted_segment_max(values, rows, logits.shape[0])
    powers = ops.exp(values - ops.gather(peaks, rows, 0))
    totals = ops.unsorted_segment_sum(powers, rows, logits.shape[0])
    return logits.with_values(powers / ops.gather(totals, rows, 0))


def coo_add(x1: COOTensor, x2: COOTensor, thresh: Tensor) -> COOTensor:
    """The sum, without values whose amount is below `thresh`.

    Errors: TypeError unless COOTensors, ValueError if their shapes differ.
    """
    _expect(COOTensor, x1, "coo_add")
    return x1.add(x2, thresh)


def coo_concat(sp_input, concat_dim: int = 0) -> COOTensor:
    """One behind the other along an axis, in order of the places.

    Errors: ValueError for fewer than two, IndexError for an axis that is not there, RuntimeError for other
    sizes along the other axes, TypeError for different dtypes.
    """
    import numpy as np

    if len(sp_input) < 2:
        raise errors.value_error("coo_concat", f"at least 2 COOTensors are needed, but got {len(sp_input)}")
    rank = sp_input[0].ndim
    if isinstance(concat_dim, bool) or not isinstance(concat_dim, int):
        raise errors.type_error("coo_concat", f"concat_dim must be an int, but got {concat_dim!r}")
    if not -rank <= concat_dim < rank:
        raise errors.index_error(
            "coo_concat", f"concat_dim must be in [{-rank}, {rank}), but got {concat_dim}"
        )
    axis, offset, places = concat_dim % rank, 0, []
    first = sp_input[0]
    for part in sp_input[1:]:
        if part.dtype is not first.dtype:
            raise errors.type_error("coo_concat", f"the dtypes {first.dtype} and {part.dtype} differ")
        if any(a != b for i, (a, b) in enumerate(zip(first.shape, part.shape)) if i != axis):
            raise errors.runtime_error("coo_concat", f"{first.shape} and {part.shape} do not fit together")
    for part in sp_input:
        at = part.indices.asnumpy().copy()
        at[:, axis] += offset
        offset += part.shape[axis]
        places.append(at)
    places = np.concatenate(places)
    order = np.lexsort(places.T[::-1])
    shape = sp_input[0].shape[:axis] + (offset,) + sp_input[0].shape[axis + 1 :]
    values = ops.gather(ops.cat([part.values for part in sp_input]), Tensor(order), 0)
    return COOTensor(Tensor(places[order], sp_input[0].indices.dtype), values, shape)
