"""What makes two pipelines the same: their operators with parameters, and the files that they read.

Sampler, shard, shuffle, workers and queue sizes do not count. Python functions count by name, module, code
and what they close over; the globals that they read do not.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import os
import types
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Arguments of nodes that change which rows are read, when and by whom, but not what is in them.
_NOT_COUNTED = frozenset(
    {
        "self", "source", "cache", "sampler", "num_samples", "shuffle", "shuffle_mode", "num_shards",
        "shard_id", "num_parallel_workers", "python_multiprocessing", "max_rowsize", "callbacks", "offload",
        "children", "parent", "datasets",
    }
)  # fmt: skip
_NO_CONTENT = ("numpy.random._generator", "random", "_thread")  # modules of such objects
_MISSING = object()
_DEEPEST = 12


@dataclass(frozen=True)
class Identity:
    """`crc`, `digest`: of the operators and their files; `tree`: of the operators; `text`: to be read."""

    crc: int
    digest: bytes
    tree: bytes
    text: str


def identify(node, *, check_content: bool = False) -> Identity:
    """The identity of a node and all below it."""
    words = _Words(check_content)
    words.node(node)
    tree = "\n".join(words.lines).encode()
    both = tree + b"\n\n" + "\n".join(words.files).encode()
    names = " <- ".join(type(n).__name__.removesuffix("Dataset") for n in node.walk())
    digest = hashlib.blake2b(both, digest_size=16).digest()
    return Identity(zlib.crc32(both), digest, hashlib.blake2b(tree, digest_size=16).digest(), names)


class _Words:
    """Collects lines about operators, and lines about files."""

    def __init__(self, check_content: bool):
        self._check_content = check_content
        self.lines: list[str] = []
        self.files: list[str] = []
        self._seen: set[int] = set()

    def node(self, node) -> None:
        """A node and all below it."""
        self.lines.append(f"{type(node).__module__}.{type(node).__qualname__}")
        if hasattr(node, "source") and not node.children:  # a Python source names itself, see placement.check
            self.lines.append(f"  key={self._value(getattr(node.source, 'cache_key', None))}")
        names = getattr(node, "_columns", None)
        if names:
            self.lines.append(f"  columns={names}")
        for name, value in sorted(_arguments(node, _NOT_COUNTED).items()):
            self.lines.append(f"  {name}={self._value(value)}")
            self._look_for_files(value)
        for child in node.children:
            self.node(child)

    # ---- files -------------------------------------------------------------------------------------------

    def _look_for_files(self, value) -> None:
        if isinstance(value, (list, tuple)):
            for item in value:
                self._look_for_files(item)
        elif isinstance(value, (str, os.PathLike)) and len(str(value)) < 4096 and os.path.exists(value):
            self._file_or_directory(Path(value))

    def _file_or_directory(self, path: Path) -> None:
        if path.is_dir():
            stack, found = [str(path)], []
            while stack:
                with os.scandir(stack.pop()) as entries:
                    for entry in entries:
                        if entry.is_dir():
                            stack.append(entry.path)
                        elif entry.is_file():
                            found.append((entry.path, entry.stat()))
            for name, status in sorted(found):
                self._file(name, status)
            return
        # Parts of one record set are named by a number at the end, and naming one of them reads all.
        stem = path.name.rstrip("0123456789")
        parts = sorted(path.parent.glob(f"{_escaped(stem)}*")) if stem != path.name else [path]
        for part in parts:
            if part.is_file():
                self._file(str(part), part.stat())

    def _file(self, name: str, status: os.stat_result) -> None:
        line = f"{name} {status.st_size} {status.st_mtime_ns}"
        if self._check_content:
            with open(name, "rb") as file:
                content = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
            line = f"{name} {status.st_size} {content}"
        self.files.append(line)

    # ---- values ------------------------------------------------------------------------------------------

    def _value(self, value, depth: int = 0) -> str:
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            return repr(value)
        if isinstance(value, enum.Enum):
            return f"{type(value).__qualname__}.{value.name}"
        if isinstance(value, os.PathLike):
            return repr(os.path.abspath(value))
        if isinstance(value, np.ndarray):
            content = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
            return f"array({value.dtype.str}, {value.shape}, {content})"
        if isinstance(value, np.generic):
            return f"{value.dtype.str}({value!r})"
        if depth > _DEEPEST or id(value) in self._seen:
            return "..."
        self._seen.add(id(value))
        try:
            return self._compound(value, depth + 1)
        finally:
            self._seen.discard(id(value))

    def _compound(self, value, depth: int) -> str:
        if isinstance(value, (list, tuple)):
            return f"{type(value).__name__}({', '.join(self._value(v, depth) for v in value)})"
        if isinstance(value, (set, frozenset)):
            return f"set({', '.join(sorted(self._value(v, depth) for v in value))})"
        if isinstance(value, dict):
            items = (f"{self._value(k, depth)}: {self._value(v, depth)}" for k, v in value.items())
            return "{" + ", ".join(items) + "}"
        if isinstance(value, functools.partial):
            parts = (value.func, value.args, dict(sorted(value.keywords.items())))
            return f"partial({', '.join(self._value(p, depth) for p in parts)})"
        if isinstance(value, types.MethodType):
            return f"{self._value(value.__func__, depth)} of {self._value(value.__self__, depth)}"
        if isinstance(value, types.FunctionType):
            return self._function(value, depth)
        if isinstance(value, (type, types.BuiltinFunctionType, np.ufunc, types.ModuleType)):
            return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
        if isinstance(value, np.dtype):
            return value.str
        return self._object(value, depth)

    def _function(self, function, depth: int) -> str:
        cells = []
        for cell in function.__closure__ or ():
            try:
                cells.append(self._value(cell.cell_contents, depth))
            except ValueError:  # not bound yet
                cells.append("...")
        parts = [
            function.__module__ or "", function.__qualname__, _code(function.__code__),
            self._value(function.__defaults__, depth), self._value(function.__kwdefaults__, depth), *cells,
        ]  # fmt: skip
        return f"function({', '.join(parts)})"

    def _object(self, value, depth: int) -> str:
        kind = type(value)
        own = kind.__module__.partition(".")[0] == "mycelia"
        fields = _arguments(value, frozenset())
        items = (f"{name}={self._value(v, depth)}" for name, v in sorted(fields.items()))
        return f"{kind.__module__}.{kind.__qualname__}{'' if own else _methods(kind)}({', '.join(items)})"


def _state(value) -> dict:
    """All attributes of an object that are no random numbers, which are drawn from as time goes on."""
    fields = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                fields[name] = getattr(value, name)
    return {
        name: v for name, v in fields.items()
        if not name.startswith("__") and type(v).__module__ not in _NO_CONTENT
    }  # fmt: skip


def _arguments(value, left_out: frozenset) -> dict:
    """What an object of ours was made with: attributes named like the arguments of its constructor.

    What it gathers as it is used does not count. Where an argument is kept under another name, all attributes
    do, or all public ones of a node.
    """
    state = _state(value)
    found, complete = {}, True
    for name, parameter in inspect.signature(type(value).__init__).parameters.items():
        if name in left_out or name == "self":
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            complete = complete and parameter.kind == parameter.VAR_KEYWORD
            continue
        kept = state.get(name, state.get(f"_{name}", _MISSING))
        if kept is _MISSING:
            complete = False
        else:
            found[name] = kept
    if complete:
        return found
    is_node = "children" in left_out
    return {
        name: v for name, v in state.items()
        if name not in left_out and not (is_node and name.startswith("_"))
    } | found  # fmt: skip


def _methods(kind: type) -> str:
    """A hash of what the methods of a class of the user's do."""
    functions = [
        f"{name}{_code(f.__code__)}"
        for base in kind.__mro__
        for name, f in vars(base).items()
        if isinstance(f, types.FunctionType)
    ]
    text = "".join(sorted(functions))
    return f"<{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}>"


def _code(code: types.CodeType) -> str:
    """A hash of what a function does; line numbers and file names do not count."""
    parts = [code.co_code, repr(code.co_names).encode(), repr(code.co_varnames).encode()]
    for constant in code.co_consts:
        nested = isinstance(constant, types.CodeType)
        parts.append(_code(constant).encode() if nested else repr(constant).encode())
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).hexdigest()


def _escaped(text: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)
