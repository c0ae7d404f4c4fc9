"""Whether a product with constant weights goes by Strassen's algorithm, by an estimate of its cycles.

The estimate is in native/kernels/src/choice.cc; its constants were fitted to the kernels with AVX2.

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

_ALGORITHMS = ("plain", "strassen")  # as mycelia/cpu.h numbers them


def run(graph: Graph) -> int:
    """The pass `strassen`: returns how many products it halves, none unless `accuracy` is "fast"."""
    return choose(graph, "linear", _algorithm_of) if accuracy() == "fast" else 0


def _algorithm_of(node: Node) -> str:
    *batch, depth = node.inputs[0].type.shape
    rows = UNKNOWN if UNKNOWN in batch else math.prod(map(hint_of, batch))
    return choose_product(rows, node.attrs["channels"], hint_of(depth), strict=False)


def choose_product(rows: int, columns: int, depth: int, *, strict: bool) -> str:
    """ "plain" or "strassen" for `rows` x `depth` times `depth` x `columns`; sizes below 0 are not known."""
    from mycelia_backend_cpu import _native

    return "plain" if strict else _ALGORITHMS[_native.product_algorithm(rows, columns, depth)]
