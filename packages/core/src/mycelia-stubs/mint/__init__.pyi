# Written by tools/gen_stubs.py.
from . import distributed as distributed, linalg as linalg, nn as nn, optim as optim, special as special
from mycelia.engine._C import Tensor as Tensor, TensorLike as TensorLike
from mycelia.engine.ops.arrays.masks import nonzero as nonzero
from mycelia.engine.ops.arrays.order import unique_consecutive as unique_consecutive
from mycelia.engine.ops.linalg.einsum import einsum as einsum
from mycelia.faces.mint.batches import batch_norm_elemt as batch_norm_elemt
from mycelia.faces.mint.elementwise import allclose as allclose, equal as equal
from mycelia.faces.mint.indexing import kthvalue as kthvalue, unique as unique, where as where
from mycelia.faces.mint.nn.windows import conv2d as conv2d
from mycelia.faces.mint.products import triangular_solve as triangular_solve
from mycelia.faces.mint.reduction import median as median, norm as norm
from mycelia.ops import (
    abs as abs, acos as acos, acosh as acosh, addbmm as addbmm, addmm as addmm, addmv as addmv,
    arange as arange, arcsinh as arcsinh, arctan as arctan, arctan2 as arctan2, arctanh as arctanh,
    asin as asin, bitwise_and as bitwise_and, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor,
    ceil as ceil, clamp as clamp, cos as cos, cosh as cosh, cross as cross, cumprod as cumprod, div as div,
    dstack as dstack, empty as empty, empty_like as empty_like, eq as eq, erf as erf, erfc as erfc,
    erfinv as erfinv, exp as exp, exp2 as exp2, expm1 as expm1, eye as eye, float_power as float_power,
    floor as floor, floor_divide as floor_divide, fmod as fmod, full_like as full_like, gcd as gcd,
    greater as greater, hstack as hstack, imag as imag, inverse as inverse, isclose as isclose,
    isfinite as isfinite, isinf as isinf, isneginf as isneginf, le as le, lerp as lerp, less as less,
    log as log, log10 as log10, log1p as log1p, log2 as log2, logaddexp as logaddexp,
    logaddexp2 as logaddexp2, logical_and as logical_and, logical_not as logical_not,
    logical_or as logical_or, logical_xor as logical_xor, logsumexp as logsumexp,
    masked_select as masked_select, matmul as matmul, maximum as maximum, minimum as minimum, mm as mm,
    mul as mul, ne as ne, neg as neg, negative as negative, ones_like as ones_like, outer as outer,
    polar as polar, pow as pow, ravel as ravel, real as real, reciprocal as reciprocal,
    remainder as remainder, roll as roll, round as round, rsqrt as rsqrt, searchsorted as searchsorted,
    sigmoid as sigmoid, sin as sin, sinc as sinc, sinh as sinh, square as square, swapaxes as swapaxes,
    t as t, take as take, tan as tan, tanh as tanh, trunc as trunc, unbind as unbind,
    unsqueeze as unsqueeze, xlogy as xlogy, zeros_like as zeros_like,
)
from typing import Any as Any

__all__ = [
    "abs", "acos", "acosh", "add", "addbmm", "addcdiv", "addmm", "addmv", "addr_", "all", "allclose",
    "amax", "amin", "any", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "argmax", "argmin", "argsort", "asin", "asinh", "atan", "atan2", "atanh", "baddbmm",
    "batch_norm_elemt", "batch_norm_gather_stats_with_counts", "batch_norm_stats", "bernoulli", "bincount",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "bmm", "broadcast_to", "cat", "cdist",
    "ceil", "chunk", "clamp", "clone", "concat", "conv2d", "conv_tbc", "cos", "cosh", "count_nonzero",
    "cross", "cummax", "cummin", "cumprod", "cumsum", "diag", "diff", "distributed", "div", "divide", "dot",
    "dstack", "einsum", "empty", "empty_like", "eq", "equal", "erf", "erfc", "erfinv", "exp", "exp2",
    "expm1", "eye", "fix", "flatten", "flip", "float_power", "floor", "floor_divide", "fmod", "frac",
    "full", "full_like", "gather", "gcd", "greater", "greater_equal", "gt", "histc", "hstack", "imag",
    "index_add", "index_select", "inverse", "isclose", "isfinite", "isinf", "isnan", "isneginf", "kthvalue",
    "le", "lerp", "less", "less_equal", "linalg", "linspace", "log", "log10", "log1p", "log2", "logaddexp",
    "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logsumexp", "lt",
    "masked_select", "matmul", "max", "maximum", "mean", "median", "meshgrid", "min", "minimum", "mm",
    "mul", "multinomial", "mv", "nan_to_num", "nansum", "narrow", "ne", "neg", "negative", "nn", "nonzero",
    "norm", "normal", "not_equal", "npu_gelu", "ones", "ones_like", "optim", "outer", "permute", "polar",
    "pow", "prod", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "ravel", "real", "reciprocal", "remainder", "repeat_interleave", "reshape", "roll", "round", "rsqrt",
    "scatter", "scatter_add", "searchsorted", "select", "sigmoid", "sign", "sin", "sinc", "sinh", "softmax",
    "sort", "special", "split", "sqrt", "square", "squeeze", "stack", "std", "std_mean", "sub", "sum",
    "swapaxes", "t", "take", "tan", "tanh", "tile", "topk", "trace", "transpose", "triangular_solve",
    "tril", "triu", "trunc", "unbind", "unique", "unique_consecutive", "unsqueeze", "var", "var_mean",
    "vdot", "where", "xlogy", "zeros", "zeros_like",
]


