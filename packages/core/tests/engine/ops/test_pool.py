"""Public pooling functions: sizes, what a mean counts, indices and messages as MindSpore 2.10 has them."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops


def ramp(*shape, start=0):
    return ms.Tensor(np.arange(start, start + np.prod(shape), dtype=np.float32).reshape(shape))


def check(result, want):
    np.testing.assert_allclose(result.asnumpy(), np.array(want), rtol=1e-6)


@pytest.mark.parametrize(
    "arguments, shape",
    [
        ((2,), (4, 5)),
        ((3, 2), (4, 4)),
        ((3, 2, 1, 1, False, True), (5, 6)),
        (((3, 2), 2, 1), (5, 6)),
        ((3, 2, 1, 2), (4, 4)),
        ((3, 2, (1, 0)), (5, 4)),
    ],
)
def test_shape_of_max_pool2d(arguments, shape):
    assert ops.max_pool2d(ramp(2, 3, 9, 10), *arguments).shape == (2, 3, *shape)


def test_windows_of_ceil_mode_begin_inside():
    assert ops.max_pool2d(ramp(1, 1, 5, 5), 2, 2, 1, ceil_mode=True).shape == (1, 1, 3, 3)
    assert ops.max_pool2d(ramp(1, 1, 7, 7), 2, 3, 0, ceil_mode=True).shape == (1, 1, 3, 3)
    assert ops.max_pool3d(ramp(2, 3, 5, 6, 7), 3, 2, 1, ceil_mode=True).shape == (2, 3, 3, 4, 4)


# Values computed by MindSpore 2.10 on CPU.
def test_indices_name_the_first_of_equal_elements():
    y, index = ops.max_pool2d(ramp(1, 1, 4, 4) * 0, 2, 1, return_indices=True)
    check(y, np.zeros((1, 1, 3, 3)))
    check(index, [[[[0, 1, 2], [4, 5, 6], [8, 9, 10]]]])
    assert index.dtype == ms.int64


def test_nan_is_never_the_largest():
    for row in ([1, np.nan], [np.nan, 1]):
        x = ms.Tensor(np.array([[[row, [3, 2]]]], np.float32))
        y, index = ops.max_pool2d(x, 2, return_indices=True)
        assert (y.item(), index.item()) == (3, 2)
        assert ops.max_pool2d(x, 2).item() == 3


def test_gradient_goes_to_the_first_of_equal_elements():
    x = ms.Tensor(np.array([[[[1, 1, 2], [2, 0, 2], [0, 2, 1]]]], np.float32))
    gradient = ms.grad(lambda x: (ops.max_pool2d(x, 2, 1) * ramp(1, 1, 2, 2)).sum())(x)
    check(gradient, [[[[0, 0, 1], [2, 0, 3], [0, 0, 0]]]])


def test_gradient_flows_through_values_with_indices():
    x = ramp(1, 1, 4, 4)
    gradient = ms.grad(lambda x: (ops.max_pool2d(x, 2, 2, return_indices=True)[0] * 2.0).sum())(x)
    assert gradient.asnumpy().ravel().nonzero()[0].tolist() == [5, 7, 13, 15]


@pytest.mark.parametrize(
    "arguments, want",
    [
        ((3, 2), [1, 3, 5]),
        ((3, 2, 1), [1 / 3, 2, 4, 11 / 3]),
        ((3, 2, 1, False, False), [0.5, 2, 4, 5.5]),
        ((2, 2, 0, True), [0.5, 2.5, 4.5, 6]),
    ],
)
def test_avg_pool1d(arguments, want):
    check(ops.avg_pool1d(ramp(1, 1, 7), *arguments), [[want]])


@pytest.mark.parametrize(
    "arguments, want",
    [
        (((2, 3), 2), [[4, 6], [16, 18]]),
        ((3, 2, 1), [[14 / 9, 10 / 3, 14 / 3], [25 / 3, 14, 16], [86 / 9, 46 / 3, 50 / 3]]),
        ((3, 2, 1, False, False), [[3.5, 5, 7], [12.5, 14, 16], [21.5, 23, 25]]),
        ((2, 2, 0, True), [[3.5, 5.5, 7.5], [15.5, 17.5, 19.5], [24.5, 26.5, 28.5]]),
        (
            (3, 2, 1, True),
            [[14 / 9, 10 / 3, 14 / 3, 8 / 3], [25 / 3, 14, 16, 8.5], [86 / 9, 46 / 3, 50 / 3, 26 / 3]],
        ),
        ((2, 2, 0, True, True, 3), [[14 / 3, 22 / 3, 10], [62 / 3, 70 / 3, 26], [49 / 3, 53 / 3, 19]]),
        ((3, 2, (1, 0, 1, 1)), [[14 / 9, 10 / 3, 14 / 3], [25 / 3, 14, 16]]),
    ],
)
def test_avg_pool2d(arguments, want):
    check(ops.avg_pool2d(ramp(1, 1, 5, 6), *arguments), [[want]])


def test_avg_pool3d():
    y = ops.avg_pool3d(ramp(1, 1, 3, 4, 5), 2, 2, 0, True)
    check(y, [[[[[13, 15, 16.5], [23, 25, 26.5]], [[43, 45, 46.5], [53, 55, 56.5]]]]])
    y = ops.avg_pool3d(ramp(1, 1, 3, 4, 5), 3, 2, 1, False, False)
    check(y, [[[[[13, 14.5, 16], [20.5, 22, 23.5]], [[33, 34.5, 36], [40.5, 42, 43.5]]]]])


def test_gradient_of_windows_that_ceil_mode_cuts():
    gradient = ms.grad(lambda x: (ops.avg_pool2d(x, 2, 2, 0, True) * ramp(1, 1, 2, 2, start=1)).sum())(
        ramp(1, 1, 3, 3)
    )
    check(gradient, [[[[0.25, 0.25, 1], [0.25, 0.25, 1], [1.5, 1.5, 4]]]])


def test_adaptive_means():
    x = ramp(1, 1, 5, 6)
    check(ops.adaptive_avg_pool2d(x, 2), [[[[7, 10], [19, 22]]]])
    rows = [np.arange(3, 9), np.arange(12, 18), np.arange(21, 27)]
    check(ops.adaptive_avg_pool2d(x, (3, None)), [[rows]])
    assert ops.adaptive_avg_pool2d(ramp(2, 5, 6), 2).shape == (2, 2, 2)
    assert ops.adaptive_avg_pool3d(ramp(1, 1, 3, 4, 5), (2, None, 3)).shape == (1, 1, 2, 4, 3)
    check(ops.adaptive_avg_pool1d(ramp(1, 1, 6), 3), [[[0.5, 2.5, 4.5]]])


def test_adaptive_maxima_with_indices():
    y, index = ops.adaptive_max_pool2d(ramp(1, 1, 5, 6), (3, 4), True)
    want = [[[[7, 8, 10, 11], [19, 20, 22, 23], [25, 26, 28, 29]]]]
    check(y, want)
    check(index, want)
    y, index = ops.adaptive_max_pool3d(ramp(1, 1, 3, 4, 5), (2, 2, 3), True)
    check(index, [[[[[26, 28, 29], [36, 38, 39]], [[46, 48, 49], [56, 58, 59]]]]])
    assert index.dtype == ms.int32


def test_power_average_scales_cut_windows_up():
    check(ops.lp_pool1d(ramp(1, 1, 7), 2.0, 3, 2), [[[5**0.5, 29**0.5, 77**0.5]]])
    check(
        ops.lp_pool2d(ramp(1, 1, 5, 6), 1.0, 2, None, True), [[[[14, 22, 30], [62, 70, 78], [98, 106, 114]]]]
    )
    check(ops.lp_pool1d(ramp(1, 1, 5), 2, 2, 2, True), [[[1, 13**0.5, 32**0.5]]])


def test_unpooling():
    def index(*values):
        return ms.Tensor(np.array(values, np.int64))

    x = ms.Tensor(np.array([[2, 4]], np.float32))
    check(ops.max_unpool1d(x, index([1, 3]), 2), [[0, 2, 0, 4]])
    check(ops.max_unpool1d(x, index([1, 3]), 2, output_size=(5,)), [[0, 2, 0, 4, 0]])
    y = ops.max_unpool2d(ramp(1, 1, 2, 2, start=1), index([[[0, 2], [5, 7]]]), 3, 2, 1)
    check(y, [[[[1, 0, 2], [0, 0, 3], [0, 4, 0]]]])
    with pytest.raises(ValueError, match="'output_size' must be 2 sizes near"):
        ops.max_unpool2d(ramp(1, 1, 2, 2), index([[[0, 2], [5, 7]]]), 2, 2, 0, (8, 8))


def test_unpooling_inverts_pooling():
    x = ramp(2, 3, 4, 6)
    y, index = ops.max_pool2d(x, 2, return_indices=True)
    back = ops.max_unpool2d(y, index, 2)
    assert back.shape == x.shape
    check(ops.max_pool2d(back, 2), y.asnumpy())


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: ops.max_pool2d(x, 2, 2, 2), "'padding' must be at most half of 'kernel_size'"),
        (lambda x: ops.max_pool2d(x, 5), "a window of 5 does not fit the padded size 4"),
        (lambda x: ops.max_pool2d(x, 0), "'kernel_size' must be at least 1, got 0"),
        (lambda x: ops.max_pool2d(x, (2, 2, 2)), "'kernel_size' must be an int or a tuple of 2 ints"),
        (lambda x: ops.avg_pool2d(x, 3, 2, (1, 0)), "'padding' must be an int or a tuple of 4 ints"),
        (lambda x: ops.avg_pool2d(x, 2, 1, 2), "padding .* must be smaller than the window 2"),
        (lambda x: ops.avg_pool1d(x, 2), "must have rank 3"),
        (lambda x: ops.adaptive_avg_pool1d(ramp(1, 1, 4), 3), "must be divisible by output size 3, got 4"),
        (lambda x: ops.adaptive_avg_pool2d(x, (-1, 2)), "'output_size' must be at least 0"),
        (lambda x: ops.lp_pool2d(x, 0, 2), "'norm_type' must be a number other than 0"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(ramp(1, 1, 4, 4))
