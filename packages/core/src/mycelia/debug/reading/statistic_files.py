"""``statistic.csv`` of a dump: rows that are what they should be, and the numbers in them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from mycelia.debug.statistics import COLUMNS, Statistics
from mycelia.engine.base import errors

_NEEDED = ("Op Type", "Op Name", "Timestamp", "IO", "Slot")


def read_rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows, none if there is no such file.

    Errors: ValueError for a file that is damaged: bytes that are no text, columns that lack, a number that is
    none.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            _require_columns(path, reader.fieldnames)
            for number, row in enumerate(reader, 2):
                _check(path, number, row)
                yield row
    except FileNotFoundError:
        return
    except (UnicodeDecodeError, csv.Error) as cause:
        raise errors.value_error("dump", f"{path} cannot be read: {cause}") from None


def _require_columns(path: Path, found: object) -> None:
    missing = [name for name in _NEEDED if name not in (found or ())]  # type: ignore[operator]
    if missing:
        raise errors.value_error("dump", f"{path} has no columns {', '.join(missing)}")


def _check(path: Path, number: int, row: dict[str, str]) -> None:
    try:
        if None in row or None in row.values():
            raise ValueError("it has another number of cells than the head")
        if not row["Slot"].isdecimal() or row["IO"] not in ("input", "output"):
            raise ValueError(f"slot {row['Slot']!r}, IO {row['IO']!r}")
        statistics_of(row), shape_of(row)
    except (ValueError, OverflowError) as cause:
        raise errors.value_error("dump", f"{path}: row {number} is damaged: {cause}") from None


def shape_of(row: dict[str, str]) -> tuple[int, ...]:
    """The column Shape; () if there is none."""
    return tuple(int(d) for d in row.get("Shape", "").strip("()").split(",") if d.strip())


def statistics_of(row: dict[str, str]) -> Statistics:
    """A count that the row has not is 0, or 1 if other columns say that there is such an element: a device's
    extremes are of all elements, the host's are NaN where no element is finite.
    """
    numbers = {name: float(row[column]) for column, name in COLUMNS.items() if row.get(column)}

    def number(name: str) -> float:
        return numbers.get(name, math.nan)

    def count(name: str, is_any: bool = False) -> int:
        return int(numbers.get(name, is_any))

    high, low = number("max"), number("min")
    infinite = count("negative_inf", low == -math.inf), count("positive_inf", high == math.inf)
    is_any = "max" in numbers and math.isnan(high) and not any(infinite) and row.get("Data Size") != "0"
    return Statistics(
        count("count"), high, low, number("mean"), number("l2norm"), count("nan", is_any), *infinite,
        count("zero"), count("negative"), count("positive"),
    )  # fmt: skip
