"""The table of MindSpore operators: a function for each, whose signature says how arguments reach it.

Positional parameters are the operator's inputs; keyword-only parameters are the arguments that files of
before `mind_ir_version` 2 keep as attributes, and later ones give as further inputs, in this order. So one
signature serves every kind of file. Operators that an op names itself (`@op(mindir=...)`) with the same
arguments need no function.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mycelia.engine import ops
from mycelia.engine.ops.define import OPTIONAL

_ALIASES = {  # attribute -> its names in older files
    "data_format": ("format",),
    "transpose_a": ("transpose_x1", "adj_x"),
    "transpose_b": ("transpose_x2", "adj_y"),
    "group": ("groups",),
    "pad": ("pad_list",),
    "pad_list": ("pad",),
    "pad_mode": ("padding",),
    "kernel_size": ("ksize",),
    "strides": ("stride",),
    "stride": ("strides",),
    "dims": ("perm", "multiples"),
    "axis": ("dim",),
}
_RENAMED = {  # operator -> the name it has now
    "TensorAdd": "Add", "Gelu": "GeLU", "Swish": "SiLU", "LogicalNOT": "LogicalNot", "tuple_getitem":
    "TupleGetItem", "list_getitem": "TupleGetItem", "ListGetItem": "TupleGetItem", "RealTupleGetItem":
    "TupleGetItem", "RealMakeTuple": "MakeTuple", "make_tuple": "MakeTuple", "make_list": "MakeList",
    "GatherV2": "Gather", "SparseGatherV2": "Gather", "Sqr": "Square", "EqualExt": "Equal", "AsinExt":
    "Asin", "AcosExt": "ACos", "AtanExt": "Atan", "Atan2Ext": "Atan2", "AsinhExt": "Asinh", "AcoshExt":
    "Acosh", "MishExt": "Mish", "SeLUExt": "SeLU", "TrilExt": "Tril", "BitwiseNot": "Invert",
    "BitwiseAndTensor": "BitwiseAnd", "BitwiseOrTensor": "BitwiseOr", "BitwiseXorTensor": "BitwiseXor",
    "Mod": "FloorMod", "SelectV2": "Select", "Contiguous": "Identity", "Clone": "Identity", "Copy":
    "Identity", "TensorMove": "Identity", "SetSize": "Identity", "ReduceAnyExt":
    "AnyExt", "NonZeroExt": "NonZeroTuple", "MaskedFillScalar": "MaskedFill", "GatherNdExt": "GatherNd",
    "Mm": "MatMulExt", "BatchMatMulExt": "MatMulExt", "Mv": "MatMulExt",
}  # fmt: skip


class Operator:
    """One operator: the function and how the arguments of a node become its parameters."""

    __slots__ = ("effect", "function", "keywords", "positional", "varied")

    def __init__(
        self,
        function: Callable,
        positional: Sequence[str],
        keywords: Sequence[str],
        varied: bool,
        effect: bool,
    ):
        self.function, self.positional, self.keywords = function, tuple(positional), tuple(keywords)
        self.varied, self.effect = varied, effect

    def check(self, given: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        """Errors: TypeError if the function cannot be called with so many arguments."""
        signature = _signature(self.function)
        if signature is not None:
            signature.bind(*given, **keywords)

    def bind(self, arguments: list, attributes: Mapping[str, Any]) -> tuple[list, dict[str, Any]]:
        """(positional, keyword) arguments of a call. Errors: TypeError for too many inputs."""
        if self.varied:
            return arguments, {}
        count = len(self.positional)
        extra = arguments[count:]
        if len(extra) > len(self.keywords):
            raise TypeError(
                f"takes up to {count + len(self.keywords)} arguments, the file gives {len(arguments)}"
            )
        bound = dict(zip(self.keywords, extra))
        for name in (*self.positional[len(arguments) :], *self.keywords[len(extra) :]):
            for known in (name, *_ALIASES.get(name, ())):
                if known in attributes:
                    bound[name] = attributes[known]
                    break
        return arguments[:count], bound


@functools.cache
def _signature(function: Callable) -> inspect.Signature | None:
    """What a function takes; None for builtins that do not tell."""
    function = getattr(ops, function.public) if hasattr(function, "public") else function
    definition = getattr(function, "definition", None)
    if definition is None:
        try:
            return inspect.signature(function)
        except ValueError:
            return None
    kind, empty = inspect.Parameter, inspect.Parameter.empty
    taken = [
        (n, kind.POSITIONAL_OR_KEYWORD, None if how == OPTIONAL else empty) for n, how in definition.params
    ]
    taken += [(a.name, kind.KEYWORD_ONLY, a.default if a.has_default else empty) for a in definition.attrs]
    return inspect.Signature([kind(name, how, default=default) for name, how, default in taken])


_table: dict[str, Operator] = {}


def operator(function: Callable, name: str = "", effect: bool = False) -> Callable:
    """Enters a function into the table; its signature says what are inputs and what attributes."""
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD]
    keywords = [p.name for p in parameters if p.kind == p.KEYWORD_ONLY]
    varied = any(p.kind == p.VAR_POSITIONAL for p in parameters)
    _table[name or function.__name__] = Operator(function, positional, keywords, varied, effect)
    return function


def writes(function: Callable) -> Callable:
    """`operator` for one that changes a parameter or prints: it runs even when nothing uses its result."""
    return operator(function, effect=True)


@functools.cache
def find(name: str) -> Operator | None:
    """The operator of a name, or None when it is not known."""
    name = _RENAMED.get(name, name)
    if name in _table:
        return _table[name]
    return _named_by_ops().get(name)


def has_effect(name: str, attributes: Mapping[str, Any]) -> bool:
    """Whether an operator with these attributes changes parameters or prints."""
    found = find(name) if name else None
    flags = ("side_effect_mem", "side_effect_io", "is_training")
    return (found is not None and found.effect) or any(attributes.get(flag) for flag in flags)


@functools.cache
def _named_by_ops() -> dict[str, Operator]:
    """The operators that ops name themselves, plugins' ops among them."""
    from mycelia.engine.base import plugins
    from mycelia.engine.ops.define import registry

    plugins.load_ops()
    table = {}
    for op in registry.values():
        definition = op.definition
        if definition.mindir:
            table[definition.mindir] = Operator(
                op, definition.param_names, [a.name for a in definition.attrs], False, bool(definition.effect)
            )
    return table


def simple(**names: str) -> None:
    """Operators whose inputs are the arguments of a public function: operator = name of the function."""
    for name, function in names.items():
        _table[name] = Operator(_public(function), (), (), True, False)


def _public(name: str) -> Callable:
    def call(*arguments: Any) -> Any:
        return getattr(ops, name)(*arguments)

    call.public = name
    return call


def python(**functions: Callable) -> None:
    """Operators on Python values: operator = function."""
    for name, function in functions.items():
        _table[name] = Operator(function, (), (), True, False)
