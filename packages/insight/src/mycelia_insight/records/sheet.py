"""A table as a file of spreadsheets, .xlsx (ECMA-376): one sheet, cells of text, never formulas."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

_LONGEST = 32_767  # characters of a cell
_ROWS = 1_048_576
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
MEDIA_TYPE = f"{_KIND}.sheet"

_PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_KIND}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_KIND}.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_LINKS}"><Relationship Id="rId1" Type="{_OFFICE}/officeDocument" '
    'Target="xl/workbook.xml"/></Relationships>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_LINKS}"><Relationship Id="rId1" '
    f'Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}


def workbook(title: str, rows: Iterable[Sequence[str]]) -> bytes:
    """The file. `title`: of the sheet; rows beyond what a sheet holds, and the rest of long cells, are left
    out.
    """
    cells = []
    for number, row in enumerate(rows):
        if number == _ROWS:
            break
        texts = "".join(
            f'<c t="inlineStr"><is><t xml:space="preserve">{_text(one)}</t></is></c>' for one in row
        )
        cells.append(f"<row>{texts}</row>")
    name = re.sub(r"[][*?:/\\]", " ", title)[:31] or "Sheet1"
    parts = {
        **_PARTS,
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets><sheet '
        f'name="{escape(name, {chr(34): "&quot;"})}" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_MAIN}"><sheetData>{"".join(cells)}</sheetData>'
        "</worksheet>",
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for path, content in parts.items():
            file.writestr(path, _HEAD + content)
    return made.getvalue()


def _text(cell: str) -> str:
    return escape(_UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", cell[:_LONGEST]))
