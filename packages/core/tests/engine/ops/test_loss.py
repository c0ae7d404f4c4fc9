"""Public losses against figures that MindSpore 2.10 prints on a CPU, and the errors of bad labels."""

import numpy as np
import pytest

import mycelia.tensor  # noqa: F401
from mycelia import ops
from mycelia.engine.autodiff.transforms import grad
from mycelia.tensor import Tensor

A = [
    [0.548814, 0.715189, 0.602763, 0.544883],
    [0.423655, 0.645894, 0.437587, 0.891773],
    [0.963663, 0.383442, 0.791725, 0.528895],
]
B = [
    [0.568045, 0.925597, 0.071036, 0.087129],
    [0.020218, 0.83262, 0.778157, 0.870012],
    [0.978618, 0.799159, 0.461479, 0.780529],
]


def tensor(values, dtype=np.float32):
    return Tensor(np.array(values, dtype))


a, b = tensor(A), tensor(B)
labels, weight = tensor([1, 0, 3], np.int32), tensor([1, 2, 3, 4])
signs = tensor(np.sign(np.array(A) - 0.5))

LOSSES = {
    "l1": (lambda: ops.l1_loss(a, b), 0.26534706),
    "l1 sum": (lambda: ops.l1_loss(a, b, "sum"), 3.1841648),
    "l1 broadcast": (lambda: ops.l1_loss(a, tensor(B[0])), 0.4095529),
    "mse of integers": (lambda: ops.mse_loss(a, tensor(np.ones((3, 4)), np.int32)), 0.17349865),
    "kl_div": (lambda: ops.kl_div(a, b), -0.57050276),
    "kl_div batchmean": (lambda: ops.kl_div(a, b, "batchmean"), -2.282011),
    "smooth_l1": (
        lambda: ops.smooth_l1_loss(tensor(A[0]), tensor(B[0]), 0.5),
        [0.00037, 0.044271, 0.281727, 0.209539],
    ),
    "huber": (
        lambda: ops.huber_loss(tensor(A[0]), tensor(B[0]), "none", 0.3),
        [0.000185, 0.022136, 0.114518, 0.092326],
    ),
    "binary cross entropy": (lambda: ops.binary_cross_entropy(a, b), 0.632768),
    "binary cross entropy at 0 and 1": (
        lambda: ops.binary_cross_entropy(tensor([0, 1]), tensor([1, 0]), reduction="none"),
        [27.631021, 27.631021],
    ),
    "binary cross entropy with logits": (lambda: ops.binary_cross_entropy_with_logits(a, b), 0.659862),
    "weighted": (lambda: ops.binary_cross_entropy_with_logits(a, b, tensor(2), weight), 2.0560343),
    "cross entropy weighted": (
        lambda: ops.cross_entropy(a, labels, weight, reduction="none"),
        [2.552846, 1.581015, 6.198616],
    ),
    "cross entropy mean": (lambda: ops.cross_entropy(a, labels, weight), 1.4760683),
    "cross entropy smoothed": (lambda: ops.cross_entropy(a, labels, weight, label_smoothing=0.2), 1.4806025),
    "cross entropy ignoring": (
        lambda: ops.cross_entropy(a, labels, weight, 0, label_smoothing=0.2),
        1.4044725,
    ),
    "cross entropy of probabilities": (
        lambda: ops.cross_entropy(a, b, weight, label_smoothing=0.2),
        7.1603866,
    ),
    "cross entropy of one sample": (lambda: ops.cross_entropy(tensor(A[0]), tensor(1, np.int32)), 1.2764231),
    "cross entropy of images": (
        lambda: ops.cross_entropy(
            tensor(np.reshape(A, (1, 4, 3))), tensor([[0, 1, 2]], np.int32), reduction="none"
        ),
        [[1.318655, 1.682764, 1.122404]],
    ),
    "nll": (lambda: ops.nll_loss(a, labels, weight, 0, label_smoothing=0.2), -0.5743637),
    "cosine embedding": (
        lambda: ops.cosine_embedding_loss(a, b, tensor([1, -1, 1], np.int32), 0.3, "none"),
        [0.197, 0.621506, 0.07393],
    ),
    "margin ranking": (lambda: ops.margin_ranking_loss(a, b, signs, 0.1), 0.14705245),
    "hinge": (
        lambda: ops.hinge_embedding_loss(tensor(A[1]), tensor([-1, 1, -1, 1]), 1.0, "none"),
        [0.576345, 0.645894, 0.562413, 0.891773],
    ),
    "multilabel soft margin": (
        lambda: ops.multilabel_soft_margin_loss(a, tensor(np.array(B) > 0.5), weight, "none"),
        [2.094773, 1.159657, 1.677952],
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_loss_gives_mindspore_figures(name):
    loss, want = LOSSES[name]
    np.testing.assert_allclose(loss().asnumpy(), want, rtol=2e-4, atol=2e-6)


def test_fused_and_composed_cross_entropy_have_one_gradient():
    fused = grad(lambda x: ops.cross_entropy(x, labels))(a)
    composed = grad(lambda x: ops.cross_entropy(x, labels, tensor(np.ones(4))))(a)
    np.testing.assert_allclose(fused.asnumpy(), composed.asnumpy(), rtol=1e-5, atol=1e-7)


def test_a_label_out_of_range_is_named():
    with pytest.raises(Exception, match="label 4 is not in"):
        ops.cross_entropy(a, tensor([1, 0, 4], np.int32))


def test_an_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match="l1_loss.*reduction"):
        ops.l1_loss(a, b, "average")


def test_softmax_cross_entropy_takes_labels_as_constants():
    op = ops.SoftmaxCrossEntropyWithLogits()
    logits, labels = Tensor([[1.0, 2.0, 3.0]]), Tensor([[0.5, 0.2, 0.1]])
    of_logits, of_labels = grad(lambda x, y: op(x, y)[0], (0, 1))(logits, labels)
    # softmax - labels, though these labels do not add up to 1
    np.testing.assert_allclose(of_logits.asnumpy(), [[-0.40996942, 0.04472847, 0.5652409]], rtol=1e-5)
    assert not of_labels.asnumpy().any()
