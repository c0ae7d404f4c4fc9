"""Tensor methods of the shape, index, scatter and ordering families.

MindSpore has two generations of methods, with `axis` and with `dim`;
a method here takes both names where it has both.
"""

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import dtypes, errors, ignored
from mycelia.engine.ops.arrays import create, order
from mycelia.engine.ops.arrays import gathering as _gathering
from mycelia.engine.ops.arrays import masks as _masks
from mycelia.engine.ops.arrays import slicing as _slicing
from mycelia.engine.ops.arrays import triangles as _triangles
from mycelia.engine.ops.arrays.axes import (
    flatten,
    flip,
    fliplr,
    flipud,
    movedim,
    ravel,
    roll,
    rot90,
    swapaxes,
    t,
    transpose,
)
from mycelia.engine.ops.arrays.joining import chunk, split, tensor_split, unstack
from mycelia.engine.ops.arrays.padding import pad
from mycelia.engine.ops.arrays.repeating import repeat_elements, repeat_interleave, tile
from mycelia.engine.ops.arrays.row_updates import (
    _index_add,
    index_copy,
    index_fill,
    index_put,
    inplace_update,
)
from mycelia.engine.ops.arrays.scatter import (
    _as_updates,
    _scatter_elements,
    _source_for,
    scatter_add_along,
    tensor_scatter_add,
    tensor_scatter_div,
    tensor_scatter_max,
    tensor_scatter_min,
    tensor_scatter_mul,
    tensor_scatter_sub,
    tensor_scatter_update,
)
from mycelia.engine.ops.arrays.shape import (
    as_ints,
    broadcast_to,
    constant,
    expand_as,
    expand_dims,
    positive_axis,
    reshape,
    squeeze,
    view_as,
)
from mycelia.engine.tensors.attach import attach


def _one_of(axis, dim, default=0):
    """The axis, under either of its names."""
    return dim if dim is not None else axis if axis is not None else default


def _sizes(values, name):
    """Ints given one by one or as one tuple."""
    return as_ints(values[0] if len(values) == 1 else values, name)


# ------------------------------------------------------------------------------------------------ shapes


def _reshape(self, *shape):
    """The same elements under another shape; one size may be -1."""
    return reshape(self, _sizes(shape, "shape"))


def _view(self, *shape):
    """The same elements under another shape, or (one dtype) the same bytes as elements of that dtype."""
    if len(shape) == 1 and isinstance(shape[0], dtypes.DType):
        return _reinterpreted(self, shape[0])
    return reshape(self, _sizes(shape, "shape"))


