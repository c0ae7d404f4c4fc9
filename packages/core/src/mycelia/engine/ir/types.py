"""Types of values in a graph.

A shape is a tuple of sizes; -1 stands for a size that is known only when the program runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mycelia.engine.base.dtypes import DType

UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False)
class TensorType:
    """Element type and shape of a tensor, e.g. ``Tensor[Float32](2, 3)``."""

    dtype: DType
    shape: tuple[int, ...]

    def __eq__(self, other: object) -> bool:
        # Ranks first: sizes of shapes that cannot be equal are not compared (`ir/symint.py` remembers that).
        if not isinstance(other, TensorType):
            return NotImplemented
        return self is other or (
            self.dtype is other.dtype and len(self.shape) == len(other.shape) and self.shape == other.shape
        )

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """True if every size is known."""
        return UNKNOWN not in self.shape

    @property
    def size(self) -> int:
        """Number of elements, or -1 if a size is unknown."""
        return UNKNOWN if UNKNOWN in self.shape else math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Memory of the elements in bytes, or -1 if a size is unknown."""
        return UNKNOWN if UNKNOWN in self.shape else math.prod(self.shape) * self.dtype.itemsize

    def accepts(self, other: TensorType) -> bool:
        """True if a value of type `other` may stand where this type is expected:
        unknown sizes match any size.
        """
        if self.dtype is not other.dtype or len(self.shape) != len(other.shape):
            return False
        return all(UNKNOWN in (a, b) or agree(a, b) is not False for a, b in zip(self.shape, other.shape))

    def __str__(self) -> str:
        return f"Tensor[{self.dtype}]({', '.join(map(_size_text, self.shape))})"


def _size_text(size: Any) -> str:
    """A size as text; one that differs from call to call (`ir/symint.py`) by its formula."""
    formula = getattr(size, "formula", None)
    return str(size) if formula is None else formula()


def agree(m: Any, n: Any) -> bool | None:
    """Whether two sizes are the same; None if only the finished graph knows (`ir/symint.py`)."""
    for a, b in ((m, n), (n, m)):
        decide = getattr(a, "agrees", None)
        if decide is not None:
            return decide(b)
    return m == n


def join(a: TensorType, b: TensorType) -> TensorType | None:
    """The type that covers both: sizes that differ become unknown; None if dtype or rank differ."""
    if a.dtype is not b.dtype or len(a.shape) != len(b.shape):
        return None
    return TensorType(a.dtype, tuple(m if agree(m, n) else UNKNOWN for m, n in zip(a.shape, b.shape)))
