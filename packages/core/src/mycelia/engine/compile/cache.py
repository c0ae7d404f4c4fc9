"""The compiled forms of one function, found by what it is called with.

Types, ranks and Python values select a family, the shapes a member of it. The first shapes of a family are
compiled as they are. When other shapes come, the axes that differ become symbolic and the function is
compiled once more, for all sizes of these axes (`ir/symint.py`); from then on new shapes cost the building of
a program, no capture, differentiation or pass over the graph. An axis whose size the Python code looks at is
fixed again.
"""

from __future__ import annotations

import contextlib
import functools
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mycelia.engine import _C
from mycelia.engine.base import config, log, parallel_settings, plugins
from mycelia.engine.capture import cache_invalidation, unsupported
from mycelia.engine.capture.outside import OutsideChange
from mycelia.engine.capture.trace import UnknownSize, UnknownValue, capture_lock, traces
from mycelia.engine.communication import world
from mycelia.engine.compile import clock, divided, failures
from mycelia.engine.compile.compiled import Compiled
from mycelia.engine.compile.dynamic_shapes import open_axes
from mycelia.engine.compile.frontend import (
    Guard,
    Place,
    Resized,
    Template,
    cell_guards,
    compile_function,
    holds,
    loaded,
    on_disk,
)
from mycelia.engine.compile.options import DEFAULT, Options, options_of
from mycelia.engine.compile.passes import SETTINGS, Asked, choice
from mycelia.engine.compile.signature import Shape, signature
from mycelia.engine.ir.walk import all_nodes

LIMIT = 64  # members and families kept of one function; the least recently used goes
_TEMPLATES = 4  # of one family: code that branches on sizes in more ways than this is compiled for each shape


class _Setting:
    """Settings that select a program, as plain attributes."""

    disabled = bool(config.get("disable_jit"))
    only_compile = bool(config.get("precompile_only"))
    target: Any = None


def _follow(_: object = None) -> None:
    kept = config.get("check_bprop"), config.get("jit_syntax_level"), config.get("max_call_depth")
    _Setting.target = config.get("device_target"), choice(), *kept
    _Setting.only_compile = bool(config.get("precompile_only"))
    _Setting.disabled = bool(config.get("disable_jit"))
    cache_invalidation.changed()


_follow()
for _name in (
    "disable_jit", "precompile_only", "device_target", "check_bprop", "jit_syntax_level", "max_call_depth",
    *SETTINGS,
):  # fmt: skip
    config.on_change(_name, _follow)
world.followers.append(cache_invalidation.changed)
parallel_settings.followers.append(cache_invalidation.changed)


class CacheInfo(NamedTuple):
    """Counts of one compiled function: calls that found a compiled form when all checks were made, captures,
    members made from a capture for other sizes, members loaded from the disk, members kept and their limit.
    """

    hits: int
    captures: int
    resized: int
    loaded: int
    kept: int
    limit: int


def _waits_for_others(run: Callable) -> bool:
    """Whether a call, as `checked` gives it, may wait for another rank that is a thread of this process."""
    here = world.current()
    if here is None or here.communicator.size == 1:
        return False
    compiled = getattr(run, "func", None)
    if not isinstance(compiled, Compiled):
        return True
    graph = (compiled.template.like if isinstance(compiled, Resized) else compiled).graph
    return any(node.op.definition.on_host for _, node in all_nodes(graph))


class _Member(NamedTuple):
    """One shape of a family under guards. `run` None: it runs as Python, for sizes in it depend on data."""

    run: Compiled | None
    guards: list[Guard]


class _Family:
    """Calls that differ in the sizes of their tensors only."""

    __slots__ = ("shapes", "templates", "fixed", "python", "is_python", "objects")

    def __init__(self, shapes: tuple[Shape, ...], objects: list[Any]) -> None:
        self.shapes = shapes  # of the first call
        self.templates: list[tuple[Template, list[Guard]]] = []
        self.fixed: set[Place] = set()  # the Python code looks at these sizes
        self.python: list[list[Guard]] = []  # under these it ran as Python, for want of a graph
        self.is_python = False  # a capture for all sizes had no graph either: none is tried again
        self.objects = objects  # named by identity: they must not make room for others

    def symbolic(self, shapes: Sequence[Shape], declared: Sequence[Place]) -> dict[Place, int]:
        """The axes to leave open, each with a size for the capture: what differs from the first call, and
        what earlier templates or the user left open."""
        found: dict[Place, int] = {}
        open_ = {place for template, _ in self.templates for place in template.places}.union(declared)
        for i, (before, now) in enumerate(zip(self.shapes, shapes)):
            for axis, (m, n) in enumerate(zip(before, now)):
                if (m != n or (i, axis) in open_) and (i, axis) not in self.fixed:
                    # 0 and 1 behave unlike other sizes: broadcasting, means of nothing.
                    found[i, axis] = max(m, n) if n < 2 else n
        for template, _ in self.templates:  # what did not hold will not hold if it is captured alike
            hints = dict(zip(template.places, (size.hint for size in template.table.symbols)))
            small = any(shapes[i][axis] < 2 for i, axis in found)  # the capture is for another size
            if hints == found or (hints.keys() == found.keys() and small):
                return {}
        return found


