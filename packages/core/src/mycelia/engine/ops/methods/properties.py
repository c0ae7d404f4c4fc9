"""What a Tensor tells about itself and its memory, and what is noted about single tensors."""

import math as _math
import weakref

import numpy as np

from mycelia.engine import _C
from mycelia.engine.backends import registry
from mycelia.engine.base import errors, ignored
from mycelia.engine.ops.arrays.axes import transpose
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


def stride(self, dim=None):
    """Elements between neighbours along each axis, or along `dim`."""
    steps = [_math.prod(max(n, 1) for n in self.shape[i + 1 :]) for i in range(self.ndim)]
    return steps if dim is None else steps[dim]


def _strides(self):
    """Bytes between neighbours along each axis."""
    return tuple(step * self.itemsize for step in stride(self))


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


def device(self):
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
    "stride": stride, "strides": property(_strides), "numel": _numel, "nelement": _numel, "dim": _dim,
    "ndimension": _dim, "storage_offset": _constant_fact(0, "Elements before the first one: none."),
    "contiguous": _itself, "value": _itself, "device": property(device), "has_init": property(_has_init),
    "init": property(_init), "init_finished": property(_constant_fact(True,
    "Values are there as soon as the tensor is.")),
    "init_data": _init_data, "init_flag": property(_init_flag), "set_init_flag": _set_init_flag,
    "const_arg": property(_const_arg), "set_const_arg": _set_const_arg, "delta_seed": 0,
    "param_info": None, "symbolic_shape": None, "parent_tensor_": None, "index_of_parent_": None,
    "virtual_flag": False, "is_meta": property(_is_meta), "data_ptr": _data_ptr,
    "is_contiguous": _constant_fact(True, "Whether elements lie in order: they always do."),
    "is_pinned": _constant_fact(False, "Whether it lies in page-locked memory."),
    "is_shared": _constant_fact(False, "Whether it lies in memory of several processes."),
    "is_init": _constant_fact(False, "Whether it was marked as initialized."),
    "is_complex": _is_complex, "is_signed": _is_signed, "is_floating_point": _is_floating_point,
    "requires_grad_": _requires_grad, "__contains__": _contains, "__reversed__": _reversed,
    "__round__": _rounded,
}  # fmt: skip

for _name, _function in _METHODS.items():
    attach(_name, _function)

__all__ = []
