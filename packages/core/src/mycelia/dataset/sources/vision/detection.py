"""Sets of images with boxes: VOC, COCO, KITTI, WIDER FACE."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np

from mycelia.dataset import nodes
from mycelia.dataset.sources.described import DECODED, ListedDataset, contents, existing_file, lines, text
from mycelia.dataset.sources.vision.folders import files_of, folders_of
from mycelia.engine.base import errors

_NAME = "_meta-filename"  # a column that rows carry, but that no iterator gives unless it is renamed


def _column(values, dtype) -> np.ndarray:
    """Numbers as [n, 1]."""
    return np.asarray(list(values), np.int64 if dtype is np.uint32 else dtype).astype(dtype).reshape(-1, 1)


class VOCDataset(ListedDataset):
    """PASCAL VOC. `task` 'Segmentation': columns image, target; 'Detection': image, bbox (float32 [n, 4]: x,
    y, width, height), label, difficult, truncate (uint32 [n, 1]).

    Images are those of 'ImageSets/Segmentation/<usage>.txt' or 'ImageSets/Main/<usage>.txt'.
    `class_indexing`: {class: number}, only these; by default classes are numbered by name. `extra_metadata`
    adds '_meta-filename'. Errors: TypeError, ValueError; RuntimeError for annotations that do not fit.
    """

    ARGUMENTS = (
        f"dataset_dir, task='Segmentation', usage='train', class_indexing=None, {DECODED}, "
        "extra_metadata=False, decrypt=None"
    )
    CHOICES = {"task": ("Segmentation", "Detection")}
    _BOXES = ("image", "bbox", "label", "difficult", "truncate")

    def check(self):
        owner = "VOCDataset"
        nodes.of_type(owner, "task", self.task, str)
        nodes.of_type(owner, "usage", self.usage, str)
        if self.task == "Segmentation" and self.class_indexing is not None:
            raise errors.value_error(owner, "class_indexing is for the task 'Detection' only")
        folder = "Segmentation" if self.task == "Segmentation" else "Main"
        self._list = self.dataset_dir / "ImageSets" / folder / f"{self.usage}.txt"
        existing_file(owner, "usage", str(self._list))

    def columns(self):
        names = ("image", "target") if self.task == "Segmentation" else self._BOXES
        return (*names, _NAME) if self.extra_metadata else names

    def entries(self):
        names = list(lines(self._list, empty=True))
        if self.task == "Segmentation":
            return [(name, None) for name in names]
        found = [(name, self._things(name)) for name in names]
        return [(name, things) for name, things in found if things]

    def _things(self, name: str) -> list[tuple[str, list[float], int, int]]:
        path = self.dataset_dir / "Annotations" / f"{name}.xml"
        try:
            root = ElementTree.parse(path).getroot()
        except ElementTree.ParseError as e:
            raise self.problem(f"{path} is no XML: {e}") from None
        things = []
        for thing in root.findall("object"):
            box = thing.find("bndbox")
            if box is None:
                raise self.problem(f"{path}: an object has no bndbox")
            left, top, right, bottom = (self._number(box, k, path) for k in ("xmin", "ymin", "xmax", "ymax"))
            if not (left > 0 and top > 0 and right > left and bottom > top):
                raise self.problem(f"{path}: the box {left}, {top}, {right}, {bottom} is none")
            kind = thing.findtext("name") or ""
            if kind and (not self.class_indexing or kind in self.class_indexing):
                flags = (int(self._number(thing, k, path)) for k in ("difficult", "truncated"))
                things.append((kind, [left, top, right - left, bottom - top], *flags))
        if root.find("object") is None:
            raise self.problem(f"{path} has no object")
        return things

    def _number(self, node, name: str, path) -> float:
        value = node.findtext(name, "0")
        try:
            return float(value)
        except ValueError:
            raise self.problem(f"{path}: {name} is {value!r}, no number") from None

    def get_class_indexing(self):
        """Number of each class by name. NotImplementedError for the task 'Segmentation'."""
        if self.task != "Detection":
            raise errors.error(
                errors.NotSupportedError, "VOCDataset.get_class_indexing", "the task 'Segmentation' has none"
            )
        if not self.class_indexing:
            names = sorted({thing[0] for _, things in self._entries for thing in things})
            self.class_indexing = {name: number for number, name in enumerate(names)}
        return self.class_indexing

    def read(self, entry):
        name, things = entry
        row = [self.image(self.dataset_dir / "JPEGImages" / f"{name}.jpg")]
        if things is None:
            row.append(self.image(self.dataset_dir / "SegmentationClass" / f"{name}.png"))
        else:
            numbers = self.get_class_indexing()
            row.append(np.asarray([thing[1] for thing in things], np.float32))
            row.append(_column((numbers[thing[0]] for thing in things), np.uint32))
            row += [_column((thing[i] for thing in things), np.uint32) for i in (2, 3)]
        return (*row, text(name)) if self.extra_metadata else tuple(row)


_COCO = {  # task -> columns; lists of numbers are filled up to the longest with -1
    "Detection": ("image", "bbox", "category_id", "iscrowd"),
    "Stuff": ("image", "segmentation", "iscrowd"),
    "Panoptic": ("image", "bbox", "category_id", "iscrowd", "area"),
    "Keypoint": ("image", "keypoints", "num_keypoints"),
    "Captioning": ("image", "captions"),
}


class CocoDataset(ListedDataset):
    """MS COCO: images of `dataset_dir` that `annotation_file`, JSON, tells about.

    Columns by `task`: 'Detection' image, bbox (float32 [n, 4]), category_id, iscrowd (uint32 [n, 1]); 'Stuff'
    image, segmentation (float32 [n, m], filled with -1), iscrowd; 'Panoptic' image, bbox, category_id,
    iscrowd, area; 'Keypoint' image, keypoints, num_keypoints; 'Captioning' image, captions (text [n, 1]).
    `extra_metadata` adds '_meta-filename'. Errors: TypeError, ValueError; RuntimeError for a file that does
    not fit.
    """

    ARGUMENTS = (
        f"dataset_dir, annotation_file, task='Detection', {DECODED}, extra_metadata=False, decrypt=None"
    )
    CHOICES = {"task": tuple(_COCO)}
    BY_CLASS = False

    def columns(self):
        return (*_COCO[self.task], _NAME) if self.extra_metadata else _COCO[self.task]

    def entries(self):
        try:
            table = json.loads(contents(self.annotation_file))
            files = {image["id"]: image["file_name"] for image in table["images"]}
            self._classes = self._categories(table)
            found: dict[str, list] = {}
            for note in table["annotations"]:
                if note["image_id"] not in files:
                    raise self.problem(f"{self.annotation_file}: there is no image {note['image_id']}")
                found.setdefault(files[note["image_id"]], []).extend(getattr(self, f"_{self.task}")(note))
        except (KeyError, TypeError, ValueError) as e:
            raise self.problem(f"{self.annotation_file} does not fit the task {self.task!r}: {e!r}") from None
        return [(name, found[name]) for name in files.values() if found.get(name)]

    def _categories(self, table: dict) -> dict[str, list[int]]:
        if self.task not in ("Detection", "Panoptic"):
            return {}
        names = ("id", "isthing") if self.task == "Panoptic" else ("id",)
        return {c["name"]: [c[name] for name in names] for c in table["categories"]}

    def _category(self, note: dict) -> int:
        number = note["category_id"]
        if all(number != ids[0] for ids in self._classes.values()):
            raise self.problem(f"{self.annotation_file}: there is no category {number}")
        return number

    # What one annotation adds to its image: tuples of a list of numbers (or a text) and single numbers.

    def _Detection(self, note):
        return [(note["bbox"], self._category(note), note.get("iscrowd", 0))]

    def _Stuff(self, note):
        crowd, shape = note["iscrowd"], note["segmentation"]
        parts = [shape["counts"]] if crowd == 1 else shape
        # One number of iscrowd per annotation, however many polygons it has.
        return [(part, crowd if i == 0 else None) for i, part in enumerate(parts)]

    def _Panoptic(self, note):
        return [(s["bbox"], self._category(s), s["iscrowd"], s["area"]) for s in note["segments_info"]]

    def _Keypoint(self, note):
        return [(note["keypoints"], note["num_keypoints"])]

    def _Captioning(self, note):
        return [(note["caption"],)]

    def get_class_indexing(self):
        """{category: [id]}, for 'Panoptic' {category: [id, whether it is a thing]}.
        NotImplementedError for other tasks.
        """
        if self.task not in ("Detection", "Panoptic"):
            raise errors.error(
                errors.NotSupportedError,
                "CocoDataset.get_class_indexing",
                f"the task {self.task!r} has no categories, only 'Detection' and 'Panoptic' have",
            )
        return self._classes if self._entries else {}

    def read(self, entry):
        name, parts = entry
        row = [self.image(self.dataset_dir / name)]
        if self.task == "Captioning":
            row.append(np.asarray([[part[0]] for part in parts]))
        else:
            width = max(len(part[0]) for part in parts)
            filled = np.full((len(parts), width), -1, np.float32)
            for line, part in zip(filled, parts):
                line[: len(part[0])] = part[0]
            row.append(filled)
            row += [_column((v for v in c if v is not None), np.uint32) for c in list(zip(*parts))[1:]]
        return (*row, text(name.split(".")[0])) if self.extra_metadata else tuple(row)


class KITTIDataset(ListedDataset):
    """KITTI's objects. `usage` 'train': columns image, label, truncated, occluded, alpha, bbox, dimensions,
    location, rotation_y, a line per object (label and occluded uint32, the others float32); 'test': image.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {DECODED}"
    CHOICES = {"usage": ("train", "test")}
    MEANS = {"usage": "train"}
    # Columns by where their numbers stand in a line of a label file, behind the name of the class.
    _FIELDS = {
        "truncated": (0, 1), "occluded": (1, 2), "alpha": (2, 3), "bbox": (3, 7), "dimensions": (7, 10),
        "location": (10, 13), "rotation_y": (13, 14),
    }  # fmt: skip

    def columns(self):
        return ("image",) if self.usage == "test" else ("image", "label", *self._FIELDS)

    def entries(self):
        part = "training" if self.usage == "train" else "testing"
        images = files_of(self.dataset_dir / "data_object_image_2" / part / "image_2", ".png")
        if self.usage == "test":
            return [(path, None) for path in images]
        notes = self.dataset_dir / "data_object_label_2" / part / "label_2"
        found = [(path, self._objects(notes / f"{path.stem}.txt")) for path in images]
        kinds = sorted({kind for _, objects in found for kind, _ in objects})
        self._numbers = {kind: number for number, kind in enumerate(kinds)}
        return [(path, objects) for path, objects in found if objects]

    def _objects(self, path) -> list[tuple[str, list[float]]]:
        objects = []
        for line in lines(path):
            kind, *numbers = line.split()
            try:
                values = [float(n) for n in numbers[:14]]
            except ValueError:
                values = []
            if len(values) < 14:
                raise self.problem(f"{path}: {line!r} is no class with 14 numbers")
            objects.append((kind, values))
        return objects

    def read(self, entry):
        path, objects = entry
        if objects is None:
            return (self.image(path),)
        values = np.asarray([numbers for _, numbers in objects], np.float64)
        row = [self.image(path), _column((self._numbers[kind] for kind, _ in objects), np.uint32)]
        for name, (start, stop) in self._FIELDS.items():
            part = values[:, start:stop]
            # -1, "unknown", becomes the largest uint32.
            row.append(
                part.astype(np.int64).astype(np.uint32) if name == "occluded" else part.astype(np.float32)
            )
        return tuple(row)


