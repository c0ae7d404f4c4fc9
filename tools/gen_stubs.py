"""Writes the type stubs of the public names: `python tools/gen_stubs.py`; `--check`
tells what is not current, as a test does.

Public names are looked up when they are used, many functions and classes are made by tables: editors and
type checkers, which only read, see none of that. The stubs say it, a file for each public module path. What
has a `def` or `class` statement of its own is imported from there, so that parameters, docstring and place
are the source's; what is made (ops, faces, primitives, methods of Tensor) is written out as the running
package describes it.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
import sys
import types
from pathlib import Path

import return_types
from public_paths import (
    ROOT,
    folders_below,
    full_path,
    is_hidden,
    is_module,
    is_shown,
    moved_modules,
    own_modules,
    public_modules,
    public_names,
    readable_path,
    written,
)
from stub_file import BUILTIN, HEAD, IMPORTED, Stub, summary

from mycelia.engine import _C
from mycelia.faces.compat import paths

STUBS = ROOT.with_name("mycelia-stubs")
METHODS = STUBS / "engine" / "_tensor_methods.pyi"
_OPERATORS = {
    "TensorLike": "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift",
    "compared": "lt le gt ge eq ne",
    "": "neg pos abs invert",
}
_CONVERSIONS = {"bool": "bool", "int": "int", "float": "float", "index": "int", "len": "int", "hash": "int"}


class Stubs:
    """All stub files by path, and where what they define was written first."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.defined: dict[int, tuple[str, str, object]] = {}  # id -> module, name, the object itself

    def module(self, path: str) -> None:
        """The stub of the public module `path`, with what it has now."""
        module = importlib.import_module(full_path(path))
        public = public_names(module)
        stub = Stub(
            path, shadowed={n for n in public if n in BUILTIN or n in IMPORTED and not _is_itself(module, n)}
        )
        for name in public:
            try:
                value = getattr(module, name)
            except AttributeError:
                continue
            if self.entry(stub, name, value):
                stub.names.append(name)
        if not path:
            stub.body.append("__version__: str\n")
        for name in folders_below(path):
            if name not in stub.names and not name.startswith("_") and hasattr(module, name):
                stub.take(".", name)
        self.files[path] = stub.text()

    def entry(self, stub: Stub, name: str, value) -> bool:
        """Add one name; False for what is none of the public names of this module."""
        if isinstance(value, types.ModuleType):
            below = f"{stub.path}.{name}".strip(".")
            listed = name in vars(importlib.import_module(full_path(stub.path))).get("__all__", ())
            if (
                is_module(below)
                and (listed or is_shown(below))
                and importlib.import_module(full_path(below)) is value
            ):
                stub.take(".", name)  # by its full path the stub would import from itself
                return True
            return False
        is_class, is_function = isinstance(value, type), isinstance(value, types.FunctionType)
        if is_class or is_function:
            home = written(value)
            told = return_types.of(value) if is_function and home else None
            if home and (is_class or told is None or "return" in value.__annotations__):
                stub.export(home, value.__name__, name)
                return True
        first = self.defined.setdefault(id(value), (stub.path, name, value))
        if (
            first[:2] != (stub.path, name)
            and first[1] == name
            and not isinstance(value, (str, int, float, list))
        ):
            stub.take(full_path(first[0]), name)
            return True
        if is_class:
            stub.body.append(self.made_class(stub, name, value))
        elif is_function or isinstance(value, _C.Op):
            notes = getattr(value, "__annotations__", {})
            stub.body.append("\n" + stub.function(name, value, return_types.of(value) or notes.get("return")))
        elif isinstance(value, types.BuiltinFunctionType) and value.__module__ == "_operator":
            stub.export("operator", value.__name__, name)
        else:
            stub.body.append(f"{name}: {self.type_of(stub, value)}\n")
        return True

    def type_of(self, stub: Stub, value) -> str:
        kind = type(value)
        if kind.__module__ == "builtins":
            note = stub.annotation(kind.__name__)
            if note is not None:
                return note
        elif kind.__name__ in IMPORTED and written(kind) == IMPORTED[kind.__name__]:
            return stub.annotation(kind.__name__) or "Any"
        elif written(kind) and not kind.__name__.startswith("_"):
            stub.take(written(kind), kind.__name__, f"_{kind.__name__}")
            return f"_{kind.__name__}"
        stub.take("typing", "Any")
        return "Any"

    def made_class(self, stub: Stub, name: str, value: type) -> str:
        """A class made by a table: its base with a statement, how it is made and called."""
        base = next((b for b in value.__mro__[1:] if b.__module__ == "builtins" or written(b)), object)
        text = f"\nclass {name}"
        if base is not object:
            bare = base.__module__ == "builtins"
            called = f"_{base.__name__}"
            stub.take("builtins" if bare else written(base), base.__name__, called)
            text += f"({called})"
        members = []
        if not issubclass(value, (BaseException, enum.Enum)):
            members.append(
                stub.function("__init__", value, "None", indent="    ", first="self").replace("...", "...", 1)
            )
            body = value.__dict__.get("__call__") or value.__dict__.get("_body")
            if isinstance(body, staticmethod) and "__call__" in value.__dict__:
                members.append(self.call(stub, body.__func__, set()))
            elif isinstance(body, staticmethod):
                members.append(self.call(stub, body.__func__, set(inspect.signature(value).parameters)))
        elif issubclass(value, enum.Enum):
            members = [f"    {member} = ...\n" for member in value.__members__]
        doc = summary(value.__doc__)
        inner = (f'    """{doc}"""\n' if doc else "") + "".join(
            re.sub(r'\n +""".*"""\n$', " ...\n", m) for m in members
        )
        return f"{text}:\n{inner}" if inner else f"{text}: ...\n"

    def call(self, stub: Stub, function, constants: set[str]) -> str:
        """`__call__` of a primitive: the inputs of its function, without the constants of its making."""

        def inputs() -> None: ...

        try:
            own = inspect.signature(function)
        except ValueError:
            own = inspect.signature(lambda *args, **kwargs: None)
        kept = [
            p.replace(name="self_" if p.name == "self" else p.name)
            for p in own.parameters.values()
            if p.name not in constants | {"state"}
        ]
        inputs.__signature__ = own.replace(parameters=kept)
        return stub.function("__call__", inputs, return_types.of(function), indent="    ", first="self")

    def stars(self, path: str, modules: list[str]) -> None:
        """The stub of a path whose names are those of other modules, the first of which counts most."""
        self.files[path] = HEAD + "".join(f"from {module} import *\n" for module in reversed(modules))


