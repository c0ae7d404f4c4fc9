"""Sources told by tables: a line of text gives the arguments, a table the values that they may have.

A class that names its ARGUMENTS gets a constructor that binds, checks and keeps them as attributes; what
remains to write is how its files become rows.
"""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mycelia.dataset import checks, nodes
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import PKSampler, Shuffle
from mycelia.dataset.sources.file_rows import FileRowsDataset
from mycelia.dataset.sources.numbered import MappableDataset, directory
from mycelia.engine.base import errors
from mycelia.io.reading import of_file

# Arguments that the bases take, in their most usual order.
SHARDS = "num_shards=None, shard_id=None"
MAPPED = f"num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None, {SHARDS}, cache=None"
DECODED = MAPPED.replace("sampler=", "decode=False, sampler=")
FILES = f"num_samples=None, num_parallel_workers=None, shuffle=GLOBAL, {SHARDS}, cache=None"
FILES_WORKERS_LAST = f"num_samples=None, shuffle=GLOBAL, {SHARDS}, num_parallel_workers=None, cache=None"
IN_MEMORY = f"num_samples=None, num_parallel_workers=1, shuffle=None, sampler=None, {SHARDS}"
IN_MEMORY_DECODED = IN_MEMORY.replace("sampler=", "decode=False, sampler=")

# Arguments of which a dict of a pipeline tells otherwise, or not at all.
_NOT_SERIALIZED = frozenset(("num_parallel_workers", "shuffle", "sampler", "cache", "decrypt"))
_COMMON = frozenset(
    ("num_samples", "num_parallel_workers", "shuffle", "sampler", "num_shards", "shard_id", "cache")
)


def signature(text: str) -> inspect.Signature:
    """The arguments of a function from their text: names with defaults, GLOBAL for `Shuffle.GLOBAL`."""
    parameters = []
    for item in text.split(", "):
        name, _, default = item.partition("=")
        value: Any = inspect.Parameter.empty
        if default:
            value = Shuffle.GLOBAL if default == "GLOBAL" else ast.literal_eval(default)
        parameters.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value))
    return inspect.Signature(parameters)


def existing_file(owner: str, name: str, value) -> Path:
    """The path of a file that can be read. TypeError for no text, ValueError for no such file."""
    nodes.of_type(owner, name, value, str)
    path = Path(value)
    if not path.is_file() or not os.access(path, os.R_OK):
        raise errors.value_error(
            owner, f"The file {value} does not exist or permission denied! (It is {name}.)"
        )
    return path


def _function(owner: str, name: str, value):
    if value is not None and not callable(value):
        raise errors.type_error(owner, f"{name} must be a function, but got {value!r}")
    return value


def _flag(owner: str, name: str, value) -> bool:
    return bool(nodes.of_type(owner, name, value, bool, type(None)))


def _typed(*types: type) -> Callable:
    def check(owner: str, name: str, value):
        return value if value is None else nodes.of_type(owner, name, value, *types)

    return check


# How an argument of this name is checked, wherever it occurs.
_CHECKS: dict[str, Callable] = {
    "dataset_dir": directory,
    "annotation_file": existing_file,
    "dataset_file": existing_file,
    "decode": _flag,
    "extra_metadata": _flag,
    "small": _flag,
    "decrypt": _function,
    "background": _typed(bool),
    "extensions": _typed(list),
    "classes": _typed(list),
    "class_indexing": _typed(dict),
    "scale": _typed(int),
}


_PLACES = ("dataset_dir", "dataset_file", "annotation_file")  # the first that a source has holds its files


