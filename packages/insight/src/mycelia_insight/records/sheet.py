"""A table as a file of spreadsheets, .xlsx: one sheet of texts and numbers, never formulas or links."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Sequence

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_ROWS = 1_048_576
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0
_EXACT = 2**53  # up to which whole numbers are kept by the numbers of a sheet


def workbook(title: str, rows: Iterable[Sequence[str | int | float]]) -> bytes:
    """The file. `title`: of the sheet; rows beyond what a sheet holds, and what of a cell is beyond 32,767
    characters, are left out. Numbers that a sheet has none for, NaN, infinities and integers beyond 2**53,
    are texts.
    """
    import xlsxwriter  # needed here alone

    made = io.BytesIO()
    with xlsxwriter.Workbook(made, {"in_memory": True}) as file:
        # Excel takes no name that is empty, of these characters, or with an apostrophe at an end.
        sheet = file.add_worksheet(re.sub(r"[][*?:/\\]", " ", _text(title))[:31].strip("'") or "Sheet1")
        for number, row in enumerate(rows):
            if number == _ROWS:
                break
            for column, one in enumerate(row):
                if isinstance(one, str) or not _is_exact(one):
                    sheet.write_string(number, column, _text(str(one)))
                else:
                    sheet.write_number(number, column, one)
    return made.getvalue()


def _is_exact(cell: float) -> bool:
    return abs(cell) <= _EXACT if isinstance(cell, int) else math.isfinite(cell)


def _text(cell: str) -> str:
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", cell)
