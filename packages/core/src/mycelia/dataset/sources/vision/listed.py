"""Sets of images that a file lists: with attributes, names, captions, labels."""

from __future__ import annotations

import json

import numpy as np

from mycelia.dataset import nodes
from mycelia.dataset.sources.described import (
    DECODED,
    LabelledDataset,
    ListedDataset,
    existing_file,
    lines,
    text,
)
from mycelia.dataset.sources.numbered import directory

# First bytes of JPEG, PNG, GIF and BMP files.
_MAGIC = (b"\xff\xd8\xff", b"\x89PN", b"GIF", b"BM")


def _is_image(path) -> bool:
    with open(path, "rb") as file:
        head = file.read(3)
    if len(head) < 3:
        raise OSError(f"{path} is empty")
    return head.startswith(_MAGIC)


class CelebADataset(ListedDataset):
    """CelebA: images with the attributes of 'list_attr_celeba.txt'. Columns image and attr (uint32 [n], 0 or
    1).

    `usage` other than 'all' needs 'list_eval_partition.txt'. `extensions`: endings to take.
    """

    ARGUMENTS = (
        "dataset_dir, num_parallel_workers=None, shuffle=None, usage='all', sampler=None, decode=False, "
        "extensions=None, num_samples=None, num_shards=None, shard_id=None, cache=None, decrypt=None"
    )
    COLUMNS = ("image", "attr")
    CHOICES = {"usage": ("all", "train", "valid", "test")}
    MEANS = {"usage": "all"}
    BY_CLASS = False

    def entries(self):
        path = self.dataset_dir / "list_attr_celeba.txt"
        _, _, *rows = lines(path) if path.exists() else ("", "")
        parts: dict[str, str] | None = None
        if self.usage != "all":
            listed = lines(self.dataset_dir / "list_eval_partition.txt")
            parts = dict(line.split()[:2] for line in listed)
        wanted = {"train": "0", "valid": "1", "test": "2"}.get(self.usage)
        found = []
        for row in rows:
            name, *values = row.split()
            if self.extensions and not name.endswith(tuple(self.extensions)):
                continue
            if parts is not None and parts.get(name) != wanted:
                continue
            try:
                found.append((name, np.asarray([int(v) > 0 for v in values], np.uint32)))
            except ValueError:
                raise self.problem(f"{path}: {row!r} has an attribute that is no number") from None
        return found

    def path_of(self, name):
        return str(self.dataset_dir / name)

    def read(self, entry):
        name, attributes = entry
        return self.image(self.dataset_dir / name), attributes


class LFWDataset(ListedDataset):
    """Labeled Faces in the Wild. `task` 'people': columns image and label (uint32 []), the line of the name
    in 'lfw-names.txt'; 'pairs': image1, image2 and label, 1 for the same person.

    `usage`: 'train', 'test', 'all' or '10fold'; `image_set`: 'original', 'funneled' or 'deepfunneled'.
    """

    ARGUMENTS = f"dataset_dir, task=None, usage=None, image_set=None, {DECODED}"
    CHOICES = {
        "task": ("people", "pairs"),
        "usage": ("10fold", "train", "test", "all"),
        "image_set": ("original", "funneled", "deepfunneled"),
    }
    MEANS = {"task": "people", "usage": "all", "image_set": "funneled"}
    _FOLDERS = {"original": "lfw", "funneled": "lfw_funneled", "deepfunneled": "lfw-deepfunneled"}
    _ENDS = {"10fold": ("",), "train": ("DevTrain",), "test": ("DevTest",), "all": ("DevTrain", "DevTest")}

    def columns(self):
        return ("image", "label") if self.task == "people" else ("image1", "image2", "label")

    def entries(self):
        found = []
        for end in self._ENDS[self.usage]:
            path = self.dataset_dir / f"{self.task}{end}.txt"
            rows = [line.split() for line in lines(path)]
            try:
                found += self._people(rows) if self.task == "people" else self._pairs(rows)
            except (IndexError, ValueError) as e:
                raise self.problem(f"{path} is damaged: {e}") from None
        names = [line.split()[0] for line in lines(self.dataset_dir / "lfw-names.txt")]
        self._numbers = {name: number for number, name in enumerate(names)}
        return found

    def _people(self, rows: list[list[str]]) -> list[tuple]:
        folds = int(rows.pop(0)[0]) if self.usage == "10fold" else 1
        found = []
        for _ in range(folds):
            count, *rows = rows
            chosen, rows = rows[: int(count[0])], rows[int(count[0]) :]
            found += [(name, number) for name, total in chosen for number in range(1, int(total) + 1)]
        return found

    def _pairs(self, rows: list[list[str]]) -> list[tuple]:
        # A line of three tells two images of one person, a line of four one image each of two.
        pairs = []
        for first, number, *other in rows[1:]:
            second, its_number = (first, other[0]) if len(other) == 1 else other
            pairs.append((first, int(number), second, int(its_number)))
        return pairs

    def _face(self, name: str, number: int) -> np.ndarray:
        return self.image(self.dataset_dir / self._FOLDERS[self.image_set] / name / f"{name}_{number:04}.jpg")

    def read(self, entry):
        if self.task == "people":
            name, number = entry
            return self._face(name, number), np.asarray(self._numbers.get(name, 0), np.uint32)
        first, number, second, its_number = entry
        same = np.asarray(first == second, np.uint32)
        return self._face(first, number), self._face(second, its_number), same


