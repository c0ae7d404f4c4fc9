"""The plugin manager: made at the first hook call, from core's own plugin module and entry
points of group `mycelia`.

MYCELIA_PLUGINS=a,b loads only these, MYCELIA_TRACE_PLUGINS=1 prints calls and results,
MYCELIA_STRICT_PLUGINS=1 turns a plugin that cannot be loaded into an error; otherwise it is reported once,
with its distribution, and skipped.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelia.engine.base import errors, settings

if TYPE_CHECKING:
    import pluggy

GROUP = "mycelia"
CLI_GROUP = "mycelia.cli"
BUILTIN = "mycelia.builtin"  # core's own implementations


@dataclass(frozen=True, slots=True)
class Found:
    """A plugin that was found: `error` is empty if it is loaded, `hooks` names what it implements."""

    name: str
    distribution: str
    version: str
    hooks: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Distribution:
    name: str
    version: str


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """What a distribution offers under a name: a module, or `module:attribute`."""

    name: str
    value: str
    dist: Distribution | None

    def load(self) -> object:
        module, _, attribute = self.value.partition(":")
        found: object = importlib.import_module(module.strip())
        for part in filter(None, attribute.split("[")[0].strip().split(".")):
            found = getattr(found, part)
        return found


def entry_points(group: str = GROUP) -> list[EntryPoint]:
    """Entry points of a group, ordered by name; the first of two with one name wins, as on sys.path."""
    unique: dict[str, EntryPoint] = {}
    for folder in _distribution_folders():
        try:
            with open(os.path.join(folder, "entry_points.txt"), encoding="utf-8") as file:
                text = file.read()
        except OSError:
            continue
        if f"[{group}]" in text:
            dist = _distribution(folder)
            for name, value in _section(text, group):
                unique.setdefault(name, EntryPoint(name, value, dist))
    return [unique[name] for name in sorted(unique)]


def _distribution_folders() -> Iterator[str]:
    """Folders of metadata on sys.path; importlib.metadata takes ten times as long, most of it its import."""
    for place in dict.fromkeys(sys.path):
        try:
            names = os.listdir(place or os.curdir)
        except OSError:  # an archive, or nothing
            continue
        for name in sorted(names):
            if name.endswith((".dist-info", ".egg-info")):
                yield os.path.join(place, name)


def _distribution(folder: str) -> Distribution | None:
    for file_name in ("METADATA", "PKG-INFO"):
        try:
            with open(os.path.join(folder, file_name), encoding="utf-8", errors="replace") as file:
                head = file.read().partition("\n\n")[0]
        except OSError:
            continue
        fields = dict(line.partition(": ")[::2] for line in head.splitlines())
        return Distribution(fields.get("Name", ""), fields.get("Version", ""))
    return None


def _section(text: str, group: str) -> Iterator[tuple[str, str]]:
    """The (name, value) pairs under `[group]`."""
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


@functools.cache
def _load() -> tuple[pluggy.PluginManager, tuple[Found, ...]]:
    import pluggy

    from mycelia.engine.base import hookspecs

    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    if settings.get("trace_plugins"):
        _trace(manager)
    manager.register(importlib.import_module(BUILTIN), "core")
    found = [_describe(manager, "core", "mycelia-core", _version("mycelia-core"))]
    wanted = settings.get("plugins")
    points = entry_points()
    if wanted is not None:
        _warn_unknown(wanted, points)
        points = [p for p in points if p.name in wanted]
    for point in points:
        distribution = point.dist.name if point.dist else point.value
        version = point.dist.version if point.dist else ""
        try:
            plugin = point.load()
            _check_api(plugin, point.name)
            manager.register(plugin, point.name)
            manager.check_pending()
            found.append(_describe(manager, point.name, distribution, version))
        except Exception as cause:
            if manager.has_plugin(point.name):
                manager.unregister(name=point.name)
            reason = f"{type(cause).__name__}: {cause}"
            _skip(f"plugin {point.name!r} of distribution {distribution} cannot be loaded: {reason}", cause)
            found.append(Found(point.name, distribution, version, error=reason))
    return manager, tuple(found)


def manager() -> pluggy.PluginManager:
    """The plugin manager; `manager().hook.mycelia_backends()` calls a hook."""
    return _load()[0]


def found() -> tuple[Found, ...]:
    """All plugins that were looked at, loaded or not."""
    return _load()[1]


def _ask_each(hook: str, what: str, take: Callable[[object], None], **arguments: object) -> None:
    """Hand each plugin's answer to `take`; one that fails on the way is reported as `what` and skipped."""
    names = [impl.plugin_name for impl in getattr(manager().hook, hook).get_hookimpls()]
    for name in reversed(names):  # pluggy lists the last registered first
        others = [manager().get_plugin(n) for n in names if n != name]
        try:
            for answer in manager().subset_hook_caller(hook, others)(**arguments):
                take(answer)
        except Exception as cause:
            reason = f"{type(cause).__name__}: {cause}"
            _skip(f"{what} of distribution {distribution_of(name)} cannot be loaded: {reason}", cause)


