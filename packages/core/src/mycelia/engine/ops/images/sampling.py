"""Images read at places between pixels: grid_sample, affine_grid, crop_and_resize, deformable convolution.

All are compositions: places become indices of a flattened image, weights do the rest, so gradients reach
images, places and weights. Source: Jaderberg et al. 2015; Dai et al. 2017; Zhu et al. 2019.
"""

import itertools

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ops.arrays.axes import swapaxes, transpose
from mycelia.engine.ops.arrays.gathering import gather, gather_d
from mycelia.engine.ops.arrays.masks import where
from mycelia.engine.ops.arrays.shape import broadcast_to, constant, expand_dims, reshape
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise import logic as _logic
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.elementwise.clipping import clamp
from mycelia.engine.ops.elementwise.rounding import floor, floor_mod, round
from mycelia.engine.ops.linalg.products import matmul
from mycelia.engine.ops.nn_ops.conv_functions import conv2d


def _inside(place, size):
    """1 where a whole-numbered place lies in [0, size), else 0."""
    inner = _logic.logical_and(_comparison.greater_equal(place, 0), _comparison.less(place, size))
    return cast(inner, place.dtype)


def _reflected(place, low, high):
    """`place` mirrored at both ends of [low, high] until it lies inside."""
    span = float(high - low)
    if span <= 0:
        return _math.mul(place, 0.0)
    away = floor_mod(_math.abs(_math.sub(place, low)), 2 * span)
    return _math.add(_math.sub(span, _math.abs(_math.sub(away, span))), low)


def _pixels(coordinate, size, align_corners):
    """Places in pixels from coordinates in [-1, 1]."""
    if align_corners:
        return _math.mul(_math.add(coordinate, 1.0), (size - 1) / 2)
    return _math.sub(_math.mul(_math.add(coordinate, 1.0), size / 2), 0.5)


def _bordered(place, size, padding_mode, align_corners):
    if padding_mode == "reflection":
        place = _reflected(place, 0, size - 1) if align_corners else _reflected(place, -0.5, size - 0.5)
    return place if padding_mode == "zeros" else clamp(place, 0.0, (size - 1) * 1.0)


def _at(x, places):
    """Values of ``x`` [n, c, pixels] at whole-numbered places, one tensor [n, k] an axis; 0 outside.

    `x`: (values, sizes of the axes). Shapes: -> [n, c, k].
    """
    values, sizes = x
    index, present = None, None
    for place, size in zip(places, sizes):
        inside = _inside(place, size)
        near = cast(clamp(place, 0.0, (size - 1) * 1.0), dtypes.int64)
        index = near if index is None else _math.add(_math.mul(index, size), near)
        present = inside if present is None else _math.mul(present, inside)
    shape = (*values.shape[:2], index.shape[-1])
    found = gather_d(values, 2, broadcast_to(expand_dims(index, 1), shape))
    return _math.mul(found, expand_dims(present, 1))


def _interpolated(x, places):
    """Linear interpolation of `x` (as for `_at`) at any places."""
    starts = [floor(p) for p in places]
    shares = [_math.sub(p, s) for p, s in zip(places, starts)]
    total = None
    for corner in itertools.product((0, 1), repeat=len(places)):
        weight = None
        for bit, share in zip(corner, shares):
            term = share if bit else _math.sub(1.0, share)
            weight = term if weight is None else _math.mul(weight, term)
        value = _at(x, [_math.add(s, float(b)) if b else s for s, b in zip(starts, corner)])
        value = _math.mul(value, expand_dims(weight, 1))
        total = value if total is None else _math.add(total, value)
    return total


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """`input` at the places `grid`, whose last axis is (x, y) or (x, y, z) in [-1, 1].

    `mode`: bilinear or nearest; `padding_mode`, outside: zeros, border, reflection; `align_corners`: -1 and
    1 are the centres of the outermost pixels instead of their outer edges.
    Shapes: [n, c, *sizes], [n, *out, 2 or 3] -> [n, c, *out].  dtypes: floating.
    Errors: ValueError for modes and shapes, TypeError for two dtypes.
    """
    rank = len(input.shape) - 2
    if input.dtype is not grid.dtype:
        raise errors.type_error(
            "For 'grid_sample', the input type must be same as that of the grid, but they are "
            f"{input.dtype} and {grid.dtype}"
        )
    if rank not in (2, 3) or len(grid.shape) != rank + 2 or grid.shape[-1] != rank:
        raise errors.value_error(
            "For 'grid_sample', 'input' must have rank 4 or 5 and 'grid' the same, ending in 2 or 3, but "
            "their shapes "
            f"are {input.shape} and {grid.shape}."
        )
    if input.shape[0] != grid.shape[0]:
        raise errors.value_error(
            "For 'grid_sample', 'input' and 'grid' must have the same batch, but their shapes are "
            f"{input.shape} and "
            f"{grid.shape}."
        )
    for name, value, allowed in (
        ("mode", mode, ("bilinear", "nearest")),
        ("padding_mode", padding_mode, ("zeros", "border", "reflection")),
    ):
        if value not in allowed:
            raise errors.value_error(
                f"For 'grid_sample', '{name}' must be one of {allowed}, but got {value!r}."
            )
    if align_corners is not None and not isinstance(align_corners, bool):
        raise errors.type_error(
            f"For 'grid_sample', 'align_corners' must be a bool, but got {align_corners!r}."
        )
    sizes, out = input.shape[2:], grid.shape[1:-1]
    columns = reshape(grid, (grid.shape[0], -1, rank))
    places = []
    for axis, size in enumerate(sizes):
        coordinate = columns[:, :, rank - 1 - axis]  # the grid names the last axis first
        place = _pixels(coordinate, size, align_corners)
        places.append(_bordered(place, size, padding_mode, align_corners))
    x = reshape(input, (*input.shape[:2], -1)), sizes
    found = _at(x, [round(p) for p in places]) if mode == "nearest" else _interpolated(x, places)
    return reshape(found, (*input.shape[:2], *out))


