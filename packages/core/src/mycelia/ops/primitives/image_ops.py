"""Images: resizing, sampling, colours, patches."""

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.ops.images import color as _color
from mycelia.engine.ops.images import resize as _resize
from mycelia.ops.primitives.checks import anything, boolean, choice, integers, real
from mycelia.ops.primitives.define import primitive, table

table(_color, {
    "AdjustHue": "adjust_hue", "AdjustSaturation": "adjust_saturation", "HSVToRGB": "hsv_to_rgb",
    "RGBToHSV": "rgb_to_hsv",
})  # fmt: skip


def _image(owner, x, rank=4):
    if x.ndim != rank:
        raise errors.value_error(owner, f"the input must have rank {rank}, but its shape is {tuple(x.shape)}")
    return x


@primitive
def ResizeBilinearV2(image, size, *, align_corners: anything = False, half_pixel_centers: anything = False):
    """Resizing by linear interpolation. Shapes: [N, C, H, W] -> [N, C, *size]."""
    where = _resize.placing("ResizeBilinearV2", align_corners, half_pixel_centers)
    return _resize.resize("ResizeBilinearV2", _image("ResizeBilinearV2", image), size, "linear", where)


@primitive
def ResizeNearestNeighbor(
    input_x, *, size: integers, align_corners: anything = False, half_pixel_centers: anything = False
):
    """Resizing by the nearest pixel; half_pixel_centers changes nothing. Shapes: [N, C, H, W]."""
    where = _resize.placing("ResizeNearestNeighbor", align_corners, False)
    x = _image("ResizeNearestNeighbor", input_x)
    return _resize.resize("ResizeNearestNeighbor", x, size, "nearest", where)


@primitive
def ResizeNearestNeighborV2(
    image, size, *, align_corners: anything = False, half_pixel_centers: anything = False
):
    """Resizing by the nearest pixel. Shapes: [N, C, H, W] -> [N, C, *size]."""
    where = _resize.placing("ResizeNearestNeighborV2", align_corners, half_pixel_centers)
    x = _image("ResizeNearestNeighborV2", image)
    return _resize.resize("ResizeNearestNeighborV2", x, size, "nearest", where)


@primitive
def ResizeBicubic(image, size, *, align_corners: anything = False, half_pixel_centers: anything = False):
    """Resizing by cubic interpolation. Shapes: [N, C, H, W] -> [N, C, *size]."""
    where = _resize.placing("ResizeBicubic", align_corners, half_pixel_centers)
    return _resize.resize("ResizeBicubic", _image("ResizeBicubic", image), size, "cubic", where)


@primitive
def ResizeLinear1D(
    x, size, *, coordinate_transformation_mode: choice("align_corners", "half_pixel") = "align_corners"
):
    """Resizing by linear interpolation. Shapes: [N, C, L] -> [N, C, *size]."""
    from mycelia.engine.base import dtypes

    x = _image("ResizeLinear1D", x, 3)
    wide = ops.cast(x, dtypes.float32) if x.dtype is dtypes.float16 else x
    return ops.cast(
        _resize.resize("ResizeLinear1D", wide, size, "linear", coordinate_transformation_mode), x.dtype
    )


@primitive
def ResizeArea(images, size, *, align_corners: boolean = False):
    """Resizing by means of what a pixel covers. Shapes: [N, H, W, C] -> float32 [N, *size, C]."""
    from mycelia.engine.base import dtypes

    x = ops.cast(_image("ResizeArea", images), dtypes.float32)
    rows, columns = size.asnumpy().tolist() if hasattr(size, "asnumpy") else size
    return _resize.mixed(
        x, _resize.area_matrix(x.shape[1], rows, align_corners),
        _resize.area_matrix(x.shape[2], columns, align_corners),
    )  # fmt: skip


@primitive
def ScaleAndTranslate(
    images, size, scale, translation,
    *, kernel_type: choice(*_resize.KERNELS) = "lanczos3", antialias: boolean = True,
):  # fmt: skip
    """Images magnified and moved. Shapes: [N, H, W, C], three tensors [2] -> float32 [N, *size, C]."""
    from mycelia.engine.base import dtypes

    x = ops.cast(_image("ScaleAndTranslate", images), dtypes.float32)
    sizes, scales, shifts = (t.asnumpy().tolist() for t in (size, scale, translation))
    matrices = (
        _resize.kernel_matrix(n, out, by, shift, kernel_type, antialias)
        for n, out, by, shift in zip(x.shape[1:3], sizes, scales, shifts, strict=True)
    )
    return _resize.mixed(x, *matrices)


def _upsampled(owner, x, output_size, scales, mode, align=None):
    if (output_size is None) == (scales is None):
        raise errors.value_error(owner, "either output_size or scales must be given")
    size = None if output_size is None else tuple(output_size)
    return ops.interpolate(
        _image(owner, x, 5), size, None if scales is None else tuple(scales), mode, align
    )  # fmt: skip


@primitive
def UpsampleNearest3D(x, output_size=None, scales=None):
    """Resizing of volumes by the nearest element. Shapes: [N, C, D, H, W] -> [N, C, *output_size]."""
    return _upsampled("UpsampleNearest3D", x, output_size, scales, "nearest")


@primitive
def UpsampleTrilinear3D(x, output_size=None, scales=None, *, align_corners: anything = False):
    """Resizing of volumes by linear interpolation. Shapes: [N, C, D, H, W] -> [N, C, *output_size]."""
    return _upsampled("UpsampleTrilinear3D", x, output_size, scales, "trilinear", bool(align_corners))


# ----------------------------------------------------------------------------------------- sampling


@primitive
def AffineGrid(theta, output_size, *, align_corners: boolean = False):
    """Places that affine maps send the pixels of an image to, see `ops.affine_grid`."""
    if hasattr(output_size, "asnumpy"):
        raise errors.type_error("AffineGrid", "output_size must be a tuple of int, but got a Tensor")
    return ops.affine_grid(theta, output_size, align_corners)


_interpolation = choice("bilinear", "nearest")
_border = choice("zeros", "border", "reflection")


@primitive
def GridSampler2D(
    input_x, grid,
    *, interpolation_mode: _interpolation = "bilinear", padding_mode: _border = "zeros",
    align_corners: anything = False,
):  # fmt: skip
    """Images read at places, see `ops.grid_sample`."""
    return ops.grid_sample(input_x, grid, interpolation_mode, padding_mode, bool(align_corners))


@primitive
def GridSampler3D(
    input_x, grid,
    *, interpolation_mode: _interpolation = "bilinear", padding_mode: _border = "zeros",
    align_corners: anything = False,
):  # fmt: skip
    """Volumes read at places, see `ops.grid_sample`."""
    return ops.grid_sample(input_x, grid, interpolation_mode, padding_mode, bool(align_corners))


@primitive
def CropAndResize(
    x, boxes, box_index, crop_size,
    *, method: choice("bilinear", "nearest", "bilinear_v2") = "bilinear", extrapolation_value: real = 0.0,
):  # fmt: skip
    """Boxes of images brought to one size, see `ops.crop_and_resize`."""
    return ops.crop_and_resize(x, boxes, box_index, crop_size, method, extrapolation_value)
