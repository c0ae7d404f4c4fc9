"""Public convolution functions: pad modes, output sizes and messages as MindSpore 2.10 has them."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops
from mycelia.engine.ops.nn_ops.conv_functions import conv_transpose
from mycelia.engine.ops.nn_ops.conv_geometry import explicit_pads, same_pads


def ramp(*shape, start=0):
    return ms.Tensor(np.arange(start, start + np.prod(shape), dtype=np.float32).reshape(shape))


def check(result, want):
    np.testing.assert_allclose(result.asnumpy(), np.array(want, np.float32), rtol=1e-6)


def test_same_puts_the_smaller_half_of_the_padding_first():
    assert same_pads((4, 5), (2, 3), (2, 2), (1, 1)) == (0, 1, 0, 1)
    assert same_pads((4, 4), (2, 4), (1, 1), (1, 1)) == (0, 1, 1, 2)
    assert same_pads((5, -1), (3, 3), (1, 1), (2, 1)) == (2, 1, 2, 1)


def test_explicit_padding_counts_top_bottom_left_right():
    assert explicit_pads("f", "pad", (1, 2, 3, 0), (9, 9), (3, 3), (1, 1), (1, 1)) == (1, 3, 2, 0)
    assert explicit_pads("f", "pad", (1, 2), (9, 9), (3, 3), (1, 1), (1, 1)) == (1, 2, 1, 2)


# Values computed by MindSpore 2.10 on CPU.
def test_conv2d_same_with_even_kernel_and_stride():
    y = ops.conv2d(ramp(1, 1, 4, 5), ramp(1, 1, 2, 3), stride=2, pad_mode="same")
    check(y, [[[[52, 94, 64], [172, 244, 144]]]])


def test_conv2d_same_with_dilation():
    y = ops.conv2d(ramp(1, 1, 4, 5), ramp(1, 1, 2, 3), dilation=2, pad_mode="same")
    check(
        y,
        [[[[55, 64, 88, 50, 57], [104, 116, 158, 88, 96], [164, 176, 233, 128, 136], [34, 37, 40, 13, 14]]]],
    )


def test_conv2d_groups_padding_and_bias():
    bias = ms.Tensor(np.array([1, 2], np.float32))
    y = ops.conv2d(ramp(1, 2, 2, 3), ramp(2, 1, 2, 2), bias, pad_mode="pad", padding=(1, 0), groups=2)
    check(y, [[[[4, 9], [20, 26], [5, 6]], [[87, 100], [185, 207], [88, 97]]]])


def test_conv1d_and_conv3d():
    check(ops.conv1d(ramp(1, 1, 5), ramp(1, 1, 2), stride=2, pad_mode="same"), [[[1, 3, 0]]])
    y = ops.conv3d(ramp(1, 1, 2, 2, 3), ramp(1, 1, 1, 2, 2), pad_mode="pad", padding=(0, 1, 0))
    check(y, [[[[[3, 8], [19, 25], [4, 5]], [[33, 38], [55, 61], [10, 11]]]]])


@pytest.mark.parametrize(
    "pad_mode, stride, want",
    [
        ("same", 1, [[1, 4, 7], [14, 35, 38]]),
        (
            "same",
            2,
            [[0, 0, 1, 2, 5, 4], [0, 0, 4, 5, 14, 10], [3, 6, 13, 8, 17, 10], [12, 15, 34, 20, 44, 25]],
        ),
        ("valid", 1, [[0, 1, 4, 7, 6], [3, 14, 35, 38, 27], [12, 31, 58, 49, 30]]),
        ("pad", 1, [[1, 4, 7, 6], [14, 35, 38, 27]]),
        ("pad", 2, [[0, 1, 2, 5, 4, 6], [0, 4, 5, 14, 10, 12], [6, 13, 8, 17, 10, 15]]),
    ],
)
def test_transposed_convolution(pad_mode, stride, want):
    padding = (0, 1, 1, 0) if pad_mode == "pad" else 0
    y = conv_transpose(ramp(1, 1, 2, 3), ramp(1, 1, 2, 3, start=1), None, stride, pad_mode, padding)
    check(y, [[want]])


@pytest.mark.parametrize(
    "kernel, stride, pad_mode, more, size",
    [
        ((2, 2), 3, "valid", {}, (27, 30)),
        ((2, 2), 3, "same", {}, (27, 30)),
        ((3, 3), 2, "valid", dict(dilation=2), (21, 23)),
        ((3, 3), 2, "pad", dict(padding=1, output_padding=1), (18, 20)),
        ((3, 2), 2, "valid", {}, (19, 20)),
        ((3, 2), 3, "pad", dict(padding=1), (25, 27)),
    ],
)
def test_size_of_a_transposed_convolution(kernel, stride, pad_mode, more, size):
    y = conv_transpose(ramp(2, 4, 9, 10), ramp(4, 6, *kernel), None, stride, pad_mode, **more)
    assert y.shape == (2, 6, *size)


def test_transposed_convolution_in_three_dimensions():
    y = ops.conv3d_transpose(ramp(1, 1, 1, 2, 2), ramp(1, 1, 1, 2, 2), stride=(1, 2, 1))
    check(y, [[[[[0, 0, 1], [0, 2, 3], [0, 2, 3], [4, 12, 9]]]]])
    y = ops.conv3d_transpose(
        ramp(1, 1, 1, 2, 2), ramp(1, 1, 1, 2, 2), "pad", (0, 0, 1, 0, 0, 1), 2, output_padding=(0, 1, 0)
    )
    check(y, [[[[[0, 0, 2], [0, 2, 0], [4, 6, 6], [0, 0, 0]]]]])


def test_unfold_and_fold():
    columns = ops.unfold(ramp(1, 1, 3, 3), (2, 1), 1, (0, 1), (1, 2))
    check(columns, [[[0, 1, 0, 0, 4, 0], [0, 4, 0, 0, 7, 0]]])
    want = [[[[0, 5, 5], [10, 30, 20], [10, 25, 15]], [[16, 37, 21], [42, 94, 52], [26, 57, 31]]]]
    check(ops.fold(ramp(1, 2, 4, 4), ms.Tensor(np.array([3, 3], np.int32)), 2), want)
    check(ops.fold(ramp(1, 8, 4), (3, 3), 2), want)


def test_transposed_convolution_is_the_adjoint_of_the_convolution():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 4, 7, 6)), rng.normal(size=(6, 2, 3, 2))
    how = dict(stride=(2, 1), padding=(1, 0), dilation=(1, 2))
    forward = ops.conv2d(ms.Tensor(x), ms.Tensor(w), pad_mode="pad", groups=2, **how)
    y = rng.normal(size=forward.shape)
    backward = conv_transpose(ms.Tensor(y), ms.Tensor(w), pad_mode="pad", group=2, **how)
    assert backward.shape == x.shape
    np.testing.assert_allclose((forward.asnumpy() * y).sum(), (x * backward.asnumpy()).sum(), rtol=1e-5)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(padding=1), "'padding' must be 0 when 'pad_mode' is 'valid'"),
        (dict(pad_mode="foo"), "'pad_mode' must be 'valid', 'same' or 'pad', got 'foo'"),
        (dict(stride=0), "'stride' must be at least 1, got 0"),
        (dict(stride=(1, 2, 3)), r"'stride' must be an int or a tuple of 2 ints, got \(1, 2, 3\)"),
        (dict(dilation=4), "a window of 5 does not fit the padded size 3"),
        (dict(groups=2), "input channels 1 / group 2|divisible by group=2"),
        (dict(pad_mode="pad", padding=-1), "'padding' must be at least 0, got -1"),
        (dict(bias=ramp(2)), r"the bias must be \[1\]"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ops.conv2d(ramp(1, 1, 3, 3), ramp(1, 1, 2, 2), **arguments)


def test_stride_must_be_whole():
    with pytest.raises(TypeError, match="'stride' must be an int or 2 ints, got 1.5"):
        ops.conv2d(ramp(1, 1, 3, 3), ramp(1, 1, 2, 2), stride=1.5)


def test_ranks_and_channels_must_agree():
    with pytest.raises(ValueError, match="must have rank 4"):
        ops.conv2d(ramp(1, 3, 3), ramp(1, 1, 2, 2))
    with pytest.raises(
        ValueError, match="input channels 4 / group 1 must be the weight's channels per group 3"
    ):
        ops.conv2d(ramp(1, 4, 3, 3), ramp(2, 3, 2, 2))
