"""The tables that msprobe makes of two dumps of MindSpore's graph mode: its columns, and its rules for
"Accuracy Reached or Not".

There is a table for each rank and iteration, ``compare_result_{rank}_{iteration}_{time}.csv``; "NPU" is the
run under test, "Bench" the trusted one. What is no number says why in ``Err_message``.
"""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path
from typing import IO, Any

import numpy as np

from mycelia.debug.precision.comparison import Row, four
from mycelia.debug.reading.folders import Record

ACCURACY, MESSAGE = "Accuracy Reached or Not", "Err_message"
_SIDES = ("NPU", "Bench")
_NUMBERS = ("max", "min", "mean", "l2norm")
_BASIC = (
    *(f"{side} {what}" for what in ("Name", "Dtype", "Tensor Shape") for side in _SIDES),
    *(f"{side} {number}" for side in _SIDES for number in _NUMBERS),
    ACCURACY, MESSAGE,
)  # fmt: skip
TENSOR_COLUMNS = (
    *_BASIC, "Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio",
    "Five Thousandths Err Ratio",
)  # fmt: skip
STATISTIC_COLUMNS = (
    *_BASIC, *(f"{name} diff" for name in ("Max", "Min", "Mean", "L2norm")),
    *(f"{name}RelativeErr" for name in ("Max", "Min", "Mean", "Norm")), "NPU CSV File", "Bench CSV File",
)  # fmt: skip
YES, NO, UNKNOWN = "Yes", "No", "None"

# Both a cosine below and an error above the first pair, or one of them beyond the second, is "No".
_COSINE, _ERROR, _LEAST_COSINE, _LARGEST_ERROR = 0.99, 0.001, 0.9, 1.0
_MAGNITUDE = 0.5  # share of the larger maximum by which maxima may differ
_ZERO = float(np.finfo(float).eps)  # norms up to it are those of zeros
_UNSUPPORTED = "unsupported"


class Tables:
    """Writes the rows of a comparison, as they come, into tables in `folder`: a context, at whose end they
    appear, unless an error ended it.
    """

    def __init__(self, folder: Path, stamp: str) -> None:
        self.folder, self.stamp = folder, stamp
        self.paths: list[Path] = []
        self._files: dict[tuple[int, int, bool], tuple[IO[str], csv.DictWriter]] = {}

    def add(self, row: Row) -> None:
        """A tensor. Errors: OSError; ValueError for a file that is damaged."""
        has_elements = row.pair.left.path is not None
        columns = TENSOR_COLUMNS if has_elements else STATISTIC_COLUMNS
        found = of_tensors(row) if has_elements else of_statistics(row)
        key = row.rank, row.iteration, has_elements
        if key not in self._files:
            kind = "" if has_elements or (row.rank, row.iteration, True) not in self._files else "statistics_"
            path = self.folder / f"compare_result_{row.rank}_{row.iteration}_{kind}{self.stamp}.csv"
            self.folder.mkdir(parents=True, exist_ok=True)
            file = open(_partial(path), "w", encoding="utf-8", newline="")
            self.paths.append(path)
            self._files[key] = file, csv.DictWriter(file, columns, lineterminator="\n")
            self._files[key][1].writeheader()
        self._files[key][1].writerow({name: _cell(value) for name, value in found.items()})

    def __enter__(self) -> Tables:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for file, _writer in self._files.values():
            file.close()
        for path in self.paths:
            if kind is None:
                os.replace(_partial(path), path)
            else:
                _partial(path).unlink(missing_ok=True)


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")


def _cell(value: Any) -> Any:
    return f" {value}" if isinstance(value, float) and math.isinf(value) else value


def of_tensors(row: Row) -> dict[str, Any]:
    """The cells of a row whose elements were dumped."""
    found: dict[str, Any] = dict.fromkeys(TENSOR_COLUMNS, "")
    arrays = [
        None if record is None else record.array(mapped=True) for record in (row.pair.left, row.pair.right)
    ]
    for side, record, array in zip(_SIDES, (row.pair.left, row.pair.right), arrays):
        if record is not None and array is not None:
            found |= _described(side, str(record.path), array)
    left, right = arrays
    found[MESSAGE] = "the trusted run has no such tensor" if right is None else _refusal(left, right)
    if not found[MESSAGE]:
        assert left is not None and right is not None
        found |= _distances(left, right)
        found[ACCURACY] = reached(found["Cosine"], found["MaxAbsErr"])
    return found


def _described(side: str, name: str, array: np.ndarray) -> dict[str, Any]:
    shape = "[" + ", ".join(map(str, array.shape)) + ("," if array.ndim == 1 else "") + "]"
    about = {f"{side} Name": name, f"{side} Dtype": str(array.dtype), f"{side} Tensor Shape": shape}
    if array.size:
        with np.errstate(all="ignore"):
            numbers = array.max(), array.min(), array.mean(), np.linalg.norm(array.astype(float).reshape(-1))
        about |= {f"{side} {name}": x for name, x in zip(_NUMBERS, map(float, map(np.real, numbers)))}
    return about


