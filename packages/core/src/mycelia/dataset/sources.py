"""Where rows come from: Python objects, arrays in memory, and the MNIST files."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np

from mycelia import errors
from mycelia.dataset import config
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import (
    DistributedSampler,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetSampler,
)


class MappableDataset(Dataset):
    """Rows with numbers: a sampler decides which are read and in which order."""

    def __init__(self, columns: list[str], num_samples, shuffle, sampler, num_shards, shard_id):
        super().__init__()
        owner = type(self).__name__
        self._columns = columns
        if sampler is not None and shuffle is not None:
            raise errors.error(
                errors.MyceliaRuntimeError, owner, "sampler and shuffle cannot be given together"
            )
        if (num_shards is None) != (shard_id is None):
            raise errors.error(
                errors.MyceliaRuntimeError, owner, "num_shards and shard_id must be given together"
            )
        if sampler is not None and num_shards is not None:
            raise errors.error(
                errors.MyceliaRuntimeError, owner, "sampler and num_shards cannot be given together"
            )
        if num_samples is not None and (
            isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples < 0
        ):
            raise errors.value_error(
                owner, f"num_samples must be an int of at least 0, but got {num_samples!r}"
            )
        if num_shards is not None:
            sampler = DistributedSampler(num_shards, shard_id, shuffle is not False, num_samples)
        elif sampler is None:
            shuffled = self._shuffles_by_default() if shuffle is None else bool(shuffle)
            sampler = (
                RandomSampler(num_samples=num_samples)
                if shuffled
                else SequentialSampler(num_samples=num_samples)
            )
        elif not isinstance(sampler, Sampler):
            sampler = _from_iterable(owner, sampler, num_samples)
        self.sampler = sampler

    def _shuffles_by_default(self) -> bool:
        return True

    def get_col_names(self):
        return list(self._columns)

    def source_size(self) -> int:
        """Rows the source has."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "source_size() is not defined")

    def row(self, index: int) -> tuple:
        """One row."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "row(index) is not defined")

    def get_dataset_size(self):
        return self.sampler.count(self.source_size())

    def add_sampler(self, new_sampler: Sampler) -> None:
        """Use another sampler."""
        self.sampler = new_sampler

    use_sampler = add_sampler

    def rows(self, epoch):
        for index in self.sampler.indices(self.source_size(), config.generator(epoch, self._salt)):
            yield self.row(int(index))


def _from_iterable(owner: str, sampler, num_samples) -> Sampler:
    if not hasattr(sampler, "__iter__"):
        raise errors.type_error(
            owner,
            f"sampler must be a Sampler or an iterable of row numbers, but got {type(sampler).__name__}",
        )
    return SubsetSampler([int(i) for i in sampler], num_samples)


class GeneratorDataset(MappableDataset):
    """Rows from a Python object: a function that returns an iterator, an iterable, or one with
    `__getitem__` and `__len__`.

    `column_names`: the columns; `column_types`: dtypes to convert to. Errors: TypeError for another source;
    RuntimeError when a row has another number of columns.
    """

    def __init__(
        self,
        source,
        column_names=None,
        column_types=None,
        schema=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        python_multiprocessing=True,
        max_rowsize=None,
        batch_sampler=None,
        collate_fn=None,
    ):
        if schema is not None:
            raise errors.error(
                errors.NotSupportedError,
                "GeneratorDataset",
                "schema is not taken; give column_names and column_types",
            )
        if batch_sampler is not None or collate_fn is not None:
            raise errors.error(
                errors.NotSupportedError,
                "GeneratorDataset",
                "batch_sampler and collate_fn are not built yet; use batch()",
            )
        if column_names is None:
            raise errors.value_error("GeneratorDataset", "column_names must be given")
        names = [column_names] if isinstance(column_names, str) else list(column_names)
        if len(set(names)) != len(names) or not names:
            raise errors.value_error(
                "GeneratorDataset", f"column_names must be different names, but got {names}"
            )
        self._random_access = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        if (
            not self._random_access
            and not callable(source)
            and not hasattr(source, "__iter__")
            and not hasattr(source, "__next__")
        ):
            raise errors.type_error(
                "GeneratorDataset",
                "source must be callable, iterable or have __getitem__ and __len__, but got "
                f"{type(source).__name__}",
            )
        if not self._random_access and (sampler is not None or shuffle):
            raise errors.error(
                errors.MyceliaRuntimeError,
                "GeneratorDataset",
                "sampler and shuffle need a source with __getitem__ and __len__",
            )
        super().__init__(names, num_samples, shuffle, sampler, num_shards, shard_id)
        self.source, self.num_samples = source, num_samples
        self._types = None if column_types is None else [_np_type(t) for t in column_types]
        self._counted: int | None = None

    def _shuffles_by_default(self):
        return self._random_access

    def source_size(self):
        return len(self.source)

    def _checked(self, row) -> tuple:
        row = row if isinstance(row, tuple) else (row,)
        if len(row) != len(self._columns):
            raise errors.error(
                errors.MyceliaRuntimeError,
                "GeneratorDataset",
                f"a row has {len(row)} columns, but column_names names {len(self._columns)}",
            )
        arrays = tuple(_array(c) for c in row)
        if self._types is not None:
            arrays = tuple(a.astype(t, copy=False) for a, t in zip(arrays, self._types))
        return arrays

    def row(self, index):
        return self._checked(self.source[index])

    def rows(self, epoch):
        if self._random_access:
            yield from super().rows(epoch)
            return
        iterator = iter(self.source() if callable(self.source) else self.source)
        for count, row in enumerate(iterator):
            if self.num_samples and count >= self.num_samples:
                return
            yield self._checked(row)

    def get_dataset_size(self):
        if self._random_access:
            return super().get_dataset_size()
        if hasattr(self.source, "__len__"):
            return min(len(self.source), self.num_samples or len(self.source))
        if self._counted is None:
            self._counted = sum(1 for _ in self.rows(0))
        return self._counted


def _np_type(value):
    from mycelia.dtypes import as_dtype

    return as_dtype(value).np


def _array(value) -> np.ndarray:
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    array = np.asarray(value)
    if array.dtype == object:
        raise errors.type_error(
            "GeneratorDataset", f"a column must be a number, array or text, but got {type(value).__name__}"
        )
    return array


class NumpySlicesDataset(MappableDataset):
    """Rows along the first axis of arrays: one array or list, a tuple of them, or a dict name -> array."""

    def __init__(
        self,
        data,
        column_names=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
    ):
        if isinstance(data, dict):
            names, arrays = list(data), [np.asarray(v) for v in data.values()]
        elif isinstance(data, tuple):
            arrays = [np.asarray(v) for v in data]
            names = [f"column_{i}" for i in range(len(arrays))]
        else:
            arrays, names = [np.asarray(data)], ["column_0"]
        if column_names is not None and not isinstance(data, dict):
            names = [column_names] if isinstance(column_names, str) else list(column_names)
        if len(names) != len(arrays):
            raise errors.value_error(
                "NumpySlicesDataset", f"{len(arrays)} columns need as many column_names, but got {names}"
            )
        if not arrays or any(a.ndim == 0 for a in arrays):
            raise errors.value_error("NumpySlicesDataset", "data must be arrays of rank 1 or more")
        sizes = {len(a) for a in arrays}
        if len(sizes) > 1:
            raise errors.value_error(
                "NumpySlicesDataset", f"the columns have different lengths {[len(a) for a in arrays]}"
            )
        super().__init__(names, num_samples, shuffle, sampler, num_shards, shard_id)
        self._arrays = arrays
        if isinstance(self.sampler, PKSampler) and self.sampler.class_column in names:
            self.sampler.labels = arrays[names.index(self.sampler.class_column)]

    def source_size(self):
        return len(self._arrays[0])

    def row(self, index):
        return tuple(np.asarray(a[index]) for a in self._arrays)


_IDX_TYPES = {8: np.uint8, 9: np.int8, 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def read_idx(path) -> np.ndarray:
    """An IDX file (MNIST's format, http://yann.lecun.com/exdb/mnist), also gzipped.
    Errors: ValueError for a bad file.
    """
    path = Path(path)
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            data = file.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as e:
        raise errors.error(
            errors.FileFormatError, path.name, f"the compressed data is damaged: {e}"
        ) from None
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _IDX_TYPES:
        raise errors.error(errors.FileFormatError, path.name, "not an IDX file")
    rank = data[3]
    if len(data) < 4 + 4 * rank:
        raise errors.error(errors.FileFormatError, path.name, "the IDX header is cut off")
    shape = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
    dtype = np.dtype(_IDX_TYPES[data[2]])
    expected = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    body = data[4 + 4 * rank :]
    if len(body) != expected:
        raise errors.error(
            errors.FileFormatError,
            path.name,
            f"the IDX file should hold {expected} bytes of data, but holds {len(body)}",
        )
    return np.frombuffer(body, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def write_idx(path, array: np.ndarray) -> None:
    """Write uint8 data as an IDX file, by a temporary file and a rename."""
    array = np.ascontiguousarray(array, np.uint8)
    path = Path(path)
    temporary = path.with_name(path.name + ".tmp")
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    try:
        temporary.write_bytes(header + array.tobytes())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class MnistDataset(MappableDataset):
    """MNIST's IDX files in a directory: columns image (uint8 [28, 28, 1]) and label (uint32 []).

    `usage`: 'train', 'test' or 'all' (default).
    Errors: ValueError for a missing directory, files or bad contents.
    """

    _FILES = {
        "train": ("train-images*idx3-ubyte*", "train-labels*idx1-ubyte*"),
        "test": ("t10k-images*idx3-ubyte*", "t10k-labels*idx1-ubyte*"),
    }

    def __init__(
        self,
        dataset_dir,
        usage=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        usage = "all" if usage is None else usage
        if usage not in ("train", "test", "all"):
            raise errors.one_of(usage, ["train", "test", "all"], subject="MnistDataset", what="usage")
        directory = Path(dataset_dir)
        if not directory.is_dir():
            raise errors.value_error("MnistDataset", f"dataset_dir {str(dataset_dir)!r} is not a directory")
        if cache is not None:
            raise errors.error(
                errors.NotSupportedError, "MnistDataset", "cache: the dataset cache is not built yet"
            )
        super().__init__(["image", "label"], num_samples, shuffle, sampler, num_shards, shard_id)
        self.dataset_dir, self.usage = directory, usage
        images, labels = [], []
        for part in ("train", "test") if usage == "all" else (usage,):
            found = [self._find(directory, pattern) for pattern in self._FILES[part]]
            if usage == "all" and not all(found):
                continue
            if not all(found):
                raise errors.value_error(
                    "MnistDataset", f"{directory} holds no {part} files ({' and '.join(self._FILES[part])})"
                )
            images.append(read_idx(found[0]))
            labels.append(read_idx(found[1]))
            if images[-1].ndim != 3 or labels[-1].shape != images[-1].shape[:1]:
                raise errors.error(
                    errors.FileFormatError,
                    found[0].name,
                    f"images {images[-1].shape} and labels {labels[-1].shape} do not fit together",
                )
        if not images:
            raise errors.value_error("MnistDataset", f"{directory} holds no MNIST files")
        self._images = np.concatenate(images)[..., None]
        self._labels = np.concatenate(labels).astype(np.uint32)
        if isinstance(self.sampler, PKSampler):
            self.sampler.labels = self._labels

    @staticmethod
    def _find(directory: Path, pattern: str) -> Path | None:
        return next(iter(sorted(directory.glob(pattern))), None)

    def source_size(self):
        return len(self._labels)

    def row(self, index):
        return self._images[index], np.asarray(self._labels[index])

    def num_classes(self):
        return int(len(np.unique(self._labels)))
