"""NumPy as scripts for MindSpore know it: MindSpore is built for NumPy 1, its names and its printing."""

from __future__ import annotations

import contextlib

import numpy as np

# Removed in NumPy 2 -> what the same thing is called there.
_REMOVED = {
    "Inf": "inf", "Infinity": "inf", "PINF": "inf", "infty": "inf", "NaN": "nan", "NAN": "nan",
    "float_": "float64", "complex_": "complex128", "cfloat": "complex128", "singlecomplex": "complex64",
    "longfloat": "longdouble", "clongfloat": "clongdouble", "longcomplex": "clongdouble",
    "string_": "bytes_", "unicode_": "str_", "bool8": "bool_", "int0": "intp", "uint0": "uintp",
    "object0": "object_",
    "product": "prod", "cumproduct": "cumprod", "sometrue": "any", "alltrue": "all", "round_": "round",
    "row_stack": "vstack", "asfarray": "_as_floating", "NINF": "_negative_infinity", "trapz": "trapezoid",
    "in1d": "_in1d", "mat": "asmatrix",
}  # fmt: skip


def _as_floating(a, dtype=np.float64):
    return np.asarray(a, dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def _in1d(ar1, ar2, assume_unique=False, invert=False, *, kind=None):
    return np.isin(np.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert, kind=kind)


_HERE = {"_as_floating": _as_floating, "_in1d": _in1d, "_negative_infinity": -np.inf}
_added: list[str] = []
_printing: dict = {}


def install() -> None:
    """Names that NumPy 2 removed, and scalars printed without their type."""
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return
    _printing.update(legacy=np.get_printoptions()["legacy"])
    np.set_printoptions(legacy="1.25")
    for old, new in _REMOVED.items():
        if old not in vars(np):
            with contextlib.suppress(AttributeError):  # a later NumPy may have renamed the new name in turn
                setattr(np, old, _HERE[new] if new in _HERE else getattr(np, new))
                _added.append(old)


def uninstall() -> None:
    """NumPy as it was."""
    if _printing:
        np.set_printoptions(**_printing)
        _printing.clear()
    while _added:
        delattr(np, _added.pop())


class _One(np.ndarray):
    """An array of one element that converts to a number, as all did before NumPy 2.4."""

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return array[()] if return_scalar else as_number(np.asarray(array))

    def __reduce__(self):
        return np.asarray(self).__reduce__()

    def __repr__(self) -> str:
        return repr(np.asarray(self))


_One.__name__ = _One.__qualname__ = "ndarray"
_One.__module__ = "numpy"


def as_number(array: np.ndarray) -> np.ndarray:
    """The same array; one of one element so that `float`, `int` and `complex` take it."""
    return array.view(_One) if array.ndim and array.size == 1 else array
