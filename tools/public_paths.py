"""The public paths of modules, the names that they show, and the files that have their statements."""

from __future__ import annotations

import ast
import functools
import importlib
import types
from pathlib import Path

import mycelia as ms
from mycelia import public_names as names
from mycelia.engine import _C
from mycelia.faces.compat import paths

ROOT = Path(ms.__file__).resolve().parent


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
    if own_modules().get(below) == (below, True) and not below.startswith(("engine", "faces")):
        return None  # the stub is in the place of this file
    node = _statements(module).get(value.__name__)
    if node is None or getattr(importlib.import_module(module), value.__name__, None) is not value:
        return None
    if isinstance(value, type):
        return module if isinstance(node, ast.ClassDef) else None
    decorators = {ast.unparse(d).partition("(")[0] for d in node.decorator_list}
    return module if decorators <= _PLAIN_DECORATORS else None


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


def folders_below(path: str) -> list[str]:
    """The names of the folders right below a public path."""
    start = f"{path}." if path else ""
    below = [
        p.removeprefix(start)
        for p, (_, is_folder) in own_modules().items()
        if is_folder and p.startswith(start)
    ]
    return [] if not path else sorted(name for name in below if name and "." not in name)


def full_path(path: str) -> str:
    return f"mycelia.{path}" if path else "mycelia"


@functools.cache
def own_modules() -> dict[str, tuple[str, bool]]:
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


def is_module(path: str) -> bool:
    return path in own_modules() and not path.startswith(("engine", "faces"))


def readable_path(path: str) -> str | None:
    """The full path by which stubs and sources have a module of ours; None if there is none."""
    path = path.removeprefix(".")
    if path and path not in own_modules():
        return None
    return full_path(own_modules()[path][0] if path and is_hidden(path) else path)


def is_shown(path: str) -> bool:
    """Whether a module is an attribute of the one above it that scripts use: not every file is."""
    return own_modules()[path][1] or path in names.MODULES or paths.modules(path) is not None


def is_hidden(path: str) -> bool:
    return any(part.startswith("_") for part in path.split(".")) or path.split(".")[0] in (
        "names",
        "compat",
        "cli",
    )


def moved_modules() -> dict[str, str]:
    """Public path -> place of the modules that have a public path and are no private ones."""
    found = {
        path: real for path, (real, _) in own_modules().items() if not path.startswith(("engine", "faces"))
    }
    return {path: real for path, real in found.items() if not is_hidden(path)}


def public_modules() -> list[str]:
    """The paths whose stubs list every name: packages, and whatever lies in the faces."""
    found = []
    for path, real in moved_modules().items():
        is_engine = real.startswith("engine.") and path not in names.MODULES
        if real == path:
            listed = own_modules()[path][1]
        else:
            listed = not is_engine
        if listed and path != "ops.operations":
            found.append(path)
    # A function or class with two public paths is written out in the stub where most people look for it.
    found.sort(key=lambda path: (path.count(".") if path else 9, path not in ("ops", "nn"), path))
    return ["ops.operations", *found]
