"""Lines of a text file by their numbers, without the file in memory."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mycelia.dataset import nodes
from mycelia.engine.base import errors, log
from mycelia.io.reading import of_file

_FORBIDDEN = re.compile(r'[\\/:*?"<>|`&\';]')


class LineReader:
    """Random access to the lines of a file, numbered from 1: `readline(n)`, `reader[n]`, `len(reader)`.

    Errors: TypeError for no text, RuntimeError for a missing file or a directory; ValueError for a number
    outside the file.
    """

    def __init__(self, filename: str):
        if not isinstance(filename, str):
            raise errors.type_error("LineReader", f"filename: {filename} is not string")
        path = os.path.realpath(filename)
        if _FORBIDDEN.search(os.path.basename(path)):
            raise errors.value_error("LineReader", f"filename {filename!r} has forbidden characters")
        if not os.path.isfile(path):
            what = "is not a regular file" if os.path.exists(path) else "does not exist"
            raise errors.runtime_error("LineReader", f"the file {filename!r} {what}")
        self.filename = path
        self.offsets: list[int] = []
        with open(path, "rb") as file:
            at = 0
            for line in file:
                self.offsets.append(at)
                at += len(line)
        if not self.offsets:
            log.warning("LineReader: %s is empty", filename)
        self._file = None

    def __len__(self) -> int:
        return self.len()

    def __getitem__(self, line: int) -> str:
        return self.readline(line)

    def __del__(self):
        self.close()

    def len(self) -> int:
        """Number of lines."""
        return len(self.offsets)

    def readline(self, line: int) -> str:
        """A line without its end."""
        nodes.integer("LineReader.readline", "line", line, 1, len(self.offsets))
        if self._file is None:
            self._file = Path(self.filename).open("rb")
        self._file.seek(self.offsets[line - 1])
        with of_file(self.filename, "LineReader"):
            found = self._file.readline().decode("utf-8").removesuffix("\n")
        return found.removesuffix("\r")

    def close(self) -> None:
        """Close the file; a further line opens it again."""
        file, self._file = getattr(self, "_file", None), None
        if file is not None:
            file.close()
