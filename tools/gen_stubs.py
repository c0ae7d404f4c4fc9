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
import functools
import importlib
import inspect
import re
import sys
import types
from pathlib import Path

import return_types

import mycelia as ms
from mycelia import public_names as names
from mycelia.engine import _C
from mycelia.faces.compat import paths

ROOT = Path(ms.__file__).resolve().parent
STUBS = ROOT.with_name("mycelia-stubs")
METHODS = STUBS / "engine" / "_tensor_methods.pyi"
HEAD = "# Written by tools/gen_stubs.py.\n"
_BUILTIN = {
    "bool", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "object", "set", "slice", "str",
    "tuple", "type",
}  # fmt: skip
_FROM = {
    **dict.fromkeys(["Callable", "Iterable", "Iterator", "Mapping", "Sequence"], "collections.abc"),
    **dict.fromkeys(["Any", "Literal"], "typing"),
    **dict.fromkeys(["DTypeLike", "Tensor", "TensorLike"], "mycelia.engine._C"),
    "DType": "mycelia.engine.base.dtypes",
    "Parameter": "mycelia.engine.tensors.tensor",
}
_OPERATORS = {
    "TensorLike": "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift",
    "compared": "lt le gt ge eq ne",
    "": "neg pos abs invert",
}
_CONVERSIONS = {"bool": "bool", "int": "int", "float": "float", "index": "int", "len": "int", "hash": "int"}


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
        """The text of an annotation, with imports for its names; None if it has others than `_FROM`."""
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
                if node.id in _FROM:
                    if node.id in self.shadowed:
                        return None
                    self.take(_FROM[node.id], node.id)
                elif node.id not in _BUILTIN:
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
        doc = _summary(getattr(value, "__doc__", None))
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


def _summary(doc: str | None) -> str:
    """The first paragraph of a docstring, on lines of one text."""
    if not isinstance(doc, str):
        return ""
    text = " ".join(inspect.cleandoc(doc).split("\n\n")[0].split())
    return text.replace("\\", "\\\\").replace('"""', "'''").removesuffix('"') + (
        '" ' if text.endswith('"') else ""
    )


@functools.cache
def _statements(module: str) -> dict[str, ast.stmt]:
    """The `def` and `class` statements of a module's own file, by name."""
    file = getattr(importlib.import_module(module), "__file__", None)
    if file is None or not file.endswith(".py"):
        return {}
    return {
        n.name: n
        for n in ast.parse(Path(file).read_text()).body
        if isinstance(n, (ast.FunctionDef, ast.ClassDef))
    }


_PLAIN_DECORATORS = {"contextmanager", "contextlib.contextmanager", "functools.cache", "functools.lru_cache"}


def written(value) -> str | None:
    """The module that has the statement which made this class or function; None if it was made otherwise."""
    if value is _C.Tensor:
        return "mycelia.engine._C"
    module = getattr(value, "__module__", None) or ""
    below = module.removeprefix("mycelia").removeprefix(".")
    if not module.startswith("mycelia"):
        return None
    module = f"mycelia.{names.home(below) or below}" if below else module
    if _own().get(below) == (below, True) and not below.startswith(("engine", "faces")):
        return None  # the stub is in the place of this file
    node = _statements(module).get(value.__name__)
    if node is None or getattr(importlib.import_module(module), value.__name__, None) is not value:
        return None
    if isinstance(value, type):
        return module if isinstance(node, ast.ClassDef) else None
    decorators = {ast.unparse(d).partition("(")[0] for d in node.decorator_list}
    return module if decorators <= _PLAIN_DECORATORS else None


