"""Pooling of images and volumes, and its inverse."""

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.nn_ops import conv_geometry as _conv_geometry
from mycelia.engine.ops.nn_ops import max_unpool as _max_unpool
from mycelia.engine.ops.nn_ops import pool as _pool
from mycelia.engine.ops.nn_ops.average_pool import avg_pool
from mycelia.engine.ops.nn_ops.ratio_pool import _ratio_pool, _ratio_pool_cells
from mycelia.ops.primitives.checks import (  # fmt: skip
    Misfit,
    boolean,
    choice,
    dtype,
    integer,
    integers,
    natural,
    optional,
)
from mycelia.ops.primitives.conv_ops import extents, full, paddings
from mycelia.ops.primitives.define import primitive
from mycelia.ops.primitives.random_ops import next_key, own_stream

_pair, _triple = extents(2), extents(3)
_places = choice("VALID", "SAME", fold=True)
_padded = choice("VALID", "SAME", "PAD", fold=True)
_nchw = choice("NCHW")  # other layouts run on other targets only
_ncdhw = choice("NCDHW")


def _check_rank(owner, x, *ranks):
    if x.ndim not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise errors.value_error(
            owner, f"the input must have rank {wanted}, but its shape is {tuple(x.shape)}"
        )


def _check_floating(owner, x):
    if not x.dtype.is_floating:
        raise errors.type_error(owner, f"the input must have a floating dtype, but it is {x.dtype}")


def _pads(x, pad_mode, kernel, stride):
    if pad_mode == "VALID":
        return (0,) * (2 * len(kernel))
    return _conv_geometry.same_pads(x.shape[2:], kernel, stride, (1,) * len(kernel))


@primitive(shows={"kernel_size": full, "strides": full})
def MaxPool(
    x, *, kernel_size: _pair = 1, strides: _pair = 1, pad_mode: _places = "valid", data_format: _nchw = "NCHW"
):
    """Largest element of each window of images. Shapes: [N, C, H, W] -> [N, C, *positions]."""
    _check_rank("MaxPool", x, 4)
    _check_floating("MaxPool", x)
    return _pool.max_pool(x, kernel_size, strides, _pads(x, pad_mode, kernel_size, strides))


