"""Ops as graphs of other ops, for files whose format has no operator of the same meaning.

A format's writer asks for these after its own rules and operators: `composed` gives the decomposition that
the op's block names, or one of the compositions here.
"""

from mycelia.io.compositions import forward, training  # noqa: F401  (they fill the table)
from mycelia.io.compositions.table import Unsupported, composed, traced

__all__ = ["Unsupported", "composed", "traced"]
