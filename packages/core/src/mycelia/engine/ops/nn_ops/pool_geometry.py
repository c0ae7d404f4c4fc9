"""Windows of poolings: attributes, sizes, elements; images with the channels in front or last."""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.sizes import is_open
from mycelia.engine.ops.arrays import axes as _axes
from mycelia.engine.ops.nn_ops import conv_geometry as _conv_geometry


def _attributes(rank, kernel, stride, pad, dilation):
    """The list attributes, each with one entry a spatial dimension (pads: two), checked."""
    kernel, stride, pad, dilation = _conv_geometry.full_attributes(rank, kernel, stride, pad, dilation)
    for d in range(rank):
        span = (kernel[d] - 1) * dilation[d] + 1
        if any(not is_open(n) and n >= span for n in (pad[d], pad[rank + d])):
            raise errors.value_error(
                f"padding {pad} must be smaller than the window {span} of spatial dimension {d}"
            )
    return kernel, stride, pad, dilation


def _positions(size, kernel, stride, pad, dilation, ceil):
    """Windows in each dimension; -1 where the size is unknown.

    With `ceil` a window may begin inside the data or the padding before it and end behind everything.
    """
    rank, out = len(kernel), []
    for d, n in enumerate(size):
        span = (kernel[d] - 1) * dilation[d] + 1
        rest = n + pad[d] + pad[rank + d] - span
        if n >= 0 and rest < 0:
            raise errors.value_error(
                f"a window of {span} does not fit the padded size {rest + span} of spatial dimension {d}"
            )
        count = (rest + (stride[d] - 1 if ceil else 0)) // stride[d] + 1
        if ceil and (count - 1) * stride[d] >= n + pad[d]:
            count -= 1
        out.append(-1 if n < 0 else count)
    return tuple(out)


def _split_shape(shape, data_format):
    """Batch, channels and spatial extents of a shape."""
    if len(shape) < 3:
        raise errors.value_error(f"x must have 1 to 3 spatial dimensions, got shape {shape}")
    return (shape[0], shape[1], shape[2:]) if data_format == "NCHW" else (shape[0], shape[-1], shape[1:-1])


def _shaped(batch, channels, size, data_format):
    """The shape of batch, channels and spatial extents, see `_split_shape`."""
    return (batch, channels, *size) if data_format == "NCHW" else (batch, *size, channels)


def _np_first(x, data_format):
    return x if data_format == "NCHW" else np.moveaxis(x, -1, 1)


def _np_restored(y, data_format):
    return y if data_format == "NCHW" else np.ascontiguousarray(np.moveaxis(y, 1, -1))


def _turned(x, data_format):
    """A tensor with channels first."""
    return x if data_format == "NCHW" else _axes.transpose(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))


def _restored(y, data_format):
    """Undoes `_turned`."""
    return y if data_format == "NCHW" else _axes.transpose(y, (0, *range(2, y.ndim), 1))


def _check_size(size, rank, data=()):
    if 0 in data and 0 not in size:
        raise errors.value_error(f"windows of nothing: the spatial extents are {tuple(data)}")
    if not 1 <= rank <= 3 or len(size) != rank or min(size) < 0:
        raise errors.value_error(
            f"size must have {rank} entries of 0 or more for {rank} spatial dimensions, got {size}"
        )


def _np_taps(size, kernel, stride, pad, dilation, ceil):
    """For each dimension, source index of (position, tap)."""
    positions = _positions(size, kernel, stride, pad, dilation, ceil)
    return [
        np.arange(positions[d])[:, None] * stride[d] - pad[d] + np.arange(kernel[d]) * dilation[d]
        for d in range(len(size))
    ]
