"""Sets with MATLAB files: SVHN, Caltech-101, Flowers-102, semantic boundaries."""

from __future__ import annotations

import numpy as np

from mycelia.dataset.sources.described import (
    IN_MEMORY,
    IN_MEMORY_DECODED,
    InMemoryDataset,
    existing_file,
    lines,
)
from mycelia.dataset.sources.numbered import directory
from mycelia.dataset.sources.vision.matfile import load
from mycelia.engine.base import errors


class SVHNDataset(InMemoryDataset):
    """Street View House Numbers, cropped: columns image (uint8 [32, 32, 3]) and label (uint32 []).

    `usage`: 'train', 'test', 'extra' or 'all' (default), files '<usage>_32x32.mat'.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {IN_MEMORY}"
    CHOICES = {"usage": ("train", "test", "extra", "all")}

    def _paths(self):
        parts = ("train", "test", "extra") if self.usage in (None, "all") else (self.usage,)
        return [self.dataset_dir / f"{part}_32x32.mat" for part in parts]

    def check(self):
        if self.usage is not None:
            for path in self._paths():
                existing_file("SVHNDataset", "dataset_dir", str(path))

    def entries(self):
        found = []
        for path in self._paths():
            table = load(path)
            labels = table["y"].astype(np.uint32).reshape(-1) % 10  # 10 stands for the digit 0
            found += list(zip(table["X"].transpose(3, 0, 1, 2), labels))
        return found

    def read(self, entry):
        image, label = entry
        return np.ascontiguousarray(image), np.asarray(label)


_CALTECH101 = (
    "Faces Faces_easy Leopards Motorbikes accordion airplanes anchor ant barrel bass beaver binocular "
    "bonsai brain brontosaurus buddha butterfly camera cannon car_side ceiling_fan cellphone chair "
    "chandelier cougar_body cougar_face crab crayfish crocodile crocodile_head cup dalmatian dollar_bill "
    "dolphin dragonfly electric_guitar elephant emu euphonium ewer ferry flamingo flamingo_head garfield "
    "gerenuk gramophone grand_piano hawksbill headphone hedgehog helicopter ibis inline_skate joshua_tree "
    "kangaroo ketch lamp laptop llama lobster lotus mandolin mayfly menorah metronome minaret nautilus "
    "octopus okapi pagoda panda pigeon pizza platypus pyramid revolver rhino rooster saxophone schooner "
    "scissors scorpion sea_horse snoopy soccer_ball stapler starfish stegosaurus stop_sign strawberry "
    "sunflower tick trilobite umbrella watch water_lilly wheelchair wild_cat windsor_chair wrench "
    "yin_yang"
).split()


class Caltech101Dataset(InMemoryDataset):
    """Caltech-101: columns image and, by `target_type`, category (int64 []), annotation (float64 [2, n], a
    contour) or both ('all'). Images lie in '101_ObjectCategories/<class>', contours in 'Annotations'.
    """

    ARGUMENTS = f"dataset_dir, target_type=None, {IN_MEMORY_DECODED}"
    CHOICES = {"target_type": ("category", "annotation", "all")}
    MEANS = {"target_type": "category"}
    # Directories of contours that are not called as those of the images are.
    _CONTOURS = {
        "Faces": "Faces_2",
        "Faces_easy": "Faces_3",
        "Motorbikes": "Motorbikes_16",
        "airplanes": "Airplanes_Side_2",
    }

    def columns(self):
        return (
            ("image", "category", "annotation") if self.target_type == "all" else ("image", self.target_type)
        )

    def entries(self):
        root = self.dataset_dir / "101_ObjectCategories"
        folders = [root / p.name for p in sorted(root.iterdir()) if p.name != "BACKGROUND_Google"]
        return [
            (folder.name, label, number)
            for label, folder in enumerate(folders)
            if folder.is_dir()
            for number in range(1, len(list(folder.iterdir())) + 1)
        ]

    def get_class_indexing(self):
        """Number of each of the 101 classes by name."""
        return {name: number for number, name in enumerate(_CALTECH101)}

    def num_classes(self):
        return len(_CALTECH101)

    def labels(self):
        return np.asarray([label for _, label, _ in self._entries])

    def read(self, entry):
        name, label, number = entry
        row = [self.image(self.dataset_dir / "101_ObjectCategories" / name / f"image_{number:04}.jpg")]
        if self.target_type != "annotation":
            row.append(np.asarray(label))
        if self.target_type != "category":
            folder = self._CONTOURS.get(name, name)
            path = self.dataset_dir / "Annotations" / folder / f"annotation_{number:04}.mat"
            try:
                row.append(load(path)["obj_contour"])
            except (OSError, KeyError, ValueError) as e:
                raise self.problem(f"{path} holds no contour: {e}") from None
        return tuple(row)


_FLOWERS102 = (
    "pink primrose, hard-leaved pocket orchid, canterbury bells, sweet pea, english marigold, tiger lily, "
    "moon orchid, bird of paradise, monkshood, globe thistle, snapdragon, colt's foot, king protea, spear "
    "thistle, yellow iris, globe-flower, purple coneflower, peruvian lily, balloon flower, giant white "
    "arum lily, fire lily, pincushion flower, fritillary, red ginger, grape hyacinth, corn poppy, prince "
    "of wales feathers, stemless gentian, artichoke, sweet william, carnation, garden phlox, love in the "
    "mist, mexican aster, alpine sea holly, ruby-lipped cattleya, cape flower, great masterwort, siam "
    "tulip, lenten rose, barbeton daisy, daffodil, sword lily, poinsettia, bolero deep blue, wallflower, "
    "marigold, buttercup, oxeye daisy, common dandelion, petunia, wild pansy, primula, sunflower, "
    "pelargonium, bishop of llandaff, gaura, geranium, orange dahlia, pink-yellow dahlia?, cautleya "
    "spicata, japanese anemone, black-eyed susan, silverbush, californian poppy, osteospermum, spring "
    "crocus, bearded iris, windflower, tree poppy, gazania, azalea, water lily, rose, thorn apple, "
    "morning glory, passion flower, lotus, toad lily, anthurium, frangipani, clematis, hibiscus, "
    "columbine, desert-rose, tree mallow, magnolia, cyclamen, watercress, canna lily, hippeastrum, bee "
    "balm, ball moss, foxglove, bougainvillea, camellia, mallow, mexican petunia, bromelia, blanket "
    "flower, trumpet creeper, blackberry lily"
).split(", ")


class Flowers102Dataset(InMemoryDataset):
    """Oxford Flowers-102: columns image and label (uint32 []), for the task 'Segmentation' image,
    segmentation, label.

    `usage`: 'train', 'valid', 'test' or 'all'. Files 'imagelabels.mat', 'setid.mat', 'jpg', 'segmim'.
    """

    ARGUMENTS = f"dataset_dir, task='Classification', usage='all', {IN_MEMORY_DECODED}"
    CHOICES = {"task": ("Classification", "Segmentation"), "usage": ("train", "valid", "test", "all")}
    MEANS = {"task": "Classification", "usage": "all"}
    _SETS = {"train": ("trnid",), "test": ("tstid",), "valid": ("valid",), "all": ("trnid", "tstid", "valid")}

    def check(self):
        owner = "Flowers102Dataset"
        for name in ("jpg", "segmim") if self.task == "Segmentation" else ("jpg",):
            directory(owner, "dataset_dir", self.dataset_dir / name)
        for name in ("imagelabels.mat", "setid.mat"):
            existing_file(owner, "dataset_dir", str(self.dataset_dir / name))

    def columns(self):
        return ("image", "segmentation", "label") if self.task == "Segmentation" else ("image", "label")

    def entries(self):
        labels = load(self.dataset_dir / "imagelabels.mat")["labels"].reshape(-1)
        sets = load(self.dataset_dir / "setid.mat")
        numbers = [int(n) for key in self._SETS[self.usage] for n in sets[key].reshape(-1)]
        return [(number, int(labels[number - 1]) - 1) for number in numbers]

    def labels(self):
        return np.asarray([label for _, label in self._entries])

    def get_class_indexing(self):
        """Number of each of the 102 classes by name."""
        return {name: number for number, name in enumerate(_FLOWERS102)}

    def num_classes(self):
        return len(_FLOWERS102)

    def read(self, entry):
        number, label = entry
        row = [self.image(self.dataset_dir / "jpg" / f"image_{number:05}.jpg")]
        if self.task == "Segmentation":
            row.append(self.image(self.dataset_dir / "segmim" / f"segmim_{number:05}.jpg"))
        return (*row, np.asarray(label, np.uint32))


class SBDataset(InMemoryDataset):
    """Semantic Boundaries: columns image and task: 'Boundaries' uint8 [20, H, W], one map per class;
    'Segmentation' uint8 [H, W], the class of each pixel.

    `usage`: 'train', 'val', 'train_noval' or 'all'. FileNotFoundError for a missing list of names.
    """

    ARGUMENTS = f"dataset_dir, task='Boundaries', usage='all', {IN_MEMORY_DECODED.replace('=False', '=None')}"
    COLUMNS = ("image", "task")
    CHOICES = {"task": ("Boundaries", "Segmentation"), "usage": ("train", "val", "train_noval", "all")}
    MEANS = {"task": "Segmentation", "usage": "all"}
    _CLASSES = 20

    def entries(self):
        parts = ("train", "val") if self.usage == "all" else (self.usage,)
        return [name.strip() for part in parts for name in lines(self.dataset_dir / f"{part}.txt")]

    def read(self, entry):
        path = self.dataset_dir / "cls" / f"{entry}.mat"
        image = self.image(self.dataset_dir / "img" / f"{entry}.jpg")
        try:
            truth = load(path)["GTcls"][self.task]
        except (OSError, KeyError, TypeError, ValueError) as e:
            raise errors.runtime_error("SBDataset", f"{path} holds no {self.task}: {e}") from None
        if self.task == "Segmentation":
            return image, np.asarray(truth)
        return image, np.stack([truth[i, 0] for i in range(self._CLASSES)])
