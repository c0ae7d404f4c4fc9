"""The contract of a backend: one class, of which only `name` and `kernels` must be written."""

from __future__ import annotations

from mycelia.dtypes import DType


class Backend:
    """A device that runs kernels.

    Everything but `name` and `kernels` has a default that suits devices with host memory.
    """

    #: What `set_context(device_target=...)` calls it, in lower case.
    name = ""

    #: dtypes that run as another one where no kernel exists: ``{bfloat16: float32}``.
    emulated: dict[DType, DType] = {}

    def kernels(self):
        """The kernels: a capsule named ``mycelia.kernel_table`` holding a `myc_kernel_table` (abi.h), or a dict.

        Dict: ``{("matmul", "f32,f32"): function}``; the dtypes text is as in abi.h; the function takes one NumPy
        array per tensor input (None for an absent one, a tuple for a list) and the attributes by keyword, and returns
        an array or a tuple of them.
        """
        return {}

    def supports(self, dtype: DType) -> bool:
        """Whether tensors of `dtype` can live on the device."""
        return True

    def synchronize(self) -> None:
        """Wait until all work given to the device is done."""

    def set_threads(self, count: int) -> None:
        """Let kernels use up to `count` host threads (0: the backend's choice)."""

    def capability(self, graph) -> list:
        """Sets of nodes of an `ir.Graph` that `compile` takes as a whole; none by default."""
        return []

    def compile(self, graph):
        """An executable for a claimed sub-graph."""
        raise NotImplementedError(f"backend {self.name} claims no sub-graphs")
