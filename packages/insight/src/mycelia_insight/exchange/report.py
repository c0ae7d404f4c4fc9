"""A report: chosen runs with the program that draws them, in one file that needs nothing else."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

import numpy as np
import orjson
from starlette.applications import Starlette

from mycelia_insight.exchange.output import Refused
from mycelia_insight.records import images, layers
from mycelia_insight.records.reading import message, spread
from mycelia_insight.records.wire import Broken
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.lineages import columns
from mycelia_insight.runs.run import Points, Run, Tag
from mycelia_insight.service import api
from mycelia_insight.service.api.common import chosen, name_of, number
from mycelia_insight.service.app import PAGES

_MOST_COLUMNS, _FEWEST_COLUMNS = 1000, 20  # of a curve
_POINT = 45  # bytes of a point, about
_POINTS = 4  # of a column: the first, last, least and greatest
_MOST_STEPS = 50  # of a distribution
_MOST_RUNS = 200


@dataclass
class _Budget:
    """Bytes that are left, and what was too large for them."""

    room: int
    left: list[str] = field(default_factory=list)

    def takes(self, data: bytes, what: str) -> bool:
        """Whether there is room for `data`, which is counted; else `what` is noted."""
        if len(data) > self.room:
            self.left.append(what)
            return False
        self.room -= len(data)
        return True


def written(
    library: Library, runs: re.Pattern[str], query: str, tags: re.Pattern[str], title: str, now: float,
    most_bytes: int, most_images: int,
) -> tuple[bytes, int, list[str]]:  # fmt: skip
    """The file, how many runs it has, and what it has no room for.

    runs, query, tags: which ones; now: seconds since 1970; most_bytes: of all values together; most_images:
    of a tag, evenly over its steps.  Errors: Refused if its program has not been built;
    RequestError for a query that is not understood.
    """
    program = _program()
    budget = _Budget(most_bytes)
    found = [one for one in chosen(library, query) if runs.search(name_of(one[0].id))]
    found.sort(key=lambda one: name_of(one[0].id))
    for run, *_ in found[_MOST_RUNS:]:
        budget.left.append(f"{name_of(run.id)}: a report has at most {_MOST_RUNS} runs")
    found = found[:_MOST_RUNS]
    values = [lineage.values() for _, _, lineage, _ in found]
    parts = [
        _Part(library, run, [tag for tag in known if tags.search(tag.name)], budget)
        for run, known, *_ in found
    ]
    curves = sum(tag.kind == Kind.SCALAR for part in parts for tag in part.tags)
    per_curve = most_bytes * 0.6 / max(1, curves) / (_POINT * _POINTS)
    wide = int(min(_MOST_COLUMNS, max(_FEWEST_COLUMNS, per_curve)))
    # What tells most comes first, as long as there is room.
    for part in parts:
        part.add_scalars(wide)
    for part in parts:
        part.add_histograms()
        part.add_texts()
    for part in parts:
        part.add_images(most_images)
    told = {
        "title": title,
        "created": now,
        "columns": [column["name"] for column in columns(values)],
        "left": budget.left,
        "runs": [part.told(own) for part, own in zip(parts, values, strict=True)],
    }
    return (
        _page(title, orjson.dumps(told, option=orjson.OPT_SERIALIZE_NUMPY), program),
        len(found),
        budget.left,
    )


class _Part:
    """A run in the report: what the service would answer when it is asked for its values."""

    def __init__(self, library: Library, run: Run, tags: list[Tag], budget: _Budget):
        self.run, self.tags, self._budget = run, tags, budget
        self.name = name_of(run.id)
        self._app = Starlette(routes=api.routes(library))
        self._answers: dict[str, dict] = {
            kind: {} for kind in ("scalars", "histograms", "media", "images", "layers", "texts")
        }

    def add_scalars(self, wide: int) -> None:
        for tag in self._of(Kind.SCALAR):
            low, high = sorted((tag.first_step, tag.last_step))
            points = self.run.points(tag.name, low=low, high=high, columns=wide)
            if points is None or not len(points.steps):
                continue
            thin = thinned(points, wide)
            self._put("scalars", tag.name, {
                "tag": tag.name, "count": tag.count, "first_time": tag.first_time, "steps": thin.steps,
                "times": thin.times.round(3), "values": [number(float(str(v))) for v in thin.values],
            })  # fmt: skip

    def add_histograms(self) -> None:
        for tag in self._of(Kind.HISTOGRAM):
            answer = self._ask("histograms", tag=tag.name, steps=_MOST_STEPS)
            if isinstance(answer, dict):
                del answer["begin"]  # there are no other steps to be asked for
            self._put("histograms", tag.name, answer)

    def add_texts(self) -> None:
        for tag in self._of(Kind.TEXT):
            answer = self._ask("texts", tag=tag.name, before=-1)
            if isinstance(answer, dict):
                answer["first"] = 0  # there are no earlier ones to be asked for
            self._put("texts", tag.name, answer)

    def add_images(self, most: int) -> None:
        for tag in self._of(Kind.IMAGE) if most else ():
            steps, times, sizes, files, over, samples = [], [], [], {}, {}, 1
            for entry in spread(self.run.entries(Kind.IMAGE, tag.name) or [], max(2, most))[-most:]:
                try:
                    data = message(self.run, entry)
                    found = list(_samples(data, entry.dialect))
                    drawn = _layers(data)
                except (Broken, IndexError) as error:
                    self._budget.left.append(f"{self.name}: {tag.name} at step {entry.step}: {error}")
                    continue
                encoded = list(map(_address, found))
                whole = "".join(encoded).encode() + orjson.dumps(drawn)
                if not self._budget.takes(whole, f"{self.name}: {tag.name} at step {entry.step}"):
                    continue
                steps.append(entry.step)
                times.append(entry.time)
                sizes.append([found[0].width, found[0].height])
                samples = max(samples, len(found))
                files |= {f"{entry.step}/{i}": one for i, one in enumerate(encoded)}
                if drawn["layers"]:
                    over[str(entry.step)] = drawn
            if steps:
                self._answers["media"][tag.name] = {
                    "samples": samples, "steps": steps, "times": times, "sizes": sizes, "layers": bool(over),
                }  # fmt: skip
                self._answers["layers"][tag.name] = over
                self._answers["images"][tag.name] = files

    def told(self, values: dict) -> dict:
        return {
            "name": self.name,
            "step": max((tag.last_step for tag in self._of(Kind.SCALAR)), default=None),
            "updated": max((tag.last_time for tag in self.tags), default=0),
            "values": {name: number(v) if isinstance(v, float) else v for name, v in values.items()},
            **self._answers,
        }

    def _of(self, kind: Kind) -> list[Tag]:
        return [tag for tag in self.tags if tag.kind == kind]

    def _put(self, kind: str, tag: str, answer: dict | str) -> None:
        if isinstance(answer, str):
            self._budget.left.append(f"{self.name}: {tag}: {answer}")
            return
        data = orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)
        if self._budget.takes(data, f"{self.name}: {tag}"):
            self._answers[kind][tag] = orjson.Fragment(data)

    def _ask(self, what: str, **query: str | int) -> dict | str:
        """What the service answers, or why it does not."""
        path = f"/runs/{self.name}/{what}"
        scope = {
            "type": "http", "method": "GET", "path": path, "raw_path": quote(path).encode(), "root_path": "",
            "query_string": urlencode(query).encode(), "headers": [], "http_version": "1.1", "scheme": "http",
            "server": ("localhost", 80), "client": ("localhost", 1),
        }  # fmt: skip
        parts: list[bytes] = []

        async def receive() -> dict:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(told: dict) -> None:
            parts.append(told.get("body", b""))

        asyncio.run(self._app(scope, receive, send))
        answer = orjson.loads(b"".join(parts))
        return str(answer["error"]) if "error" in answer else answer


def thinned(points: Points, wide: int) -> Points:
    """Points of `wide` columns with at most one of each kind that is not finite in a column."""
    low, high = float(points.steps.min()), float(points.steps.max())
    places = (
        ((points.steps - low) * (wide / (high - low))).astype(np.int64) if high > low else points.steps * 0
    )
    kinds = np.select(
        [np.isnan(points.values), points.values == np.inf, points.values == -np.inf], [1, 2, 3], 0
    )
    _, first = np.unique(np.where(kinds, places * 4 + kinds, -1 - np.arange(len(places))), return_index=True)
    first.sort()
    return Points(points.steps[first], points.times[first], points.values[first], points.smoothed[first])


def _samples(data: bytes, dialect) -> Iterator[images.Picture]:
    picture, count = images.decode(data, dialect)
    yield picture
    for sample in range(1, min(count, 16)):
        yield images.decode(data, dialect, sample)[0]


def _layers(data: bytes) -> dict[str, list]:
    """Boxes and masks over an image, and addresses of the masks, "" of layers without one."""
    found = layers.layers(data)
    masks = [_address(images.picture(one.mask)) if one.mask else "" for one in found]
    return {"layers": list(map(layers.told, found)), "masks": masks}


def _address(picture: images.Picture) -> str:
    return f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode()}"


def _program() -> tuple[str, str, str]:
    """Script, style sheet and licences."""
    folder = Path(PAGES) / "report"
    try:
        return tuple((folder / name).read_text() for name in ("report.js", "report.css", "licenses.txt"))  # type: ignore[return-value]
    except FileNotFoundError:
        raise Refused("the pages have not been built: run `python tools/build_pages.py`") from None


def _page(title: str, data: bytes, program: tuple[str, str, str]) -> bytes:
    script, style, licences = program
    for forbidden in ("</script", "<!--"):  # in texts of the script
        script = script.replace(forbidden, f"\\x3c{forbidden[1:]}")
    script = f"\n{script}\n"
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "connect-src data:; base-uri 'none'; form-action 'none'"
    )
    safe = data.replace(b"<", b"\\u003c")
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8" />\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}" />\n'
        '<meta name="referrer" content="no-referrer" />\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1" />\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<div id="app"></div>\n<noscript>This report is drawn by a script that it carries.</noscript>\n'
        f'<script type="text/plain" id="licences">\n{licences.replace("<", "&lt;")}</script>\n'
        '<script type="application/json" id="report-data">'
    )
    return head.encode() + safe + f"</script>\n<script>{script}</script>\n</body>\n</html>\n".encode()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