def affine_grid(theta, size, align_corners=False):
    """The places, for `grid_sample`, that an affine map sends the pixels of an image of `size` to.

    Shapes: theta [n, 2, 3] and size (n, c, h, w) -> [n, h, w, 2]; [n, 3, 4] and (n, c, d, h, w) -> [n, d, h,
    w, 3].
    dtypes: floating.  Errors: ValueError for other shapes.
    """
    rank = len(size) - 2
    if rank not in (2, 3) or tuple(theta.shape) != (size[0], rank, rank + 1):
        raise errors.value_error(
            "For 'affine_grid', 'theta' must have shape (n, 2, 3) or (n, 3, 4) for a size of 4 or 5 "
            "numbers, but got "
            f"shape {theta.shape} and size {size!r}."
        )
    axes = []
    for n in size[2:]:
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        axes.append(line if align_corners else line * (n - 1) / n)
    mesh = np.stack([*np.meshgrid(*axes, indexing="ij")][::-1] + [np.ones(size[2:])], -1)
    base = constant(mesh.reshape(1, -1, rank + 1), theta.dtype)
    found = matmul(broadcast_to(base, (size[0], *base.shape[1:])), swapaxes(theta, 1, 2))
    return reshape(found, (*(n if type(n) is SymInt else int(n) for n in (size[0], *size[2:])), rank))


def crop_and_resize(image, boxes, box_indices, crop_size, method="bilinear", extrapolation_value=0.0):
    """Parts of images, given by boxes (y1, x1, y2, x2) with 0 and 1 at the outermost pixels, brought to one
    size.

    `method`: bilinear, nearest, or bilinear_v2, which samples at the centres of equal cells of the box.
    Shapes: image [b, h, w, c], boxes [n, 4], box_indices [n] -> [n, *crop_size, c].  dtypes: real -> float32.
    Errors: ValueError for shapes, methods and indices out of range.
    """
    if method not in ("bilinear", "nearest", "bilinear_v2"):
        raise errors.value_error(
            f"For 'crop_and_resize', 'method' must be bilinear, nearest or bilinear_v2, but got {method!r}."
        )
    if len(image.shape) != 4 or len(boxes.shape) != 2 or boxes.shape[1] != 4:
        raise errors.value_error(
            f"For 'crop_and_resize', 'image' must have rank 4 and 'boxes' shape (n, 4), but their shapes are "
            f"{image.shape} and {boxes.shape}."
        )
    if tuple(box_indices.shape) != (boxes.shape[0],):
        raise errors.value_error(
            f"For 'crop_and_resize', 'box_indices' must have shape ({boxes.shape[0]},), but has shape "
            f"{box_indices.shape}."
        )
    batch, height, width, channels = image.shape
    rows, columns = (int(n) for n in crop_size)
    image = cast(image, dtypes.float32)

    def line(low, high, count, size):
        """Places [n, count] along one axis."""
        low, high = boxes[:, low : low + 1], boxes[:, high : high + 1]
        if method == "bilinear_v2":
            start = _math.mul(low, size * 1.0)
            extent = clamp(_math.add(_math.sub(_math.mul(high, size * 1.0), start), 1.0), 1.0)
            steps = constant(np.arange(count)[None] / count, dtypes.float32)
            return _math.add(start, _math.mul(extent, steps))
        if count == 1:
            return _math.mul(_math.add(low, high), (size - 1) / 2)
        scale = _math.true_div(_math.mul(_math.sub(high, low), (size - 1) * 1.0), float(count - 1))
        steps = constant(np.arange(count)[None], dtypes.float32)
        return _math.add(_math.mul(low, (size - 1) * 1.0), _math.mul(steps, scale))

    y, x = line(0, 2, rows, height), line(1, 3, columns, width)
    flat = reshape(image, (batch * height * width, channels))
    base = reshape(_math.mul(cast(box_indices, dtypes.int64), height * width), (-1, 1, 1))

    def pick(y, x):
        whole = [cast(clamp(p, 0.0, (n - 1) * 1.0), dtypes.int64) for p, n in ((y, height), (x, width))]
        index = _math.add(
            _math.add(base, _math.mul(expand_dims(whole[0], 2), width)), expand_dims(whole[1], 1)
        )
        return gather(flat, index, 0)

    if method == "nearest":
        found = pick(floor(_math.add(y, 0.5)), floor(_math.add(x, 0.5)))
    else:
        y0, x0 = floor(y), floor(x)
        share_y = reshape(_math.sub(y, y0), (*y.shape, 1, 1))
        share_x = reshape(_math.sub(x, x0), (x.shape[0], 1, x.shape[1], 1))
        y1, x1 = _math.add(y0, 1.0), _math.add(x0, 1.0)
        upper = _mixed(pick(y0, x0), pick(y0, x1), share_x)
        lower = _mixed(pick(y1, x0), pick(y1, x1), share_x)
        found = _mixed(upper, lower, share_y)

    def within(p, size):
        return _logic.logical_and(
            _comparison.greater_equal(p, 0.0), _comparison.less_equal(p, (size - 1) * 1.0)
        )

    inside = _logic.logical_and(expand_dims(within(y, height), 2), expand_dims(within(x, width), 1))
    return where(expand_dims(inside, -1), found, float(extrapolation_value))


