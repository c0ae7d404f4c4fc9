"""Sets of images that belong together: street scenes with their maps, large and small, patches."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np

from mycelia.dataset.sources.described import DECODED, MAPPED, ListedDataset, contents, text
from mycelia.dataset.sources.vision.folders import files_of, folders_of
from mycelia.engine.base import errors

_DECODED = DECODED.replace("decode=False", "decode=None")


class CityscapesDataset(ListedDataset):
    """Cityscapes: columns image and task, an image (uint8), for the task 'polygon' JSON as text.

    `quality_mode` 'fine' with `usage` 'train', 'test', 'val', 'all', or 'coarse' with 'train', 'train_extra',
    'val', 'all'; `task`: 'instance', 'semantic', 'polygon', 'color'.
    """

    ARGUMENTS = f"dataset_dir, usage='train', quality_mode='fine', task='instance', {_DECODED}"
    COLUMNS = ("image", "task")
    CHOICES = {
        "quality_mode": ("fine", "coarse"),
        "task": ("instance", "semantic", "polygon", "color"),
    }
    _PARTS = {"fine": ("train", "test", "val"), "coarse": ("train", "train_extra", "val")}
    _FILES = {
        "instance": "instanceIds.png",
        "semantic": "labelIds.png",
        "polygon": "polygons.json",
        "color": "color.png",
    }

    def check(self):
        self.choose("usage", self.usage, (*self._PARTS[self.quality_mode], "all"))

    def entries(self):
        truth = f"gt{self.quality_mode.capitalize()}"
        found = []
        for part in self._PARTS[self.quality_mode] if self.usage == "all" else (self.usage,):
            for city in folders_of(self.dataset_dir / "leftImg8bit" / part):
                for path in files_of(city, ".png"):
                    name = path.name.removesuffix("_leftImg8bit.png")
                    file = f"{name}_{truth}_{self._FILES[self.task]}"
                    found.append((path, self.dataset_dir / truth / part / city.name / file))
        missing = next((task for _, task in found if not task.is_file()), None)
        if missing is not None:
            raise self.problem(f"{missing} is missing")
        return found

    def read(self, entry):
        path, task = entry
        if self.task != "polygon":
            return self.image(path), self.image(task)
        try:
            table = json.loads(contents(task))
        except ValueError as e:
            raise self.problem(f"{task} is no JSON: {e}") from None
        line = json.dumps(table, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        return self.image(path), text(line)


class DIV2KDataset(ListedDataset):
    """DIV2K: columns hr_image and lr_image, a large image and what `downgrade` made of it at 1 / `scale`.

    `usage`: 'train', 'valid' or 'all'. ValueError for a scale that the way of making small has not.
    """

    ARGUMENTS = f"dataset_dir, usage='train', downgrade='bicubic', scale=2, {_DECODED}"
    COLUMNS = ("hr_image", "lr_image")
    CHOICES = {
        "usage": ("train", "valid", "all"),
        "downgrade": ("bicubic", "unknown", "mild", "difficult", "wild"),
        "scale": (2, 3, 4, 8),
    }
    _SCALES = {"bicubic": (2, 3, 4, 8), "unknown": (2, 3, 4), "mild": (4,), "difficult": (4,), "wild": (4,)}

    def check(self):
        if self.scale not in self._SCALES[self.downgrade]:
            raise errors.value_error(
                "DIV2KDataset",
                f"scale must be one of {self._SCALES[self.downgrade]} for {self.downgrade!r}, "
                f"but got {self.scale}",
            )

    def entries(self):
        return [
            (path, self._small(part, path.stem))
            for part in (("train", "valid") if self.usage == "all" else (self.usage,))
            for path in files_of(self.dataset_dir / f"DIV2K_{part}_HR", ".png")
        ]

    def _small(self, part: str, name: str):
        root, scale = self.dataset_dir / f"DIV2K_{part}_LR_{self.downgrade}", self.scale
        if scale == 8:
            return self.dataset_dir / f"DIV2K_{part}_LR_x8" / f"{name}x8.png"
        if self.downgrade in ("bicubic", "unknown"):
            return root / f"X{scale}" / f"{name}x{scale}.png"
        return root / f"{name}x4{self.downgrade[0]}.png"

    def read(self, entry):
        return tuple(self.image(path) for path in entry)


class PhotoTourDataset(ListedDataset):
    """Photo Tourism patches (uint8 [64, 64, 1]), 16 x 16 in each bitmap. `usage` 'train': column image;
    'test': image1, image2, matches (uint32 [], 1 for the same point).
    """

    ARGUMENTS = f"dataset_dir, name, usage=None, {MAPPED}"
    CHOICES = {
        "name": ("notredame", "yosemite", "liberty", "notredame_harris", "yosemite_harris", "liberty_harris"),
        "usage": ("train", "test"),
    }
    MEANS = {"usage": "train"}
    _SIDE, _PATCH = 16, 64

    def columns(self):
        return ("image",) if self.usage == "train" else ("image1", "image2", "matches")

    def entries(self):
        root = self.dataset_dir / self.name
        self._bitmaps = files_of(root, ".bmp")
        self._bitmap = lru_cache(32)(self._pixels)
        points = self._numbers(root / "info.txt", 2)[:, 0]
        self._points = points
        pairs = self._numbers(root / "m50_100000_100000_0.txt", 7)
        if self.usage == "train":
            return list(range(len(points)))
        return [(int(p[0]), int(p[3]), p[1] == p[4]) for p in pairs]

    def _numbers(self, path, width: int) -> np.ndarray:
        try:
            values = np.asarray(contents(path).split(), np.int64)
            return values.reshape(-1, width)
        except ValueError as e:
            raise self.problem(f"{path} holds no lines of {width} numbers: {e}") from None

    def labels(self):
        return self._points if self.usage == "train" else np.asarray([same for *_, same in self._entries])

    def _pixels(self, number: int) -> np.ndarray:
        from mycelia.dataset.vision.base import opened_image

        try:
            path = self._bitmaps[number]
            with opened_image(path, type(self).__name__) as image:
                return np.asarray(image.convert("L"))
        except IndexError as e:
            raise self.problem(f"bitmap {number} cannot be read: {e}") from None

    def _patch(self, index: int) -> np.ndarray:
        number, place = divmod(index, self._SIDE**2)
        y, x = (self._PATCH * n for n in divmod(place, self._SIDE))
        patch = self._bitmap(number)[y : y + self._PATCH, x : x + self._PATCH, None]
        return np.ascontiguousarray(patch)

    def read(self, entry):
        if self.usage == "train":
            return (self._patch(entry),)
        first, second, same = entry
        return self._patch(first), self._patch(second), np.asarray(same, np.uint32)
