"""Writing files so that a reader sees the old content or the whole new one, never a part or a mix.

One file is written beside its place and renamed. Files that belong together get a journal, which names the
renames that are left to do: once it is there, the new files are the ones that hold, and whoever finds it does
the rest (`settle`). What killed writers leave behind is removed by the next one; those that live hold locks.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO

from mycelia.engine.base import errors

try:
    import fcntl
except ImportError:  # Windows: nobody knows there whether a writer lives, so nothing is removed
    fcntl = None  # type: ignore[assignment]

_JOURNAL = ".mycelia-commit"
_LONGEST = 200  # bytes of a name that still fit with what is added to it into the 255 of file systems


@contextlib.contextmanager
def atomic_write(path: str, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends without an error.

    The bytes go to a temporary file in the same directory, are forced to disk, and are renamed over `path`;
    the file then has the permissions `mode`. When anything fails (full disk, exception in the block) the
    temporary file is removed and an existing `path` stays as it was.
    Errors: OSError of the file system, with the path in it.
    """
    temporary = Temporary(path, mode)
    try:
        yield temporary.file
        replace_all([temporary])
    except BaseException as e:
        temporary.discard()
        if isinstance(e, OSError) and e.filename is None:  # a full disk: the write itself knows no name
            e.filename = os.fspath(path)
        raise


def write_text(path: str | os.PathLike, text: str, mode: int = 0o644) -> None:
    """A text file in UTF-8, as `atomic_write` writes it."""
    with atomic_write(os.fspath(path), mode) as file:
        file.write(text.encode())


class Temporary:
    """A file beside `path` that is to take its place by `replace_all`; others see that its writer lives.

    `name`: where it lies, `file`: it, open for reading and writing. Errors: OSError with `path` in it.
    """

    def __init__(self, path: str, mode: int = 0o644):
        self.path, self.mode = os.fspath(path), mode
        directory, name = os.path.split(os.path.abspath(path))
        self._owner, self.is_decided = os.getpid(), False
        try:
            _sweep(directory, name)
            while True:
                handle, self.name = tempfile.mkstemp(prefix=f".{_stem(name)}.", suffix=".tmp", dir=directory)
                if _lock(handle) is not False and os.fstat(handle).st_nlink:
                    break
                os.close(handle)  # another writer took it for a rest that was left behind
        except OSError as e:
            e.filename = self.path  # not the temporary name, which nobody knows
            raise
        self.file: BinaryIO = os.fdopen(handle, "w+b")

    def complete(self) -> None:
        """Force the content to disk."""
        self.file.flush()
        os.fsync(self.file.fileno())
        os.chmod(self.name, self.mode)

    def discard(self) -> None:
        """Leave nothing behind but what was there before."""
        if self._owner != os.getpid():  # a forked process
            return
        if not self.is_decided:  # else a journal waits for it
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.name)
        with contextlib.suppress(OSError):  # what waits in its buffer and does not fit on the disk
            self.file.close()


def replace_all(*groups: list[Temporary]) -> None:
    """Put temporary files in their places, all or, when the process dies, none of them.

    A group is what readers find by the path of its first file (`settle`). All lie in one directory.
    Errors: OSError; then, unless only `settle` was left to do, nothing has changed.
    """
    temporaries = [t for group in groups for t in group]
    for temporary in temporaries:
        temporary.complete()
        if os.path.isdir(temporary.path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), temporary.path)
    directory = os.path.dirname(os.path.abspath(temporaries[0].path))
    if fcntl is None:  # nor are open files renamed there
        for temporary in temporaries:
            temporary.file.close()
    if len(temporaries) == 1:
        os.replace(temporaries[0].name, temporaries[0].path)
        temporaries[0].file.close()
        _sync_directory(directory)
        return
    journals = [_journal(group[0].path) for group in groups]
    renames = [[os.path.basename(t.name), os.path.basename(t.path)] for t in temporaries]
    content = {"files": renames, "others": [os.path.basename(j) for j in journals[1:]]}
    others: list[Temporary] = []
    try:
        for other in journals[1:]:  # they hold as soon as the first does
            others.append(_published(other, {"decided_by": os.path.basename(journals[0])}))
        first = _published(journals[0], content)
    except BaseException:
        for temporary, path in zip(others, journals[1:]):
            os.unlink(path)
            temporary.file.close()
        raise
    try:
        for temporary in temporaries:
            temporary.is_decided = True
        _finish(journals[0], content)
    finally:
        for temporary in (*others, first, *temporaries):
            temporary.file.close()


def settle(path: str) -> None:
    """Finish what an interrupted `replace_all` has left to do for the file `path`, or for the one that its
    group begins with; wait for one that is going on. Errors: RuntimeError where that is not permitted.
    """
    _settle(_journal(path))


