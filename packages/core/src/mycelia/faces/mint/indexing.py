"""mint functions that pick, place, order or count elements; places are int64."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.distinct import unique_sorted
from mycelia.engine.ops.arrays.gathering import gather_elements
from mycelia.engine.ops.arrays.scatter import scatter_add_along
from mycelia.engine.ops.arrays.shape import positive_axis
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.faces.mint.signature_adapters import faces

_FACES = {
    "gather(input, dim, index)": gather_elements,
    "scatter(input, dim, index, src)": ops.scatter,
    "scatter_add(input, dim, index, src)": scatter_add_along,
    "index_select(input, dim, index)": ops.index_select,
}
globals().update(faces(_FACES, __name__))


def select(input, dim, index):
    """The slice `index` of dimension `dim`, which vanishes.

    Errors: ValueError for a dimension or index out of range.
    """
    axis = positive_axis(dim, input.ndim, "dim")
    n = input.shape[axis]
    if not isinstance(index, int) or isinstance(index, bool):
        raise errors.type_error("select", f"index must be an int, but got {index!r}")
    if not -n <= index < n:
        raise errors.value_error("select", f"index must be in [{-n}, {n}), but got {index}")
    return input[(slice(None),) * axis + (index,)]


def index_add(input, dim, index, source, *, alpha=1):
    """`input` with ``alpha * source`` added at the places `index` along `dim`.

    Shapes: input [.., n, ..], index [k], source [.., k, ..] -> as input.  dtypes: source as input.
    """
    return ops.index_add(input, index, source if alpha == 1 else source * alpha, dim)


def where(condition, *args, input=None, other=None):
    """Elements of `input` where `condition` is true, of `other` elsewhere; alone the places of the true.

    Shapes: broadcast.  dtypes: input and other promoted.
    """
    given = (*args, *(x for x in (input, other) if x is not None))
    if not given:
        return ops.nonzero(condition, as_tuple=True)
    if len(given) != 2:
        raise errors.type_error("where", f"takes a condition and none or two values, but got {len(given)}")
    return ops.where(condition, *given)


def _with_places(result, dtype=dtypes.int64):
    values, places = result
    return values, places if places.dtype is dtype else cast(places, dtype)


def sort(input, *, dim=-1, descending=False, stable=False):
    """Values in order along `dim`, and the places that they had; equal values always keep their order.

    Shapes: any -> same, twice.  dtypes: real -> the same, int64.
    """
    del stable  # sorting always is
    return _with_places(ops.sort(input, dim, descending))


def argsort(input, dim=-1, descending=False, stable=False):
    """The places that put `dim` in order; equal values always keep their order.

    Shapes: any -> same.  dtypes: real -> int64.
    """
    del stable  # sorting always is
    return sort(input, dim=dim, descending=descending)[1]


def topk(input, k, dim=-1, largest=True, sorted=True):
    """The `k` largest (or smallest) values along `dim`, and the places that they had.

    Shapes: [.., n, ..] -> [.., k, ..], twice.  dtypes: real -> the same, int64.
    """
    return _with_places(ops.topk(input, k, dim, largest, sorted))


def kthvalue(input, k, dim=-1, keepdim=False):
    """The `k`-th smallest value along `dim`, counted from 1, and its place.

    Shapes: `dim` vanishes, or becomes 1 with `keepdim`.  dtypes: real -> the same, int64.
    """
    return _with_places(ops.kthvalue(input, k, dim, keepdim))


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements (or slices along `dim`), always in ascending order; if asked, which of them
    each one is and how often they occur.

    Shapes: any -> [number] (, as input) (, [number]).  dtypes: any -> the same (, int64) (, int64).
    """
    del sorted  # always
    values, inverse, counts = unique_sorted(input, dim)
    if not return_inverse and not return_counts:
        return values
    return (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
