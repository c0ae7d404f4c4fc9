"""The Tensor type: its Python side, subscripts, text, initial values, sparse forms."""

# Subscripts and constructors are made of ops, and the last that the ops import is the type: they come first,
# whichever module of this package is asked for.
import mycelia.engine.ops  # noqa: F401
