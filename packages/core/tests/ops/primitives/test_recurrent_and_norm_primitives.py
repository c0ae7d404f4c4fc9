"""Primitives of recurrent cells, norms and activations, with their gradients."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops


def floats(values):
    return Tensor(np.array(values, np.float32))


SINES = floats(np.sin(np.arange(54))).reshape((-1, 1, 1))
STEPS, STATE = floats(np.linspace(-1, 1, 6)).reshape((3, 1, 2)), floats([[[0.5, -0.5]]])


def test_gated_recurrent_units_and_their_gradient():
    sizes, lengths = (2, 2, 1, True, False, 0.0), Tensor(np.array([3], np.int32))
    inputs = STEPS, STATE, SINES[:36], lengths
    y, last, *nothing = ops.operations.GRUV2(*sizes)(*inputs)
    wanted = [[-0.509012, 0.310686], [-0.169468, -0.370355], [0.315496, -0.634164]]
    np.testing.assert_allclose(y.asnumpy()[:, 0], wanted, atol=1e-5)
    np.testing.assert_allclose(last.asnumpy(), y.asnumpy()[-1:])
    dx, dh, dw = ops.operations.GRUV2Grad(*sizes)(
        *inputs, y, last, ops.ones_like(y), ops.zeros_like(last), nothing[0]
    )
    assert dx.shape == STEPS.shape and dw.shape == (30, 1, 1)
    np.testing.assert_allclose(dh.asnumpy()[0, 0], [0.886119, 0.618570], atol=1e-5)
    np.testing.assert_allclose(dw.asnumpy()[[0, 1, -1], 0, 0], [-0.473897, -0.512732, 1.529680], atol=1e-5)


def test_lstm_with_a_projection():
    found = ops.LSTM(2, 3, 1, False, False, 0.0, 2)(STEPS, STATE, floats([[[0.1, 0.2, 0.3]]]), SINES)
    wanted = [[-0.151911, 0.218622], [-0.069134, 0.077477], [-0.430540, 0.432687]]
    np.testing.assert_allclose(found[0].asnumpy()[:, 0], wanted, atol=1e-5)
    np.testing.assert_allclose(found[2].asnumpy()[0, 0], [0.179042, 0.538093, -0.092716], atol=1e-5)


def test_a_norm_of_high_power():
    x = floats([[0.25], [-0.125]])
    norm = ops.LpNorm([0], 90)
    np.testing.assert_allclose(norm(x).asnumpy(), [0.25], rtol=1e-6)
    np.testing.assert_allclose(ms.grad(norm)(x).asnumpy(), [[1], [0]], atol=1e-6)
    assert norm(floats([[0], [0]])).asnumpy().tolist() == [0]


def test_root_mean_square_of_rows_keeps_those_without_gradient():
    var, mean, moved = (
        ms.Parameter(floats([[a], [a]]), name=n) for a, n in ((1, "v"), (0.25, "m"), (0.5, "o"))
    )
    step = ops.operations.SparseApplyRMSProp(0.5, 0.1, 1e-6)
    step(var, mean, moved, 0.1, floats([[0], [1]]), Tensor(np.array([0, 1], np.int32)))
    np.testing.assert_allclose(mean.asnumpy(), [[0.25], [0.625]])
    np.testing.assert_allclose(moved.asnumpy(), [[0.05], [0.05 + 0.1 / np.sqrt(0.625001)]], rtol=1e-6)
    np.testing.assert_allclose(var.asnumpy(), 1 - moved.asnumpy())
    with pytest.raises(TypeError, match="indices"):
        step(var, mean, moved, 0.1, floats([[0], [1]]), floats([0, 1]))


def test_losses_of_rows_with_their_gradient():
    loss, slope = ops.operations.SparseSoftmaxCrossEntropyWithLogitsV2()(
        floats([[2, 3, 1], [2, 1, 2]]), Tensor(np.array([0, 1], np.int32))
    )
    np.testing.assert_allclose(loss.asnumpy(), [1.407606, 1.861995], rtol=1e-5)
    np.testing.assert_allclose(slope.asnumpy()[0], [-0.755272, 0.665241, 0.090031], rtol=1e-4)


def test_gradients_of_convolutions_follow_the_sizes_of_the_weight():
    from mycelia.ops import operations

    dy, x = floats(np.ones((1, 1, 2, 2))), floats(np.arange(16)).reshape((1, 1, 4, 4))
    found = operations.Conv2DBackpropFilter(4, 1)(dy, x, (1, 1, 3, 3))
    assert found.asnumpy()[0, 0].tolist() == [[10, 14, 18], [26, 30, 34], [42, 46, 50]]
    found = operations.Conv2DBackpropInput(4, 1)(dy, floats(np.ones((1, 1, 3, 3))), (1, 1, 4, 4))
    assert found.asnumpy()[0, 0].tolist() == [[1, 2, 2, 1], [2, 4, 4, 2], [2, 4, 4, 2], [1, 2, 2, 1]]


def test_slopes_beyond_one():
    assert ops.rrelu(floats([0, -1, 2]), 5, 5).asnumpy().tolist() == [0, -5, 2]
    with pytest.raises(ValueError, match="upper"):
        ops.rrelu(floats([1]), 5, 4)
    for arguments, error in (
        ((2,), TypeError),
        ((floats([1]), -3), ValueError),
        ((floats([1]), 0.5), TypeError),
    ):
        with pytest.raises(error, match="shuffle"):
            ops.shuffle(*arguments)


def test_slope_of_relu6_at_its_ends():
    assert ms.grad(ops.relu6)(floats([0, 3, 6, 6.5])).asnumpy().tolist() == [0, 1, 1, 0]


def test_layer_norm_gradient_by_other_statistics():
    from mycelia.ops import operations

    x, dy = floats([[1, 2, 4]]), floats([[0.5, -1, 2]])
    given = floats([[4.0]]), floats([[1.0]])  # variance and mean
    dx, dgamma, dbeta = operations.LayerNormGrad()(x, dy, *given, floats([1, 1, 1]))
    normal = np.array([0, 0.5, 1.5])
    slope = (dy.asnumpy()[0] * normal).mean()
    want = (dy.asnumpy()[0] - 0.5 - slope * (normal - normal.mean())) * 0.5
    np.testing.assert_allclose(dx.asnumpy()[0], want, rtol=1e-5)
    np.testing.assert_allclose(dgamma.asnumpy(), dy.asnumpy()[0] * normal, rtol=1e-6)
    assert dbeta.asnumpy().tolist() == [0.5, -1, 2]
