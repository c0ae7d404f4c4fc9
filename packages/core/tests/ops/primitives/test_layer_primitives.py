"""Primitives of layers, losses, images and boxes as users call them; numbers are MindSpore's."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, ops


def data(*shape, seed=0, low=-1.0, high=1.0):
    return Tensor(np.random.RandomState(seed).uniform(low, high, shape).astype(np.float32))


def floats(values):
    return Tensor(np.array(values, np.float32))


def first(value):
    while isinstance(value, tuple):
        value = value[0]
    return value.asnumpy().reshape(-1)[:3]


X, W = data(1, 3, 4, 4), data(4, 3, 3, 3, seed=1)
LABELS = Tensor(np.array([0, 2], np.int32))
BOXES = floats([[0, 0, 10, 10, 0.9], [1, 1, 11, 11, 0.8], [20, 20, 30, 30, 0.7], [21, 21, 29, 33, 0.95]])

CASES = {
    "Conv2D same": (lambda: ops.Conv2D(4, 3, pad_mode="same")(X, W), [-1.80728, -0.60258, 0.06823]),
    "Conv2DTranspose": (
        lambda: ops.Conv2DTranspose(2, 2)(floats(np.ones((1, 2, 2, 2))), data(2, 1, 2, 2), (1, 1, 3, 3)),
        [-0.05506, 0.66715, 0.72221],
    ),
    "AvgPool same": (lambda: ops.AvgPool(3, 2, "same")(data(2, 3, 5, 6)), [0.3866, 0.23671, 0.19508]),
    "MaxPoolWithArgmaxV2": (lambda: ops.MaxPoolWithArgmaxV2(2)(data(1, 2, 5, 6)),
        [0.78355, 0.92733, 0.58345]),
    "LayerNorm": (lambda: ops.LayerNorm()(data(2, 3), floats([1, 2, 3]), floats([0, 1, 0])),
                  [-1.05966, 3.6818, -0.84372]),
    "L2Normalize": (lambda: ops.L2Normalize(1, 1e-3)(data(2, 3)), [0.20054, 0.88405, 0.42218]),
    "SoftmaxCrossEntropyWithLogits": (
        lambda: ops.SoftmaxCrossEntropyWithLogits()(data(2, 3), floats([[0, 1, 0], [0.2, 0.3, 0.5]])),
        [0.9225, 1.07319],
    ),
    "SparseSoftmaxCrossEntropyWithLogits": (
        lambda: ops.SparseSoftmaxCrossEntropyWithLogits(is_grad=True)(data(2, 3), LABELS),
        [-0.3575, 0.19876, 0.15874],
    ),
    "NLLLoss": (lambda: ops.NLLLoss("none")(data(2, 3), LABELS, floats([1, 2, 3])), [-0.09763, -0.87536]),
    "ResizeBilinearV2": (lambda: ops.ResizeBilinearV2()(data(1, 2, 3, 4), (5, 6)),
        [0.09763, 0.31946, 0.35543]),
    "ResizeBicubic": (lambda: ops.ResizeBicubic(True)(data(1, 2, 3, 4), (5, 6)), [0.09763, 0.3254, 0.4255]),
    "ResizeArea": (
        lambda: ops.ResizeArea()(data(2, 3, 4, 3, low=0), Tensor(np.array([2, 2], np.int32))),
        [0.47376, 0.53725, 0.56683],
    ),
    "AdjustHue": (lambda: ops.AdjustHue()(data(2, 3, 4, 3, low=0), floats(0.2)), [0.54881, 0.62796, 0.71519]),
    "ROIAlign": (
        lambda: ops.ROIAlign(2, 2, 0.5, 2)(floats([[[[1, 2], [3, 4]]]]), floats([[0, 0.2, 0.3, 0.2, 0.3]])),
        [1.775, 2.025, 2.275],
    ),
    "MatrixTriangularSolve": (
        lambda: ops.MatrixTriangularSolve(False, True)(data(3, 3), data(3, 2, seed=1)),
            [-1.6999, 4.5136, 1.75631]
    ),
    "Betainc": (
        lambda: ops.Betainc()(floats([0.3, 0.1, 0.4]), floats([0.4, 0.5, 0.9]), floats([0.2, 0.6, 0.5])),
        [0.41463, 0.8706, 0.72983],
    ),
    "LSTM": (
        lambda: ops.LSTM(3, 2, 1, False, False, 0.0)(
            data(4, 2, 3), data(1, 2, 2, seed=1), data(1, 2, 2, seed=2), data(40, 1, 1, seed=5)
        ),
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_result(name):
    run, want = CASES[name]
    got = first(run())
    assert np.isfinite(got).all()
    if want is not None:
        np.testing.assert_allclose(got[: len(want)], want, rtol=1e-3, atol=2e-4)


def test_logarithm_of_a_matrix():
    x = Tensor(np.array([[1 + 2j, 3 + 1j], [4 + 1j, 5 + 2j]], np.complex64))
    want = [[0.91743 + 1.88012j, 0.70504 - 0.6669j], [0.84986 - 0.93747j, 1.49672 + 0.79783j]]
    np.testing.assert_allclose(ops.MatrixLogarithm()(x).asnumpy(), want, atol=1e-4)


def test_ctc_loss_is_its_own_gradient():
    x = data(4, 2, 3)
    labels = (
        Tensor(np.array([[0, 0], [0, 1], [1, 0]])), Tensor(np.array([0, 1, 1], np.int32)),
        Tensor(np.array([4, 3], np.int32)),
    )  # fmt: skip
    loss, gradient = ops.CTCLoss()(x, *labels)
    np.testing.assert_allclose(loss.asnumpy(), [1.705, 1.06105], rtol=1e-4)
    through = ms.grad(lambda x: ops.CTCLoss()(x, *labels)[0].sum())(x)
    np.testing.assert_allclose(through.asnumpy(), gradient.asnumpy(), rtol=1e-5)
    assert not gradient.asnumpy()[3, 1].any(), "the second sequence has three steps"


def test_boxes_that_overlap_are_suppressed():
    boxes, places, kept = ops.NMSWithMask(0.5)(BOXES)
    assert boxes.asnumpy()[0, 4] == np.float32(0.95)
    assert places.asnumpy().tolist() == [0, 1, 2, 3] and kept.asnumpy().tolist() == [True, True, False, False]


def test_batch_norm_moves_its_statistics():
    scale, bias, mean, variance = (Parameter(data(3, seed=i, low=0.5), name=f"p{i}") for i in range(4))
    y, _, _, batch_mean, _ = ops.BatchNorm(is_training=True)(data(2, 3, 2, 2), scale, bias, mean, variance)
    np.testing.assert_allclose(batch_mean.asnumpy(), [0.01586, 0.22498, 0.42188], atol=1e-5)
    assert not np.allclose(mean.asnumpy(), data(3, seed=2, low=0.5).asnumpy())


def test_layer_primitives_compile_and_have_gradients():
    conv, norm = ops.Conv2D(4, 3, pad_mode="same"), ops.LayerNorm(-1, -1)

    def net(x, w, gamma, beta):
        return norm(conv(x, w), gamma, beta)[0].sum()

    args = X, W, floats([1, 2, 3, 4]), floats([0, 1, 0, 1])
    np.testing.assert_allclose(ms.jit(net)(*args).asnumpy(), net(*args).asnumpy(), rtol=1e-4, atol=1e-4)
    assert [g.shape for g in ms.grad(net, (0, 1))(*args)] == [X.shape, W.shape]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: ops.Conv2D(8, 0), ValueError),
        (lambda: ops.Conv2D("a", 3), TypeError),
        (lambda: ops.Conv2D(8, 3, pad=1), ValueError),
        (lambda: ops.Conv2D(8, [3, 3]), TypeError),
        (lambda: ops.MaxPool(2.0), TypeError),
        (lambda: ops.Softmax("a"), TypeError),
        (lambda: ops.LRN(norm_region="x"), ValueError),
        (lambda: ops.IOU("x"), KeyError),
        (lambda: ops.KLDivLoss("a"), ValueError),
        (lambda: ops.SGD(0.1, 0.0, True), ValueError),
        (lambda: ops.Conv2D(5, 3)(X, W), RuntimeError),
        (lambda: ops.Elu(2.0)(X), ValueError),
        (lambda: ops.DynamicRNN()(X), NotImplementedError),
    ],
)
def test_wrong_constants_and_inputs(make, error):
    with pytest.raises(error):
        make()


def test_printed_form():
    assert str(ops.Conv2D(8, 3, stride=2)).endswith(
        "stride=(1, 1, 2, 2), dilation=(1, 1, 1, 1), group=1, data_format=NCHW>"
    )
    assert str(ops.MaxPool(2, 2)).startswith("Prim[MaxPool]<kernel_size=(1, 1, 2, 2), strides=(1, 1, 2, 2)")
