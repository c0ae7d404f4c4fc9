"""Attributes of an op: the keyword-only parameters of its block."""

from __future__ import annotations

import operator
import struct

from mycelia.engine.base import dtypes
from mycelia.engine.ir.symint import SymInt

MAX_INTS = 16
_INT64 = range(-(2**63), 2**63)  # what kernels and graphs can hold


class Attribute:
    """A keyword-only parameter of an op: its type, default, and how a value is checked and packed for C."""

    __slots__ = ("choices", "default", "has_default", "kind", "name", "optional")

    def __init__(self, name: str, kind: str, default, has_default: bool):
        self.name = name
        self.optional = kind.endswith("?")
        self.kind = kind.rstrip("?")
        self.choices: tuple[str, ...] = ()
        if "|" in self.kind:
            self.choices = tuple(c.strip() for c in self.kind.split("|"))
            self.kind = "choice"
        if self.kind not in ("int", "float", "bool", "str", "ints", "code", "dtype", "any", "choice"):
            raise TypeError(f"attribute {name}: unknown type {kind!r}")
        self.default, self.has_default = default, has_default

    def canonical(self, value):
        """`value` as the op's body, rule and kernel expect it; raises TypeError or ValueError."""
        kind = type(value)
        if kind is SymInt and self.kind in ("int", "float"):
            return value
        if value is None:
            if self.optional or self.kind == "any":
                return None
            raise TypeError(f"argument '{self.name}' must be {self.expects()}, but got None")
        try:
            if self.kind == "int":
                return self._int64(value)
            if self.kind in ("float", "bool") and isinstance(value, (str, bytes, list, tuple)):
                raise TypeError  # float("1") and bool([]) would do
            if self.kind == "float":
                return float(value)
            if self.kind == "bool":
                if value not in (0, 1):
                    raise TypeError
                return bool(value)
            if self.kind == "code":
                return tuple(self._int64(v) for v in value)
            if self.kind == "ints":
                if hasattr(kind, "__index__") and not getattr(value, "ndim", 0):
                    value = (value,)
                items = tuple(v if type(v) is SymInt else self._int64(v) for v in value)
                if len(items) > MAX_INTS:
                    raise ValueError(
                        f"argument '{self.name}' has {len(items)} entries, at most {MAX_INTS} are taken"
                    )
                return items
            if self.kind == "dtype":
                return dtypes.as_dtype(value)
        except TypeError:
            raise TypeError(f"argument '{self.name}' must be {self.expects()}, but got {value!r}") from None
        except OverflowError:
            raise ValueError(f"argument '{self.name}' must be {self.expects()}, but got {value}") from None
        if self.kind == "str" and not isinstance(value, str):
            raise TypeError(f"argument '{self.name}' must be a str, but got {value!r}")
        if self.kind == "choice" and value not in self.choices:
            raise ValueError(f"argument '{self.name}' must be one of {list(self.choices)}, but got {value!r}")
        return value

    def _int64(self, value) -> int:
        number = operator.index(value)
        if number not in _INT64:
            raise ValueError(f"argument '{self.name}' must be {self.expects()} of 64 bits, but got {number}")
        return number

    def expects(self) -> str:
        texts = {
            "int": "an int", "float": "a float", "bool": "a bool", "str": "a str", "ints": "a tuple of int",
            "code": "a tuple of int", "dtype": "a dtype such as float32", "any": "a value",
            "choice": f"one of {list(self.choices)}",
        }  # fmt: skip
        return texts[self.kind] + (" or None" if self.optional else "")

    @property
    def hint(self) -> str:
        """The type of its values, as an annotation says it."""
        if self.kind == "any":
            return "Any"
        texts = {
            "int": "int", "float": "float", "bool": "bool", "str": "str", "ints": "int | Sequence[int]",
            "code": "Sequence[int]", "dtype": "DTypeLike", "choice": f"Literal{list(self.choices)}",
        }  # fmt: skip
        return texts[self.kind] + (" | None" if self.optional else "")

    @property
    def in_c(self) -> bool:
        """Whether kernels see it."""
        return self.kind not in ("str", "any")

    def pack(self, value) -> bytes:
        """Bytes of the field in `myc_<op>_attrs`; every field is a multiple of 8 bytes."""
        head = struct.pack("<q", value is not None) if self.optional else b""
        if self.kind == "float":
            return head + struct.pack("<d", 0.0 if value is None else value)
        if self.kind == "code":
            return struct.pack(f"<{len(value) + 1}q", len(value), *value)
        if self.kind == "ints":
            items = value or ()
            return head + struct.pack(
                f"<{MAX_INTS + 1}q", len(items), *items, *([0] * (MAX_INTS - len(items)))
            )
        if value is None:
            return head + struct.pack("<q", 0)
        if self.kind == "dtype":
            value = value.code
        elif self.kind == "choice":
            value = self.choices.index(value)
        return head + struct.pack("<q", value)

    def c_fields(self) -> list[str]:
        """Declarations of the field in the C attribute struct."""
        fields = [f"int64_t has_{self.name};"] if self.optional else []
        if self.kind == "code":  # of any length, hence the last attribute
            return [f"int64_t n_{self.name};", f"int64_t {self.name}[1]; /* n_{self.name} of them */"]
        ctype = {"float": "double", "ints": "myc_ints"}.get(self.kind, "int64_t")
        note = f" /* {', '.join(f'{i} {c}' for i, c in enumerate(self.choices))} */" if self.choices else ""
        return [*fields, f"{ctype} {self.name};{note}"]
