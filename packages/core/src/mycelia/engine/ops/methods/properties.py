"""What a Tensor tells about itself and its memory, and how it turns into other holders of the same values."""

import math as _math
import weakref

import numpy as np

from mycelia.engine import _C
from mycelia.engine.backends import registry
from mycelia.engine.base import dtypes, errors, ignored
from mycelia.engine.ops.arrays.axes import transpose
from mycelia.engine.ops.arrays.shape import reshape
from mycelia.engine.ops.control_flow.device import on_device
from mycelia.engine.ops.late import ops
from mycelia.engine.tensors.attach import attach

_marks: dict[int, dict] = {}  # what is noted about single tensors, by identity, as long as they live


def marks(tensor) -> dict:
    """The notes on one tensor: its hooks, the file it was written to. Tensors have no attributes of their
    own."""
    found = _marks.get(id(tensor))
    if found is None:
        found = _marks[id(tensor)] = {}
        weakref.finalize(tensor, _marks.pop, id(tensor), None).atexit = False
    return found


def noted(tensor, what: str):
    """One note on a tensor, or None."""
    found = _marks.get(id(tensor))
    return None if found is None else found.get(what)


class SharedTensor(_C.Tensor):
    """``x.data``: a tensor on the memory of x. Writing into it writes into x; no gradient flows through
    it."""

    _owner = None

    def _assign(self, other):
        super()._assign(other)
        if self._owner is not None:
            self._owner._assign(self._detach())
        return self


def _data(self):
    """The values as a tensor without gradient that shares them."""
    if _C.mode() or self.traced is not None:  # a Parameter must stay one where a graph is being captured
        return self
    made = SharedTensor()
    made._assign(self._detach())
    made._owner = self
    return made


def _set_data(self, value):
    if not isinstance(value, _C.Tensor):
        raise errors.type_error("Tensor.data", f"a Tensor is expected, but got {type(value).__name__}")
    self._assign(value._detach())


# -------------------------------------------------------------------------------------------- transposes


def _matrix_transpose(self):
    """The last two axes exchanged."""
    if self.ndim < 2:
        raise errors.value_error(
            f"For 'Tensor.mT', at least 2 axes are needed, but the tensor has {self.ndim}"
        )
    return transpose(self, (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))


def _conj(self):
    """The complex conjugate."""
    return ops.conj(self) if self.dtype.is_complex else self


def _adjoint(self):
    """The last two axes exchanged and conjugated."""
    return _conj(_matrix_transpose(self))


def _hermitian(self):
    """The conjugate transpose of a matrix."""
    if self.ndim != 2:
        raise errors.value_error(f"For 'Tensor.H', a matrix is needed, but the tensor has {self.ndim} axes")
    return _adjoint(self)


# -------------------------------------------------------------------------------------------------- facts


def _stride(self, dim=None):
    """Elements between neighbours along each axis, or along `dim`."""
    steps = [_math.prod(max(n, 1) for n in self.shape[i + 1 :]) for i in range(self.ndim)]
    return steps if dim is None else steps[dim]


def _strides(self):
    """Bytes between neighbours along each axis."""
    return tuple(step * self.itemsize for step in _stride(self))


def _numel(self):
    """Number of elements."""
    return self.size


def _dim(self):
    """Number of axes."""
    return self.ndim


def _is_complex(self):
    """Whether its elements are complex numbers."""
    return self.dtype.is_complex


def _is_floating_point(self):
    """Whether its elements are floating numbers."""
    return self.dtype.is_floating


def _is_signed(self):
    """Whether its elements may be negative."""
    return self.dtype.is_signed


def _data_ptr(self):
    """The address of the first element."""
    return self._data_ptr


def _itself(self):
    """This tensor."""
    return self


def _device(self):
    """Where it lies: 'CPU', or the device of a backend with memory of its own, such as 'Ascend:0'.

    A tensor comes to the device target when an op reads it.
    """
    return registry.device_name(self._device)


def _init(self):
    """The initializer that the tensor was made from, or None."""
    return noted(self, "init")


def _has_init(self):
    """Whether it was made from an initializer."""
    return _init(self) is not None


@ignored.arguments(slice_index="Parameters are whole", opt_shard_group="Parameters are whole")
def _init_data(self, slice_index=None, shape=None, opt_shard_group=None):
    """The tensor as its initializer has filled it; of `shape`, if that is given, filled anew."""
    init = _init(self)
    if init is None or shape is None:
        return self._detach()
    from mycelia.engine.tensors.initializer import initializer

    return initializer(init, tuple(shape), self.dtype)