def is_pending(path: str) -> bool:
    """Whether `settle` has something to do, or to wait for."""
    return os.path.exists(_journal(path))


def settle_directory(directory: str) -> None:
    """`settle` for all files of a directory."""
    with contextlib.suppress(FileNotFoundError):
        for entry in list(os.scandir(directory)):
            if entry.name.endswith(_JOURNAL):
                _settle(entry.path)


def _journal(path: str) -> str:
    directory, name = os.path.split(os.path.abspath(path))
    return os.path.join(directory, f".{_stem(name)}{_JOURNAL}")


def _stem(name: str) -> str:
    if len(os.fsencode(name)) <= _LONGEST:
        return name
    return f"{name[:40]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"


def _published(path: str, content: dict) -> Temporary:
    """Write a journal, all at once. It stays locked until the temporary's file is closed."""
    temporary = Temporary(path, 0o644)
    try:
        if "others" in content:
            content["others"].append(os.path.basename(temporary.name))
        temporary.file.write(json.dumps(content).encode())
        temporary.complete()
        while True:
            _settle(path)  # another writer of the same files goes first
            try:
                os.link(temporary.name, path)
                break
            except FileExistsError:
                continue
            except OSError as e:
                if e.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
                    raise
                os.rename(temporary.name, path)  # a file system without links
                break
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary.name)
        _sync_directory(os.path.dirname(path))
    except BaseException:
        temporary.discard()
        raise
    return temporary


def _settle(journal: str) -> None:
    try:
        file = open(journal, "rb")
    except FileNotFoundError:
        return
    with file:
        content = _parsed(journal, file.read())
        try:
            _settle_locked(journal, content, file)
        except FileNotFoundError:
            return  # its writer has just finished
        except OSError as e:  # no permission, a file system that is read only
            raise errors.runtime_error(
                journal,
                f"the writing of files was interrupted, and cannot be finished by you: {e}",
                hint="open them once as a user who may write to the directory",
            ) from None


def _settle_locked(journal: str, content: dict, file: BinaryIO) -> None:
    if "decided_by" not in content:
        _lock(file.fileno(), wait=True)
        if os.path.samestat(os.stat(journal), os.fstat(file.fileno())):  # still this one
            _finish(journal, content)
        return
    decided = os.path.join(os.path.dirname(journal), content["decided_by"])
    if os.path.exists(decided):
        _settle(decided)
    elif _lock(file.fileno()) and os.path.samestat(os.stat(journal), os.fstat(file.fileno())):
        os.unlink(journal)  # its writer died before it decided


def _parsed(journal: str, data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
        names = [n for pair in content.get("files", []) for n in pair] + content.get("others", [])
        if any(os.path.basename(n) != n for n in (*names, content.get("decided_by", ""))):
            raise ValueError("a name with a directory")
        if any(len(pair) != 2 or not pair[0].endswith(".tmp") for pair in content.get("files", [])):
            raise ValueError("a rename of another kind")
        if not content.get("files") and "decided_by" not in content:
            raise ValueError("no renames")
    except (ValueError, TypeError, AttributeError) as e:
        raise errors.error(
            errors.FileFormatError,
            journal,
            f"the journal of files that were written together is damaged: {e}",
        ) from None
    return content


def _finish(journal: str, content: dict) -> None:
    """Do what a journal says, as far as it is not done, and remove it."""
    directory = os.path.dirname(journal)
    for source, target in content["files"]:
        with contextlib.suppress(FileNotFoundError):  # it is in its place already
            os.replace(os.path.join(directory, source), os.path.join(directory, target))
    _sync_directory(directory)
    for other in (*content["others"], os.path.basename(journal)):  # what decides goes last
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, other))
    _sync_directory(directory)


def _sweep(directory: str, name: str) -> None:
    """Remove what killed writers of this file have left."""
    if fcntl is None:
        return
    rest = re.compile(re.escape(f".{_stem(name)}.") + r"[a-z0-9_]{8}\.tmp")
    found = [entry.path for entry in os.scandir(directory) if rest.fullmatch(entry.name)]
    if not found:
        return
    settle_directory(directory)  # what a journal waits for is no rest
    for path in found:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if _lock(file.fileno()):
                os.unlink(path)


@contextlib.contextmanager
def locked(directory: str) -> Iterator[None]:
    """Other processes that ask for the lock of this directory wait until the block ends."""
    if fcntl is None:
        yield
        return
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(handle, wait=True)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, wait: bool = False) -> bool | None:
    """Whether the file is ours now, so that no other process works on it; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _sync_directory(directory: str) -> None:
    """Makes renames themselves durable where directories can be opened (not on Windows)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
