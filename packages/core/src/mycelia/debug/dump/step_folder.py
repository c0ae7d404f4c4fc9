"""The folder of one step, which appears whole: what belongs into it is collected, written into a hidden
folder beside it, and renamed. What comes while the step runs is written by a thread meanwhile; when the
folder appears all is there.

A file costs time to make and to fill, so of values that are the same memory only the first is a file of its
own, as long as nobody has written there since; the others, an operator's inputs that another made, are links
to it.
"""

from __future__ import annotations

import csv
import errno
import os
import shutil
from typing import TYPE_CHECKING

from mycelia.debug.dump import files
from mycelia.debug.dump.compressing import compress_folder
from mycelia.engine import _C

if TYPE_CHECKING:
    from mycelia.debug.dump.groups import Group
    from mycelia.debug.dump.tensor_files import TensorFiles

_MOST_WAITING = 64 << 20  # bytes of memory that the run may want to have back
_PARTS = 4  # of it: one is collected while the others are written


class StepFolder:
    """The files of one step. `path`: the folder that they are in once `publish` was called.

    Errors of all methods: OSError; what is whole by then can still be published.
    """

    def __init__(self, path: str, tensors: TensorFiles) -> None:
        self.path, self.tensors = path, tensors
        parent, name = os.path.split(path)
        self.hidden = os.path.join(parent, f".{name}.{files.CLOCK.stamp()}.tmp")
        self.is_made = False
        self.files: _C.StepFiles | None = None  # from the first tensors to the end of the step
        self.waiting: list[Group] = []
        self.places: set[int] = set()  # addresses of what waits
        self.size = 0  # bytes that wait
        self.rows: list[bytes] = []  # of statistic.csv
        self.long_names: list[tuple[str, str]] = []

    def add(self, group: Group) -> None:
        """Take the tensors of a group, which nobody may write into any more."""
        self.waiting.append(group)
        places = self.places
        for tensor in (*group.inputs, *group.outputs):
            if tensor is not None and tensor._data_ptr not in places:
                places.add(tensor._data_ptr)
                self.size += tensor.nbytes
        # Ops of such statistics run at once, where nobody takes them for operators of the run.
        if self.size > (0 if self.tensors.device_statistics else _MOST_WAITING // _PARTS):
            self.flush(at_once=False)

    def flush(self, at_once: bool = True) -> None:
        """Write what waits into the hidden folder, or let it be written while the step goes on."""
        waiting, self.waiting, self.size = self.waiting, [], 0
        self.places.clear()
        if not waiting:
            return
        self._make_hidden()
        if self.files is None:
            path = self.hidden if self.tensors.has_files else None
            self.files = _C.StepFiles(path, _MOST_WAITING - _MOST_WAITING // _PARTS)
        self.rows.append(self.tensors.write(self.files, waiting, self.long_names, at_once))

    def settle(self) -> None:
        """All tensors that came are in files, and no more come."""
        try:
            self.flush()
        finally:
            written, self.files = self.files, None
            if written is not None:
                written.finish()

    def _make_hidden(self) -> None:
        if not self.is_made:
            try:
                os.mkdir(self.hidden)
            except FileNotFoundError:  # the first step, or somebody took the folder away
                os.makedirs(self.hidden)
            self.is_made = True

    def add_text(self, name: str, parts: list[bytes]) -> None:
        """A file that is no tensor's."""
        short = files.fitting(name)
        if short != name:
            self.long_names.append((short, name))
        self._make_hidden()
        files.write_new(os.path.join(self.hidden, short), parts)

    def publish(self) -> None:
        """Write what waits, and show the folder, or what it holds in the one that is there already."""
        try:
            self.settle()
        finally:
            if self.long_names and os.path.isdir(self.hidden):
                with open(
                    os.path.join(self.hidden, files.MAPPING), "w", encoding="utf-8", newline=""
                ) as file:
                    csv.writer(file).writerows(self.long_names)
            try:
                if self.tensors.compressed and self.is_made:
                    compress_folder(self.hidden, "dump")
            finally:
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
