"""Each operator of a run alone against a reference in float64: what a kernel makes of its inputs, whatever
operators before it made of theirs.

The reference is the operator's body (`docs/adding-an-op.md`) on the same inputs in float64. An error counts
where it is larger than the tolerance of the result's dtype (`engine.base.tolerances`) and than what
rounding of the inputs alone would do to the result, which the reference is asked for, too: sums that cancel
are not blamed for it.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mycelia.debug.dump import files
from mycelia.debug.precision import measures
from mycelia.debug.statistics import array_of
from mycelia.engine import observing
from mycelia.engine.base import config, dtypes, errors
from mycelia.engine.base.tolerances import tolerance
from mycelia.engine.observing import Observer, Operator, Run
from mycelia.engine.ops.define import LIST
from mycelia.engine.tensors.tensor import Tensor

INPUTS = RECORDED, RANDOM = "recorded", "random"
VERDICTS = PASS, FAIL, SKIPPED = "pass", "fail", "skipped"
COLUMNS = (
    "Op Type", "Op Name", "Slot", "Data Type", "Shape", "Verdict", "CosineSimilarity", "MaxAbsoluteError",
    "RelativeEuclideanDistance", "MaxULP", "Bound", "Reason", "Source",
)  # fmt: skip
_AMPLIFIED = 8.0  # error of a kernel that is right, in root mean squares of what rounding its inputs does
_HALVES = (dtypes.float16, dtypes.bfloat16)  # kernels round these once; of wider types they may err more
_ONE_SIDED, _ENOUGH = 0.3, 100  # units of the last place; results, whose mean then strays by 0.03
_RANDOM_OPS = "mycelia.engine.ops.random."


@dataclass(frozen=True, slots=True)
class Checked:
    """One output of an operator, or an operator that was skipped. `error` and `bound`: the largest difference
    from the reference, and the allowed one at that element.
    """

    operator: Operator
    slot: int
    verdict: str
    reason: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    values: dict[str, float] = field(default_factory=dict)
    error: float = 0.0
    bound: float = 0.0

    def cells(self) -> list[str]:
        """As the table has them."""
        stack = self.operator.stack
        source = f"{stack[0][0]}:{stack[0][1]}" if stack else ""
        names = ("CosineSimilarity", "RelativeEuclideanDistance", "MaxULP")
        cosine, distance, ulps = (f"{self.values[n]:.6g}" if n in self.values else "" for n in names)
        head = [self.operator.type, self.operator.name, str(self.slot), self.dtype]
        shape = "(" + ",".join(map(str, self.shape)) + ")"
        numbers = [cosine, f"{self.error:.6g}", distance, ulps, f"{self.bound:.6g}"]
        return [*head, shape, self.verdict, *numbers, self.reason, source]


@dataclass(slots=True)
class _Use:
    """The first use of an operator with inputs of these types and these attributes."""

    operator: Operator
    inputs: list[Any]  # tensors, numbers and None, flat
    outputs: list[Tensor]


class OperatorCheck(Observer):
    """Keeps the first use of each operator, by type, attributes, and dtypes and shapes of its inputs."""

    def __init__(self) -> None:
        self.uses: dict[tuple, _Use] = {}

    def seen(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> None:
        given = [operator.numbers.get(i, t) for i, t in enumerate(inputs)]
        forms = tuple((t.dtype.name, t.shape) if isinstance(t, Tensor) else t for t in given)
        key = operator.type, repr(operator.attrs), forms
        if key not in self.uses:
            self.uses[key] = _Use(operator, given, list(outputs))

    def results(self, inputs: str = RECORDED, seed: int = 0) -> list[Checked]:
        """Every operator that was seen, checked, in order of first use.

        `inputs`: "recorded", those of the run with what it made of them; "random": drawn from the recorded
        values, elements anew and scaled by 0.5 to 1.5, so that signs and zeros stay what they were; integers
        stay as recorded. Then the operator runs once more, alone.
        """
        if inputs not in INPUTS:
            raise errors.one_of(inputs, INPUTS, subject="acc_check", what="inputs")
        rng = np.random.default_rng(seed)
        return [found for use in self.uses.values() for found in _check(use, inputs, rng)]


@contextmanager
def acc_check() -> Iterator[OperatorCheck]:
    """In this block the operators of compiled functions, and of eager calls of this thread, are kept; ask for
    `results` behind it.
    """
    found = OperatorCheck()
    observing.watch(found)
    try:
        with observing.watch_calls(found):
            yield found
    finally:
        observing.unwatch(found)


def _check(use: _Use, inputs: str, rng: np.random.Generator) -> Iterator[Checked]:
    reason = _why_not(use)
    if reason:
        yield Checked(use.operator, 0, SKIPPED, reason)
        return
    given, made = use.inputs, use.outputs
    try:
        if inputs == RANDOM:
            given = [_drawn(value, rng) for value in given]
            made = _run(use.operator, list(map(_copy, given)))
        expected, moved = (_reference(use.operator, [_widened(v, r) for v in given]) for r in (None, rng))
    except (errors.MyceliaError, ValueError, TypeError, RuntimeError, ArithmeticError) as cause:
        yield Checked(use.operator, 0, SKIPPED, f"it does not run alone: {type(cause).__name__}: {cause}")
        return
    if len(expected) != len(made):
        yield Checked(use.operator, 0, SKIPPED, f"{len(made)} results, the reference has {len(expected)}")
        return
    for slot, (x, y, z) in enumerate(zip(made, expected, moved)):
        yield _compare(use.operator, slot, x, y, z)


def _why_not(use: _Use) -> str:
    definition = use.operator.op.definition
    if definition.module.startswith(_RANDOM_OPS):
        return "it draws random numbers"
    if definition.effect and not definition.updates:
        return "it has an effect"
    if not any(isinstance(value, Tensor) for value in use.inputs):
        return "it reads no tensor"
    return ""


def _compare(operator: Operator, slot: int, x: Tensor, y: Tensor, moved: Tensor) -> Checked:
    dtype, shape = x.dtype, tuple(x.shape)
    got, want = measures.wide(array_of(x)), measures.wide(array_of(_rounded(y, dtype)))
    head = dict(dtype=dtype.name, shape=shape)
    if got.size != want.size:
        return Checked(operator, slot, FAIL, f"shape {shape}, the reference has {tuple(y.shape)}", **head)
    if not (dtype.is_floating or dtype.is_complex):
        wrong = int(np.count_nonzero(got != want))
        reason = f"{wrong} of {got.size} elements differ" if wrong else ""
        error = float(np.abs(got - want).max(initial=0))
        return Checked(operator, slot, FAIL if wrong else PASS, reason, error=error, **head)
    if not measures.same_pattern(got, want):
        return Checked(operator, slot, FAIL, "NaN or infinities at other places", error=math.inf, **head)
    finite = np.isfinite(want)
    a, b, c = got[finite], want[finite], measures.wide(array_of(moved))[finite]
    relative, share = tolerance(dtype)
    spread = np.abs(c - b)[np.isfinite(c)]
    rounding = _AMPLIFIED * float(np.sqrt(np.square(spread).mean())) if spread.size else 0.0
    bound = relative * np.abs(b) + share * float(np.abs(b).max(initial=0.0)) + rounding
    error = np.abs(a - b)
    worst = int(np.argmax(error - bound)) if a.size else -1
    wrong = int(np.count_nonzero(error > bound))
    with np.errstate(all="ignore"):
        values = {
            "CosineSimilarity": measures.cosine(a, b),
            "RelativeEuclideanDistance": measures.relative_euclidean(a, b),
            "MaxULP": float(measures.ulps(array_of(x), array_of(_rounded(y, dtype))).max(initial=0)),
        }
    reason = f"{wrong} of {a.size} elements are beyond the bound" if wrong else ""
    if not wrong and dtype in _HALVES and abs(cut := _cut(a, b, dtype)) > _ONE_SIDED:
        reason = f"it is rounded to one side: {cut:.2f} units of the last place toward zero, on average"
    return Checked(
        operator, slot, FAIL if reason else PASS, reason, values=values,
        error=float(error[worst]) if a.size else 0.0, bound=float(bound[worst]) if a.size else 0.0, **head,
    )  # fmt: skip


def _cut(got: np.ndarray, want: np.ndarray, dtype: dtypes.DType) -> float:
    """By how many units of the last place results lie nearer to zero than they should, on average; 0 where
    too few are rounded at all. To nearest it is 0, for bits that are cut off 0.5.
    """
    rounded = (got != want) & (np.abs(want) > 1e-4)  # denormal numbers have other units
    if np.count_nonzero(rounded) < _ENOUGH:
        return 0.0
    a, b = np.abs(got[rounded]), np.abs(want[rounded])
    unit = np.exp2(np.floor(np.log2(b))) * _epsilon(dtype)
    return float(((b - a) / unit).mean())


# ---- running an operator alone -----------------------------------------------------------------------------


def _reference(operator: Operator, given: list[Any]) -> list[Tensor]:
    with config.context(device_target="reference"):
        return _run(operator, given)


def _run(operator: Operator, given: list[Any]) -> list[Tensor]:
    """What the operator makes of these inputs, those that it updates first, as an `Observer` is told."""
    definition = operator.op.definition
    result = operator.op(*_grouped(definition, given), **operator.attrs)
    made = list(result) if isinstance(result, (tuple, list)) else [result]
    updated = [given[definition.param_names.index(name)] for name in definition.updates]
    return updated + [t for t in made if isinstance(t, Tensor) and all(t is not u for u in updated)]


def _grouped(definition: Any, given: list[Any]) -> list[Any]:
    """Inputs as the op takes them: the members of a list as one."""
    if definition.params and definition.params[0][1] == LIST:
        count = len(given) - len(definition.params) + 1
        return [list(given[:count]), *given[count:]]
    return given


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, Tensor) else value


def _widened(value: Any, rng: np.random.Generator | None) -> Any:
    """A tensor in float64, or complex128; with `rng` every element moved by at most half a unit of its last
    place.
    """
    if not isinstance(value, Tensor):
        return value
    if not (value.dtype.is_floating or value.dtype.is_complex):
        return value.copy()
    array = array_of(value)
    wide = array.astype(np.complex128 if value.dtype.is_complex else np.float64)
    if rng is not None:
        wide = wide * (1.0 + _epsilon(value.dtype) * rng.uniform(-0.5, 0.5, wide.shape))
    return Tensor(wide)


def _epsilon(dtype: dtypes.DType) -> float:
    return 2.0**-7 if dtype is dtypes.bfloat16 else float(np.finfo(dtype.np).eps)


def _rounded(tensor: Tensor, dtype: dtypes.DType) -> Tensor:
    """The reference in the dtype of the result, but for its range: what overflows there, overflows here."""
    if tensor.dtype is dtype or not (dtype.is_floating or dtype.is_complex):
        return tensor
    narrow = array_of(tensor.astype(dtype))
    wide = array_of(tensor)
    return Tensor(np.where(np.isfinite(narrow), wide, narrow).astype(wide.dtype))


def _drawn(value: Any, rng: np.random.Generator) -> Any:
    if not isinstance(value, Tensor) or not value.dtype.is_floating or not value.size:
        return _copy(value)
    array = array_of(value)
    drawn = rng.choice(array.reshape(-1), array.shape) * rng.uniform(0.5, 1.5, array.shape)
    return Tensor(drawn.astype(np.float64)).astype(value.dtype)


# ---- the table ---------------------------------------------------------------------------------------------


def write_table(found: Sequence[Checked], path: str | os.PathLike) -> None:
    """A CSV of `COLUMNS`, which appears whole.  Errors: OSError."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(row.cells() for row in found)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    files.write(os.fspath(path), [text.getvalue()])
