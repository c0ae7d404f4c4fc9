"""MNIST and the sets in its format: IDX files of images and labels."""

from __future__ import annotations

import numpy as np

from mycelia.dataset import checks, nodes
from mycelia.dataset.sources.numbered import MappableDataset, directory
from mycelia.engine.base import errors
from mycelia.io.idx import read_idx


class MnistDataset(MappableDataset):
    """MNIST's IDX files in a directory: columns image (uint8 [28, 28, 1]) and label (uint32 []).

    `usage`: 'train', 'test' or 'all' (default). Errors: ValueError for a missing directory or a wrong usage,
    RuntimeError, when reading, for missing and damaged files.
    """

    _FILES = {  # as the set is published; a name with a dot in the middle is common too
        "train": ("train-images*idx3-ubyte*", "train-labels*idx1-ubyte*"),
        "test": ("t10k-images*idx3-ubyte*", "t10k-labels*idx1-ubyte*"),
    }
    _USAGES = ("train", "test", "all")

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
        owner = type(self).__name__
        self.dataset_dir = directory(owner, "dataset_dir", dataset_dir)
        self.usage = usage_of(owner, usage, self._USAGES)
        super().__init__(
            ["image", "label"],
            num_samples,
            shuffle,
            sampler,
            num_shards,
            shard_id,
            num_parallel_workers,
            cache,
        )
        self._data: tuple[np.ndarray, np.ndarray] | None = None

    def _patterns(self) -> list[tuple[str, str]]:
        return [self._FILES[p] for p in (("train", "test") if self.usage == "all" else (self.usage,))]

    def _load(self) -> tuple[np.ndarray, np.ndarray]:
        """Images and labels, read once."""
        if self._data is not None:
            return self._data
        images, labels = [], []
        for patterns in self._patterns():
            found = [next(iter(sorted(self.dataset_dir.glob(p))), None) for p in patterns]
            if not all(found):
                if self.usage == "all":
                    continue
                raise errors.runtime_error(
                    type(self).__name__, f"{self.dataset_dir} holds no files {' and '.join(patterns)}"
                )
            try:
                images.append(read_idx(found[0]))
                labels.append(read_idx(found[1]))
            except errors.FileFormatError as e:
                raise errors.runtime_error(type(self).__name__, f"{e.subject}: {e.message}") from None
            except OSError as e:
                raise errors.runtime_error(type(self).__name__, f"{e.filename}: {e.strerror}") from None
            if images[-1].ndim != 3 or labels[-1].shape[:1] != images[-1].shape[:1]:
                raise errors.runtime_error(
                    type(self).__name__,
                    f"{found[0].name}: images {images[-1].shape} and labels {labels[-1].shape} "
                    "do not fit together",
                )
        if not images:
            raise errors.runtime_error(type(self).__name__, f"{self.dataset_dir} holds no files of the set")
        self._data = np.concatenate(images)[..., None], self._labels_of(np.concatenate(labels))
        return self._data

    def _labels_of(self, labels: np.ndarray) -> np.ndarray:
        return labels.astype(np.uint32)

    def labels(self):
        return self._load()[1]

    def source_size(self):
        return len(self._load()[1])

    def file_of(self, index):
        return str(self.dataset_dir)

    def row(self, index):
        images, labels = self._load()
        return images[index], np.asarray(labels[index])


class FashionMnistDataset(MnistDataset):
    """Fashion-MNIST: ten kinds of clothes in MNIST's files and format."""


class KMnistDataset(MnistDataset):
    """Kuzushiji-MNIST: ten cursive characters in MNIST's files and format."""


class EMnistDataset(MnistDataset):
    """EMNIST: letters and digits. `name`: 'byclass', 'bymerge', 'balanced', 'letters', 'digits', 'mnist'."""

    _NAMES = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")

    def __init__(
        self,
        dataset_dir,
        name,
        usage=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        self.name = usage_of("EMnistDataset", name, self._NAMES, "name")
        super().__init__(
            dataset_dir,
            usage,
            num_samples,
            num_parallel_workers,
            shuffle,
            sampler,
            num_shards,
            shard_id,
            cache,
        )

    def _patterns(self):
        parts = ("train", "test") if self.usage == "all" else (self.usage,)
        start = f"emnist-{self.name}"
        return [(f"{start}-{p}-images-idx3-ubyte*", f"{start}-{p}-labels-idx1-ubyte*") for p in parts]


class QMnistDataset(MnistDataset):
    """QMNIST: MNIST with its history. `usage`: 'train', 'test', 'test10k', 'test50k', 'nist' or 'all'.

    With `compat` the label is a class number (uint32 []), without it the eight numbers of each image.
    """

    _USAGES = ("train", "test", "test10k", "test50k", "nist", "all")
    _QFILES = {
        "train": ("qmnist-train-images-idx3-ubyte*", "qmnist-train-labels-idx2-int*"),
        "test": ("qmnist-test-images-idx3-ubyte*", "qmnist-test-labels-idx2-int*"),
        "nist": ("xnist-images-idx3-ubyte*", "xnist-labels-idx2-int*"),
    }

    def __init__(
        self,
        dataset_dir,
        usage=None,
        compat=True,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        self.compat = nodes.of_type("QMnistDataset", "compat", compat, bool)
        super().__init__(
            dataset_dir,
            usage,
            num_samples,
            num_parallel_workers,
            shuffle,
            sampler,
            num_shards,
            shard_id,
            cache,
        )

    def _patterns(self):
        part = {"test10k": "test", "test50k": "test"}.get(self.usage, self.usage)
        return list(self._QFILES.values()) if part == "all" else [self._QFILES[part]]

    def _labels_of(self, labels):
        return labels[:, 0].astype(np.uint32) if self.compat else labels.astype(np.uint32)

    def _load(self):
        if self._data is None:
            images, labels = super()._load()
            cut = {"test10k": slice(0, 10000), "test50k": slice(10000, None)}.get(self.usage, slice(None))
            self._data = images[cut], labels[cut]
        return self._data


def usage_of(owner: str, value, choices, name: str = "usage", default: str = "all") -> str:
    """One of the choices, None for the default. Errors: TypeError, ValueError."""
    value = default if value is None else value
    nodes.of_type(owner, name, value, str)
    return checks.choice(owner, name, value, choices)
