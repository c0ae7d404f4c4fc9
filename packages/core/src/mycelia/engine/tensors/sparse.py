"""Sparse matrices: COOTensor and CSRTensor, and rows of a matrix: RowTensor.

Each is a few tensors and a shape. Their methods are compositions of ops on these tensors, so gradients
flow to the
values, and what they hold may be made and used in compiled functions.
"""

from __future__ import annotations

from typing import Any

from mycelia.engine import _C, dispatch
from mycelia.engine.base import errors
from mycelia.engine.ops.late import ops
from mycelia.engine.tensors import text as tensor_text

Tensor = _C.Tensor


def _traced() -> bool:
    """Whether a graph is made."""
    return bool(_C.mode() & dispatch.TRACING)


def _text(tensor: Tensor) -> str:
    """A member as the text of the whole shows it: without commas."""
    gap = "" if tensor.ndim < 2 else "\n"
    value = tensor_text.summary(tensor.asnumpy(), tensor.dtype, comma=False)
    return f"Tensor(shape={list(tensor.shape)}, dtype={tensor.dtype}, value={gap}{value})"


class Sparse:
    """What the kinds have in common: a shape, values, and the facts that follow."""

    _members: tuple[str, ...] = ()
    _printed = ""  # the name in its text, if another than the class's
    _values: Tensor

    def parts(self) -> list[Tensor]:
        """The tensors that it is made of, in the order of the constructor."""
        return [getattr(self, "_" + name) for name in self._members]

    @property
    def values(self) -> Tensor:
        """The values that are held."""
        return self._values

    def _take(self, members: tuple, shape) -> None:
        owner = type(self).__name__
        for name, value in zip(self._members, members):
            if not isinstance(value, Tensor):
                raise errors.type_error(owner, f"{name} must be a Tensor, but got {type(value).__name__}")
            setattr(self, "_" + name, value)
        if not isinstance(shape, tuple):
            raise errors.type_error(owner, f"shape must be a tuple, but got {type(shape).__name__}")
        for n in shape:
            if isinstance(n, bool) or not isinstance(n, int):
                raise errors.type_error(owner, f"shape must hold ints, but got {n!r}")
            if n <= 0:
                raise errors.value_error(owner, f"shape must hold positive sizes, but got {shape}")
        self._shape = shape

    def _copied(self, other) -> tuple[tuple, tuple]:
        if not isinstance(other, type(self)):
            raise errors.type_error(
                type(self).__name__, f"another one is expected, but got {type(other).__name__}"
            )
        return tuple(getattr(other, name) for name in self._members), other.shape

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dense tensor."""
        return self._shape

    @property
    def dtype(self):
        """Element type of the values."""
        return self.values.dtype

    @property
    def size(self) -> int:
        """Number of values that are held."""
        return self.values.size

    @property
    def itemsize(self) -> int:
        """Bytes of one value."""
        return self.values.itemsize

    @property
    def ndim(self) -> int:
        """Number of axes of the dense tensor."""
        return len(self._shape)

    def to_tuple(self) -> tuple:
        """The tensors it consists of, and the shape."""
        return (*(getattr(self, name) for name in self._members), self._shape)

    def with_values(self, values: Tensor):
        """The same places with other values."""
        places = tuple(getattr(self, name) for name in self._members[:-1])
        return type(self)(*places, values, self._shape)

    def astype(self, dtype):
        """The same with values of another dtype."""
        return self.with_values(self.values.astype(dtype))

    def abs(self):
        """The same with absolute values."""
        return self.with_values(ops.abs(self.values))

    def __neg__(self):
        return self.with_values(-self.values)

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={_text(getattr(self, name))}" for name in self._members)
        name = self._printed or type(self).__name__
        return f"{name}(shape={list(self._shape)}, dtype={self.dtype}, {members})"


class COOTensor(Sparse):
    """A tensor given by the places of its values: `indices` [n, 2] (rows of integers), `values` [n].

    Errors: TypeError unless tensors and a tuple, ValueError for shapes that do not fit.
    """

    _members = ("indices", "values")

    def __init__(self, indices=None, values=None, shape=None, coo_tensor=None):
        if coo_tensor is not None:
            (indices, values), shape = self._copied(coo_tensor)
        self._take((indices, values), shape)
        if indices.ndim != 2:
            raise errors.value_error("COOTensor", f"indices must have 2 axes, but they have {indices.ndim}")
        if values.ndim != 1:
            raise errors.value_error("COOTensor", f"values must have 1 axis, but they have {values.ndim}")
        if len(shape) != indices.shape[1]:
            # The shape is a part of the type in graphs.
            wrong = errors.type_error if _traced() and indices.shape[1] == 2 else errors.value_error
            raise wrong("COOTensor", f"shape must have {indices.shape[1]} sizes, but got {shape}")
        if values.shape[0] != indices.shape[0]:
            raise errors.value_error(
                "COOTensor", f"there are {indices.shape[0]} places, but {values.shape[0]} values"
            )

    @property
    def indices(self) -> Tensor:
        """The places of the values."""
        return self._indices

    def to_dense(self) -> Tensor:
        """The tensor with all elements; values of one place are added."""
        zeros = ops.zeros(self._shape, self.dtype)
        return ops.tensor_scatter_add(zeros, self.indices, self.values)

    def coalesce(self) -> COOTensor:
        """In order of the places, with values of one place added."""
        import numpy as np

        places, inverse = np.unique(self.indices.asnumpy(), axis=0, return_inverse=True)
        zeros = ops.zeros((len(places),), self.dtype)
        at = Tensor(inverse.reshape(-1, 1).astype(np.int64))
        summed = ops.tensor_scatter_add(zeros, at, self.values)
        return COOTensor(Tensor(places, self.indices.dtype), summed, self._shape)

    def to_csr(self) -> CSRTensor:
        """The same matrix by rows."""
        import numpy as np

        places = self.indices.asnumpy()
        order = np.lexsort((places[:, 1], places[:, 0]))
        counts = np.bincount(places[:, 0], minlength=self._shape[0])
        pointers = Tensor(np.concatenate([[0], np.cumsum(counts)]), self.indices.dtype)
        columns = Tensor(places[order, 1], self.indices.dtype)
        return CSRTensor(pointers, columns, ops.gather(self.values, Tensor(order), 0), self._shape)

    def add(self, other: COOTensor, thresh: Tensor) -> COOTensor:
        """The sum, without values whose amount is below `thresh`."""
        import numpy as np

        if not isinstance(other, COOTensor):
            raise errors.type_error(
                "COOTensor.add", f"other must be a COOTensor, but got {type(other).__name__}"
            )
        if other.shape != self._shape:
            raise errors.value_error("COOTensor.add", f"the shapes {self._shape} and {other.shape} differ")
        places = ops.cat((self.indices, other.indices))
        total = COOTensor(places, ops.cat((self.values, other.values)), self._shape).coalesce()
        kept = np.flatnonzero(np.abs(total.values.asnumpy()) >= np.asarray(thresh.asnumpy()))
        if len(kept) == total.size:
            return total
        at = Tensor(kept)
        return COOTensor(ops.gather(total.indices, at, 0), ops.gather(total.values, at, 0), self._shape)

    def __add__(self, other):
        if isinstance(other, COOTensor):
            return self.add(other, Tensor(0, self.dtype.to_real()))
        _same_shape("+", self._shape, other)
        return ops.tensor_scatter_add(other, self.indices, self.values)

    __radd__ = __add__

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        _same_shape("*", self._shape, other)
        return self.with_values(self.values * ops.gather_nd(other, self.indices))

    __rmul__ = __mul__

    def __truediv__(self, other):
        _same_shape("/", self._shape, other)
        return self.with_values(self.values / ops.gather_nd(other, self.indices))


def _same_shape(operator: str, shape: tuple, other: Any) -> None:
    if not isinstance(other, Tensor):
        raise errors.type_error("COOTensor", f"{operator} takes a Tensor, but got {type(other).__name__}")
    if tuple(other.shape) != shape:
        raise errors.value_error(
            "COOTensor", f"{operator} takes a Tensor of shape {shape}, but got {other.shape}"
        )


class CSRTensor(Sparse):
    """A matrix by rows: row i has the columns ``indices[indptr[i]:indptr[i + 1]]`` and the `values` there.

    Errors: TypeError unless tensors and a tuple, ValueError for shapes that do not fit.
    """

    _members = ("indptr", "indices", "values")

    def __init__(self, indptr=None, indices=None, values=None, shape=None, csr_tensor=None):
        if csr_tensor is not None:
            (indptr, indices, values), shape = self._copied(csr_tensor)
        self._take((indptr, indices, values), shape)
        if values.ndim != len(shape) - 1:
            raise errors.value_error(
                "CSRTensor", f"values must have one axis less than the shape {shape}, but have {values.ndim}"
            )
        if indptr.shape != (shape[0] + 1,):
            raise errors.value_error(
                "CSRTensor",
                f"indptr must have {shape[0] + 1} entries, one more than rows, but got {indptr.size}",
            )
        if indices.shape != values.shape[:1]:
            raise errors.value_error(
                "CSRTensor", f"there are {indices.size} columns, but {values.shape[0]} values"
            )

    @property
    def indptr(self) -> Tensor:
        """Where the values of each row begin, and the end."""
        return self._indptr

    @property
    def indices(self) -> Tensor:
        """The columns of the values."""
        return self._indices

    def _rows(self) -> Tensor:
        """The row of each value."""
        import numpy as np

        counts = np.diff(self.indptr.asnumpy())
        return Tensor(np.repeat(np.arange(self._shape[0]), counts), self.indices.dtype)

    def to_coo(self) -> COOTensor:
        """The same matrix by places."""
        return COOTensor(ops.stack((self._rows(), self.indices), 1), self.values, self._shape[:2])

    def to_dense(self) -> Tensor:
        """The matrix with all elements."""
        places = ops.stack((self._rows(), self.indices), 1)
        return ops.tensor_scatter_add(ops.zeros(self._shape, self.dtype), places, self.values)

    def mv(self, dense_vector: Tensor) -> Tensor:
        """The product with a column [n, 1]."""
        return self.mm(dense_vector)

    def mm(self, matrix):
        """The product with a matrix [n, k]; with a CSRTensor it is one."""
        if isinstance(matrix, CSRTensor):
            return dense_to_sparse_csr(ops.matmul(self.to_dense(), matrix.to_dense()))
        if not isinstance(matrix, Tensor) or matrix.ndim != 2 or matrix.shape[0] != self._shape[1]:
            raise errors.value_error(
                "CSRTensor.mm",
                f"a matrix of {self._shape[1]} rows is expected, but got {getattr(matrix, 'shape', matrix)}",
            )
        parts = ops.expand_dims(self.values, 1) * ops.gather(matrix, self.indices, 0)
        zeros = ops.zeros((self._shape[0], matrix.shape[1]), parts.dtype)
        return ops.tensor_scatter_add(zeros, ops.expand_dims(self._rows(), 1), parts)

    def sum(self, axis: int) -> Tensor:
        """The sums of the rows, [m, 1] (axis 1), or of the columns, [1, n] (axis 0).

        Errors: ValueError for another axis.
        """
        if axis not in (0, 1, -1, -2):
            raise errors.value_error("CSRTensor.sum", f"axis must be 0 or 1, but got {axis}")
        axis %= 2
        at = self._rows() if axis == 1 else self.indices
        zeros = ops.zeros((self._shape[1 - axis],), self.dtype)
        return ops.expand_dims(ops.tensor_scatter_add(zeros, ops.expand_dims(at, 1), self.values), axis)

    def add(self, b: CSRTensor, alpha: Tensor, beta: Tensor) -> CSRTensor:
        """``alpha * self + beta * b``."""
        if not isinstance(b, CSRTensor):
            raise errors.type_error("CSRTensor.add", f"b must be a CSRTensor, but got {type(b).__name__}")
        if b.shape != self._shape:
            raise errors.value_error("CSRTensor.add", f"the shapes {self._shape} and {b.shape} differ")
        first, second = self.to_coo(), b.to_coo()
        places = ops.cat((first.indices, second.indices))
        values = ops.cat((first.values * alpha, second.values * beta))
        return COOTensor(places, values, self._shape).coalesce().to_csr()

    def __add__(self, other):
        if not isinstance(other, CSRTensor):
            return NotImplemented
        one = Tensor(1, self.dtype)
        return self.add(other, one, one)

    def __sub__(self, other):
        if not isinstance(other, CSRTensor):
            return NotImplemented
        return self.add(other, Tensor(1, self.dtype), Tensor(-1, self.dtype))

    def _there(self, other):
        """The elements of a dense tensor, broadcast, at the places of the values."""
        if not isinstance(other, Tensor):
            return other
        dense = ops.broadcast_to(other, self._shape)
        return ops.gather_nd(dense, ops.stack((self._rows(), self.indices), 1))

    def __mul__(self, other):
        return self.values * self._there(other)

    def __truediv__(self, other):
        return self.values / self._there(other)


class RowTensor(Sparse):
    """Some rows of a tensor: `values` [n, ...] are those at `indices` [n].

    Errors: TypeError unless tensors and a tuple, and in graphs if their shapes do not fit.
    """

    _members = ("indices", "values")

    def __init__(self, indices=None, values=None, shape=None, row_tensor=None):
        if row_tensor is not None:
            (indices, values), shape = self._copied(row_tensor)
        self._take((indices, values), shape)
        if not _traced():
            return  # operations find out what does not fit
        if len(shape) != values.ndim or tuple(shape[1:]) != tuple(values.shape[1:]):
            raise errors.type_error(
                "RowTensor",
                f"rows of shape {values.shape[1:]} do not fit in a tensor of shape {tuple(shape)}",
            )
        if values.shape[0] != indices.shape[0]:
            raise errors.type_error(
                "RowTensor", f"there are {indices.shape[0]} places, but {values.shape[0]} rows"
            )

    @property
    def indices(self) -> Tensor:
        """The rows that are held."""
        return self._indices

    @property
    def dense_shape(self) -> tuple[int, ...]:
        """Sizes of the dense tensor."""
        return self._shape

    def to_dense(self) -> Tensor:
        """The tensor with all rows; rows of one place are added."""
        zeros = ops.zeros(self._shape, self.dtype)
        return ops.tensor_scatter_add(zeros, ops.expand_dims(self.indices, 1), self.values)


class SparseTensor(COOTensor):
    """The older name of `COOTensor`."""

    _printed = "COOTensor"

    def __init__(self, indices, values, shape):
        super().__init__(indices, values, shape)


def _places(tensor: Tensor, owner: str):
    import numpy as np

    if tensor.ndim != 2:
        raise errors.value_error(owner, f"a matrix is needed, but the tensor has {tensor.ndim} axes")
    return np.argwhere(tensor.asnumpy() != 0).astype(np.int32)


def dense_to_sparse_coo(tensor: Tensor) -> COOTensor:
    """A COOTensor of the elements of a matrix that are not zero."""
    if not isinstance(tensor, Tensor):
        raise errors.type_error(
            "dense_to_sparse_coo", f"a Tensor is expected, but got {type(tensor).__name__}"
        )
    places = Tensor(_places(tensor, "dense_to_sparse_coo"))
    return COOTensor(places, ops.gather_nd(tensor, places), tuple(tensor.shape))


def dense_to_sparse_csr(tensor: Tensor) -> CSRTensor:
    """A CSRTensor of the elements of a matrix that are not zero."""
    return dense_to_sparse_coo(tensor).to_csr()