class ManifestDataset(LabelledDataset):
    """Images of a manifest: a JSON object per line with 'source', 'usage' and 'annotation', a list of
    {'name'}. Columns image and label (int32 [], for several annotations [n]).

    `class_indexing`: {class: number}, only these; by default classes are numbered by name. Errors: TypeError,
    ValueError; RuntimeError for a manifest that does not fit or a missing image.
    """

    ARGUMENTS = (
        "dataset_file, usage='train', num_samples=None, num_parallel_workers=None, shuffle=None, "
        "sampler=None, class_indexing=None, decode=False, num_shards=None, shard_id=None, cache=None"
    )
    MEANS = {"usage": "train"}
    LABEL = "int32"

    def check(self):
        nodes.of_type("ManifestDataset", "usage", self.usage, str)

    def entries(self):
        found = []
        for line in lines(self.dataset_file):
            try:
                table = json.loads(line)
                source, usage = table.get("source", ""), table.get("usage", "").lower()
                names = [note["name"] for note in table["annotation"]] if usage == self.usage.lower() else []
            except (ValueError, KeyError, TypeError, AttributeError) as e:
                raise self.problem(
                    f"{self.dataset_file}: {line!r} is no image with annotations: {e!r}"
                ) from None
            names = [n for n in names if not self.class_indexing or n in self.class_indexing]
            if _is_image(source) and names:
                found.append((source, names))
        numbers = self.class_indexing or {
            name: number for number, name in enumerate(sorted({n for _, names in found for n in names}))
        }
        self._numbers = numbers
        labels = [[numbers[name] for name in names] for _, names in found]
        return [(path, label[0] if len(label) == 1 else label) for (path, _), label in zip(found, labels)]

    def labels(self):
        first = [label[0] if isinstance(label, list) else label for _, label in self._entries]
        return np.asarray(first)

    def get_class_indexing(self):
        """Number of each class by name."""
        return dict(self._numbers) if self._entries else {}

    def num_classes(self):
        return len(self.get_class_indexing())


class FlickrDataset(ListedDataset):
    """Flickr8k and Flickr30k: images with the captions of `annotation_file`, lines '<image>#<n>\\t<caption>'.
    Columns image and annotation (text [n]), by the name of the image.
    """

    ARGUMENTS = f"dataset_dir, annotation_file, {DECODED.replace('decode=False', 'decode=None')}"
    COLUMNS = ("image", "annotation")

    def entries(self):
        found: dict = {}
        for line in lines(self.annotation_file):
            name, _, caption = line.partition("\t")
            if len(name) < 3 or not caption:
                raise self.problem(f"{self.annotation_file}: {line!r} is no image and caption")
            found.setdefault(self.dataset_dir / name[:-2], []).append(caption)
        return [(path, found[path]) for path in sorted(found) if _is_image(path)]

    def read(self, entry):
        path, captions = entry
        return self.image(path), np.asarray(captions)


class SBUDataset(ListedDataset):
    """SBU Captioned Photos: images in 'sbu_images' that are there of those which the list of addresses names.
    Columns image and caption (text).
    """

    ARGUMENTS = f"dataset_dir, {DECODED}"
    COLUMNS = ("image", "caption")
    _HOST = len("http://static.flickr.co")  # the file's name starts with the last letter of the host

    def check(self):
        directory("SBUDataset", "dataset_dir", self.dataset_dir / "sbu_images")
        self._lists = [
            self.dataset_dir / f"SBU_captioned_photo_dataset_{k}.txt" for k in ("urls", "captions")
        ]
        for path in self._lists:
            existing_file("SBUDataset", "dataset_dir", str(path))

    def entries(self):
        found = []
        for address, caption in zip(*(lines(path, empty=True) for path in self._lists)):
            if bool(address) != bool(caption):
                raise self.problem(f"{' and '.join(p.name for p in self._lists)} do not fit together")
            path = self.dataset_dir / "sbu_images" / address[self._HOST :].replace("/", "_")
            if address and path.is_file():
                found.append((path, caption.rstrip(" ")))
        return found

    def read(self, entry):
        path, caption = entry
        return self.image(path), text(caption)
