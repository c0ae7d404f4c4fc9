"""Whether a product with constant weights goes by Strassen's algorithm, by an estimate of its cycles.

One level of it multiplies 7/8 as often, but sums quarters of the operand and of the products, reads 7/4 of
the weights, and works on half the sizes, for which the fixed costs count twice. Estimates are cycles of one
core; their constants were fitted to the kernels (AVX2).

Only asked for with `accuracy="fast"`: columns are mixed with those half the columns away, and nothing keeps
the errors of a large one from a small one.

Errors relative to the largest result, depths 256 to 4096, normally distributed factors: plain 0.6e-6 to 1e-6,
Strassen's 1.3e-6 to 2.6e-6. Rows are mixed with those half the rows away; where one is not finite or 64 times
as large, the kernel multiplies their block plainly, so that neither reaches the other.
"""

from __future__ import annotations

import math

from mycelia.engine.compile.passes import accuracy
from mycelia.engine.compile.passes.algorithms import choose
from mycelia.engine.ir.graph import Graph, Node
from mycelia.engine.ir.sizes import hint_of
from mycelia.engine.ir.types import UNKNOWN
from mycelia_backend_cpu.convolution import PANEL, STREAM

TILE_ROWS, DEPTH = 6, 512  # rows, and of k, that are multiplied at once
TILE = 40  # cycles between two tiles of TILE_ROWS x PANEL
PART = 300  # cycles to begin with a panel of weights, and rows that are in a block at most:
ROWS = 72
COMBINE = 3.75  # cycles for an element of a quarter of the result, and of the operand
SUM = 2.5

#: It rounds worse and needs more memory: so much less must be its estimate.
CAUTION = 0.95


def run(graph: Graph) -> int:
    """The pass `strassen`: returns how many products it halves, none unless `accuracy` is "fast"."""
    return choose(graph, "linear", _algorithm_of) if accuracy() == "fast" else 0


def _algorithm_of(node: Node) -> str:
    *batch, depth = node.inputs[0].type.shape
    rows = UNKNOWN if UNKNOWN in batch else math.prod(map(hint_of, batch))
    return choose_product(rows, node.attrs["channels"], hint_of(depth), strict=False)


def choose_product(rows: int, columns: int, depth: int, *, strict: bool) -> str:
    """ "plain" or "strassen" for `rows` x `depth` times `depth` x `columns`; sizes below 0 are not known."""
    if strict or min(rows, columns, depth) < 2 or columns % 2 or depth % 2:
        return "plain"
    halved = math.ceil(rows / 2), columns // 2, depth // 2
    fast = _strassen_cycles(*halved)
    return "strassen" if fast < CAUTION * _plain_cycles(rows, columns, depth) else "plain"


def _plain_cycles(rows: int, columns: int, depth: int) -> float:
    # A panel and element of k takes a cycle a row, or as long as its weights need.
    tiles = math.ceil(rows / TILE_ROWS) * math.ceil(depth / DEPTH)
    return math.ceil(columns / PANEL) * (depth * max(rows, STREAM) + tiles * TILE)


def _strassen_cycles(rows: int, columns: int, depth: int) -> float:
    """Of seven products of these sizes."""
    parts = math.ceil(columns / PANEL) * math.ceil(rows / ROWS)
    return 7 * (_plain_cycles(rows, columns, depth) + parts * PART) + rows * (columns * COMBINE + depth * SUM)
