"""Which passes run and which algorithms they may choose: settings, and what one function asks for instead."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

from mycelia.engine.base import config, errors

SETTINGS = (  # of effect on passes
    "passes", "pass_off", "enable_graph_kernel", "graph_kernel_flags", "accuracy", "strict_accuracy",
    "disable_format_transform", "jit_config",
)  # fmt: skip


FOLD = "batch_norm_fold"  # the op, which may be left out like a pass
ALL = "ALL"  # of the setting `pass_off`
AT_O0 = ("lower", "recompute")  # what the level "O0" of `jit` leaves out


class Asked(NamedTuple):
    """What one function asks for in place of the settings: which algorithms may be chosen, "" for the
    setting's, and the passes and stages to leave out, None for those of the setting `jit_config`.
    """

    accuracy: str = ""
    without: frozenset[str] | None = None


NOTHING = Asked()


class _Choice:
    """The settings that change what passes do, as a key for caches: reading it costs an attribute."""

    off: frozenset[str] = frozenset()
    by_level: frozenset[str] = frozenset()  # left out where a function does not ask for another level
    keys: dict[Asked, tuple] = {}


class _Own(threading.local):
    asked = NOTHING


_own = _Own()


def choice() -> tuple:
    """A key that differs where passes would give another result: part of the key of every compiled form."""
    own = _own.asked
    found = _Choice.keys.get(own)
    if found is None:
        off = _Choice.off | (_Choice.by_level if own.without is None else own.without)
        strict = config.get("strict_accuracy")
        found = off, "strict" if strict else own.accuracy or config.get("accuracy")
        _Choice.keys[own] = found
    return found


def accuracy() -> str:
    """Which algorithms may be chosen: "strict", "normal" or "fast", see the setting of this name."""
    return choice()[1]


def asked() -> Asked:
    """What the function that is compiled or run asked for."""
    return _own.asked


@contextlib.contextmanager
def with_asked(own: Asked) -> Iterator[None]:
    """In this block of this thread `own`, the wishes of one function, is what is compiled with. The settings
    `passes` and `strict_accuracy` stand over it.
    """
    before, _own.asked = _own.asked, own
    try:
        yield
    finally:
        _own.asked = before


def without_folding(own: Asked, error: Exception) -> Asked | None:
    """What a function asks for after `error`, if that says that weights cannot be folded; None if not, or if
    none are any more: then the op is the user's own.
    """
    refused = isinstance(error, errors.MyceliaValueError) and error.subject == FOLD
    given_up = own.without is not None and FOLD in own.without
    return _without_folding(own) if refused and not given_up else None


def unfolded() -> AbstractContextManager[None]:
    """In this block no normalization joins weights: for programs whose prologues run in the middle of others,
    where nothing can be taken back.
    """
    return with_asked(_without_folding(_own.asked))


def _without_folding(own: Asked) -> Asked:
    return own._replace(without=(_Choice.by_level if own.without is None else own.without) | {FOLD})


def is_off(name: str) -> bool:
    """Whether settings, or the function that is compiled, switch the pass or stage `name` off."""
    return name in choice()[0]


def _choose(_: object) -> None:
    text = config.get("passes")
    off = {entry[1:].strip() for entry in filter(None, map(str.strip, text.split(",")))}
    named = {name for name in map(str.strip, config.get("pass_off").split(",")) if name}
    off |= {*named - {ALL}, *(AT_O0 if ALL in named else ())}
    flags = config.get("graph_kernel_flags").split()
    if config.is_set("enable_graph_kernel") and not config.get("enable_graph_kernel"):
        off.add("fuse")
    if "--opt_level=0" in flags:
        off.add("fuse")
    if config.get("disable_format_transform"):
        off.add("layout")
    _Choice.off = frozenset(off)
    _Choice.by_level = frozenset(AT_O0 if config.get("jit_config").get("jit_level") == "O0" else ())
    _Choice.keys = {}


for _setting in SETTINGS:
    config.on_change(_setting, _choose)


def switched_off() -> frozenset[str]:
    """The names that the settings `passes` and `pass_off` and their relatives leave out."""
    return _Choice.off
