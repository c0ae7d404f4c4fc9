"""Gradients of layers that are compositions, against finite differences; and the same numbers compiled."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn


def t(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


LAYERS = {
    "Conv1d": (lambda: nn.Conv1d(2, 3, 3, has_bias=True), (1, 2, 5)),
    "Conv1dTranspose": (lambda: nn.Conv1dTranspose(2, 3, 3, 2), (1, 2, 4)),
    "Conv2dTranspose": (
        lambda: nn.Conv2dTranspose(2, 4, 3, 2, "pad", 1, output_padding=1, group=2, has_bias=True),
        (1, 2, 3, 3),
    ),
    "Upsample nearest": (lambda: nn.Upsample(size=(5, 3)), (1, 2, 3, 4)),
    "Upsample bilinear": (lambda: nn.Upsample(size=(5, 3), mode="bilinear"), (1, 2, 3, 4)),
    "Upsample bicubic": (lambda: nn.Upsample(size=(5, 3), mode="bicubic"), (1, 2, 3, 4)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), (1, 4, 2, 3)),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), (1, 1, 2, 4)),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), (1, 4, 2, 2)),
    "CentralCrop": (lambda: nn.CentralCrop(0.5), (1, 4, 4)),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 2)), (2, 4)),
    "DenseBnAct": (lambda: nn.DenseBnAct(3, 2, has_bn=True, activation="tanh"), (2, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_input_gradient_is_the_slope(name):
    make, shape = LAYERS[name]
    ms.set_seed(1)
    layer, x = make(), t(*shape)
    weights = t(*layer(x).shape, seed=9)

    def f(x):
        return (layer(x) * weights).sum()

    direction, step = t(*shape, seed=4), 1e-2
    slope = (float(f(x + direction * step).asnumpy()) - float(f(x - direction * step).asnumpy())) / (2 * step)
    along = float((ms.grad(f)(x) * direction).sum().asnumpy())
    np.testing.assert_allclose(along, slope, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("name", LAYERS)
def test_compiled_layer_gives_the_same(name):
    make, shape = LAYERS[name]
    ms.set_seed(1)
    layer, x = make(), t(*shape)
    compiled = ms.jit(lambda x: layer(x))
    np.testing.assert_allclose(compiled(x).asnumpy(), layer(x).asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "kind, shape",
    [(nn.Dropout1d, (40, 50, 3)), (nn.Dropout2d, (40, 50, 2, 2)), (nn.Dropout3d, (40, 50, 2, 1, 2))],
)
def test_channel_dropout_zeroes_whole_channels_in_training_only(kind, shape):
    ms.set_seed(3)
    layer, x = kind(p=0.25), Tensor(np.ones(shape, np.float32))
    assert (layer(x).asnumpy() == 1).all()
    y = layer.set_train()(x).asnumpy().reshape(*shape[:2], -1)
    assert ((y == 0).all(-1) | np.isclose(y, 4 / 3).all(-1)).all()
    assert 0.2 < (y[..., 0] == 0).mean() < 0.3
    assert (kind(p=1.0).set_train()(x).asnumpy() == 0).all()


def test_dropout_keeps_the_mean_in_training_and_does_nothing_otherwise():
    ms.set_seed(3)
    layer, x = nn.Dropout(p=0.3), Tensor(np.ones((100, 100), np.float32))
    assert layer(x) is x
    y = layer.set_train()(x).asnumpy()
    assert 0.28 < (y == 0).mean() < 0.32 and abs(y.mean() - 1) < 0.03


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (ValueError, lambda: nn.Dense(0, 1)),
        (TypeError, lambda: nn.Dense(1.5, 1)),
        (TypeError, lambda: nn.Dense(1, 1, activation=3)),
        (KeyError, lambda: nn.Dense(1, 1, activation="rely")),
        (ValueError, lambda: nn.Dense(3, 2)(t(2, 4))),
        (ValueError, lambda: nn.Conv2d(3, 4, 3, group=2)),
        (ValueError, lambda: nn.Conv2d(3, 4, 3, pad_mode="full")),
        (ValueError, lambda: nn.Conv2d(3, 4, 3, padding=1)),
        (ValueError, lambda: nn.Conv2d(3, 4, 3, pad_mode="pad", padding=-1)),
        (ValueError, lambda: nn.Conv2d(3, 4, 3)(t(2, 3, 4))),
        (ValueError, lambda: nn.Conv2d(3, 4, 3)(t(2, 2, 4, 4))),
        (NotImplementedError, lambda: nn.Conv2d(3, 4, 3, data_format="NHWC")),
        (ValueError, lambda: nn.Conv2dTranspose(4, 6, 3, pad_mode="valid", output_padding=1)),
        (ValueError, lambda: nn.Conv2dTranspose(0, 6, 3)),
        (ValueError, lambda: nn.Dropout(p=1.0)),
        (ValueError, lambda: nn.Dropout(keep_prob=0)),
        (TypeError, lambda: nn.Dropout2d(p=1)),
        (ValueError, lambda: nn.Dropout2d(p=1.5)),
        (IndexError, lambda: nn.Embedding(3, 2)(Tensor(np.array([3], np.int32)))),
        (ValueError, lambda: nn.Embedding(3, 2, padding_idx=3)),
        (ValueError, lambda: nn.EmbeddingLookup(3, 2, max_norm=-1.0)),
        (ValueError, lambda: nn.BiDense(3, 4, 5)(t(2, 3), t(3, 4))),
        (TypeError, lambda: nn.Unflatten(1, 5)),
        (ValueError, lambda: nn.Unflatten(1, (3, 4))(t(2, 10))),
        (ValueError, lambda: nn.PixelShuffle(0)),
        (ValueError, lambda: nn.PixelShuffle(3)(t(1, 8, 2, 2))),
        (ValueError, lambda: nn.PixelUnshuffle(5)(t(1, 8, 2, 2))),
        (ValueError, lambda: nn.ChannelShuffle(3)(t(1, 8, 2, 2))),
        (ValueError, lambda: nn.CentralCrop(1.2)),
        (ValueError, lambda: nn.Upsample()(t(1, 1, 2, 2))),
        (ValueError, lambda: nn.Upsample(size=3, scale_factor=2.0)(t(1, 1, 2, 2))),
        (ValueError, lambda: nn.Upsample(size=3, mode="cubic")(t(1, 1, 2, 2))),
        (ValueError, lambda: nn.Upsample(size=3, mode="bilinear")(t(1, 1, 2))),
        (ValueError, lambda: nn.Upsample(size=3, align_corners=True)(t(1, 1, 2, 2))),
        (ValueError, lambda: nn.Upsample(size=(3, 3, 3))(t(1, 1, 2, 2))),
        (ValueError, lambda: nn.MaxPool2d(2, pad_mode="full")),
        (TypeError, lambda: nn.ClipByNorm(axis="x")),
    ],
)
def test_wrong_arguments_are_refused(kind, wrong):
    with pytest.raises(kind):
        wrong()


def test_psnr_is_decibel():
    a, b = Tensor(np.zeros((1, 1, 2, 2), np.float32)), Tensor(np.full((1, 1, 2, 2), 2.0, np.float32))
    np.testing.assert_allclose(nn.PSNR()(a, b).asnumpy(), [-6.0206], rtol=1e-5)


def test_embedding_starts_its_padding_row_at_zero():
    table = nn.Embedding(3, 2, embedding_table="ones", padding_idx=1).embedding_table.asnumpy()
    assert table.tolist() == [[1, 1], [0, 0], [1, 1]]


def test_embedding_lookup_scales_long_vectors_down():
    layer = nn.EmbeddingLookup(2, 2, Tensor(np.array([[3.0, 4.0], [0.3, 0.4]], np.float32)), max_norm=1.0)
    got = layer(Tensor(np.array([0, 1, 5], np.int32))).asnumpy()
    np.testing.assert_allclose(got, [[0.6, 0.8], [0.3, 0.4], [0, 0]], rtol=1e-6)


def test_one_dimensional_convolutions_store_weights_with_a_height_of_one():
    assert nn.Conv1d(4, 6, 3).weight.shape == (6, 4, 1, 3)
    assert nn.Conv1dTranspose(4, 6, 3).weight.shape == (4, 6, 1, 3)
    assert "kernel_size=(1, 3), stride=(1, 1), pad_mode=same, padding=(0, 0, 0, 0)" in repr(
        nn.Conv1d(4, 6, 3)
    )
