"""Metrics beyond MindSpore's, against their definitions written out, and the merging of all metrics."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mycelia import Tensor, nn, train

R = np.random.default_rng(3)
SCORES = np.round(R.random(60), 1)  # with ties
BINARY = (R.random(60) < SCORES).astype(int)
PARTS = R.dirichlet(np.ones(3), 60)
CLASSES = np.array([R.choice(3, p=p) for p in PARTS])
SAID = PARTS.argmax(1)
ONE_HOT = np.eye(3)[CLASSES]


def of(metric, *inputs):
    metric.clear()
    for at in (slice(0, 20), slice(20, None)):  # in two updates
        metric.update(*(Tensor(one[at]) for one in inputs))
    return metric.eval()


def area(scores, positive) -> float:
    """The chance that a positive one is above a negative one."""
    pairs = list(itertools.product(scores[positive == 1], scores[positive == 0]))
    return sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs)


def average_precision(scores, positive) -> float:
    found, before = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        taken = scores >= threshold
        recall = (positive[taken] == 1).sum() / (positive == 1).sum()
        found += (recall - before) * (positive[taken] == 1).mean()
        before = recall
    return found


@pytest.mark.parametrize("kind, want", [(train.AUROC, area), (train.AveragePrecision, average_precision)])
def test_areas_under_curves(kind, want):
    assert of(kind(), SCORES, BINARY) == pytest.approx(want(SCORES, BINARY))
    each = [want(PARTS[:, c], ONE_HOT[:, c]) for c in range(3)]
    np.testing.assert_allclose(of(kind("none"), PARTS, CLASSES), each)
    assert of(kind(), PARTS, CLASSES) == pytest.approx(np.mean(each))
    assert of(kind("micro"), PARTS, CLASSES) == pytest.approx(want(PARTS.ravel(), ONE_HOT.ravel()))
    assert math.isnan(of(kind(), SCORES, np.zeros(60, int)))
    few = np.where(CLASSES == 2, 0, CLASSES)  # a class that does not occur is no part of the mean
    each = [want(PARTS[:, c], np.eye(3)[few][:, c]) for c in range(2)]
    assert of(kind(), PARTS, few) == pytest.approx(np.mean(each))


def test_log_loss_and_calibration():
    chosen = np.where(BINARY == 1, SCORES, 1 - SCORES).clip(1e-15, 1 - 1e-15)
    assert of(train.LogLoss(), SCORES, BINARY) == pytest.approx(-np.log(chosen).mean())
    assert of(train.LogLoss(), 3 * PARTS, CLASSES) == pytest.approx(
        np.mean([-math.log(p[c]) for p, c in zip(PARTS, CLASSES)])
    )
    want = 0.0
    for low in np.arange(10) / 10:
        held = (PARTS.max(1) > low) & (PARTS.max(1) <= low + 0.1)
        if held.any():
            right = (SAID[held] == CLASSES[held]).mean()
            want += held.mean() * abs(PARTS.max(1)[held].mean() - right)
    assert of(train.CalibrationError(10), PARTS, CLASSES) == pytest.approx(want)
    assert of(train.CalibrationError(), np.ones(60), np.zeros(60, int)) == 1


def test_agreement_of_classes():
    each = [((SAID == c) & (CLASSES == c)).sum() / ((SAID == c) | (CLASSES == c)).sum() for c in range(3)]
    iou = of(train.IoU(4), SAID, CLASSES)
    np.testing.assert_allclose(iou[:3], each)
    assert math.isnan(iou[3]) and of(train.MeanIoU(4), SAID, CLASSES) == pytest.approx(np.mean(each))
    x, y = np.eye(3)[SAID], ONE_HOT
    x, y = (x - x.mean(0)).ravel(), (y - y.mean(0)).ravel()
    want = x @ y / math.sqrt((x @ x) * (y @ y))
    assert of(train.MatthewsCorrelation(3), SAID, CLASSES) == pytest.approx(want)
    assert of(train.MatthewsCorrelation(3), SAID * 0, CLASSES) == 0
    for weights, cost in ((None, np.sign), ("linear", abs), ("quadratic", np.square)):
        seen = np.mean(cost(abs(SAID - CLASSES)))
        chance = np.mean(cost(abs(SAID[:, None] - CLASSES)))
        assert of(train.CohenKappa(3, weights), SAID, CLASSES) == pytest.approx(1 - seen / chance)


def test_agreement_of_numbers():
    a, b = SCORES, SCORES**2 + np.round(R.random(60), 1)
    assert of(train.R2Score(), a, b) == pytest.approx(1 - ((a - b) ** 2).mean() / b.var())
    ranks = [[(one < v).sum() + ((one == v).sum() + 1) / 2 for v in one] for one in (a, b)]
    assert of(train.SpearmanCorrelation(), a, b) == pytest.approx(np.corrcoef(ranks)[0, 1])
    assert of(train.SpearmanCorrelation(), a, np.exp(a)) == pytest.approx(1)
    some = np.where(np.arange(len(a)) == 1, np.nan, a)
    assert math.isnan(of(train.SpearmanCorrelation(), some, a))
    assert math.isnan(of(train.R2Score(), a, a * 0)) and math.isnan(of(train.SpearmanCorrelation(), a * 0, a))


def test_metrics_of_sentences():
    said, meant = ["the cat sat on mat", "so"], ["the cat sat on the mat", "so it was"]
    assert train.WordErrorRate()(said, meant) == 3 / 9
    assert train.WordErrorRate()([["a", "x", "c"]], [["a", "b"]]) == 1
    assert train.CharacterErrorRate()("kitten", "sitting") == 3 / 7
    pair = "police kill the gunman", "police killed the gunman"
    assert [train.RougeScore(kind)(*pair) for kind in ("rouge1", "rouge2", "rougeL")] == [0.75, 1 / 3, 0.75]
    assert train.RougeScore("rouge4")(said, meant) == (2 * 1 / (2 + 3) + 0) / 2
    with pytest.raises(RuntimeError):
        train.WordErrorRate()([""], [""])


def test_metrics_of_images():
    image = R.random((3, 1, 16, 16)).astype(np.float32)
    other = np.clip(image + 0.1, 0, 1)
    each = -10 * np.log10(np.square(image - other).mean((1, 2, 3)))
    assert train.PeakSignalNoiseRatio()(image, other) == pytest.approx(each.mean(), rel=1e-5)
    assert train.StructuralSimilarity()(image, image) == pytest.approx(1)
    assert train.PeakSignalNoiseRatio()(image, image) == math.inf


def test_dice_of_each_sample():
    a, b = R.random((5, 4)), R.random((5, 4))
    each = 2 * (a * b).sum(1) / ((a * a).sum(1) + (b * b).sum(1) + 1e-5)
    assert train.Dice(per_sample=True)(Tensor(a), Tensor(b)) == pytest.approx(each.mean())
    with pytest.raises(TypeError):
        train.Dice(per_sample=1)


# ---- merging -----------------------------------------------------------------------------------------------

BITS = (R.random((60, 3)) > 0.5).astype(np.float32)
IMAGES = R.random((60, 1, 12, 12)).astype(np.float32)
WORDS = [" ".join(R.choice(list("abcd"), 6)) for _ in range(60)]
CASES = {
    "Accuracy": (train.Accuracy, PARTS, CLASSES), "Precision": (train.Precision, PARTS, CLASSES),
    "Recall of rows": (lambda: train.Recall("multilabel"), BITS, np.roll(BITS, 1, 0)),
    "F1": (train.F1, PARTS, CLASSES), "top 2": (lambda: train.TopKCategoricalAccuracy(2), PARTS, CLASSES),
    "MAE": (train.MAE, PARTS, ONE_HOT), "MSE": (train.MSE, PARTS, ONE_HOT), "Loss": (train.Loss, SCORES),
    "Perplexity": (train.Perplexity, PARTS, CLASSES),
    "ConfusionMatrix": (lambda: train.ConfusionMatrix(3), SAID, CLASSES),
    "ConfusionMatrixMetric": (train.ConfusionMatrixMetric, np.eye(3)[SAID], ONE_HOT),
    "Dice": (lambda: train.Dice(per_sample=True), PARTS, ONE_HOT), "AUROC": (train.AUROC, PARTS, CLASSES),
    "AveragePrecision": (train.AveragePrecision, SCORES, BINARY), "LogLoss": (train.LogLoss, PARTS, CLASSES),
    "CalibrationError": (train.CalibrationError, PARTS, CLASSES),
    "IoU": (lambda: train.IoU(3), SAID, CLASSES), "MeanIoU": (lambda: train.MeanIoU(3), SAID, CLASSES),
    "MCC": (lambda: train.MatthewsCorrelation(3), SAID, CLASSES),
    "Kappa": (lambda: train.CohenKappa(3), SAID, CLASSES),
    "R2Score": (train.R2Score, SCORES, BINARY), "Spearman": (train.SpearmanCorrelation, SCORES, BINARY),
    "SSIM": (train.StructuralSimilarity, IMAGES, IMAGES[::-1].copy()),
    "PSNR": (train.PeakSignalNoiseRatio, IMAGES, IMAGES[::-1].copy()),
    "WordErrorRate": (train.WordErrorRate, WORDS, WORDS[::-1]),
    "RougeScore": (train.RougeScore, WORDS, WORDS[::-1]),
    "BleuScore": (
        lambda: train.BleuScore(2), [w.split() for w in WORDS], [[w.split()] for w in WORDS[::-1]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_workers_that_saw_a_part_each_come_to_the_value_of_one_that_saw_all(name):
    make, *inputs = CASES[name]

    def seen(*parts):
        metric = make()
        for at in parts:
            metric.update(*(one[at] for one in inputs))
        return metric

    first, second = slice(0, 25), slice(25, 60)
    want = seen(first, second).eval()
    of_empty = make().merge(seen(first)).merge(seen(second).merge(make()))
    for merged in (seen(first).merge(seen(second)), of_empty):
        np.testing.assert_allclose(merged.eval(), want, rtol=1e-12)
    with pytest.raises(RuntimeError):
        make().merge(make()).eval()


def test_an_update_that_replaces_does_so_when_merged():
    for make in (train.ROC, train.CosineSimilarity):
        first, second = make(), make()
        pairs = [(SCORES[at], BINARY[at]) for at in (slice(0, 30), slice(30, 60))]
        if make is train.CosineSimilarity:
            pairs = [(PARTS[:4],), (PARTS[4:8],)]
        first.update(*pairs[0])
        second.update(*pairs[1])
        want = np.concatenate([np.ravel(one) for one in second.eval()])
        found = first.merge(second).merge(make()).eval()
        np.testing.assert_array_equal(np.concatenate([np.ravel(one) for one in found]), want)


def test_what_cannot_be_merged_is_refused():
    class Own(nn.Metric):
        def eval(self):
            return 0

    with pytest.raises(TypeError, match="takes a Accuracy"):
        train.Accuracy().merge(train.Precision())
    with pytest.raises(ValueError, match="settings"):
        train.IoU(3).merge(train.IoU(4))
    with pytest.raises(NotImplementedError, match=r"merge\(\)"):
        Own().merge(Own())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: train.AUROC("mean"),
        lambda: train.AUROC()(PARTS, ONE_HOT),
        lambda: train.AUROC()(PARTS, CLASSES + 1),
        lambda: train.AUROC()(SCORES, CLASSES),
        lambda: [m := train.AUROC(), m.update(SCORES, BINARY), m.update(PARTS, CLASSES)],
        lambda: train.LogLoss(0.0),
        lambda: train.LogLoss()(-SCORES, BINARY),
        lambda: train.CalibrationError(0),
        lambda: train.CohenKappa(3, "cubic"),
        lambda: train.R2Score()(PARTS, CLASSES),
        lambda: train.RougeScore("rouge9"),
        lambda: train.WordErrorRate()(["a"], ["a", "b"]),
        lambda: train.WordErrorRate()(["a"]),
    ],
)
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(ValueError):
        wrong()


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([0.2, np.nan], [0, 1], "some are NaN"),
        ([1.0, 0.0], [0.7, 0.2], r"whole numbers, but one is 0\.7"),
        ([0.2, 0.8], [0, np.nan], "whole numbers, but one is nan"),
        ([0.2, 0.8], [0, 2], r"labels must be in \[0, 2\), but got 0 to 2"),
        ([0.2, 0.8], [0, np.inf], r"labels must be in \[0, 2\), but got 0.0 to inf"),
    ],
)
def test_scores_and_labels_that_have_no_meaning_are_refused(scores, labels, message):
    """The second ones came the wrong way round."""
    with pytest.raises(ValueError, match=message):
        train.AUROC().update(np.array(scores), np.array(labels))