def _loose_pair(value):
    """An int, or a tuple of which the last two count."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value, value)
    if not isinstance(value, tuple):
        raise Misfit(TypeError if isinstance(value, list) else ValueError, "an int or a tuple of two ints")
    return tuple(value)[-2:]


@primitive
def AvgPool(
    x, *, kernel_size: _loose_pair = 1, strides: _loose_pair = 1,
    pad_mode: _padded = "VALID", data_format: choice("NCHW", "NHWC") = "NCHW",
):  # fmt: skip
    """Mean of each window of images, padding not counted. Shapes: [N, C, H, W] -> [N, C, *positions]."""
    _check_rank("AvgPool", x, 4)
    _check_floating("AvgPool", x)
    if pad_mode == "PAD" or data_format == "NHWC" or min(*kernel_size, *strides) < 1:
        raise errors.runtime_error(
            "AvgPool",
            "kernel and strides must be positive, pad_mode VALID or SAME and data_format NCHW, but they are "
            f"{kernel_size}, {strides}, {pad_mode} and {data_format}",
        )
    return avg_pool(x, kernel_size, strides, _pads(x, pad_mode, kernel_size, strides), False, False)


def _only_padded(name):
    """Check between constants: `name` is zero unless `pad_mode` is "PAD"."""

    def check(constants):
        if constants["pad_mode"] == "PAD":
            if min(constants[name]) < 0:
                raise errors.value_error(f"'{name}' must not be negative, but got {constants[name]}")
        elif any(constants[name]):
            raise errors.value_error(
                f"'{name}' must be zero when 'pad_mode' is not 'pad', but got {constants[name]} and "
                f"{constants['pad_mode']!r}"
            )

    return check


def _begins_ends(pads):
    """Begin and end of each dimension as all begins, then all ends."""
    return (*pads[0::2], *pads[1::2])


def _check_max_pool3d(constants):
    _only_padded("pad_list")(constants)
    if constants["ceil_mode"] is not None and constants["pad_mode"] != "PAD":
        raise errors.value_error(
            f"'ceil_mode' must be None when 'pad_mode' is {constants['pad_mode']!r}, but got "
            f"{constants['ceil_mode']}"
        )


@primitive(shows={"kernel_size": full, "strides": full, "ceil_mode": bool}, check=_check_max_pool3d)
def MaxPool3D(
    x, *, kernel_size: _triple = 1, strides: _triple = 1, pad_mode: _padded = "VALID",
    pad_list: paddings(3) = 0, ceil_mode: optional(boolean) = None, data_format: _ncdhw = "NCDHW",
):  # fmt: skip
    """Largest element of each window of volumes. Shapes: [N, C, D, H, W] -> [N, C, *positions]."""
    _check_rank("MaxPool3D", x, 5)
    pads = _begins_ends(pad_list) if pad_mode == "PAD" else _pads(x, pad_mode, kernel_size, strides)
    return _pool.max_pool(x, kernel_size, strides, pads, 1, bool(ceil_mode))


@primitive(shows={"kernel_size": full, "strides": full}, check=_only_padded("pad"))
def AvgPool3D(
    x, *, kernel_size: _triple = 1, strides: _triple = 1, pad_mode: _padded = "valid", pad: paddings(3) = 0,
    ceil_mode: boolean = False, count_include_pad: boolean = True, divisor_override: integer = 0,
    data_format: _ncdhw = "NCDHW",
):  # fmt: skip
    """Mean of each window of volumes. Shapes: [N, C, D, H, W] -> [N, C, *positions]."""
    _check_rank("AvgPool3D", x, 5)
    pads = _begins_ends(pad) if pad_mode == "PAD" else _pads(x, pad_mode, kernel_size, strides)
    return avg_pool(x, kernel_size, strides, pads, ceil_mode, count_include_pad, divisor_override)


# --------------------------------------------------------------------------------------------- adaptive


def _sizes(rank):
    """Check of an output size: an int or a tuple of ints, None where the extent is kept."""

    def checked(value):
        if isinstance(value, int) and not isinstance(value, bool):
            values = (value,) * rank
        elif isinstance(value, tuple):
            values = value
        else:
            raise Misfit(TypeError, f"an int or a tuple of {rank} ints")
        if any(v is not None and (isinstance(v, bool) or not isinstance(v, int)) for v in values):
            raise Misfit(TypeError, f"an int or a tuple of {rank} ints or None")
        if len(values) != rank or any(v is not None and v < 0 for v in values):
            raise Misfit(ValueError, f"an int >= 0 or a tuple of {rank} of them or None")
        return values

    return checked


@primitive
def AdaptiveAvgPool2D(x, *, output_size: _sizes(2)):
    """Mean of windows that cover an image evenly, see `ops.adaptive_avg_pool2d`."""
    return ops.adaptive_avg_pool2d(x, output_size)


@primitive
def AdaptiveAvgPool3D(x, *, output_size: _sizes(3)):
    """Mean of windows that cover a volume evenly, see `ops.adaptive_avg_pool3d`."""
    return ops.adaptive_avg_pool3d(x, output_size)


def _listed(value):
    if not isinstance(value, (tuple, list)):
        raise Misfit(TypeError, "a tuple of ints")
    return tuple(value)


@primitive
def AdaptiveMaxPool2D(input, *, output_size: _listed):
    """Largest element of windows that cover an image evenly, and its int64 index into the image."""
    return ops.adaptive_max_pool2d(input, output_size, True)


@primitive
def AdaptiveMaxPool3D(x, output_size):
    """Largest element of windows that cover a volume evenly, and its int32 index into the volume."""
    size = tuple(output_size.asnumpy().tolist()) if hasattr(output_size, "asnumpy") else tuple(output_size)
    return ops.adaptive_max_pool3d(x, size, True)


# --------------------------------------------------------------------------------------------- with indices


def _index_dtype(value):
    return choice(dtypes.int64, dtypes.int32)(dtype(value))


def _with_argmax(x, kernel, stride, pads, dilation, ceil, argmax_type):
    y, index = _pool.max_pool(x, kernel, stride, pads * 2, dilation, ceil, True)
    return y, index.astype(argmax_type)


def _check_half(constants):
    kernel, pads = constants["kernel_size"], constants["pads"]
    if any(2 * p > k for p, k in zip(pads, kernel, strict=True)):
        raise errors.value_error(f"'pads' must be at most half of 'kernel_size' {kernel}, but got {pads}")
    constants["strides"] = kernel if constants["strides"] is None else constants["strides"]


@primitive(check=_check_half)
def MaxPoolWithArgmaxV2(
    x, *, kernel_size: _pair, strides: optional(_pair) = None, pads: extents(2, least=0) = 0,
    dilation: _pair = (1, 1), ceil_mode: boolean = False, argmax_type: _index_dtype = dtypes.int64,
):  # fmt: skip
    """Largest element of each window of images and its index into the image.

    Shapes: [N, C, H, W] -> [N, C, *positions] twice.
    """
    _check_rank("MaxPoolWithArgmaxV2", x, 4)
    return _with_argmax(x, kernel_size, strides, pads, dilation, ceil_mode, argmax_type)


@primitive
def MaxPool3DWithArgmax(
    x, *, ksize: _triple, strides: _triple, pads: extents(3, least=0), dilation: _triple = (1, 1, 1),
    ceil_mode: boolean = False, data_format: _ncdhw = "NCDHW", argmax_type: _index_dtype = dtypes.int64,
):  # fmt: skip
    """Largest element of each window of volumes and its index into the volume.

    Shapes: [N, C, D, H, W] -> [N, C, *positions] twice.
    """
    _check_rank("MaxPool3DWithArgmax", x, 5)
    return _with_argmax(x, ksize, strides, pads, dilation, ceil_mode, argmax_type)


@primitive(shows={"kernel_size": full, "strides": full})
def MaxPoolWithArgmax(
    x, *, kernel_size: _pair = 1, strides: _pair = 1, pad_mode: _places = "valid", data_format: _nchw = "NCHW"
):
    """Largest element of each window of images and its int32 index into all channels of its example."""
    _check_rank("MaxPoolWithArgmax", x, 4)
    pads = _pads(x, pad_mode, kernel_size, strides)
    y, index = _pool.max_pool(x, kernel_size, strides, pads, 1, False, True)
    _, channels, height, width = x.shape
    planes = ops.reshape(ops.arange(channels, dtype=dtypes.int32), (-1, 1, 1)) * (height * width)
    return y, index.astype(dtypes.int32) + planes


def _unpooled(owner, rank, x, argmax, ksize, strides, pads, output_shape):
    _check_rank(owner, x, rank + 2)
    strides = tuple(s or k for s, k in zip(strides, ksize, strict=True))
    if output_shape:
        if len(output_shape) != rank + 2:
            raise errors.value_error(owner, f"'output_shape' must be {rank + 2} ints, but got {output_shape}")
        size = output_shape[2:]
    else:
        size = tuple(
            (n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[2:], strides, pads, ksize, strict=True)
        )
    return _max_unpool._max_unpool(x, argmax, size=size)


@primitive
def MaxUnpool2D(
    x, argmax, *, ksize: _pair, strides: extents(2, least=0) = 0, pads: extents(2, least=0) = 0,
    output_shape: integers = (), data_format: _nchw = "NCHW",
):  # fmt: skip
    """Elements put back to their places in images, zero elsewhere; `strides` 0 stands for `ksize`."""
    return _unpooled("MaxUnpool2D", 2, x, argmax, ksize, strides, pads, output_shape)


@primitive
def MaxUnpool3D(
    x, argmax, *, ksize: _triple, strides: extents(3, least=0) = 0, pads: extents(3, least=0) = 0,
    output_shape: integers = (), data_format: _ncdhw = "NCDHW",
):  # fmt: skip
    """Elements put back to their places in volumes, zero elsewhere; `strides` 0 stands for `ksize`."""
    return _unpooled("MaxUnpool3D", 3, x, argmax, ksize, strides, pads, output_shape)


# --------------------------------------------------------------------------------------------- fractional


@primitive
def FractionalMaxPoolWithFixedKsize(
    input_x, random_samples, *, ksize: _pair, output_shape: _pair, data_format: _nchw = "NCHW"
):
    """Max pooling by windows at random places; also the int64 places of the maxima in their planes."""
    return ops.fractional_max_pool2d(input_x, ksize, output_shape, None, True, random_samples)


@primitive
def FractionalMaxPool3DWithFixedKsize(
    x, random_samples, *, ksize: _triple, output_shape: _triple, data_format: _ncdhw = "NCDHW"
):
    """Max pooling of volumes by windows at random places; also the int64 places of the maxima."""
    return ops.fractional_max_pool3d(x, ksize, output_shape, None, True, random_samples)


def _ratios(value):
    if not isinstance(value, list):
        raise Misfit(TypeError, "a list of 4 floats")
    for one in value:
        if not isinstance(one, float):
            raise Misfit(TypeError, "a list of 4 floats")
    return value


def _by_ratio(kind, x, ratio, pseudo_random, overlapping, state):
    if len(ratio) != 4 or ratio[0] != 1.0 or ratio[3] != 1.0 or min(ratio) < 1.0:
        raise errors.value_error(f"pooling_ratio must be [1.0, rows, columns, 1.0] of 1 or more, got {ratio}")
    cells = _ratio_pool_cells(
        next_key(state), size=tuple(x.shape[1:3]), ratio=tuple(ratio[1:3]), pseudo_random=pseudo_random
    )
    return _ratio_pool(x, *cells, kind=kind, overlapping=overlapping), *cells


@primitive(state=own_stream)
def FractionalMaxPool(
    x, *, pooling_ratio: _ratios, pseudo_random: boolean = False, overlapping: boolean = False,
    deterministic: boolean = False, seed: natural = 0, seed2: natural = 0, state,
):  # fmt: skip
    """Largest element of random cells, and where the cells begin. Shapes: [N, H, W, C] -> [N, H', W', C]."""
    return _by_ratio("max", x, pooling_ratio, pseudo_random, overlapping, state)


@primitive(state=own_stream)
def FractionalAvgPool(
    x, *, pooling_ratio: _ratios, pseudo_random: boolean = False, overlapping: boolean = False,
    deterministic: boolean = False, seed: natural = 0, seed2: natural = 0, state,
):  # fmt: skip
    """Mean of random cells, and where the cells begin. Shapes: [N, H, W, C] -> [N, H', W', C]."""
    return _by_ratio("avg", x, pooling_ratio, pseudo_random, overlapping, state)
