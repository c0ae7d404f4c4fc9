"""Configuration files: `[section]`, `key=value`, and lines that begin with `#` as comments.

One reader for the converter and the runtime; what the sections and keys mean is theirs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field


class IniError(ValueError):
    """A configuration file that cannot be read; the message has the file, the line and the reason."""


@dataclass(slots=True)
class Section:
    """A section as it stands in the file. `place`: file and line, for messages."""

    name: str
    place: str
    values: dict[str, str] = field(default_factory=dict)


def read(path: str | os.PathLike) -> list[Section]:
    """The sections of a file in their order; the same one may come more than once.

    Errors: IniError for what is no section, key or comment, a key before the first section, a key that comes
    twice in a section; OSError.
    """
    with open(path, encoding="utf-8-sig") as file:
        try:
            lines = file.read().splitlines()
        except UnicodeDecodeError as error:
            raise IniError(f"{os.fspath(path)}: it is no text in UTF-8: {error}") from error
    sections: list[Section] = []
    for number, line in enumerate(map(str.strip, lines), 1):
        place = f"{os.fspath(path)}:{number}"
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            if not line.endswith("]") or not line[1:-1].strip():
                raise IniError(f"{place}: expected a section like [name], but got {line!r}")
            sections.append(Section(line[1:-1].strip(), place))
            continue
        key, equals, value = map(str.strip, line.partition("="))
        if not equals or not key:
            raise IniError(f"{place}: expected key=value, but got {line!r}")
        if not sections:
            raise IniError(f"{place}: the key '{key}' stands before the first section")
        if key in sections[-1].values:
            raise IniError(f"{place}: the key '{key}' comes twice in [{sections[-1].name}]")
        sections[-1].values[key] = value
    return sections
