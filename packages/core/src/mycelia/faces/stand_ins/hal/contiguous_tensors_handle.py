"""Tensors laid one behind the other in one vector, so that a device can move them at once."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor, is_tensor


class ContiguousTensorsHandle:
    """A copy of the elements of several tensors of one dtype as one vector, which can be sliced.

    `enable_mem_align`: devices may leave gaps between tensors; the CPU does not.
    Errors: TypeError unless a list of Tensors of one dtype, ValueError if it is empty.
    """

    def __init__(self, tensor_list, enable_mem_align: bool = True):
        if not isinstance(tensor_list, (list, tuple)) or not all(map(is_tensor, tensor_list)):
            raise errors.type_error("ContiguousTensorsHandle", "tensor_list must be a list of Tensors")
        if not isinstance(enable_mem_align, bool):
            raise errors.type_error("ContiguousTensorsHandle", "enable_mem_align must be a bool")
        if not tensor_list:
            raise errors.value_error("ContiguousTensorsHandle", "tensor_list must not be empty")
        if len({t.dtype for t in tensor_list}) != 1:
            raise errors.type_error("ContiguousTensorsHandle", "all tensors must have one dtype")
        from mycelia import ops

        self.value = ops.cat([t.reshape(-1) for t in tensor_list])
        self._starts = [0]
        for t in tensor_list:
            self._starts.append(self._starts[-1] + t.size)

    def __getitem__(self, place) -> Tensor:
        part = self.value[place]
        return part.reshape(1) if part.ndim == 0 else part

    def __str__(self) -> str:
        return f"ContiguousTensorsHandle of {len(self._starts) - 1} tensors, {self.value.size} elements"

    def slice_by_tensor_index(self, start: int | None = None, end: int | None = None) -> Tensor:
        """The elements of the tensors from number `start` to before number `end`."""
        last = len(self._starts) - 1
        first, stop, _ = slice(start, end).indices(last)
        if first >= stop:
            raise errors.value_error(
                "slice_by_tensor_index", f"no tensor lies between {start} and {end} of {last}"
            )
        return self.value[self._starts[first] : self._starts[stop]]


def combine_tensor_list_contiguous(tensor_list, enable_mem_align: bool = True) -> ContiguousTensorsHandle:
    """The tensors in one vector; see `ContiguousTensorsHandle`."""
    return ContiguousTensorsHandle(tensor_list, enable_mem_align)
