"""The intermediate representation: typed graphs in SSA form with structured control flow."""

from mycelia.ir.graph import Builder, Graph, Node, Value, group_inputs
from mycelia.ir.interpret import evaluate
from mycelia.ir.types import TensorType
from mycelia.ir.verify import InvalidGraph, verify

__all__ = [
    "Builder",
    "Graph",
    "InvalidGraph",
    "Node",
    "TensorType",
    "Value",
    "evaluate",
    "group_inputs",
    "verify",
]
