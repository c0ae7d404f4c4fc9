# Written by tools/gen_stubs.py.
from mycelia.engine.ir.graph import (
    Builder as Builder, Graph as Graph, Node as Node, Value as Value, flat_parts as flat_parts,
    group_inputs as group_inputs,
)
from mycelia.engine.ir.interpret import evaluate as evaluate
from mycelia.engine.ir.text import to_text as to_text
from mycelia.engine.ir.types import TensorType as TensorType
from mycelia.engine.ir.verify import InvalidGraph as InvalidGraph, verify as verify

__all__ = [
    "Builder", "Graph", "InvalidGraph", "Node", "TensorType", "Value", "evaluate", "flat_parts",
    "group_inputs", "to_text", "verify",
]
