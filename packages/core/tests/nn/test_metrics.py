"""Metrics against MindSpore 2.10's `mindspore.train` metrics, and their protocol."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, train

a = np.array
R = np.random.default_rng(7)
ONE_HOT = np.eye(3, dtype=int)[R.integers(0, 3, (4, 5))].transpose(0, 2, 1)
TRUTH = np.eye(3, dtype=int)[R.integers(0, 3, (4, 5))].transpose(0, 2, 1)
SCORES = a([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.5, 0.4, 0.1]])
MASK, OTHER = (R.random((7, 9)) > 0.4).astype(int), (R.random((7, 9)) > 0.4).astype(int)
MASK[2:6, 2:7], OTHER[1:5, 3:8] = 1, 1
SOLID, OTHER_SOLID = (R.random((4, 5, 6)) > 0.3).astype(int), (R.random((4, 5, 6)) > 0.4).astype(int)
SMALL, OTHER_SMALL = a([[3, 0, 1], [1, 3, 0], [1, 0, 2]]), a([[0, 2, 1], [1, 2, 1], [0, 0, 1]])
FOUR = a(
    [[0.28, 0.55, 0.15, 0.05], [0.1, 0.2, 0.05, 0.05], [0.2, 0.05, 0.15, 0.05], [0.05, 0.05, 0.05, 0.75]]
)
CANDIDATE = [["i", "have", "a", "pen", "on", "my", "desk"]]
REFERENCE = [
    [["i", "have", "a", "pen", "in", "my", "desk"], ["there", "is", "a", "pen", "on", "the", "desk"]]
]
CANDIDATES = [["the", "cat", "the", "cat", "on", "the", "mat"], ["hello", "world"]]
REFERENCES = [
    [
        ["the", "cat", "is", "on", "the", "mat", "now"],
        ["there", "is", "a", "cat", "on", "the", "mat", "a", "b"],
    ],
    [["hello", "big", "world"]],
]
IMAGE = ((np.arange(60) * 7 % 11).reshape(1, 2, 5, 6) / 10).astype(np.float32)
RATES = [
    "sensitivity", "specificity", "precision", "negative predictive value", "miss rate", "fall out",
    "false discovery rate", "false omission rate", "prevalence threshold", "threat score", "accuracy",
    "balanced accuracy", "f1 score", "matthews correlation coefficient", "fowlkes mallows index",
        "informedness",
    "markedness",
]  # fmt: skip


def of(metric, *updates, **arguments):
    """The value after these updates."""
    metric.clear()
    for update in updates:
        metric.update(*update)
    return metric.eval(**arguments)


class Sums(nn.Cell):
    """Two weighted sums of an image."""

    def __init__(self):
        super().__init__()
        self.w = Tensor((np.arange(2 * 2 * 5 * 6).reshape(2, 2, 5, 6) / 100).astype(np.float32))

    def construct(self, x):
        return (x.expand_dims(1) * self.w).sum((2, 3, 4))


CASES = {
    "Accuracy": lambda: of(train.Accuracy(), (SCORES, a([1, 0, 1, 1])), (SCORES[:1], a([[0, 1, 0]]))),
    "Accuracy multilabel": lambda: of(
        train.Accuracy("multilabel"), (a([[0, 1], [1, 1]]), a([[0, 1], [1, 0]]))
    ),
    "Precision": lambda: of(train.Precision(), (SCORES, a([1, 0, 1, 1]))),
    "Precision mean": lambda: of(train.Precision(), (SCORES, a([1, 0, 1, 1])), average=True),
    "Precision multilabel": lambda: of(
        train.Precision("multilabel"),
        (a([[0.0, 1.0], [1.0, 1.0]]), a([[0.0, 1.0], [1.0, 0.0]])),
        (a([[0.0, 0.0]]), a([[0.0, 1.0]])),
    ),
    "Recall": lambda: of(train.Recall(), (SCORES, a([1, 0, 1, 1]))),
    "Recall multilabel": lambda: of(train.Recall("multilabel"), (a([[0, 1], [1, 1]]), a([[1, 1], [1, 0]]))),
    "F1": lambda: of(train.F1(), (SCORES, a([1, 0, 1, 1]))),
    "F1 mean": lambda: of(train.F1(), (SCORES, a([1, 0, 1, 1])), average=True),
    "Fbeta": lambda: of(train.Fbeta(2.0), (SCORES, a([1, 0, 1, 1]))),
    "TopK": lambda: of(train.TopKCategoricalAccuracy(2), (SCORES, a([1, 1, 1, 1]))),
    "Top1": lambda: of(train.Top1CategoricalAccuracy(), (SCORES, a([1, 0, 1, 1]))),
    "Top5": lambda: of(train.Top5CategoricalAccuracy(), (R_TOP, a([1, 0, 4]))),
    "Loss": lambda: of(train.Loss(), (a(2.0),), (a([4.0]),), (a([5.0, 1.0]),)),
    "MAE": lambda: of(train.MAE(), (FOUR, FOUR.T), (FOUR[:1], FOUR[1:2])),
    "MSE": lambda: of(train.MSE(), (FOUR, FOUR.T), (FOUR[:1], FOUR[1:2])),
    "ConfusionMatrix": lambda: of(train.ConfusionMatrix(2), (a([1, 0, 1, 0]), a([1, 0, 0, 1]))),
    "ConfusionMatrix threshold": lambda: of(
        train.ConfusionMatrix(2, "target", 0.55),
        (a([0.3, 0.8, 0.6, 0.5]), a([1, 0, 0, 1])),
        (a([1, 1]), a([1, 0])),
    ),
    "ConfusionMatrix prediction": lambda: of(
        train.ConfusionMatrix(3, "prediction"), (SCORES, a([1, 0, 1, 2]))
    ),
    "ConfusionMatrix all": lambda: of(train.ConfusionMatrix(3, "all"), (SCORES, a([1, 0, 1, 2]))),
    "ConfusionMatrix empty rows": lambda: of(train.ConfusionMatrix(3, "target"), (a([0, 1]), a([0, 0]))),
    "ROC": lambda: of(train.ROC(pos_label=2), (a([0.28, 0.55, 0.15, 0.05]), a([0, 1, 2, 3]))),
    "ROC of images": lambda: of(train.ROC(pos_label=2), (SMALL, OTHER_SMALL)),
    "ROC classes": lambda: of(train.ROC(class_num=4), (FOUR, a([0, 1, 2, 3]))),
    "auc": lambda: [
        train.auc(a([0, 0.5, 1]), a([0, 0.8, 1])),
        train.auc(a([1, 0.5, 0]), a([1, 0.8, 0])),
        train.auc(a([0, 0.7, 0.5, 1]), a([0, 0.8, 0.6, 1]), True),
    ],
    "Dice": lambda: of(train.Dice(), (a([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), a([[0, 1], [1, 0], [0, 1]]))),
    "Dice updates": lambda: of(train.Dice(1e-3), (FOUR, FOUR.T), (FOUR[:1], FOUR[1:2])),
    "BleuScore": lambda: of(train.BleuScore(), (CANDIDATE, REFERENCE)),
    "BleuScore tie": lambda: of(
        train.BleuScore(1), ([["a", "b", "c"]], [[["a", "b", "c", "d"], ["a", "b"]]])
    ),
    "Perplexity": lambda: of(train.Perplexity(), (a([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), a([1, 0, 1]))),
    "Perplexity ignore": lambda: of(
        train.Perplexity(1), (a([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), a([1, 0, 1]))
    ),
    "Perplexity of nothing": lambda: of(train.Perplexity(), (a([[0.2, 0.0], [0.3, 0.1]]), a([1, 0]))),
    "OcclusionSensitivity": lambda: of(train.OcclusionSensitivity(margin=1), (Sums(), IMAGE, a(1, np.int32))),
    "OcclusionSensitivity box": lambda: of(
        train.OcclusionSensitivity(0.5, 1, 3, [0, 1, 1, 3, 2, 4]), (Sums(), IMAGE, a(0, np.int32))
    ),
}
R_TOP = np.random.default_rng(3).random((3, 8))
for _name in RATES:
    CASES[f"rate {_name}"] = lambda n=_name: of(train.ConfusionMatrixMetric(True, n), (ONE_HOT, TRUTH))
    CASES[f"rate by sample {_name}"] = lambda n=_name: of(
        train.ConfusionMatrixMetric(False, n, True), (ONE_HOT, TRUTH), (ONE_HOT[:2], TRUTH[:2])
    )
CASES["rate sum"] = lambda: of(train.ConfusionMatrixMetric(True, "tpr", True, "sum"), (ONE_HOT, TRUTH))
for _n in (1, 2, 3, 4):
    CASES[f"BleuScore {_n}"] = lambda n=_n: of(
        train.BleuScore(n), (CANDIDATES, REFERENCES), (CANDIDATE, REFERENCE)
    )
    CASES[f"BleuScore smooth {_n}"] = lambda n=_n: of(train.BleuScore(n, True), (CANDIDATES, REFERENCES))
for _similarity in ("cosine", "dot"):
    for _reduction in ("none", "sum", "mean"):
        CASES[f"CosineSimilarity {_similarity} {_reduction}"] = lambda s=_similarity, r=_reduction: [
            of(train.CosineSimilarity(s, r, z), (SMALL,)) for z in (True, False)
        ]
for _d in ("euclidean", "chessboard", "taxicab"):
    for _what, _x, _y, _label in (
        ("small", SMALL, OTHER_SMALL, 0), ("mask", MASK, OTHER, 1), ("solid", SOLID, OTHER_SOLID, 1)
    ):  # fmt: skip
        CASES[f"surfaces {_d} {_what}"] = lambda d=_d, update=(_x, _y, _label): [
            of(metric, update)
            for metric in (
                train.HausdorffDistance(d), train.HausdorffDistance(d, directed=True, crop=False),
                train.HausdorffDistance(d, percentile=70.0), train.MeanSurfaceDistance(False, d),
                train.MeanSurfaceDistance(True, d), train.RootMeanSquareDistance(False, d),
                train.RootMeanSquareDistance(True, d),
            )
        ]  # fmt: skip
CASES["surfaces missing"] = lambda: [
    of(metric, (SMALL, OTHER_SMALL, 3))
    for metric in (train.HausdorffDistance(), train.MeanSurfaceDistance(), train.RootMeanSquareDistance(True))
]


def summary(value):
    if isinstance(value, (list, tuple)):
        return [summary(v) for v in value]
    return (
        [round(v, 9) for v in value.reshape(-1).tolist()]
        if getattr(value, "ndim", 0)
        else round(float(value), 9)
    )


inf, nan = float("inf"), float("nan")
WANT = {  # computed by MindSpore 2.10
    'Accuracy': 0.6,
    'Accuracy multilabel': 0.5,
    'Precision': [0.5, 1.0, 0.0],
    'Precision mean': 0.5,
    'Precision multilabel': [1.0, 0.5, 0.0],
    'Recall': [1.0, 0.333333333, 0.0],
    'Recall multilabel': [0.5, 1.0],
    'F1': [0.666666667, 0.5, 0.0],
    'F1 mean': 0.388888889,
    'Fbeta': [0.833333333, 0.384615385, 0.0],
    'TopK': 0.75,
    'Top1': 0.5,
    'Top5': 0.666666667,
    'Loss': 3.0,
    'MAE': 0.326,
    'MSE': 0.11498,
    'ConfusionMatrix': [1.0, 1.0, 1.0, 1.0],
    'ConfusionMatrix threshold': [0.0, 1.0, 0.666666667, 0.333333333],
    'ConfusionMatrix prediction': [0.5, 0.0, 0.0, 0.0, 1.0, 1.0, 0.5, 0.0, 0.0],
    'ConfusionMatrix all': [0.25, 0.0, 0.0, 0.0, 0.25, 0.25, 0.25, 0.0, 0.0],
    'ConfusionMatrix empty rows': [0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    'ROC': [[0.0, 0.333333333, 0.666666667, 0.666666667, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0],
     [1.55, 0.55, 0.28, 0.15, 0.05]],
    'ROC of images': [[0.0, 0.142857143, 0.285714286, 0.714285714, 1.0], [0.0, 0.5, 0.5, 0.5, 1.0], [4, 3, 2,
        1, 0]],
    'ROC classes': [[[0.0, 0.0, 0.333333333, 0.666666667, 1.0], [0.0, 0.333333333, 0.333333333, 1.0],
      [0.0, 0.333333333, 1.0], [0.0, 0.0, 1.0]],
     [[0.0, 1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]],
     [[1.28, 0.28, 0.2, 0.1, 0.05], [1.55, 0.55, 0.2, 0.05], [1.15, 0.15, 0.05], [1.75, 0.75, 0.05]]],
    'auc': [0.65, 0.65, 0.56],
    'Dice': 0.204677914,
    'Dice updates': 0.290765232,
    'BleuScore': 0.594603558,
    'BleuScore tie': 0.716531311,
    'Perplexity': 2.231443167,
    'Perplexity ignore': 3.333333333,
    'Perplexity of nothing': 182574.185835055,
    'OcclusionSensitivity': [0.0, 0.427000046, 0.61300087, 0.815999985, 1.013999939, 0.513999939,
        0.593999863, 1.3560009,
     1.016000748, 1.436000824, 1.846000671, 0.794000626, 1.09800148, 1.652000427, 1.362001419,
     1.810001373, 1.434000015, 1.125, 0.894001007, 1.192001343, 1.678001404, 2.154001236, 0.926000595,
     1.426000595, 0.642000198, 1.571001053, 2.085000992, 1.654001236, 1.290000916, 1.818000793,
     0.090000153, 1.245000839, 1.709001541, 1.184000015, 1.672000885, 1.457000732, 1.644001007,
     3.716001511, 2.890001297, 2.891000748, 3.895000458, 2.338001251, 2.874000549, 4.422000885,
     2.552000046, 3.631999969, 3.878000259, 3.11400032, 2.357999802, 3.286001205, 3.298000336,
     4.434000015, 2.645999908, 3.829999924, 1.74600029, 2.893001556, 4.10500145, 4.362001419,
     3.48800087, 4.728000641],
    'OcclusionSensitivity box': [-0.033999443, 0.006000519, 0.036000252, 0.012000084, 0.079999924,
        -0.015999794, 0.027999878,
     0.124000549, -0.163999557, -0.050000191, -0.149000168, 0.095000267, -0.328000069, -0.00799942,
     0.138000488, -0.18200016, 0.194000244, -0.373999596],
    'rate sensitivity': [0.15],
    'rate by sample sensitivity': 0.277777778,
    'rate specificity': [0.575],
    'rate by sample specificity': 0.597222222,
    'rate precision': [0.15],
    'rate by sample precision': 0.263888889,
    'rate negative predictive value': [0.575],
    'rate by sample negative predictive value': 0.545833333,
    'rate miss rate': [0.85],
    'rate by sample miss rate': 0.722222222,
    'rate fall out': [0.425],
    'rate by sample fall out': 0.402777778,
    'rate false discovery rate': [0.85],
    'rate by sample false discovery rate': 0.736111111,
    'rate false omission rate': [0.425],
    'rate by sample false omission rate': 0.454166667,
    'rate prevalence threshold': [0.627317733],
    'rate by sample prevalence threshold': 0.66297003,
    'rate threat score': [0.081081081],
    'rate by sample threat score': 0.145833333,
    'rate accuracy': [0.433333333],
    'rate by sample accuracy': 0.433333333,
    'rate balanced accuracy': [0.3625],
    'rate by sample balanced accuracy': 0.4375,
    'rate f1 score': [0.15],
    'rate by sample f1 score': 0.211111111,
    'rate matthews correlation coefficient': [-0.275],
    'rate by sample matthews correlation coefficient': -0.046191186,
    'rate fowlkes mallows index': [0.15],
    'rate by sample fowlkes mallows index': 0.337764333,
    'rate informedness': [-0.275],
    'rate by sample informedness': -0.125,
    'rate markedness': [-0.275],
    'rate by sample markedness': -0.090277778,
    'rate sum': 1.833333333,
    'BleuScore 1': 0.82198643,
    'BleuScore smooth 1': 0.715871453,
    'BleuScore 2': 0.731156255,
    'BleuScore smooth 2': 0.632746949,
    'BleuScore 3': 0.630883254,
    'BleuScore smooth 3': 0.563713446,
    'BleuScore 4': 0.492788882,
    'BleuScore smooth 4': 0.503205127,
    'CosineSimilarity cosine none': [[0.0, 0.3, 0.707106781, 0.3, 0.0, 0.141421356, 0.707106781, 0.141421356,
        0.0],
     [1.0, 0.3, 0.707106781, 0.3, 1.0, 0.141421356, 0.707106781, 0.141421356, 1.0]],
    'CosineSimilarity cosine sum': [[1.007106781, 0.441421356, 0.848528137], [2.007106781, 1.441421356,
        1.848528137]],
    'CosineSimilarity cosine mean': [[0.33570226, 0.147140452, 0.282842712], [0.669035594, 0.480473785,
        0.616176046]],
    'CosineSimilarity dot none': [[0, 3, 5, 3, 0, 1, 5, 1, 0], [10, 3, 5, 3, 10, 1, 5, 1, 5]],
    'CosineSimilarity dot sum': [[8, 4, 6], [18, 14, 11]],
    'CosineSimilarity dot mean': [[2.666666667, 1.333333333, 2.0], [6.0, 4.666666667, 3.666666667]],
    'surfaces euclidean small': [1.414213562, 1.414213562, 1.165685425, 0.804737854, 0.73570226, 1.0,
        0.912870929],
    'surfaces euclidean mask': [1.414213562, 1.414213562, 1.0, 0.419194174, 0.458437811, 0.4375, 0.68956998],
    'surfaces euclidean solid': [1.414213562, 1.0, 1.0, 0.4625, 0.422657345, 0.4625, 0.653377513],
    'surfaces chessboard small': [1.0, 1.0, 1.0, 0.666666667, 0.666666667, 0.666666667, 0.816496581],
    'surfaces chessboard mask': [1.0, 1.0, 1.0, 0.40625, 0.446368243, 0.40625, 0.668107958],
    'surfaces chessboard solid': [1.0, 1.0, 1.0, 0.4625, 0.419655797, 0.4625, 0.647808457],
    'surfaces taxicab small': [2.0, 2.0, 1.4, 1.0, 0.833333333, 1.666666667, 1.08012345],
    'surfaces taxicab mask': [2.0, 2.0, 1.0, 0.4375, 0.475506757, 0.5, 0.730605081],
    'surfaces taxicab solid': [2.0, 1.0, 1.0, 0.4625, 0.426902174, 0.4625, 0.664375592],
    'surfaces missing': [inf, inf, inf],
}  # fmt: skip


def flat(value) -> list:
    return [v for part in value for v in flat(part)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", CASES)
def test_metric_gives_mindspores_value(name):
    rtol = 5e-6 if name.startswith("Occlusion") else 1e-6  # differences of float32 scores
    np.testing.assert_allclose(flat(summary(CASES[name]())), flat(WANT[name]), rtol=rtol, atol=rtol)


# ---- what MindSpore has no value for -----------------------------------------------------------------------


def test_rates_by_sample_channel_or_neither():
    counts = [
        train.ConfusionMatrixMetric(True, "tpr", True, d)
        for d in ("none", "mean_batch", "sum_batch", "mean_channel")
    ]
    none, mean_batch, sum_batch, mean_channel = (of(m, (ONE_HOT, TRUTH), (ONE_HOT, TRUTH)) for m in counts)
    assert none.shape == (8, 3)
    np.testing.assert_allclose(mean_batch, np.nanmean(none, 0))
    np.testing.assert_allclose(sum_batch, np.nansum(none, 0))
    np.testing.assert_allclose(mean_channel, np.nanmean(none, 1))


def test_skip_channel_false_leaves_the_first_channel_out():
    assert of(train.ConfusionMatrixMetric(False, "acc"), (ONE_HOT, TRUTH)) == of(
        train.ConfusionMatrixMetric(True, "acc"), (ONE_HOT[:, 1:], TRUTH[:, 1:])
    )


def test_rates_have_aliases():
    for alias, name in {
        "tpr": "sensitivity",
        "hit_rate": "recall",
        "CSI": "threat score",
        "mk": "deltap",
    }.items():
        first = of(train.ConfusionMatrixMetric(True, alias), (ONE_HOT, TRUTH))
        assert first == of(train.ConfusionMatrixMetric(True, name), (ONE_HOT, TRUTH))
    with pytest.raises(NotImplementedError, match="not known"):
        train.ConfusionMatrixMetric(metric_name="goodness")


def test_roc_of_two_classes_uses_each_classes_scores():
    fpr, tpr, thresholds = of(train.ROC(class_num=2), (a([[0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]), a([0, 1, 0])))
    assert [t.tolist() for t in thresholds] == [[1.7, 0.7, 0.4, 0.2], [1.8, 0.8, 0.6, 0.3]]
    assert fpr[0].tolist() == [0, 0, 0, 1] and tpr[1].tolist() == [0, 1, 1, 1]


def test_auc_of_several_curves():
    assert train.auc([a([0, 0.5, 1]), a([0, 1.0])], [a([0, 0.8, 1]), a([0.0, 1])]) == [0.65, 0.5]


def test_surface_metrics_take_tensors_and_float_labels():
    update = (Tensor(SMALL), Tensor(OTHER_SMALL), 1.0)
    assert of(train.HausdorffDistance(), update) == of(train.HausdorffDistance(), (SMALL, OTHER_SMALL, 1))


def test_occlusion_margin_per_dimension():
    whole = of(train.OcclusionSensitivity(margin=[1, 1, 1]), (Sums(), IMAGE, a(1)))
    np.testing.assert_array_equal(
        whole, of(train.OcclusionSensitivity(margin=1, n_batch=7), (Sums(), IMAGE, a([1])))
    )


# ---- protocol ----------------------------------------------------------------------------------------------


NAMES = [
    "F1", "acc", "accuracy", "auc", "bleu_score", "confusion_matrix", "confusion_matrix_metric",
        "cosine_similarity",
    "dice", "hausdorff_distance", "loss", "mae", "mean_surface_distance", "mse", "occlusion_sensitivity",
        "perplexity",
    "precision", "recall", "roc", "root_mean_square_distance", "top_1_accuracy", "top_5_accuracy", "topk",
]  # fmt: skip


def test_metrics_have_mindspores_names():
    assert set(NAMES) <= set(train.names())
    needs = {"confusion_matrix": (3,), "topk": (2,)}
    for name in NAMES:
        if name != "auc":
            assert isinstance(train.get_metric_fn(name, *needs.get(name, ())), train.Metric)
    with pytest.raises(KeyError, match="known are"):
        train.get_metric_fn("goodness")
    assert ms.ROC is train.ROC is nn.ROC is train.metrics.ROC


DISTANCES = ("mean_surface_distance", "root_mean_square_distance")
LEFT_OUT = ("auc", "confusion_matrix", "topk", *DISTANCES)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in LEFT_OUT])
def test_eval_before_update_is_refused(name):
    with pytest.raises(RuntimeError, match="before any update"):
        train.get_metric_fn(name).eval()


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_before_update_are_infinite(name):
    assert train.get_metric_fn(name).eval() == float("inf")


@pytest.mark.parametrize(
    "metric", [train.Accuracy, train.MAE, train.Dice, train.Loss, train.CosineSimilarity]
)
def test_inputs_are_tensors_arrays_or_lists(metric):
    metric = metric()
    given = [2] if isinstance(metric, (train.Loss, train.CosineSimilarity)) else [(1, 0), 3]
    with pytest.raises(TypeError, match="the input data type must be tensor, list or numpy.ndarray, but got"):
        metric.update(*given)


def test_set_indexes_chooses_arguments():
    metric = train.Accuracy().set_indexes([2, 0])
    metric.update(a([1, 0, 1, 1]), "unused", SCORES)
    assert metric.eval() == 0.5 and metric.indexes == [2, 0]
    with pytest.raises(ValueError, match="need more than"):
        metric.update(SCORES)
    with pytest.raises(ValueError, match="must be a list and all its elements must be int"):
        metric.set_indexes([1.0])


def test_calling_a_metric_evaluates_one_batch():
    metric = train.MAE()
    assert metric(a([[1.0]]), a([[3.0]])) == 2.0 == metric(Tensor([[1.0]]), [[3.0]])


def test_a_metric_of_ones_own():
    class Count(train.Metric):
        def clear(self):
            self.n = 0

        @train.rearrange_inputs
        def update(self, *inputs):
            self.n += len(inputs)

        def eval(self):
            return self.n

    assert Count().set_indexes([0, 1])(1, 2, 3) == 2


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (TypeError, lambda: train.Accuracy("regression")),
        (ValueError, lambda: of(train.Accuracy(), (SCORES,))),
        (ValueError, lambda: of(train.Accuracy(), (SCORES, a([0, 1, 2, 3])))),
        (ValueError, lambda: of(train.Accuracy(), (SCORES, a([0, 1])))),
        (TypeError, lambda: of(train.Accuracy(), (SCORES, "labels"))),
        (ValueError, lambda: of(train.Precision(), (SCORES, a([0, 1, 2, 2])), (FOUR, a([0, 1, 2, 2])))),
        (ValueError, lambda: train.Fbeta(0)),
        (ValueError, lambda: train.TopKCategoricalAccuracy(0)),
        (TypeError, lambda: train.TopKCategoricalAccuracy(1.5)),
        (ValueError, lambda: of(train.Loss(), (a([[1.0, 2.0]]),))),
        (ValueError, lambda: of(train.Loss(), (a([]),))),
        (ValueError, lambda: train.ConfusionMatrix(2, "rows")),
        (ValueError, lambda: train.ConfusionMatrix(0)),
        (ValueError, lambda: of(train.ConfusionMatrix(2), (a([0, 2]), a([0, 1])))),
        (ValueError, lambda: of(train.ConfusionMatrix(2), (a([0, 1]), a([0])))),
        (ValueError, lambda: train.ConfusionMatrixMetric(decrease="max")),
        (ValueError, lambda: of(train.ConfusionMatrixMetric(), (FOUR, FOUR))),
        (ValueError, lambda: of(train.ConfusionMatrixMetric(), (a([1, 0]), a([1, 0])))),
        (ValueError, lambda: of(train.ROC(), (a([0.1, 0.4]), a([1, 1])))),
        (ValueError, lambda: of(train.ROC(), (a([0.1, 0.4]), a([0, 0])))),
        (ValueError, lambda: of(train.ROC(3), (FOUR, a([0, 1, 2, 3])))),
        (ValueError, lambda: train.auc(a([0, 0.7, 0.5]), a([0, 1, 1]))),
        (ValueError, lambda: train.auc(a([0.0]), a([1.0]))),
        (TypeError, lambda: train.Dice(1)),
        (ValueError, lambda: of(train.Dice(), (FOUR, FOUR[:1]))),
        (TypeError, lambda: train.HausdorffDistance(percentile=50)),
        (ValueError, lambda: train.HausdorffDistance(percentile=101.0)),
        (ValueError, lambda: train.HausdorffDistance("manhattan")),
        (ValueError, lambda: of(train.HausdorffDistance(), (SMALL, OTHER_SMALL, 5))),
        (ValueError, lambda: of(train.HausdorffDistance(), (SMALL, OTHER_SMALL[:2], 1))),
        (ValueError, lambda: of(train.MeanSurfaceDistance(), (SMALL, OTHER_SMALL))),
        (TypeError, lambda: of(train.RootMeanSquareDistance(), (SMALL, OTHER_SMALL, "1"))),
        (ValueError, lambda: train.BleuScore(5)),
        (ValueError, lambda: of(train.BleuScore(), (CANDIDATE, REFERENCES))),
        (ValueError, lambda: train.CosineSimilarity("angle")),
        (ValueError, lambda: of(train.CosineSimilarity(), (a([1, 2]),))),
        (RuntimeError, lambda: of(train.Perplexity(), (FOUR, a([0, 1])))),
        (RuntimeError, lambda: of(train.Perplexity(0), (FOUR, a([0, 0, 0, 0])))),
        (ValueError, lambda: of(train.Perplexity(), (FOUR, a([0, 0, 0, 9])))),
        (RuntimeError, lambda: of(train.OcclusionSensitivity(), (Sums(), np.repeat(IMAGE, 2, 0), a(1)))),
        (RuntimeError, lambda: of(train.OcclusionSensitivity(), (Sums(), IMAGE, a([1, 0])))),
        (ValueError, lambda: of(train.OcclusionSensitivity(b_box=[0, 9]), (Sums(), IMAGE, a(1)))),
        (TypeError, lambda: train.OcclusionSensitivity(margin="2")),
        (TypeError, lambda: train.OcclusionSensitivity(pad_val="0")),
    ],
)  # fmt: skip
def test_what_a_metric_cannot_take_is_refused(kind, wrong):
    with pytest.raises(kind):
        wrong()
