"""Well-known data sets as MindRecord files: CIFAR, MNIST, ImageNet folders, CSV tables.

Each class has `transform()`, which writes the files, and raises what is wrong with the source.
"""

from __future__ import annotations

import csv
import io
import math
import os
import pickle
import re
from collections.abc import Iterable, Iterator

import numpy as np

from mycelia.engine.base import errors, log
from mycelia.io.idx import read_idx
from mycelia.io.reading import damaged, of_file
from mycelia.mindrecord import exceptions
from mycelia.mindrecord.writer import FileWriter, checked_name, commit_together

_AT_ONCE = 256  # rows handed to the writer in one call


def write(
    destination: str, schema: dict, description: str, index: list[str], rows: Iterable[dict], shards: int = 1
) -> None:
    """Write rows as a data set."""
    prepared(destination, schema, description, index, rows, shards).commit()


def prepared(
    destination: str, schema: dict, description: str, index: list[str], rows: Iterable[dict], shards: int = 1
) -> FileWriter:
    """A writer that has all rows and waits for its commit."""
    writer = FileWriter(destination, shards)
    writer.add_schema(schema, description)
    if index:
        writer.add_index(index)
    waiting = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == _AT_ONCE:
            writer.write_raw_data(waiting)
            waiting = []
    if waiting:
        writer.write_raw_data(waiting)
    return writer


def _partitions(number) -> int:
    if not isinstance(number, int):
        raise errors.value_error("The parameter partition_number must be int")
    return number


def _jpeg(pixels: np.ndarray) -> bytes:
    try:
        from PIL import Image
    except ImportError:
        raise errors.error(
            errors.MyceliaImportError,
            "mindrecord",
            "images are written as JPEG by 'pillow': pip install pillow",
        ) from None
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=95)
    return file.getvalue()


# ---- CIFAR: pickled dicts of rows of 3072 bytes, channels first ----------------------------------------


class _PlainUnpickler(pickle.Unpickler):
    """Dicts, lists, bytes and arrays only: other objects in a pickle could run any code."""

    _KNOWN = {
        ("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"),
        ("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode"),
        ("numpy.core.numeric", "_frombuffer"), ("numpy._core.numeric", "_frombuffer"),
    }  # fmt: skip

    def find_class(self, module, name):
        if (module, name) not in self._KNOWN:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a CIFAR file")
        return super().find_class(module, name)


def _batch(path: str, labels: dict[str, bytes]) -> tuple[np.ndarray, dict[str, list]]:
    """Images [n, 32, 32, 3] and lists of labels by the names they get."""
    with open(path, "rb") as file:
        try:
            content = _PlainUnpickler(file, encoding="bytes").load()
            images = np.asarray(content[b"data"], np.uint8).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
            found = {name: [int(v) for v in content[key]] for name, key in labels.items()}
            if any(len(values) != len(images) for values in found.values()):
                raise ValueError("images and labels differ in number")
        except Exception as e:  # a pickle calls functions, which raise what they like
            raise damaged(path, f"no CIFAR file of the Python version: {type(e).__name__}: {e}") from None
    return images, found


class _CifarToMR:
    """Writes the training rows to `destination` and the test rows to ``<destination>_test``."""

    labels: dict[str, bytes] = {}  # field -> key in the pickled dict

    def __init__(self, source: str, destination: str):
        self.source, self.destination = checked_name(source), destination
        present = sorted(os.listdir(source))
        self.train = [os.path.join(source, n) for n in present if re.match(self.train_files, n)]
        self.test = [os.path.join(source, n) for n in present if n == self.test_file]
        if not self.train:
            raise exceptions.PathNotExistsError(self.train_files.replace("\\d", "*").rstrip("$"))
        if not self.test:
            raise exceptions.PathNotExistsError(self.test_file)
        checked_name(destination)

    def _rows(self, paths: list[str]) -> Iterator[dict]:
        number = 0
        for path in paths:
            images, labels = _batch(path, self.labels)
            for k, image in enumerate(images):
                row = {name: values[k] for name, values in labels.items()}
                yield {"id": number, "data": _jpeg(image), **row}
                number += 1

    def transform(self, fields: list[str] | None = None) -> None:
        """Write the files; `fields` are the index fields. Errors: ValueError, RuntimeError."""
        if fields is not None and not isinstance(fields, list):
            raise errors.value_error("The parameter fields should be None or list")
        schema = {"id": {"type": "int64"}, "data": {"type": "bytes"}}
        schema.update((name, {"type": "int64"}) for name in self.labels)
        parts = (self.train, self.destination), (self.test, self.destination + "_test")
        about = schema, "CIFAR images and labels", fields or []
        commit_together([prepared(target, *about, self._rows(paths)) for paths, target in parts])

    run = transform


