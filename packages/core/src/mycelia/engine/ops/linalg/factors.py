"""LU factorization, the pseudo-inverse, and what `mycelia.scipy` needs beside them; all take stacks."""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.base.errors import shape_error
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.define import op
from mycelia.engine.ops.infer import same_along
from mycelia.engine.ops.late import ops
from mycelia.engine.ops.linalg.determinants import _in_float32, _matrices, _mm, _of_finite, _turn
from mycelia.engine.ops.linalg.solvers import _adjoint, triangular_matrix_solve

__all__: list[str] = []

_REAL_OF = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}


def eps(dtype) -> float:
    """Distance from 1 to the next number of this dtype."""
    return float(np.finfo(dtype.np).eps)


# ----------------------------------------------------------------------------------------------------- LU


def _lu_type(x):
    batch, m, n = _matrices(x)
    k = min(m, n)
    return x, TensorType(dtypes.int32, (*batch, k)), TensorType(dtypes.int32, (*batch, m))


def _np_order(pivots, m):
    """The rows that exchanges, counted from 0, bring to each place. Shapes: [.., k] -> [.., m]."""
    flat = pivots.reshape(-1, pivots.shape[-1])
    orders = np.tile(np.arange(m, dtype=np.int32), (len(flat), 1))
    for order, exchanges in zip(orders, flat):
        for i, p in enumerate(exchanges):
            order[i], order[p] = order[p], order[i]
    return orders.reshape(*pivots.shape[:-1], m)


@op(infer=_lu_type, outputs=3, batch=_batch.leading)
def lu(a):
    """LU factorization with exchanges of rows: L (without its unit diagonal) and U packed, exchanges, order.

    Step i exchanges row i with row ``exchanges[i]``; row j of ``L @ U`` is row ``order[j]`` of a.
    Shapes: [.., m, n] -> same, [.., min(m, n)], [.., m].  dtypes: floating; the others int32.
    Source: Golub and Van Loan, Matrix Computations, algorithm 3.4.1.
    """
    m, n = a.shape[-2:]
    steps = min(m, n)
    packed = np.array(a, np.float32 if a.dtype == np.float16 else a.dtype).reshape(-1, m, n)
    pivots = np.zeros((len(packed), steps), np.int32)
    each = np.arange(len(packed))
    with np.errstate(divide="ignore", invalid="ignore"):  # a singular matrix gives what is not finite
        for i in range(steps):
            best = i + np.argmax(np.abs(packed[:, i:, i]), -1)
            pivots[:, i] = best
            rows = packed[each, best].copy()
            packed[each, best] = packed[:, i]
            packed[:, i] = rows
            packed[:, i + 1 :, i] /= packed[:, i, i, None]
            packed[:, i + 1 :, i + 1 :] -= packed[:, i + 1 :, i, None] * packed[:, i, None, i + 1 :]
    pivots = pivots.reshape(*a.shape[:-2], steps)
    return packed.reshape(a.shape).astype(a.dtype), pivots, _np_order(pivots, m)


@lu.vjp
def lu(cts, outs):
    # P dA = L phi(L^-1 P dA U^-1) ..: the strict lower triangle belongs to L, the rest to U.
    packed, _, order = outs
    if packed.shape[-1] != packed.shape[-2] or packed.ndim != 2:
        raise errors.value_error("lu", f"has a gradient for one square matrix, not for {tuple(packed.shape)}")
    if cts[0] is None:
        return None
    n = packed.shape[-1]
    lower = ops.tril(packed, -1) + ops.eye(n, n, packed.dtype)
    inner = ops.tril(_mm(lower, ops.tril(cts[0], -1), True), -1)
    inner = inner + ops.triu(_mm(ops.triu(cts[0]), ops.triu(packed), False, True))
    left = triangular_matrix_solve(packed, inner, True, True, True)
    turned = triangular_matrix_solve(packed, _turn(left), False, False)
    return ops.gather(_turn(turned), ops.argsort(order), 0)


@lu.samples
def lu(rand):
    yield rand(3, 3) + np.array([[0, 3, 0], [4, 0, 0], [0, 0, 5]], np.float32), dict(_second=False)
    yield rand(2, 2, 4) + np.array([[2, 0, 0, 0], [0, 2, 0, 0]], np.float32), dict(_grad=False)
    yield rand(4, 2) + np.array([[2, 0], [0, 2], [0, 0], [0, 0]], np.float32), dict(_grad=False)
    yield rand(1, 1, low=1.0, high=2.0)


