"""The values that control flow carries from place to place: variables without a value, containers, and
what two branches or two rounds of a loop can agree on.
"""

from __future__ import annotations

import linecache
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.capture.trace import Trace, UnknownSize, UnknownValue, active, is_traced, type_of
from mycelia.engine.ir import types as ir_types
from mycelia.engine.ir.graph import Value
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.control_flow.variable import VARIABLE_LENGTH, has_unknown_length
from mycelia.engine.tensors.tensor import Tensor

NUMBERS = (bool, int, float)
NUMBER_DTYPES = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float32}


# ---- names without a value ---------------------------------------------------------------------------------


class MissingValue(errors.CaptureError, UnboundLocalError):
    """A variable is read that has a value only if a tensor condition goes one way."""


class BranchType(errors.CaptureError, TypeError):
    """A variable has different types after the two ways of a tensor condition."""


class Undefined:
    """Stands in a variable that has no usable value, with the reason and the error that reading it is."""

    __slots__ = ("name", "reason", "kind", "outer", "detail")

    def __init__(
        self,
        name: str,
        reason: str = "",
        kind: type[errors.CaptureError] = MissingValue,
        outer: dict[str, Any] | None = None,
        detail: str = "",
    ) -> None:
        self.name, self.reason, self.kind, self.detail = name, reason, kind, detail
        self.outer = outer  # the names of the module

    def complain(self) -> Exception:
        if not self.reason:
            return UnboundLocalError(f"local variable '{self.name}' is used before it has a value")
        return errors.error(self.kind, "jit", f"{self.reason} {self.detail}".rstrip())

    def after(self, loop: str) -> Undefined:
        """The same after a loop, in whose body the variable may have got its value."""
        if self.kind is not MissingValue or not self.reason:
            return self
        return Undefined(self.name, inside_only(self.name, loop), detail=self.detail)


def inside_only(name: str, loop: str) -> str:
    """Says that a variable has a value only if the body of a `loop` ("for", "while") runs."""
    inside = f"The local variable '{name}' defined in the '{loop}' loop body"
    return f"{inside} cannot be used outside of the loop body."


def source_line(file: str, line: int) -> str:
    """The line's number and its code."""
    code = linecache.getline(file, line).strip()
    return f"line {line}" + (f" `{code}`" if code else "")


def leave(site: Any, get: Callable, set_: Callable) -> None:
    """After a loop that ran as Python: what has no value for sure says that it is the loop's."""
    if active() is None:
        return
    values = get()
    left = tuple(v.after(site.kind) if type(v) is Undefined else v for v in values)
    if any(a is not b for a, b in zip(values, left)):
        set_(left)


def undefined(name: str, outer: dict[str, Any] | None = None) -> Undefined:
    return Undefined(name, outer=outer)


def load(value: Any) -> Any:
    """The value of a variable; raises if it has none.

    As in MindSpore's graphs a variable that the function sets later is, until then, the module's.
    """
    if type(value) is Undefined:
        if not value.reason and value.outer is not None and value.name in value.outer:
            return value.outer[value.name]
        raise value.complain()
    return value


def result(value: Any) -> Any:
    """What the function returns."""
    if type(value) is Undefined and not value.reason:
        return None
    return load(value)


def get_attribute(owner: Any, name: str) -> Any:
    """`owner.name`, or Undefined: the attribute may be made inside the branch."""
    if type(owner) is Undefined:
        return owner
    try:
        return getattr(owner, name)
    except AttributeError:
        return Undefined(name)


def holds_traced(value: Any) -> bool:
    """Whether a traced tensor is in the value."""
    if is_container(value):
        return any(holds_traced(value[k]) for k in keys_of(value))
    return is_traced(value)


_IN_PLACE = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "Pow": operator.ipow, "MatMult": operator.imatmul,
    "BitAnd": operator.iand, "BitOr": operator.ior, "BitXor": operator.ixor, "LShift": operator.ilshift,
    "RShift": operator.irshift,
}  # fmt: skip


def has_key(owner: Any) -> Any:
    """`owner.has_key`, a method of dicts in graphs."""
    return owner.__contains__ if type(owner) is dict else owner.has_key


def in_place(old: Any, how: str, value: Any) -> Any:
    """What ``old += value`` and the like make of `old`. An array whose dtype cannot hold the result gives way
    to another, as always in graphs of MindSpore.
    """
    change = _IN_PLACE[how]
    try:
        return change(old, value)
    except TypeError:
        if type(old) is not np.ndarray:
            raise
        return change(old.astype(np.result_type(old, np.asarray(value))), value)


# ---- containers --------------------------------------------------------------------------------------------


_CONTAINERS = frozenset((list, tuple, dict, *VARIABLE_LENGTH.values()))


def is_container(value: Any) -> bool:
    return type(value) in _CONTAINERS or (isinstance(value, tuple) and hasattr(value, "_fields"))


