"""What the nodes of a graph give: bytes and dtypes of all outputs in whatever is shown as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mycelia_insight.records.graph import ScopeGraph


class Outputs:
    """Of a graph's leaves, each decoded once; sums over a branch are differences of running sums."""

    def __init__(self, graph: ScopeGraph) -> None:
        self._branches = graph.branches
        leaves = [graph.leaves[at] for at in graph.order.tolist()]
        types = [leaf.type_of() for leaf in leaves]
        sizes = [leaf.output_bytes for leaf in leaves]
        # Sizes of a hostile file exceed 64 bits.
        self._bytes = running(np.array([size or 0 for size in sizes], object))
        self._unknown = running(np.array([size is None for size in sizes], np.int64))
        dtypes = np.array([dtype for dtype, _ in types], object)
        names = sorted(set(dtypes) - {""})[:_MOST]
        self._dtypes = {name: running((dtypes == name).astype(np.int64)) for name in names}

    def bytes(self, number: int) -> int | None:
        """Of all outputs in a branch whose dtype and shape are known; None if those of none are."""
        branch = self._branches[number]
        if self.unknown(number) == branch.end - branch.begin:
            return None
        return int(self._bytes[branch.end] - self._bytes[branch.begin])

    def unknown(self, number: int) -> int:
        """How many outputs in a branch have no known size."""
        branch = self._branches[number]
        return int(self._unknown[branch.end] - self._unknown[branch.begin])

    def dtypes(self, number: int) -> dict[str, int]:
        """How many outputs in a branch are of each dtype, the most frequent first."""
        branch = self._branches[number]
        counts = {
            name: int(running[branch.end] - running[branch.begin]) for name, running in self._dtypes.items()
        }
        return {name: counts[name] for name in sorted(counts, key=lambda n: -counts[n]) if counts[name]}


_MOST = 64  # dtypes that are counted; there are fewer, but in hostile files


def running(values: np.ndarray) -> np.ndarray:
    """Sums of all values before each place, and of all."""
    return np.concatenate([np.zeros(1, values.dtype), np.cumsum(values)])
