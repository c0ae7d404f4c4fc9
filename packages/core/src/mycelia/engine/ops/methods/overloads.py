"""Second names of parameters: many Tensor methods take MindSpore's older and newer word for one.

``x.expand_as(x=y)`` and ``x.expand_as(other=y)`` are one method. The tables name the words that a method's
function does not know; functions that know both are not in them. Loaded last.
"""

import functools
import inspect

from mycelia.engine import _C
from mycelia.engine.tensors.attach import attach

# Method -> other name: the function's name.
_NAMES = {
    "expand_as": {"x": "other"}, "float_power": {"other": "exponent"}, "isclose": {"x2": "other"},
    "logical_and": {"y": "other"}, "logical_or": {"y": "other"}, "matmul": {"tensor2": "other"},
    "median": {"dim": "axis", "keepdim": "keepdims"}, "narrow": {"dim": "axis"},
    "remainder": {"divisor": "other"},
    "reverse": {"axis": "dims"}, "sub": {"y": "other"}, "sub_": {"y": "other"}, "tile": {"reps": "dims"},
    "unsqueeze": {"dim": "axis"}, "where": {"other": "y"}, "swapdims": {"dim0": "axis0", "dim1": "axis1"},
    "true_divide": {"other": "divisor"}, "ormqr": {"input2": "tau", "input3": "other"},
}  # fmt: skip

# Method that takes its values one by one or as a tuple -> the names under which it takes them as well.
_SPREAD = {
    "flip": ("dims",), "permute": ("dims", "axis"), "squeeze": ("axis", "dim"), "transpose": ("axes",),
    "view": ("shape", "dtype"), "reshape": ("shape",), "broadcast_to": ("shape",), "repeat": ("repeats",),
    "expand": ("size",),
}  # fmt: skip


def _renamed(function, names: dict[str, str]):
    def method(self, *args, **kwargs):
        if kwargs:
            kwargs = {names.get(name, name): value for name, value in kwargs.items()}
        return function(self, *args, **kwargs)

    return method


def _spread(function, names: tuple[str, ...]):
    def method(self, *args, **kwargs):
        if kwargs:
            args += tuple(kwargs.pop(name) for name in names if name in kwargs)
        return function(self, *args, **kwargs)

    return method


def _with_more_names(function):
    """Its signature, and that further keywords are taken."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
        return signature
    more = inspect.Parameter("second_names", inspect.Parameter.VAR_KEYWORD)
    return signature.replace(parameters=[*parameters, more])


for _table, _wrap in ((_NAMES, _renamed), (_SPREAD, _spread)):
    for _name, _names in _table.items():
        _found = getattr(_C.Tensor, _name)
        _method = _wrap(_found, _names)
        if isinstance(_found, _C.Op):
            _method.__doc__ = _found.__doc__
        else:
            _method = functools.wraps(_found)(_method)
        _method.__signature__ = _with_more_names(_found)
        attach(_name, _method)

__all__ = []
