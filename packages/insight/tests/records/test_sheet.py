"""Tables as files of spreadsheets."""

from __future__ import annotations

import io
import zipfile
from xml.etree import ElementTree

import pytest

from mycelia_insight.records.sheet import workbook

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def cells_of(data: bytes) -> list[list[str | float]]:
    """Texts and numbers of the only sheet of a file; nothing else is in a cell."""
    file = zipfile.ZipFile(io.BytesIO(data))
    assert file.testzip() is None
    strings = ElementTree.fromstring(file.read("xl/sharedStrings.xml"))
    texts = ["".join(one.itertext()) for one in strings]
    sheet = ElementTree.fromstring(file.read("xl/worksheets/sheet1.xml"))
    assert not [one.tag for one in sheet.iter() if one.tag in (f"{MAIN}f", f"{MAIN}hyperlink")]
    rows = []
    for row in sheet.find(f"{MAIN}sheetData"):
        assert all(cell.get("t") in ("s", None) for cell in row)
        values = [(cell.get("t"), cell.find(f"{MAIN}v").text) for cell in row]
        rows.append([texts[int(value)] if kind == "s" else float(value) for kind, value in values])
    return rows


def test_texts_that_look_like_formulas_links_and_numbers_stay_texts():
    row = ["=1+1", "{=SUM(A1)}", "+3", "-2", "@x", "http://a.b", "mailto:a@b", "internal:A1", "1e3", "nan"]
    assert cells_of(workbook("texts", [row, ["α 𝄞", "a\nb", " a ", "<b>&"]])) == [
        row,
        ["α 𝄞", "a\nb", " a ", "<b>&"],
    ]


def test_numbers_are_numbers_and_what_a_sheet_has_no_number_for_is_text():
    row = [0, -5, 1.5, 1e300, 2**53, 2**53 + 1, -(2**70), float("nan"), float("inf"), float("-inf")]
    (told,) = cells_of(workbook("numbers", [row]))
    assert told[:5] == [0.0, -5.0, 1.5, 1e300, 2.0**53]
    assert told[5:] == [str(2**53 + 1), str(-(2**70)), "nan", "inf", "-inf"]


def test_characters_and_lengths_that_a_sheet_does_not_take():
    (row,) = cells_of(workbook("odd", [["a\x07\ud800\ufffe", "x" * 40_000, "𝄞" * 40_000]]))
    assert row[0] == "a\N{REPLACEMENT CHARACTER}" + "\N{REPLACEMENT CHARACTER}" * 2
    assert len(row[1]) == 32_767 and 0 < len(row[2].encode("utf-16-le")) // 2 <= 32_767


@pytest.mark.parametrize("title", ["", "'", "a[b]:*?/\\c", "x" * 100, "'a'", "\x07", "=1", "x" * 30 + "'y"])
def test_any_title_makes_a_sheet(title):
    file = zipfile.ZipFile(io.BytesIO(workbook(title, [["a"]])))
    (sheet,) = ElementTree.fromstring(file.read("xl/workbook.xml")).iter(f"{MAIN}sheet")
    name = sheet.get("name")
    assert 0 < len(name) <= 31 and not set(name) & set("[]:*?/\\") and name.strip("'") == name
