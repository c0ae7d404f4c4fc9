"""The time of a node, estimated, so that what is decided by it is the same in every run."""

from __future__ import annotations

from mycelia.engine.ir.graph import Node
from mycelia.engine.ops.cost import cost

# Of a core of 60 GFLOP/s and 10 GB/s.
_CALL = 300.0
_FLOPS, _BYTES = 60.0, 10.0  # a nanosecond


def nanoseconds(node: Node) -> float | None:
    """What a node costs on one core; None where sizes are not known."""
    inputs = tuple(v and v.type for v in node.inputs)
    price = cost(node.op.definition, inputs, tuple(v.type for v in node.outputs), node.attrs)
    return None if price is None else _CALL + price.flops / _FLOPS + price.bytes / _BYTES
