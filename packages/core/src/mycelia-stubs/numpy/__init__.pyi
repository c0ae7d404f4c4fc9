# Written by tools/gen_stubs.py.
from mycelia.dtype import (
    bool_ as bool_, float16 as float16, float32 as float32, int16 as int16, int32 as int32, int64 as int64,
    uint16 as uint16, uint32 as uint32, uint64 as uint64,
)
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.base.dtypes import DType as DType
from mycelia.faces.numpy.creation import (
    linspace as linspace, promote_types as promote_types, result_type as result_type,
)
from mycelia.faces.numpy.grids import diag_indices as diag_indices
from mycelia.faces.numpy.padding import pad as pad
from mycelia.faces.numpy.pairwise import clip as clip
from mycelia.faces.numpy.products import (
    cross as cross, matrix_power as matrix_power, multi_dot as multi_dot,
)
from mycelia.faces.numpy.reduction import average as average, norm as norm
from mycelia.faces.numpy.selecting import (
    apply_over_axes as apply_over_axes, intersect1d as intersect1d, isscalar as isscalar, unique as unique,
    unravel_index as unravel_index,
)
from mycelia.faces.numpy.sequences import (
    diff as diff, ediff1d as ediff1d, gradient as gradient, polyadd as polyadd, polysub as polysub,
)
from mycelia.faces.numpy.shaping import (
    append as append, array_split as array_split, concatenate as concatenate, dsplit as dsplit,
    hsplit as hsplit, split as split, vsplit as vsplit,
)
from mycelia.faces.numpy.statistics import histogram2d as histogram2d
from typing import Any as Any

__all__ = [
    "NINF", "PINF", "abs", "absolute", "add", "amax", "amin", "append", "apply_along_axis",
    "apply_over_axes", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "argmax", "argmin", "argwhere", "around", "array", "array_equal", "array_equiv", "array_split",
    "array_str", "asarray", "asfarray", "atleast_1d", "atleast_2d", "atleast_3d", "average", "bartlett",
    "bincount", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "blackman", "bool_",
    "broadcast_arrays", "broadcast_to", "cbrt", "ceil", "choose", "clip", "column_stack", "concatenate",
    "convolve", "copy", "copysign", "corrcoef", "correlate", "cos", "cosh", "count_nonzero", "cov", "cross",
    "cumprod", "cumsum", "deg2rad", "diag", "diag_indices", "diagflat", "diagonal", "diff", "digitize",
    "divide", "divmod", "dot", "dsplit", "dstack", "ediff1d", "empty", "empty_like", "equal", "exp", "exp2",
    "expand_dims", "expm1", "eye", "fabs", "fix", "flip", "fliplr", "flipud", "float16", "float32",
    "float64", "float_", "float_power", "floor", "floor_divide", "fmod", "full", "full_like", "gcd",
    "geomspace", "gradient", "greater", "greater_equal", "hamming", "hanning", "heaviside", "histogram",
    "histogram2d", "histogram_bin_edges", "histogramdd", "hsplit", "hstack", "hypot", "identity", "in1d",
    "indices", "inf", "inner", "int16", "int32", "int64", "int8", "int_", "interp", "intersect1d", "invert",
    "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isscalar", "ix_", "kron",
    "lcm", "less", "less_equal", "linspace", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logspace", "matmul", "matrix_power", "max",
    "maximum", "mean", "meshgrid", "mgrid", "min", "minimum", "mod", "moveaxis", "multi_dot", "multiply",
    "nan", "nancumsum", "nanmax", "nanmean", "nanmin", "nanstd", "nansum", "nanvar", "negative", "norm",
    "not_equal", "numeric_types", "ogrid", "ones", "ones_like", "outer", "pad", "pi", "piecewise",
    "polyadd", "polyder", "polyint", "polymul", "polysub", "polyval", "positive", "power", "promote_types",
    "ptp", "rad2deg", "radians", "rand", "randint", "randn", "ravel", "ravel_multi_index", "reciprocal",
    "remainder", "repeat", "reshape", "result_type", "rint", "roll", "rollaxis", "rot90", "round",
    "searchsorted", "select", "setdiff1d", "sign", "signbit", "sin", "sinh", "size", "sometrue", "split",
    "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take", "take_along_axis",
    "tan", "tanh", "tensordot", "tile", "trace", "transpose", "trapz", "tri", "tril", "tril_indices",
    "tril_indices_from", "triu", "triu_indices", "triu_indices_from", "true_divide", "trunc", "uint",
    "uint16", "uint32", "uint64", "uint8", "unique", "unravel_index", "unwrap", "vander", "var", "vsplit",
    "vstack", "where", "zeros", "zeros_like",
]

