"""Tensors and Parameters under MindSpore's names: how their types print, and pickles that it reads.

Pickles that MindSpore wrote are read too: their classes are found through the alias.
"""

from __future__ import annotations

import copyreg

from mycelia.engine.base import dtypes, log
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.faces.compat import numpy1

_MODULES = {Tensor: "mindspore.common.tensor", Parameter: "mindspore.common.parameter"}
_kept: dict[tuple[type, str], object] = {}


def _reduce_tensor(self):
    """A Tensor without data, and its array as state."""
    if self.dtype is dtypes.bfloat16:  # NumPy has no such type
        return _kept[Tensor, "__reduce__"](self)
    return copyreg.__newobj__, (Tensor,), {"value": self.asnumpy().copy()}


def _set_tensor_state(self, state: dict) -> None:
    self._assign(Tensor(state["value"]))


def _reduce_parameter(self):
    return Parameter, (self._detach(), self.name, self.requires_grad, self.layerwise_parallel)


_asnumpy = Tensor.asnumpy


def _as_numbers(self):
    """`asnumpy`, whose arrays of one element are numbers where scripts want them."""
    return numpy1.as_number(_asnumpy(self))


_METHODS = {
    (Tensor, "asnumpy"): _as_numbers,
    (Tensor, "__reduce__"): _reduce_tensor,
    (Tensor, "__setstate__"): _set_tensor_state,
    (Parameter, "__reduce__"): _reduce_parameter,
}


def install() -> None:
    """Give the types MindSpore's module names and form of pickles."""
    from mycelia.engine.tensors import initializer

    log.FILE = "mindspore.log"
    initializers = [c for c in vars(initializer).values() if isinstance(c, type)]  # layers print theirs
    own = {
        c: "mindspore.common.initializer"
        for c in initializers
        if c.__module__ == initializer.Initializer.__module__
    }
    for cls, module in {**_MODULES, **own}.items():
        _kept[cls, "__module__"] = cls.__module__
        cls.__module__ = module
    for (cls, name), method in _METHODS.items():
        _kept[cls, name] = vars(cls).get(name)
        setattr(cls, name, method)


def uninstall() -> None:
    """The types as they were."""
    for (cls, name), value in _kept.items():
        setattr(cls, name, value) if value is not None else delattr(cls, name)
    _kept.clear()
    log.FILE = "mycelia.log"
