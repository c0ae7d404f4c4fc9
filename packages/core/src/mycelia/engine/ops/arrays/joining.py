"""Ops that build tensors from several and take them apart again: concat, stack, split.

What rearranges one tensor (reshape, transpose, repeat, pad) is in `shape.py`.
"""

import functools

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.symint import SymInt, applied
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.arrays.create import zeros
from mycelia.engine.ops.arrays.padding import pad
from mycelia.engine.ops.arrays.shape import (
    as_ints,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    positive_axis,
    reshape,
    shaped_by,
    tensors_of,
)
from mycelia.engine.ops.arrays.slicing import narrow
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise.cast import cast

MAX_SECTIONS = 16  # longest list attribute (MYC_MAX_INTS)


def _one_dtype(types):
    first = tensors_of(types)[0]
    for x in types:
        if x.dtype is not first.dtype:
            raise errors.type_error(
                f"tensors must have one dtype, but got {first.dtype.name} and {x.dtype.name}"
            )
    return first


def _concat_type(types, axis):
    first = _one_dtype(types)
    at = positive_axis(axis, first.rank)
    for x in types:
        agree = x.rank == first.rank and all(
            m == n or -1 in (m, n) for i, (m, n) in enumerate(zip(x.shape, first.shape)) if i != at
        )
        if not agree:
            raise ValueError(f"shapes must agree except on axis {axis}, but got {first.shape} and {x.shape}")
    sizes = [x.shape[at] for x in types]
    total = -1 if -1 in sizes else sum(sizes)
    return TensorType(first.dtype, (*first.shape[:at], total, *first.shape[at + 1 :]))


@op(
    infer=lambda tensors, axis: _concat_type(tensors, axis),
    mindir="Concat",
    layout=_layout.along("axis"),
    moves=True,
)
def _concat(tensors: "tensors", *, axis: "int" = 0):
    """Join tensors along an existing axis.

    Shapes: [.., n1, ..], [.., n2, ..] -> [.., n1 + n2, ..].  dtypes: any, one for all.
    Errors: ValueError if other sizes differ, TypeError if dtypes differ.
    """
    return np.concatenate(tensors, axis)


@_concat.vjp
def _concat(ct, tensors_shape, *, axis):
    return list(split(ct, [shape[axis] for shape in tensors_shape], axis))


@_concat.samples
def _concat(rand):
    yield [rand(2, 3), rand(4, 3)], dict(axis=0, _dtypes=("int32", "bool", "float64", "float16"))
    yield [rand(2, 3), rand(2, 1), rand(2, 2)], dict(axis=-1)
    yield [rand(2, 0, 2), rand(2, 3, 2)], dict(axis=1)
    yield [rand(3)]
    yield [rand(2, 1) for _ in range(18)], dict(axis=1)


@_concat.batch
def _concat(call):
    operands = call.all_whole()
    return call.run(operands, axis=call.attrs["axis"] % call.rank() + 1)


def _common_dtype(tensors):
    """The tensors, brought to their common dtype if they differ."""
    tensors = tensors_of(tensors)
    target = functools.reduce(dtypes.promote, (x.dtype for x in tensors))
    return [x if x.dtype is target else cast(x, target) for x in tensors]


def cat(tensors, axis=0):
    """Join tensors along an existing axis; different dtypes are promoted.

    Shapes: [.., n1, ..], [.., n2, ..] -> [.., n1 + n2, ..].  Errors: ValueError if other sizes differ.
    """
    return _concat(_common_dtype(tensors), axis)


def concat(tensors, axis=0):
    """`cat` under its other name."""
    return cat(tensors, axis)


def _stack_type(types, axis):
    first = _one_dtype(types)
    for x in types:
        if not first.accepts(x):
            raise ValueError(f"tensors must have one shape, but got {first.shape} and {x.shape}")
    at = positive_axis(axis, first.rank + 1)
    return shaped_by(lambda shape: (*shape[:at], len(types), *shape[at:]))(first)


@op(
    infer=lambda tensors, axis: _stack_type(tensors, axis), mindir="Stack", mindir_attributes=True, moves=True
)
def stack(tensors: "tensors", *, axis: "int" = 0):
    """Join tensors of one shape along a new axis.

    Shapes: k times [a, b] -> [k, a, b] for axis 0.  dtypes: any, one for all.
    Errors: ValueError if shapes differ, TypeError if dtypes differ.
    """
    return np.stack(tensors, axis)


@stack.vjp
def stack(ct, *, axis):
    return list(unstack(ct, axis))


@stack.samples
def stack(rand):
    yield [rand(2, 3), rand(2, 3)], dict(_dtypes=("int32", "bool", "float64", "float16"))
    yield [rand(2, 3), rand(2, 3), rand(2, 3)], dict(axis=-1)
    yield [rand(2, 3), rand(2, 3)], dict(axis=1)
    yield [rand(), rand()]
    yield [rand(0, 2), rand(0, 2)], dict(axis=1)
    yield [rand(3)]


@stack.batch
def stack(call):
    operands = call.all_whole()
    return call.run(operands, axis=call.attrs["axis"] % (call.rank() + 1) + 1)


