"""Pooling of regions of interest by score maps that are sensitive to positions: channels for each cell.

Source: Dai et al. 2016, "R-FCN". They run on arrays, whose loops are over the regions and their cells.
"""

import math

import numpy as np

from mycelia.engine.autodiff.custom_rule import custom_vjp
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.control_flow.python_call import call_python
from mycelia.ops.primitives.checks import Misfit, positive, real
from mycelia.ops.primitives.define import primitive


def _scale(value):
    """A float above 0."""
    if not isinstance(value, float) or real(value) <= 0:
        raise Misfit(ValueError if isinstance(value, float) else TypeError, "a float above 0")
    return value


def _size(value):
    """Height and width as a tuple; one int stands for both."""
    if isinstance(value, int):
        value = (value, value)
    if not isinstance(value, tuple):
        raise Misfit(TypeError, "an int or a tuple of two ints")
    if len(value) != 2:
        raise Misfit(ValueError, "an int or a tuple of two ints")
    return tuple(map(positive, value))


def _cells(rois, scale, group, height, width):
    """For each cell of each region: its number, image, row and column in the region, and its window."""

    def edge(cell, extent, start, most):  # one rounding, as a fused multiply-add has
        return min(max(cell(np.float32(extent + start)), 0), most)

    for n, box in enumerate(rois.transpose(0, 2, 1).reshape(-1, 5).astype(np.float32)):
        left, top, right, bottom = (
            math.copysign(math.floor(abs(v) + 0.5), v) for v in (box[1:] * np.float32(scale)).tolist()
        )
        tall = float(np.float32(max(bottom - top, np.float32(0.1))) / np.float32(group))
        wide = float(np.float32(max(right - left, np.float32(0.1))) / np.float32(group))
        for i in range(group):
            rows = slice(
                edge(math.floor, i * tall, top, height), edge(math.ceil, (i + 1) * tall, top, height)
            )
            for j in range(group):
                columns = slice(
                    edge(math.floor, j * wide, left, width), edge(math.ceil, (j + 1) * wide, left, width)
                )
                if rows.stop > rows.start and columns.stop > columns.start:
                    yield n, int(box[0]), i, j, rows, columns


def _channels(i, j, group, output_dim):
    return (np.arange(output_dim) * group + i) * group + j


def _np_pool(features, rois, scale, group, output_dim):
    pooled = np.zeros((rois.shape[0] * rois.shape[2], output_dim, group, group), features.dtype)
    for n, image, i, j, rows, columns in _cells(rois, scale, group, *features.shape[2:]):
        window = features[image, _channels(i, j, group, output_dim), rows, columns]
        pooled[n, :, i, j] = window.mean((1, 2), dtype=np.result_type(window.dtype, np.float32))
    return pooled


def _np_pool_grad(dy, rois, shape, scale, group, output_dim):
    dx = np.zeros(shape, np.result_type(dy.dtype, np.float32))
    for n, image, i, j, rows, columns in _cells(rois, scale, group, *shape[2:]):
        area = (rows.stop - rows.start) * (columns.stop - columns.start)
        dx[image, _channels(i, j, group, output_dim), rows, columns] += (dy[n, :, i, j] / area)[:, None, None]
    return dx.astype(dy.dtype)


def _check_types(owner, **inputs):
    kinds = []
    for name, value in inputs.items():
        if not hasattr(value, "asnumpy"):
            raise errors.type_error(owner, f"{name} must be a Tensor, but got {type(value).__name__}")
        kinds.append(value.dtype)
    if not kinds[0].is_floating or kinds[0] is not kinds[1]:
        named = " and ".join(inputs)
        raise errors.type_error(
            owner, f"{named} must have the same floating dtype, but they are {' and '.join(map(str, kinds))}"
        )


def _check_rois(owner, rois):
    if rois.ndim != 3 or rois.shape[1] != 5:
        raise errors.runtime_error(
            owner, f"rois must have shape (batch, 5, number), but it is {tuple(rois.shape)}"
        )


def _grad(dy, rois, shape, scale, group, output_dim):
    wanted = (rois.shape[0] * rois.shape[2], output_dim, group, group)
    if tuple(dy.shape) != wanted:
        raise errors.runtime_error(
            "PSROIPoolingGrad", f"the gradient must have shape {wanted}, but it is {tuple(dy.shape)}"
        )

    def run(dy, rois):
        return _np_pool_grad(dy, rois, shape, scale, group, output_dim)

    return call_python(run, (dy, rois), ((dy.dtype, shape),))[0]


@primitive
def PSROIPooling(features, rois, *, spatial_scale: _scale, group_size: positive, output_dim: positive):
    """Means of the cells of regions, each over a group of channels of its own.

    Shapes: features [N, output_dim * group * group, H, W], rois [batch, 5, number] (image, left, top, right,
    bottom) -> [batch * number, output_dim, group, group].  dtypes: floating.
    """
    _check_types("PSROIPooling", features=features, rois=rois)
    _check_rois("PSROIPooling", rois)
    channels = output_dim * group_size * group_size
    if features.ndim != 4 or features.shape[1] != channels or group_size >= 128:
        raise errors.runtime_error(
            "PSROIPooling",
            f"features must have shape (N, {channels}, H, W) and group_size be below 128, but they are "
            f"{tuple(features.shape)} and {group_size}",
        )
    shape = (rois.shape[0] * rois.shape[2], output_dim, group_size, group_size)

    def run(features, rois):
        return _np_pool(features, rois, spatial_scale, group_size, output_dim)

    def pooled(features, rois):
        return call_python(run, (features, rois), ((features.dtype, shape),))[0]

    def rule(features, rois, out, ct):
        dx = _grad(ct, rois, tuple(features.shape), spatial_scale, group_size, output_dim)
        return dx, rois * 0

    return custom_vjp(pooled, rule)(features, rois)


@primitive(shows={"input_size": list})
def PSROIPoolingGrad(
    dy, rois, *, input_size: _size, spatial_scale: _scale, group_size: positive, output_dim: positive
):
    """Gradient of `PSROIPooling` for `features`, whose height and width are `input_size`."""
    _check_types("PSROIPoolingGrad", dy=dy, rois=rois)
    if dy.dtype is dtypes.float64:
        raise errors.type_error("PSROIPoolingGrad", "dy must be float16 or float32, but it is Float64")
    _check_rois("PSROIPoolingGrad", rois)
    shape = (rois.shape[0], output_dim * group_size * group_size, *input_size)
    return _grad(dy, rois, shape, spatial_scale, group_size, output_dim)