class Described:
    """Mixin that makes the constructor of a source from its tables.

    ARGUMENTS: text as in a ``def``, without self. CHOICES: argument -> values it may have.
    MEANS: argument -> what None stands for. CHECKS: argument -> types, where they are not the usual ones.
    """

    ARGUMENTS: ClassVar[str] = ""
    CHOICES: ClassVar[dict[str, tuple]] = {}
    MEANS: ClassVar[dict[str, Any]] = {}
    CHECKS: ClassVar[dict[str, tuple]] = {}
    source_fields: ClassVar[tuple[str, ...]] = ()  # attributes that say in a dict what is read

    def __init_subclass__(cls, **keywords):
        super().__init_subclass__(**keywords)
        if "ARGUMENTS" in cls.__dict__:
            names = signature(cls.ARGUMENTS).parameters
            cls.source_fields = tuple(name for name in names if name not in _NOT_SERIALIZED)
            cls.__init__ = _constructor(cls.ARGUMENTS)  # type: ignore[method-assign]

    def _keep(self, given: dict) -> dict:
        """Check the arguments of this class and keep them as attributes; those of the base come back."""
        owner = type(self).__name__
        common = {}
        for name, value in given.items():
            if name in _COMMON:
                common[name] = value
                continue
            if name in self.CHECKS:
                nodes.of_type(owner, name, value, *self.CHECKS[name], type(None))
            elif name in _CHECKS:
                value = _CHECKS[name](owner, name, value)
            if name in self.CHOICES and value is not None:
                self.choose(name, value, self.CHOICES[name])
            setattr(self, name, self.MEANS.get(name) if value is None else value)
        self.check()
        return common

    def choose(self, name: str, value, choices) -> None:
        """ValueError for a value that is not among the choices, TypeError for no text."""
        owner = type(self).__name__
        nodes.of_type(owner, name, value, *{type(choice) for choice in choices})
        checks.choice(owner, name, value, choices)

    def check(self) -> None:
        """What else must hold for the arguments: TypeError, ValueError."""

    def _set_up(self, given: dict) -> None:
        raise errors.error(errors.NotSupportedError, type(self).__name__, "_set_up(given) is not defined")


def _constructor(arguments: str) -> Callable:
    taken = signature(arguments)

    def __init__(self, *args, **keywords):
        bound = taken.bind(*args, **keywords)
        bound.apply_defaults()
        self._set_up(dict(bound.arguments))

    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = inspect.Signature([this, *taken.parameters.values()])  # type: ignore[attr-defined]
    return __init__


