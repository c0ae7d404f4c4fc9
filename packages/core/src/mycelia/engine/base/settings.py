"""The value in force of each setting of the table (`settings_table`), and who is told when it changes.

A value comes from `set_context` (or a `context(...)` block), else from the environment, else from the
default. The environment is read when a setting is first asked for. Settings of logging are read by `log`,
from the same table. What users call is in `config`.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator

from mycelia.engine.base import errors
from mycelia.engine.base.settings_table import _MISSING, SETTINGS, Setting, _bool, _links

_waiting: list[tuple[Setting, object]] = []  # set before there was anyone to tell


def connect(backend_names: Callable[[], list[str]], unfollowed: Callable[[Setting, object], None]) -> None:
    """Called by `config`, which knows plugins and may log: the names of the backends that plugins bring, and
    who is told of a setting that nothing follows, and of its value.
    """
    _links.backend_names, _links.unfollowed = backend_names, unfollowed
    for setting, value in _waiting:
        unfollowed(setting, value)
    _waiting.clear()


def connect_backends(names: Callable[[], list[str]]) -> None:
    """The names of backends are what `names` gives: plugins bring them, others are added by hand."""
    _links.backend_names = names


def _type_names(types: tuple[type, ...]) -> str:
    return " or ".join(t.__name__ for t in types)


_values: dict[str, object] = {}  # set in Python
_from_env: dict[str, object] = {}  # read from the environment, once
_watchers: dict[str, list[Callable[[object], None]]] = {}
_lock = threading.RLock()


def get(key: str):
    """The value in force of any setting in the table.  Errors: KeyError for a name that is none."""
    try:
        return _values[key]
    except KeyError:
        pass
    try:
        return _from_env[key]
    except KeyError:
        return _read_env(SETTINGS[key])


def is_set(key: str) -> bool:
    """Whether the value of a setting comes from Python or the environment, not from the table."""
    return key in _values or any(name in os.environ for name in SETTINGS[key].env)


def set_value(key: str, value) -> None:
    """Set one setting, checked; those who watch it are told before it is in force for everyone else.

    Errors: KeyError for a name that is none, TypeError or ValueError for a value that does not fit it, and
    what a watcher raises: then the setting is what it was.
    """
    setting = SETTINGS[key]
    value = checked(setting, value)
    with _lock:
        before = _values.get(key, _MISSING)
        _values[key] = value
        try:
            for watcher in _watchers.get(key, ()):
                watcher(value)
        except BaseException:
            _restore(key, before)
            raise
    _note(setting, value)


def _note(setting: Setting, value) -> None:
    """Tell of a setting that nothing follows; its default asks for nothing."""
    if setting.missing and value != setting.default:
        if _links.unfollowed is None:
            _waiting.append((setting, value))
        else:
            _links.unfollowed(setting, value)


def reset(*keys: str) -> None:
    """Forget what was set in Python and what was read from the environment, for these keys or for all."""
    with _lock:
        for key in keys or tuple(SETTINGS):
            _from_env.pop(key, None)
            _restore(key, _MISSING)


def read_again(*keys: str) -> None:
    """Forget what the environment said about these settings, not what was set in Python."""
    with _lock:
        for key in keys:
            _from_env.pop(key, None)


def on_change(key: str, watcher: Callable[[object], None]) -> None:
    """Call `watcher(value)` now and whenever this setting changes: for parts that keep a copy for speed."""
    with _lock:
        _watchers.setdefault(key, []).append(watcher)
        watcher(get(key))


def _restore(key: str, before) -> None:
    if before is not _MISSING:
        _values[key] = before
    elif _values.pop(key, _MISSING) is _MISSING:
        return
    for watcher in _watchers.get(key, ()):
        watcher(get(key))


def checked(setting: Setting, value):
    # bool is an int in Python, but mode=True is a mistake, and so is a flag of 1
    fits = isinstance(value, setting.types) and (bool in setting.types or not isinstance(value, bool))
    if not fits and not (value is None and setting.default is None):
        got = f"{type(value).__name__} {value!r}"
        expected = _type_names(setting.types)
        raise errors.type_error(
            "set_context", f"the argument '{setting.key}' must be {expected}, but got {got}"
        )
    if setting.key == "mode" and value not in setting.choices:
        raise errors.value_error(
            "set_context",
            f"the argument 'mode' should be GRAPH_MODE (0) or PYNATIVE_MODE (1), but got {value}",
        )
    if setting.choices and value not in setting.choices:
        raise errors.one_of(
            value, setting.choices, subject="set_context", what=f"the argument '{setting.key}'"
        )
    return setting.check(value) if setting.check else value


def _read_env(setting: Setting):
    value = setting.default
    for name in setting.env:
        text = os.environ.get(name)
        if text is None:
            continue
        try:
            found = _parsed(setting, text)
            if found is _MISSING:
                continue
            # The device target is checked where it is used: plugins load then, not when a setting is read.
            value = found if setting.key == "device_target" else checked(setting, found)
            break
        except ValueError as cause:
            message = getattr(cause, "message", "") or f"expected {_type_names(setting.types)}"
            about = f"environment variable {name}"
            raise errors.value_error(about, f"{text!r} does not fit: {message}") from None
    _from_env[setting.key] = value
    _note(setting, value)
    return value


def _parsed(setting: Setting, text: str):
    if setting.parse:
        return setting.parse(text)
    if setting.types == (bool,):
        return _bool(text)
    if int in setting.types:
        return int(text)
    return text


def unknown(function: str, key: object) -> errors.MyceliaValueError:
    import difflib

    keys = [s.key for s in SETTINGS.values() if s.in_context]
    near = difflib.get_close_matches(str(key), keys, n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "`mycelia env` lists all settings"
    return errors.MyceliaValueError(
        f"the keyword argument {key!r} is not recognized",
        subject=function,
        hint=hint,
        place=errors.user_place(3),
    )


@contextlib.contextmanager
def context(**kwargs) -> Iterator[None]:
    """Settings for the length of a `with` block: `with ms.config.context(fallback="error"): ...`.

    They hold for all threads.  Errors: ValueError for an unknown key or value, TypeError for a wrong type.
    """
    for key in kwargs:
        if key not in SETTINGS:
            raise unknown("context", key)
    before = {key: _values.get(key, _MISSING) for key in kwargs}
    try:
        for key, value in kwargs.items():
            set_value(key, value)
        yield
    finally:
        with _lock:
            for key, value in before.items():
                _restore(key, value)
