# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.utils.dlpack import from_dlpack as from_dlpack, to_dlpack as to_dlpack

__all__ = [
    "Tensor", "from_dlpack", "is_tensor", "to_dlpack",
]
