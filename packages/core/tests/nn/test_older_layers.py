"""Layers of older scripts, measures of images, further optimizers; checked once against MindSpore 2.10."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn

A = Tensor([[1.0, 2.0], [3.0, 4.0]], ms.float32)


@pytest.mark.parametrize(
    "layer, args, expected",
    [
        (lambda: nn.MatMul(False, True), (A, A), [5, 11, 11, 25]),
        (lambda: nn.Norm(axis=0), (A,), [3.1622777, 4.472136]),
        (lambda: nn.Tril(), (A,), [1, 0, 3, 4]),
        (lambda: nn.Triu(), (A, 1), [0, 2, 0, 0]),
        (lambda: nn.Range(1, 8, 3), (), [1, 4, 7]),
        (lambda: nn.Roll(1, 1), (A,), [2, 1, 4, 3]),
        (lambda: nn.MatrixDiagPart(), (A,), [1, 4]),
        (lambda: nn.MatrixSetDiag(), (A, Tensor([7.0, 8.0])), [7, 2, 3, 8]),
        (lambda: nn.L1Regularizer(0.5), (A,), [5]),
        (lambda: nn.LGamma(), (A,), [0, 0, 0.6931472, 1.7917595]),
        (lambda: nn.DiGamma(), (A,), [-0.5772157, 0.42278436, 0.92278436, 1.2561177]),
        (lambda: nn.LBeta(), (A, Tensor(20.0)), [-2.9957323, -6.040255, -8.438149, -10.475031]),
        (lambda: nn.MultiClassDiceLoss(activation="sigmoid"), (A, A), [0.424635]),
        (lambda: nn.SparseTensorDenseMatmul(), (Tensor([[0, 1]]), Tensor([2.0]), (2, 2), A), [6, 8, 0, 0]),
        (lambda: nn.TimeDistributed(nn.ReLU(), 1), (A.reshape((1, 2, 2)),), [1, 2, 3, 4]),
    ],
)
def test_values(layer, args, expected):
    found = np.ravel(layer()(*args).asnumpy())
    np.testing.assert_allclose(found, expected, rtol=2e-4)


def test_moments():
    mean, variance = nn.Moments(axis=0)(A)
    assert mean.asnumpy().tolist() == [2, 3] and variance.asnumpy().tolist() == [1, 1]


def test_unfold_takes_patches():
    x = Tensor(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
    patches = nn.Unfold([1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1])(x)
    assert patches.shape == (1, 4, 2, 2) and patches.asnumpy()[0, :, 0, 0].tolist() == [0, 1, 4, 5]


def test_similarity_of_an_image_with_itself_is_one():
    image = Tensor(np.random.default_rng(0).random((2, 3, 24, 24)).astype(np.float32))
    np.testing.assert_allclose(nn.SSIM()(image, image).asnumpy(), [1, 1], rtol=1e-4)
    small = nn.MSSSIM(power_factors=(0.5, 0.5), filter_size=5)
    np.testing.assert_allclose(small(image, image).asnumpy(), [1, 1], rtol=1e-4)
    assert float(nn.SSIM()(image, 1 - image)[0]) < 0.2
    with pytest.raises(ValueError):
        nn.SSIM()(image[:, :, :5, :5], image[:, :, :5, :5])
    down, across = nn.ImageGradients()(Tensor([[[[1.0, 3.0], [4.0, 8.0]]]]))
    assert np.ravel(down.asnumpy()).tolist() == [3, 5, 0, 0]
    assert np.ravel(across.asnumpy()).tolist() == [2, 0, 4, 0]


@pytest.mark.parametrize(
    "kind, options, expected",
    [
        ("ASGD", {"learning_rate": 0.1, "lambd": 0.1, "t0": 1.0}, None),
        ("ProximalAdagrad", {"learning_rate": 0.1, "l1": 0.1}, None),
        ("LazyAdam", {"learning_rate": 0.1}, "Adam"),
        ("AdamOffload", {"learning_rate": 0.1}, "Adam"),
        ("AdaFactor", {}, None),
    ],
)
def test_further_optimizers_go_downhill(kind, options, expected):
    def trained(name):
        p = Parameter(Tensor([[1.0, -2.0], [0.5, 3.0]]), name="w")
        optimizer = getattr(nn, name)([p], **options)
        for _ in range(5):
            optimizer((p * 2.0,))
        return p.asnumpy()

    found = trained(kind)
    assert (np.abs(found) < np.abs([[1.0, -2.0], [0.5, 3.0]])).all()
    if expected:
        np.testing.assert_array_equal(found, trained(expected))


def test_optimizers_know_their_place():
    optimizer = nn.Adam(nn.Dense(1, 1).trainable_params())
    optimizer.target, optimizer.unique = "CPU", False
    assert optimizer.target == "CPU" and not optimizer.unique
    with pytest.raises(ValueError):
        optimizer.target = "TPU"
    with pytest.raises(NotImplementedError):
        nn.thor(nn.Dense(1, 1), 0.1, 0.1, 0.9)((A, A))


def test_what_joins_devices_works_for_one():
    gradients = (A, A)
    assert nn.DistributedGradReducer([])(gradients) is gradients
    net = nn.PipelineCell(nn.MSELoss(), 2)
    np.testing.assert_allclose(float(net(A, A * 0)), 2.5 + 12.5)
    assert nn.VirtualDatasetCellTriple(lambda a, b, c: a + b + c)(1, 2, 3) == 6


def test_instance_norm_has_the_statistics_of_checkpoints():
    net = nn.InstanceNorm2d(3)
    assert list(net.parameters_dict()) == ["mean", "variance", "gamma", "beta"]
    assert [p.name for p in net.trainable_params()] == ["gamma", "beta"]
