"""How a Tensor is copied, moved, written and turned into other holders of the same values."""

import math as _math

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.shape import reshape
from mycelia.engine.ops.control_flow.device import on_device
from mycelia.engine.ops.methods.properties import device, marks, noted
from mycelia.engine.tensors.attach import attach


def _copy(self):
    """The same values in memory of their own; gradients flow back."""
    if self.traced is not None:
        return reshape(self, self.shape)
    made = _C.from_array(self._bits(), self.dtype, False)
    if self._node is not None:
        _C.custom("copy", (self,), (made,), lambda ct: (ct,))
    return made


def _deepcopy(self, memo):
    if self._has_value or self.traced is not None:
        made = _C.from_array(self._bits(), self.dtype, False)
    else:
        made = _C.make_traced(None, self.dtype, self.shape)
    memo[id(self)] = made
    return made


def _tolist(self):
    """The elements as nested lists of Python numbers; a number for rank 0."""
    return self.asnumpy().tolist()


def _get_bytes(self):
    """The elements' bytes."""
    return np.ascontiguousarray(self._bits()).tobytes()


def _from_bytes(content, shape, dtype):
    """A tensor of `shape` and `dtype` from its bytes."""
    dtype = dtypes.as_dtype(dtype)
    return _C.from_array(np.frombuffer(content, dtype.np).reshape(tuple(shape)), dtype, False)


def frombuffer(buffer, dtype=dtypes.float32, count=-1, offset=0):
    """A vector of the elements in a buffer, from byte `offset` on, at most `count` of them.

    Errors: ValueError if the buffer ends before `count` elements or within one.
    """
    dtype = dtypes.as_dtype(dtype)
    return _C.from_array(np.frombuffer(buffer, dtype.np, count, offset), dtype, False)


def _set_dtype(self, dtype):
    """Cast it in place; returns the dtype."""
    from mycelia.engine.ops.elementwise.cast import cast

    self._assign(cast(self, dtype)._detach())
    return self.dtype


def _move_to(self, to, blocking=True):
    """A copy of the tensor on another kind of device, "CPU" or that of a backend; gradients flow back.

    Errors: ValueError for another name, RuntimeError for a kind that no backend with memory of its own
    serves.
    """
    if not isinstance(blocking, bool):
        raise errors.value_error(f"For 'Tensor.move_to', blocking must be a bool, but got {blocking!r}")
    return on_device("Tensor.move_to", self, to)


def _to_device(self, device=None, non_blocking=False):
    """`move_to` in place."""
    del non_blocking  # done when the call returns
    return self._assign(_move_to(self, device))


def _pin_memory(self):
    """Raises RuntimeError: page-locked memory speeds up copies to a device, and there is none."""
    raise RuntimeError("For 'Tensor.pin_memory', a backend with memory of its own (Ascend, GPU) is needed")


def _offload(self, file_path):
    """Write the elements to a file, which `offload_file_path` names from then on; True when that is done."""
    with open(file_path, "wb") as file:
        file.write(_get_bytes(self))
    marks(self)["offloaded"] = str(file_path)
    return True


def _offload_file_path(self):
    """The file that `offload` wrote, or an empty text."""
    return noted(self, "offloaded") or ""


def _resize(self, *new_shape):
    """The elements in order under another shape: what is missing is 0, what is too much is left out."""
    if not new_shape:
        return self
    shape = tuple(new_shape[0]) if len(new_shape) == 1 and not isinstance(new_shape[0], int) else new_shape
    count = _math.prod(shape)
    if any(n < 0 for n in shape):
        raise errors.value_error(f"For 'Tensor.resize', sizes must not be negative, but got {list(shape)}")
    flat = reshape(self, (-1,))
    if count > self.size:
        from mycelia.engine.ops.arrays.create import zeros
        from mycelia.engine.ops.arrays.joining import cat

        flat = cat((flat, zeros((count - self.size,), self.dtype)))
    return reshape(flat[:count] if count < self.size else flat, shape)