def hstack(tensors):
    """Join along the second axis (vectors: along the first)."""
    tensors = [atleast_1d(x) for x in tensors_of(tensors)]
    return cat(tensors, 0 if tensors[0].ndim == 1 else 1)


def vstack(inputs):
    """Join along the first axis; vectors become rows."""
    return cat([atleast_2d(x) for x in tensors_of(inputs, "inputs")], 0)


def row_stack(tensors):
    """`vstack` under its other name."""
    return vstack(tensors)


def dstack(tensors):
    """Join along the third axis."""
    return cat([atleast_3d(x) for x in tensors_of(tensors)], 2)


def column_stack(tensors):
    """Join along the second axis; vectors become columns."""
    columns = [x if x.ndim >= 2 else reshape(x, (-1, 1)) for x in tensors_of(tensors)]
    return cat(columns, 1)


def block_diag(*inputs):
    """A matrix with the inputs (matrices; vectors as rows, scalars as 1 x 1) along its
    diagonal, zero elsewhere.
    """
    blocks = [atleast_2d(x) for x in tensors_of(inputs, "inputs")]
    for x in blocks:
        if x.ndim > 2:
            raise errors.value_error(
                f"For 'block_diag', inputs must have at most 2 axes, but got shape {x.shape}"
            )
    width = sum(x.shape[1] for x in blocks)
    rows, left = [], 0
    for x in _common_dtype(blocks):
        rows.append(pad(x, (left, width - left - x.shape[1])))
        left += x.shape[1]
    return cat(rows, 0)


