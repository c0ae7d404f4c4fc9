"""`import mindspore` means mycelia: for scripts run by `mycelia run`, never active otherwise.

`mindspore`, `mindspore.nn`, ... are the mycelia modules of the same path, as the same objects. Other paths of
MindSpore (`mindspore.ops.operations.math_ops`, `mindspore.train.callback._callback`) are fronts: modules that
find names where the table in `paths.py` says that they are. Names of 1.x mean what replaced them.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
from types import ModuleType

from mycelia import public_names as names
from mycelia.faces.compat import paths

_FOREIGN, _OWN = "mindspore", "mycelia"
VERSION = "2.10.0"  # the release of MindSpore whose names and behaviour these are


class _Front(ModuleType):
    """A path of MindSpore that is no module of ours."""

    def __init__(self, path: str, package: str = _FOREIGN) -> None:
        super().__init__(f"{package}.{path}", f"What MindSpore has in {_FOREIGN}.{path}.")
        self.__path__ = []  # below it there may be more
        self._mycelia_path, self._mycelia_package = path, package

    def __getattr__(self, name: str):
        if name == "__all__":
            return [n for n in dir(self) if not n.startswith("_")]
        if name.startswith("__") and name != "__version__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        value = lookup(self._mycelia_path, name, self._mycelia_package)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        found = {name for module in own_modules(self._mycelia_path) for name in _public(module)}
        return sorted(found | {n for n in self.__dict__ if not n.startswith("_mycelia")})


class _Holder(ModuleType):
    """A module of ours that has a function where MindSpore has also a module: the function stays."""

    def __setattr__(self, name: str, value) -> None:
        if not (isinstance(value, _Front) and name in vars(self)):
            super().__setattr__(name, value)


def _public(module: ModuleType) -> list[str]:
    return list(getattr(module, "__all__", ())) or [n for n in dir(module) if not n.startswith("_")]


def _full(module: str) -> str:
    return _OWN if module in ("", ".") else f"{_OWN}.{names.home(module) or module}"


def _exists(module: str) -> bool:
    """Whether this is a module of ours."""
    name = _full(module)
    if name in sys.modules:
        return not isinstance(sys.modules[name], _Front)
    try:
        found = importlib.util.find_spec(name)
        return found is not None and not isinstance(found.loader, names.DeepPaths)
    except (ImportError, AttributeError, ValueError):  # its parent is no package, or is not there
        return False


def own_modules(path: str) -> list[ModuleType]:
    """The modules of ours behind a path, the one of the same path first."""
    behind = ([path] if _exists(path) else []) + [m for m in paths.modules(path) or () if m != path]
    return [importlib.import_module(_full(name)) for name in behind if _exists(name)]


def _attribute(module: ModuleType, name: str):
    """What `module` itself has under this name; AttributeError if nothing."""
    if name in vars(module):
        return vars(module)[name]
    getter = vars(module).get("__getattr__")
    if getter is None:
        raise AttributeError(name)
    return getter(name)


def beyond(path: str, name: str, error: AttributeError):
    """What our module, public as `path`, lacks, from where MindSpore's module of this path has it.

    Errors: `error`, which says that our module lacks it, if it is nowhere.
    """
    pending = vars(_asked).setdefault("names", set())
    if name in pending:  # modules ask one another; what lies beyond is asked already
        raise error
    pending.add(name)
    try:
        return lookup(path, name, _FOREIGN if _is_active() else _OWN)
    except AttributeError as missing:
        error.args = missing.args
        raise error from None
    finally:
        pending.discard(name)


def front(path: str) -> ModuleType | None:
    """What `import mycelia.<path>` gives where MindSpore has such a module and we have no such file."""
    return _Front(path, _OWN) if paths.modules(path) is not None else None


def lookup(path: str, name: str, package: str = _FOREIGN):
    """What MindSpore calls `name` in its module `path`.

    Errors: AttributeError, with the path below `package`, if it is not here.
    """
    below = f"{path}.{name}" if path else name
    hint = ""
    for module in own_modules(path):
        try:
            value = _attribute(module, name)
        except AttributeError as error:
            hint = hint or "".join(str(error).partition("; did you mean")[1:])
            continue
        # `nn.layer.activation` is a front, and holds more than our `nn.activation`.
        if not isinstance(value, ModuleType) or _exists(below) or paths.modules(below) is None:
            return value
    if not name.startswith("__"):
        if paths.modules(below) is not None:
            return importlib.import_module(f"{package}.{below}")
        new = paths.renamed(path, name)
        if new is not None:
            where, colon, target = new.rpartition(":")
            if not colon:
                return lookup(path, target, package)
            return getattr(importlib.import_module(_full(where) if _exists(where) else where), target)
    where = f"{package}.{path}" if path else package
    raise AttributeError(f"module {where!r} has no attribute {name!r}{hint}", name=name)


def _keep_function(above: str, name: str) -> None:
    """The import system puts the new module `name` into the module `above`: not over a function there."""
    holder = sys.modules.get(above)
    if holder is None or isinstance(holder, _Front):
        return
    for module in own_modules(above.partition(".")[2]):
        with contextlib.suppress(AttributeError):
            value = _attribute(module, name)
            if not isinstance(value, ModuleType):
                setattr(holder, name, value)
                if type(holder) is ModuleType:
                    _holders.append(holder)
                    holder.__class__ = _Holder
                return


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `mindspore...`: modules of ours, and fronts."""

    def find_spec(self, fullname: str, path=None, target=None):
        first, _, rest = fullname.partition(".")
        if first != _FOREIGN or not (_exists(rest) or paths.modules(rest) is not None):
            return None  # an ordinary ModuleNotFoundError names the module that the script asked for
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec) -> ModuleType:
        path = spec.name[len(_FOREIGN) + 1 :]
        if not _exists(path):
            _keep_function(*spec.name.rpartition(".")[::2])
            return _Front(path)
        module = importlib.import_module(_full(path))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        if isinstance(module, _Front):
            return
        # The import system has just put the alias' spec on a module that has its own: give it back.
        alias, module.__spec__ = module.__spec__, module.__spec__.loader_state
        assert alias is not module.__spec__


