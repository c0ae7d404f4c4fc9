"""Which backends exist, which kernels they bring, and which one an op uses."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from mycelia.engine import _C
from mycelia.engine.backends.base import Backend
from mycelia.engine.backends.reference import ReferenceBackend
from mycelia.engine.base import config, settings
from mycelia.engine.ir.types import TensorType

# Flags of a kernel: it takes 16-bit floats where its dtypes say f32, and computes in float32; it reads them
# as they are.
_NARROW, _READS_SHORT = 2, 4
_NARROW_SHORTS = frozenset(("f16", "bf16"))


@dataclass(frozen=True, slots=True)
class Kernel:
    """One entry of a backend's kernels: native (`capsule` and `index`) or a Python function on arrays."""

    dtypes: tuple[str, ...]
    flags: int
    capsule: object = None
    index: int = -1
    function: Callable | None = None

    @property
    def reads_short(self) -> bool:
        """Whether it reads 16-bit floats as they are, which is most of its work: no copy is made for it."""
        return bool(self.flags & _READS_SHORT)

    def takes(self, shorts: list[str | None]) -> bool:
        """Whether inputs of these dtypes (None: absent) suit."""
        if self.dtypes == ("*",):
            return True
        if len(self.dtypes) == 1:
            return all(s is None or s == self.dtypes[0] for s in shorts)
        return len(self.dtypes) == len(shorts) and all(
            s is None or s == d for s, d in zip(shorts, self.dtypes)
        )


class LoadedBackend:
    """A backend with its kernels by op name.

    Errors: TypeError if the backend lacks what it must have (`Backend.check`).
    """

    def __init__(self, backend: Backend):
        backend.check()
        self.backend = backend
        if backend.own_memory and not backend.device:
            backend.device = _C.add_device(backend.name, backend)
        self.device = backend.device
        self.kernels: dict[str, list[Kernel]] = {}
        self.narrow: dict[str, list[Kernel]] = {}  # those that compute 16-bit floats in float32
        self._add_all(backend.kernels())
        if backend.name != ReferenceBackend.name:  # the oracle stays what it is
            from mycelia.engine.base import plugins

            for extra in plugins.kernels(backend.name):
                self._add_all(extra)

    def _add_all(self, found) -> None:
        if isinstance(found, dict):
            for (op, names), function in found.items():
                self._add(op, Kernel(tuple(names.split(",")), 0, function=function))
        else:
            for index, (op, names, flags) in enumerate(_C.kernels(found)):
                self._add(op, Kernel(tuple(names.split(",")), flags, capsule=found, index=index))

    def _add(self, op: str, kernel: Kernel) -> None:
        # Kernels for any dtypes come last: a special one is always the better choice. Of two alike the later
        # wins.
        entries = (self.narrow if kernel.flags & _NARROW else self.kernels).setdefault(op, [])
        if kernel.dtypes == ("*",):
            entries.append(kernel)
        else:
            entries.insert(0, kernel)

    def kernel(self, op: str, shorts: list[str | None]) -> Kernel | None:
        for kernel in self.kernels.get(op, ()):
            if kernel.takes(shorts):
                return kernel
        if op in self.narrow and not _NARROW_SHORTS.isdisjoint(shorts):
            wide = ["f32" if s in _NARROW_SHORTS else s for s in shorts]
            return next((k for k in self.narrow[op] if k.takes(wide)), None)
        return None


HOST = "cpu"  # the backend of the host's processor, where it is installed; else the reference stands for it

#: (op, backend) -> how often a call had to be resolved by the reference body or another backend.
fallbacks: Counter = Counter()


@functools.cache
def available() -> dict[str, Backend]:
    """All backends by name: the reference, then what plugins bring."""
    found: dict[str, Backend] = {"reference": ReferenceBackend()}
    from mycelia.engine.base import plugins

    for backend in plugins.backends():
        found[backend.name] = backend
    return found


@functools.cache
def load(name: str) -> LoadedBackend:
    """The backend called `name` with its kernels. Raises ValueError naming the ones there are."""
    backends = available()
    if name not in backends:
        extra = f"; install mycelia-backend-{name}" if name in (HOST, "cuda", "ascend-sim") else ""
        raise ValueError(f"no backend is called '{name}': available are {sorted(backends)}{extra}")
    return LoadedBackend(backends[name])


def host() -> LoadedBackend:
    """What runs on the host's processor whatever the target is."""
    return load(HOST if HOST in available() else ReferenceBackend.name)


def device_number(name: str) -> int:
    """The number of the memory of the device called `name`, "CPU" or that of a backend.

    Errors: ValueError if there is none.
    """
    kind, _, number = name.partition(":")
    kind = kind.lower()
    if number not in ("", "0"):
        raise ValueError(f"each kind of device has one, number 0, but got {name!r}")
    if kind not in available():
        kind = config.DEVICE_ALIASES.get(kind, kind)
    return 0 if kind == HOST else load(kind).device


def device_name(number: int) -> str:
    """What users call the device whose memory has this number: "CPU", or a backend's name with ":0"."""
    if number == 0:
        return HOST.upper()
    return next(f"{name}:0" for name, backend in available().items() if backend.device == number)


_target: str | None = None  # chosen when the first op needs it: importing this module loads no plugin


def target() -> LoadedBackend:
    """The backend of the current device target; CPU without mycelia-backend-cpu is the reference."""
    if _target is None:
        set_target(config.get("device_target"))
    return load(_target)


def set_target(name: str) -> None:
    """Choose the backend for all following ops. Raises ValueError when it is not installed."""
    global _target
    name = name.lower()
    if name not in available():
        name = config.DEVICE_ALIASES.get(name, name)
    if name == HOST:
        name = host().backend.name
    backend = load(name).backend
    backend.set_threads(config.get("runtime_num_threads"))
    backend.set_deterministic(config.get("deterministic") == "ON")
    if name != _target:
        _target = name
        _C.clear_plans()


def _follow_target(name: str) -> None:
    if _target is not None:
        set_target(name)


def _follow_threads(count: int) -> None:
    if _target is not None:
        target().backend.set_threads(count)


def _follow_deterministic(value: str) -> None:
    if _target is not None:
        target().backend.set_deterministic(value == "ON")


settings.connect_backends(lambda: list(available()))
config.on_change("device_target", _follow_target)
config.on_change("deterministic", _follow_deterministic)
config.on_change("runtime_num_threads", _follow_threads)


def shorts_of(types: tuple) -> list[str | None]:
    """Short dtype names of flat input types; None for absent inputs."""
    return [t.dtype.short if isinstance(t, TensorType) else None for t in types]