def _refusal(left: np.ndarray | None, right: np.ndarray) -> str:
    """Why there is nothing to compute; "" if there is."""
    if left is None:
        return "the run under test has no elements"
    if not left.size or not right.size:
        return "a tensor is empty"
    found = []
    if not left.ndim or not right.ndim:
        found.append("a scalar")
    if left.shape != right.shape:
        found.append("shape unmatched")
    if left.dtype != right.dtype:
        found.append("dtypes differ")
    if not found and not _same_places(left, right):
        found.append("NaN or infinities at other places")
    return "; ".join(found)


def _same_places(left: np.ndarray, right: np.ndarray) -> bool:
    x, y = left.astype(float), right.astype(float)
    return bool((np.isnan(x) == np.isnan(y)).all() and (np.isinf(x) == np.isinf(y)).all())


def _distances(left: np.ndarray, right: np.ndarray) -> dict[str, float | str]:
    """The six numbers, of elements that are finite: others, at the same places on both sides, count as 0."""
    x, y = (np.where(np.isfinite(v), v, 0) for v in (left, right))
    a, b = x.reshape(-1).astype(float), y.reshape(-1).astype(float)
    relative = _relative(x, y)
    return {
        "Cosine": _cosine(a, b),
        "EucDist": float(np.linalg.norm(a - b)),
        "MaxAbsErr": round(float(np.abs(a - b).max()), 12),
        "MaxRelativeErr": round(float(relative.max()), 12),
        "One Thousandth Err Ratio": round(float((relative < 0.001).mean()), 12),
        "Five Thousandths Err Ratio": round(float((relative < 0.005).mean()), 12),
    }


def _cosine(a: np.ndarray, b: np.ndarray) -> float | str:
    if a.size == 1:
        return _UNSUPPORTED
    norms = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if max(norms) <= _ZERO:
        return 1.0
    if min(norms) <= _ZERO:
        return "Nan"
    found = round(float(a @ b) / (norms[0] * norms[1]), 12)
    return round(found, 6) if found > 0.9999 else found


def _relative(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """abs((x - y) / y), at least in float32; where y is 0 both are larger by the epsilon of the type."""
    kind = np.result_type(*(v.dtype if v.dtype.kind == "f" else np.float64 for v in (x, y)), np.float32)
    a, b = x.astype(kind), y.astype(kind)
    zero = b == 0
    a[zero] += np.finfo(kind).eps
    b[zero] += np.finfo(kind).eps
    with np.errstate(all="ignore"):
        return np.abs((a - b) / b)


def reached(cosine: float | str, error: float | str) -> str:
    """Whether tensors so far apart are accurate enough: "Yes", "No", or "None" where that is not known."""
    try:
        c, e = float(cosine), float(error)
    except ValueError:
        return UNKNOWN
    if (c < _COSINE and e > _ERROR) or c < _LEAST_COSINE or e > _LARGEST_ERROR:
        return NO
    return YES


def of_statistics(row: Row) -> dict[str, Any]:
    """The cells of a row of which statistics alone were dumped."""
    found: dict[str, Any] = dict.fromkeys(STATISTIC_COLUMNS, "")
    sides = []
    for side, record in zip(_SIDES, (row.pair.left, row.pair.right)):
        numbers = None if record is None else record.statistics()
        sides.append(None if numbers is None else four(numbers))
        if record is not None and record.row is not None and numbers is not None:
            found |= _told(side, record)
            found |= {f"{side} {name}": x for name, x in zip(_NUMBERS, four(numbers))}
    left, right = sides
    if left is None or right is None:
        found[MESSAGE] = "there are no statistics of one side"
        return found
    refused = [
        f"{what} differ"
        for what, column in (("shapes", "Tensor Shape"), ("dtypes", "Dtype"))
        if found[f"NPU {column}"] != found[f"Bench {column}"]
    ]
    if not found["NPU Tensor Shape"] or found["NPU Tensor Shape"] == "[]":
        refused.append("a scalar")
    if refused:
        found[MESSAGE] = "; ".join(refused)
        return found
    for name, part, x, y in zip(
        ("Max", "Min", "Mean", "L2norm"), ("Max", "Min", "Mean", "Norm"), left, right
    ):
        difference = float(np.float32(x) - np.float32(y))
        found[f"{name} diff"] = difference
        found[f"{part}RelativeErr"] = _share(difference, y)
    found[ACCURACY] = _of_magnitude(left[0], right[0])
    return found


def _told(side: str, record: Record) -> dict[str, str]:
    row = record.row or {}
    shape = row.get("Shape", "").replace("(", "[").replace(")", "]")
    name = ".".join((row["Op Name"], row.get("Task ID", "0"), row["IO"], row["Slot"]))
    return {f"{side} Name": name, f"{side} Dtype": row.get("Data Type", ""), f"{side} Tensor Shape": shape,
            f"{side} CSV File": str(record.folder / "statistic.csv") if record.folder else ""}  # fmt: skip


def _share(difference: float, y: float) -> str:
    if y == 0:
        return "N/A"
    found = difference / y
    return "Nan" if math.isnan(found) else f"{abs(100 * found)}%"


def _of_magnitude(x: float, y: float) -> str:
    if math.isnan(x) and math.isnan(y):
        return YES
    return YES if (x - y) / (max(x, y) + 1e-10) <= _MAGNITUDE else NO