@op(infer=lambda pivots: pivots, nondiff=True, batch=_batch.leading)
def row_order(pivots):
    """The order of rows that exchanges, counted from 0, make. Shapes: [.., n] -> same.  dtypes: int32."""
    return _np_order(pivots, pivots.shape[-1])


@row_order.samples
def row_order(rand):
    yield np.array([2, 2, 2], np.int32)
    yield np.array([[1, 1], [0, 1]], np.int32)


# --------------------------------------------------------------------------------- pseudo-inverse, values


def _pinv_type(a):
    batch, m, n = _matrices(a)
    return TensorType(a.dtype, (*batch, n, m))


@op(infer=_pinv_type, batch=_batch.leading)
def pseudo_inverse(a):
    """Moore-Penrose inverse; singular values below ``max(m, n) * eps`` times the largest count as zero.

    Shapes: [.., m, n] -> [.., n, m].  dtypes: floating, complex.  Source: Golub and Pereyra 1973 (the
    gradient).
    """
    if not a.size:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    limit = max(a.shape[-2:]) * np.finfo(a.dtype).eps
    wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    return _of_finite(lambda x: np.linalg.pinv(x, rcond=limit), wide).astype(a.dtype)


@pseudo_inverse.vjp
def pseudo_inverse(ct, a, out):
    adjoint, turned = _adjoint(out), _adjoint(ct)
    first = _mm(_mm(adjoint, ct), adjoint)
    outside = turned - _mm(a, _mm(out, turned))  # what the range of a does not hold
    second = _mm(_mm(outside, out), adjoint)
    inside = turned - _mm(_mm(turned, out), a)
    third = _mm(adjoint, _mm(out, inside))
    return second + third - first


@pseudo_inverse.samples
def pseudo_inverse(rand):
    yield rand(3, 2) + np.eye(3, 2, dtype=np.float32), dict(_second=False)
    yield rand(2, 2, 3) + np.eye(2, 3, dtype=np.float32), dict(_second=False)
    yield np.ones((3, 2), np.float32), dict(_grad=False)


def _values_type(a):
    batch, m, n = _matrices(a)
    return TensorType(_REAL_OF.get(a.dtype, a.dtype), (*batch, min(m, n)))


@op(infer=_values_type, nondiff=True, batch=_batch.leading)
def singular_values(a):
    """Singular values, descending. Shapes: [.., m, n] -> [.., min(m, n)].

    dtypes: floating, complex -> real.
    """
    return _in_float32(lambda x: _of_finite(lambda y: np.linalg.svd(y, compute_uv=False), x), a)


@singular_values.samples
def singular_values(rand):
    yield rand(3, 2)
    yield rand(2, 2, 3)


# -------------------------------------------------------------------------------------- cosine transforms


@op(infer=same_along)
def cosine_transform(x, *, axis: "int", inverse: "bool" = False):
    """Orthonormal cosine transform of the second kind along `axis`, or its inverse, by one or two FFTs.

    ``y[k] = w[k] * sum of x[j] * cos(pi * (2 j + 1) * k / (2 n))`` with w[0] = sqrt(1 / n), else sqrt(2 / n).
    Shapes: any -> same.  dtypes: floating, complex.  Source: Makhoul 1980.
    """
    n = x.shape[axis]
    rows = np.moveaxis(x, axis, -1).astype(np.complex128)
    weight = np.full(n, np.sqrt(2 / n))
    weight[0] = np.sqrt(1 / n)
    turn = np.exp(-0.5j * np.pi * np.arange(n) / n)
    if inverse:
        rows = rows * weight
        back = np.fft.ifft(rows * turn.conj(), 2 * n, norm="forward") + np.fft.fft(rows * turn, 2 * n)
        found = back[..., :n] / 2
    else:
        mirrored = np.concatenate([rows, rows[..., ::-1]], -1)
        found = np.fft.fft(mirrored)[..., :n] * turn * weight / 2
    found = np.moveaxis(found, -1, axis)
    return np.ascontiguousarray(found if x.dtype.kind == "c" else found.real).astype(x.dtype)


