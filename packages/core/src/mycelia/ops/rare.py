"""Functions that few scripts call: rotated boxes, rotary positions, experts' tokens, in-place forms,
tuples.
"""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import dtypes, errors, ignored
from mycelia.engine.ops.control_flow.variable import has_unknown_length, is_variable
from mycelia.engine.tensors.sparse import COOTensor, CSRTensor, RowTensor, SparseTensor
from mycelia.engine.tensors.tensor import Tensor

# ------------------------------------------------------------------------------------- parts of networks


def rotary_position_embedding(x, cos, sin, mode=0):
    """``x * cos + turned(x) * sin``; turned: halves (`mode` 0) or neighbours (1) exchanged, the first
    negated.

    Shapes: [.., D], cos and sin broadcast to it -> same.  dtypes: floating.
    Errors: ValueError for another mode or an odd last axis.  Source: Su et al. 2021, RoFormer.
    """
    if mode not in (0, 1) or x.shape[-1] % 2:
        raise errors.value_error(
            "rotary_position_embedding",
            f"mode must be 0 or 1 and the last axis even, but got {mode!r} and {tuple(x.shape)}",
        )
    if mode == 0:
        first, second = ops.chunk(x, 2, -1)
        turned = ops.concat((-second, first), -1)
    else:
        pairs = ops.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
        turned = ops.reshape(ops.stack((-pairs[..., 1], pairs[..., 0]), -1), x.shape)
    return x * cos + turned * sin


def moe_token_permute(tokens, indices, num_out_tokens=None, padded_mode=False):
    """Tokens in the order of their experts, and for each (expert's turn, token) its new place.

    Shapes: tokens [n, d], indices [n, k] or [n] -> [n * k, d], [n * k]; only the first `num_out_tokens` rows.
    dtypes: any, integers -> any, int32.  Errors: ValueError for `padded_mode`.
    """
    if padded_mode:
        raise errors.value_error("moe_token_permute", "padded_mode must be False")
    turns = 1 if indices.ndim == 1 else indices.shape[1]
    flat = ops.cast(ops.reshape(indices, (-1,)), dtypes.float64)
    order = ops.argsort(flat * flat.size + ops.arange(flat.size))  # equal ones stay in order
    places = ops.cast(ops.argsort(ops.cast(order, dtypes.float64)), dtypes.int32)
    rows = ops.gather(tokens, ops.cast(ops.floor_div(order, turns), dtypes.int32), 0)
    limit = rows.shape[0] if not num_out_tokens else min(num_out_tokens, rows.shape[0])
    return rows[:limit], places


@ignored.arguments(restore_shape="it is that of padded_mode")
def moe_token_unpermute(permuted_tokens, sorted_indices, probs=None, padded_mode=False, restore_shape=None):
    """The tokens in their first order; those of several experts are summed, weighted by `probs` [n, k].

    Shapes: [n * k, d], [n * k] -> [n, d].  Errors: ValueError for `padded_mode`.
    """
    if padded_mode:
        raise errors.value_error("moe_token_unpermute", "padded_mode must be False")
    rows = ops.gather(permuted_tokens, sorted_indices, 0)
    if probs is None:
        return rows
    turns = probs.shape[1]
    rows = ops.reshape(rows, (-1, turns, rows.shape[-1])) * ops.expand_dims(ops.cast(probs, rows.dtype), -1)
    return ops.sum(rows, 1)


# ---------------------------------------------------------------------------------------------- in place


def zero_(input):
    """Fill with zeros in place."""
    return input.zero_()


def put_(input, index, source, accumulate=False):
    """Write `source` to the places `index` of the flat tensor, in place; `accumulate`: add."""
    return input.put_(index, source, accumulate)


def bernoulli_(input, p=0.5, *, generator=None):
    """Fill with ones of probability `p` and zeros, in place."""
    return input.bernoulli_(p, generator=generator)


def inplace_sigmoid(input):
    """Sigmoid in place."""
    return input.sigmoid_()


def reshape_(input, shape):
    """The same memory under another shape."""
    return ops.reshape(input, shape)


def stop_gradient_(input):
    """No gradient flows into this tensor from now on."""
    input.assign_value(ops.stop_gradient(input))


# ---------------------------------------------------------------------------- tuples, forms of tensors


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
    "array_to_scalar", "bernoulli_", "inplace_sigmoid", "is_dynamic_sequence_element_unknown",
    "is_sequence_shape_unknown", "is_sequence_value_unknown", "moe_token_permute", "moe_token_unpermute",
    "put_", "reshape_", "rotary_position_embedding", "row_tensor_add", "stop_gradient_", "tail",
    "tensor_muls", "tensor_range", "zero_", *_tables,
]  # fmt: skip
