"""How tensors are written as text: ``repr`` in MindSpore's own form, ``str`` as NumPy's text of the
elements."""

from __future__ import annotations

import numpy as np

_EDGE = 3  # elements, rows, ... that are shown before and after the dots
_WHOLE_VECTOR = 1000  # longer vectors are shortened; other axes are from 2 * _EDGE + 1 on
_PER_LINE = {"f": 12, "b": 12}  # elements of a vector in one line
_PER_LINE_OTHERWISE = 24


def summary(values: np.ndarray, dtype, comma: bool = True) -> str:
    """The elements in brackets: columns of equal width, long axes shortened.

    `values`: bfloat16 as float32. Without `comma` elements are separated by blanks, as `ops.Print` writes
    them.
    """
    if values.ndim == 0:
        return scalar(values[()], dtype)
    if values.size == 0:
        return ""
    shortened = values.shape[0] > _WHOLE_VECTOR if values.ndim == 1 else None
    places = [_places(n, shortened) for n in values.shape]
    shown = values[np.ix_(*([i for i in axis if i is not None] for axis in places))]
    texts = _elements(shown, dtype)
    per_line = _PER_LINE.get(dtype.kind, _PER_LINE_OTHERWISE) if values.ndim == 1 else None
    return _rows(texts, places, 0, "," if comma else "", per_line)


def _places(n: int, shortened: bool | None) -> list[int | None]:
    """The positions along an axis that are shown; None stands for the dots."""
    if shortened is None:
        shortened = n > 2 * _EDGE
    return [*range(_EDGE), None, *range(n - _EDGE, n)] if shortened else list(range(n))


def _rows(texts: np.ndarray, places: list, depth: int, comma: str, per_line: int | None) -> str:
    innermost = depth == len(places) - 1
    parts = []
    at = 0
    for k, place in enumerate(places[depth]):
        if place is None:
            parts.append("... " if innermost else "...\n" + " " * (depth + 1))
            continue
        last = k == len(places[depth]) - 1
        before_dots = not last and places[depth][k + 1] is None
        if innermost:
            parts.append(texts[at] + ("" if last else " " if before_dots else comma + " "))
            if per_line and None not in places[depth] and (k + 1) % per_line == 0:
                parts.append("\n ")
        else:
            row = _rows(texts[at], places, depth + 1, comma, None)
            parts.append(row + ("" if last else comma + "\n" + " " * (depth + 1)))
        at += 1
    return "[" + "".join(parts) + "]"


def _elements(values: np.ndarray, dtype) -> np.ndarray:
    """The text of each element, of equal width unless they are complex."""
    if dtype.kind == "f":
        forms = {"bfloat16": ("%.6g", 0), "float16": ("% .4e", 11)}
        form, width = forms.get(dtype.name, ("% .8e", 15))
        texts = [form % v if np.isfinite(v) else _unusual(v) for v in values.ravel().tolist()]
        width = width or max(map(len, texts), default=0)
        texts = [t.rjust(width) for t in texts]
    elif dtype.kind == "c":
        texts = [_complex(v) for v in values.ravel().tolist()]
    else:
        texts = [str(v) for v in values.ravel().tolist()]
        width = 5 if dtype.kind == "b" else max(map(len, texts))
        texts = [t.rjust(width) for t in texts]
    return np.array(texts, dtype=object).reshape(values.shape)


def _unusual(value: float) -> str:
    return "nan" if value != value else "inf" if value > 0 else "-inf"


def _complex(value: complex) -> str:
    return f"{value.real:g}{value.imag:+g}j"


def scalar(value, dtype) -> str:
    """One element as `repr` shows it: numbers with 6 digits."""
    if dtype.kind == "c":
        return _complex(complex(value))
    return f"{float(value):g}" if dtype.kind == "f" else str(value.item())


def plain(values: np.ndarray, dtype) -> str:
    """The text of ``print(tensor)``: that of the NumPy array; bfloat16 with 6 decimals."""
    if dtype.name == "bfloat16":
        form = {"float_kind": "{:f}".format}
        return np.array2string(values, separator=" ", formatter=form) if values.ndim else f"{float(values):f}"
    if values.ndim:
        return np.array2string(values, separator=" ")
    value = values[()]
    if dtype.kind != "f" or not np.isfinite(value):
        return str(value)
    # NumPy's own text of large float32 scalars depends on its version
    if value == 0 or 1e-4 <= abs(float(value)) < 1e16:
        return np.format_float_positional(value, unique=True, trim="0")
    return np.format_float_scientific(value, unique=True, trim="-", exp_digits=2)
