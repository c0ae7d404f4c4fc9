"""Texts of TensorBoard: tensors of strings, a table if they have two dimensions."""

from __future__ import annotations

from mycelia_insight.records.tensors import strings

MOST_BYTES = 4 << 20


def decode(message: bytes) -> list[list[str]]:
    """Rows of cells; one text is one row with one cell.  Errors: Broken."""
    shape, found = strings(message)
    width = shape[-1] if len(shape) > 1 else 1
    cells = [text.decode("utf-8", "replace") for text in found]
    return [cells[at : at + width] for at in range(0, len(cells), max(1, width))]
