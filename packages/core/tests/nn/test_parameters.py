"""Convolution, normalization and pooling layers of nn and mint.nn check and make what they share alike."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mycelia import Tensor, errors, mint, nn

CONVOLUTIONS = [
    (nn.Conv1d, 1, False), (nn.Conv2d, 2, False), (nn.Conv3d, 3, False),
    (nn.Conv1dTranspose, 1, True), (nn.Conv2dTranspose, 2, True), (nn.Conv3dTranspose, 3, True),
    (mint.nn.Conv2d, 2, False), (mint.nn.Conv3d, 3, False), (mint.nn.ConvTranspose2d, 2, True),
]  # fmt: skip


def group_name(layer) -> str:
    return "groups" if layer.__module__.startswith("mycelia.mint") else "group"


def bias_name(layer) -> str:
    return "bias" if layer.__module__.startswith("mycelia.mint") else "has_bias"


@pytest.mark.parametrize("layer, rank, transposed", CONVOLUTIONS)
def test_convolutions_have_weights_of_one_layout_and_bounds(layer, rank, transposed):
    made = layer(4, 6, 3, **{group_name(layer): 2, bias_name(layer): True})
    first, second = (4, 3) if transposed else (6, 2)
    kernel = (1, 3) if rank == 1 else (3,) * rank
    assert made.weight.shape == (first, second, *kernel)
    assert made.bias.shape == (6,)
    bound = 1 / math.sqrt(second * 3**rank)
    for values in (made.weight.asnumpy(), made.bias.asnumpy()):
        assert bound / 3 < np.abs(values).max() <= bound


@pytest.mark.parametrize("layer, rank, transposed", CONVOLUTIONS)
def test_convolutions_refuse_the_same_channels(layer, rank, transposed):
    for name in ("in_channels", "out_channels", group_name(layer)):
        given = {"in_channels": 4, "out_channels": 4, name: True}
        with pytest.raises(TypeError, match=f"{name} must be an int, but got True"):
            layer(kernel_size=3, **given)
        with pytest.raises(ValueError, match=f"{name} must be positive, but got 0"):
            layer(kernel_size=3, **{**given, name: 0})
    with pytest.raises(ValueError, match=f"out_channels 5 must be divisible by {group_name(layer)} 2"):
        layer(4, 5, 3, **{group_name(layer): 2})


@pytest.mark.parametrize("rank", [2, 3])
def test_convolutions_of_both_faces_give_the_same_bits(rank):
    one = getattr(nn, f"Conv{rank}d")(3, 4, 3, 2, "pad", 1, has_bias=True)
    other = getattr(mint.nn, f"Conv{rank}d")(3, 4, 3, 2, 1)
    other.weight.set_data(one.weight)
    other.bias.set_data(one.bias)
    x = Tensor(np.random.default_rng(1).normal(size=(2, 3, *(7, 6, 5)[:rank])).astype(np.float32))
    assert one(x).asnumpy().tobytes() == other(x).asnumpy().tobytes()


@pytest.mark.parametrize("layer", [nn.BatchNorm2d, nn.InstanceNorm2d, mint.nn.BatchNorm2d])
def test_normalizations_refuse_the_same_features(layer):
    with pytest.raises(TypeError, match="num_features must be an int, but got 2.5"):
        layer(2.5)
    with pytest.raises(ValueError, match="num_features must be positive, but got 0"):
        layer(0)


@pytest.mark.parametrize("norm", [nn.GroupNorm, mint.nn.GroupNorm])
def test_group_norms_refuse_the_same_groups(norm):
    with pytest.raises(ValueError, match="num_channels 6 must be divisible by num_groups 4"):
        norm(4, 6)


POOLS = [
    nn.MaxPool2d(2),
    nn.AvgPool2d(2),
    mint.nn.AvgPool2d(2),
    lambda x: mint.nn.functional.max_pool2d(x, 2),
]


@pytest.mark.parametrize("pool", POOLS)
def test_pools_take_inputs_without_a_batch_and_refuse_other_ranks(pool):
    x = np.random.default_rng(2).normal(size=(3, 4, 4)).astype(np.float32)
    assert np.array_equal(pool(Tensor(x)).asnumpy(), pool(Tensor(x[None])).asnumpy()[0])
    with pytest.raises(errors.ShapeError, match="must have rank 3 or 4"):
        pool(Tensor(x[0]))
