"""What the settings and the file of `env_config_path` say about the recorder."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from mycelia.engine.base import config, errors, ignored, log

ON_ERROR, ALSO_AT_END = 1, 2


class Wanted(NamedTuple):
    """`mode`: `ON_ERROR` or `ALSO_AT_END`; `path`: the folder of this process's records."""

    mode: int
    path: str


def read(path: str) -> Wanted | None:
    """What is wanted, None if nothing is; `path`: the file of `env_config_path`, or "".

    Errors: ValueError for a file that says something else, TypeError for a value of another type.
    """
    given: dict[str, Any] = {}
    if path:
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            given = content.get("rdr", {})
            if not isinstance(given, dict):
                raise ValueError(f"'rdr' is {given!r}, not an object")
            for key in content.keys() - {"rdr"}:
                ignored.tell("env_config_path", key, content[key], "only the run recorder 'rdr' is set here")
        except (ValueError, AttributeError, RecursionError) as cause:
            raise errors.value_error("env_config_path", f"{path!r} is no JSON object: {cause}") from None
    known = {"enable": bool, "mode": int, "path": str}
    for key, value in given.items():
        if key not in known:
            raise errors.one_of(key, known, subject="env_config_path", what="key of 'rdr'")
        if type(value) is not known[key]:
            expected, got = known[key].__name__, type(value).__name__
            raise errors.type_error("env_config_path", f"{key} of 'rdr' must be {expected}, but got {got}")
    wanted = {
        "enable": config.get("rdr_enable"),
        "mode": config.get("rdr_mode"),
        "path": config.get("rdr_path"),
    }
    wanted.update((key, value) for key, value in given.items() if not config.is_set(f"rdr_{key}"))
    if wanted["mode"] not in (ON_ERROR, ALSO_AT_END):
        raise errors.one_of(
            wanted["mode"], (ON_ERROR, ALSO_AT_END), subject="env_config_path", what="mode of 'rdr'"
        )
    folder = _usable(wanted["path"]) if wanted["enable"] else None
    return None if folder is None else Wanted(wanted["mode"], folder)


def _usable(folder: str) -> str | None:
    """The folder for this process, made: below `folder` if that is an absolute path one can write to, else
    below the working directory; None if neither can be written.
    """
    if folder and not os.path.isabs(folder):
        log.logger(__name__).warning("the run recorder needs an absolute path, but got %r", folder)
        folder = ""
    own = os.path.join(f"rank_{config.get('rank')}", "rdr")
    for place in dict.fromkeys((folder or os.getcwd(), os.getcwd())):
        try:
            os.makedirs(os.path.join(place, own), exist_ok=True)
            return os.path.join(place, own)
        except OSError as cause:
            log.logger(__name__).warning("the run recorder cannot write to %s: %s", place, cause)
    return None
