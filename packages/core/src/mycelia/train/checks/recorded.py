"""Checks of what a training recorded into a summary folder: curves and histograms, finished or still running.

They have the numbers of the checks that look at a training itself, where they answer the same question, and
rc.01 to rc.03 for what records alone tell: weights that grow, layers that are dead, sizes of gradients.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np

from mycelia.train.checks.results import FOUND, NEEDS_YOU, NOT_FOUND, Result, Said, listed
from mycelia.train.checks.summaries import Curve, Histogram, Summaries

_PART = re.compile(r"[^a-z0-9]+")
_EVALUATED = {"val", "eval", "test", "valid", "validation", "dev"}
_WEIGHTS = re.compile(r"\.(weight|bias|gamma|beta|embedding_table)$|^(weight|bias)$")
_POINTS = 8  # of a curve, at least, for what is said of its course
_SEGMENTS = 10  # whose means are compared
_SURE = 3.0  # standard errors by which means must differ
_EXPLODED, _VANISHED = (
    1e3,
    1e-9,
)  # root mean square of gradients; MindSpore's gradient_vanishing asks the latter
_STILL = 0.05  # share of their size that weights move in a training that gets anywhere

#: By number: the title, and what judges a folder.
RECORDED: dict[str, tuple[str, Callable[[Summaries], Said]]] = {}


def _check(number: str, title: str) -> Callable:
    def register(function: Callable[[Summaries], Said]) -> Callable[[Summaries], Said]:
        RECORDED[number] = title, function
        return function

    return register


def examine_recorded(summaries: Summaries) -> list[Result]:
    """Every check of a folder, in order of their numbers."""
    return [Result(n, title, *judge(summaries)) for n, (title, judge) in sorted(RECORDED.items())]


# ---- what there is -----------------------------------------------------------------------------------------


def _parts(tag: str) -> set[str]:
    return set(_PART.split(tag.lower()))


def _losses(summaries: Summaries, evaluated: bool = False) -> list[Curve]:
    """The curves of losses, of training or of evaluation."""
    return [
        curve for tag, curve in summaries.curves.items()
        if any("loss" in part for part in _parts(tag)) and not _is_scale(tag)
        and bool(_parts(tag) & _EVALUATED) == evaluated
    ]  # fmt: skip


def _is_scale(tag: str) -> bool:
    return "scale" in _parts(tag) or "scale_sense" in tag.lower()


def _rates(summaries: Summaries) -> list[Curve]:
    wanted = lambda tag: "lr" in _parts(tag) or {"learning", "rate"} <= _parts(tag)
    return [curve for tag, curve in summaries.curves.items() if wanted(tag)]


def _name(tag: str) -> str:
    """Of a tensor: without what the collector adds."""
    return tag.removesuffix("/auto")


def _histograms(summaries: Summaries, kind: str) -> dict[str, list[tuple[int, Histogram]]]:
    """Of "gradients", "weights" or "activations", by name."""
    found = {}
    for tag, rows in summaries.histograms.items():
        name = _name(tag)
        is_gradient = any(part.startswith("grad") for part in _parts(tag))
        own = "gradients" if is_gradient else "weights" if _WEIGHTS.search(name) else "activations"
        if own == kind:
            found[name] = rows
    return found


def _means(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard errors of up to ten equal parts of a curve."""
    parts = np.array_split(curve.values.astype(np.float64), min(_SEGMENTS, len(curve) // 2))
    means = np.asarray([p.mean() for p in parts])
    return means, np.asarray([p.std(ddof=1) / math.sqrt(len(p)) for p in parts])


# ---- losses ------------------------------------------------------------------------------------------------


@_check("cg.04", "loss")
def _loss(summaries: Summaries) -> Said:
    curves = _losses(summaries)
    if not curves:
        return NEEDS_YOU, "no curve of a loss is recorded; SummaryCollector records one"
    said = [_course(curve) for curve in curves]
    return next((s for s in said if s[0] == FOUND), said[0])


def _course(curve: Curve) -> Said:
    """What becomes of a loss."""
    bad = np.flatnonzero(~np.isfinite(curve.values))
    if bad.size:
        first = int(bad[0])
        before = f", {curve.values[first - 1]:.4g} at step {curve.steps[first - 1]} before" if first else ""
        return FOUND, f"{curve.tag} is {curve.values[first]} at step {curve.steps[first]}{before}"
    if len(curve) < _POINTS:
        return NEEDS_YOU, f"{curve.tag} has {len(curve)} values, too few to tell its course"
    values = curve.values
    if (values == values[0]).all():
        return FOUND, f"{curve.tag} is {values[0]:.6g} at all {len(curve)} steps"
    means, deviations = _means(curve)
    lowest = int(means.argmin())
    sure = _SURE * math.hypot(deviations[lowest], deviations[-1])
    where = f"step {curve.steps[-1]}"
    fall = means[0] - means[lowest]
    if means[-1] - means[lowest] > max(sure, 0.5 * abs(fall)):
        part = np.array_split(curve.steps, len(means))[lowest]
        return FOUND, (
            f"{curve.tag} diverges: {means[lowest]:.4g} around step {part[len(part) // 2]}, "
            f"{means[-1]:.4g} at the end, {where}"
        )
    noise = _SURE * math.hypot(deviations[0], deviations[-1])
    if means[0] - means[-1] <= max(noise, 0.01 * abs(means[0])):
        return (
            FOUND,
            f"{curve.tag} does not fall: {means[0]:.4g} first, {means[-1]:.4g} at {where}{_guess(means[-1])}",
        )
    return NOT_FOUND, f"{curve.tag} falls from {means[0]:.4g} to {means[-1]:.4g} at {where}"


def _guess(loss: float) -> str:
    """A hint if a loss is that of guessing among classes."""
    classes = round(math.exp(loss)) if 0.5 < loss < 12 else 0
    if classes >= 2 and abs(math.log(classes) - loss) < 0.01 * loss and classes <= 1000:
        return f", as of guesses among {classes} classes (ln {classes} = {math.log(classes):.4g})"
    return ""


@_check("hp.01", "learning rate")
def _learning_rate(summaries: Summaries) -> Said:
    curves = [c.finite for c in _losses(summaries) if len(c.finite) >= _POINTS]
    if not curves:
        return NEEDS_YOU, "no curve of a loss has enough values"
    rate = _rate_text(summaries)
    for curve in curves:
        found = _too_high(curve) or _too_low(curve)
        if found:
            return FOUND, f"{rate}{found}"
    moved = max(((c, n) for n, c in _changes(summaries) if n.endswith("weight")), default=None)
    if moved is not None and moved[0] < _STILL and _course(curves[0])[0] == FOUND:
        share, name = moved
        text = f"{curves[0].tag} does not fall, and no weights move: {name} most"
        return FOUND, f"{rate}too low: {text}, by {100 * share:.2g} % of its size"
    return NOT_FOUND, f"{rate}{curves[0].tag} neither jumps nor creeps"


def _rate_text(summaries: Summaries) -> str:
    for curve in _rates(summaries):
        if len(curve):
            return f"{curve.tag} from {curve.values[0]:.3g} to {curve.values[-1]:.3g}; "
    if "learning_rate" in summaries.facts:
        return f"rate {summaries.facts['learning_rate']:.3g}; "
    return ""


def _too_high(curve: Curve) -> str:
    """A loss that shoots up at the beginning, or jumps again and again."""
    values = curve.values.astype(np.float64)
    start = values[0]
    peak = int(values[: max(3, len(values) // 5)].argmax())
    if start > 0 and values[peak] > 3 * start:
        return (
            f"too high: {curve.tag} rises from {start:.4g} to {values[peak]:.4g} at step {curve.steps[peak]}"
        )
    jumps = _jumps(values)
    if len(jumps) >= max(3, len(values) // 20):
        k = int(jumps[np.argmax(values[jumps])])
        return (
            f"too high: {curve.tag} jumps {len(jumps)} times, to {values[k]:.4g} at step {curve.steps[k]} "
            f"from {values[k - 1]:.4g} at {curve.steps[k - 1]}"
        )
    return ""


def _jumps(values: np.ndarray) -> np.ndarray:
    """Where values are far above those around them: by 10 deviations of these."""
    around = 5
    padded = np.pad(values, around, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * around + 1)
    middle = np.median(windows, axis=1)
    spread = 1.4826 * np.median(np.abs(windows - middle[:, None]), axis=1)  # a deviation, if it were normal
    return np.flatnonzero((values - middle > 10 * spread) & (values > 2 * np.abs(middle)))


def _too_low(curve: Curve) -> str:
    """A loss that falls all the time, equally slowly."""
    half = len(curve) // 2
    means, deviations = _means(curve)
    fall = means[0] - means[-1]
    if fall <= _SURE * math.hypot(deviations[0], deviations[-1]) or fall > 0.25 * abs(means[0]):
        return ""
    slopes = [-np.polyfit(curve.steps[s], curve.values[s], 1)[0] for s in (slice(half), slice(half, None))]
    if slopes[0] > 0 and slopes[1] > 0.5 * slopes[0]:
        return (
            f"too low: {curve.tag} falls by {fall:.3g}, from {means[0]:.4g} to {means[-1]:.4g}, by "
            f"{slopes[0]:.2g} a step in the first half and {slopes[1]:.2g} in the second"
        )
    return ""


@_check("hp.02", "epochs")
def _epochs(summaries: Summaries) -> Said:
    for curve in (c.finite for c in _losses(summaries, evaluated=True)):
        if len(curve) >= _POINTS:
            means, deviations = _means(curve)
            best = int(means.argmin())
            rise = means[-1] - means[best]
            if best < len(means) - 2 and rise > max(
                0.05 * abs(means[best]), _SURE * math.hypot(deviations[best], deviations[-1])
            ):
                part = np.array_split(curve.steps, len(means))[best]
                return FOUND, (
                    f"too many: {curve.tag} is least, {means[best]:.4g}, around step {part[len(part) // 2]}, "
                    f"and {means[-1]:.4g} at step {curve.steps[-1]}"
                )
    curves = [c.finite for c in _losses(summaries) if len(c.finite) >= 2 * _POINTS]
    if not curves:
        return NEEDS_YOU, "no curve of a loss has enough values"
    curve = curves[0]
    part = len(curve) // 5
    before, last = curve.values[-2 * part : -part], curve.values[-part:]
    fall = float(before.mean() - last.mean())
    noise = float(np.sqrt((before.var() + last.var()) / part))
    means = f"{last.mean():.4g} in the last fifth, {before.mean():.4g} in the one before"
    said = f"the mean of {curve.tag} is {means}"
    falls = fall > max(0.05 * abs(float(before.mean())), 2 * noise)
    return (FOUND if falls else NOT_FOUND), ("too few: " if falls else "") + said


# ---- overflow ----------------------------------------------------------------------------------------------


@_check("mp.01", "overflow")
def _overflow(summaries: Summaries) -> Said:
    found: list[tuple[int, str]] = []
    for curve in summaries.curves.values():
        bad = np.flatnonzero(~np.isfinite(curve.values))
        if bad.size:
            found.append((int(curve.steps[bad[0]]), f"{curve.tag} is {curve.values[bad[0]]}"))
    for tag, rows in summaries.histograms.items():
        row = next(((s, h) for s, h in rows if h.nan or h.infinite), None)
        if row is not None:
            step, h = row
            found.append((step, f"{_name(tag)} has {h.nan} NaN and {h.infinite} infinities of {h.count}"))
    if found:
        found.sort(key=lambda entry: entry[0])
        first = [text for step, text in found if step == found[0][0]]
        return FOUND, f"from step {found[0][0]} on: {listed(first)}"
    seen = len(summaries.curves), len(summaries.histograms)
    return NOT_FOUND, f"{seen[0]} curves and {seen[1]} histograms are finite"


@_check("mp.02", "loss scale")
def _loss_scale(summaries: Summaries) -> Said:
    curve = next((c for tag, c in summaries.curves.items() if _is_scale(tag) and len(c)), None)
    if curve is None:
        return NEEDS_YOU, "no curve of a loss scale is recorded"
    first, last = curve.values[0], curve.values[-1]
    falls = int((np.diff(curve.values) < 0).sum())
    said = f"{curve.tag} from {first:g} to {last:g}, {falls} times lower than before in {len(curve)} values"
    return (FOUND if last <= 1.0 < first or falls > max(3, 0.25 * len(curve)) else NOT_FOUND), said


# ---- weights and gradients ---------------------------------------------------------------------------------


def _changes(summaries: Summaries) -> list[tuple[str, float]]:
    """How far extremes and mean of weights have moved, as shares of their root mean square."""
    found = []
    for name, rows in _histograms(summaries, "weights").items():
        if len(rows) > 1:
            (_, a), (_, b) = rows[0], rows[-1]
            size = max(a.root_mean_square, b.root_mean_square, 1e-30)
            moved = max(abs(a.low - b.low), abs(a.high - b.high), abs(a.mean - b.mean))
            found.append((name, moved / size))
    return found


@_check("cg.03", "parts that are not connected")
def _unconnected(summaries: Summaries) -> Said:
    rows = {n: r for n, r in _histograms(summaries, "weights").items() if len(r) > 1}
    if not rows:
        return NEEDS_YOU, "no weights are recorded twice; SummaryCollector's histogram_regular chooses them"
    same = [name for name, r in rows.items() if all(r[0][1].same(h) for _, h in r[1:])]
    if same:
        first = rows[same[0]]
        return FOUND, f"unchanged from step {first[0][0]} to {first[-1][0]}: {listed(same)}"
    return NOT_FOUND, f"all {len(rows)} recorded weights change"


@_check("wi.01", "weights that are zero")
def _zero(summaries: Summaries) -> Said:
    rows = {n: r for n, r in _histograms(summaries, "weights").items() if n.endswith("weight")}
    if not rows:
        return NEEDS_YOU, "no matrix or kernel is recorded"
    zero = [f"{n} at step {r[0][0]}" for n, r in rows.items() if r[0][1].is_zero]
    return (FOUND if zero else NOT_FOUND), (
        f"all zero: {listed(zero)}" if zero else f"none of {len(rows)} is all zero"
    )


@_check("rc.01", "weights that grow without end")
def _growing(summaries: Summaries) -> Said:
    rows = {n: r for n, r in _histograms(summaries, "weights").items() if len(r) > 1 and n.endswith("weight")}
    if not rows:
        return NEEDS_YOU, "no weights are recorded twice"
    grown = []
    for name, r in rows.items():
        first, last = r[0][1].root_mean_square, r[-1][1].root_mean_square
        if last > 10 * first > 0:
            grown.append(f"{name} from {first:.3g} at step {r[0][0]} to {last:.3g} at step {r[-1][0]}")
    return (FOUND if grown else NOT_FOUND), listed(
        grown, 3
    ) or f"none of {len(rows)} becomes ten times as large"


@_check("rc.02", "layers that are dead")
def _dead(summaries: Summaries) -> Said:
    kinds = {**_histograms(summaries, "activations"), **_histograms(summaries, "gradients")}
    if not kinds:
        return (
            NEEDS_YOU,
            "no outputs of layers and no gradients are recorded; ops.HistogramSummary records them",
        )
    dead = []
    for name, rows in kinds.items():
        # Zeros at the end: from which step on.
        alive = [k for k, (_, h) in enumerate(rows) if not h.is_zero]
        start = alive[-1] + 1 if alive else 0
        if start < len(rows):
            dead.append(f"{name} is zero from step {rows[start][0]} on")
    return (FOUND if dead else NOT_FOUND), listed(
        dead, 3
    ) or f"none of {len(kinds)} tensors is all zero at the end"


@_check("rc.03", "gradients that vanish or explode")
def _gradients(summaries: Summaries) -> Said:
    sizes: dict[str, list[tuple[int, float]]] = {
        name: [(step, h.root_mean_square) for step, h in rows]
        for name, rows in _histograms(summaries, "gradients").items()
    }
    for tag, curve in summaries.curves.items():
        if any(part.startswith("grad") for part in _parts(tag)):
            sizes[tag] = [(int(s), abs(float(v))) for s, v in zip(curve.finite.steps, curve.finite.values)]
    sizes = {name: rows for name, rows in sizes.items() if rows}
    if not sizes:
        return NEEDS_YOU, "no gradients are recorded; a tag with grad in it would be looked at"
    for name, rows in sizes.items():
        for k, (step, size) in enumerate(rows):
            before = float(np.median([s for _, s in rows[:k]])) if k >= _POINTS else 0.0
            if size > _EXPLODED or size > 100 * before > 0:
                return FOUND, f"{name} is {size:.4g} at step {step}, {rows[max(k - 1, 0)][1]:.4g} before"
    ends = {name: (rows[0][1], *rows[-1]) for name, rows in sizes.items()}
    still = [f"{n} from {a:.3g} to {b:.3g} at step {s}" for n, (a, s, b) in ends.items() if b < _VANISHED]
    said = listed(still, 3) or f"{len(sizes)} gradients stay between {_VANISHED:g} and {_EXPLODED:g}"
    return (FOUND if still else NOT_FOUND), said