def add(input, other, *, alpha=1) -> Tensor:
    """``input + alpha * other``."""

def addcdiv(input, tensor1, tensor2, *, value=1) -> Tensor:
    """``input + value * tensor1 / tensor2``."""

def addr_(input, vec1, vec2, beta=1, alpha=1) -> Tensor:
    """``input = beta * input + alpha * outer(vec1, vec2)``, in place."""

def all(input, dim=None, keepdim=False) -> Tensor:
    """Whether every element along `axis` is true or not zero; true where there is none."""

def amax(input, dim=(), keepdim=False) -> Tensor:
    """Largest element over `axis` (all by default), of those that the mask `where` admits, and of `initial`."""

def amin(input, dim=(), keepdim=False) -> Tensor:
    """Smallest element over `axis` (all by default), of those that the mask `where` admits, and of `initial`."""

def any(input, dim=None, keepdim=False) -> Tensor:
    """Whether some element over `dim` is true or not zero."""

def arccos(input: TensorLike) -> Tensor:
    """Elementwise inverse cosine in radians, in [0, pi]; NaN outside of [-1, 1]."""

def arccosh(input: TensorLike) -> Tensor:
    """Elementwise inverse hyperbolic cosine; NaN below 1."""

def arcsin(x) -> Tensor:
    """Elementwise inverse sine in radians, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""

def argmax(input, dim=None, keepdim=False) -> Tensor:
    """Place of the largest element along `dim`, or in the flattened tensor: first of equals, or of NaNs. dtypes: real -> int64."""

def argmin(input, dim=None, keepdim=False) -> Tensor:
    """Place of the smallest element along `dim`, or in the flattened tensor: first of equals, or of NaNs. dtypes: real -> int64."""

def argsort(input, dim=-1, descending=False, stable=False) -> Tensor:
    """The places that put `dim` in order; equal values always keep their order."""

def asinh(input: TensorLike) -> Tensor:
    """Elementwise inverse hyperbolic sine."""

def atan(input: TensorLike) -> Tensor:
    """Elementwise inverse tangent in radians, in [-pi/2, pi/2]."""

def atan2(input: TensorLike, other: TensorLike) -> Tensor:
    """Angle in radians of the point (x = `other`, y = `input`), in [-pi, pi]."""

def atanh(input: TensorLike) -> Tensor:
    """Elementwise inverse hyperbolic tangent; NaN outside of [-1, 1]."""

def baddbmm(input, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)`` by matrices. Shapes: [B, m, k], [B, k, n] -> [B, m, n]."""

def batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean=None, running_var=None, momentum=0.1, eps=1e-05, counts=None) -> tuple[Tensor, Tensor]:
    """Mean and ``1 / sqrt(variance + eps)`` of the union of several batches; moves the running statistics."""

def batch_norm_stats(input, eps) -> tuple[Tensor, Tensor]:
    """Mean and ``1 / sqrt(variance + eps)`` of each channel."""

def bernoulli(input, *, generator=None) -> Tensor:
    """Ones with the probabilities `input`, and zeros."""

def bincount(input, weights=None, minlength=0) -> Tensor:
    """Number of times that 0, 1, 2, ... occur in `input`, or the sum of their weights."""

def bitwise_not(input) -> Tensor:
    """Flips every bit: ``-x - 1`` for signed integers, "not" for bool."""

def bmm(input, mat2) -> Tensor:
    """Products of the matrices in the last two axes. Shapes: [B.., m, k] and [B.., k, n] -> [B.., m, n]."""

def broadcast_to(input, shape) -> Tensor:
    """Repeat along axes of size 1 (and new leading axes) up to `shape`; -1 keeps the input's size."""

def cat(tensors, dim=0) -> Tensor:
    """Join tensors along an existing axis; different dtypes are promoted."""