def tensor_methods() -> str:
    """The methods and operators that Tensor gets from Python, as a base class of the native one."""
    native = ast.parse((STUBS / "engine" / "_C.pyi").read_text())
    tensor = next(n for n in native.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    known = {getattr(n, "name", None) for n in tensor.body}
    public = [n for n in dir(_C.Tensor) if not n.startswith("_") and n not in known]
    stub = Stub("", shadowed=set(public) & BUILTIN)
    lines = []
    for kind, listed in _OPERATORS.items():
        for name in listed.split():
            lines += _operator(stub, name, kind)
    for name, result in _CONVERSIONS.items():
        lines.append(f"    def __{name}__(self) -> {stub.annotation(result)}: ...\n")
    index = stub.annotation("Any")
    lines.append(f"    def __getitem__(self, index: {index}) -> Tensor: ...\n")
    lines.append(f"    def __setitem__(self, index: {index}, value: TensorLike) -> None: ...\n")
    lines.append(f"    def __iter__(self) -> {stub.annotation('Iterator[Tensor]')}: ...\n")
    for name in public:
        value = inspect.getattr_static(_C.Tensor, name)
        returned = return_types.of_method(name)
        if isinstance(value, property):
            lines.append(
                stub.function(name, value.fget, returned, indent="    ", first="self", decorator="property")
            )
            if value.fset is not None:
                lines.append(f"    @{name}.setter\n    def {name}(self, value) -> None: ...\n")
        elif isinstance(value, staticmethod):
            lines.append(
                stub.function(name, value.__func__, returned, indent="    ", decorator="staticmethod")
            )
        elif isinstance(value, _C.Op):
            bound = value.param_names[0]
            lines.append(_bound(stub, name, value, bound, returned))
        elif callable(value):
            bound = next(iter(inspect.signature(value).parameters))
            lines.append(_bound(stub, name, value, bound, returned))
        else:
            lines.append(f"    {name}: {stub.annotation(type(value).__name__) or 'Any'}\n")
    stub.body = ["\nclass TensorMethods:\n", *lines]
    return stub.text()


def _bound(stub: Stub, name: str, value, bound: str, returned: str | None) -> str:
    """A function or op as a method: its first parameter is the tensor."""

    def method() -> None: ...

    own = inspect.signature(value)
    kept = [p for p in own.parameters.values() if p.name != bound]
    method.__signature__, method.__doc__ = own.replace(parameters=kept), value.__doc__
    return stub.function(name, method, returned, indent="    ", first="self")


def _operator(stub: Stub, name: str, kind: str) -> list[str]:
    if not kind:
        return [f"    def __{name}__(self) -> {stub.annotation('Tensor')}: ...\n"]
    other = f"other: {stub.annotation('TensorLike')}"
    if kind == "compared":
        wrong = "  # type: ignore" if name in ("eq", "ne") else ""
        return [f"    def __{name}__(self, {other}) -> Tensor: ...{wrong}\n"]
    lines = [f"    def __{name}__(self, {other}) -> Tensor: ...\n"]
    if hasattr(_C.Tensor, f"__r{name}__"):
        lines.append(f"    def __r{name}__(self, {other}) -> Tensor: ...\n")
    return lines


def _is_itself(module: types.ModuleType, name: str) -> bool:
    """Whether a public name means what annotations mean by it."""
    value = getattr(module, name, None)
    return isinstance(value, type) and written(value) == IMPORTED[name]


def generate() -> dict[Path, str]:
    """The text of every stub file."""
    stubs = Stubs()
    whole = public_modules()
    for path in whole:
        stubs.module(path)
    starred = [(path, real) for path, real in moved_modules().items() if real != path and path not in whole]
    for path, real in starred:
        stubs.stars(path, [full_path(real)])
    for path in sorted(
        p for p in paths.KNOWN - own_modules().keys() if not is_hidden(p)
    ):  # deep paths of MindSpore
        behind = [p for p in map(readable_path, paths.modules(path) or ()) if p is not None]
        stubs.stars(path, behind)
    files = {METHODS: tensor_methods(), STUBS / "py.typed": "partial\n"}
    for path, text in stubs.files.items():
        is_folder = (
            not path
            or path in own_modules()
            and own_modules()[path][1]
            or any(p.startswith(f"{path}.") for p in stubs.files)
        )
        place = STUBS / path.replace(".", "/")
        files[place / "__init__.pyi" if is_folder else place.with_suffix(".pyi")] = text
    return files


def stale() -> list[Path]:
    """The generated files that are there now."""
    return [path for path in STUBS.rglob("*.pyi") if path.read_text().startswith(HEAD)]


def write(files: dict[Path, str]) -> None:
    for path in stale():
        path.unlink()
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    new = generate()
    if sys.argv[1:] == ["--check"]:
        differ = [p for p, text in new.items() if not p.exists() or p.read_text() != text]
        differ += [p for p in stale() if p not in new]
        if differ:
            sys.exit("\n".join(["gen_stubs: not current:", *map(str, differ)]))
    else:
        write(new)
        print(f"gen_stubs: wrote {STUBS}")
