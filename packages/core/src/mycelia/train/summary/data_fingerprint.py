"""What data a pipeline reads, told by its files' names, sizes and times and its sources' parameters.

No data is read. Data that no file holds (arrays, generators) cannot be told apart and have no fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any

from mycelia.engine.base import redaction

_MOST = 100_000  # files that are looked at
_MECHANICS = ("children", "connector_queue_size", "num_parallel_workers", "cache")  # the data are the same


def fingerprint(described: dict[str, Any]) -> dict[str, Any]:
    """`described`: a pipeline as `Dataset.to_json` gives it.

    `sources`: class and paths of each; `files`, `size` in bytes, `modified` in seconds since 1970 of all of
    them together; `sha256` of their names below the path, sizes, times and the parameters of the sources,
    null where there is no file; `is_partial`: whether there are more than 100,000, of which the first count.
    """
    digest = hashlib.sha256()
    told, files, size, modified, left = [], 0, 0, 0, _MOST
    for source in _sources(described):
        kind, paths = str(source.get("op_type", "")), []
        kept: dict[str, Any] = {}
        for name, value in source.items():
            listed = value if isinstance(value, list) else [value]
            here = [one for one in listed if isinstance(one, str) and os.path.exists(one)]
            paths += here
            if name not in _MECHANICS and not redaction.is_secret(name, value) and not here:
                kept[name] = value
        digest.update(json.dumps([kind, kept], sort_keys=True, default=str).encode())
        for path in paths:
            for name, found in _files(path):
                if left == 0:
                    break
                left -= 1
                files, size = files + 1, size + found.st_size
                modified = max(modified, found.st_mtime_ns)
                digest.update(os.fsencode(f"\n{name}\0{found.st_size}\0{found.st_mtime_ns}"))
        shown = [redaction.text(os.path.abspath(path)) for path in paths]
        told.append({"kind": kind, "paths": shown})
    return {
        "sources": told, "files": files, "size": size, "modified": modified / 1e9,
        "sha256": digest.hexdigest() if files else None, "is_partial": left == 0,
    }  # fmt: skip


def _sources(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    children = described.get("children") or []
    if not children:
        yield described
    for child in children:
        yield from _sources(child)


def _files(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """(name below the path, its state) of a file, or of all in a folder, in the order of their names."""
    if not os.path.isdir(path):
        yield os.path.basename(path), os.stat(path)
        return
    for folder, below, names in os.walk(path):
        below.sort()
        for name in sorted(names):
            full = os.path.join(folder, name)
            try:
                yield os.path.relpath(full, path), os.stat(full)
            except OSError:
                continue  # a link to nowhere, or gone since
