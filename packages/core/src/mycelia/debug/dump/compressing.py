"""Files of a step that become compressed ones before the step is shown."""

from __future__ import annotations

import csv
import os
from typing import Any

from mycelia.debug.compressed import ENDING, library
from mycelia.debug.dump import files

_LEVEL = 3  # zstd's own default
_AT_ONCE = 1 << 20  # bytes


def compress_folder(folder: str, subject: str) -> None:
    """Put a compressed file in the place of each ``.npy`` in `folder`; links to one file stay links to one.
    A name that gets too long by its ending becomes a short one, told in ``mapping.csv``.

    Errors: OSError; the files that are left are whole, compressed or not.
    """
    zstandard = library(subject)
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    path = os.path.join(folder, files.MAPPING)
    full: dict[str, str] = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8", newline="") as file:
            full = dict(csv.reader(file))
    done: dict[int, str] = {}  # inodes -> the compressed file
    try:
        for entry in sorted(os.scandir(folder), key=lambda e: e.name):
            if not entry.name.endswith(".npy"):
                continue
            name = files.fitting(entry.name + ENDING)
            inode, target = entry.inode(), os.path.join(folder, name)
            if inode not in done or not _link(done[inode], target):
                _compress(compressor, entry.path, target)
                done.setdefault(inode, target)
            os.unlink(entry.path)
            if entry.name in full or name != entry.name + ENDING:
                full[name] = full.pop(entry.name, entry.name) + ENDING
    finally:
        if full:
            with open(path, "w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(full.items())


def _link(source: str, target: str) -> bool:
    """Whether the file system let `target` be a link to `source`."""
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


def _compress(compressor: Any, source: str, target: str) -> None:
    try:
        with open(source, "rb") as read, open(target, "xb") as written:
            size = os.fstat(read.fileno()).st_size
            compressor.copy_stream(read, written, size=size, read_size=_AT_ONCE, write_size=_AT_ONCE)
    except BaseException:
        if os.path.exists(target):
            os.unlink(target)
        raise
