"""The folder of one step, which appears whole: what belongs into it is collected, written in one go into a
hidden folder beside it, and renamed.

To make a file costs more than to fill it, so of values that are the same memory only the first is a file of
its own; the others, an operator's inputs that another made, are links to it.
"""

from __future__ import annotations

import csv
import errno
import os
import shutil
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mycelia.debug.dump import files

_MOST_WAITING = 64 << 20  # bytes of memory that the run may want to have back
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.EXDEV)


class _File(NamedTuple):
    name: str
    parts: Sequence[bytes | memoryview]
    content: Hashable  # files with the same one are alike; None: like no other
    owner: Any  # what keeps the parts as they are


class StepFolder:
    """The files of one step. `path`: the folder that they are in once `publish` was called.

    Errors of all methods: OSError; what is whole by then can still be published.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        parent, name = os.path.split(path)
        self.hidden = os.path.join(parent, f".{name}.{files.CLOCK.stamp()}.tmp")
        self.waiting: list[_File] = []
        self.size = 0  # bytes that wait
        self.notes: dict[Hashable, dict] = {}  # contents that wait, and what else is known of them
        self.firsts: dict[Hashable, _File] = {}  # the first file of each
        self.long_names: list[tuple[str, str]] = []

    def add_array(
        self, name: str, array: np.ndarray, content: Hashable = None, owner: Any = None, raw: bool = False
    ) -> None:
        """`array` as .npy, or its bytes alone with `raw`.

        `content`: what the array is made of, if `owner` keeps that from being used for another.
        """
        self._add(_File(self._fitting(name), files.array_parts(array, raw), content, owner), array.nbytes)

    def add_link(self, name: str, content: Hashable) -> None:
        """Another name of an array that waits, the one with this content."""
        self.waiting.append(self.firsts[content]._replace(name=self._fitting(name)))

    def add_text(self, name: str, text: str) -> None:
        data = text.encode()
        self._add(_File(self._fitting(name), [data], None, None), len(data))

    def _fitting(self, name: str) -> str:
        short = files.fitting(name)
        if short != name:
            self.long_names.append((short, name))
        return short

    def _add(self, file: _File, size: int) -> None:
        self.waiting.append(file)
        if file.content is None or file.content not in self.notes:
            self.size += size
        if file.content is not None:
            self.notes.setdefault(file.content, {})
            self.firsts.setdefault(file.content, file)
        if self.size > _MOST_WAITING:
            self.flush()

    def flush(self) -> None:
        """Write what waits into the hidden folder."""
        waiting, self.waiting, self.size = self.waiting, [], 0
        self.notes, self.firsts = {}, {}
        os.makedirs(self.hidden, exist_ok=True)
        folder = os.open(self.hidden, os.O_RDONLY)
        try:
            written: dict[Hashable, str] = {}
            for file in waiting:
                first = written.get(file.content)
                if first is None or not _link(folder, first, file.name):
                    files.write_new(folder, file.name, file.parts)
                if file.content is not None:
                    written.setdefault(file.content, file.name)
        finally:
            os.close(folder)

    def publish(self) -> None:
        """Write what waits, and show the folder, or what it holds in the one that is there already."""
        try:
            self.flush()
        finally:
            if self.long_names and os.path.isdir(self.hidden):
                with open(
                    os.path.join(self.hidden, files.MAPPING), "w", encoding="utf-8", newline=""
                ) as file:
                    csv.writer(file).writerows(self.long_names)
            self._show()

    def _show(self) -> None:
        try:
            os.rename(self.hidden, self.path)
        except FileNotFoundError:
            pass  # not one file could be made
        except OSError as cause:
            if cause.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            self._merge()

    def _merge(self) -> None:
        mapping = os.path.join(self.path, files.MAPPING)
        for entry in os.listdir(self.hidden):
            source, target = os.path.join(self.hidden, entry), os.path.join(self.path, entry)
            if target == mapping and os.path.exists(mapping):
                with open(source, "rb") as new, open(mapping, "ab") as old:
                    shutil.copyfileobj(new, old)
                os.unlink(source)
            else:
                os.replace(source, target)
        os.rmdir(self.hidden)


def _link(folder: int, name: str, other: str) -> bool:
    """Whether `other` is now the same file as `name`; file systems may have no links, or not so many."""
    try:
        os.link(name, other, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as cause:
        if cause.errno in _NO_LINKS:
            return False
        raise
    return True
