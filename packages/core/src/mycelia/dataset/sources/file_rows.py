"""Sources that read files from their beginning: lines of text, CSV, JSON lines, TFRecord.

Rows of several files come in turns, one of each file that is open. As many files are open as there are
workers by default (one per core, 8 at most), whatever number is asked for: the order does not depend on it.
Sharding gives every process equally many rows, in file order; what is missing at the end comes from
the front. Shuffling mixes within a window over all files, or only the files.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import itertools
import json
import os
import re
from collections.abc import Iterator

import numpy as np

from mycelia.dataset import checks, config, nodes
from mycelia.dataset.cache import checked as checked_cache
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import Shuffle
from mycelia.engine.base import errors
from mycelia.io.reading import of_file

_WINDOW = 10_000  # rows that a global shuffle mixes at a time, and at least


def find_files(owner: str, dataset_files) -> list[str]:
    """The files of a name, a pattern or a list of them, sorted. TypeError; ValueError for no match."""
    nodes.of_type(owner, "dataset_files", dataset_files, str, list)
    patterns = [dataset_files] if isinstance(dataset_files, str) else dataset_files
    if not patterns or patterns == [""]:
        raise errors.value_error(owner, f"Input dataset_files can not be empty, but got '{dataset_files}'.")
    found, missing = [], []
    for pattern in patterns:
        nodes.of_type(owner, "dataset_files", pattern, str)
        matches = [m for m in glob.glob(pattern, recursive=True) if os.path.isfile(m)]
        found += matches
        missing += [] if matches else [pattern]
    if missing:
        raise errors.value_error(
            owner, f"The following patterns did not match any files: {', '.join(missing)}"
        )
    return sorted(found)


class FileRowsDataset(Dataset):
    """Base of the sources here: `read` gives the rows of one file."""

    def __init__(
        self,
        dataset_files,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        super().__init__()
        self.dataset_files = find_files(type(self).__name__, dataset_files)
        self._options(num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache)

    def _options(self, num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache) -> None:
        """Check and keep what all of these sources take."""
        owner = type(self).__name__
        nodes.workers(owner, num_parallel_workers)
        self.cache = checked_cache(owner, cache)
        nodes.samples(owner, num_samples)
        if shuffle is not None and not isinstance(shuffle, (bool, Shuffle)):
            raise errors.type_error(owner, f"shuffle must be a bool or a Shuffle, but got {shuffle!r}")
        nodes.shards(owner, num_shards, shard_id)
        shuffle = {True: Shuffle.GLOBAL, False: Shuffle.FALSE, None: Shuffle.GLOBAL}.get(shuffle, shuffle)
        self.shuffle_mode: Shuffle = shuffle
        self.num_samples, self.num_shards, self.shard_id = num_samples or None, num_shards, shard_id
        self.num_parallel_workers = num_parallel_workers
        self._sizes: dict[str, int] = {}

    def read(self, path: str) -> Iterator[tuple]:
        """The rows of one file."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "read(path) is not defined")

    def is_sharded(self):
        return self.num_shards is not None

    def size_of(self, path: str) -> int:
        """Number of rows of one file, counted once."""
        if path not in self._sizes:
            with self._of_file(path):
                self._sizes[path] = self.count(path)
        return self._sizes[path]

    def count(self, path: str) -> int:
        """Number of rows of one file, where that is found out faster than by `read`."""
        return sum(1 for _ in self.read(path))

    @contextlib.contextmanager
    def _of_file(self, path) -> Iterator[None]:
        """Errors are about this file, or the first of several that belong together."""
        owner = type(self).__name__
        try:
            with of_file(path[0] if isinstance(path, tuple) else path, owner):
                yield
        except OSError as e:
            raise errors.runtime_error(owner, f"{path} cannot be read: {e}") from None

    def get_dataset_size(self):
        total = sum(map(self.size_of, self.dataset_files))
        if self.num_shards is not None:
            total = -(-total // self.num_shards)
        return min(total, self.num_samples) if self.num_samples else total

    def _parts(self, files: list[str]) -> list[tuple[str, int, int]]:
        """(file, first row, rows) that this process reads."""
        sizes = [self.size_of(f) for f in files] if self.num_shards else None
        if sizes is None:
            return [(f, 0, -1) for f in files]
        total = sum(sizes)
        each = -(-total // self.num_shards)
        parts, at = [], self.shard_id * each
        while each > 0 and total:
            start = at % total
            for file, size in zip(files, sizes):
                if start < size:
                    count = min(each, size - start)
                    parts.append((file, start, count))
                    each, at = each - count, at + count
                    break
                start -= size
        return parts

    def _in_turns(self, parts) -> Iterator[tuple]:
        count = min(config.default("num_parallel_workers"), len(parts))
        lanes = [self._lane(parts[i::count]) for i in range(count)]
        if len(lanes) == 1:
            yield from lanes[0]
            return
        while lanes:
            left = []
            for lane in lanes:
                row = next(lane, None)
                if row is not None:
                    left.append(lane)
                    yield row
            lanes = left

    def _lane(self, parts) -> Iterator[tuple]:
        for file, start, count in parts:
            with self._of_file(file):
                if count < 0 and start == 0:
                    yield from self.read(file)
                    continue
                for number, row in enumerate(self.read(file)):
                    if count >= 0 and number >= start + count:
                        break
                    if number >= start:
                        yield row

    def origin(self, epoch, number):
        some = ", ".join(map(str, self.dataset_files[:3]))  # which one it is nobody notes
        return f"a row of {type(self).__name__}{nodes.FILE}{some}{', ...' * (len(self.dataset_files) > 3)}"

    def rows(self, epoch):
        rng = self.generator(epoch)
        files = self.dataset_files
        if self.shuffle_mode in (Shuffle.FILES, Shuffle.GLOBAL):
            files = [files[i] for i in rng.permutation(len(files))]
        rows = self._in_turns(self._parts(files))
        if self.shuffle_mode not in (Shuffle.FALSE, Shuffle.FILES):
            rows = _mixed(rows, rng)
        first = next(rows, None)
        if first is None:
            raise errors.runtime_error(type(self).__name__, f"{self.dataset_files} hold no rows")
        yield from itertools.islice(itertools.chain((first,), rows), self.num_samples)


def _mixed(rows: Iterator[tuple], rng) -> Iterator[tuple]:
    window: list[tuple] = []
    draws: Iterator[int] = iter(())
    for row in rows:
        if len(window) < _WINDOW:
            window.append(row)
            continue
        i = next(draws, -1)
        if i < 0:  # many numbers in a call: a call costs more than a row
            draws = iter(rng.integers(_WINDOW, size=_WINDOW).tolist())
            i = next(draws)
        out, window[i] = window[i], row
        yield out
    for i in rng.permutation(len(window)):
        yield window[i]


class TextFileDataset(FileRowsDataset):
    """Lines of text files, without empty ones: column text."""

    def get_col_names(self):
        return ["text"]

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                line = line.rstrip("\r\n")
                if line:
                    yield (np.asarray(line),)

    def count(self, path):
        with open(path, "rb") as file:
            return sum(1 for line in file if line not in (b"\n", b"\r\n"))


class CSVDataset(FileRowsDataset):
    """Rows of CSV files. Without `column_names` the first line of the file names the columns.

    `column_defaults`: a value per column, whose type the column gets (int32, float32, text); columns without
    one are text. Numbers end where they stop being numbers. Errors: ValueError for a `field_delim` of other
    than one character; RuntimeError, when reading, for a row with another number of fields or no number.
    """

    def __init__(
        self,
        dataset_files,
        field_delim=",",
        column_defaults=None,
        column_names=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        owner = "CSVDataset"
        super().__init__(
            dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache
        )
        field_delim = nodes.of_type(owner, "field_delim", "," if field_delim is None else field_delim, str)
        if len(field_delim) != 1 or field_delim in '"\r\n':
            raise errors.value_error(owner, f"field_delim must be one character, but got {field_delim!r}")
        if column_defaults is not None:
            nodes.of_type(owner, "column_defaults", column_defaults, list)
            for value in column_defaults:
                nodes.of_type(owner, "every element of column_defaults", value, str, int, float, bool)
        self.field_delim, self.column_defaults = field_delim, column_defaults
        nodes.of_type(owner, "column_names", column_names, list, type(None))
        for name in column_names or ():
            nodes.of_type(owner, "every element of column_names", name, str)
        self.column_names = column_names

    def get_col_names(self):
        if self.column_names is None:
            path = self.dataset_files[0]
            with self._of_file(path), open(path, newline="", encoding="utf-8") as file:
                return next(csv.reader(file, delimiter=self.field_delim), [])
        if len(set(self.column_names)) < len(self.column_names):
            raise errors.runtime_error(
                "CSVDataset",
                f"Invalid parameter, duplicate column names are not allowed: {_twice(self.column_names)} in "
                "column_names",
            )
        return list(self.column_names)

    def read(self, path):
        width = len(self.get_col_names())
        defaults = list(self.column_defaults or ())
        defaults += [""] * (width - len(defaults))
        with open(path, newline="", encoding="utf-8") as file:
            lines = csv.reader(file, delimiter=self.field_delim, strict=True)
            if self.column_names is None:
                next(lines, None)
            for line in lines:
                if not line:
                    continue
                if len(line) != width or len(defaults) != width:
                    raise errors.runtime_error(
                        "CSVDataset",
                        f"{path}, line {lines.line_num}: {len(line)} fields for {width} columns and "
                        f"{len(defaults)} column_defaults",
                    )
                try:
                    yield tuple(_field(v, d) for v, d in zip(line, defaults))
                except ValueError:
                    raise errors.runtime_error(
                        "CSVDataset",
                        f"{path}, line {lines.line_num}: type does not match: {line} and column_defaults",
                    ) from None

    def count(self, path):
        with open(path, newline="", encoding="utf-8") as file:
            lines = csv.reader(file, delimiter=self.field_delim, strict=True)
            return max(0, sum(1 for line in lines if line) - (self.column_names is None))


def _twice(names: list[str]) -> str:
    return next(name for name in names if names.count(name) > 1)


_NUMBERS = {
    int: re.compile(r"\s*[+-]?\d+"),
    float: re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|\s*[+-]?(inf(inity)?|nan)", re.IGNORECASE),
}
_HEXADECIMAL = re.compile(r"\s*[+-]?0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(p[+-]?\d+)?", re.IGNORECASE)


def _field(text: str, default) -> np.ndarray:
    """A field in the type of its default. ValueError for no number, or one that is too large."""
    if isinstance(default, str):
        return np.asarray(text)
    kind = int if isinstance(default, int) else float
    if kind is float and (start := _HEXADECIMAL.match(text)):
        return np.asarray(float.fromhex(start[0]), np.float32)
    try:
        value = kind(text)
    except ValueError:
        start = _NUMBERS[kind].match(text)
        if start is None:
            raise
        value = kind(start[0])
    if kind is int and not -(2**31) <= value < 2**31:
        raise ValueError(f"{value} is no int32")
    return np.asarray(value, np.int32 if kind is int else np.float32)


_CLUE = {  # task: usage: column -> key of the JSON object
    "AFQMC": {"train": ["label", "sentence1", "sentence2"], "test": ["id", "sentence1", "sentence2"]},
    "CMNLI": {"train": ["label", "sentence1", "sentence2"], "test": ["id", "sentence1", "sentence2"]},
    "CSL": {"train": ["abst", "id", "keyword", "label"], "test": ["abst", "id", "keyword"]},
    "IFLYTEK": {"train": ["label", "label_des", "sentence"], "test": ["id", "sentence"]},
    "TNEWS": {
        "train": ["keywords", "label", "label_desc", "sentence"],
        "test": ["id", "keywords", "sentence"],
    },
    "WSC": {
        "train": ["idx", "label", "span1_index", "span1_text", "span2_index", "span2_text", "text"],
        "test": ["idx", "span1_index", "span1_text", "span2_index", "span2_text", "text"],
    },
}


class CLUEDataset(FileRowsDataset):
    """JSON lines of the CLUE tasks; the columns depend on `task` and `usage` ('train', 'test', 'eval')."""

    def __init__(
        self,
        dataset_files,
        task="AFQMC",
        usage="train",
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        checks.choice("CLUEDataset", "task", task, _CLUE)
        checks.choice("CLUEDataset", "usage", usage, ("train", "test", "eval"))
        super().__init__(
            dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache
        )
        self.task, self.usage = task, usage
        self._columns = _CLUE[task]["test" if usage == "test" else "train"]

    def get_col_names(self):
        return list(self._columns)

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    table = json.loads(line)
                    values = tuple(_member(table, name) for name in self._columns)
                except (ValueError, KeyError, TypeError) as e:
                    raise errors.runtime_error(
                        "CLUEDataset", f"{path}, line {number}: no object of task {self.task}: {e}"
                    ) from None
                yield values

    def count(self, path):
        with open(path, "rb") as file:
            return sum(1 for line in file if line.strip())


def _member(table: dict, name: str) -> np.ndarray:
    value = table["target"][name] if name.startswith("span") else table[name]
    return np.asarray(value, np.uint32) if isinstance(value, int) else np.asarray(value)
