"""Tuples, numbers of tensors, and the parts of sparse tensors as functions."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.ops.control_flow.variable import has_unknown_length, is_variable
from mycelia.engine.tensors.sparse import COOTensor, CSRTensor, RowTensor, SparseTensor
from mycelia.engine.tensors.tensor import Tensor


def tensor_range(start, end, step):
    """Numbers from `start` to below `end` in steps."""
    return ops.range(start, end, step)


def tail(values):
    """All elements of a tuple but the first."""
    return tuple(values)[1:]


def tensor_muls(input, other):
    """`input` times a number."""
    return ops.mul(input, other)


def array_to_scalar(x):
    """The Python number in a tensor of one element."""
    return x.item() if isinstance(x, Tensor) else x


def is_sequence_value_unknown(sequence):
    """Whether values are known only at run time: never outside of a graph."""
    return has_unknown_length(sequence) or any(map(is_variable, sequence))


def is_sequence_shape_unknown(sequence):
    """Whether the length counts as unknown: what `mutable(..., True)` made in a graph, and made of that."""
    return has_unknown_length(sequence)


def is_dynamic_sequence_element_unknown(sequence):
    """Whether there is no member that would tell a type. Errors: TypeError for a sequence of known length."""
    if not has_unknown_length(sequence):
        raise errors.type_error(
            "is_dynamic_sequence_element_unknown",
            f"the input should be variable length sequence, but got {sequence!r:.60}",
        )
    return not sequence


def _accessor(kind: type, name: str, member: str):
    def get(x):
        if not isinstance(x, kind):
            raise errors.type_error(name, f"a {kind.__name__} is expected, but got {type(x).__name__}")
        return tuple(x.shape) if member == "dense_shape" else getattr(x, member)

    get.__name__ = get.__qualname__ = name
    get.__doc__ = f"`{member}` of a {kind.__name__}."
    return get


def _maker(kind: type, name: str):
    def make(*parts):
        return kind(*parts)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A {kind.__name__} of its parts."
    return make


_MEMBERS = {
    "coo": (COOTensor, "indices values dense_shape"),
    "csr": (CSRTensor, "indptr indices values dense_shape"),
    "row": (RowTensor, "indices values dense_shape"),
}
_MAKERS = {
    "make_coo_tensor": COOTensor, "make_csr_tensor": CSRTensor, "make_row_tensor": RowTensor,
    "make_row_tensor_inner": RowTensor, "make_sparse_tensor": SparseTensor,
}  # fmt: skip
_tables = {name: _maker(kind, name) for name, kind in _MAKERS.items()}
for _form, (_kind, _members) in _MEMBERS.items():
    for _member in _members.split():
        _name = f"{_form}_tensor_get_{_member}"
        _tables[_name] = _accessor(_kind, _name, _member)
globals().update(_tables)


def row_tensor_add(x, y):
    """A dense tensor plus the rows of a RowTensor at their places."""
    if isinstance(x, RowTensor):
        x, y = y, x
    return ops.tensor_scatter_add(x, ops.expand_dims(y.indices, -1), y.values)


__all__ = [
    "array_to_scalar", "is_dynamic_sequence_element_unknown", "is_sequence_shape_unknown",
    "is_sequence_value_unknown", "row_tensor_add", "tail", "tensor_muls", "tensor_range", *_tables,
]  # fmt: skip
