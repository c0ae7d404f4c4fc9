"""TensorBoard's projector: its configuration, and vectors and labels as tables with tabs between cells."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from mycelia_insight.records.wire import Broken

_TOKEN = re.compile(
    r'\s*(?:#[^\n]*|([A-Za-z_]\w*)|("(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\')|([:{}<>;,])|([-+.\w]+))'
)
_DEEPEST = 20
_PLAIN = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True)
class Config:
    """An embedding of a configuration: its name, and paths as they are written there, "" for none."""

    name: str
    tensor_path: str
    metadata_path: str


def configs(text: str) -> list[Config]:
    """Embeddings of a `projector_config.pbtxt`, of protocol buffers as text.  Errors: Broken."""
    tokens = _tokens(text)
    found, end = _message(tokens, 0, 0)
    if end != len(tokens):
        raise Broken("a bracket is closed that was not opened")
    return [
        Config(*(next((one for one in part.get(name, []) if isinstance(one, str)), "") for name in _FIELDS))
        for part in found.get("embeddings", [])
        if isinstance(part, dict)
    ]


_FIELDS = ("tensor_name", "tensor_path", "metadata_path")


def vectors(text: str) -> np.ndarray:
    """Rows of numbers as float32 [rows, columns].  Errors: Broken."""
    lines = [line for line in text.splitlines() if line.strip()]
    width = len(lines[0].split("\t")) if lines else 0
    try:
        cells = (
            np.array([line.split("\t") for line in lines], dtype=np.float32) if lines else np.empty((0, 0))
        )
    except ValueError as error:
        raise Broken(f"vectors are lines of {width} numbers with tabs between them: {error}") from error
    return cells.reshape(len(lines), width).astype(np.float32)


def labels(text: str, count: int) -> tuple[list[str], list[list[str]]]:
    """Names of columns, and `count` rows; the first line is names if there is one line too many.

    Errors: Broken, if neither fits.
    """
    lines = [line.split("\t") for line in text.split("\n")]
    if lines[-1] == [""]:
        lines.pop()
    lines = [[cell.rstrip("\r") for cell in line] for line in lines]
    if len(lines) == count + 1 and count:
        return _even(lines[0], lines[1:])
    if len(lines) == count:
        width = max((len(line) for line in lines), default=0)
        return _even(["label"] if width == 1 else [f"label {i + 1}" for i in range(width)], lines)
    raise Broken(f"there are {len(lines)} lines of labels for {count} vectors")


def _even(names: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    width = len(names)
    return names, [(row + [""] * width)[:width] for row in rows]


def _tokens(text: str) -> list[tuple[str, str]]:
    """(kind, text) with kinds `name`, `text`, `mark` and `number`."""
    found, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Broken(f"{text[at : at + 20]!r} is not understood")
        at = match.end()
        for kind, part in zip(("name", "text", "mark", "number"), match.groups(), strict=True):
            if part is not None:
                found.append((kind, part))
    return found


def _message(tokens: list[tuple[str, str]], at: int, depth: int) -> tuple[dict[str, list], int]:
    """Fields by name, and where the closing bracket stands."""
    if depth > _DEEPEST:
        raise Broken(f"brackets are deeper than {_DEEPEST}")
    found: dict[str, list] = {}
    while at < len(tokens) and tokens[at][1] not in ("}", ">"):
        kind, name = tokens[at]
        at += 1
        if kind == "mark" and name in ";,":
            continue
        if kind != "name":
            raise Broken(f"a name of a field is expected, got {name!r}")
        if tokens[at : at + 1] == [("mark", ":")]:
            at += 1
        if at >= len(tokens):
            raise Broken(f"{name!r} has no value")
        kind, value = tokens[at]
        if kind == "mark" and value in "{<":
            inner, at = _message(tokens, at + 1, depth + 1)
            if at >= len(tokens):
                raise Broken(f"the bracket of {name!r} is not closed")
            found.setdefault(name, []).append(inner)
        elif kind == "mark":
            raise Broken(f"{name!r} has no value")
        else:
            found.setdefault(name, []).append(_string(value) if kind == "text" else value)
        at += 1
    return found, at


def _string(token: str) -> str:
    return re.sub(r"\\(.)", lambda match: _PLAIN.get(match[1], match[1]), token[1:-1])