_holders: list[ModuleType] = []
_asked = threading.local()  # .names: what this thread looks for


def _is_active() -> bool:
    """Whether `mindspore` stands for `mycelia` in this process."""
    return any(isinstance(finder, _Alias) for finder in sys.meta_path)


def install() -> None:
    """Let `mindspore` stand for `mycelia` in this process, and NumPy be as MindSpore's users know it."""
    if _is_active():
        return
    from mycelia.faces.compat import distributions, identity, numpy1

    sys.meta_path.insert(0, _Alias())
    distributions.install()
    numpy1.install()
    identity.install()
    sys.modules[_OWN].__version__ = VERSION  # the modules are the same objects, and scripts compare it


def uninstall() -> None:
    """Take the alias away again; modules that were imported under it are forgotten."""
    from mycelia.faces.compat import distributions, identity, numpy1

    distributions.uninstall()
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Alias)]
    for name in [n for n in sys.modules if n == _FOREIGN or n.startswith(_FOREIGN + ".")]:
        del sys.modules[name]
    for module in [m for n, m in list(sys.modules.items()) if n == _OWN or n.startswith(_OWN + ".")]:
        for name, value in list(vars(module).items()):  # the import system hangs fronts there
            if isinstance(value, _Front) and value.__name__.startswith(_FOREIGN):
                del vars(module)[name]
    for holder in _holders:
        holder.__class__ = ModuleType
    _holders.clear()
    numpy1.uninstall()
    identity.uninstall()
    vars(sys.modules[_OWN]).pop("__version__", None)  # asked for again, it is found again


@contextlib.contextmanager
def active():
    """`mindspore` stands for `mycelia` inside of the `with` block, and after it as before."""
    if _is_active():
        yield
        return
    install()
    try:
        yield
    finally:
        uninstall()
