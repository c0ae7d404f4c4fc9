"""mint layers: shape, last element and sum of absolute values of the output; parameters are a fixed wave.

Where there are three sums they are those of two training steps and of inference after them. The numbers are
PyTorch's, whose layers these are.
"""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia.mint import nn


def wave(*shape, step=1.0):
    return np.sin(np.arange(np.prod(shape, dtype=int)) * step).reshape(shape).astype(np.float32)


def fill(net):
    for name, parameter in net.parameters_and_names():
        if "num_batches" not in name:
            parameter.set_data(ms.Tensor(wave(*parameter.shape, step=0.8) * np.float32(0.3) + 1))
    return net


ARRAYS = dict(
    a=wave(6, 4), b=wave(6, 4, step=2.3), s=wave(2, 4, 7, step=0.9), x=wave(2, 4, 6, 5, step=0.7),
    z=wave(2, 4, 4, 5, 4, step=0.3), l=np.array([0, 1, 2, 3, 1, 0]), c=np.array([[0, 1], [4, 2]]),
)  # fmt: skip

LAYERS = """
    AdaptiveAvgPool2d((3, None)) | x  ->  [2, 4, 3, 5] -0.14544 13.641
    AdaptiveMaxPool1d(3) | s  ->  [2, 4, 3] -0.54477 19.282
    AvgPool1d(2, padding=1) | s  ->  [2, 4, 4] -0.8442 14.707
    AvgPool3d((2, 1, 2)) | z  ->  [2, 4, 2, 5, 2] -0.053264 99.14
    BCELoss() | a * 0.4 + 0.5, b * 0.4 + 0.5  ->  [] 0.92758 0.92758
    BCEWithLogitsLoss(reduction="sum") | a, b * 0.4 + 0.5  ->  [] 18.266 18.266
    BatchNorm1d(4) | a  ->  [6, 4] -0.90165 32.671 32.671 17.209
    BatchNorm1d(4, momentum=None) | s  ->  [2, 4, 7] 0.067336 74.273 74.273 72.856
    BatchNorm2d(4, momentum=0.3, eps=1e-3) | x  ->  [2, 4, 6, 5] -0.52326 323.43 323.43 208.13
    BatchNorm2d(4, affine=False) | x  ->  [2, 4, 6, 5] -1.6386 215.52 215.52 224.8
    BatchNorm2d(4, track_running_stats=False) | x  ->  [2, 4, 6, 5] -0.075696 323.6
    BatchNorm3d(4) | z  ->  [2, 4, 4, 5, 4] -0.0028444 862.45 862.45 469.24
    ConstantPad1d((1, 2), 3.0) | s  ->  [2, 4, 10] 3 107.39
    Conv1d(4, 6, 3, padding="same", padding_mode="circular") | s  ->  [2, 6, 7] -5.1726 491.15
    Conv2d(4, 6, 3, stride=2, padding=1) | x  ->  [2, 6, 3, 3] 1.3842 162.76
    Conv2d(4, 6, (3, 2), padding="same", dilation=(1, 2), bias=False) | x  ->  [2, 6, 6, 5] -0.3198 353.09
    Conv2d(4, 6, 3, padding=(1, 2), padding_mode="reflect", groups=2) | x  ->  [2, 6, 6, 7] -1.9427 948.49
    Conv3d(4, 2, 2) | z  ->  [2, 2, 3, 4, 3] -7.3795 920.04
    ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1) | x  ->  [2, 6, 12, 10] 0.19328 1755.1
    CosineEmbeddingLoss(0.1) | a, b, b[:, 0].sign()  ->  [] 0.52018 0.52018
    CrossEntropyLoss(label_smoothing=0.1) | a, l  ->  [] 1.7296 1.7296
    ELU(0.5) | a  ->  [6, 4] -0.28548 10.328
    Embedding(5, 3, padding_idx=1) | c  ->  [2, 2, 3] 1.035 11.426
    Flatten() | x  ->  [2, 120] -0.71428 152.13
    GELU("tanh") | a  ->  [6, 4] -0.16826 7.7121
    GLU(1) | x  ->  [2, 2, 6, 5] -0.11692 37.948
    GroupNorm(2, 4) | x  ->  [2, 4, 6, 5] -0.07855 323.27
    Hardshrink(0.3) | a  ->  [6, 4] -0.84622 13.975
    Hardtanh(-0.5, 0.5) | a  ->  [6, 4] -0.5 9.6995
    KLDivLoss(reduction="batchmean", log_target=True) | a, b  ->  [] 2.0784 2.0784
    L1Loss() | a, b  ->  [] 0.79961 0.79961
    LayerNorm((6, 5)) | x  ->  [2, 4, 6, 5] -0.017156 279.41
    LayerNorm(5, bias=False) | x  ->  [2, 4, 6, 5] -1.5908 233.44
    Linear(4, 3) | a  ->  [6, 3] 2.2744 30.636
    LogSoftmax() | a  ->  [6, 4] -2.6741 37.384
    MSELoss(reduction="none") | a, b  ->  [6, 4] 1.7738 24.19
    Mish() | a  ->  [6, 4] -0.28989 8.986
    NLLLoss() | a, l  ->  [] 0.15018 0.15018
    PReLU(4, 0.1) | x  ->  [2, 4, 6, 5] -0.85902 165.9
    PixelShuffle(2) | x  ->  [2, 1, 12, 10] -0.71428 152.13
    ReflectionPad2d((1, 0, 2, 1)) | x  ->  [2, 4, 9, 6] 0.42339 276.09
    ReplicationPad3d(1) | z  ->  [2, 4, 6, 7, 6] -0.062807 1280.4
    SELU() | a  ->  [6, 4] -1.0038 16.811
    SmoothL1Loss(beta=0.5) | a, b  ->  [] 0.59232 0.59232
    Softmax() | s  ->  [2, 4, 7] 0.51172 28
    Softshrink(0.1) | a  ->  [6, 4] -0.74622 12.633
    Threshold(0.1, 2.0) | a  ->  [6, 4] 2 31.911
    Unfold(2, stride=2) | x  ->  [2, 16, 6] -0.095444 122.7
    Upsample(scale_factor=2.0) | x  ->  [2, 4, 12, 10] -0.71428 608.52
    UpsamplingBilinear2d(scale_factor=2.0) | x  ->  [2, 4, 12, 10] -0.71428 341.63
    ZeroPad1d((1, 2)) | s  ->  [2, 4, 10] 0 35.385
"""