def _set(self, source=None, storage_offset=0, size=None, stride=None):
    """Become `source` (its elements from `storage_offset` on under the shape `size`), or an empty tensor."""
    if source is None:
        self._assign(_C.empty(self.dtype, (0,)))
        return self
    if not isinstance(source, _C.Tensor):
        raise errors.type_error("Tensor.set_", f"source must be a Tensor, but got {type(source).__name__}")
    if size is not None:
        count = _math.prod(size)
        if stride is not None and list(stride) != stride(_C.make_traced(None, source.dtype, tuple(size))):
            raise NotImplementedError(
                "For 'Tensor.set_', tensors are contiguous here: stride must fit the size"
            )
        source = reshape(reshape(source, (-1,))[storage_offset : storage_offset + count], tuple(size))
    self._assign(source._detach())
    return self


class UntypedStorage:
    """The bytes of a tensor; tensors that share memory have one. It is looked at, not resized."""

    def __init__(self, tensor=None):
        self._tensor = tensor

    def size(self):
        """Number of bytes."""
        return self.nbytes()

    def nbytes(self):
        """Number of bytes."""
        return 0 if self._tensor is None else self._tensor.nbytes

    def data_ptr(self):
        """The address of the first byte."""
        return 0 if self._tensor is None else self._tensor._data_ptr

    def element_size(self):
        """Bytes of one element."""
        return 1

    def is_shared(self):
        """Whether other processes see it."""
        return False

    @property
    def device(self):
        """Where it lies."""
        return "CPU" if self._tensor is None else device(self._tensor)

    def __len__(self):
        return self.nbytes()

    def __getitem__(self, place):
        return bytearray(_get_bytes(self._tensor))[place]


def _untyped_storage(self):
    """The bytes that hold the elements."""
    return UntypedStorage(self)


def _from_dlpack(dlpack):
    """A tensor on the memory of a DLPack capsule, or of an object that offers one."""
    return _C.Tensor._from_dlpack(dlpack.__dlpack__() if hasattr(dlpack, "__dlpack__") else dlpack)


def _to_dlpack(self):
    """A DLPack capsule that shares the memory."""
    return self.__dlpack__()


def _assign_bits(self, value):
    """Take the memory of another tensor, of any shape and dtype; returns this one."""
    return self._assign(value._detach())


def _delete(self, non_blocking=False):
    """Give the memory back: the tensor is empty from then on."""
    del non_blocking  # done when the call returns
    self._assign(_C.empty(self.dtype, (0,)))


def _to_coo(self):
    """A COOTensor of the elements of a matrix that are not zero."""
    from mycelia.engine.tensors.sparse import dense_to_sparse_coo

    return dense_to_sparse_coo(self)


def _to_csr(self):
    """A CSRTensor of the elements of a matrix that are not zero."""
    from mycelia.engine.tensors.sparse import dense_to_sparse_csr

    return dense_to_sparse_csr(self)


def _nothing(self, *args, **kwargs):
    """Nothing: values are there when a call returns."""
    del args, kwargs  # nothing to wait for


_METHODS = {
    "copy": _copy, "clone": _copy, "tolist": _tolist, "get_bytes": _get_bytes,
    "convert_bytes_to_tensor": staticmethod(_from_bytes), "set_dtype": _set_dtype, "set_cast_dtype": _nothing,
    "move_to": _move_to, "to_": _to_device, "pin_memory": _pin_memory, "offload": _offload,
    "offload_file_path": _offload_file_path, "flush_from_cache": _nothing, "data_sync": _nothing,
    "wait_pipeline": _nothing, "resize": _resize, "to_coo": _to_coo, "to_csr": _to_csr,
    "assign_value_cpp": _assign_bits, "delete_": _delete, "set_": _set, "storage": _untyped_storage,
    "untyped_storage": _untyped_storage, "from_dlpack": staticmethod(_from_dlpack), "to_dlpack": _to_dlpack,
    "__deepcopy__": _deepcopy,
}  # fmt: skip

for _name, _function in _METHODS.items():
    attach(_name, _function)

__all__ = ["frombuffer"]
