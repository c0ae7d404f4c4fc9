# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor, TensorLike as TensorLike
from mycelia.engine.ops.arrays.shape import positive_axis as positive_axis
from mycelia.faces.mint.indexing import kthvalue as kthvalue, unique as unique, where as where
from mycelia.faces.mint.signature_adapters import faces as faces
from mycelia.mint import (
    argsort as argsort, gather as gather, index_add as index_add, index_select as index_select,
    scatter as scatter, scatter_add as scatter_add, select as select, sort as sort, topk as topk,
)
from mycelia.ops import cast as cast, gather_elements as gather_elements

__all__ = [
    "argsort", "cast", "faces", "gather", "gather_elements", "index_add", "index_select", "kthvalue",
    "positive_axis", "scatter", "scatter_add", "scatter_add_along", "select", "sort", "topk", "unique",
    "unique_sorted", "where",
]


def scatter_add_along(input, dim, index, src) -> Tensor:
    """`input` with elements of `src` added along axis `dim`: ``y[i, index[i, j]] += src[i, j]``."""

def unique_sorted(input: TensorLike, dim: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The different elements (or slices along `dim`) in ascending order, which of them each one is, and how often they occur."""