def rows():
    for line in LAYERS.strip().splitlines():
        call, numbers = line.split("->")
        yield pytest.param(*(part.strip() for part in (*call.split(" | "), numbers)), id=call.strip())


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(("layer", "inputs", "numbers"), list(rows()))
def test_layer(layer, inputs, numbers, compiled):
    net = fill(eval(f"nn.{layer}"))
    tensors = eval(f"({inputs},)", {name: ms.Tensor(array) for name, array in ARRAYS.items()})
    shape, _, rest = numbers.partition("] ")
    last, *sums = map(float, rest.split())
    run = ms.jit(net) if compiled else net
    for n, training in enumerate((True, True, False)):
        net.set_train(training)
        out = run(*tensors).asnumpy()
        assert str(list(out.shape)) == shape + "]"
        np.testing.assert_allclose(np.abs(out.astype(np.float64)).sum(), sums[n % len(sums)], rtol=2e-4)
    np.testing.assert_allclose(out.ravel()[-1], last, rtol=1e-3, atol=2e-4)


def test_parameters_have_the_names_of_torch():
    net = nn.BatchNorm2d(3)
    assert [name for name, _ in net.parameters_and_names()] == [
        "weight", "bias", "running_mean", "running_var", "num_batches_tracked",
    ]  # fmt: skip
    assert [p.name for p in net.trainable_params()] == ["weight", "bias"]
    assert list(nn.BatchNorm2d(3, affine=False, track_running_stats=False).get_parameters()) == []
    assert [name for name, _ in nn.LayerNorm(3, bias=False).parameters_and_names()] == ["weight"]
    assert nn.Conv1d(4, 6, 3).weight.shape == (6, 4, 3)
    assert nn.ConvTranspose2d(4, 6, 3, groups=2).weight.shape == (4, 3, 3, 3)
    assert not nn.GroupNorm(1, 2, affine=False).trainable_params()


def test_parameters_begin_as_torchs():
    conv = nn.Conv2d(16, 64, 3)
    bound = 1 / np.sqrt(16 * 9)
    for parameter in (conv.weight, conv.bias):
        largest = np.abs(parameter.asnumpy()).max()
        assert 0.9 * bound < largest <= bound
    table = nn.Embedding(2000, 8, padding_idx=-1).weight.asnumpy()
    assert abs(table.std() - 1) < 0.05 and not table[-1].any()
    given = nn.Embedding(2, 3, _weight=ms.Tensor(wave(2, 3)), _freeze=True)
    assert not given.trainable_params()


