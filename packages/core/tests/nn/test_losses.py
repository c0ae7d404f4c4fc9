"""Loss cells against MindSpore 2.10 on CPU."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, mint, nn, ops
from mycelia.engine.ops.nn_ops import loss_reduction


def t(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def u(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).uniform(0.05, 0.95, size=shape).astype(np.float32))


def ids(*values):
    return Tensor(np.array(values, np.int32))


def signs(*values):
    return Tensor(np.array(values, np.float32))


A, B, C = t(3, 4), t(3, 4, seed=1), t(3, 4, seed=2)
P, Y = u(3, 4), Tensor((np.random.default_rng(3).random((3, 4)) > 0.5).astype(np.float32))
CLASSES = ids(0, 3, 1)
WEIGHT = Tensor(np.array([1.0, 0.5, 2.0, 0.7], np.float32))
FOCAL_LABELS = ids([[0, 1, 2, 1]], [[2, 2, 0, 1]])

CASES = {}
for _r in ("mean", "sum", "none"):
    CASES |= {
        f"MSELoss {_r}": lambda r=_r: nn.MSELoss(r)(A, B),
        f"L1Loss {_r}": lambda r=_r: nn.L1Loss(r)(A, B),
        f"SmoothL1Loss {_r}": lambda r=_r: nn.SmoothL1Loss(0.5, r)(A, B),
        f"HuberLoss {_r}": lambda r=_r: nn.HuberLoss(r, 0.5)(A, B),
        f"KLDivLoss {_r}": lambda r=_r: nn.KLDivLoss(r)(A, P),
        f"CrossEntropyLoss {_r}": lambda r=_r: nn.CrossEntropyLoss(WEIGHT, 3, r, 0.1)(A, CLASSES),
        f"CrossEntropyLoss probabilities {_r}": lambda r=_r: nn.CrossEntropyLoss(reduction=r)(A, P),
        f"NLLLoss {_r}": lambda r=_r: nn.NLLLoss(WEIGHT, reduction=r)(A, CLASSES),
        f"SoftmaxCrossEntropyWithLogits {_r}": lambda r=_r: nn.SoftmaxCrossEntropyWithLogits(False, r)(A, P),
        f"SoftmaxCrossEntropyWithLogits sparse {_r}": lambda r=_r: nn.SoftmaxCrossEntropyWithLogits(True, r)(
            A, CLASSES
        ),
        f"BCELoss {_r}": lambda r=_r: nn.BCELoss(P, r)(u(3, 4, seed=5), Y),
        f"BCEWithLogitsLoss {_r}": lambda r=_r: nn.BCEWithLogitsLoss(r, P, WEIGHT)(A, Y),
        f"CosineEmbeddingLoss {_r}": lambda r=_r: nn.CosineEmbeddingLoss(0.1, r)(A, B, signs(1, -1, 1)),
        f"MarginRankingLoss {_r}": lambda r=_r: nn.MarginRankingLoss(0.3, r)(A, B, Y * 2 - 1),
        f"HingeEmbeddingLoss {_r}": lambda r=_r: nn.HingeEmbeddingLoss(1.0, r)(A, Y * 2 - 1),
        f"TripletMarginWithDistanceLoss {_r}": lambda r=_r: nn.TripletMarginWithDistanceLoss(
            swap=True, reduction=r
        )(A, B, C),
        f"MultiLabelSoftMarginLoss {_r}": lambda r=_r: nn.MultiLabelSoftMarginLoss(WEIGHT, r)(A, Y),
        f"GaussianNLLLoss {_r}": lambda r=_r: nn.GaussianNLLLoss(full=True, reduction=r)(A, B, P),
        f"PoissonNLLLoss {_r}": lambda r=_r: nn.PoissonNLLLoss(True, True, 1e-8, r)(A, u(3, 4) * 4),
        f"PoissonNLLLoss plain {_r}": lambda r=_r: nn.PoissonNLLLoss(False, False, 1e-8, r)(
            P, u(3, 4, seed=1)
        ),
        f"FocalLoss {_r}": lambda r=_r: nn.FocalLoss(gamma=1.5, reduction=r)(t(2, 3, 4), FOCAL_LABELS),
    }
CASES |= {
    "RMSELoss": lambda: nn.RMSELoss()(A, B),
    "MAELoss": lambda: nn.MAELoss()(A, B),
    "DiceLoss": lambda: nn.DiceLoss(0.1)(P, Y),
    "FocalLoss weighted": lambda: nn.FocalLoss(Tensor(np.array([1.0, 0.5, 2.0], np.float32)))(t(2, 3, 4),
        FOCAL_LABELS),
    "FocalLoss one-hot": lambda: nn.FocalLoss()(A, ids([1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0])),
    "CTCLoss": lambda: nn.CTCLoss()(
        Tensor(np.log(np.random.default_rng(3).dirichlet(np.ones(4), (5, 2)).astype(np.float32))),
        ids([1, 2], [3, 1]), ids(5, 4), ids(2, 1),
    ),
}  # fmt: skip


def summary(output) -> list:
    return [round(v, 5) for v in output.asnumpy().reshape(-1).tolist()]


WANT = {  # computed by MindSpore 2.10
    'MSELoss mean': [1.07475],
    'L1Loss mean': [0.86744],
    'SmoothL1Loss mean': [0.64285],
    'HuberLoss mean': [0.32143],
    'KLDivLoss mean': [-0.17842],
    'CrossEntropyLoss mean': [1.72089],
    'CrossEntropyLoss probabilities mean': [3.48803],
    'NLLLoss mean': [-0.0709],
    'SoftmaxCrossEntropyWithLogits mean': [3.48803],
    'SoftmaxCrossEntropyWithLogits sparse mean': [1.59217],
    'BCELoss mean': [0.60082],
    'BCEWithLogitsLoss mean': [0.40798],
    'CosineEmbeddingLoss mean': [0.84669],
    'MarginRankingLoss mean': [0.43966],
    'HingeEmbeddingLoss mean': [0.68375],
    'TripletMarginWithDistanceLoss mean': [1.51592],
    'MultiLabelSoftMarginLoss mean': [0.8179],
    'GaussianNLLLoss mean': [2.65203],
    'PoissonNLLLoss mean': [2.60181],
    'PoissonNLLLoss plain mean': [1.11253],
    'FocalLoss mean': [0.59539],
    'MSELoss sum': [12.89703],
    'L1Loss sum': [10.40929],
    'SmoothL1Loss sum': [7.71425],
    'HuberLoss sum': [3.85712],
    'KLDivLoss sum': [-2.14104],
    'CrossEntropyLoss sum': [2.58134],
    'CrossEntropyLoss probabilities sum': [10.46409],
    'NLLLoss sum': [-0.15598],
    'SoftmaxCrossEntropyWithLogits sum': [10.46409],
    'SoftmaxCrossEntropyWithLogits sparse sum': [4.77652],
    'BCELoss sum': [7.20984],
    'BCEWithLogitsLoss sum': [4.89571],
    'CosineEmbeddingLoss sum': [2.54006],
    'MarginRankingLoss sum': [5.27598],
    'HingeEmbeddingLoss sum': [8.20498],
    'TripletMarginWithDistanceLoss sum': [4.54776],
    'MultiLabelSoftMarginLoss sum': [2.45369],
    'GaussianNLLLoss sum': [31.82437],
    'PoissonNLLLoss sum': [31.2217],
    'PoissonNLLLoss plain sum': [13.3503],
    'FocalLoss sum': [1.19078],
    'MSELoss none': [0.04834, 0.90959, 0.09609, 1.98263, 2.07655, 0.00719, 3.38911, 0.13393, 1.14128,
        2.43221, 0.42471,
     0.25542],
    'L1Loss none': [0.21985, 0.95372, 0.30999, 1.40806, 1.44103, 0.08478, 1.84095, 0.36596, 1.06831, 1.55955,
        0.6517,
     0.50539],
    'SmoothL1Loss none': [0.04834, 0.70372, 0.09609, 1.15806, 1.19103, 0.00719, 1.59095, 0.13393, 0.81831,
        1.30955, 0.4017,
     0.25539],
    'HuberLoss none': [0.02417, 0.35186, 0.04805, 0.57903, 0.59551, 0.00359, 0.79548, 0.06696, 0.40915,
        0.65478, 0.20085,
     0.12769],
    'KLDivLoss none': [-0.37303, -0.32096, -0.2679, -0.18426, 0.22653, -0.43501, -1.0856, -0.91459, 0.04647,
        1.02587,
     0.29823, -0.15681],
    'CrossEntropyLoss none': [1.47261, 0.0, 1.10873],
    'CrossEntropyLoss probabilities none': [1.62033, 4.90693, 3.93683],
    'NLLLoss none': [-0.12573, -0.66296, 0.63271],
    'SoftmaxCrossEntropyWithLogits none': [1.62033, 4.90693, 3.93683],
    'SoftmaxCrossEntropyWithLogits sparse none': [1.48732, 1.16713, 2.12206],
    'BCELoss none': [0.92832, 0.43958, 0.05785, 0.07656, 0.08112, 0.43799, 0.32221, 0.06722, 1.27574,
        2.65777, 0.79503,
     0.07046],
    'BCEWithLogitsLoss none': [0.47243, 0.18426, 0.07356, 0.02916, 0.36029, 0.77579, 0.92027, 0.90074,
        0.59625, 0.22157, 0.33669,
     0.0247],
    'CosineEmbeddingLoss none': [0.99096, 0.0, 1.5491],
    'MarginRankingLoss none': [0.08015, 0.0, 0.0, 0.0, 0.0, 0.21522, 2.14095, 0.66596, 1.36831, 0.0, 0.0,
        0.80539],
    'HingeEmbeddingLoss none': [0.87427, 1.1321, 0.64042, 0.1049, 1.53567, 0.6384, 0.0, 0.05292, -0.70374,
        2.26542, 1.62327,
     0.04133],
    'TripletMarginWithDistanceLoss none': [0.82417, 2.19797, 1.52563],
    'MultiLabelSoftMarginLoss none': [0.59219, 1.22164, 0.63986],
    'GaussianNLLLoss none': [0.72132, 1.85803, 0.25034, 14.83167, 2.12377, 0.85428, 3.5035, 0.84003, 1.66835,
        2.22556, 1.0682,
     1.8793],
    'PoissonNLLLoss none': [1.9806, 1.04283, 1.67473, 1.08338, 4.18872, 2.58549, 1.61579, 1.44997, 2.8172,
        7.31794, 4.43154,
     1.03352],
    'PoissonNLLLoss plain none': [0.86469, 1.40488, 0.52604, 2.53699, 0.86327, 0.93077, 1.0074, 0.85184,
        0.8756, 0.90015, 0.96121,
     1.62746],
    'FocalLoss none': [0.67808, 0.5127],
    'RMSELoss': [1.0367],
    'MAELoss': [0.86744],
    'DiceLoss': [0.82537],
    'FocalLoss weighted': [0.78014],
    'FocalLoss one-hot': [0.23208],
    'CTCLoss': [4.64821],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_loss_gives_mindspores_numbers(name):
    np.testing.assert_allclose(summary(CASES[name]()), WANT[name], rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(
    "kind", [nn.MSELoss, nn.L1Loss, nn.CrossEntropyLoss, nn.PoissonNLLLoss, nn.FocalLoss]
)
def test_an_unknown_reduction_names_the_known_ones(kind):
    with pytest.raises(ValueError, match="'mean', 'sum', 'none'"):
        kind(reduction="average")


def test_losses_of_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="logits must be"):
        nn.SoftmaxCrossEntropyWithLogits(True)(t(3), CLASSES)
    with pytest.raises(ValueError, match="one shape"):
        nn.DiceLoss()(P, Y[:2])
    with pytest.raises(ValueError, match="FocalLoss"):
        nn.FocalLoss()(t(2, 3, 4), ids([0, 1], [0, 1]))
    with pytest.raises(TypeError, match="margin must be a float"):
        nn.TripletMarginWithDistanceLoss(margin=1)


def test_a_distance_function_of_ones_own():
    loss = nn.TripletMarginWithDistanceLoss(lambda a, b: (a - b).abs().sum(-1), margin=0.5)
    want = np.abs(A.asnumpy() - B.asnumpy()).sum(-1) - np.abs(A.asnumpy() - C.asnumpy()).sum(-1) + 0.5
    np.testing.assert_allclose(loss(A, B, C).asnumpy(), np.maximum(want, 0).mean(), rtol=1e-5)


def test_poisson_loss_has_finite_gradients_where_the_stirling_term_is_not_used():
    loss = nn.PoissonNLLLoss(full=True)
    grads = ms.grad(loss, (0, 1))(t(2, 2), Tensor(np.zeros((2, 2), np.float32)))
    assert all(np.isfinite(g.asnumpy()).all() for g in grads)


def test_loss_base_weights_and_reduces():
    base = nn.LossBase("sum")
    assert float(base.get_loss(Tensor([1.0, 2.0]), 3.0).asnumpy()) == 9.0
    assert base.get_axis(t(2, 3)) == (0, 1)


BROADCASTING = {
    "mse_loss": nn.MSELoss(),
    "l1_loss": nn.L1Loss(),
    "huber_loss": nn.HuberLoss(),
    "hinge_embedding_loss": nn.HingeEmbeddingLoss(),
    "poisson_nll_loss": nn.PoissonNLLLoss(),
    "gaussian_nll_loss": lambda x, y: nn.GaussianNLLLoss()(x, y, ops.ones_like(x)),
    "margin_ranking_loss": lambda x, y: nn.MarginRankingLoss()(x, x, y),
    "cosine_embedding_loss": lambda x, y: nn.CosineEmbeddingLoss()(ops.ones((4, 3)), ops.ones((4, 3)), x),
    "mint": mint.nn.functional.mse_loss,
    "RMSELoss": nn.RMSELoss(),
}


@pytest.mark.parametrize("name", BROADCASTING)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_target_of_another_shape_gives_one_warning_a_line(name, compiled, monkeypatch):
    monkeypatch.setattr(loss_reduction, "_told", set())  # all cases share a line
    function = ms.jit(BROADCASTING[name]) if compiled else BROADCASTING[name]
    column, row = Tensor(np.full((4, 1), 0.5), ms.float32), Tensor(np.full(4, 0.25), ms.float32)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            function(column, row)
    assert len(told) == 1 and "they are broadcast" in str(told[0].message).lower()
    assert told[0].filename == __file__ and "[4" in str(told[0].message)
    if name != "cosine_embedding_loss":
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            function(column, column)


def test_metrics_compare_columns_with_rows_element_by_element():
    for metric in (nn.MAE(), nn.MSE()):
        metric.update(Tensor([[1.0], [2.0]]), Tensor([1.0, 3.0]))
        assert metric.eval() == 0.5


def test_sigmoid_cross_entropy_of_other_shapes_is_refused():
    with pytest.raises(ValueError, match="shapes must be equal"):
        ops.SigmoidCrossEntropyWithLogits()(ops.ones((4, 1)), ops.ones((4,)))
