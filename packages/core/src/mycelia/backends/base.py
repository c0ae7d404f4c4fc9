"""The contract of a backend: one class, of which only `name` and `kernels` must be written."""

from __future__ import annotations

from pathlib import Path

from mycelia import _C
from mycelia.dtypes import DType


def include_dir() -> Path:
    """The directory of `mycelia/abi.h` and `mycelia/op_attrs.h`, for compiling native kernels."""
    return Path(_C.__file__).parent / "include"


class Backend:
    """A device that runs kernels on the host's memory. Everything but `name` and `kernels` has a default."""

    #: What `set_context(device_target=...)` calls it, in lower case.
    name = ""

    #: dtypes that run as another one where no kernel exists: ``{bfloat16: float32}``.
    emulated: dict[DType, DType] = {}

    def kernels(self):
        """The kernels: a capsule named ``mycelia.kernel_table`` holding a `myc_kernel_table` (abi.h),
        or a dict.

        Dict: ``{("mat_mul", "f32"): function}``; the dtypes text is as in abi.h; the function takes one NumPy
        array per tensor input (None for an absent one, a tuple for a list; float32 for bfloat16) and the
        attributes by keyword, and returns an array or a tuple of them.
        """
        return {}

    def set_threads(self, count: int) -> None:
        """Let kernels use up to `count` host threads (0: the backend's choice)."""
