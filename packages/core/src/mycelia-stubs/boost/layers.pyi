# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.initializer import initializer as initializer
from mycelia.engine.tensors.tensor import Parameter as Parameter
from mycelia.faces.boost.layers import CommonHeadLastFN as CommonHeadLastFN, LessBN as LessBN
from mycelia.nn.cell import Cell as Cell
from mycelia.nn.dense import Dense as Dense

__all__ = [
    "Cell", "CommonHeadLastFN", "Dense", "LessBN", "Parameter", "Tensor", "initializer",
]
