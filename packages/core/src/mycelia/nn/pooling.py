"""Pooling layers. Layout NC... only; the batch dimension may be left out."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.engine.ops.nn_ops import adaptive_pool as _adaptive_pool
from mycelia.engine.ops.nn_ops import average_pool as _average_pool
from mycelia.engine.ops.nn_ops import max_unpool as _max_unpool
from mycelia.engine.ops.nn_ops import pool as _pool
from mycelia.engine.ops.nn_ops.conv_geometry import explicit_pads, spread
from mycelia.nn.cell import Cell


def batched(owner: str, rank: int, compute, *tensors):
    """`compute` of tensors [N, C, *spatial], or [C, *spatial], which get a batch dimension that results lose.

    `rank`: of the spatial dimensions.  Errors: MYC-SHAPE for another rank of the first tensor.
    """
    from mycelia.engine.ops.arrays.shape import expand_dims, squeeze

    first = tensors[0]
    if first.ndim == rank + 2:
        return compute(*tensors)
    if first.ndim != rank + 1:
        raise errors.shape_error(
            owner, f"the input must have rank {rank + 1} or {rank + 2}, but its shape is {list(first.shape)}"
        )
    result = compute(*(expand_dims(x, 0) for x in tensors))
    return tuple(squeeze(r, 0) for r in result) if isinstance(result, tuple) else squeeze(result, 0)


class _Pool(Cell):
    """Settings that max and average pooling share."""

    _rank = 2

    def __init__(self, kernel_size, stride, pad_mode, padding, dilation, ceil_mode):
        super().__init__()
        if not isinstance(pad_mode, str) or pad_mode.upper() not in ("VALID", "SAME", "PAD"):
            raise errors.one_of(
                pad_mode, ["valid", "same", "pad"], subject=type(self).__name__, what="pad_mode"
            )
        self.kernel_size, self.stride, self.pad_mode = kernel_size, stride, pad_mode.upper()
        self.padding, self.dilation, self.ceil_mode = padding, dilation, ceil_mode
        owner = type(self).__name__
        self._kernel = spread("kernel_size", kernel_size, self._rank, 1, owner)
        self._stride = spread("stride", stride, self._rank, 1, owner)
        self._dilation = spread("dilation", dilation, self._rank, 1, owner)

    def _check_format(self, data_format) -> None:
        if data_format != "NCHW":
            raise errors.error(
                errors.NotSupportedError,
                type(self).__name__,
                f"data_format {data_format!r}: only NCHW is computed",
            )

    def _pads(self, x) -> tuple[int, ...]:
        size = x.shape[-self._rank :]
        if self.pad_mode == "PAD":
            once = spread("padding", self.padding, self._rank, 0, type(self).__name__)
            return (*once, *once)
        return explicit_pads(
            type(self).__name__, self.pad_mode.lower(), 0, size, self._kernel, self._stride, self._dilation
        )

    def extend_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


class _MaxPool(_Pool):
    def __init__(
        self,
        kernel_size=1,
        stride=1,
        pad_mode="valid",
        padding=0,
        dilation=1,
        return_indices=False,
        ceil_mode=False,
    ):
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, ceil_mode)
        self.return_indices = return_indices

    def construct(self, x):
        def compute(x):
            return _pool.max_pool(
                x,
                self._kernel,
                self._stride,
                self._pads(x),
                self._dilation,
                self.ceil_mode,
                self.return_indices,
            )

        return batched(type(self).__name__, self._rank, compute, x)


class MaxPool1d(_MaxPool):
    """Largest value of each window. Shapes: [N, C, L] -> [N, C, L'];
    with `return_indices` also the positions.
    """

    _rank = 1


class MaxPool2d(_MaxPool):
    """Largest value of each window. Shapes: [N, C, H, W] -> [N, C, H', W'];
    with `return_indices` also the positions.
    """

    _rank = 2

    def __init__(
        self,
        kernel_size=1,
        stride=1,
        pad_mode="valid",
        padding=0,
        dilation=1,
        return_indices=False,
        ceil_mode=False,
        data_format="NCHW",
    ):
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode)
        self._check_format(data_format)


class MaxPool3d(_MaxPool):
    """Largest value of each window. Shapes: [N, C, D, H, W] -> [N, C, D', H', W'];
    with `return_indices` also positions.
    """

    _rank = 3


class _AvgPool(_Pool):
    def __init__(
        self,
        kernel_size=1,
        stride=1,
        pad_mode="valid",
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        super().__init__(kernel_size, stride, pad_mode, padding, 1, ceil_mode)
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def construct(self, x):
        # 'same' divides by the real elements of a window, as MindSpore's kernel does.
        include = self.count_include_pad and self.pad_mode != "SAME"

        def compute(x):
            return _average_pool.avg_pool(
                x, self._kernel, self._stride, self._pads(x), self.ceil_mode, include, self.divisor_override
            )

        return batched(type(self).__name__, self._rank, compute, x)


class AvgPool1d(_AvgPool):
    """Mean of each window. Shapes: [N, C, L] -> [N, C, L']."""

    _rank = 1

    def __init__(
        self, kernel_size=1, stride=1, pad_mode="valid", padding=0, ceil_mode=False, count_include_pad=True
    ):
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad)


class AvgPool2d(_AvgPool):
    """Mean of each window. Shapes: [N, C, H, W] -> [N, C, H', W']."""

    _rank = 2

    def __init__(
        self,
        kernel_size=1,
        stride=1,
        pad_mode="valid",
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
        data_format="NCHW",
    ):
        super().__init__(
            kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad, divisor_override
        )
        self._check_format(data_format)


class AvgPool3d(_AvgPool):
    """Mean of each window. Shapes: [N, C, D, H, W] -> [N, C, D', H', W']."""

    _rank = 3


def _adaptive(name: str, function, doc: str, indices: bool) -> type[Cell]:
    """A layer that pools to a given output size."""

    def __init__(self, output_size, return_indices=False):
        Cell.__init__(self)
        self.output_size = output_size
        self.return_indices = return_indices

    def without_indices(self, output_size):
        __init__(self, output_size)

    def construct(self, x):
        return (
            function(x, self.output_size, self.return_indices) if indices else function(x, self.output_size)
        )

    body = {
        "__init__": __init__ if indices else without_indices,
        "construct": construct,
        "__doc__": doc,
        "__module__": __name__,
    }
    return type(name, (Cell,), body)


AdaptiveAvgPool1d = _adaptive(
    "AdaptiveAvgPool1d", _adaptive_pool.adaptive_avg_pool1d, "Mean pooling to [N, C, output_size].", False
)
AdaptiveAvgPool2d = _adaptive(
    "AdaptiveAvgPool2d", _adaptive_pool.adaptive_avg_pool2d, "Mean pooling to [N, C, *output_size].", False
)
AdaptiveAvgPool3d = _adaptive(
    "AdaptiveAvgPool3d", _adaptive_pool.adaptive_avg_pool3d, "Mean pooling to [N, C, *output_size].", False
)
AdaptiveMaxPool1d = _adaptive(
    "AdaptiveMaxPool1d", _adaptive_pool.adaptive_max_pool1d, "Max pooling to [N, C, output_size].", False
)
AdaptiveMaxPool2d = _adaptive(
    "AdaptiveMaxPool2d", _adaptive_pool.adaptive_max_pool2d, "Max pooling to [N, C, *output_size].", True
)
AdaptiveMaxPool3d = _adaptive(
    "AdaptiveMaxPool3d", _adaptive_pool.adaptive_max_pool3d, "Max pooling to [N, C, *output_size].", True
)


class _LPPool(Cell):
    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = (
            norm_type,
            kernel_size,
            stride,
            ceil_mode,
        )


class LPPool1d(_LPPool):
    """``(sum |x|^p)^(1/p)`` of each window. Shapes: [N, C, L] -> [N, C, L']."""

    def construct(self, x):
        return _average_pool.lp_pool1d(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPool):
    """``(sum |x|^p)^(1/p)`` of each window. Shapes: [N, C, H, W] -> [N, C, H', W']."""

    def construct(self, x):
        return _average_pool.lp_pool2d(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class _MaxUnpool(Cell):
    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding


class MaxUnpool1d(_MaxUnpool):
    """The inverse of MaxPool1d: values go back to `indices`, zeros elsewhere."""

    def construct(self, x, indices, output_size=None):
        return _max_unpool.max_unpool1d(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpool):
    """The inverse of MaxPool2d: values go back to `indices`, zeros elsewhere."""

    def construct(self, x, indices, output_size=None):
        return _max_unpool.max_unpool2d(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpool):
    """The inverse of MaxPool3d: values go back to `indices`, zeros elsewhere."""

    def construct(self, x, indices, output_size=None):
        return _max_unpool.max_unpool3d(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class _FractionalMaxPool(Cell):
    """Settings that the two share; windows are placed at random."""

    def __init__(
        self,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices=False,
        _random_samples=None,
    ):
        super().__init__()
        self.kernel_size, self.output_size, self.output_ratio = kernel_size, output_size, output_ratio
        self.return_indices, self._random_samples = return_indices, _random_samples

    def _settings(self) -> tuple:
        return (
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest value in each of `output_size` windows (Graham 2015).

    Shapes: [N, C, H, W] -> [N, C, h, w].
    """

    def construct(self, input):
        from mycelia.engine.ops import fractional_max_pool2d

        return fractional_max_pool2d(input, *self._settings())


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest value in each of `output_size` windows. Shapes: [N, C, D, H, W] -> [N, C, d, h, w]."""

    def construct(self, input):
        from mycelia.engine.ops import fractional_max_pool3d

        return fractional_max_pool3d(input, *self._settings())