NINF: float
PINF: float

def abs(x, dtype=None) -> Tensor:
    """Elementwise absolute value; the most negative integer stays as it is."""

def absolute(x, dtype=None) -> Tensor:
    """Elementwise absolute value; the most negative integer stays as it is."""

def add(x1, x2, dtype=None) -> Tensor:
    """Elementwise ``input + other``; "or" for bool."""

def amax(a, axis=None, keepdims=False, initial=None, where=True) -> Tensor:
    """The maximum over `axis`, where `where` is true, and of `initial`."""

def amin(a, axis=None, keepdims=False, initial=None, where=True) -> Tensor:
    """The minimum over `axis`, where `where` is true, and of `initial`."""

def apply_along_axis(func1d, axis, arr, *args, **kwargs) -> Tensor:
    """What `func1d` makes of each vector along `axis`, in its place."""

def arange(start, stop=None, step=None, dtype=None) -> Tensor:
    """The numbers from `start` to `stop` (not included) in steps of `step`; alone, `start` is the stop."""

def arccos(input, dtype=None) -> Tensor:
    """Elementwise inverse cosine in radians, in [0, pi]; NaN outside of [-1, 1]."""

def arccosh(x, dtype=None) -> Tensor:
    """Elementwise inverse hyperbolic cosine; NaN below 1."""