class Stubs:
    """All stub files by path, and where what they define was written first."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.defined: dict[int, tuple[str, str, object]] = {}  # id -> module, name, the object itself

    def module(self, path: str) -> None:
        """The stub of the public module `path`, with what it has now."""
        module = importlib.import_module(_full(path))
        public = public_names(module)
        stub = Stub(
            path, shadowed={n for n in public if n in _BUILTIN or n in _FROM and not _is_itself(module, n)}
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
        for name in _folders_below(path):
            if name not in stub.names and not name.startswith("_") and hasattr(module, name):
                stub.take(".", name)
        self.files[path] = stub.text()

    def entry(self, stub: Stub, name: str, value) -> bool:
        """Add one name; False for what is none of the public names of this module."""
        if isinstance(value, types.ModuleType):
            below = f"{stub.path}.{name}".strip(".")
            listed = name in vars(importlib.import_module(_full(stub.path))).get("__all__", ())
            if (
                _is_module(below)
                and (listed or _is_shown(below))
                and importlib.import_module(_full(below)) is value
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
            stub.take(_full(first[0]), name)
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
        elif kind.__name__ in _FROM and written(kind) == _FROM[kind.__name__]:
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
        doc = _summary(value.__doc__)
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
    stub = Stub("", shadowed=set(public) & _BUILTIN)
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


def public_names(module: types.ModuleType) -> list[str]:
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(dict.fromkeys(listed))
    found = []
    for name in dir(module):
        value = getattr(module, name, None)
        home = (getattr(value, "__module__", None) or type(value).__module__ or "").split(".")[0]
        if (
            name.startswith("_")
            or name == "TYPE_CHECKING"
            or (not isinstance(value, types.ModuleType) and home in ("__future__", "typing"))
        ):
            continue
        if home in ("mycelia", "builtins", "numpy") or isinstance(value, types.ModuleType):
            found.append(name)
    return found


def _folders_below(path: str) -> list[str]:
    """The names of the folders right below a public path."""
    start = f"{path}." if path else ""
    below = [
        p.removeprefix(start) for p, (_, is_folder) in _own().items() if is_folder and p.startswith(start)
    ]
    return [] if not path else sorted(name for name in below if name and "." not in name)


def _full(path: str) -> str:
    return f"mycelia.{path}" if path else "mycelia"


def _is_itself(module: types.ModuleType, name: str) -> bool:
    """Whether a public name means what annotations mean by it."""
    value = getattr(module, name, None)
    return isinstance(value, type) and written(value) == _FROM[name]


@functools.cache
def _own() -> dict[str, tuple[str, bool]]:
    """Public path of every module of ours -> where it lies, whether it is a folder."""
    found = {}
    for file in sorted(ROOT.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        is_folder = parts[-1] == "__init__"
        real = ".".join(parts[:-1] if is_folder else parts)
        for path in {real, names.public(real), *_second_paths(real)}:
            found[path] = (real, is_folder)
    return found


def _second_paths(real: str) -> list[str]:
    """Public paths of a module beside the first."""
    return [
        path + real[len(home) :] for path, home in names.MODULES.items() if f"{real}.".startswith(f"{home}.")
    ]


def _is_module(path: str) -> bool:
    return path in _own() and not path.startswith(("engine", "faces"))


def _readable(path: str) -> str | None:
    """The full path by which stubs and sources have a module of ours; None if there is none."""
    path = path.removeprefix(".")
    if path and path not in _own():
        return None
    return _full(_own()[path][0] if path and _is_hidden(path) else path)


def _is_shown(path: str) -> bool:
    """Whether a module is an attribute of the one above it that scripts use: not every file is."""
    return _own()[path][1] or path in names.MODULES or paths.modules(path) is not None


def _is_hidden(path: str) -> bool:
    return any(part.startswith("_") for part in path.split(".")) or path.split(".")[0] in (
        "names",
        "compat",
        "cli",
    )


def _moved_modules() -> dict[str, str]:
    """Public path -> place of the modules that have a public path and are no private ones."""
    found = {path: real for path, (real, _) in _own().items() if not path.startswith(("engine", "faces"))}
    return {path: real for path, real in found.items() if not _is_hidden(path)}


def public_modules() -> list[str]:
    """The paths whose stubs list every name: packages, and whatever lies in the faces."""
    found = []
    for path, real in _moved_modules().items():
        is_engine = real.startswith("engine.") and path not in names.MODULES
        if real == path:
            listed = _own()[path][1]
        else:
            listed = not is_engine
        if listed and path != "ops.operations":
            found.append(path)
    # A function or class with two public paths is written out in the stub where most people look for it.
    found.sort(key=lambda path: (path.count(".") if path else 9, path not in ("ops", "nn"), path))
    return ["ops.operations", *found]


def generate() -> dict[Path, str]:
    """The text of every stub file."""
    stubs = Stubs()
    whole = public_modules()
    for path in whole:
        stubs.module(path)
    starred = [(path, real) for path, real in _moved_modules().items() if real != path and path not in whole]
    for path, real in starred:
        stubs.stars(path, [_full(real)])
    for path in sorted(
        p for p in paths.KNOWN - _own().keys() if not _is_hidden(p)
    ):  # deep paths of MindSpore
        behind = [p for p in map(_readable, paths.modules(path) or ()) if p is not None]
        stubs.stars(path, behind)
    files = {METHODS: tensor_methods(), STUBS / "py.typed": "partial\n"}
    for path, text in stubs.files.items():
        is_folder = (
            not path
            or path in _own()
            and _own()[path][1]
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
