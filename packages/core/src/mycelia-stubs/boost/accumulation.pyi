# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import Parameter as Parameter
from mycelia.faces.boost.accumulation import GradientAccumulation as GradientAccumulation
from mycelia.nn.cell import Cell as Cell
from mycelia.nn.wrap.loss_scale import positive_int as positive_int

__all__ = [
    "Cell", "GradientAccumulation", "Parameter", "Tensor", "positive_int",
]
