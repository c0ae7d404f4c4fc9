"""A line per request for whoever reads logs by machine."""

from __future__ import annotations

import contextlib
import sys
import time

import orjson


class RequestLog:
    """Appends what `Metrics` tells of a request as one JSON object: never the tensors.

    path: a file, or "-" for standard error. Errors: RuntimeError if the file cannot be opened. A full disk
    costs lines, not requests.
    """

    def __init__(self, path: str) -> None:
        try:
            # Unbuffered: each line is one write, so that lines of several threads stay whole.
            self._file = sys.stderr.buffer if path == "-" else open(path, "ab", buffering=0)
        except OSError as error:
            raise RuntimeError(f"the request log {path!r} cannot be opened: {error.strerror}") from None

    def __call__(self, told: dict) -> None:
        with contextlib.suppress(OSError):
            self._file.write(orjson.dumps({"time": round(time.time(), 3), **told}) + b"\n")
            self._file.flush()
