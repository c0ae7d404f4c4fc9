# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.stand_ins.hal.contiguous_tensors_handle import (
    ContiguousTensorsHandle as ContiguousTensorsHandle,
    combine_tensor_list_contiguous as combine_tensor_list_contiguous,
)

__all__ = [
    "ContiguousTensorsHandle", "Tensor", "combine_tensor_list_contiguous", "is_tensor",
]
