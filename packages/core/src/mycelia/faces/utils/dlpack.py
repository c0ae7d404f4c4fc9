"""Memory shared with other frameworks by DLPack."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor, is_tensor


def to_dlpack(tensor: Tensor):
    """A DLPack capsule on the memory of a Tensor.  Errors: TypeError for anything else."""
    if not is_tensor(tensor):
        raise errors.type_error("to_dlpack", f"tensor must be a Tensor, but got {type(tensor).__name__}")
    return tensor.to_dlpack()


def from_dlpack(dlpack) -> Tensor:
    """A Tensor on the memory of a DLPack capsule, or of an object that offers one."""
    return Tensor.from_dlpack(dlpack)
