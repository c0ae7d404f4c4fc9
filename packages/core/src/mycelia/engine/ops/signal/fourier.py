"""Discrete Fourier transforms over one, two or all axes, their frequencies and the shifts of their halves.

Three ops do the work: complex to complex over several axes, and real to half a spectrum and back over one.
All else, also padding and cutting to a size, is composed of them. Source: Cooley and Tukey 1965, as in NumPy.
"""

import math

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays.axes import roll
from mycelia.engine.ops.arrays.create import arange
from mycelia.engine.ops.arrays.padding import pad
from mycelia.engine.ops.arrays.shape import as_ints, constant, reshape
from mycelia.engine.ops.arrays.slicing import narrow
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.elementwise.complex_numbers import COMPLEX_OF, REAL_OF, _conj, _numbers, _real
from mycelia.engine.ops.infer import normalize_axis, same_along

# ------------------------------------------------------------------------------------------- transforms


@op(name="fft_complex", infer=same_along, batch=_batch.along("axes", empty_is_all=False))
def _transform(x, *, axes: "ints", inverse: "bool" = False, scale: "float" = 1.0):
    """``scale * sum over j of x[j] * exp(-2 pi i j k / n)`` along each of `axes`; `inverse` turns the sign.

    Shapes: any -> same.  dtypes: complex.
    """
    wide = x.astype(np.complex128)
    found = np.fft.ifftn(wide, axes=axes, norm="forward") if inverse else np.fft.fftn(wide, axes=axes)
    return found * scale


@_transform.vjp
def _transform(ct, axes, inverse, scale):
    return _transform(ct, axes=axes, inverse=inverse, scale=scale)  # the matrix is symmetric


@_transform.samples
def _transform(rand):
    yield _numbers(rand, 5), dict(axes=(0,))
    yield _numbers(rand, 2, 3, 4), dict(axes=(0, 2), inverse=True, scale=0.5)
    yield _numbers(rand, 2, 1), dict(axes=(1,))
    yield _numbers(rand, 2, 3).astype(np.complex128), dict(axes=(1, 0))


def _half_type(x, *, axis, scale):
    shape, axis = list(x.shape), normalize_axis(axis, x.rank)
    shape[axis] = shape[axis] // 2 + 1
    return TensorType(COMPLEX_OF[x.dtype], tuple(shape))


@op(name="fft_real", infer=_half_type, batch=_batch.along("axis"))
def _half_spectrum(x, *, axis: "int", scale: "float" = 1.0):
    """The first n // 2 + 1 values of the spectrum of real numbers; the others are their conjugates.

    Shapes: [.., n, ..] -> [.., n // 2 + 1, ..].  dtypes: float32, float64 -> complex.
    """
    return np.fft.rfft(x.astype(np.float64), axis=axis) * scale


@_half_spectrum.vjp
def _half_spectrum(ct, x_shape, axis, scale):
    full = _sized(ct, x_shape[axis], axis)
    return _real(_transform(full, axes=(axis,), scale=scale))


@_half_spectrum.samples
def _half_spectrum(rand):
    yield rand(6), dict(axis=0)
    yield rand(2, 5, 3), dict(axis=1, scale=0.5)
    yield rand(4, 1), dict(axis=1)
    yield rand(3, 4, dtype="float64"), dict(axis=0)


def _whole_type(x, *, n, axis, scale):
    shape, axis = list(x.shape), normalize_axis(axis, x.rank)
    shape[axis] = n
    return TensorType(REAL_OF[x.dtype], tuple(shape))


@op(name="fft_half_to_real", infer=_whole_type, batch=_batch.along("axis"))
def _from_half_spectrum(x, *, n: "int", axis: "int", scale: "float" = 1.0):
    """The n real numbers whose inverse transform has the half spectrum `x`, times n.

    Shapes: [.., n // 2 + 1, ..] -> [.., n, ..].  dtypes: complex -> floating.
    """
    return np.fft.irfft(x.astype(np.complex128), n, axis=axis, norm="forward") * scale


