"""The choice among algorithms of a convolution."""

from __future__ import annotations

import pytest

from mycelia_backend_cpu import convolution

SAME = (1, 1, 1, 1)


def chosen(x, channels, kernel=(3, 3), **how):
    attrs = dict(stride=(1, 1), pad=SAME, dilation=(1, 1), group=1, strict=False) | how
    return convolution.choose_convolution(x, channels, kernel, **attrs)


def test_large_planes_of_many_channels_are_transformed():
    for x in ((1, 56, 56, 64), (1, 28, 28, 128), (1, 14, 14, 256), (32, 32, 32, 64)):
        assert chosen(x, x[3]).startswith("winograd")


def test_few_pixels_under_many_weights_are_direct_or_in_the_smallest_tiles():
    assert chosen((1, 7, 7, 512), 512) == "winograd2"  # 36 planes of weights would take longer to read
    assert chosen((1, 14, 14, 256), 256) == "winograd4"
    assert chosen((1, 4, 4, 512), 512) == "direct"


def test_weights_that_are_packed_in_every_run_count():
    assert chosen((3, 7, 7, 512), 512, constant=True).startswith("winograd")
    assert chosen((3, 7, 7, 512), 512, constant=False) == "direct"
    assert chosen((4, 56, 56, 64), 64, constant=False).startswith("winograd")


@pytest.mark.parametrize(
    "case",
    [
        dict(kernel=(1, 1), pad=(0, 0, 0, 0)),
        dict(kernel=(3, 1)),
        dict(stride=(2, 2)),
        dict(stride=(1, 2)),
        dict(dilation=(2, 2)),
        dict(group=2),
        dict(strict=True),
    ],
    ids=str,
)
def test_other_geometry_and_strict_accuracy_are_direct(case):
    assert chosen((1, 56, 56, 64), 64, **case) == "direct"


def test_one_channel_a_group_is_depthwise():
    assert chosen((1, 56, 56, 64), 64, group=64) == "depthwise"
    assert chosen((1, 56, 56, 64), 64, group=64, strict=True) == "depthwise"


def test_one_channel_alone_is_no_group_of_many():
    assert chosen((1, 1, 44098, 1), 1, kernel=(1, 256), stride=(1, 2), pad=(0, 0, 0, 0)) == "direct"


def test_unknown_and_empty_sizes_are_direct():
    for x in ((-1, 56, 56, 64), (1, -1, -1, 64), (0, 56, 56, 64), (1, 0, 5, 64), (1, 56, 56, 0)):
        assert chosen(x, 64) == "direct"


def test_taps_on_padding_cost_nothing():
    whole = convolution.cycles("direct", (1, 7, 7, 512), 512, (0, 0, 2, 2))
    padded = convolution.cycles("direct", (1, 7, 7, 512), 512, SAME)
    bare = convolution.cycles("direct", (1, 9, 9, 512), 512, (0, 0, 0, 0))
    assert padded < bare
    assert whole < bare
