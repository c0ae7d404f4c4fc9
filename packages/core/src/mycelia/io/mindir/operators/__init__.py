"""MindSpore operators as Python functions over `mycelia.ops`: what a node of a MindIR file computes.

`mindir.rules` has the other direction.
"""

from mycelia.io.mindir.operators import (  # noqa: F401  (they fill the table)
    communication,
    images,
    math,
    nn,
    shape,
    structure,
    training,
    windows,
)
from mycelia.io.mindir.operators.table import Operator, find, has_effect

__all__ = ["Operator", "find", "has_effect"]
