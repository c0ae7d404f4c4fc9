"""Complex numbers: parts, conjugate, angle, and making them from parts or from length and angle.

Gradient rules follow the bilinear convention, in which the cotangent of a holomorphic f is ``ct * f'``: the
rules of real functions then hold as they are. `autodiff.reverse` conjugates on the way in and out, so that
users see the gradient that points uphill, as MindSpore has it.
"""

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import broadcast_shapes, same, unbroadcast

COMPLEX_OF = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}
REAL_OF = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}


def _numbers(rand, *shape):
    return (rand(*shape) + 1j * rand(*shape)).astype(np.complex64)


def _samples(rand):
    yield _numbers(rand, 2, 3)
    yield _numbers(rand)
    yield _numbers(rand, 0, 2)
    yield _numbers(rand, 5).astype(np.complex128)
    yield np.array([0, 1, -1, 1j, -1j, -2 - 0j, np.inf, complex(np.nan, 1)], np.complex64)
    yield rand(3, 2)


@op(elementwise="same", infer=same(), mindir="Conj", onnx="Identity", method="conj")
def _conj(input):
    """Complex conjugate; real numbers stay.

    Shapes: any -> same.  dtypes: any.
    """
    return np.conj(input)


@_conj.vjp
def _conj(ct):
    return _conj(ct)


_conj.samples(_samples)


def _real_type(x):
    return TensorType(REAL_OF.get(x.dtype, x.dtype), x.shape)


@op(elementwise="same", infer=_real_type, mindir="Real", onnx="Identity", method="real")
def _real(input):
    """Real part.

    Shapes: any -> same.  dtypes: complex64 -> float32, complex128 -> float64, real ones stay.
    """
    return np.real(input)


@_real.vjp
def _real(ct, input_dtype):
    return cast(ct, input_dtype)


_real.samples(_samples)


@op(elementwise="same", infer=_real_type, mindir="Imag", method="imag")
def _imag(input):
    """Imaginary part; 0 for real numbers.

    Shapes: any -> same.  dtypes: complex64 -> float32, complex128 -> float64, real ones stay.
    """
    return np.imag(input)


@_imag.vjp
def _imag(ct, input_dtype):
    return _complex(ct * 0.0, -ct) if input_dtype.is_complex else ct * 0.0


_imag.samples(_samples)


def _complex_type(real, imag):
    if real.dtype is not imag.dtype or real.dtype not in COMPLEX_OF:
        raise TypeError(f"real and imag must both be float32 or both float64, but they are {real} and {imag}")
    return TensorType(COMPLEX_OF[real.dtype], broadcast_shapes(real.shape, imag.shape))


@op(elementwise="broadcast", name="complex", infer=_complex_type, mindir="Complex")
def _complex(real, imag):
    """``real + i * imag``.

    Shapes: broadcast.  dtypes: float32 -> complex64, float64 -> complex128.  Errors: TypeError for others.
    """
    return real + np.asarray(1j, np.result_type(real, np.complex64)) * imag


@_complex.vjp
def _complex(ct, real_shape, imag_shape):
    return unbroadcast(_real(ct), real_shape), unbroadcast(-_imag(ct), imag_shape)


@_complex.samples
def _complex(rand):
    yield rand(2, 3), rand(2, 3)
    yield rand(2, 1), rand(3)
    yield rand(), rand()
    yield rand(0, 2), rand(2)
    yield rand(3, dtype="float64"), rand(3, dtype="float64")


def _angle_type(x):
    if x.dtype not in REAL_OF:
        raise TypeError(f"input must be complex64 or complex128, but is {x.dtype.name}")
    return _real_type(x)


@op(elementwise="same", infer=_angle_type, mindir="Angle", method="angle")
def _angle(input):
    """Argument of complex numbers in radians, in (-pi, pi].

    Shapes: any -> same.  dtypes: complex64 -> float32, complex128 -> float64.  Errors: TypeError for others.
    """
    return np.angle(input)


@_angle.vjp
def _angle(ct, input):
    return _complex(ct * 0.0, -ct) / input  # angle = imag(log(z))


@_angle.samples
def _angle(rand):
    yield from (x for x in _samples(rand) if x.dtype.kind == "c")


@op(elementwise="broadcast", infer=_complex_type, mindir="Polar")
def _polar(abs, angle):
    """Complex numbers from length and angle: ``abs * (cos(angle) + i * sin(angle))``.

    Shapes: broadcast.  dtypes: float32 -> complex64, float64 -> complex128.
    """
    return (abs * np.cos(angle) + 1j * (abs * np.sin(angle))).astype(np.result_type(abs, np.complex64))


@_polar.vjp
def _polar(ct, angle, out, abs_shape, angle_shape):
    from mycelia.engine.ops.elementwise.trig import cos, sin

    return (
        unbroadcast(_real(ct * _complex(cos(angle), sin(angle))), abs_shape),
        unbroadcast(-_imag(ct * out), angle_shape),
    )


@_polar.samples
def _polar(rand):
    yield rand.positive(2, 3), rand(2, 3, low=-4, high=4)
    yield rand(), rand()
    yield rand(0, 2), rand(0, 2)
    yield rand(3, dtype="float64"), rand(3, dtype="float64")


def conj(input):
    """Complex conjugate; real numbers stay. Shapes: any -> same."""
    return _conj(input)


def real(input):
    """Real part. Shapes: any -> same.  dtypes: complex64 -> float32, complex128 -> float64, others stay."""
    return _real(input)


def imag(input):
    """Imaginary part, 0 for real numbers. Shapes: any -> same.  dtypes: as `real`."""
    return _imag(input)


def angle(input):
    """Argument of complex numbers in radians. Shapes: any -> same.  dtypes: complex -> floating."""
    return _angle(input)


def polar(abs, angle):
    """Complex numbers from length and angle. Shapes: equal -> same.  dtypes: float32, float64 -> complex."""
    return _polar(abs, angle)


def view_as_real(input):
    """Real and imaginary parts side by side in a new last axis.

    Shapes: [...] -> [..., 2].  dtypes: complex64 -> float32, complex128 -> float64.
    Errors: TypeError for real tensors.
    """
    from mycelia.engine.ops.arrays.joining import stack

    if not input.dtype.is_complex:
        raise TypeError(f"For 'view_as_real', the input must be complex, but its dtype is {input.dtype}.")
    return stack([_real(input), _imag(input)], -1)


__all__ = ["angle", "conj", "imag", "polar", "real", "view_as_real"]
