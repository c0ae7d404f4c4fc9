"""Bases and choices of the transforms of sound."""

from __future__ import annotations

import enum

import numpy as np

from mycelia.dataset.transforms import Transform, is_text
from mycelia.engine.base import errors


class _Choice(str, enum.Enum):  # noqa: UP042 - printed by its name, as an Enum
    """Choices that are texts."""


BorderType = _Choice("BorderType", {k.upper(): k for k in ("constant", "edge", "reflect", "symmetric")})
DensityFunction = _Choice("DensityFunction", {k: k for k in ("TPDF", "RPDF", "GPDF")})
FadeShape = _Choice(
    "FadeShape",
    {k.upper(): k for k in ("quarter_sine", "half_sine", "linear", "logarithmic", "exponential")},
)
GainType = _Choice("GainType", {k.upper(): k for k in ("amplitude", "power", "db")})
Interpolation = _Choice("Interpolation", {k.upper(): k for k in ("linear", "quadratic")})
MelType = _Choice("MelType", {k.upper(): k for k in ("htk", "slaney")})
Modulation = _Choice("Modulation", {k.upper(): k for k in ("sinusoidal", "triangular")})
NormMode = _Choice("NormMode", {k.upper(): k for k in ("ortho", "none")})
NormType = _Choice("NormType", {k.upper(): k for k in ("slaney", "none")})
ResampleMethod = _Choice("ResampleMethod", {k.upper(): k for k in ("sinc_interpolation", "kaiser_window")})
ScaleType = _Choice("ScaleType", {k.upper(): k for k in ("power", "magnitude")})
WindowType = _Choice(
    "WindowType", {k.upper(): k for k in ("bartlett", "blackman", "hamming", "hann", "kaiser")}
)
for _enum in (
    BorderType, DensityFunction, FadeShape, GainType, Interpolation, MelType, Modulation, NormMode, NormType,
    ResampleMethod, ScaleType, WindowType,
):  # fmt: skip
    _enum.__module__ = __name__


class AudioTransform(Transform):
    """A transform of a sound [..., time]: `change` gets float64 and the result is float32.

    A column of float64 stays float64. TypeError for a scalar; RuntimeError for a rank that is too low, for
    texts, and for ints where only floats make sense.
    """

    rank = 1
    floats_only = False
    single = False  # the result is float32 for float64 too
    scalar_error = staticmethod(errors.type_error)

    def change(self, sound: np.ndarray) -> np.ndarray:
        """The changed sound."""
        raise NotImplementedError(f"{type(self).__name__} does not define change()")

    def check(self, array: np.ndarray) -> None:
        """Refuse what is no sound of the right rank."""
        name = type(self).__name__
        if is_text(array) or array.dtype.kind not in "biuf" or (self.floats_only and array.dtype.kind != "f"):
            raise self.refuse(
                "the data type of input tensor does not match the requirement of operator. It takes "
                f"{'floats' if self.floats_only else 'numbers'}, but got {array.dtype}"
            )
        if array.ndim < self.rank:
            make = self.scalar_error if array.ndim == 0 else errors.runtime_error
            raise make(
                name,
                "the shape of input tensor does not match the requirement of operator. It takes rank "
                f"{self.rank} or more, but got {array.shape}",
            )

    def apply(self, array):
        self.check(array)
        return self.change(array.astype(np.float64)).astype(np.float32 if self.single else _result(array))


class ComplexTransform(AudioTransform):
    """A transform of complex numbers [..., 2]: real and imaginary parts; `change` gets complex128."""

    rank = 2

    def check(self, array):
        super().check(array)
        if array.shape[-1] != 2:
            raise self.refuse(
                "the shape of input tensor does not match the requirement of operator. It takes complex "
                f"numbers [..., 2], but got {array.shape}"
            )

    def apply(self, array):
        self.check(array)
        found = self.change(as_complex(array))
        dtype = _result(array)
        if isinstance(found, tuple):
            return tuple(f.astype(dtype) for f in found)
        return as_pairs(found, dtype) if np.iscomplexobj(found) else found.astype(dtype)


def _result(array: np.ndarray) -> np.dtype:
    return np.dtype(np.float64 if array.dtype == np.float64 else np.float32)


def as_complex(array: np.ndarray) -> np.ndarray:
    """[..., 2] as complex128 [...]."""
    array = array.astype(np.float64)
    return array[..., 0] + 1j * array[..., 1]


def as_pairs(array: np.ndarray, dtype) -> np.ndarray:
    """Complex [...] as [..., 2]."""
    return np.stack([array.real, array.imag], axis=-1).astype(dtype)
