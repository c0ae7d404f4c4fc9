"""mint functions that reduce or run along dimensions, with `dim` and `keepdim`; places are int64."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.mint.signature_adapters import faces

_FACES = {
    "all(input, dim=None, keepdim=False)": ops.all,
    "amax(input, dim=(), keepdim=False)": ops.amax,
    "amin(input, dim=(), keepdim=False)": ops.amin,
    "softmax(input, dim, *, dtype=None)": ops.softmax,
    "diff(input, n=1, dim=-1, prepend=None, append=None)": ops.diff,
}
globals().update(faces(_FACES, __name__))


def _extreme(name: str, find, elementwise):
    def extreme(input, *args, **kwargs):
        given = dict(zip(("dim", "keepdim"), args)) | kwargs
        if is_tensor(given.get("dim")) and len(given) == 1:
            given = {"other": given["dim"]}
        if not given:
            return find(input)[0]
        if set(given) == {"other"}:
            return elementwise(input, given["other"])
        if len(args) > 2 or not {"dim"} <= set(given) <= {"dim", "keepdim"}:
            raise errors.type_error(
                name, f"takes (input), (input, dim, keepdim) or (input, other), but got {given}"
            )
        value, place = find(input, given["dim"], given.get("keepdim", False))
        return value, place if place.dtype is dtypes.int64 else cast(place, dtypes.int64)

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = f"""The {name}imum of all elements; (value, place) along `dim`; or the larger of two.

    ``{name}(input)``, ``{name}(input, dim, keepdim=False)`` or ``{name}(input, other)``.
    Shapes: `dim` vanishes, or becomes 1 with `keepdim`.  dtypes: real -> same (, int64).
    Errors: TypeError for other arguments.
    """
    return extreme


max = _extreme("max", ops.max, ops.maximum)
min = _extreme("min", ops.min, ops.minimum)


def _place(function):
    def place(input, dim=None, keepdim=False):
        found = function(input, dim, keepdim)
        return found if found.dtype is dtypes.int64 else cast(found, dtypes.int64)

    place.__name__ = place.__qualname__ = function.__name__
    place.__doc__ = function.__doc__.split("\n")[0].replace("axis", "dim") + " dtypes: real -> int64."
    return place


argmax = _place(ops.argmax)
argmin = _place(ops.argmin)


def mean(input, dim=None, keepdim=False, *, dtype=None):
    """Mean over `dim`, of the elements as `dtype`.

    Shapes: reduced dimensions vanish, or become 1 with `keepdim`.  dtypes: number.
    """
    return ops.mean(input if dtype is None else cast(input, dtype), _axes(dim), keepdim)


def sum(input, dim=None, keepdim=False, *, dtype=None):
    """Sum over `dim`, in `dtype`.

    Shapes: reduced dimensions vanish, or become 1 with `keepdim`.  dtypes: bool and integers give int64.
    """
    return ops.sum(input, _axes(dim), keepdim, dtype=dtype)


def prod(input, dim=None, keepdim=False, *, dtype=None):
    """Product over `dim`, in `dtype`.

    Shapes: reduced dimensions vanish, or become 1 with `keepdim`.  dtypes: bool and integers give int64.
    """
    return ops.prod(input, _axes(dim), keepdim, dtype=dtype)


def _axes(dim):
    """Dimensions that a Tensor may hold, as ints."""
    return dim.asnumpy().reshape(-1).tolist() if is_tensor(dim) else dim


def any(input, dim=None, keepdim=False):
    """Whether some element over `dim` is true or not zero.

    Shapes: reduced dimensions vanish, or become 1 with `keepdim`.  dtypes: any -> bool; uint8 stays.
    """
    found = ops.any(input, dim, keepdim)
    return cast(found, input.dtype) if input.dtype is dtypes.uint8 else found


def trace(input):
    """Sum of the main diagonal of a matrix.

    Shapes: [n, m] -> [].  dtypes: integers give int64.
    """
    total = ops.trace(input)
    return cast(total, dtypes.int64) if input.dtype.is_integer else total


def nansum(input, dim=None, keepdim=False, *, dtype=None):
    """Sum over `dim` with NaN counted as 0, in `dtype`.

    Shapes: reduced dimensions vanish, or become 1 with `keepdim`.  dtypes: integers stay; bool gives int64.
    """
    if dtype is None and not input.dtype.is_floating:
        dtype = dtypes.int64 if input.dtype.is_bool else input.dtype
    return ops.nansum(input, dim, keepdim, dtype=dtype)


def count_nonzero(input, dim=None):
    """Number of elements over `dim` that are not zero.

    Shapes: reduced dimensions vanish.  dtypes: any -> int64.
    """
    return ops.sum(ops.not_equal(input, 0), () if dim is None else dim, dtype=dtypes.int64)


def cumsum(input, dim, dtype=None):
    """Running sum along `dim`, in `dtype`.

    Shapes: any -> same.  dtypes: bool and integers give int64.
    """
    if dtype is None and not (input.dtype.is_floating or input.dtype.is_complex):
        dtype = dtypes.int64
    return ops.cumsum(input if dtype is None else cast(input, dtype), dim)


def _running(function):
    def running(input, dim):
        value, place = function(input, dim)
        return value, cast(place, dtypes.int64)

    running.__name__ = running.__qualname__ = function.__name__
    running.__doc__ = function.__doc__.split("\n")[0].replace("axis", "dim")
    return running


cummax = _running(ops.cummax)
cummin = _running(ops.cummin)


def median(input, dim=None, keepdim=False):
    """Lower median of all elements, or along `dim` together with its place.

    Shapes: `dim` vanishes, or becomes 1 with `keepdim`.  dtypes: real -> same (, int64).
    """
    if dim is None:
        return ops.median(ops.reshape(input, (-1,)), 0)[0]
    return ops.median(input, dim, keepdim)


def var(input, dim=None, *, correction=1, keepdim=False):
    """Variance over `dim`: the squares are divided by their number less `correction`.

    Shapes: reduced dimensions vanish, or become 1 with `keepdim`.  dtypes: floating.
    """
    return ops.var(input, dim, correction, keepdim)


def std(input, dim=None, *, correction=1, keepdim=False):
    """Standard deviation over `dim`: the square root of `var`.

    Shapes: reduced dimensions vanish, or become 1 with `keepdim`.  dtypes: floating.
    """
    return ops.std(input, dim, correction, keepdim)


def var_mean(input, dim=None, *, correction=1, keepdim=False):
    """Variance and mean over `dim`.

    Shapes: reduced dimensions vanish, or become 1 with `keepdim`.  dtypes: floating.
    """
    return ops.var_mean(input, dim, correction, keepdim)


def std_mean(input, dim=None, *, correction=1, keepdim=False):
    """Standard deviation and mean over `dim`.

    Shapes: reduced dimensions vanish, or become 1 with `keepdim`.  dtypes: floating.
    """
    return ops.std_mean(input, dim, correction, keepdim)


def norm(input, p="fro", dim=None, keepdim=False, *, dtype=None):
    """`p`-norm over `dim`: of vectors for a number, of matrices for "nuc"; "fro" is the 2-norm of all.

    Shapes: reduced dimensions vanish, or become 1 with `keepdim`.  dtypes: floating.
    Errors: ValueError for another `p`.
    """
    if p == "nuc":
        axes = (-2, -1) if dim is None else dim
        return ops.matrix_norm(input, "nuc", axes, keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise errors.value_error("norm", f"p must be a number, 'fro' or 'nuc', but got {p!r}")
    return ops.vector_norm(input, 2 if p == "fro" else p, dim, keepdim, dtype=dtype)


def bincount(input, weights=None, minlength=0):
    """Number of times that 0, 1, 2, ... occur in `input`, or the sum of their weights.

    Shapes: input, weights [n] -> [max(input) + 1 or minlength].  dtypes: integer -> int64 or as `weights`.
    Errors: ValueError for negative numbers, ranks other than 1, or weights of another shape.
    """
    counts = ops.bincount(input, weights, minlength)
    return cast(counts, dtypes.int64 if weights is None else weights.dtype)


def histc(input, bins=100, min=0, max=0):
    """Histogram of `bins` equal bins over [min, max]; over the range of `input` if the bounds are equal.

    Shapes: any -> [bins].  dtypes: real -> same.  Errors: ValueError for bins < 1 or min > max.
    """
    return ops.histc(input, bins, float(min), float(max))