def _sections(n, sections):
    """Sizes of the pieces: one number = pieces of that size with a smaller last one."""
    if len(sections) != 1 or sections[0] == n:
        return sections
    size = sections[0]
    return (size,) * (n // size) + ((n % size,) if n % size else ())


def _split_types(x, sections, axis):
    at = positive_axis(axis, x.rank)
    n = x.shape[at]
    if n == -1:
        raise ValueError(f"axis {axis} has a size that is known only at run time: it cannot be split")
    if any(s < 0 for s in sections) or (len(sections) == 1 and sections[0] == 0 and n):
        raise ValueError(f"sections must be positive, but got {sections}")
    sizes = _sections(n, sections)
    if sum(sizes) != n:
        raise ValueError(f"the sum of 'split_size_or_sections' must be equal to {n}, but got {sum(sizes)}")
    return tuple(TensorType(x.dtype, (*x.shape[:at], s, *x.shape[at + 1 :])) for s in sizes)


@op(
    infer=lambda x, sections, axis: _split_types(x, sections, axis),
    outputs=None,
    batch=_batch.along("axis"),
    layout=_layout.along("axis"),
    moves=True,
)
def _split(x, *, sections: "ints", axis: "int" = 0):
    """Cut along an axis into pieces of the sizes `sections`; one number:
    pieces of that size, the last may be smaller.

    Shapes: [.., n, ..] -> [.., s0, ..], [.., s1, ..], ...  dtypes: any.
    Errors: ValueError if the sizes do not sum to n.
    """
    ends = np.cumsum(_sections(x.shape[axis], sections))
    return tuple(np.split(x, ends[:-1], axis))


@_split.vjp
def _split(cts, x_shape, *, sections, axis):
    sizes = _sections(x_shape[axis], sections)
    shapes = [(*x_shape[: axis % len(x_shape)], s, *x_shape[axis % len(x_shape) + 1 :]) for s in sizes]
    return _concat(_with_zeros(cts, shapes), axis)


def _with_zeros(cts, shapes):
    """The cotangents, with zeros for outputs that nothing flows back to."""
    dtype = next(ct.dtype for ct in cts if ct is not None)
    return [zeros(shape, dtype) if ct is None else ct for ct, shape in zip(cts, shapes)]


@_split.samples
def _split(rand):
    yield rand(6, 2), dict(sections=(1, 2, 3), _dtypes=("int32", "bool", "float64", "float16"))
    yield rand(2, 7), dict(sections=3, axis=-1)
    yield rand(2, 4, 3), dict(sections=(2, 2), axis=1)
    yield rand(2, 3), dict(sections=(0, 3), axis=1)
    yield rand(3), dict(sections=(3,))
    yield rand(0, 3), dict(sections=(1, 2), axis=1)


def split(tensor, split_size_or_sections, axis=0):
    """Cut along `axis` into pieces of a given size (the last may be smaller) or of the given sizes.

    Shapes: [.., n, ..] -> tuple of [.., s, ..].  Errors: ValueError if the sizes do
    not sum to n, or size <= 0.
    """
    if isinstance(split_size_or_sections, int):
        if split_size_or_sections <= 0:
            raise errors.value_error(
                f"For 'split', split_size_or_sections must be positive, but got {split_size_or_sections}"
            )
        n = tensor.shape[positive_axis(axis, tensor.ndim)]
        if SymInt not in (type(n), type(split_size_or_sections)):
            return _split(tensor, min(split_size_or_sections, n), axis)
        # For open sizes a graph holds for one number of pieces.
        before = (max(int(-(-n // split_size_or_sections)), 1) - 1) * (split_size_or_sections,)
        split_size_or_sections = (*before, n - sum(before))
    sizes = as_ints(split_size_or_sections, "split_size_or_sections")
    at = positive_axis(axis, tensor.ndim)
    if sum(sizes) != tensor.shape[at] or any(s < 0 for s in sizes):
        raise errors.value_error(
            f"For 'split', the sum of 'split_size_or_sections' must be equal to {tensor.shape[at]}, "
            f"but got {sum(sizes)} from {sizes}"
        )
    if len(sizes) <= MAX_SECTIONS:
        return _split(tensor, sizes, axis)
    groups = [sizes[i : i + MAX_SECTIONS] for i in range(0, len(sizes), MAX_SECTIONS)]
    pieces = split(tensor, [sum(g) for g in groups], axis)
    return tuple(part for piece, group in zip(pieces, groups) for part in split(piece, group, axis))


def chunk(input, chunks, axis=0):
    """Cut along `axis` into at most `chunks` pieces of one size (the last may be smaller)."""
    if chunks <= 0:
        raise errors.value_error(f"For 'chunk', chunks must be more than zero, but got {chunks}")
    n = input.shape[positive_axis(axis, input.ndim)]
    return split(input, applied(max, -(-n // chunks), 1), axis)


def tensor_split(input, indices_or_sections, axis=0):
    """Cut along `axis` into that many nearly equal pieces, or before each of the given indices.

    Shapes: [.., n, ..] -> tuple of [.., s, ..].  Errors: ValueError if the number of pieces is not positive.
    """
    n = input.shape[positive_axis(axis, input.ndim)]
    if isinstance(indices_or_sections, int):
        pieces = indices_or_sections
        if pieces <= 0:
            raise errors.value_error(
                f"For 'tensor_split', the number of pieces must be more than zero, but got {pieces}"
            )
        return split(input, [(n + pieces - 1 - i) // pieces for i in range(pieces)], axis)
    bounds = [0, *as_ints(indices_or_sections, "indices_or_sections"), n]
    bounds = [applied(min, applied(max, b + n if b < 0 else b, 0), n) for b in bounds]
    return tuple(_between(input, axis, low, applied(max, low, high)) for low, high in zip(bounds, bounds[1:]))


def _between(x, axis, start, stop):
    return narrow(x, axis, start, stop - start)


def hsplit(input, indices_or_sections):
    """`tensor_split` along the second axis (vectors: the first)."""
    if input.ndim < 1:
        raise errors.value_error("For 'hsplit', the input must have at least 1 axis, but got rank 0")
    return tensor_split(input, indices_or_sections, 0 if input.ndim == 1 else 1)


def vsplit(input, indices_or_sections):
    """`tensor_split` along the first axis."""
    if input.ndim < 2:
        raise errors.value_error(
            f"For 'vsplit', the input must have at least 2 axes, but got shape {input.shape}"
        )
    return tensor_split(input, indices_or_sections, 0)


def dsplit(input, indices_or_sections):
    """`tensor_split` along the third axis."""
    if input.ndim < 3:
        raise errors.value_error(
            f"For 'dsplit', the input must have at least 3 axes, but got shape {input.shape}"
        )
    return tensor_split(input, indices_or_sections, 2)


def _unstack_types(x, axis):
    at = positive_axis(axis, x.rank)
    if x.shape[at] == -1:
        raise ValueError(f"axis {axis} has a size that is known only at run time: it cannot be unstacked")
    return tuple(TensorType(x.dtype, x.shape[:at] + x.shape[at + 1 :]) for _ in range(x.shape[at]))


@op(
    infer=lambda input_x, axis: _unstack_types(input_x, axis),
    outputs=None,
    mindir="Unstack",
    mindir_attributes=True,
    batch=_batch.along("axis"),
    moves=True,
)
def unstack(input_x, *, axis: "int" = 0):
    """The slices along an axis, which is dropped.

    Shapes: [k, a, b] -> k times [a, b] for axis 0.  dtypes: any.
    """
    return tuple(np.moveaxis(input_x, axis, 0))


@unstack.vjp
def unstack(cts, input_x_shape, *, axis):
    axis %= len(input_x_shape)
    shape = input_x_shape[:axis] + input_x_shape[axis + 1 :]
    return stack(_with_zeros(cts, [shape] * len(cts)), axis)


@unstack.samples
def unstack(rand):
    yield rand(3, 2), dict(_dtypes=("int32", "bool", "float64", "float16"))
    yield rand(2, 3, 4), dict(axis=-1)
    yield rand(2, 3, 4), dict(axis=1)
    yield rand(1)
    yield rand(2, 0)


def unbind(input, dim=0):
    """`unstack` under its other name."""
    return unstack(input, dim)


__all__ = [
    "cat",
    "concat",
    "stack",
    "hstack",
    "vstack",
    "row_stack",
    "dstack",
    "column_stack",
    "block_diag",
    "split",
    "chunk",
    "tensor_split",
    "hsplit",
    "vsplit",
    "dsplit",
    "unstack",
    "unbind",
]
