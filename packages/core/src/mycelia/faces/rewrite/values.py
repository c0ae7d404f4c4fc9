"""Arguments and targets of statements: names, constants, other objects."""

from __future__ import annotations

import ast
import enum

from mycelia.engine.base import errors


class ValueType(enum.Enum):
    """What a `ScopedValue` stands for."""

    ConstantValue = 0
    TupleValue = 20
    ListValue = 21
    DictValue = 22
    NamingValue = 40
    CustomObjValue = 41
    UnsupportedValue = 50


_CONTAINERS = {tuple: ValueType.TupleValue, list: ValueType.ListValue, dict: ValueType.DictValue}


class ScopedValue:
    """A value, or the name of one; `scope` "self" and value "conv" mean ``self.conv``."""

    def __init__(self, arg_type: ValueType, scope: str = "", value=None):
        if not isinstance(arg_type, ValueType):
            raise errors.type_error("ScopedValue", f"arg_type must be a ValueType, but got {arg_type!r}")
        self.type, self.scope, self.value = arg_type, scope, value

    @classmethod
    def create_variable_value(cls, value) -> ScopedValue:
        """A constant or an object; tuples, lists and dicts of them."""
        if isinstance(value, ScopedValue):
            return value
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            return cls(ValueType.ConstantValue, "", value)
        kind = _CONTAINERS.get(type(value))
        if kind is ValueType.DictValue:
            return cls(kind, "", {k: cls.create_variable_value(v) for k, v in value.items()})
        if kind is not None:
            return cls(kind, "", type(value)(cls.create_variable_value(v) for v in value))
        return cls(ValueType.CustomObjValue, "", value)

    @classmethod
    def create_naming_value(cls, name: str, scope: str = "") -> ScopedValue:
        """The name of a variable, ``scope.name`` if there is a scope. Errors: TypeError unless texts."""
        for what, text in (("name", name), ("scope", scope)):
            if not isinstance(text, str):
                raise errors.type_error(
                    "ScopedValue",
                    f"{what} must be a str, but got {type(text).__name__}",
                )
        return cls(ValueType.NamingValue, scope, name)

    @staticmethod
    def create_name_values(names, scopes=None) -> list[ScopedValue]:
        """Several names. Errors: TypeError unless lists of texts, ValueError if their lengths differ."""
        for what, texts in (("names", names), ("scopes", () if scopes is None else scopes)):
            if not isinstance(texts, (list, tuple)):
                raise errors.type_error(
                    "ScopedValue", f"{what} must be a list or tuple, but got {type(texts).__name__}"
                )
        if scopes is not None and len(names) != len(scopes):
            raise errors.value_error("ScopedValue", f"{len(names)} names, but {len(scopes)} scopes")
        return [ScopedValue.create_naming_value(*pair) for pair in zip(names, scopes or [""] * len(names))]

    def __str__(self) -> str:
        if self.type is ValueType.NamingValue:
            return f"{self.scope}.{self.value}" if self.scope else str(self.value)
        if self.type in (ValueType.ConstantValue, ValueType.CustomObjValue):
            return str(self.value)
        return f"Illegal ValueType: {self.type}"

    __repr__ = __str__

    def __eq__(self, other) -> bool:
        if not isinstance(other, ScopedValue):
            return False
        return (self.type, self.scope, self.value) == (other.type, other.scope, other.value)

    def __hash__(self) -> int:
        return hash((self.type, self.scope, str(self.value)))


def value_of(expression: ast.expr) -> ScopedValue:
    """What an expression of the source is."""
    if isinstance(expression, ast.Constant):
        return ScopedValue(ValueType.ConstantValue, "", expression.value)
    text = ast.unparse(expression)
    if isinstance(expression, ast.Name):
        return ScopedValue(ValueType.NamingValue, "", text)
    if isinstance(expression, ast.Attribute):
        scope, _, name = text.rpartition(".")
        return ScopedValue(ValueType.NamingValue, scope, name)
    return ScopedValue(ValueType.UnsupportedValue, "", text)


def expression_of(value: ScopedValue | str) -> ast.expr:
    """The expression for a value; a text is a name. Errors: TypeError for objects that have no text."""
    if isinstance(value, ScopedValue):
        if value.type in (ValueType.TupleValue, ValueType.ListValue):
            kind = ast.Tuple if value.type is ValueType.TupleValue else ast.List
            return kind([expression_of(v) for v in value.value], ast.Load())
        if value.type is ValueType.DictValue:
            keys = [ast.Constant(k) for k in value.value]
            return ast.Dict(keys, [expression_of(v) for v in value.value.values()])
        if value.type is ValueType.CustomObjValue:
            raise errors.type_error("ScopedValue", f"{value.value!r} cannot stand in source code")
        if value.type is ValueType.ConstantValue:
            return ast.Constant(value.value)
    return ast.parse(str(value), mode="eval").body
