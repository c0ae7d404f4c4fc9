"""Who hears of what goes wrong with compiled functions, and of their graphs on the way."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Protocol

from mycelia.engine.base import config, plugins
from mycelia.engine.ir.graph import Graph

#: Compiled functions that exist, see `compiled.Compiled`.
compiled: weakref.WeakSet[Any] = weakref.WeakSet()


class Listener(Protocol):
    """One who hears."""

    def staged(self, stage: str, graph: Graph) -> None:
        """A graph after a stage of its compilation; it goes on changing."""

    def failed(self, error: BaseException, function: Any, tensors: Sequence[Any]) -> None:
        """A run of the compiled `function` raised, with these arguments; None while it was compiled."""


listeners: list[Listener] = []


def staged(stage: str, graph: Graph) -> None:
    """Called after each stage."""
    for listener in listeners:
        listener.staged(stage, graph)


def failed(error: BaseException, function: Any = None, tensors: Sequence[Any] = ()) -> None:
    """Called with an error while it is handled."""
    for listener in tuple(listeners):
        listener.failed(error, function, tensors)


class _Recorder:
    """Its settings, followed from the first change on: `mycelia_begin` finds those that were there before."""

    follows = False

    @classmethod
    def changed(cls, _: object) -> None:
        if cls.follows:
            plugins.manager().hook.mycelia_recorder()


for _name in ("env_config_path", "rdr_enable", "rdr_mode", "rdr_path"):
    config.on_change(_name, _Recorder.changed)
_Recorder.follows = True
