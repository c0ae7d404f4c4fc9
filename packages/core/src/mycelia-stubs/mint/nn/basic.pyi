# Written by tools/gen_stubs.py.
from mycelia.dtype import float32 as float32
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.initializer import Normal as Normal, initializer as initializer
from mycelia.engine.tensors.tensor import Parameter as Parameter
from mycelia.faces.mint.nn.basic import EmbeddingExt as EmbeddingExt, PReLUExt as PReLUExt
from mycelia.mint.nn import ZeroPad1d as ZeroPad1d, ZeroPad3d as ZeroPad3d
from mycelia.nn.cell import Cell as Cell

__all__ = [
    "Cell", "EmbeddingExt", "Normal", "PReLUExt", "Parameter", "Tensor", "ZeroPad1d", "ZeroPad3d",
    "float32", "initializer",
]