@cosine_transform.vjp
def cosine_transform(ct, axis, inverse):
    return cosine_transform(ct, axis, not inverse)  # the matrix is orthogonal


@cosine_transform.samples
def cosine_transform(rand):
    for inverse in (False, True):
        yield rand(5), dict(axis=0, inverse=inverse)
        yield rand(2, 3, 4), dict(axis=1, inverse=inverse)
        yield rand(1, 1), dict(axis=-1, inverse=inverse)


# ------------------------------------------------------------------------------------------- assignments


def _assignment_type(cost, limit, maximize):
    if len(cost.shape) != 2:
        raise shape_error(f"cost_matrix must have rank 2, but its shape is {list(cost.shape)}")
    found = TensorType(dtypes.int64, (min(cost.shape),))
    return found, found


def _shortest_paths(cost):
    """For each row of [m, n], m <= n, its column in an assignment of least cost.

    Each row joins by the shortest augmenting path over reduced costs. Source: Crouse 2016, On implementing 2D
    rectangular assignment algorithms; of equally short ways one to a free column is taken.
    """
    m, n = cost.shape
    u, v = np.zeros(m), np.zeros(n)
    row_of, column_of = np.full(n, -1), np.full(m, -1)
    for start in range(m):
        shortest, previous = np.full(n, np.inf), np.full(n, -1)
        rows_seen, columns_seen = np.zeros(m, bool), np.zeros(n, bool)
        remaining = np.arange(n)[::-1].copy()
        left, row, least, sink = n, start, 0.0, -1
        while sink < 0:
            rows_seen[row] = True
            open_columns = remaining[:left]
            reduced = least + cost[row, open_columns] - u[row] - v[open_columns]
            nearer = reduced < shortest[open_columns]
            shortest[open_columns[nearer]] = reduced[nearer]
            previous[open_columns[nearer]] = row
            lengths = shortest[open_columns]
            least = lengths.min()
            if not np.isfinite(least):
                raise RuntimeError("cost_matrix leaves no assignment of finite cost")
            ties = np.flatnonzero(lengths == least)
            free = ties[row_of[open_columns[ties]] < 0]
            at = free[-1] if len(free) else ties[0]
            column = open_columns[at]
            columns_seen[column] = True
            if row_of[column] < 0:
                sink = column
            else:
                row = row_of[column]
            left -= 1
            remaining[at] = remaining[left]
        u[start] += least
        others = rows_seen.copy()
        others[start] = False
        u[others] += least - shortest[column_of[others]]
        v[columns_seen] -= least - shortest[columns_seen]
        column = sink
        while True:
            row = previous[column]
            row_of[column] = row
            column_of[row], column = column, column_of[row]
            if row == start:
                break
    return column_of


@op(infer=_assignment_type, outputs=2, nondiff=True)
def linear_sum_assignment(cost_matrix, dimension_limit, *, maximize: "bool" = False):
    """Rows and columns of the assignment of least, or greatest, total cost, each row and column used once.

    Only the first `dimension_limit` columns count; places without a pair hold -1.
    Shapes: [m, n], [] -> [min(m, n)] twice.  dtypes: real numbers, int64 -> int64.
    """
    cost = cost_matrix[:, : max(int(dimension_limit), 0)].astype(np.float64)
    if np.isnan(cost).any():
        raise RuntimeError("cost_matrix has elements that are no numbers")
    cost = -cost if maximize else cost
    if cost.shape[0] <= cost.shape[1]:
        rows, columns = np.arange(cost.shape[0]), _shortest_paths(cost)
    else:
        found = _shortest_paths(cost.T)
        by_row = np.argsort(found)
        rows, columns = found[by_row], by_row
    results = np.full((2, min(cost_matrix.shape)), -1, np.int64)
    results[:, : len(rows)] = rows, columns
    return results[0], results[1]


@linear_sum_assignment.samples
def linear_sum_assignment(rand):
    every = np.int64(2**62)
    yield rand.distinct(3, 4), every
    yield rand.distinct(4, 3), every, dict(maximize=True)
    yield rand.distinct(4, 3), np.int64(2)
    yield rand(0, 3), every
