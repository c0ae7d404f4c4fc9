"""Sets of images whose directories, or a list of paths, tell the class."""

from __future__ import annotations

from pathlib import Path

from mycelia.dataset.sources.described import DECODED, LabelledDataset, ListedDataset, contents, lines, text


def files_of(folder: Path, *endings: str) -> list[Path]:
    """The files of a directory, sorted by name; with endings only those."""
    return [p for p in sorted(folder.iterdir()) if p.is_file() and (not endings or p.suffix in endings)]


def folders_of(folder: Path) -> list[Path]:
    """The directories in a directory, sorted by name."""
    return [p for p in sorted(folder.iterdir()) if p.is_dir()]


def by_folder(folders) -> list[tuple[Path, int]]:
    """The files of each directory with the number of the directory."""
    return [(path, number) for number, folder in enumerate(folders) for path in files_of(folder)]


def pairs_of_words(path: Path) -> list[tuple[str, str]]:
    """A file of words as pairs: names and numbers in turns."""
    words = contents(path).split()
    return list(zip(words[::2], words[1::2]))


class Caltech256Dataset(LabelledDataset):
    """Caltech-256: a directory per class, as '001.ak47'. Columns image and label (int32 [])."""

    ARGUMENTS = f"dataset_dir, {DECODED}"
    LABEL = "int32"

    def entries(self):
        return by_folder(folders_of(self.dataset_dir))


class OmniglotDataset(LabelledDataset):
    """Omniglot: characters within alphabets, 'images_background/<alphabet>/<character>/*.png', or
    'images_evaluation' without `background`. Columns image and label (int32 []), a number per character.
    """

    ARGUMENTS = f"dataset_dir, background=None, {DECODED}"
    MEANS = {"background": True}
    LABEL = "int32"

    def entries(self):
        root = self.dataset_dir / ("images_background" if self.background else "images_evaluation")
        return by_folder(character for alphabet in folders_of(root) for character in folders_of(alphabet))


class LSUNDataset(LabelledDataset):
    """LSUN: directories '<class>_train' and '<class>_val', or 'test'. Columns image and label (uint32 []),
    the number of the directory among those that are read. `classes`: only these.
    """

    ARGUMENTS = f"dataset_dir, usage=None, classes=None, {DECODED}"
    CHOICES = {"usage": ("train", "test", "valid", "all")}
    MEANS = {"usage": "all"}
    _CLASSES = (
        "bedroom", "bridge", "church_outdoor", "classroom", "conference_room", "dining_room", "kitchen",
        "living_room", "restaurant", "tower",
    )  # fmt: skip
    _PARTS = {"train": ("train",), "valid": ("val",), "all": ("train", "val")}

    def check(self):
        for name in self.classes or ():
            self.choose("classes", name, self._CLASSES)

    def entries(self):
        if self.usage == "test":
            return by_folder([self.dataset_dir / "test"])
        wanted = {f"{c}_{part}" for c in self.classes or self._CLASSES for part in self._PARTS[self.usage]}
        return by_folder(f for f in folders_of(self.dataset_dir) if f.name in wanted)

    def num_classes(self):
        """Number of classes that are read, however many directories they have."""
        return len({path.parent.name.rpartition("_")[0] for path, _ in self._entries})


class RenderedSST2Dataset(LabelledDataset):
    """Rendered SST2: sentences as images in '<part>/negative' and '<part>/positive', parts train, test,
    valid. Columns image and label (uint32 []): negative 0, positive 1.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {DECODED}"
    CHOICES = {"usage": ("train", "val", "test", "all")}
    MEANS = {"usage": "all"}

    def entries(self):
        parts = ("test", "train", "valid") if self.usage == "all" else (self.usage.replace("val", "valid"),)
        kinds = [kind for part in parts for kind in folders_of(self.dataset_dir / part)]
        numbers = {name: i for i, name in enumerate(sorted({k.name for k in kinds}))}
        return [(path, numbers[kind.name]) for kind in kinds for path in files_of(kind)]


class SUN397Dataset(LabelledDataset):
    """SUN397: scenes in the directories that 'ClassName.txt' lists, files 'sun_*.jpg'. Columns image and
    label (uint32 []), the line of the class.
    """

    ARGUMENTS = f"dataset_dir, {DECODED}"
    COUNTS_CLASSES = False

    def entries(self):
        names = contents(self.dataset_dir / "ClassName.txt").split()
        return [
            (path, number)
            for name, number in sorted((name, number) for number, name in enumerate(names))
            for path in files_of(self.dataset_dir / name.lstrip("/"), ".jpg")
            if path.name.startswith("sun_")
        ]


class Places365Dataset(LabelledDataset):
    """Places365: images that 'places365_train_standard.txt', 'places365_train_challenge.txt' or
    'places365_val.txt' list with their classes, of 256 x 256 pixels with `small`. Columns image, label
    (uint32 []).
    """

    ARGUMENTS = (
        "dataset_dir, usage=None, small=True, decode=False, num_samples=None, num_parallel_workers=None, "
        "shuffle=None, sampler=None, num_shards=None, shard_id=None, cache=None"
    )
    COUNTS_CLASSES = False
    CHOICES = {"usage": ("train-standard", "train-challenge", "val")}
    MEANS = {"usage": "train-standard"}

    def entries(self):
        size = "256" if self.small else "large"
        part = self.usage.removeprefix("train-")
        folder = self.dataset_dir / (f"val_{size}" if part == "val" else f"data_{size}_{part}")
        pairs_of_words(self.dataset_dir / "categories_places365.txt")  # the set is not complete without it
        listed = pairs_of_words(self.dataset_dir / f"places365_{self.usage.replace('-', '_')}.txt")
        return [(folder / name.lstrip("/"), int(label)) for name, label in listed]


class Food101Dataset(ListedDataset):
    """Food-101: images that 'meta/train.txt' and 'meta/test.txt' list as '<class>/<number>'. Columns image
    and label (text), the class.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {DECODED}"
    CHOICES = {"usage": ("train", "test", "all")}
    MEANS = {"usage": "all"}

    def entries(self):
        parts = ("train", "test") if self.usage == "all" else (self.usage,)
        return [line.strip() for part in parts for line in lines(self.dataset_dir / "meta" / f"{part}.txt")]

    def read(self, entry):
        return self.image(self.dataset_dir / "images" / f"{entry}.jpg"), text(entry.split("/")[0])