def test_text_of_layers():
    net = ms.nn.SequentialCell(
        nn.Conv2d(4, 6, 3, padding="same"), nn.BatchNorm2d(6), nn.AvgPool2d(2), nn.PReLU()
    )
    assert str(net).splitlines()[1:-1] == [
        "  (0): Conv2d(input_channels=4, output_channels=6, kernel_size=(3, 3), stride=(1, 1), padding=same, "
        "dilation=(1, 1), groups=1, bias=True)",
        "  (1): BatchNorm2d(num_features=6, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)",
        "  (2): AvgPool2dExt()",
        "  (3): PReLUExt()",
    ]
    assert str(nn.AdaptiveAvgPool2d((2, None))) == "AdaptiveAvgPool2d(output_size=(2, None))"
    assert str(nn.LayerNorm(4)) == "LayerNormExt(normalized_shape=(4,), eps=1e-05, elementwise_affine=True)"


def test_dropout_works_in_training_only():
    x = ms.Tensor(np.ones((2, 50, 4, 4), np.float32))
    for layer, axes in ((nn.Dropout(0.5), ()), (nn.Dropout2d(0.5), (2, 3))):
        np.testing.assert_array_equal(layer(x).asnumpy(), x.asnumpy())
        out = layer.set_train()(x).asnumpy()
        assert set(np.unique(out)) == {0, 2} and 0.5 < out.mean() < 1.5
        if axes:
            assert (out == out[:, :, :1, :1]).all()
    inside = ms.Tensor(np.ones(3, np.float32))
    assert nn.Dropout(1.0, inplace=True).set_train()(inside) is inside
    assert not inside.asnumpy().any()


def test_transposed_convolution_to_a_size():
    net, x = nn.ConvTranspose2d(3, 2, 3, stride=2), ms.Tensor(wave(1, 3, 4, 4))
    assert net(x).shape == (1, 2, 9, 9)
    assert net(x, output_size=(10, 9)).shape == (1, 2, 10, 9)
    with pytest.raises(ValueError, match="output_size"):
        net(x, output_size=(12, 9))


@pytest.mark.parametrize(
    ("layer", "kind"),
    [
        ("Conv2d(3, 4, 3, padding='same', stride=2)", ValueError),
        ("Conv2d(3, 4, 3, padding='full')", ValueError),
        ("Conv2d(3, 4, 3, groups=2)", ValueError),
        ("Conv2d(3.0, 4, 3)", TypeError),
        ("Conv2d(3, 4, 0)", ValueError),
        ("Conv2d(3, 4, 3, padding_mode='mirror')", ValueError),
        ("ConvTranspose2d(3, 4, 3, padding_mode='reflect')", ValueError),
        ("BatchNorm2d('a')", TypeError),
        ("BatchNorm2d(3, momentum=2.0)", ValueError),
        ("GroupNorm(2, 3)", ValueError),
        ("GroupNorm(2, 4, eps=1)", TypeError),
        ("LayerNorm('a')", TypeError),
        ("LayerNorm(())", ValueError),
        ("Embedding(3, 2, padding_idx=3)", ValueError),
        ("Embedding(3, 2, max_norm=1)", TypeError),
        ("Embedding(3, 2, sparse=True)", ValueError),
        ("ELU(1.0, False, 3)", TypeError),
        ("AvgPool2d()", TypeError),
        ("Linear(0, 2)", ValueError),
    ],
)
def test_bad_settings(layer, kind):
    with pytest.raises(kind):
        eval(f"nn.{layer}")


def test_bad_inputs():
    with pytest.raises(ValueError, match="rank 4"):
        nn.BatchNorm2d(3)(ms.Tensor(wave(2, 3)))
    with pytest.raises(ValueError, match="rank 3 or 4"):
        nn.Conv2d(3, 2, 1)(ms.Tensor(wave(2, 3)))


def test_layers_under_the_names_of_nn():
    assert ms.nn.AvgPool2dExt is nn.AvgPool2d
    assert ms.nn.LayerNormExt is nn.LayerNorm
    assert nn.Linear is ms.nn.Linear
