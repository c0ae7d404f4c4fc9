"""mint functions that arrange elements anew: shapes, joining, splitting, repeating."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.ops.arrays.shape import as_ints
from mycelia.faces.mint.signature_adapters import faces

_FACES = {
    "broadcast_to(input, shape)": ops.broadcast_to,
    "cat(tensors, dim=0)": ops.cat,
    "concat(tensors, dim=0)": ops.cat,
    "stack(tensors, dim=0)": ops.stack,
    "chunk(input, chunks, dim=0)": ops.chunk,
    "split(tensor, split_size_or_sections, dim=0)": ops.split,
    "flip(input, dims)": ops.flip,
    "permute(input, dims)": ops.permute,
    "transpose(input, dim0, dim1)": ops.swapaxes,
    "tile(input, dims)": ops.tile,
    "narrow(input, dim, start, length)": ops.narrow,
    "tril(input, diagonal=0)": ops.tril,
    "triu(input, diagonal=0)": ops.triu,
}
globals().update(faces(_FACES, __name__))


def reshape(input, *sizes, shape=None):
    """The same elements under another shape; one size may be -1.

    Errors: ValueError if the number of elements differs.
    """
    if shape is None:
        shape = sizes[0] if len(sizes) == 1 else sizes
    return ops.reshape(input, as_ints(shape, "shape"))


def flatten(input, start_dim=0, end_dim=-1):
    """The dimensions from `start_dim` to `end_dim` merged into one."""
    return ops.flatten(input, start_dim=start_dim, end_dim=end_dim)


def squeeze(input, dim=None):
    """Without the dimensions of size 1: all of them, or those of `dim` that have it.

    Shapes: [1, n, 1] -> [n].  Errors: ValueError for a dimension out of range.
    """
    if dim is None:
        return ops.squeeze(input)
    dims = tuple(as_ints(dim, "dim"))
    rank = input.ndim
    for d in dims:
        if not -max(rank, 1) <= d < max(rank, 1):
            raise errors.value_error("squeeze", f"dim must be in [{-rank}, {rank}), but got {d}")
    single = tuple(d for d in dims if rank and input.shape[d] == 1)
    return ops.squeeze(input, single) if single else ops.reshape(input, input.shape)


def diag(input, diagonal=0):
    """The `diagonal` of a matrix, or a matrix with the vector `input` on it.

    Shapes: [n] -> [n + |diagonal|, n + |diagonal|]; [n, m] -> [its length].
    Errors: ValueError for other ranks.
    """
    if input.ndim == 1:
        return ops.diag_embed(input, diagonal)
    if input.ndim != 2:
        raise errors.value_error("diag", f"input must have rank 1 or 2, but its shape is {list(input.shape)}")
    return ops.diagonal(input, diagonal)


def meshgrid(*tensors, indexing=None):
    """Grids of coordinates from vectors; `indexing` "ij" (the default) or "xy".

    Shapes: [n], [m] -> [n, m] twice, or [m, n] for "xy".
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    return ops.meshgrid(*tensors, indexing="ij" if indexing is None else indexing)


def repeat_interleave(input, repeats, dim=None, *, output_size=None):
    """Each element repeated along `dim` (without: of the flattened input), `repeats` times or as often as
    each entry says.

    Shapes: [.., n, ..] -> [.., sum(repeats), ..].
    Errors: ValueError if `output_size` is given and is not the size of the result.
    """
    result = ops.repeat_interleave(input, repeats, dim)
    if output_size is not None and result.shape[dim or 0] != output_size:
        raise errors.value_error(
            "repeat_interleave", f"output_size is {output_size}, but the result has {result.shape[dim or 0]}"
        )
    return result
