"""MindSpore's functional namespace: every function of `mycelia.ops`, and small functions on Python values.

`F.depend`, `F.tuple_getitem` and the like are for code that was written against MindSpore's module.
"""

from __future__ import annotations

import math
import operator

from mycelia import _C
from mycelia.ops.composite import partial  # noqa: F401  (a name of this module)


def _reflected(function):
    return lambda x, y: function(y, x)


def _with_item(items, index, value):
    """A copy of a tuple, list or dict with one member replaced."""
    if isinstance(items, dict):
        return {**items, index: value}
    kind = type(items)
    made = list(items)
    made[index] = value
    return kind(made)


def _broadcast_axes(x_shape, y_shape):
    """Which axes of the broadcast shape each operand was repeated along: what a gradient sums over."""
    rank = max(len(x_shape), len(y_shape))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in (x_shape, y_shape)]
    found = []
    for mine, other in (padded, padded[::-1]):
        found.append(tuple(i for i in range(rank) if mine[i] == 1 and (other[i] != 1 or mine[i] == other[i])))
    return tuple(found)


def depend(value, expr):
    """`value`; `expr` has been computed before, as Python does."""
    return value


def typeof(x):
    """The type of `x`: its dtype for a Tensor."""
    return x.dtype if isinstance(x, _C.Tensor) else type(x)


def mixed_precision_cast(dst_type, x):
    """`x` with the floating Tensors in it (nested in tuples, lists and dicts too) cast to `dst_type`."""
    from mycelia.ops.cast import cast

    if isinstance(x, _C.Tensor):
        return cast(x, dtype=dst_type) if x.dtype.is_floating and x.dtype is not dst_type else x
    if isinstance(x, (tuple, list)):
        members = [mixed_precision_cast(dst_type, v) for v in x]
        return type(x)(*members) if hasattr(x, "_fields") else type(x)(members)
    if isinstance(x, dict):
        return {k: mixed_precision_cast(dst_type, v) for k, v in x.items()}
    return x


#: On Python values, as rewritten code of MindSpore calls them.
_PYTHON = {
    **dict.fromkeys(("tuple_getitem", "list_getitem", "dict_getitem"), operator.getitem),
    **dict.fromkeys(("tuple_setitem", "list_setitem", "dict_setitem"), _with_item),
    **dict.fromkeys(("tuple_len", "list_len"), len),
    **dict.fromkeys(("tuple_equal", "list_equal", "string_eq", "bool_eq", "scalar_eq"), operator.eq),
    "tuple_reversed": lambda x: x[::-1],
    "make_range": lambda *limits: tuple(range(*limits)),
    "make_tuple": lambda *items: items,
    "make_list": lambda *items: list(items),
    "make_dict": lambda keys, values: dict(zip(keys, values)),
    "make_slice": slice,
    "string_concat": operator.add,
    "scalar_add": operator.add,
    "scalar_sub": operator.sub,
    "scalar_mul": operator.mul,
    "scalar_div": operator.truediv,
    "scalar_floordiv": operator.floordiv,
    "scalar_mod": operator.mod,
    "scalar_pow": operator.pow,
    "scalar_uadd": operator.pos,
    "scalar_usub": operator.neg,
    "scalar_gt": operator.gt,
    "scalar_ge": operator.ge,
    "scalar_lt": operator.lt,
    "scalar_le": operator.le,
    "scalar_ne": operator.ne,
    "scalar_max": max,
    "scalar_min": min,
    "bool_not": operator.not_,
    "bool_or": lambda x, y: x or y,
    "bool_and": lambda x, y: x and y,
    "is_": operator.is_,
    "is_not": operator.is_not,
    "in_dict": _reflected(operator.contains),
    "not_in_dict": lambda x, y: x not in y,
    "broadcast_gradient_args": _broadcast_axes,
    "shape_mul": lambda shape: math.prod(shape),
    "identity": lambda x: x,
}  # fmt: skip

#: Name here -> name in `mycelia.ops`.
_RENAMED = {
    "tensor_add": "add", "tensor_sub": "sub", "tensor_mul": "mul", "tensor_div": "div",
    "tensor_floordiv": "floor_div", "tensor_pow": "pow", "tensor_exp": "exp", "tensor_expm1": "expm1",
    "tensor_mod": "floor_mod", "tensor_lt": "less", "tensor_le": "less_equal", "tensor_gt": "greater",
    "tensor_ge": "greater_equal", "neg_tensor": "neg", "absolute": "abs", "not_equal": "ne", "equal": "equal",
    "zeros_like_tensor": "zeros_like", "reduce_sum": "ReduceSum", "reduce_mean": "ReduceMean",
    "reduce_max": "ReduceMax", "reduce_min": "ReduceMin", "tensor_range": "range",
    "tensor_scatter_update": "TensorScatterUpdate", "scatter_nd_update": "ScatterNdUpdate", "pack": "stack",
    "control_depend": "Depend", "select": "select",
}  # fmt: skip

globals().update(_PYTHON)


def __getattr__(name: str):
    from mycelia import ops

    if name == "__all__":
        own = ("depend", "mixed_precision_cast", "partial", "typeof")
        return sorted({*own, *_PYTHON, *(n for n in ops.__all__ if not n[:1].isupper())})
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    wanted = name
    if not hasattr(ops, name):
        wanted = _RENAMED.get(name, name)
    try:
        found = getattr(ops, wanted)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    if wanted is not name and wanted[:1].isupper():  # an operator class: its instance with defaults
        found = found()
    return globals().setdefault(name, found)


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
