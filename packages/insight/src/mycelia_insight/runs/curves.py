"""Points of a scalar as a chart draws them: over steps, times or another scalar, smoothed in several ways."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mycelia_insight.runs.run import Points, Run, Tag
from mycelia_insight.runs.smoothing import smoothed


@dataclass(frozen=True)
class Drawing:
    """How a curve is drawn.

    axis: "step", "time" (seconds since 1970), "relative" (seconds since the tag's first point) or "scalar":
    `x` is the scalar that is the axis, whose value at the same step is a point's place. low, high: limits on
    that axis. columns: of the drawing; of each the first, last, least, greatest and all points that are not
    finite are given; 0 for all points. smoother, smoothing: "ema" and the weight of what came before, 0 to
    less than 1, or "average" and "gaussian" and a width in points.
    """

    axis: str = "step"
    x: str = ""
    low: float = -np.inf
    high: float = np.inf
    columns: int = 0
    smoother: str = "ema"
    smoothing: float = 0.0


@dataclass(frozen=True)
class Curve:
    """Points; x float32 [n], their places, where the axis is a scalar."""

    points: Points
    x: np.ndarray | None = None


def curve(run: Run, tag: Tag, drawing: Drawing) -> Curve | None:
    """Points of a scalar of a run; None if it, or the scalar that is the axis, is not there any more."""
    low, high = drawing.low, drawing.high
    if drawing.axis == "relative":
        low, high = low + tag.first_time, high + tag.first_time
    by_time = drawing.axis in ("time", "relative")
    if drawing.axis != "scalar":
        ends = (tag.first_time, tag.last_time) if by_time else (tag.first_step, tag.last_step)
        low, high = max(low, min(ends)), min(high, max(ends))
        if drawing.smoother == "ema" or drawing.smoothing < 2:
            weight = drawing.smoothing if drawing.smoother == "ema" else 0.0
            found = run.points(
                tag.name, by_time=by_time, low=low, high=high, columns=drawing.columns, smoothing=weight
            )
            return None if found is None else Curve(found)
    found = _all(run, tag.name, drawing)
    if found is None:
        return None
    if drawing.axis == "scalar":
        other = _all(run, drawing.x, Drawing())
        if other is None:
            return None
        places, found = _joined(found, other)
        finite = places[np.isfinite(places)]
        if len(finite):
            low, high = max(low, float(finite.min())), min(high, float(finite.max()))
    else:
        places = found.times if by_time else found.steps
    kept = np.flatnonzero((places >= low) & (places <= high))
    if drawing.columns:
        kept = kept[thinned(places[kept], found.values[kept], low, high, drawing.columns)]
    points = Points(found.steps[kept], found.times[kept], found.values[kept], found.smoothed[kept])
    return Curve(points, places[kept] if drawing.axis == "scalar" else None)


def thinned(x: np.ndarray, values: np.ndarray, low: float, high: float, columns: int) -> np.ndarray:
    """Places, int64, of the points that are drawn in `columns` equal parts of low..high.

    Points are taken in their order; of those in a row that share a part, the first, the last, the least, the
    greatest and all that are not finite.
    """
    if not len(x) or not high > low:
        return np.arange(len(x))
    part = np.minimum(columns - 1, ((x - low) * (columns / (high - low))).astype(np.int64))
    begins = np.concatenate([[0], np.flatnonzero(np.diff(part)) + 1])
    ends = np.append(begins[1:], len(x)) - 1
    owner = np.repeat(np.arange(len(begins)), ends - begins + 1)
    finite = np.isfinite(values)
    chosen = [begins, ends, np.flatnonzero(~finite)]
    for reduce, worst in ((np.minimum, np.inf), (np.maximum, -np.inf)):
        known = np.where(finite, values, worst)
        best = np.flatnonzero((known == reduce.reduceat(known, begins)[owner]) & finite)
        chosen.append(best[np.unique(owner[best], return_index=True)[1]])
    return np.unique(np.concatenate(chosen))


def _all(run: Run, tag: str, drawing: Drawing) -> Points | None:
    """All points, smoothed as the drawing says; None if there is no such scalar."""
    if drawing.smoother == "ema":
        return run.points(tag, smoothing=drawing.smoothing)
    found = run.points(tag)
    if found is None:
        return None
    return replace(found, smoothed=smoothed(found.values, drawing.smoother, int(drawing.smoothing)))


def _joined(points: Points, other: Points) -> tuple[np.ndarray, Points]:
    """Values of `other` at the steps that both have, float32 [n], and the points there."""
    order = np.argsort(other.steps, kind="stable")
    steps = other.steps[order]
    at = np.searchsorted(steps, points.steps, side="right") - 1  # the last one of a step counts
    known = (at >= 0) & (steps[np.maximum(at, 0)] == points.steps)
    kept = np.flatnonzero(known)
    places = other.values[order[at[kept]]]
    return places, Points(*(getattr(points, n)[kept] for n in ("steps", "times", "values", "smoothed")))
