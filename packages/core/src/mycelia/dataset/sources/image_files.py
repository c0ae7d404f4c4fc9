"""Sets of images in files: CIFAR's binary batches, a directory per class, images made up from numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mycelia.dataset import nodes
from mycelia.dataset.sources.described import image_of
from mycelia.dataset.sources.mnist import usage_of
from mycelia.dataset.sources.numbered import MappableDataset, directory
from mycelia.engine.base import errors


class _CifarDataset(MappableDataset):
    """Records of label bytes and 3 x 32 x 32 pixels."""

    _LABELS = 1
    _COLUMNS: tuple[str, ...] = ("image", "label")
    _FILES: dict[str, tuple[str, ...]] = {}

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
        self.usage = usage_of(owner, usage, ("train", "test", "all"))
        super().__init__(
            list(self._COLUMNS),
            num_samples,
            shuffle,
            sampler,
            num_shards,
            shard_id,
            num_parallel_workers,
            cache,
        )
        self._data: np.ndarray | None = None

    def _records(self) -> np.ndarray:
        if self._data is not None:
            return self._data
        owner = type(self).__name__
        parts = ("train", "test") if self.usage == "all" else (self.usage,)
        paths = [self.dataset_dir / name for part in parts for name in self._FILES[part]]
        paths = [p for p in paths if p.is_file()]
        if not paths:
            raise errors.runtime_error(
                owner, f"{self.dataset_dir} holds no .bin files of usage {self.usage!r}"
            )
        size = self._LABELS + 3072
        found = []
        for path in paths:
            data = np.fromfile(path, np.uint8)
            if not data.size or data.size % size:
                raise errors.runtime_error(
                    owner, f"{path.name} holds {data.size} bytes, not a number of records of {size} bytes"
                )
            found.append(data.reshape(-1, size))
        self._data = np.concatenate(found)
        return self._data

    def labels(self):
        return self._records()[:, 0]

    def source_size(self):
        return len(self._records())

    def row(self, index):
        record = self._records()[index]
        image = record[self._LABELS :].reshape(3, 32, 32).transpose(1, 2, 0)
        labels = (np.asarray(v, np.uint32) for v in record[: self._LABELS])
        return (np.ascontiguousarray(image), *labels)


class Cifar10Dataset(_CifarDataset):
    """CIFAR-10's binary version: columns image (uint8 [32, 32, 3]) and label (uint32 []).

    `usage`: 'train', 'test' or 'all'. Errors: ValueError for a missing directory or a wrong usage,
    RuntimeError, when reading, for missing or damaged files.
    """

    _FILES = {"train": tuple(f"data_batch_{i}.bin" for i in range(1, 7)), "test": ("test_batch.bin",)}


class Cifar100Dataset(_CifarDataset):
    """CIFAR-100's binary version: columns image (uint8 [32, 32, 3]), coarse_label, fine_label (uint32 [])."""

    _LABELS = 2
    _COLUMNS = ("image", "coarse_label", "fine_label")
    _FILES = {"train": ("train.bin",), "test": ("test.bin",)}


class ImageFolderDataset(MappableDataset):
    """A directory per class, classes in the order of their names: columns image and label (int32 []).

    The image is the file's bytes (uint8 [n]), with `decode` uint8 [H, W, 3]. `extensions`: endings to take
    (all by default); `class_indexing`: {directory: class number}, only these. `decrypt`: function of a path
    that gives the bytes. Errors: TypeError, ValueError; RuntimeError for files that cannot be read.
    """

    def __init__(
        self,
        dataset_dir,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        extensions=None,
        class_indexing=None,
        decode=False,
        num_shards=None,
        shard_id=None,
        cache=None,
        decrypt=None,
    ):
        owner = "ImageFolderDataset"
        self.dataset_dir = directory(owner, "dataset_dir", dataset_dir)
        nodes.of_type(owner, "decode", decode, bool)
        if extensions is not None:
            nodes.of_type(owner, "extensions", extensions, list)
            for item in extensions:
                nodes.of_type(owner, "every element of extensions", item, str)
        if class_indexing is not None:
            nodes.of_type(owner, "class_indexing", class_indexing, dict)
        if decrypt is not None and not callable(decrypt):
            raise errors.type_error(owner, f"decrypt must be a function, but got {decrypt!r}")
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
        self.extensions, self.class_indexing = extensions, class_indexing
        self.decode, self.decrypt = decode, decrypt
        self._found: tuple[list[Path], np.ndarray] | None = None

    def get_class_indexing(self):
        if self.class_indexing:
            return dict(self.class_indexing)
        names = sorted(p.name for p in self.dataset_dir.iterdir() if p.is_dir())
        return {name: number for number, name in enumerate(names)}

    def num_classes(self):
        return len(self.get_class_indexing())

    def _files(self) -> tuple[list[Path], np.ndarray]:
        if self._found is None:
            paths, labels = [], []
            classes = self.get_class_indexing()
            for name in sorted(classes):
                for path in sorted((self.dataset_dir / name).rglob("*")):
                    if path.is_file() and (not self.extensions or path.suffix in self.extensions):
                        paths.append(path)
                        labels.append(classes[name])
            if not paths:
                raise errors.runtime_error(
                    "ImageFolderDataset", f"{self.dataset_dir} holds no images in directories of classes"
                )
            self._found = paths, np.asarray(labels, np.int32)
        return self._found

    def labels(self):
        return self._files()[1]

    def source_size(self):
        return len(self._files()[0])

    def file_of(self, index):
        return str(self._files()[0][index])

    def row(self, index):
        paths, labels = self._files()
        image = image_of("ImageFolderDataset", paths[index], self.decode, self.decrypt)
        return image, np.asarray(labels[index])


class FakeImageDataset(MappableDataset):
    """Random images, the same for the same `base_seed`: columns image (uint8) and label (uint32 [])."""

    def __init__(
        self,
        num_images=1000,
        image_size=(224, 224, 3),
        num_classes=10,
        base_seed=0,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        owner = "FakeImageDataset"
        self.num_images = nodes.integer(owner, "num_images", num_images, 1)
        nodes.of_type(owner, "image_size", image_size, list, tuple)
        if len(image_size) != 3:
            raise errors.value_error(
                owner, f"image_size should be a list or tuple of length 3, but got {len(image_size)}"
            )
        self.image_size = tuple(
            nodes.integer(owner, f"image_size[{i}]", n, 1) for i, n in enumerate(image_size)
        )
        self.classes = nodes.integer(owner, "num_classes", num_classes, 1)
        self.base_seed = nodes.integer(owner, "base_seed", base_seed, 0)
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

    def labels(self):
        return np.asarray([self.row(i)[1] for i in range(self.num_images)])

    def source_size(self):
        return self.num_images

    def row(self, index):
        rng = np.random.default_rng((self.base_seed, index))
        label = np.asarray(rng.integers(self.classes), np.uint32)
        return rng.integers(0, 256, self.image_size, np.uint8), label
