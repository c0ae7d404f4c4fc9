"""The backend class: its name, its kernels, what it cannot hold."""

from __future__ import annotations

from acme_backend import kernels
from mycelia import dtypes
from mycelia.backends import Backend


class AcmeBackend(Backend):
    """Computes in float32; float16 and bfloat16 are brought to it and back.

    Whatever is not in the table runs elsewhere: as a composition of other ops, on the CPU backend's kernel
    where that is installed, or by the op's reference body.
    """

    name = "acme"
    emulated = {dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32}

    def kernels(self):
        """The table of `kernels.py`; a native backend returns a capsule with a `myc_kernel_table` instead."""
        return kernels.TABLE
