"""The Tensor type: its Python side, subscripts, text, initial values, sparse forms."""
