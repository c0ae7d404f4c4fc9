"""Pages that other distributions bring, by the hook `mycelia_dashboards`; docs/hooks.md says how."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.routing import BaseRoute

from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Points, Run

_log = logging.getLogger(__name__)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
MODULE = "page.js"


@dataclass(frozen=True)
class Dashboard:
    """A page in the head of all pages.

    name: of its address, small letters, digits, `-` and `_`; title: one, or `{"en": ..., "zh": ...}`; files:
    a folder with `page.js`, a module that exports `mount(host, context)`, and what that loads; routes:
    Starlette's, below `api/` beside it. Errors: ValueError for another name or a folder without the module;
    TypeError.
    """

    name: str
    title: Mapping[str, str] | str
    files: str | Path
    routes: Sequence[BaseRoute] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ValueError(f"a dashboard's name must be [a-z0-9_-], but got {self.name!r:.80}")
        if not isinstance(self.title, (str, Mapping)) or not self.title:
            raise TypeError(f"the title of dashboard {self.name!r} must be a text or texts by language")
        if not Path(self.files, MODULE).is_file():
            raise ValueError(f"dashboard {self.name!r} has no {MODULE} in {self.files}")

    def title_in(self, language: str) -> str:
        """The title in a language, or in the first that there is."""
        if isinstance(self.title, str):
            return self.title
        return str(self.title.get(language) or next(iter(self.title.values())))


class Insight:
    """What a dashboard may ask of the service."""

    def __init__(self, library: Library):
        self._library = library

    def runs(self) -> list[str]:
        """Paths of all runs below the base folder, `./` for that itself."""
        return [run.id for run in self._library.runs()]

    def scalars(self, run: str) -> list[str]:
        """Names of a run's scalars.  Errors: KeyError if there is no such run."""
        return [tag.name for tag in self._run(run).tags() if tag.kind == Kind.SCALAR]

    def points(self, run: str, tag: str, columns: int = 0) -> Points:
        """Points of a scalar; with `columns` those that a drawing of so many needs.

        Errors: KeyError if there is no such run or scalar.
        """
        one = self._run(run)
        known = next((t for t in one.tags() if t.kind == Kind.SCALAR and t.name == tag), None)
        low, high = sorted((known.first_step, known.last_step)) if known else (0, 0)
        found = one.points(tag, low=low, high=high, columns=columns) if columns else one.points(tag)
        if found is None:
            raise KeyError(f"run {run!r} has no scalar {tag!r}")
        return found

    def _run(self, id: str) -> Run:
        found = self._library.get(id)
        if found is None:
            raise KeyError(f"there is no run {id!r}")
        return found


def find(library: Library) -> list[Dashboard]:
    """Dashboards of all plugins; a second one of a name, and what is none, is left out with a warning."""
    from mycelia import plugins

    found: dict[str, Dashboard] = {}
    for one in plugins.dashboards(Insight(library)):
        if not isinstance(one, Dashboard) or one.name in found:
            _log.warning("a dashboard is left out: %r is no Dashboard, or the second one of its name", one)
        else:
            found[one.name] = one
    return list(found.values())
