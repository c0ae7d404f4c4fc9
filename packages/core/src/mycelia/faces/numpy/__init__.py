"""numpy: NumPy's functions on Tensors; Python's numbers become int32 and float32.

A function has its home in one module of this package; names are looked up on first use.
"""

from __future__ import annotations

from importlib import import_module

_HOMES = {
    "elementwise": """
        abs absolute arccos arccosh arcsin arcsinh arctan arctanh around bitwise_not cbrt ceil cos cosh
        deg2rad exp exp2 expm1 fabs fix floor invert isfinite isinf isnan isneginf isposinf log log10 log1p
        log2 logical_not negative positive rad2deg radians reciprocal rint round sign signbit sin sinh sqrt
        square tan tanh trunc
    """,
    "pairwise": """
        add arctan2 bitwise_and bitwise_or bitwise_xor clip copysign divide divmod equal float_power
        floor_divide fmod gcd greater greater_equal heaviside hypot lcm less less_equal logaddexp logaddexp2
        logical_and logical_or logical_xor maximum minimum mod multiply not_equal power remainder subtract
        true_divide
    """,
    "creation": """
        arange array asarray asfarray copy empty empty_like eye full full_like geomspace identity linspace
        logspace ones ones_like promote_types rand randint randn result_type zeros zeros_like
    """,
    "grids": """
        bartlett blackman diag diag_indices diagflat diagonal hamming hanning indices ix_ meshgrid mgrid
        ogrid trace tri tril tril_indices tril_indices_from triu triu_indices triu_indices_from vander
    """,
    "padding": "pad",
    "shaping": """
        append array_split atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to column_stack
        concatenate dsplit dstack expand_dims flip fliplr flipud hsplit hstack moveaxis ravel repeat reshape
        roll rollaxis rot90 size split squeeze stack swapaxes tile transpose vsplit vstack
    """,
    "selecting": """
        apply_along_axis apply_over_axes argwhere array_equal array_equiv array_str choose in1d intersect1d
        isclose isin isscalar piecewise ravel_multi_index select setdiff1d take take_along_axis unique
        unravel_index where
    """,
    "reduction": """
        amax amin argmax argmin average count_nonzero cumprod cumsum max mean min nancumsum nanmax nanmean
        nanmin nanstd nansum nanvar norm ptp sometrue std sum var
    """,
    "statistics": """
        bincount corrcoef cov digitize histogram histogram2d histogram_bin_edges histogramdd searchsorted
    """,
    "sequences": """
        convolve correlate diff ediff1d gradient interp polyadd polyder polyint polymul polysub polyval trapz
        unwrap
    """,
    "products": "cross dot inner kron matmul matrix_power multi_dot outer tensordot",
    "constants": """
        NINF PINF bool_ float16 float32 float64 float_ inf int16 int32 int64 int8 int_ nan numeric_types pi
        uint uint16 uint32 uint64 uint8
    """,
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_NAMES)


def __getattr__(name: str):
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=None)
    value = getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