@functools.cache
def backends() -> tuple:
    """The `Backend` objects of all plugins."""
    found: list = []
    _ask_each("mycelia_backends", "the backend", found.extend)
    return tuple(found)


@functools.cache
def load_ops() -> None:
    """Import the modules in which plugins define ops: what is looked for by name may be there."""

    def load(modules) -> None:
        for module in modules:
            if isinstance(module, str):
                importlib.import_module(module)

    _ask_each("mycelia_ops", "an op module", load)


_begun = {False: False, True: False}


def begin(compiling: bool) -> None:
    """Tells plugins, once each, that the first eager operator runs, or that the first function is compiled.

    Errors: what they raise about their settings; then the next call asks them again.
    """
    if _begun[compiling]:
        return
    _begun[compiling] = True
    try:
        manager().hook.mycelia_begin(compiling=compiling)
    except BaseException:
        _begun[compiling] = False
        raise


def kernels(backend_name: str) -> list:
    """What plugins add to a backend: dicts or kernel tables, as `Backend.kernels` gives them."""
    found: list = []
    _ask_each("mycelia_kernels", f"kernels for {backend_name}", found.append, backend_name=backend_name)
    return [table for table in found if table is not None]


def dashboards(app: object) -> list:
    """The dashboards that plugins bring for Insight; `app` is what they may ask of it."""
    found: list = []
    _ask_each("mycelia_dashboards", "a dashboard", found.extend, app=app)
    return found


def distribution_of(plugin_name: str) -> str:
    """The distribution that a plugin came with, for messages."""
    return next((p.distribution for p in found() if p.name == plugin_name), plugin_name)


def _skip(message: str, cause: Exception) -> None:
    """Report a plugin that is left out, or raise when strict."""
    if settings.get("strict_plugins"):
        raise errors.error(errors.PluginError, message) from cause
    from mycelia.engine.base import log

    log.logger(__name__).warning("%s; it is skipped (MYCELIA_STRICT_PLUGINS=1 raises)", message)


def _check_api(plugin: object, name: str) -> None:
    from mycelia.engine.base.hookspecs import HOOK_API

    declared = getattr(plugin, "HOOK_API", HOOK_API)
    if declared != HOOK_API:
        older = "plugin" if declared < HOOK_API else "mycelia-core"
        raise errors.PluginError(
            f"it is written for HOOK_API {declared}, mycelia-core has {HOOK_API}: update the {older}",
            subject=name,
        )


def _describe(manager: pluggy.PluginManager, name: str, distribution: str, version: str) -> Found:
    callers = manager.get_hookcallers(manager.get_plugin(name)) or []
    return Found(name, distribution, version, tuple(sorted(c.name for c in callers)))


def _version(distribution: str) -> str:
    start = distribution.replace("-", "_") + "-"
    for folder in _distribution_folders():
        found = _distribution(folder) if os.path.basename(folder).startswith(start) else None
        if found is not None and found.name == distribution:
            return found.version
    return ""  # run from a source tree that is not installed


def _warn_unknown(wanted: tuple[str, ...], points: list[EntryPoint]) -> None:
    installed = [p.name for p in points]
    for name in wanted:
        if name not in installed:
            from mycelia.engine.base import log

            log.logger(__name__).warning(
                "MYCELIA_PLUGINS names %r, which is not installed; installed are: %s",
                name,
                ", ".join(installed) or "none",
            )


def _trace(manager: pluggy.PluginManager) -> None:
    def before(hook_name, hook_impls, arguments):
        plugins = ", ".join(impl.plugin_name for impl in hook_impls) or "nobody"
        given = ", ".join(f"{name}={_short(value)}" for name, value in arguments.items())
        print(f"mycelia: hook {hook_name}({given}) asks {plugins}", file=sys.stderr)

    def after(outcome, hook_name, hook_impls, arguments):
        if outcome.exception is not None:
            print(f"mycelia: hook {hook_name} raised {outcome.exception!r}", file=sys.stderr)
        else:
            print(f"mycelia: hook {hook_name} -> {_short(outcome.get_result())}", file=sys.stderr)

    manager.add_hookcall_monitoring(before, after)


def _short(value: object, limit: int = 200) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "..."
