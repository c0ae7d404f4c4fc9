"""One type stub as it is written: imports, annotations, signatures, the first paragraph of docstrings."""

from __future__ import annotations

import ast
import enum
import inspect
import types

import return_types

HEAD = "# Written by tools/gen_stubs.py.\n"
BUILTIN = {
    "bool", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "object", "set", "slice", "str",
    "tuple", "type",
}  # fmt: skip
IMPORTED = {
    **dict.fromkeys(["Callable", "Iterable", "Iterator", "Mapping", "Sequence"], "collections.abc"),
    **dict.fromkeys(["Any", "Literal"], "typing"),
    **dict.fromkeys(["DTypeLike", "Tensor", "TensorLike"], "mycelia.engine._C"),
    "DType": "mycelia.engine.base.dtypes",
    "Parameter": "mycelia.engine.tensors.tensor",
}


class Text:
    """What `repr` shows as it is: annotations and defaults in a signature."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class Stub:
    """One file: what it imports, what it defines."""

    def __init__(self, path: str, shadowed: set[str] | None = None) -> None:
        self.path = path
        self.shadowed = shadowed or set()  # builtins whose names mean something else here
        self.imports: dict[str, set[str]] = {}  # module -> "name" or "name as other"
        self.body: list[str] = []
        self.names: list[str] = []
        self.uses_builtins = False

    def take(self, module: str, name: str, called: str | None = None) -> None:
        self.imports.setdefault(module, set()).add(f"{name} as {called or name}")

    def export(self, module: str, name: str, called: str) -> None:
        """Import a name that is public here, under a name of its own if it has one."""
        if name == called:
            self.take(module, name)
        else:
            self.take(module, name, f"_{name}")
            self.body.append(f"{called} = _{name}\n")

    def annotation(self, note) -> str | None:
        """The text of an annotation, with imports for its names; None if it has others than `IMPORTED`."""
        if isinstance(note, type) and note.__module__ == "builtins":
            note = note.__name__
        if note is types.NoneType or note == "None":
            return "None"
        if note in return_types.KINDS:
            note = return_types.KINDS[note]
        if not isinstance(note, str):
            return None
        try:
            tree = ast.parse(note, mode="eval").body
        except SyntaxError:
            return None
        literal = {id(c) for n in ast.walk(tree) if isinstance(n, ast.Subscript) for c in ast.walk(n.slice)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                return None
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in literal:
                return None
            if isinstance(node, ast.Name):
                if node.id in IMPORTED:
                    if node.id in self.shadowed:
                        return None
                    self.take(IMPORTED[node.id], node.id)
                elif node.id not in BUILTIN:
                    return None
                elif node.id in self.shadowed:
                    self.uses_builtins = True
                    node.id = f"builtins.{node.id}"
        return ast.unparse(tree)

    def signature(self, value, returned: str | None, first: str = "") -> str:
        """`(x: int, y=None) -> str` as a stub has it; `first`: a parameter before the others."""
        try:
            own = inspect.signature(value)
        except ValueError:
            own = inspect.Signature([inspect.Parameter(n, getattr(inspect.Parameter, k)) for n, k in _ANY])
        parameters = []
        for parameter in own.parameters.values():
            note = self.annotation(parameter.annotation)
            parameters.append(
                parameter.replace(
                    annotation=inspect.Parameter.empty if note is None else Text(note),
                    default=parameter.default
                    if parameter.default is inspect.Parameter.empty
                    else Text(_default(parameter.default)),
                )
            )
        if first:
            parameters = [p for p in parameters if p.name != first]
            kind = inspect.Parameter.POSITIONAL_ONLY
            if all(p.kind is not kind for p in parameters):
                kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters.insert(0, inspect.Parameter(first, kind))
        note = self.annotation(returned)
        text = str(inspect.Signature(parameters, return_annotation=Text(note or "Any")))
        if note is None:
            self.take("typing", "Any")
        return text

    def function(self, name: str, value, returned: str | None, *, indent="", first="", decorator="") -> str:
        lines = [f"{indent}@{decorator}\n"] if decorator else []
        text = self.signature(value, returned, first)
        doc = summary(getattr(value, "__doc__", None))
        wrong = "  # type: ignore" if indent and name in ("__eq__", "__ne__") else ""
        lines.append(f"{indent}def {name}{text}:{wrong}" + ("\n" if doc else " ...\n"))
        if doc:
            lines.append(f'{indent}    """{doc}"""\n')
        return "".join(lines)

    def text(self) -> str:
        lines = [HEAD]
        if self.uses_builtins:
            lines.append("import builtins\n")
        for module in sorted(self.imports):
            found = sorted(self.imports[module])
            line = f"from {module} import {', '.join(found)}\n"
            lines.append(line if len(line) < 110 else _long(f"from {module} import (", found, ")"))
        if self.names:
            lines.append(_long("\n__all__ = [", [f'"{n}"' for n in self.names], "]"))
        return "".join(lines) + ("\n" if self.body else "") + "".join(self.body)


_ANY = (("args", "VAR_POSITIONAL"), ("kwargs", "VAR_KEYWORD"))


def _long(start: str, items: list[str], end: str) -> str:
    rows, row = [], "   "
    for item in items:
        if len(row) + len(item) > 106:
            rows.append(row)
            row = "   "
        row += f" {item},"
    return "\n".join([start, *rows, row, end]) + "\n"


def _default(value) -> str:
    """A default as a stub may show it."""
    if isinstance(value, (bool, int, str, type(None))) and not isinstance(value, enum.Enum):
        text = repr(value)
    elif isinstance(value, float):
        text = repr(value) if value - value == 0 else "..."
    elif type(value) is tuple:
        text = f"({', '.join(map(_default, value))}{',' if len(value) == 1 else ''})"
    else:
        return "..."
    return text if len(text) < 40 else "..."


def summary(doc: str | None) -> str:
    """The first paragraph of a docstring, on lines of one text."""
    if not isinstance(doc, str):
        return ""
    text = " ".join(inspect.cleandoc(doc).split("\n\n")[0].split())
    return text.replace("\\", "\\\\").replace('"""', "'''").removesuffix('"') + (
        '" ' if text.endswith('"') else ""
    )
