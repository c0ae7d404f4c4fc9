"""The C kernels of `kernels/*.c`: which parts a function needs, and the fields of the structs.

A part stands between two blank lines of a file, with the comment above it: one struct or function. A comment
that begins "For f32, i64:" makes a function of each of these types: in its text TYPE stands for the type,
WRAP for the one whose sums and products wrap around, WEIGHT for the one of what it is multiplied by, SUFFIX
for the name, IS_NAN(x) for what of an integer is never true.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

_NAME = re.compile(r"\bmicro_\w+")
_TYPES = {  # by suffix: what TYPE and WRAP stand for, and WEIGHT if it is something else
    "f32": ("float", "float"), "f64": ("double", "double"),
    "i32": ("int32_t", "uint32_t"), "i64": ("int64_t", "uint64_t"),
    "i8": ("int8_t", "uint8_t"), "u8": ("uint8_t", "uint8_t", "int8_t"),
    "i8w": ("int8_t", "uint8_t", "int16_t"), "u8w": ("uint8_t", "uint8_t", "int16_t"),
    "u16": ("uint16_t", "uint16_t"), "u32": ("uint32_t", "uint32_t"), "u64": ("uint64_t", "uint64_t"),
}  # fmt: skip
_TYPED = re.compile(r"(/\* )For ((?:\w+, )*\w+): ")


@dataclass(frozen=True)
class Part:
    """A struct or function as it stands in its file."""

    name: str
    text: str

    @property
    def is_type(self) -> bool:
        """Whether it is a struct."""
        return "typedef struct" in self.text

    @property
    def is_local(self) -> bool:
        """Whether each file that calls it has its own."""
        return self.code.startswith("static ")

    @property
    def can_fail(self) -> bool:
        """Whether it tells if data are not what it can compute with."""
        return self.code.startswith("int32_t ")

    @property
    def code(self) -> str:
        """The text without the comment above."""
        return re.sub(r"\A(/\*.*?\*/\s*)+", "", self.text, flags=re.S)

    @property
    def head(self) -> str:
        """The declaration of a function."""
        return self.code.partition("\n{")[0].strip() + ";"

    @property
    def needs(self) -> set[str]:
        """Names of other parts that it has."""
        return set(_NAME.findall(self.code)) - {self.name}


def _name(code: str) -> str | None:
    """Of the struct or function; None for a comment alone."""
    struct = re.search(r"\}\s*(micro_\w+);\s*\Z", code)
    if struct or not code:
        return struct and struct[1]
    return _NAME.search(code.partition("(")[0])[0]


@functools.cache
def parts() -> dict[str, Part]:
    """All parts by name."""
    found = {}
    for file in sorted(resources.files(__package__).joinpath("kernels").iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".c"):
            continue
        for text in re.split(r"\n\n+", file.read_text(encoding="utf-8").strip()):
            for made in _of_types(text):
                if (name := _name(Part("", made).code)) is not None:
                    found[name] = Part(name, made)
    return found


def _of_types(text: str) -> list[str]:
    """The text for each type that its comment names; as it is if the comment names none."""
    typed = _TYPED.match(text)
    if typed is None:
        return [text]
    plain, made = _TYPED.sub(r"\1", text, count=1), []
    for suffix in typed[2].split(", "):
        one = plain.replace("SUFFIX", suffix)
        kind, wrap, *weight = _TYPES[suffix]
        for word, type_ in (("TYPE", kind), ("WRAP", wrap), ("WEIGHT", (*weight, kind)[0])):
            one = re.sub(rf"\b{word}\b", type_, one)
        made.append(re.sub(r"\bIS_NAN\((\w+)\)", r"(\1 != \1)" if suffix in ("f32", "f64") else "0", one))
    return made


def closure(names: Iterable[str]) -> list[Part]:
    """These parts with all that they need, each behind what it needs."""
    made: dict[str, Part] = {}

    def take(name: str) -> None:
        part = parts()[name]
        if name in made:
            return
        for other in sorted(part.needs & parts().keys()):
            take(other)
        made[name] = part

    for name in sorted(names):
        take(name)
    return list(made.values())


@functools.cache
def fields(struct: str) -> tuple[tuple[str, str, int], ...]:
    """(type, name, places) of each field of a struct; one place unless it is an array."""
    found = []
    for kind, names in re.findall(r"^\s+(\w+) ([^;]+);", parts()[struct].code, flags=re.M):
        for name in names.split(","):
            match = re.fullmatch(r"\s*(\w+)(?:\[(\d+)\])?\s*", name)
            found.append((kind, match[1], int(match[2] or 0)))
    return tuple(found)
