"""What scripts ask of MindSpore's extension module, `mindspore._c_expression`."""

from __future__ import annotations

from types import SimpleNamespace

from mycelia.tensor import Tensor as TensorPy

__all__ = ["TensorPy", "enable_security", "security"]


def enable_security() -> bool:
    """False: no build of this has the restrictions of MindSpore's security mode."""
    return False


security = SimpleNamespace(enable_security=enable_security)