def cdist(x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor:
    """`p`-norms of the differences between all rows of `x1` and of `x2`."""

def chunk(input, chunks, dim=0) -> Any:
    """Cut along `axis` into at most `chunks` pieces of one size (the last may be smaller)."""

def clone(input) -> Tensor:
    """`input` as a Tensor of its own; gradients flow through it."""

def concat(tensors, dim=0) -> Tensor:
    """Join tensors along an existing axis; different dtypes are promoted."""

def conv_tbc(input, weight, bias, pad=0) -> Tensor:
    """Convolution over time of [time, batch, channels]."""

def count_nonzero(input, dim=None) -> Tensor:
    """Number of elements over `dim` that are not zero."""

def cummax(input, dim) -> tuple[Tensor, Tensor]:
    """Largest element so far along `dim` and its place."""

def cummin(input, dim) -> tuple[Tensor, Tensor]:
    """Smallest element so far along `dim` and its place."""

def cumsum(input, dim, dtype=None) -> Tensor:
    """Running sum along `dim`, in `dtype`."""

def diag(input, diagonal=0) -> Tensor:
    """The `diagonal` of a matrix, or a matrix with the vector `input` on it."""

def diff(input, n=1, dim=-1, prepend=None, append=None) -> Tensor:
    """Differences of neighbours along `axis`, taken `n` times; `prepend` and `append` are joined first."""

def divide(input, other, *, rounding_mode=None) -> Tensor:
    """Elementwise quotient: true, or rounded by `rounding_mode` "floor" (down) or "trunc" (to zero)."""

def dot(input, other) -> Tensor:
    """Sum of the products of two vectors."""

def fix(input) -> Tensor:
    """`input` without its fraction: rounded to zero."""

def flatten(input, start_dim=0, end_dim=-1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` merged into one."""

def flip(input, dims) -> Tensor:
    """Reverse the order of the elements along `dims`."""

def frac(input) -> Tensor:
    """The fraction of `x`, with its sign: ``x - trunc(x)``."""

def full(size, fill_value, *, dtype=None) -> Tensor:
    """A tensor of shape `size` with `fill_value` everywhere."""

def gather(input, dim, index) -> Tensor:
    """`gather_d` under its other name."""

def greater_equal(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input >= other``."""

def gt(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input > other``."""

def histc(input, bins=100, min=0, max=0) -> Tensor:
    """Histogram of `bins` equal bins over [min, max]; over the range of `input` if the bounds are equal."""

def index_add(input, dim, index, source, *, alpha=1) -> Tensor:
    """`input` with ``alpha * source`` added at the places `index` along `dim`."""

def index_select(input, dim, index) -> Tensor:
    """The slices along `axis` at the positions `index`, a vector."""

def isnan(tensor) -> Tensor:
    """Where `input` is not a number; false for integers."""

def less_equal(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input <= other``."""

def linspace(start, end, steps, *, dtype=None) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, at equal distances."""

def lt(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input < other``."""

def max(input, *args, **kwargs) -> Any:
    """The maximum of all elements; (value, place) along `dim`; or the larger of two."""

def mean(input, dim=None, keepdim=False, *, dtype=None) -> Tensor:
    """Mean over `dim`, of the elements as `dtype`."""

def meshgrid(*tensors, indexing=None) -> tuple[Tensor, ...]:
    """Grids of coordinates from vectors; `indexing` "ij" (the default) or "xy"."""

def min(input, *args, **kwargs) -> Any:
    """The minimum of all elements; (value, place) along `dim`; or the larger of two."""

def multinomial(input, num_samples, replacement=False, *, generator=None) -> Tensor:
    """Places along the last dimension, drawn in proportion to the weights `input`."""

def mv(input, vec) -> Tensor:
    """Matrix times vector. Shapes: [m, k] and [k] -> [m]. Errors: ValueError for other ranks."""

def nan_to_num(input, nan=None, posinf=None, neginf=None) -> Tensor:
    """Replaces NaN by `nan` (default 0), the infinities by `posinf`, `neginf` (default: the dtype's limits)."""

def nansum(input, dim=None, keepdim=False, *, dtype=None) -> Tensor:
    """Sum over `dim` with NaN counted as 0, in `dtype`."""

def narrow(input, dim, start, length) -> Tensor:
    """`length` elements along `axis` from `start` on."""

def normal(mean=0.0, std=1.0, size=None, generator=None) -> Tensor:
    """Numbers of the normal distribution around `mean` with the standard deviation `std`."""

def not_equal(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input != other``; NaN differs from everything."""

def npu_gelu(input, approximate='none') -> Tensor:
    """`nn.functional.gelu` under the name that the Ascend extension gives it."""

def ones(size, *, dtype=None) -> Tensor:
    """A tensor of the given shape with 1 everywhere, float32 unless `dtype` says otherwise."""

def permute(input, dims) -> Tensor:
    """`transpose` under its other name."""

def prod(input, dim=None, keepdim=False, *, dtype=None) -> Tensor:
    """Product over `dim`, in `dtype`."""

def rand(*size, generator=None, dtype=None, device=None) -> Tensor:
    """Numbers of the uniform distribution over [0, 1)."""

def rand_like(input, *, dtype=None, device=None) -> Tensor:
    """`rand` with the shape of `input`, and its dtype unless `dtype` is given."""

def randint(*args, generator=None, dtype=None, device=None, **kwargs) -> Tensor:
    """``randint(low=0, high, size)``: integers of the uniform distribution over [low, high)."""

def randint_like(*args, dtype=None, device=None, **kwargs) -> Tensor:
    """``randint_like(input, low=0, high)``: `randint` with the shape of `input`, and its dtype unless `dtype` is given."""

def randn(*size, generator=None, dtype=None, device=None) -> Tensor:
    """Numbers of the standard normal distribution."""

def randn_like(input, *, dtype=None, device=None) -> Tensor:
    """`randn` with the shape of `input`, and its dtype unless `dtype` is given."""

def randperm(n, *, generator=None, dtype=...) -> Tensor:
    """The numbers 0 .. n - 1 in random order."""

def repeat_interleave(input, repeats, dim=None, *, output_size=None) -> Tensor:
    """Each element repeated along `dim` (without: of the flattened input), `repeats` times or as often as each entry says."""

def reshape(input, *sizes, shape=None) -> Tensor:
    """The same elements under another shape; one size may be -1."""

def scatter(input, dim, index, src) -> Tensor:
    """`input` with elements of `src` (a tensor or one number) written along `axis`:"""

def scatter_add(input, dim, index, src) -> Tensor:
    """`input` with elements of `src` added along axis `dim`: ``y[i, index[i, j]] += src[i, j]``."""

def select(input, dim, index) -> Tensor:
    """The slice `index` of dimension `dim`, which vanishes."""

def sign(input: TensorLike) -> Tensor:
    """-1, 0 or 1 by the sign of `input`; 0 for NaN. A complex number is divided by its magnitude."""

def softmax(input, dim, *, dtype=None) -> Tensor:
    """Normalized exponentials along `axis`: ``exp(input) / sum(exp(input))``."""

def sort(input, *, dim=-1, descending=False, stable=False) -> tuple[Tensor, Tensor]:
    """Values in order along `dim`, and the places that they had; equal values always keep their order."""

def split(tensor, split_size_or_sections, dim=0) -> Any:
    """Cut along `axis` into pieces of a given size (the last may be smaller) or of the given sizes."""

def sqrt(input) -> Tensor:
    """Elementwise square root; NaN below zero."""

def squeeze(input, dim=None) -> Tensor:
    """Without the dimensions of size 1: all of them, or those of `dim` that have it."""

def stack(tensors, dim=0) -> Tensor:
    """Join tensors of one shape along a new axis."""

def std(input, dim=None, *, correction=1, keepdim=False) -> Tensor:
    """Standard deviation over `dim`: the square root of `var`."""

def std_mean(input, dim=None, *, correction=1, keepdim=False) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean over `dim`."""

def sub(input, other, *, alpha=1) -> Tensor:
    """``input - alpha * other``."""

def sum(input, dim=None, keepdim=False, *, dtype=None) -> Tensor:
    """Sum over `dim`, in `dtype`."""

def tile(input, dims) -> Tensor:
    """Repeat the whole tensor ``dims[i]`` times along axis i; missing leading entries count as 1."""

def topk(input, k, dim=-1, largest=True, sorted=True) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) values along `dim`, and the places that they had."""

def trace(input) -> Tensor:
    """Sum of the main diagonal of a matrix."""

def transpose(input, dim0, dim1) -> Tensor:
    """Exchange two axes."""

def tril(input, diagonal=0) -> Tensor:
    """The lower triangle of the last two axes, zero above the given diagonal."""

def triu(input, diagonal=0) -> Tensor:
    """The upper triangle of the last two axes, zero below the given diagonal."""

def var(input, dim=None, *, correction=1, keepdim=False) -> Tensor:
    """Variance over `dim`: the squares are divided by their number less `correction`."""

def var_mean(input, dim=None, *, correction=1, keepdim=False) -> tuple[Tensor, Tensor]:
    """Variance and mean over `dim`."""

def vdot(input, other) -> Tensor:
    """`dot` with the conjugate of a complex `input`."""

def zeros(size, *, dtype=None) -> Tensor:
    """A tensor of shape `size` with 0 everywhere, float32 unless `dtype` says otherwise."""
