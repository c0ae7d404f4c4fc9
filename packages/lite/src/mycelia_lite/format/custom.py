"""Custom nodes: operators that the format has no table for, by name and attributes."""

from __future__ import annotations

import numpy as np

from mycelia_lite.format.table import Table


def custom(name: str, /, **attributes) -> Table:
    """A Custom node's primitive: attributes are texts, int64s or, where one is a float, float64s."""
    made = Table("Custom", type=name)
    made.attr = [
        Table("Attribute", name=key, data=_bytes(value)) for key, value in sorted(attributes.items())
    ]
    return made


def _bytes(value) -> bytes:
    if isinstance(value, str):
        return value.encode()
    values = np.atleast_1d(np.asarray(value))
    return values.astype("<f8" if values.dtype.kind == "f" else "<i8").tobytes()