def _is_meta(self):
    """Whether it has a type, but no memory: ``Tensor(..., device="meta")``."""
    return not self._has_value


def _constant_fact(value, doc):
    def method(self):
        return value

    method.__doc__ = doc
    return method


def _const_arg(self):
    """Whether it is a constant of the functions that are compiled for it."""
    return bool(noted(self, "const_arg"))


def _set_const_arg(self, const_arg=True):
    """Note that compiled functions may take it as a constant; returns the tensor."""
    marks(self)["const_arg"] = bool(const_arg)
    return self


def _init_flag(self):
    """The mark that `set_init_flag` leaves."""
    return bool(noted(self, "init_flag"))


def _set_init_flag(self, flag):
    """Mark whether it was initialized by other means."""
    marks(self)["init_flag"] = bool(flag)


# ---------------------------------------------------------------------------------- copies and conversions


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
        if stride is not None and list(stride) != _stride(_C.make_traced(None, source.dtype, tuple(size))):
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
        return "CPU" if self._tensor is None else _device(self._tensor)

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


def _requires_grad(self, requires_grad=True):
    """Nothing: which tensors get gradients is said to `grad` and `value_and_grad`."""
    del requires_grad  # a transform says it


def _contains(self, element):
    """Whether some element equals `element`, a number or a Tensor; other things are in no Tensor."""
    if not isinstance(element, (_C.Tensor, int, float, complex, np.number, np.bool_)):
        return False
    return bool((self == element).any())


def _reversed(self):
    return iter([self[i] for i in range(len(self) - 1, -1, -1)])


def _rounded(self, digits=0):
    return self.round(decimals=digits or 0)


_METHODS = {
    "data": property(_data, _set_data), "H": property(_hermitian), "mT": property(_matrix_transpose),
    "mH": property(_adjoint), "adjoint": _adjoint,
    "stride": _stride, "strides": property(_strides), "numel": _numel, "nelement": _numel, "dim": _dim,
    "ndimension": _dim, "storage_offset": _constant_fact(0, "Elements before the first one: none."),
    "contiguous": _itself, "value": _itself, "device": property(_device), "has_init": property(_has_init),
    "init": property(_init), "init_finished": property(_constant_fact(True,
    "Values are there as soon as the tensor is.")),
    "init_data": _init_data, "init_flag": property(_init_flag), "set_init_flag": _set_init_flag,
    "const_arg": property(_const_arg), "set_const_arg": _set_const_arg, "delta_seed": 0,
    "param_info": None, "symbolic_shape": None, "parent_tensor_": None, "index_of_parent_": None,
    "virtual_flag": False, "is_meta": property(_is_meta),
    "is_contiguous": _constant_fact(True, "Whether elements lie in order: they always do."),
    "is_pinned": _constant_fact(False, "Whether it lies in page-locked memory."),
    "is_shared": _constant_fact(False, "Whether it lies in memory of several processes."),
    "is_init": _constant_fact(False, "Whether it was marked as initialized."),
    "is_complex": _is_complex, "is_signed": _is_signed,
    "is_floating_point": _is_floating_point, "copy": _copy, "clone": _copy, "tolist": _tolist,
    "get_bytes": _get_bytes, "convert_bytes_to_tensor": staticmethod(_from_bytes), "set_dtype": _set_dtype,
    "set_cast_dtype": _nothing, "move_to": _move_to, "to_": _to_device, "pin_memory": _pin_memory,
    "offload": _offload, "offload_file_path": _offload_file_path, "flush_from_cache": _nothing,
    "data_sync": _nothing, "wait_pipeline": _nothing, "requires_grad_": _requires_grad,
    "data_ptr": _data_ptr, "resize": _resize, "to_coo": _to_coo, "to_csr": _to_csr,
    "assign_value_cpp": _assign_bits, "delete_": _delete, "set_": _set, "storage": _untyped_storage,
    "untyped_storage": _untyped_storage, "from_dlpack": staticmethod(_from_dlpack), "to_dlpack": _to_dlpack,
    "__contains__": _contains, "__deepcopy__": _deepcopy, "__reversed__": _reversed, "__round__": _rounded,
}  # fmt: skip

for _name, _function in _METHODS.items():
    attach(_name, _function)

__all__ = ["frombuffer"]
