"""MindSpore's functional namespace: every function of `mycelia.ops`, some under further names.

`F.depend`, `F.tuple_getitem` and the like are for code that was written against MindSpore's module.
"""

from __future__ import annotations

from mycelia.engine import _C
from mycelia.ops.composite import partial  # noqa: F401  (a name of this module)


def depend(value, expr):
    """`value`; `expr` has been computed before, as Python does."""
    return value


def mixed_precision_cast(dst_type, x):
    """`x` with the floating Tensors in it (nested in tuples, lists and dicts too) cast to `dst_type`."""
    from mycelia.engine.ops.elementwise.cast import cast

    if isinstance(x, _C.Tensor):
        return cast(x, dtype=dst_type) if x.dtype.is_floating and x.dtype is not dst_type else x
    if isinstance(x, (tuple, list)):
        members = [mixed_precision_cast(dst_type, v) for v in x]
        return type(x)(*members) if hasattr(x, "_fields") else type(x)(members)
    if isinstance(x, dict):
        return {k: mixed_precision_cast(dst_type, v) for k, v in x.items()}
    return x


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


def __getattr__(name: str):
    from mycelia import ops

    if name == "__all__":
        own = ("depend", "mixed_precision_cast", "partial")
        return sorted({*own, *(n for n in ops.__all__ if not n[:1].isupper())})
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