class ListedDataset(Described, MappableDataset):
    """Numbered rows: `entries` lists what there is without reading it, `read` makes a row of one entry."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("image", "label")
    BY_CLASS: ClassVar[bool] = True  # whether a PKSampler is taken when the source is made

    def _set_up(self, given):
        common = self._keep(given)
        if not self.BY_CLASS and isinstance(common.get("sampler"), PKSampler):
            raise errors.value_error(type(self).__name__, "sampler: a PKSampler needs class numbers of rows")
        MappableDataset.__init__(self, list(self.columns()), **common)

    def columns(self) -> tuple[str, ...]:
        """Names of the columns, which may depend on the arguments."""
        return self.COLUMNS

    def entries(self) -> list:
        """One entry per row, in the order of the rows. RuntimeError for files that do not fit."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "entries() is not defined")

    def read(self, entry) -> tuple:
        """The row of an entry."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "read(entry) is not defined")

    @cached_property
    def _entries(self) -> list:
        try:
            with of_file(self._place(), type(self).__name__):
                found = self.entries()
        except OSError as e:
            raise self.problem(f"{self._place()}: {e}") from None
        if not found:
            raise self.problem(
                f"Invalid data, no valid data matching the dataset API {type(self).__name__}: nothing to "
                f"read is there for {self._arguments()}"
            )
        return found

    def _place(self) -> str:
        """The file or directory that was given."""
        names = (n for n in signature(self.ARGUMENTS).parameters if n in _PLACES)
        return str(getattr(self, next(names)))

    def _arguments(self) -> str:
        names = [n for n in signature(self.ARGUMENTS).parameters if n not in _COMMON]
        return ", ".join(f"{name}={str(getattr(self, name))!r}" for name in names)

    def problem(self, message: str) -> BaseException:
        """The error for files that cannot be read or do not fit."""
        return errors.runtime_error(type(self).__name__, message)

    def source_size(self):
        return len(self._entries)

    def row(self, index):
        entry = self._entries[index]
        owner, place = type(self).__name__, self._place()  # lists may name files elsewhere
        with of_file(place, owner), of_file(os.path.join(place, self.file_of(index)), owner):
            return self.read(entry)

    def file_of(self, index):
        entry = self._entries[index]
        first = entry[0] if isinstance(entry, tuple) else entry
        if isinstance(first, str) and (path := self.path_of(first)):
            return path
        return str(first) if isinstance(first, Path) else ""

    def path_of(self, name: str) -> str:
        """The file that an entry of this name stands for; "" if it stands for none."""
        return name if os.sep in name else ""

    def image(self, path) -> np.ndarray:
        """The bytes of an image, or its pixels with `decode`."""
        return image_of(
            type(self).__name__, path, getattr(self, "decode", False), getattr(self, "decrypt", None)
        )


class LabelledDataset(ListedDataset):
    """Entries of a path and a class number: columns image and label."""

    LABEL: ClassVar[type] = np.uint32
    COUNTS_CLASSES: ClassVar[bool] = True  # whether `num_classes` tells

    def labels(self):
        return np.asarray([label for _, label in self._entries])

    def num_classes(self):
        return len(np.unique(self.labels())) if self.COUNTS_CLASSES else None

    def read(self, entry):
        path, label = entry
        return self.image(path), np.asarray(label, self.LABEL)


class RecordsDataset(Described, FileRowsDataset):
    """Rows of files from their beginning: `files` names them, `read` gives the rows of one of them."""

    COLUMNS: ClassVar[tuple[str, ...]] = ()

    def _set_up(self, given):
        common = self._keep(given)
        Dataset.__init__(self)
        self._options(**common)

    @cached_property
    def dataset_files(self) -> list:
        """The files, looked for when they are needed. RuntimeError for missing ones."""
        found = self.files()
        for file in found:
            for path in file if isinstance(file, tuple) else (file,):
                if not os.path.isfile(path):
                    raise errors.runtime_error(type(self).__name__, f"the file {path} is missing")
        return found

    def files(self) -> list:
        """Paths, or tuples of paths that belong together."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "files() is not defined")

    def get_col_names(self):
        return list(self.COLUMNS)

    def get_dataset_size(self):
        if not sum(map(self.size_of, self.dataset_files)):
            raise errors.runtime_error(type(self).__name__, f"{self.dataset_files} hold no rows")
        return super().get_dataset_size()


class InMemoryDataset(ListedDataset):
    """A source whose lists are read when it is made; errors of missing files come then, as they are."""

    def _set_up(self, given):
        super()._set_up(given)
        self._entries = self.entries()


def image_of(owner: str, path, decoded: bool, decrypt: Callable | None = None) -> np.ndarray:
    """Bytes of an image file (uint8 [n]), or its pixels (uint8 [H, W, 3]). RuntimeError if it is none."""
    try:
        data = np.fromfile(path, np.uint8) if decrypt is None else decrypted(owner, decrypt, path)
    except OSError as e:
        raise errors.runtime_error(owner, f"{path} cannot be read: {e}") from None
    if not decoded:
        return data
    from mycelia.dataset.vision.tensor import decode

    return decode(data, f"{owner}, {path}")


def decrypted(owner: str, decrypt: Callable, path) -> np.ndarray:
    """What a user's function makes of an image file, as bytes. RuntimeError if it raises or gives something
    else.
    """
    try:
        data = decrypt(str(path))
    except Exception as e:
        raise nodes.failed(owner, f"decrypt({str(path)!r})", e) from e
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise errors.runtime_error(
            owner, f"The return value of the decrypt function is not of type bytes, but {type(data).__name__}"
        )
    return np.frombuffer(data, np.uint8)


def text(value: str) -> np.ndarray:
    """A column that is one text."""
    return np.asarray(value)


def contents(path) -> str:
    """A text file."""
    with of_file(path):
        return Path(path).read_text(encoding="utf-8")


def lines(path, *, empty: bool = False) -> Iterator[str]:
    """The lines of a text file without their ends; empty ones only on demand."""
    with of_file(path), open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            line = line.removesuffix("\n").removesuffix("\r")
            if line or empty:
                yield line
