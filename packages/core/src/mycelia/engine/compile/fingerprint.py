"""What a compilation depends on, as a hash that is the same in another process: code, values, tensor types.

The walk starts at a function and its arguments and follows closures, defaults, the globals that code names,
attributes of Cells and of other objects, and classes. Code counts with the whole text of its file. What the
walk does not understand (files, clocks, random numbers of Python, objects of C) ends it: nothing is kept on
disk for such a function.
"""

from __future__ import annotations

import abc
import builtins
import collections
import dis
import enum
import functools
import hashlib
import linecache
import math
import os
import struct
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import dtypes, errors
from mycelia.engine.compile.purity import (
    IMPURE_BUILTINS,
    IMPURE_NUMPY,
    NotKept,
    is_of_module,
    is_ours,
    is_pure,
)
from mycelia.engine.compile.signature import ENTRIES, ITEMS, KINDS, TYPED
from mycelia.engine.ops.control_flow.variable import MutableFloat, MutableInt, VariableList
from mycelia.engine.tensors.tensor import Tensor

_JIT = os.path.join(errors.PACKAGE_ROOT, "engine", "compile", "jit.py")

_UNSAID = frozenset(  # entries of classes that say nothing about what they do
    ("__dict__", "__weakref__", "__doc__", "__annotations__", "__annotate__", "__annotate_func__")
    + ("__annotations_cache__", "__static_attributes__", "__firstlineno__", "__abstractmethods__")
    + ("__slots__", "__match_args__", "__orig_bases__", "__parameters__", "__type_params__")
    + ("__module__", "__qualname__", "_abc_impl")
)
_FORMS = "_compiled"  # attribute of a Cell: what was compiled for it
_SETS = bytes(dis.opmap[name] for name in ("BUILD_SET", "SET_ADD"))
_OF_JIT = frozenset(("function", "cell", "method"))  # what a jitted function closes over, caches aside
_PLAIN = (bool, int, str, bytes, type(None), type(...), type(NotImplemented))