def keys_of(container: Any) -> list:
    return list(container) if isinstance(container, dict) else list(range(len(container)))


def same_structure(a: Any, b: Any) -> list:
    if type(a) is not type(b) or keys_of(a) != keys_of(b):
        raise Mismatch(a, b)
    return keys_of(a)


def rebuild_container(like: Any, keys: list, items: list) -> Any:
    if isinstance(like, dict):
        return dict(zip(keys, items))
    return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)


def fresh_containers(value: Any) -> Any:
    """Copies of the containers, so that a branch may change them; the leaves stay."""
    if not is_container(value):
        return value
    keys = keys_of(value)
    return rebuild_container(value, keys, [fresh_containers(value[k]) for k in keys])


def refill(container: Any, content: Any) -> None:
    """Gives a list or dict the content of another."""
    container.clear()
    (container.update if type(container) is dict else container.extend)(content)


def flatten(value: Any, leaves: list) -> Callable[[Sequence[Any]], Any]:
    """Collects the leaves of nested containers; the result builds the structure from new leaves."""
    if not is_container(value):
        index = len(leaves)
        leaves.append(value)
        return lambda items: items[index]
    keys = keys_of(value)
    parts = [flatten(value[k], leaves) for k in keys]
    return lambda items: rebuild_container(value, keys, [p(items) for p in parts])


def alike(a: Any, b: Any) -> bool:
    """True if the containers have the same structure."""
    if not is_container(a) or not is_container(b):
        return not is_container(a) and not is_container(b)
    return type(a) is type(b) and keys_of(a) == keys_of(b) and all(alike(a[k], b[k]) for k in keys_of(a))


# ---- agreement ---------------------------------------------------------------------------------------------


class Mismatch(Exception):
    """Two values that no one tensor or container can stand for.

    `kind` is the error that reading the variable is. Where the types are the same, one value is None, or
    both are functions, Python can go on: such code runs as Python, as with every size that depends on data.
    """

    def __init__(self, a: Any, b: Any) -> None:
        super().__init__(a, b)
        self.a, self.b = describe(a), describe(b)
        self.kind: type[errors.CaptureError] = BranchType
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            if a.dtype is b.dtype:
                self.kind = UnknownSize
        elif a is None or b is None or (callable(a) and callable(b)) or _same_kind(a, b):
            self.kind = UnknownValue
        elif has_unknown_length(a) or has_unknown_length(b):
            self.kind = UnknownValue


def _same_kind(a: Any, b: Any) -> bool:
    return type(a) is type(b) and not is_container(a)


def common_dtype(a: Any, b: Any) -> Any:
    """The dtype two branch values share; numbers adapt to tensors. Raises Mismatch."""
    tensors = [v for v in (a, b) if isinstance(v, Tensor)]
    if len(tensors) == 2:
        if ir_types.join(type_of(a), type_of(b)) is None or not type_of(a).accepts(type_of(b)):
            raise Mismatch(a, b)
        return a.dtype
    if not tensors:
        return dtypes.promote(NUMBER_DTYPES[type(a)], NUMBER_DTYPES[type(b)])
    number = b if tensors[0] is a else a
    if tensors[0].shape != ():
        raise Mismatch(a, b)
    return dtypes.promote_number(tensors[0].dtype, type(number))


def describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return str(type_of(value))
    if isinstance(value, TensorType):
        return str(value)
    if isinstance(value, dict):
        return f"a dict of {', '.join(map(repr, value)) or 'nothing'}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"{type(value).__name__} {value!r}" if value is not None else "None"


def equal_objects(a: Any, b: Any) -> bool:
    if type(a) is not type(b) or isinstance(a, Tensor):
        return False
    try:
        return bool(a == b)
    except Exception:
        return False


def zeros(type_: TensorType) -> Tensor:
    if not type_.is_static:
        raise errors.error(
            errors.CaptureError,
            "jit",
            f"a value of type {type_} is returned under a tensor condition: its size must be known",
        )
    from mycelia.engine.ops.arrays.create import full

    return full(type_.shape, 0, dtype=type_.dtype)


# ---- regions -----------------------------------------------------------------------------------------------


def close_over(regions: Sequence[Trace], first: int = 0) -> tuple[Tensor, ...]:
    """Gives all regions the same parameters after their first `first` own ones;
    returns the tensors these stand for.
    """
    outer: dict[Value, Tensor] = {}
    for region in regions:
        for value, (tensor, _) in region.captured.items():
            outer.setdefault(value, tensor)
    for region in regions:
        own = region.graph.parameters[:first]
        region.graph.parameters = own
        for value in outer:
            if value in region.captured:
                own.append(region.captured[value][1])
            else:
                region.graph.add_parameter(value.type, value.name)
    return tuple(outer.values())