class Cifar10ToMR(_CifarToMR):
    """CIFAR-10, Python version: fields id, label, data (JPEG)."""

    labels = {"label": b"labels"}
    train_files, test_file = r"data_batch_\d$", "test_batch"


class Cifar100ToMR(_CifarToMR):
    """CIFAR-100, Python version: fields id, fine_label, coarse_label, data (JPEG)."""

    labels = {"fine_label": b"fine_labels", "coarse_label": b"coarse_labels"}
    train_files, test_file = r"train$", "test"


# ---- MNIST ---------------------------------------------------------------------------------------------


def _idx(path: str, rank: int) -> np.ndarray:
    """The array of a gzipped IDX file."""
    array = read_idx(path)
    if array.dtype != np.uint8 or array.ndim != rank:
        raise damaged(path, f"no IDX file of MNIST: it holds {array.dtype}{list(array.shape)}")
    return array


class MnistToMR:
    """MNIST's four gzipped files: fields label, data (JPEG).

    Written are ``<destination>_train.mindrecord`` and ``<destination>_test.mindrecord``.
    """

    def __init__(self, source: str, destination: str, partition_number: int = 1):
        self.source, self.destination = checked_name(source), checked_name(destination)
        self.partition_number = _partitions(partition_number)

    def _rows(self, part: str) -> Iterator[dict]:
        path = os.path.join(self.source, f"{part}-%s-idx%d-ubyte.gz")
        images, labels = _idx(path % ("images", 3), 3), _idx(path % ("labels", 1), 1)
        if len(images) != len(labels):
            raise damaged(path % ("labels", 1), f"{len(labels)} labels for {len(images)} images")
        for image, label in zip(images, labels.tolist()):
            yield {"label": label, "data": _jpeg(image)}

    def transform(self) -> None:
        """Write the files. Errors: FileNotFoundError, RuntimeError."""
        schema = {"label": {"type": "int64"}, "data": {"type": "bytes"}}
        parts = ("train", "train"), ("t10k", "test")
        about = schema, "MNIST images and labels", ["label"]
        commit_together(
            [
                prepared(
                    f"{self.destination}_{name}.mindrecord", *about, self._rows(part), self.partition_number
                )
                for part, name in parts
            ]
        )

    run = transform


# ---- ImageNet ------------------------------------------------------------------------------------------


class ImageNetToMR:
    """JPEG files in a directory per class: fields label, file_name, image (the file's bytes).

    `map_file` has lines of a directory's name and its class number. Files are taken whose names end with JPEG
    or jpg; others, empty ones and directories that are missing are left out with a warning.
    """

    def __init__(self, map_file: str, image_dir: str, destination: str, partition_number: int = 1):
        self.map_file, self.image_dir = checked_name(map_file), checked_name(image_dir)
        self.destination = checked_name(destination)
        self.partition_number = _partitions(partition_number)

    def _classes(self) -> list[tuple[str, int]]:
        if not os.path.exists(self.map_file):
            raise errors.error(errors.MyceliaOSError, "ImageNetToMR", f"map file {self.map_file} not exists")
        with of_file(self.map_file), open(self.map_file, encoding="utf-8") as file:
            lines = [line.split() for line in file if line.strip()]
        try:
            return [(name, int(number)) for name, number in lines]
        except ValueError:
            raise damaged(self.map_file, "each line must be a directory and a number") from None

    def _rows(self) -> Iterator[dict]:
        classes = self._classes()
        if not os.path.isdir(self.image_dir):
            raise exceptions.PathNotExistsError(f"not valid image dir in {self.image_dir}")
        there = [(os.path.join(self.image_dir, name), label) for name, label in classes]
        for directory, _ in there:
            if not os.path.isdir(directory):
                log.warning("ImageNetToMR: %s is no directory", directory)
        there = [entry for entry in there if os.path.isdir(entry[0])]
        if not there:
            raise exceptions.PathNotExistsError(f"not valid image dir in {self.image_dir}")
        for directory, label in there:
            for file_name in sorted(os.listdir(directory)):
                path = os.path.join(directory, file_name)
                if not file_name.endswith(("JPEG", "jpg")) or not os.path.getsize(path):
                    log.warning("ImageNetToMR leaves out %s: it is empty, or its name ends otherwise", path)
                    continue
                with open(path, "rb") as file:
                    yield {"label": label, "file_name": path, "image": file.read()}

    def transform(self) -> None:
        """Write the files. Errors: OSError, PathNotExistsError, RuntimeError."""
        schema = {"label": {"type": "int32"}, "image": {"type": "bytes"}, "file_name": {"type": "string"}}
        index = ["label", "file_name"]
        write(self.destination, schema, "images by class", index, self._rows(), self.partition_number)

    run = transform