def arcsin(x, dtype=None) -> Tensor:
    """Elementwise inverse sine in radians, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""

def arcsinh(x, dtype=None) -> Tensor:
    """Elementwise inverse hyperbolic sine."""

def arctan(x, dtype=None) -> Tensor:
    """Elementwise inverse tangent in radians, in [-pi/2, pi/2]."""

def arctan2(x1, x2, dtype=None) -> Tensor:
    """Angle in radians of the point (x = `other`, y = `input`), in [-pi, pi]."""

def arctanh(x, dtype=None) -> Tensor:
    """Elementwise inverse hyperbolic tangent; NaN outside of [-1, 1]."""

def argmax(a, axis=None) -> Tensor:
    """Where the maximum along `axis` is, or of all elements, counted through."""

def argmin(a, axis=None) -> Tensor:
    """Where the minimum along `axis` is, or of all elements, counted through."""

def argwhere(a) -> Tensor:
    """The indices of all elements that are not zero."""

def around(a, decimals=0) -> Tensor:
    """`a` rounded to `decimals` places, halves to even."""

def array(obj, dtype=None, copy=True, ndmin=0) -> Tensor:
    """A Tensor with the values of a Tensor, number, list or tuple, of rank `ndmin` at least."""

def array_equal(a1, a2, equal_nan=False) -> Tensor:
    """Whether both have one shape and equal elements, as a Tensor of one bool."""

def array_equiv(a1, a2) -> Tensor:
    """Whether elements are equal after broadcasting, as a Tensor of one bool; False if shapes do not fit."""

def array_str(a) -> str:
    """The elements as text. Errors: TypeError unless a Tensor."""

def asarray(a, dtype=None) -> Tensor:
    """`array` without a copy if `a` is a Tensor of that dtype already."""

def asfarray(a, dtype=...) -> Tensor:
    """`asarray` in a floating dtype: any other means float32; None keeps what `a` has."""

def atleast_1d(*arys) -> Any:
    """Tensors of rank 1 at least; a list if there are several."""

def atleast_2d(*arys) -> Any:
    """Tensors of rank 2 at least; a list if there are several."""

def atleast_3d(*arys) -> Any:
    """Tensors of rank 3 at least; a list if there are several."""

def bartlett(M) -> Tensor:
    """The Bartlett window, a triangle. Shapes: [M], empty below 1. dtypes: float32."""

def bincount(x, weights=None, minlength=0, length=None) -> Tensor:
    """How often 0, 1, 2, .. occur in a vector, or the sum of their weights."""

def bitwise_and(x1, x2, dtype=None) -> Tensor:
    """Bits set in both operands."""

def bitwise_not(x, dtype=None) -> Tensor:
    """Flips every bit: ``-x - 1`` for signed integers, "not" for bool."""

def bitwise_or(x1, x2, dtype=None) -> Tensor:
    """Bits set in either operand."""

def bitwise_xor(x1, x2, dtype=None) -> Tensor:
    """Bits set in exactly one operand."""

def blackman(M) -> Tensor:
    """The Blackman window. Shapes: [M], empty below 1. dtypes: float32."""

def broadcast_arrays(*args) -> list[Tensor]:
    """All Tensors under their common shape, as a list. Errors: ValueError if there is none."""

def broadcast_to(array, shape) -> Tensor:
    """`array` under a shape in which axes of size 1 repeat. Errors: ValueError if it cannot."""

def cbrt(x, dtype=None) -> Tensor:
    """`cbrt` of each element."""

def ceil(x, dtype=None) -> Tensor:
    """Smallest integer not below `input`."""

def choose(a, choices, mode='clip') -> Tensor:
    """For each element i of `a` the element of ``choices[i]`` at its place."""

def column_stack(tup) -> Tensor:
    """Vectors and matrices as columns of one matrix."""

def convolve(a, v, mode='full') -> Tensor:
    """Convolution of two vectors; "same" and "valid" give its middle, where most or all of them meets."""

def copy(a) -> Tensor:
    """A Tensor of its own with the values of `a`."""

def copysign(x1, x2, dtype=None) -> Tensor:
    """The size of `x1` with the sign of `x2`."""

def corrcoef(x, y=None, rowvar=True, dtype=None) -> Tensor:
    """Correlations of the rows of `x` (of the columns without `rowvar`), and of `y`; between -1 and 1."""

def correlate(a, v, mode='valid') -> Tensor:
    """Sums of products of `a` and `v` moved along it: `convolve` with `v` backwards."""

def cos(x, dtype=None) -> Tensor:
    """Elementwise cosine of an angle in radians."""

def cosh(x, dtype=None) -> Tensor:
    """Elementwise hyperbolic cosine."""

def count_nonzero(x, axis=None, keepdims=False) -> Tensor:
    """The number of elements over `axis` that are not zero."""

def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, dtype=None) -> Tensor:
    """Covariances of the rows of `m` (of the columns without `rowvar`), and of `y`."""

def cumprod(a, axis=None, dtype=None) -> Tensor:
    """Running product along `axis`, or of all elements."""

def cumsum(a, axis=None, dtype=None) -> Tensor:
    """Running sum along `axis`, or of all elements."""

def deg2rad(x, dtype=None) -> Tensor:
    """Degrees to radians."""

def diag(v, k=0) -> Tensor:
    """The `k`-th diagonal of a matrix, or the matrix with that diagonal."""

def diagflat(v, k=0) -> Tensor:
    """A matrix with all n elements of `v` on its `k`-th diagonal. Shapes: any -> [n + |k|, n + |k|]."""

def diagonal(a, offset=0, axis1=0, axis2=1) -> Tensor:
    """Diagonals of the matrices that `axis1` and `axis2` span; empty beyond the corner."""

def digitize(x, bins, right=False) -> Tensor:
    """The bin of each element: i if ``bins[i - 1] <= x < bins[i]``, with `right` ``<``, ``<=``."""

def divide(x1, x2, dtype=None) -> Tensor:
    """Elementwise quotient: true, or rounded by `rounding_mode` "floor" (down) or "trunc" (to zero)."""

def divmod(x1, x2, dtype=None) -> tuple[Tensor, Tensor]:
    """The floor of x1 / x2, and what is left."""

def dot(a, b) -> Tensor:
    """Sums of products over the last axis of `a` and the last but one of `b`; of numbers the product."""

def dstack(tup) -> Tensor:
    """Tensors behind one another: along the third axis."""

def empty(shape, dtype=...) -> Tensor:
    """A Tensor whose values do not matter: zeros."""

def empty_like(prototype, dtype=None, shape=None) -> Tensor:
    """`empty` with the shape and dtype of `prototype`, unless others are given."""

def equal(x1, x2, dtype=None) -> Tensor:
    """Elementwise ``input == other``; NaN equals nothing."""

def exp(x, dtype=None) -> Tensor:
    """Elementwise ``e ** input``."""

def exp2(x, dtype=None) -> Tensor:
    """2 to the x; integers are rounded towards zero."""

def expand_dims(a, axis) -> Tensor:
    """`a` with axes of size 1 at the places `axis` of the result."""

def expm1(x, dtype=None) -> Tensor:
    """Elementwise ``e ** input - 1``, accurate near zero."""

def eye(N, M=None, k=0, dtype=...) -> Tensor:
    """A matrix with ones on its `k`-th diagonal. Shapes: [N, M], M = N by default."""

def fabs(x, dtype=None) -> Tensor:
    """Elementwise absolute value; the most negative integer stays as it is."""

def fix(x) -> Tensor:
    """`input` without its fraction: rounded to zero."""

def flip(m, axis=None) -> Tensor:
    """`m` backwards along `axis`, or along all."""

def fliplr(m) -> Tensor:
    """`m` backwards along its second axis."""

def flipud(m) -> Tensor:
    """`m` backwards along its first axis."""
float64: DType
float_: DType

def float_power(x1, x2, dtype=None) -> Tensor:
    """Elementwise ``input ** exponent``; integers to negative powers are rounded to zero."""

def floor(x, dtype=None) -> Tensor:
    """Largest integer not above `input`."""

def floor_divide(x1, x2, dtype=None) -> Tensor:
    """Quotient rounded down: ``floor(x / y)``; integers by zero give the largest, the smallest or (0 / 0) 0."""

def fmod(x1, x2, dtype=None) -> Tensor:
    """What is left of x1 after division by x2; it has the sign of x1."""

def full(shape, fill_value, dtype=None) -> Tensor:
    """`fill_value` everywhere, broadcast if it is not a number."""

def full_like(a, fill_value, dtype=None, shape=None) -> Tensor:
    """`full` with the shape and dtype of `a`, unless others are given."""

def gcd(x1, x2, dtype=None) -> Tensor:
    """The greatest common divisor."""

def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0) -> Tensor:
    """`num` numbers from `start` to `stop`, each the same multiple of the one before."""

def greater(x1, x2, dtype=None) -> Tensor:
    """Elementwise ``input > other``."""

def greater_equal(x1, x2, dtype=None) -> Tensor:
    """Elementwise ``input >= other``."""

def hamming(M) -> Tensor:
    """The Hamming window. Shapes: [M], empty below 1. dtypes: float32."""

def hanning(M) -> Tensor:
    """The Hanning window. Shapes: [M], empty below 1. dtypes: float32."""

def heaviside(x1, x2, dtype=None) -> Tensor:
    """0 where x1 is negative, x2 where it is zero, 1 where it is positive."""

def histogram(a, bins=10, range=None, weights=None, density=False) -> tuple[Tensor, Tensor]:
    """How many elements (or how much of `weights`) fall in each bin, and the edges of the bins."""

def histogram_bin_edges(a, bins=10, range=None, weights=None) -> Tensor:
    """The edges of `bins` equal parts of `range`, by default from the least element to the largest."""

def histogramdd(sample, bins=10, range=None, weights=None, density=False) -> tuple[Tensor, list[Tensor]]:
    """A histogram of points: `sample` holds a point in each row, or the coordinates of all in each member."""

def hstack(tup) -> Tensor:
    """Tensors side by side: along the second axis, vectors along their only one."""

def hypot(x1, x2, dtype=None) -> Tensor:
    """Length of the hypotenuse, ``sqrt(input**2 + other**2)``, without overflow on the way."""

def identity(n, dtype=...) -> Tensor:
    """The identity matrix. Shapes: [n, n]."""

def in1d(ar1, ar2, invert=False) -> Tensor:
    """`isin` of a vector. Shapes: n elements -> [n]."""

def indices(dimensions, dtype=..., sparse=False) -> list[Tensor]:
    """The index of every element of a grid, a Tensor for each axis."""
inf: float

def inner(a, b) -> Tensor:
    """Sums of products over the last axes; of numbers the product."""
int8: DType
int_: DType

def interp(x, xp, fp, left=None, right=None) -> Tensor:
    """Linear interpolation between the points (xp, fp); `left` and `right` stand for what lies outside."""

def invert(x, dtype=None) -> Tensor:
    """Flips every bit: ``-x - 1`` for signed integers, "not" for bool."""

def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False) -> Tensor:
    """Whether elements are close: ``|a - b| <= atol + rtol * |b|``."""

def isfinite(x, dtype=None) -> Tensor:
    """Where `input` is neither infinite nor NaN."""

def isin(element, test_elements, invert=False) -> Tensor:
    """Whether each element is one of `test_elements`; the opposite with `invert`."""

def isinf(x, dtype=None) -> Tensor:
    """Where `input` is infinite of either sign."""

def isnan(x, dtype=None) -> Tensor:
    """Where `input` is not a number; false for integers."""

def isneginf(x) -> Tensor:
    """Where `input` is negative infinity."""

def isposinf(x) -> Tensor:
    """Where `input` is positive infinity."""

def ix_(*args) -> tuple[Tensor, ...]:
    """Vectors as an open grid: the i-th varies along axis i."""

def kron(a, b) -> Tensor:
    """The Kronecker product. Shapes: sizes multiply axis by axis, from the last. dtypes: promoted."""

def lcm(x1, x2, dtype=None) -> Tensor:
    """The least common multiple."""

def less(x1, x2, dtype=None) -> Tensor:
    """Elementwise ``input < other``."""

def less_equal(x1, x2, dtype=None) -> Tensor:
    """Elementwise ``input <= other``."""

def log(x, dtype=None) -> Tensor:
    """Elementwise natural logarithm; NaN below zero."""

def log10(x, dtype=None) -> Tensor:
    """Elementwise logarithm to base 10; NaN below zero."""

def log1p(x, dtype=None) -> Tensor:
    """Elementwise ``log(1 + input)``, accurate near zero; NaN below -1."""

def log2(x, dtype=None) -> Tensor:
    """Elementwise logarithm to base 2; NaN below zero."""

def logaddexp(x1, x2, dtype=None) -> Tensor:
    """``log(exp(input) + exp(other))`` without overflow on the way."""

def logaddexp2(x1, x2, dtype=None) -> Tensor:
    """The logarithm to base 2 of the sum of two powers of 2."""

def logical_and(x1, x2, dtype=None) -> Tensor:
    """Elementwise "and"; numbers count as true where they are not zero."""

def logical_not(a, dtype=None) -> Tensor:
    """`logical_not` of each element."""

def logical_or(x1, x2, dtype=None) -> Tensor:
    """Elementwise "or"; numbers count as true where they are not zero."""

def logical_xor(x1, x2, dtype=None) -> Tensor:
    """Elementwise "exclusive or"; numbers count as true where they are not zero."""

def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0) -> Tensor:
    """Powers of `base`, the exponents as of `linspace`."""

def matmul(x1, x2, dtype=None) -> Tensor:
    """Matrix product; vectors are rows on the left and columns on the right."""

def max(a, axis=None, keepdims=False, initial=None, where=True) -> Tensor:
    """The maximum over `axis`, where `where` is true, and of `initial`."""

def maximum(x1, x2, dtype=None) -> Tensor:
    """Elementwise larger operand; NaN if either is NaN."""

def mean(a, axis=None, keepdims=False, dtype=None) -> Tensor:
    """Mean over `axis`; integers are rounded towards zero."""

def meshgrid(*xi, sparse=False, indexing='xy') -> list[Tensor]:
    """Coordinates of a grid: one Tensor for each vector, which varies along its own axis only."""
mgrid: Any

def min(a, axis=None, keepdims=False, initial=None, where=True) -> Tensor:
    """The minimum over `axis`, where `where` is true, and of `initial`."""

def minimum(x1, x2, dtype=None) -> Tensor:
    """Elementwise smaller operand; NaN if either is NaN."""

def mod(x1, x2, dtype=None) -> Tensor:
    """What is left of x1 after floor division by x2; it has the sign of x2."""

def moveaxis(a, source, destination) -> Tensor:
    """`a` with the axes `source` at the places `destination`; the others keep their order."""

def multiply(x1, x2, dtype=None) -> Tensor:
    """Elementwise ``input * other``; "and" for bool."""
nan: float

def nancumsum(a, axis=None, dtype=None) -> Tensor:
    """`cumsum` with NaN counted as 0. Errors: TypeError unless a Tensor."""

def nanmax(a, axis=None, dtype=None, keepdims=False) -> Tensor:
    """Maximum over `axis` of the elements that are not NaN. dtypes: real -> same or `dtype`."""

def nanmean(a, axis=None, dtype=None, keepdims=False) -> Tensor:
    """Mean over `axis` of the elements that are not NaN; NaN if there are none. dtypes: float32."""

def nanmin(a, axis=None, dtype=None, keepdims=False) -> Tensor:
    """Minimum over `axis` of the elements that are not NaN. dtypes: real -> same or `dtype`."""

def nanstd(a, axis=None, dtype=None, ddof=0, keepdims=False) -> Tensor:
    """Standard deviation over `axis` of the elements that are not NaN: the square root of `nanvar`."""

def nansum(a, axis=None, dtype=None, keepdims=False) -> Tensor:
    """Sum over `axis` with NaN counted as 0. dtypes: number -> same or `dtype`."""

def nanvar(a, axis=None, dtype=None, ddof=0, keepdims=False) -> Tensor:
    """Variance over `axis` of the elements that are not NaN. dtypes: integers give float32, or `dtype`."""

def negative(a, dtype=None) -> Tensor:
    """Elementwise ``-input``; unsigned integers wrap around."""

def not_equal(x1, x2, dtype=None) -> Tensor:
    """Elementwise ``input != other``; NaN differs from everything."""
numeric_types: list
ogrid: Any

def ones(shape, dtype=...) -> Tensor:
    """Ones. Shapes: `shape`, an int or ints. Errors: ValueError for negative sizes."""

def ones_like(a, dtype=None, shape=None) -> Tensor:
    """`ones` with the shape and dtype of `a`, unless others are given."""

def outer(a, b) -> Tensor:
    """All products of the elements of `a` with those of `b`."""
pi: float

def piecewise(x, condlist, funclist, *args, **kw) -> Tensor:
    """Of each place what the function or number of the last condition that is true there gives."""

def polyder(p, m=1) -> Tensor:
    """The `m`-th derivative of a polynomial. Shapes: [n] -> [n - m]. Errors: ValueError for m < 0."""

def polyint(p, m=1, k=None) -> Tensor:
    """The `m`-th integral of a polynomial, with the constants `k`: one for all, or m of them; 0 by default."""

def polymul(a1, a2) -> Tensor:
    """The product of two polynomials, highest power first. Shapes: [n], [m] -> [n + m - 1]."""

def polyval(p, x) -> Tensor:
    """The polynomial `p`, highest power first, at the places `x`. Shapes: as `x`. dtypes: floating."""

def positive(a, dtype=None) -> Tensor:
    """`positive` of each element."""

def power(x1, x2, dtype=None) -> Tensor:
    """Elementwise ``input ** exponent``; integers to negative powers are rounded to zero."""

def ptp(x, axis=None, keepdims=False) -> Tensor:
    """The maximum less the minimum over `axis`. Errors: TypeError unless a Tensor."""

def rad2deg(x, dtype=None) -> Tensor:
    """Radians to degrees."""

def radians(x, dtype=None) -> Tensor:
    """Degrees to radians."""

def rand(*shape, dtype=...) -> Tensor:
    """Numbers of the uniform distribution over [0, 1). Shapes: `shape` as ints or one tuple."""

def randint(minval, maxval=None, shape=None, dtype=...) -> Tensor:
    """Integers of the uniform distribution over [minval, maxval); alone, `minval` is the bound, from 0."""

def randn(*shape, dtype=...) -> Tensor:
    """Numbers of the standard normal distribution. Shapes: `shape` as ints or one tuple."""

def ravel(x) -> Tensor:
    """All elements of `x` as a vector."""

def ravel_multi_index(multi_index, dims, mode='clip', order='C') -> Tensor:
    """The number of each element, counted through, from its indices along the axes."""

def reciprocal(x, dtype=None) -> Tensor:
    """1 / x; integers are rounded towards zero."""

def remainder(x1, x2, dtype=None) -> Tensor:
    """What is left of x1 after floor division by x2; it has the sign of x2."""

def repeat(a, repeats, axis=None) -> Tensor:
    """Each element of `a` `repeats` times, or its own number of times; None flattens first."""

def reshape(x, new_shape) -> Tensor:
    """The elements of `x` under another shape; one size may be -1."""

def rint(x, dtype=None) -> Tensor:
    """Rounded to `decimals` places; ties go to the even neighbour."""

def roll(a, shift, axis=None) -> Tensor:
    """`a` moved by `shift` along `axis`; what leaves one end enters at the other; None: as a vector."""

def rollaxis(x, axis, start=0) -> Tensor:
    """`x` with `axis` exchanged with the one at `start`, or the one before it if it lies behind."""

def rot90(a, k=1, axes=(0, 1)) -> Tensor:
    """`a` turned `k` times by a quarter in the plane of `axes`, from the first towards the second."""

def round(a, decimals=0) -> Tensor:
    """`a` rounded to `decimals` places, halves to even."""

def searchsorted(a, v, side='left', sorter=None) -> Tensor:
    """Where the elements of `v` belong in the sorted vector `a`: before equal ones, or after with "right"."""

def select(condlist, choicelist, default=0) -> Tensor:
    """Of each place the element of the first choice whose condition is true, else `default`."""

def setdiff1d(ar1, ar2, assume_unique=False) -> Tensor:
    """The elements of `ar1` that `ar2` has not, in order and once; as they come with `assume_unique`."""

def sign(x, dtype=None) -> Tensor:
    """`sign` of each element."""

def signbit(x, dtype=None) -> Tensor:
    """Whether each element is less than zero."""

def sin(x, dtype=None) -> Tensor:
    """Elementwise sine of an angle in radians."""

def sinh(x, dtype=None) -> Tensor:
    """Elementwise hyperbolic sine."""

def size(a, axis=None) -> int:
    """The number of elements, of all or along `axis`, as an int."""

def sometrue(a, axis=None, keepdims=False) -> Tensor:
    """Whether some element over `axis` is true or not zero."""

def sqrt(x, dtype=None) -> Tensor:
    """Elementwise square root; NaN below zero."""

def square(x, dtype=None) -> Tensor:
    """Elementwise ``input * input``."""

def squeeze(a, axis=None) -> Tensor:
    """`a` without axes of size 1: all, or those of `axis` that are."""

def stack(arrays, axis=0) -> Tensor:
    """Tensors of one shape along a new axis."""

def std(x, axis=None, ddof=0, keepdims=False) -> Tensor:
    """Standard deviation over `axis`: the square root of `var`."""

def subtract(x1, x2, dtype=None) -> Tensor:
    """Elementwise ``input - other``; integers wrap around."""

def sum(a, axis=None, dtype=None, keepdims=False, initial=None) -> Tensor:
    """Sum over `axis`, and `initial`."""

def swapaxes(x, axis1, axis2) -> Tensor:
    """`x` with two axes exchanged."""

def take(a, indices, axis=None, mode='clip') -> Tensor:
    """Elements, or slices along `axis`, at the places `indices`; places out of range are clipped or wrapped."""

def take_along_axis(arr, indices, axis) -> Tensor:
    """For each place of `indices` the element of `arr` at that index along `axis`; None flattens first."""

def tan(x, dtype=None) -> Tensor:
    """Elementwise tangent of an angle in radians."""

def tanh(x, dtype=None) -> Tensor:
    """Elementwise hyperbolic tangent."""

def tensordot(a, b, axes=2) -> Tensor:
    """Sums of products over `axes`: a number (the last of `a`, the first of `b`), or a pair of axes."""

def tile(a, reps) -> Tensor:
    """`a` repeated `reps` times along each axis. Errors: TypeError unless a Tensor."""

def trace(a, offset=0, axis1=0, axis2=1, dtype=None) -> Tensor:
    """Sums of the diagonals."""

def transpose(a, axes=None) -> Tensor:
    """`a` with its axes in another order, reversed by default."""

def trapz(y, x=None, dx=1.0, axis=-1) -> Tensor:
    """The integral along `axis` by trapezoids, at the places `x` or at distances `dx`."""

def tri(N, M=None, k=0, dtype=...) -> Tensor:
    """A matrix with ones on and below its `k`-th diagonal. Shapes: [N, M], M = N by default."""

def tril(m, k=0) -> Tensor:
    """Matrices with zeros above the `k`-th diagonal; a vector is broadcast to a square matrix."""

def tril_indices(n, k=0, m=None) -> tuple[Tensor, ...]:
    """The indices of the elements on and below the `k`-th diagonal of an n x m matrix: two vectors, int32."""

def tril_indices_from(arr, k=0) -> tuple[Tensor, ...]:
    """`tril_indices` for the shape of the matrix `arr`."""

def triu(m, k=0) -> Tensor:
    """Matrices with zeros below the `k`-th diagonal; a vector is broadcast to a square matrix."""

def triu_indices(n, k=0, m=None) -> tuple[Tensor, ...]:
    """The indices of the elements on and above the `k`-th diagonal of an n x m matrix: two vectors, int32."""

def triu_indices_from(arr, k=0) -> tuple[Tensor, ...]:
    """`triu_indices` for the shape of the matrix `arr`."""

def true_divide(x1, x2, dtype=None) -> Tensor:
    """Elementwise quotient: true, or rounded by `rounding_mode` "floor" (down) or "trunc" (to zero)."""

def trunc(x, dtype=None) -> Tensor:
    """`input` without its fraction: rounded to zero."""
uint: DType
uint8: DType

def unwrap(p, discont=3.141592653589793, axis=-1) -> Tensor:
    """Angles without jumps: differences larger than `discont` are changed by multiples of 2 pi."""

def vander(x, N=None, increasing=False) -> Tensor:
    """Powers of the vector `x` in `N` columns, from ``N - 1`` down to 0, or up with `increasing`."""

def var(x, axis=None, ddof=0, keepdims=False) -> Tensor:
    """Variance over `axis`: squares are divided by their number less `ddof`, or by 0."""

def vstack(tup) -> Tensor:
    """Tensors below one another; vectors are rows."""

def where(condition, x=None, y=None) -> Tensor:
    """Elements of `x` where `condition` is true, of `y` elsewhere."""

def zeros(shape, dtype=...) -> Tensor:
    """Zeros. Shapes: `shape`, an int or ints. Errors: ValueError for negative sizes."""

def zeros_like(a, dtype=None, shape=None) -> Tensor:
    """`zeros` with the shape and dtype of `a`, unless others are given."""
