# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import (
    Parameter as Parameter, ParameterTuple as ParameterTuple, is_tensor as is_tensor, tensor as tensor,
)
from typing import Any as Any

__all__ = [
    "Parameter", "ParameterTuple", "Tensor", "from_numpy", "is_tensor", "tensor",
]

from_numpy: Any