@_from_half_spectrum.vjp
def _from_half_spectrum(ct, n, axis, scale):
    half = _conj(_half_spectrum(ct, axis=axis, scale=scale))
    count = np.full(n // 2 + 1, 2.0)  # all but the ends stand for their conjugates too
    count[0] = 1.0
    if n % 2 == 0:
        count[-1] = 1.0
    rank = len(half.shape)
    weights = constant(count, REAL_OF[half.dtype])
    return half * reshape(weights, tuple(-1 if i == axis else 1 for i in range(rank)))


@_from_half_spectrum.samples
def _from_half_spectrum(rand):
    yield _numbers(rand, 4), dict(n=6, axis=0)
    yield _numbers(rand, 2, 3, 3), dict(n=5, axis=1, scale=0.2)
    yield _numbers(rand, 2, 1), dict(n=1, axis=1)


# ------------------------------------------------------------------------------------- sizes and norms


def _sized(x, n, axis):
    """`x` cut at its end, or padded with zeros, to `n` along `axis`."""
    have = x.shape[axis]
    if n == have:
        return x
    if n < have:
        return narrow(x, axis, 0, n)
    padding = [0] * (2 * (len(x.shape) - axis))
    padding[-1] = n - have
    return pad(x, padding)


_FORWARD = {"backward": 0.0, None: 0.0, "ortho": -0.5, "forward": -1.0}


def _scale(name, norm, inverse, sizes):
    """The factor of a transform over `sizes` in the convention `norm`."""
    if norm not in _FORWARD:
        raise errors.value_error(
            f"For '{name}', 'norm' must be 'backward', 'forward' or 'ortho', but got {norm!r}."
        )
    power = -1.0 - _FORWARD[norm] if inverse else _FORWARD[norm]
    return 1.0 if power == 0 else (math.prod(sizes) * 1.0) ** power  # float() would fix a size left open


def _floating(x):
    """Integers and half precision as float32."""
    return x if x.dtype in (dtypes.float32, dtypes.float64) or x.dtype.is_complex else cast(x, dtypes.float32)


def _complex(x):
    x = _floating(x)
    return cast(x, COMPLEX_OF.get(x.dtype, x.dtype))


def _axes_and_sizes(name, x, s, dim, last_from=None):
    """Axes and sizes of a transform over several axes.

    `last_from`: how the size of the last axis follows from the input's, where it differs.
    """
    rank = len(x.shape)
    if rank == 0:
        raise errors.value_error(f"For '{name}', the input must have at least one axis.")
    if dim is None:
        dim = range(rank) if s is None else range(rank - len(_tuple(s)), rank)
    axes = tuple(normalize_axis(a, rank, "dim") for a in _tuple(dim))
    if len(set(axes)) != len(axes):
        raise errors.value_error(f"For '{name}', 'dim' must not name an axis twice, but got {tuple(dim)}.")
    own = [x.shape[a] for a in axes]
    if last_from is not None and own:
        own[-1] = last_from(own[-1])
    if s is None:
        return axes, own
    s = _tuple(s)
    if len(s) != len(axes):
        raise errors.value_error(
            f"For '{name}', 's' and 'dim' must have the same length, but got {s} and {axes}."
        )
    if any(n < 1 for n in s):
        raise errors.value_error(f"For '{name}', the sizes in 's' must be positive, but got {s}.")
    return axes, list(s)


def _tuple(value):
    return (value,) if isinstance(value, int) else as_ints(value)


def _fold(n):
    """The real length whose half spectrum has n values, by default."""
    return 2 * (n - 1)


def _complex_transform(name, x, s, dim, norm, inverse):
    axes, sizes = _axes_and_sizes(name, x, s, dim)
    x = _complex(x)
    for a, n in zip(axes, sizes):
        x = _sized(x, n, a)
    return _transform(x, axes=axes, inverse=inverse, scale=_scale(name, norm, inverse, sizes))


def _real_transform(name, x, s, dim, norm, inverse=False):
    """Real to half a spectrum, over the last of the axes; the others follow. `inverse`: of the Hermitian."""
    axes, sizes = _axes_and_sizes(name, x, s, dim)
    if x.dtype.is_complex:  # the same part of a spectrum without symmetry
        return narrow(_complex_transform(name, x, s, dim, norm, inverse), axes[-1], 0, sizes[-1] // 2 + 1)
    x = _floating(x)
    for a, n in zip(axes, sizes):
        x = _sized(x, n, a)
    half = _half_spectrum(x, axis=axes[-1], scale=_scale(name, norm, inverse, sizes))
    if inverse:
        half = _conj(half)
    return _transform(half, axes=axes[:-1], inverse=inverse) if len(axes) > 1 else half


def _to_real_transform(name, x, s, dim, norm, inverse=True):
    """Half a spectrum to real numbers; the Hermitian transform is the one that is not the inverse."""
    axes, sizes = _axes_and_sizes(name, x, s, dim, _fold)
    if sizes[-1] < 1:
        raise errors.value_error(f"For '{name}', the last size must be positive, but is {sizes[-1]}.")
    x = _complex(x)
    for a, n in zip(axes, (*sizes[:-1], sizes[-1] // 2 + 1)):
        x = _sized(x, n, a)
    if len(axes) > 1:
        x = _transform(x, axes=axes[:-1], inverse=inverse)
    if not inverse:
        x = _conj(x)
    scale = _scale(name, norm, inverse, sizes)
    return _from_half_spectrum(x, n=sizes[-1], axis=axes[-1], scale=scale)


_KINDS = {
    "fft": (_complex_transform, False, "Fourier transform"),
    "ifft": (_complex_transform, True, "inverse Fourier transform"),
    "rfft": (_real_transform, False, "first half of the Fourier transform of real numbers"),
    "irfft": (_to_real_transform, True, "real numbers from the first half of their Fourier transform"),
    "hfft": (_to_real_transform, False, "Fourier transform, which is real, of the first half of a Hermitian"),
    "ihfft": (_real_transform, True, "first half of the inverse Fourier transform of real numbers"),
}
_DETAIL = """

    Shapes: the transformed axes take the sizes asked for (half a spectrum: n // 2 + 1).
    dtypes: integers count as float32; float32 belongs to complex64, float64 to complex128.
    Errors: ValueError for `norm`, axes and sizes.
"""


def _make(name):
    transform, inverse, text = _KINDS[name]

    def one(input, n=None, dim=-1, norm=None):
        return transform(name, input, None if n is None else (n,), (dim,), norm, inverse)

    def two(input, s=None, dim=(-2, -1), norm=None):
        return transform(name + "2", input, s, dim, norm, inverse)

    def several(input, s=None, dim=None, norm=None):
        return transform(name + "n", input, s, dim, norm, inverse)

    for function, suffix, where in ((one, "", "axis `dim`"), (two, "2", "two axes"), (several, "n", "`dim`")):
        function.__name__ = function.__qualname__ = name + suffix
        function.__doc__ = f"The {text}, along {where}.{_DETAIL}"
    return one, two, several


fft, fft2, fftn = _make("fft")
ifft, ifft2, ifftn = _make("ifft")
rfft, rfft2, rfftn = _make("rfft")
irfft, irfft2, irfftn = _make("irfft")
hfft, hfft2, hfftn = _make("hfft")
ihfft, ihfft2, ihfftn = _make("ihfft")

# -------------------------------------------------------------------------------- frequencies and shifts


def _frequencies(name, counts, n, d, dtype):
    if not isinstance(n, int) or isinstance(n, bool):
        raise errors.type_error(f"For '{name}', 'n' must be an int, but got {n!r}.")
    if n <= 0 or d == 0:
        raise errors.value_error(f"For '{name}', 'n' must be positive and 'd' not 0, but got {n} and {d}.")
    values = cast(counts, dtypes.float32 if dtype is None else dtype)
    return values / float(n * d)


def fftfreq(n, d=1.0, dtype=None):
    """Frequencies of `fft` over n samples at distance d: 0, 1, .., then the negative ones, over n * d.

    Shapes: -> [n].  dtypes: -> `dtype`, float32 by default.
    """
    counts = roll(arange(-(n // 2), (n + 1) // 2), (n + 1) // 2, 0) if isinstance(n, int) and n > 0 else None
    return _frequencies("fftfreq", counts, n, d, dtype)


def rfftfreq(n, d=1.0, dtype=None):
    """Frequencies of `rfft` over n samples at distance d: 0 .. n // 2 over n * d.

    Shapes: -> [n // 2 + 1].  dtypes: -> `dtype`, float32 by default.
    """
    counts = arange(0, n // 2 + 1) if isinstance(n, int) and n > 0 else None
    return _frequencies("rfftfreq", counts, n, d, dtype)


def _shifted(x, dim, part):
    rank = len(x.shape)
    axes = tuple(range(rank)) if dim is None else tuple(normalize_axis(a, rank, "dim") for a in _tuple(dim))
    return roll(x, tuple(part(x.shape[a]) for a in axes), axes) if axes else x


def fftshift(input, dim=None):
    """Frequency zero moved to the middle of the axes `dim`, all by default. Shapes: any -> same."""
    return _shifted(input, dim, lambda n: n // 2)


def ifftshift(input, dim=None):
    """Frequency zero moved back to the start: undoes `fftshift`. Shapes: any -> same."""
    return _shifted(input, dim, lambda n: -(n // 2))


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn",
    "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq",
    "rfftn",
]  # fmt: skip
