"""The intermediate representation: typed graphs in SSA form with structured control flow."""

from mycelia.engine.ir.graph import Builder, Graph, Node, Value, flat_parts, group_inputs
from mycelia.engine.ir.interpret import evaluate
from mycelia.engine.ir.text import to_text
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ir.verify import InvalidGraph, verify

__all__ = [
    "Builder",
    "Graph",
    "InvalidGraph",
    "Node",
    "TensorType",
    "Value",
    "evaluate",
    "flat_parts",
    "group_inputs",
    "to_text",
    "verify",
]