def _mixed(a, b, share):
    return _math.add(a, _math.mul(_math.sub(b, a), share))


def deformable_offsets(
    owner, x, offsets, kernel_size, strides, padding, dilations, deformable_groups, modulated, positions=None
):  # fmt: skip
    """What the bent windows of `deformable_conv2d` read, each window as a block: [n, c, h' * kh, w' * kw].

    `positions`: rows and columns of windows where these are not all that fit.
    """
    kh, kw = kernel_size
    n, channels, height, width = x.shape
    top, bottom, left, right = padding
    (step_y, step_x), (spread_y, spread_x) = strides[2:], dilations[2:]
    rows = (height + top + bottom - spread_y * (kh - 1) - 1) // step_y + 1
    columns = (width + left + right - spread_x * (kw - 1) - 1) // step_x + 1
    rows, columns = positions or (rows, columns)
    parts = 3 if modulated else 2
    want = (n, parts * deformable_groups * kh * kw, rows, columns)
    if tuple(offsets.shape) != want or channels % deformable_groups:
        raise errors.value_error(
            f"For '{owner}', 'offsets' must have shape {want} and 'deformable_groups' divide "
            "the channels, "
            f"but they are {offsets.shape} and {deformable_groups} for {channels} channels."
        )
    pieces = reshape(offsets, (n, parts, deformable_groups, kh, kw, rows, columns))
    pieces = transpose(pieces, (1, 0, 2, 5, 3, 6, 4))  # [part, n, group, rows, kh, columns, kw]
    y = np.arange(rows)[:, None] * step_y - top + np.arange(kh) * spread_y
    x_place = np.arange(columns)[:, None] * step_x - left + np.arange(kw) * spread_x
    regular = [
        constant(y.reshape(1, 1, rows, kh, 1, 1), x.dtype),
        constant(x_place.reshape(1, 1, 1, 1, columns, kw), x.dtype),
    ]
    lead = n * deformable_groups
    places = [reshape(_math.add(pieces[1 - i], regular[i]), (lead, -1)) for i in range(2)]
    values = reshape(x, (lead, channels // deformable_groups, height * width))
    bent = _interpolated((values, (height, width)), places)
    if modulated:
        bent = _math.mul(bent, reshape(pieces[2], (lead, 1, -1)))
    return reshape(bent, (n, channels, rows * kh, columns * kw))


def deformable_conv2d(
    x, weight, offsets, kernel_size, strides, padding, bias=None, dilations=(1, 1, 1, 1), groups=1,
    deformable_groups=1, modulated=True,
):  # fmt: skip
    """Convolution whose windows are bent: each tap is read at its place plus an offset, times a mask.

    `padding`: (top, bottom, left, right); `strides`, `dilations`: (1, 1, h, w).
    Shapes: x [n, c, h, w], weight [o, c / groups, kh, kw], offsets [n, 3 * deformable_groups * kh * kw, h',
    w'], which holds all x, then all y, then all masks -> [n, o, h', w'].  dtypes: floating.  Errors:
    ValueError for other shapes.
    """
    how = (kernel_size, strides, padding, dilations, deformable_groups, modulated)
    bent = deformable_offsets("deformable_conv2d", x, offsets, *how)
    return conv2d(bent, weight, bias, tuple(kernel_size), "valid", 0, 1, groups)


__all__ = ["affine_grid", "crop_and_resize", "deformable_conv2d", "grid_sample"]