class Cache:
    """The compiled forms of one function or of a Cell's method."""

    def __init__(self, fn: Callable, name: str, options: Options = DEFAULT, owner: Any = None) -> None:
        self.fn, self.name, self.asked = fn, name, options
        self.owner = None if owner is None else weakref.ref(owner)
        # By `_C.call_key`: what needs no further check.
        self.fast: cache_invalidation.Table = cache_invalidation.Table()
        self.members: OrderedDict[Any, list[_Member]] = OrderedDict()
        self.families: OrderedDict[Any, _Family] = OrderedDict()
        self.hits = self.captures = self.resized = self.loaded = 0
        self.changed_outside = False  # by a capture, which then did not count

    def call(self, args: tuple, kwargs: dict) -> Any:
        """`fn(*args, **kwargs)`, compiled if it was not."""
        tensors: list[Any] = []
        key = None if kwargs else _C.call_key(args, [])
        if traces:  # another thread captures: Parameters have no data meanwhile
            with capture_lock:
                run = self.checked(key, args, kwargs, tensors)
                if not _waits_for_others(run):
                    return run()
            return run()  # that thread may be one of those that it waits for, and capture before it comes
        return self.checked(key, args, kwargs, tensors)()

    def checked(self, key: bytes | None, args: tuple, kwargs: dict, tensors: list[Any]) -> Callable:
        """What makes the call, after all checks."""
        objects: list[Any] = []
        kind, shapes = signature(args, kwargs, tensors, objects)
        run = self.find(kind, shapes, args, kwargs, tensors, objects).run
        if _Setting.only_compile:
            if run is not None:
                run.prepare()
            return lambda: None
        if run is None:
            return functools.partial(self.function(), *args, **kwargs)
        if key is not None and not world.is_thread():
            if not self.fast:
                cache_invalidation.remember(self.fast)
            self.fast[key] = run
        return functools.partial(run, tensors)

    def prepare(self, args: tuple, kwargs: dict) -> None:
        """Compiles for arguments like these, without running."""
        tensors: list[Any] = []
        objects: list[Any] = []
        kind, shapes = signature(args, kwargs, tensors, objects)
        self.find(kind, shapes, args, kwargs, tensors, objects)

    @property
    def options(self) -> Options:
        """Those of `jit`, over those of the Cell, over the setting `jit_config`."""
        owner = None if self.owner is None else self.owner()
        asked = self.asked if owner is None else self.asked.over(options_of(owner._jit_config))
        return asked.over(options_of(config.get("jit_config")))

    def function(self) -> Callable:
        owner = None if self.owner is None else self.owner()
        return self.fn if owner is None else types.MethodType(self.fn, owner)

    def find(
        self,
        kind: Any,
        shapes: tuple[Shape, ...],
        args: tuple,
        kwargs: dict,
        tensors: list[Any],
        objects: list,
    ) -> _Member:
        """The member for this call, made if there is none."""
        plugins.begin(compiling=True)
        own, kind = kind, (_Setting.target, world.version(), divided.key(), kind)
        owner = None if self.owner is None else self.owner()
        declared = [] if owner is None or not owner._inputs else open_axes(owner._inputs, args, kwargs)
        with capture_lock:
            members = self.members.get((kind, shapes), [])
            for member in members:
                if holds(member.guards):
                    self.hits += 1
                    self.members.move_to_end((kind, shapes))
                    return member
            family = self.families.get(kind)
            if family is None:
                family = self.families[kind] = _Family(shapes, self.watched(kind, objects))
            self.families.move_to_end(kind)
            with clock.compiling():
                try:
                    member = self.made(family, shapes, args, kwargs, declared)
                except Exception as error:
                    failures.failed(error)
                    raise
            if kind[2] is not None:  # the compilation may have cut Parameters
                kind = *kind[:2], divided.key(), own
                members = self.members.get((kind, shapes), [])
            if member.run is not None:
                options = self.options
                member.run.asked = Asked(options.accuracy, options.without)
            members.append(member)
            self.members[kind, shapes] = members
            self.members.move_to_end((kind, shapes))
            self.trim()
            self.fast.clear()
            return member

    def made(
        self, family: _Family, shapes: tuple[Shape, ...], args: tuple, kwargs: dict, declared: list[Place]
    ) -> _Member:
        for template, guards in family.templates:
            if holds(guards):
                run = template.instance(shapes)
                if run is not None:
                    self.resized += 1
                    return _Member(run, guards)
        python = next((guards for guards in family.python if holds(guards)), None)
        is_divided = divided.key() is not None  # for each size by itself
        sizes = {} if family.is_python or is_divided else family.symbolic(shapes, declared)
        if sizes and len(family.templates) < _TEMPLATES:
            member = self.resizable(family, shapes, args, kwargs, sizes)
            if member is not None:
                return member
        if family.is_python and python is not None:
            return _Member(None, python)
        member = self.compiled(args, kwargs)
        if member.run is None and python is None:
            family.python.append(member.guards)
        return member

    def resizable(
        self, family: _Family, shapes: tuple[Shape, ...], args: tuple, kwargs: dict, sizes: dict[Place, int]
    ) -> _Member | None:
        """Compiles for all sizes of some axes; None if that is not possible."""
        try:
            template, guards = self.captured(args, kwargs, sizes)
        except Exception as error:  # the usual way shows whether it is the user's error
            log.logger(__name__).info("%s is compiled for each shape: %s", self.name, error)
            family.fixed.update(sizes)
            family.is_python = isinstance(error, (UnknownSize, UnknownValue))
            return None
        specialized = template.specialized()
        family.fixed.update(specialized)
        if len(specialized) < len(sizes):
            family.templates.append((template, guards))
        run = template.instance(shapes)
        return None if run is None else _Member(run, guards)

    def compiled(self, args: tuple, kwargs: dict) -> _Member:
        try:
            return _Member(*self.captured(args, kwargs, None))
        except (UnknownSize, UnknownValue) as error:
            options = self.options
            level = options.syntax_level
            syntax = config.get("jit_syntax_level") if level is None else level
            strict = isinstance(error, UnknownValue) and syntax != config.LAX
            if (
                (strict and unsupported.asked_by_user(error))
                or options.fullgraph
                or divided.key() is not None
                or config.get("fallback") == "error"
            ):
                raise
            log.logger(__name__).info("%s runs as Python instead of as a graph: %s", self.name, error)
            if isinstance(error, OutsideChange) and not self.changed_outside:
                self.changed_outside = True  # something that only the first run sets, perhaps
                return _Member(None, [({}, "holds", True)])
            owner = None if self.owner is None else self.owner()
            return _Member(None, [] if owner is None else cell_guards(owner))

    def captured(self, args: tuple, kwargs: dict, sizes: dict[Place, int] | None) -> tuple[Any, list[Guard]]:
        function = self.function()
        entry = on_disk(function, self.name, args, kwargs) if sizes is None else None
        ready = None if entry is None else loaded(entry)
        self.loaded += ready is not None
        self.captures += ready is None
        with config.context(check=True) if self.options.checked else contextlib.nullcontext():
            found, guards = ready or compile_function(function, self.name, args, kwargs, sizes, entry)
        owner = None if self.owner is None else self.owner()
        return found, guards if owner is None else [*guards, *cell_guards(owner)]

    def trim(self) -> None:
        """Drops what was not used for longest."""
        while len(self.families) > LIMIT:
            self.families.popitem(last=False)
        for _ in range(sum(map(len, self.members.values())) - LIMIT):
            key, members = next(iter(self.members.items()))
            members.pop(0)
            if not members:
                del self.members[key]

    def watched(self, kind: Any, objects: list[Any]) -> list[Any]:
        """Keeps objects that `kind` names by identity; Cells weakly: their compiled forms go with them."""
        kept = []
        for item in objects:
            if hasattr(item, "construct"):
                kept.append(weakref.ref(item, _forget(weakref.ref(self), kind)))
            else:
                kept.append(item)
        return kept

    def forget(self, kind: Any) -> None:
        self.families.pop(kind, None)
        for key in [k for k in self.members if k[0] == kind]:
            del self.members[key]
        self.fast.clear()

    def info(self) -> CacheInfo:
        kept = sum(map(len, self.members.values()))
        return CacheInfo(self.hits, self.captures, self.resized, self.loaded, kept, LIMIT)

    def latest(self) -> Compiled | None:
        """What ran or was compiled last."""
        for members in reversed(self.members.values()):
            if members[-1].run is not None:
                return members[-1].run
        return None


def _forget(cache: weakref.ref, kind: Any) -> Callable[[Any], None]:
    def forget(_: Any) -> None:
        found = cache()
        if found is not None:
            found.forget(kind)

    return forget