def _reinterpreted(x, dtype):
    row = (x.shape[-1] if x.ndim else 1) * x.dtype.itemsize
    if row % dtype.itemsize or (not x.ndim and dtype.itemsize != x.dtype.itemsize):
        raise errors.value_error(
            f"For 'view', {row} bytes of the last axis of {x.shape} are no whole number of {dtype.name}"
        )
    bits = x._bits().reshape(-1).view(dtype.np)
    return _C.from_array(bits.reshape((*x.shape[:-1], row // dtype.itemsize) if x.ndim else ()), dtype, True)


def _transpose(self, *axes, dim0=None, dim1=None):
    """All axes in reverse, in the order `axes`, or (two ints) two axes exchanged."""
    if dim0 is not None:
        return swapaxes(self, dim0, dim1 if dim1 is not None else axes[0])
    if not axes or axes == (None,):
        return transpose(self, tuple(range(self.ndim))[::-1])
    if len(axes) == 2:
        return swapaxes(self, *axes)
    return transpose(self, _sizes(axes, "axes"))


def _permute(self, *axis):
    """The axes in the order `axis`."""
    return transpose(self, _sizes(axis, "axis"))


def _squeeze(self, *axis):
    """Without the axes of size 1, all of them or those named."""
    return squeeze(self, _sizes(axis, "axis") if axis and axis != (None,) else None)


def _flatten(self, *args, order="C", start_dim=None, end_dim=None):
    """``flatten(start_dim=0, end_dim=-1)`` or ``flatten(order, *, start_dim, end_dim)``: the axes between
    merged into one."""
    if args and isinstance(args[0], str):
        order, *args = args
    first, last = (*args, *(None, -1)[len(args) :]) if len(args) < 2 else args
    first = first if start_dim is None else start_dim
    return flatten(self, order, start_dim=first or 0, end_dim=last if end_dim is None else end_dim)


def _broadcast_to(self, *shape):
    """Repeated along axes of size 1 up to `shape`; -1 keeps a size."""
    return broadcast_to(self, _sizes(shape, "shape"))


def _repeat(self, *repeats):
    """The whole tensor repeated along each axis."""
    repeats = _sizes(repeats, "repeats")
    if len(repeats) < self.ndim:
        raise errors.value_error(
            f"For 'repeat', {len(repeats)} numbers are given for a tensor of {self.ndim} axes"
        )
    return tile(self, repeats)


def _repeat_interleave(self, repeats, axis=None, *, dim=None, output_size=None):
    """Each element repeated along an axis, `repeats` times or as often as each entry says."""
    del output_size  # it follows from the repeats
    return repeat_interleave(self, repeats, _one_of(axis, dim, None))


def _flip(self, *dims):
    """The elements along `dims` in reverse order."""
    return flip(self, _sizes(dims, "dims"))


def _split_method(self, split_size_or_sections=None, axis=0, *, split_size=None, dim=None):
    """The pieces of a given size, or of given sizes, along an axis."""
    size = split_size if split_size_or_sections is None else split_size_or_sections
    return split(self, size, _one_of(axis, dim))


def _chunk(self, chunks, axis=0, *, dim=None):
    """At most `chunks` pieces of one size along an axis."""
    return chunk(self, chunks, _one_of(axis, dim))


def _unbind(self, dim=0):
    """The slices along an axis."""
    return unstack(self, dim)


def _unflatten(self, dim, sizes):
    """Axis `dim` replaced by axes of the given sizes."""
    at = positive_axis(dim, self.ndim, "dim")
    return reshape(self, (*self.shape[:at], *sizes, *self.shape[at + 1 :]))


# ------------------------------------------------------------------------------------------------- index


def _gather(self, *args, **kwargs):
    """Slices along `axis` at ``input_indices`` (with `batch_dims`),
    or ``gather(dim, index)``: elements along `dim`.
    """
    names = ("dim", "index") if isinstance(args[0] if args else kwargs.get("dim"), int) else ()
    if names or "index" in kwargs:
        given = dict(zip(("dim", "index"), args)) | kwargs
        return _gathering.gather_d(self, given["dim"], given["index"])
    given = dict(zip(("input_indices", "axis", "batch_dims"), args)) | kwargs
    return _gathering.gather(self, given["input_indices"], given["axis"], given.get("batch_dims", 0))


def _index_select(self, axis=None, index=None, *, dim=None):
    """The slices along an axis at the positions `index`."""
    return _gathering.index_select(self, _one_of(axis, dim), index)


def _select(self, *args, **kwargs):
    """``select(dim, index)``: one slice; ``select(condition, y)``:
    this tensor where the condition is true, else y.
    """
    given = dict(zip(("dim", "index"), args)) | kwargs
    condition = given.get("condition", given.get("dim"))
    if isinstance(condition, _C.Tensor) and condition.dtype.is_bool:
        return _masks.where(condition, self, given.get("y", given.get("index")))
    axis = positive_axis(given.get("dim", given.get("axis")), self.ndim, "dim")
    return self[(slice(None),) * axis + (given["index"],)]


def _where(self, condition, y):
    """This tensor where `condition` is true, `y` elsewhere."""
    return _masks.where(condition, self, y)


def _take(self, indices=None, axis=None, mode="clip", *, index=None):
    """The elements (without `axis`: of the flattened tensor) at `indices`, which are brought into range.

    `mode` "clip": to the nearest end; "wrap": around; "raise": IndexError for a position out of range.
    """
    indices = index if indices is None else indices
    if not isinstance(indices, _C.Tensor):
        indices = constant(np.asarray(indices))
    source = reshape(self, (-1,)) if axis is None else self
    axis = 0 if axis is None else axis
    n = source.shape[axis]
    if mode == "clip":
        indices = indices.clip(0, n - 1)
    elif mode == "wrap":
        indices = indices % n
    elif mode != "raise":
        raise errors.value_error(f"For 'take', mode must be 'clip', 'wrap' or 'raise', but got {mode!r}")
    return _gathering.gather(source, indices, axis)


def _diagonal(self, offset=0, axis1=0, axis2=1, *, dim1=None, dim2=None):
    """The diagonal of the planes of two axes, as the last axis."""
    return _triangles.diagonal(self, offset, _one_of(axis1, dim1), _one_of(axis2, dim2))


def _diag(self, diagonal=None):
    """The tensor on the diagonal of one of twice its rank; with `diagonal`:
    a matrix from a vector or the reverse.
    """
    if diagonal is None:
        return _triangles.diag(self)
    return _triangles.diag_embed(self, diagonal) if self.ndim == 1 else _triangles.diagonal(self, diagonal)


def _fill(self, value):
    """A tensor of this shape and dtype with `value` everywhere."""
    return create.full_like(self, value)


def _assign_value(self, value):
    """Become the tensor `value`, of any shape and dtype; returns this one."""
    value = value if isinstance(value, _C.Tensor) else constant(np.asarray(value))
    return self._assign(value)


def _in_place(function):
    def method(self, *args, **kwargs):
        return self._assign(function(self, *args, **kwargs))

    method.__doc__ = f"{function.__name__.strip('_')} in place; returns this tensor."
    method.__wrapped__ = function  # its parameters
    return method


def _itemset(self, *args):
    """A copy with one element, named by its position (none: the only one), replaced."""
    *place, value = args
    result = reshape(self, self.shape)  # shares memory until it is written
    if not place and self.size != 1:
        raise errors.index_error(f"For 'itemset', a position is needed for a tensor of {self.size} elements")
    if len(place) == 1 and not isinstance(place[0], tuple):
        flat = reshape(result, (-1,))
        flat[place[0]] = value
        return reshape(flat, self.shape)
    result[place[0] if place and isinstance(place[0], tuple) else tuple(place) or Ellipsis] = value
    return result


# ----------------------------------------------------------------------------------------------- scatter


def _scatter(self, *args, **kwargs):
    """Elements of `src` written along an axis: ``scatter(dim, index, src)``."""
    given = dict(zip(("dim", "index", "src"), args)) | kwargs
    axis = given.get("dim", given.get("axis"))
    src = given.get("src", given.get("value"))
    how = {None: "update", "none": "update", "add": "add", "multiply": "mul"}[given.get("reduce")]
    source = _source_for(self, given["index"], src)
    return _scatter_elements(self, given["index"], source, axis, how)


def _scatter_add(self, *args, **kwargs):
    """``scatter_add(dim, index, src)``: elements added along an axis; ``scatter_add(indices, updates)``:
    slices added."""
    if isinstance(args[0] if args else kwargs.get("dim"), int):
        given = dict(zip(("dim", "index", "src"), args)) | kwargs
        return scatter_add_along(self, given["dim"], given["index"], given["src"])
    given = dict(zip(("indices", "updates"), args)) | kwargs
    return tensor_scatter_add(self, given["indices"], given["updates"])


def _add_rows(self, *args, **kwargs):
    """``index_add(indices, y, axis)`` or ``index_add(dim, index, source, alpha=1)``:
    slices added along an axis.
    """
    if isinstance(args[0] if args else kwargs.get("dim"), int):
        given = dict(zip(("dim", "index", "source"), args)) | kwargs
        source = given["source"] if given.get("alpha", 1) == 1 else given["source"] * given["alpha"]
        return _index_add(self, given["index"], _as_updates(self, source), given["dim"])
    given = dict(zip(("indices", "y", "axis"), args)) | kwargs
    return _index_add(self, given["indices"], _as_updates(self, given["y"]), given["axis"])


# -------------------------------------------------------------------------------------------------- order


def _sort(self, axis=-1, descending=False, *, dim=None, stable=False):
    """Values in order along an axis, and the positions they had; always stable."""
    del stable  # sorting always is
    return order.sort(self, _one_of(axis, dim, -1), descending)


def _argsort(self, axis=-1, descending=False, *, dim=None, stable=False):
    """The positions that put an axis in order; always stable."""
    del stable  # sorting always is
    return order.argsort(self, _one_of(axis, dim, -1), descending)


def _searchsorted(self, v, side="left", sorter=None):
    """Where the values `v` would be inserted into this ascending vector."""
    return order.searchsorted(self, v, side=side, sorter=sorter)


# --------------------------------------------------------------------------------------------- creation


def _new_full(self, size, fill_value, *, dtype=None):
    """A tensor of shape `size` with `fill_value` everywhere, of this tensor's dtype by default."""
    return create.full(size, fill_value, dtype=dtype or self.dtype)


def _new_zeros(self, size, dtype=None):
    """Zeros of shape `size`, of this tensor's dtype by default."""
    return create.zeros(size, dtype or self.dtype)


def _new_ones(self, size, dtype=None):
    """Ones of shape `size`, of this tensor's dtype by default."""
    return create.ones(size, dtype or self.dtype)


@ignored.arguments(device="the device target says where it lies")
def _new_empty(self, size, *, dtype=None, device=None):
    """A tensor of shape `size` with undefined content, of this tensor's dtype by default."""
    return create.empty(size, dtype=dtype or self.dtype)


_METHODS = {
    "T": property(_transpose), "itemset": _itemset,
    "reshape": _reshape, "view": _view, "view_as": view_as, "reshape_as": view_as, "transpose": _transpose,
    "permute": _permute, "squeeze": _squeeze, "flatten": _flatten, "ravel": ravel, "expand_dims": expand_dims,
    "unsqueeze": expand_dims, "broadcast_to": _broadcast_to, "expand": _broadcast_to, "expand_as": expand_as,
    "swapaxes": swapaxes, "swapdims": swapaxes, "movedim": movedim, "moveaxis": movedim, "t": t, "tile": tile,
    "repeat": _repeat, "repeat_interleave": _repeat_interleave, "repeat_elements": repeat_elements,
    "flip": _flip, "reverse": flip, "fliplr": fliplr, "flipud": flipud, "roll": roll, "rot90": rot90,
    "split": _split_method, "chunk": _chunk, "tensor_split": tensor_split, "unbind": _unbind,
    "unstack": unstack, "unflatten": _unflatten, "pad": pad, "gather": _gather,
    "gather_elements": _gathering.gather_elements, "gather_d": _gathering.gather_d,
    "index_select": _index_select, "select": _select, "where": _where,
    "take": _take, "narrow": _slicing.narrow,
    "masked_fill": _masks.masked_fill, "nonzero": _masks.nonzero, "argwhere": _masks.argwhere,
    "diagonal": _diagonal, "diag": _diag, "diagflat": _triangles.diagflat,
    "diag_embed": _triangles.diag_embed, "select_scatter": _slicing.select_scatter,
    "slice_scatter": _slicing.slice_scatter,
    "diagonal_scatter": _triangles.diagonal_scatter, "fill": _fill, "fills": create.fills,
    "assign_value": _assign_value, "scatter": _scatter, "scatter_": _in_place(_scatter),
    "scatter_add": _scatter_add, "index_add": _add_rows, "index_fill": index_fill, "index_copy": index_copy,
    "index_put": index_put, "index_add_": _in_place(_add_rows), "index_put_": _in_place(index_put),
    "masked_fill_": _in_place(_masks.masked_fill), "fill_": _in_place(_fill),
    "inplace_update": inplace_update, "scatter_sub": tensor_scatter_sub, "scatter_mul": tensor_scatter_mul,
    "scatter_div": tensor_scatter_div, "scatter_max": tensor_scatter_max, "scatter_min": tensor_scatter_min,
    "tensor_scatter_add": tensor_scatter_add, "tensor_scatter_update": tensor_scatter_update, "sort": _sort,
    "argsort": _argsort, "topk": order.topk, "kthvalue": order.kthvalue, "msort": order.msort,
    "searchsorted": _searchsorted, "unique": order.unique, "unique_consecutive": order.unique_consecutive,
    "new_full": _new_full, "new_zeros": _new_zeros, "new_ones": _new_ones, "new_empty": _new_empty,
}  # fmt: skip

for _name, _function in _METHODS.items():
    attach(_name, _function)

__all__ = []