class Walk:
    """One walk; `hexdigest`, and the objects it met, numbered in an order that belongs to the hash.

    `variables`: ids of the Parameters whose data is an input of the graph; the content of all other tensors
    counts.
    """

    def __init__(self, function: Callable, args: tuple, kwargs: dict, variables: Iterable[int]) -> None:
        self.parts: list[Any] = []
        self.variables = frozenset(variables)
        self.numbers: dict[int, int] = {}
        self.objects: list[Any] = []  # keeps them, so that ids stay theirs
        self.modules: set[tuple[int, frozenset[str]]] = set()
        self.files: set[str] = set()
        try:
            self.value(function)
            self.argument(args)
            self.argument(kwargs)
        except RecursionError:
            raise NotKept("objects are nested too deeply") from None
        self.hexdigest = digest(repr(self.parts).encode("utf-8", "surrogatepass")).hex()

    def put(self, *parts: Any) -> None:
        """Adds plain parts; as literals of Python no two sequences look the same."""
        self.parts.extend(parts)

    def met(self, value: Any) -> bool:
        """True for an object that was met before: it counts by its number."""
        number = self.numbers.get(id(value))
        if number is not None:
            self.put("again", number)
            return True
        self.numbers[id(value)] = len(self.objects)
        self.objects.append(value)
        return False

    # -- values

    def argument(self, value: Any) -> None:
        """An argument: what counts of it in `signature`; of objects that count by identity all they hold."""
        kind = type(value)
        counts = KINDS.get(kind)
        if counts == TYPED:
            self.put("variable", value.dtype.name, value.shape)
        elif kind is MutableInt or kind is MutableFloat:
            self.put("variable", kind.__name__)
        elif counts == ITEMS or kind is VariableList or isinstance(value, tuple):
            self.put(kind.__name__, len(value))
            if counts != ITEMS:
                self.kind(kind)
            for item in value:
                self.argument(item)
        elif counts == ENTRIES:
            self.put("dict", len(value))
            for key, item in value.items():
                self.argument(key)
                self.argument(item)
        else:
            self.value(value)

    def value(self, value: Any) -> None:
        """Anything."""
        kind = type(value)
        if kind in _PLAIN:
            self.put(kind.__name__, value)
        elif kind is float:
            self.put("float", struct.pack("<d", value))
        elif kind is complex:
            self.put("complex", struct.pack("<dd", value.real, value.imag))
        elif isinstance(value, dtypes.DType):
            self.put("dtype", value.name)
        elif isinstance(value, np.generic):
            self.put("number", value.dtype.str, value.tobytes())
        elif isinstance(value, np.dtype):
            self.put("numpy dtype", str(value))
        elif kind in (slice, range):
            self.put(kind.__name__)
            for item in (value.start, value.stop, value.step):
                self.value(item)
        elif kind is types.ModuleType:
            raise NotKept(f"the module {value.__name__} is kept in an object")
        elif not self.met(value):
            self.thing(value, kind)

    def thing(self, value: Any, kind: type) -> None:
        """An object with an identity, met for the first time."""
        if isinstance(value, Tensor):
            self.tensor(value)
        elif isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise NotKept("an array of Python objects")
            self.put("array", value.dtype.str, value.shape, digest(value.tobytes()))
        elif isinstance(value, (tuple, list)):
            self.put("sequence", len(value))
            self.kind(kind)
            for item in value:
                self.value(item)
            self.attributes(value)
        elif isinstance(value, dict):
            self.put("mapping", len(value))
            self.kind(kind)
            for key, item in value.items():
                self.value(key)
                self.value(item)
            self.attributes(value)
            if kind is collections.defaultdict:
                self.value(value.default_factory)
        elif kind is types.FunctionType:
            self.function(value)
        elif kind is types.MethodType:
            self.put("method")
            self.value(value.__self__)
            self.value(value.__func__)
        elif kind in (staticmethod, classmethod):
            self.put(kind.__name__)
            self.value(value.__func__)
        elif kind is property:
            self.put("property")
            for part in (value.fget, value.fset, value.fdel):
                self.value(part)
        elif kind is functools.partial:
            self.put("partial")
            for part in (value.func, value.args, value.keywords):
                self.value(part)
        elif isinstance(value, type):
            self.klass(value)
        elif kind is _C.Op:
            self.put("op", value.name)
        elif kind is np.ufunc or (kind is types.BuiltinFunctionType and is_of_module(value)):
            self.builtin(value)
        elif isinstance(value, enum.Enum):
            self.put("enum", value.name)
            self.kind(kind)
        elif isinstance(value, (set, frozenset)):
            if not all(type(item) in (int, str, bool) for item in value):
                raise NotKept("a set of objects")
            self.put("set", kind.__name__, list(value))  # in the order of this process
        else:
            self.instance(value, kind)

    def tensor(self, value: Tensor) -> None:
        if not value._has_value:
            raise NotKept("a tensor without data")
        self.put("tensor", value.dtype.name, value.shape, value._is_parameter)
        self.kind(type(value))
        if id(value) not in self.variables:
            self.put(digest(content(value)))
        self.attributes(value)

    def instance(self, value: Any, kind: type) -> None:
        """An object of a class: the class, and all attributes."""
        slots = [n for k in kind.__mro__ for n, s in vars(k).items() if type(s) is types.MemberDescriptorType]
        if (
            (not slots and not hasattr(value, "__dict__"))
            or kind.__itemsize__
            or kind.__basicsize__ > object.__basicsize__ + 8 * (len(slots) + 2)
            or any(type(vars(k).get("__new__")) is types.BuiltinFunctionType for k in kind.__mro__[:-1])
        ):
            raise NotKept(f"what is in an object of type {kind.__module__}.{kind.__qualname__} is hidden")
        self.put("object")
        self.kind(kind)
        for name in slots:
            if hasattr(value, name):
                self.put(name)
                self.value(getattr(value, name))
        self.attributes(value)

    def attributes(self, value: Any) -> None:
        """What an object has in its dict."""
        state = getattr(value, "__dict__", None)
        if not state:
            return
        self.put("attributes", len(state))
        for name, item in state.items():
            if name != _FORMS or not hasattr(value, "construct"):
                self.put(name)
                self.value(item)

    # -- classes and code

    def kind(self, kind: type) -> None:
        """The class of an object."""
        if not self.met(kind):
            self.klass(kind)

    def klass(self, kind: type) -> None:
        if type(kind) not in (type, abc.ABCMeta, enum.EnumMeta) and not is_pure(type(kind).__module__):
            raise NotKept(f"the class {kind.__qualname__} has a metaclass of its own")
        self.put("class", kind.__module__, kind.__qualname__)
        for base in kind.__mro__:
            if is_pure(base.__module__):
                for name, entry in vars(base).items():  # what others have put into a class of ours
                    if type(entry) is types.FunctionType and not is_ours(entry):
                        self.put(base.__qualname__, name)
                        self.value(entry)
                continue
            self.put(base.__module__, base.__qualname__)
            for name, entry in vars(base).items():
                if name in _UNSAID or type(entry) in (
                    types.MemberDescriptorType,
                    types.GetSetDescriptorType,
                    types.WrapperDescriptorType,
                ):
                    continue
                self.put(name)
                self.value(entry)
        self.put("end of class")

    def function(self, function: types.FunctionType) -> None:
        """A function: its code, what it closes over, its defaults and the globals that it names."""
        code = function.__code__
        module = function.__module__ or ""
        self.put("function", module, function.__qualname__)
        self.value(function.__defaults__)
        self.value(function.__kwdefaults__)
        jitted = code.co_filename == _JIT
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            if jitted and name not in _OF_JIT:
                continue
            try:
                inside = cell.cell_contents
            except ValueError:
                self.put("unset", name)
                continue
            self.put(name)
            self.value(inside)
        if is_ours(function):
            return
        names: set[str] = set()
        self.code(code, function.__globals__, names)
        found = frozenset(names)
        for name in sorted(names):
            if name in function.__globals__:
                self.put(name)
                self.glob(name, function.__globals__[name], found)
            elif name in IMPURE_BUILTINS and hasattr(builtins, name):
                raise NotKept(f"{function.__qualname__} uses {name}")
        for name, value in function.__dict__.items():
            if name != "__wrapped__":
                self.put(name)
                self.value(value)

    def code(self, code: types.CodeType, namespace: dict, names: set[str]) -> None:
        """Code and the code inside it; collects the names it looks up."""
        names.update(code.co_names)
        self.file(code.co_filename, namespace)
        self.put(code.co_name, code.co_filename, code.co_firstlineno, code.co_code, code.co_flags)
        self.put(code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_linetable)
        self.put(code.co_exceptiontable, code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount)
        if {"set", "frozenset"} & set(code.co_names) or any(op in _SETS for op in code.co_code[::2]):
            self.put(hash("order"))  # of strings in a set: another one in most processes
        self.constants(code.co_consts, namespace, names)

    def constants(self, values: Iterable[Any], namespace: dict, names: set[str]) -> None:
        for value in values:
            if isinstance(value, types.CodeType):
                self.code(value, namespace, names)
            elif type(value) is tuple:
                self.put("(", len(value))
                self.constants(value, namespace, names)
            elif type(value) is frozenset:
                self.put("set", list(value))
            else:
                self.value(value)

    def file(self, name: str, namespace: dict) -> None:
        """The text of a file of source code, as a capture would read it."""
        if name not in self.files:
            self.files.add(name)
            linecache.checkcache(name)
            text = "".join(linecache.getlines(name, namespace))
            self.put("file", digest(text.encode("utf-8", "surrogatepass")))

    def glob(self, name: str, value: Any, names: frozenset[str]) -> None:
        """A global that code names."""
        if type(value) is types.ModuleType or isinstance(value, types.ModuleType):
            self.module(value, names)
        else:
            self.value(value)

    def module(self, module: types.ModuleType, names: frozenset[str]) -> None:
        """What code that names `names` may take from a module."""
        if (id(module), names) in self.modules:
            return
        self.modules.add((id(module), names))
        self.put("module", module.__name__)
        root = module.__name__.partition(".")[0]
        if is_pure(module.__name__):
            if root == "numpy" and (names & IMPURE_NUMPY or module.__name__.startswith("numpy.random")):
                raise NotKept("numpy's random numbers, files or unset memory may be used")
            if root not in ("mycelia", "mindspore"):
                return
            for name in sorted(names & vars(module).keys()):
                value = vars(module)[name]
                if isinstance(value, types.ModuleType):
                    if is_pure(value.__name__):
                        self.module(value, names)
                elif type(value) in (*_PLAIN, float, types.FunctionType):
                    self.put(name)
                    self.value(value)
            return
        if root in sys.stdlib_module_names:
            raise NotKept(f"the module {module.__name__} is used")
        if names & {"getattr", "__dict__", "attrgetter"} or hasattr(module, "__getattr__"):
            raise NotKept(f"names of the module {module.__name__} are looked up while it runs")
        for name in sorted(names & vars(module).keys()):
            self.put(name)
            self.glob(name, vars(module)[name], names)

    def builtin(self, value: Any) -> None:
        """A function made in C."""
        name = getattr(value, "__name__", "")
        module = getattr(value, "__module__", None) or "numpy"
        if not is_pure(module.lstrip("_")) or "random" in module or name in IMPURE_BUILTINS | IMPURE_NUMPY:
            raise NotKept(f"{module}.{name} is used")
        self.put("builtin", module, name)


def digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=20).digest()


def content(tensor: Tensor) -> bytes:
    """The elements of a tensor; bfloat16 as float32. Errors: NotKept for types that NumPy has no room for."""
    if tensor.dtype is dtypes.bfloat16:
        tensor = tensor.astype(dtypes.float32)
    array = np.ascontiguousarray(tensor.asnumpy())
    if array.dtype.hasobject or array.size != math.prod(tensor.shape):
        raise NotKept(f"tensors of {tensor.dtype} have no bytes")
    return array.tobytes()


@functools.cache
def tree(directory: str) -> str:
    """A hash of all Python files in a directory and below."""
    found = hashlib.blake2b(digest_size=20)
    for folder, folders, files in os.walk(directory):
        folders.sort()
        for name in sorted(files):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    data = file.read()
                found.update(f"{os.path.relpath(path, directory)}:{len(data)}:".encode())
                found.update(data)
    return found.hexdigest()