# ---- CSV -----------------------------------------------------------------------------------------------


_TRUTHS = {"True": 1, "TRUE": 1, "true": 1, "False": 0, "FALSE": 0, "false": 0}
_INT = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
_FLOAT = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)\s*", re.ASCII | re.IGNORECASE)
_MISSING = {
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A",
    "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
}  # fmt: skip


def _typed(values: list[str]) -> tuple[str, list]:
    """A column as int32 if all are true or false, as int64 if all are ints of 64 bits, as float64 if all are
    numbers or missing, else as texts: what pandas makes of them.
    """
    if values and all(v in _TRUTHS for v in values):
        return "int32", [_TRUTHS[v] for v in values]
    if all(map(_INT.fullmatch, values)):
        numbers = [int(v) for v in values]
        fits = all(-(2**63) <= n < 2**63 for n in numbers)
        return ("int64", numbers) if fits else ("string", values)
    if all(v in _MISSING or _FLOAT.fullmatch(v) for v in values):
        return "float64", [math.nan if v in _MISSING else float(v) for v in values]
    return "string", values


class CsvToMR:
    """A CSV table whose first line names the columns; `columns_list`: only these."""

    def __init__(
        self, source: str, destination: str, columns_list: list[str] | None = None, partition_number: int = 1
    ):
        self.source, self.destination = checked_name(source), checked_name(destination)
        if columns_list is not None and not (
            isinstance(columns_list, list) and all(isinstance(c, str) for c in columns_list)
        ):
            raise errors.value_error("The parameter columns_list must be list of str or None")
        self.columns_list, self.partition_number = columns_list, _partitions(partition_number)

    def transform(self) -> None:
        """Write the files. Errors: OSError, ValueError for the names of columns, RuntimeError."""
        if not os.path.exists(self.source):
            raise errors.error(errors.MyceliaOSError, "CsvToMR", f"csv file {self.source} not exists")
        with of_file(self.source):
            self._convert()

    def _convert(self) -> None:
        with open(self.source, encoding="utf-8", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
        if not lines:
            raise damaged(self.source, "the table is empty")
        names, lines = lines[0], lines[1:]
        for number, line in enumerate(lines, 2):
            if len(line) > len(names):
                raise damaged(self.source, f"row {number} has {len(line)} of {len(names)} columns")
            line += [""] * (len(names) - len(line))
        wanted = self.columns_list or names
        for name in wanted:
            if name not in names:
                raise errors.runtime_error("CsvToMR", f"column {name!r} is not among the columns {names}")
            if not name or name[0].isdigit():
                why = f"a column's name must not begin with a number, but {self.source} has {name!r}"
                raise errors.value_error("CsvToMR", why)
        columns = {name: _typed([line[names.index(name)] for line in lines]) for name in wanted}
        schema = {name: {"type": kind} for name, (kind, _) in columns.items()}
        rows = (dict(zip(columns, values)) for values in zip(*(values for _, values in columns.values())))
        write(self.destination, schema, "rows of a table", list(columns), rows, self.partition_number)

    run = transform
