"""Sets of small images as numbers in few files: STL-10, USPS, Semeion."""

from __future__ import annotations

import numpy as np

from mycelia.dataset.sources.described import (
    FILES,
    MAPPED,
    ListedDataset,
    RecordsDataset,
    existing_file,
    lines,
)
from mycelia.engine.base import errors


class STL10Dataset(ListedDataset):
    """STL-10's binary version: columns image (uint8 [96, 96, 3]) and label (int32 []), -1 without one.

    `usage`: 'train', 'test', 'unlabeled', 'train+unlabeled' or 'all', the default.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {MAPPED}"
    CHOICES = {"usage": ("train", "test", "unlabeled", "train+unlabeled", "all")}
    _ALL = ("test", "train", "unlabeled")
    _SIZE = 96 * 96 * 3

    def check(self):
        if self.usage is not None:
            for part in self._parts():
                for kind in ("X", "y") if part != "unlabeled" else ("X",):
                    existing_file("STL10Dataset", "dataset_dir", str(self.dataset_dir / f"{part}_{kind}.bin"))

    def _parts(self):
        return self._ALL if self.usage in (None, "all") else self.usage.split("+")

    def entries(self):
        found = []
        for part in self._parts():
            path = self.dataset_dir / f"{part}_X.bin"
            data = np.fromfile(path, np.uint8)
            if not data.size or data.size % self._SIZE:
                raise self.problem(
                    f"{path} holds {data.size} bytes, no number of images of {self._SIZE} bytes"
                )
            # Pixels are stored by column.
            images = data.reshape(-1, 3, 96, 96).transpose(0, 3, 2, 1)
            labels = np.full(len(images), -1, np.int32)
            if part != "unlabeled":
                labels = np.fromfile(self.dataset_dir / f"{part}_y.bin", np.uint8).astype(np.int32) - 1
            if len(labels) != len(images):
                raise self.problem(f"{path}: there are {len(images)} images, but {len(labels)} labels")
            found += list(zip(images, labels))
        return found

    def labels(self):
        return np.asarray([label for _, label in self._entries])

    def read(self, entry):
        image, label = entry
        return np.ascontiguousarray(image), np.asarray(label)


class SemeionDataset(ListedDataset):
    """Semeion: digits in black and white. Columns image (uint8 [16, 16]) and label (uint32 [])."""

    ARGUMENTS = f"dataset_dir, {MAPPED}"

    def entries(self):
        path = self.dataset_dir / "semeion.data"
        found = []
        for number, line in enumerate(lines(path), 1):
            try:
                values = np.asarray(line.split(), np.float64)
            except ValueError:
                values = np.zeros(0)
            if values.size != 266 or not values[256:].any():
                raise self.problem(f"{path}, line {number}: no 256 pixels and ten marks of the digit")
            found.append((values[:256].astype(np.uint8).reshape(16, 16), int(values[256:].argmax())))
        return found

    def labels(self):
        return np.asarray([label for _, label in self._entries])

    def read(self, entry):
        return entry[0], np.asarray(entry[1], np.uint32)


class USPSDataset(RecordsDataset):
    """USPS in the format of libsvm: files 'usps' and 'usps.t'. Columns image (uint8 [16, 16, 1]), label
    (uint32 []).
    """

    ARGUMENTS = f"dataset_dir, usage=None, {FILES}"
    COLUMNS = ("image", "label")
    CHOICES = {"usage": ("train", "test", "all")}
    MEANS = {"usage": "all"}

    def files(self):
        names = {"train": ("usps",), "test": ("usps.t",), "all": ("usps", "usps.t")}[self.usage]
        return [str(self.dataset_dir / name) for name in names]

    def read(self, path):
        for number, line in enumerate(lines(path), 1):
            label, *pixels = line.split()
            try:
                pairs = [pixel.split(":") for pixel in pixels]
                places = [int(place) for place, _ in pairs]
                values = np.asarray([value for _, value in pairs], np.float32).astype(np.float64)
                digit = int(label) - 1  # classes are numbered from 1
            except ValueError:
                places = []
            if places != list(range(1, 257)):
                raise errors.runtime_error("USPSDataset", f"{path}, line {number}: no class with 256 pixels")
            image = ((values + 1) / 2 * 255).astype(np.uint8).reshape(16, 16, 1)
            yield image, np.asarray(digit, np.uint32)