class WIDERFaceDataset(ListedDataset):
    """WIDER FACE. `usage` 'train', 'valid' or 'all': columns image, bbox (int32 [n, 4]), blur, expression,
    illumination, occlusion, pose, invalid (int32 [n]); 'test': image.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {DECODED}"
    CHOICES = {"usage": ("train", "test", "valid", "all")}
    MEANS = {"usage": "all"}
    _MARKS = ("blur", "expression", "illumination", "occlusion", "pose", "invalid")
    _PARTS = {"train": ("train",), "valid": ("val",), "test": ("test",), "all": ("train", "val")}

    def columns(self):
        return ("image",) if self.usage == "test" else ("image", "bbox", *self._MARKS)

    def entries(self):
        found = []
        for part in self._PARTS[self.usage]:
            root = self.dataset_dir / f"WIDER_{part}" / "images"
            faces = None if part == "test" else self._faces(part)
            for folder in folders_of(root):
                for path in files_of(folder, ".jpg"):
                    note = None if faces is None else faces.get(f"{folder.name}/{path.name}", [])
                    found.append((path, note))
        return found

    def _faces(self, part: str) -> dict[str, list[list[int]]]:
        path = self.dataset_dir / "wider_face_split" / f"wider_face_{part}_bbx_gt.txt"
        table: dict[str, list[list[int]]] = {}
        rest = lines(path)
        try:
            for name in rest:
                # An image without faces has one line of zeros.
                count = max(int(next(rest)), 1)
                table[name] = [[int(n) for n in next(rest).split()] for _ in range(count)]
                if any(len(face) != 10 for face in table[name]):
                    raise self.problem(f"{path}: {name} has a face without ten numbers")
        except (StopIteration, ValueError) as e:
            raise self.problem(f"{path} is damaged: {e}") from None
        return table

    def read(self, entry):
        path, faces = entry
        if faces is None:
            return (self.image(path),)
        values = np.asarray(faces, np.int32).reshape(-1, 10)
        return (self.image(path), values[:, :4].copy(), *(values[:, i].copy() for i in range(4, 10)))
