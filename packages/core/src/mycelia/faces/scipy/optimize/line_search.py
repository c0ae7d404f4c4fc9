"""A step along a direction that satisfies the strong Wolfe conditions.

Source: Nocedal and Wright 1999, Numerical Optimization, algorithms 3.5 (search) and 3.6 (zoom).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from mycelia import ops
from mycelia.engine import autodiff
from mycelia.engine.base import dtypes
from mycelia.engine.tensors.tensor import Tensor

__all__ = ["line_search"]

ZOOM_STEPS = 10
CUBIC_MARGIN, SQUARE_MARGIN = 0.2, 0.1  # of the interval: a guess nearer to its ends is not taken
ZOOM_FAILED, STEPS_SPENT = 1, 3  # states of a search


class LineSearchResults(NamedTuple):
    """What `line_search` found: step `a_k`, value and gradient there, and what it cost; status 0 is
    success.
    """

    failed: bool
    nit: int
    nfev: int
    ngev: int
    k: int
    a_k: float
    f_k: float
    g_k: Tensor
    status: int


@dataclass(slots=True)
class Point:
    """A step, the value there and the slope along the direction."""

    step: float
    value: float
    slope: float
    gradient: Tensor | None = None


def number(x) -> float:
    """The value of a Tensor with one element, or of a number."""
    return float(x.asnumpy().reshape(-1)[0]) if isinstance(x, Tensor) else float(x)


def dot(a, b) -> float:
    """Sum of products of two vectors."""
    return number(ops.sum(ops.mul(a, b)))


class Search:
    """The search for one function; counts its calls."""

    def __init__(self, f: Callable, gradient: Callable, x, direction, c1: float, c2: float):
        self.f, self.gradient, self.x, self.direction = f, gradient, x, direction
        self.c1, self.c2 = c1, c2
        self.calls = 0

    def at(self, step: float) -> Point:
        """The function at this step."""
        x = ops.add(self.x, ops.mul(self.direction, step))
        self.calls += 1
        gradient = self.gradient(x)
        return Point(step, number(self.f(x)), dot(gradient, self.direction), gradient)

    def run(self, start: Point, first: float, limit: int) -> tuple[Point, int, int]:
        """The point found, the steps taken (from 1) and the state."""
        before, i, state = start, 1, 0
        found = None
        while found is None and i <= limit:
            here = self.at(first if i == 1 else before.step * 2)
            if self._too_high(here, start) or (here.value >= before.value and i > 1):
                found, state = self._zoom(before, here, start)
            elif self._flat(here, start):
                found = here
            elif here.slope >= 0:
                found, state = self._zoom(here, before, start)
            before = here
            i += 1
        if state == 0 and i > limit:
            state = STEPS_SPENT
        return found or Point(0.0, start.value, start.slope, start.gradient), i, state

    def _too_high(self, point: Point, start: Point) -> bool:
        return point.value > start.value + self.c1 * point.step * start.slope

    def _flat(self, point: Point, start: Point) -> bool:
        return abs(point.slope) <= -self.c2 * start.slope

    def _zoom(self, low: Point, high: Point, start: Point) -> tuple[Point, int]:
        """Narrow the interval between `low`, the better end, and `high` until the conditions hold.

        If they never do, the step is 1, with the first value of `low` and the gradient at 0.
        """
        nothing = Point(1.0, low.value, low.slope, start.gradient)
        third = Point((low.step + high.step) / 2, (low.value + high.value) / 2, 0.0)
        for j in range(ZOOM_STEPS):
            here = self.at(_guess(low, high, third if j else None))
            if self._too_high(here, start) or here.value >= low.value:
                third, high = high, here
            elif self._flat(here, start):
                return here, ZOOM_FAILED if j == ZOOM_STEPS - 1 else 0
            else:
                third = low
                if here.slope * (high.step - low.step) >= 0:
                    high = low
                low = here
        return nothing, ZOOM_FAILED


def _guess(low: Point, high: Point, third: Point | None) -> float:
    """Minimum of a cubic through the points, else of a parabola, else the middle."""
    left, right = sorted((low.step, high.step))
    width = high.step - low.step
    if third is not None:
        step = _cubic_minimum(low, high, third)
        if left + CUBIC_MARGIN * width < step < right - CUBIC_MARGIN * width:
            return step
    bend = _divided(high.value - low.value - low.slope * width, width * width)
    step = low.step - _divided(low.slope, 2 * bend)
    if left + SQUARE_MARGIN * width < step < right - SQUARE_MARGIN * width:
        return step
    return (low.step + high.step) / 2


def _divided(a: float, b: float) -> float:
    return a / b if b else math.nan


def _cubic_minimum(low: Point, high: Point, third: Point) -> float:
    """Of the cubic through three values with the slope of the first; NaN if there is none."""
    db, dc = high.step - low.step, third.step - low.step
    scale = (db * dc) ** 2 * (db - dc)
    rb = high.value - low.value - low.slope * db
    rc = third.value - low.value - low.slope * dc
    a = _divided(dc * dc * rb - db * db * rc, scale)
    b = _divided(-(dc**3) * rb + db**3 * rc, scale)
    inside = b * b - 3 * a * low.slope
    if not inside >= 0:
        return math.nan
    return low.step + _divided(-b + math.sqrt(inside), 3 * a)


def first_step(value: float, before: float, slope: float) -> float:
    """The step at which the last decrease would come again, at most 1."""
    step = _divided(1.01 * 2 * (value - before), slope)
    return min(step, 1.0) if math.isfinite(step) else 1.0


def searched(f, gradient, x, direction, value, gradient_at_x, before, c1=1e-4, c2=0.9, limit=20):
    """`line_search` whose parts are given; None for `value` or `gradient_at_x`: computed."""
    search = Search(f, gradient, x, direction, c1, c2)
    if value is None or gradient_at_x is None:
        start = search.at(0.0)
    else:
        start = Point(0.0, number(value), dot(gradient_at_x, direction), gradient_at_x)
    first = 1.0 if before is None else first_step(start.value, number(before), start.slope)
    found, i, state = search.run(start, first, limit)
    step = found.step
    if x.dtype is not dtypes.float64 and abs(step) < 1e-8:
        step = math.copysign(1e-8, step) if step else 0.0  # a smaller one would not change x
    return LineSearchResults(
        failed=state != 0, nit=i - 1, nfev=search.calls, ngev=search.calls, k=i, a_k=step, f_k=found.value,
        g_k=found.gradient, status=state,
    )  # fmt: skip


def line_search(f, xk, pk, jac=None, gfk=None, old_fval=None, old_old_fval=None, c1=1e-4, c2=0.9, maxiter=20):
    """A step `a_k` from `xk` along `pk` that satisfies the strong Wolfe conditions with `c1` and `c2`.

    `jac` is the gradient of `f`, by default its automatic one; `gfk` and `old_fval` are gradient and value
    at xk, if known; `old_old_fval` is the value before, from which the first step is guessed.
    Shapes: [n], [n].  Result: failed, nit, nfev, ngev, k, a_k, f_k, g_k, status (0 success, 1 no step found
    in an interval, 3 `maxiter` reached).
    """
    gradient = autodiff.grad(f) if jac is None else jac
    return searched(f, gradient, xk, pk, old_fval, gfk, old_old_fval, c1, c2, maxiter)
