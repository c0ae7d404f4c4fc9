"""Where a cache may stand, and what makes two pipelines the same."""

from __future__ import annotations

import functools
import inspect
import os

import numpy as np
import pytest

import mycelia.dataset as ds
from mycelia.dataset import transforms, vision
from mycelia_cache.identity import identify
from mycelia_cache.placement import check, is_random

DECODE = vision.Decode()


def same(*columns):
    return columns if len(columns) > 1 else columns[0]


@pytest.fixture
def folder(images):
    return lambda: ds.ImageFolderDataset(images, shuffle=False)


@pytest.fixture
def text(lines):
    return lambda: ds.TextFileDataset(lines, shuffle=False)


def cached(dataset, operation=same, column=None):
    """A map with a cache; nothing is contacted by looking at it."""
    return dataset.map(operation, column or dataset.get_col_names()[:1], cache=ds.DatasetCache(1))


REFUSED = {
    "batch": (lambda d: d.batch(2), "BatchNode is not supported as a descendant operator under a cache"),
    "filter": (lambda d: d.filter(lambda *c: True), "FilterNode is not supported"),
    "skip": (lambda d: d.skip(1), "SkipNode is not supported"),
    "take": (lambda d: d.take(3), r"TakeNode \(possibly from Split\) is not supported"),
    "split": (lambda d: d.split([12, 12])[0], r"TakeNode \(possibly from Split\) is not supported"),
    "concat": (lambda d: d + d, "ConcatNode is not supported"),
    "zip": (lambda d: ds.zip((d, d.rename(["image", "label"], ["a", "b"]))), "ZipNode is not supported"),
    "repeat": (lambda d: d.repeat(2), "A cache over a RepeatNode of a mappable dataset is not supported"),
    "shuffle": (lambda d: d.shuffle(4), "(?s)ShuffleNode is not supported.*shuffle above the cache"),
    "random": (lambda d: d.map([DECODE, vision.RandomCrop(4)], "image"), "random operation is not supported"),
    "cache": (
        lambda d: d.map(same, "image", cache=ds.DatasetCache(1)),
        "Nested cache operations over MapNode",
    ),
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_cache_is_refused_above(case, folder):
    make, message = REFUSED[case]
    with pytest.raises(RuntimeError, match=message):
        cached(make(folder())).create_tuple_iterator()


def test_a_nested_cache_is_refused(images):
    source = ds.ImageFolderDataset(images, cache=ds.DatasetCache(1))
    with pytest.raises(
        RuntimeError, match="Nested cache operations over ImageFolderDataset is not supported"
    ):
        cached(source).create_tuple_iterator()


def test_what_is_allowed_below_a_cache(folder, text):
    for dataset in (
        folder(), folder().map(DECODE, "image"), folder().rename("image", "picture"),
        folder().project("image"), text(), text().repeat(2), text().shuffle(3),
    ):  # fmt: skip
        check(cached(dataset))


def test_python_sources_need_a_key():
    class Keyed(list):
        cache_key = "numbers"

    for source in (ds.GeneratorDataset([1, 2, 3], "a"), ds.NumpySlicesDataset([1, 2, 3], "a")):
        with pytest.raises(RuntimeError, match="no support for GeneratorOp under cache"):
            cached(source).create_tuple_iterator()
    check(cached(ds.GeneratorDataset(Keyed([1, 2, 3]), "a")))


RANDOM = [
    vision.RandomCrop(4), vision.RandomHorizontalFlip(), vision.RandomColorAdjust(), vision.RandAugment(),
    vision.RandomSelectSubpolicy([[(vision.Invert(), 0.5)]]), vision.UniformAugment([vision.Invert()], 1),
    transforms.RandomApply([vision.Invert()]), transforms.RandomChoice([vision.Invert()]),
    transforms.Compose([vision.Invert(), vision.RandomCrop(4)]),
]  # fmt: skip


@pytest.mark.parametrize("operation", RANDOM, ids=lambda o: type(o).__name__)
def test_random_operations_are_known(operation):
    assert is_random(operation)


def test_every_transform_named_random_is_known_as_random():
    for module in (vision, transforms):
        for name, kind in inspect.getmembers(module, inspect.isclass):
            if name.startswith("Random") and not name.endswith(("Apply", "Choice", "Order", "Subpolicy")):
                instance = kind.__new__(kind)
                assert is_random(instance), name


@pytest.mark.parametrize(
    "operation",
    [DECODE, vision.Resize(4), transforms.Compose([vision.Invert()]), same, np.sqrt, vision.Pad(1)],
)
def test_other_operations_are_not(operation):
    assert not is_random(operation)


def test_a_function_may_say_that_it_is_not_deterministic(folder):
    def noise(image):
        return image

    noise.deterministic = False
    with pytest.raises(RuntimeError, match="MapNode containing noise, which says deterministic=False"):
        cached(folder(), noise).create_tuple_iterator()


# ---- identity --------------------------------------------------------------------------------------------


def crc(dataset) -> int:
    return identify(dataset).crc


def test_equal_pipelines_have_one_identity(images):
    def make(**more):
        return ds.ImageFolderDataset(images, **more).map([vision.Decode(), vision.Resize((4, 5))], "image")

    first = identify(make(shuffle=False))
    for more in (
        {"shuffle": True}, {"num_samples": 3}, {"num_shards": 2, "shard_id": 1},
        {"sampler": ds.SubsetSampler([1, 2])}, {"num_parallel_workers": 1},
    ):  # fmt: skip
        assert identify(make(**more)) == first
    assert first.text == "Map <- ImageFolder"


def offset(n):
    return lambda x: x + n


class Scale:
    def __init__(self, factor):
        self.factor = factor
        self.rng = np.random.default_rng(0)

    def __call__(self, x):
        return x * self.factor


DIFFERENT = [
    [vision.Resize(4), vision.Resize(5), vision.Resize((4, 4)), vision.Resize(4, vision.Inter.NEAREST)],
    [vision.Normalize([1.0], [2.0]), vision.Normalize([1.0], [3.0]), vision.Normalize([1.0], [2.0], False)],
    [offset(1), offset(2), lambda x: x - 1],
    [functools.partial(np.add, 1), functools.partial(np.add, 2), functools.partial(np.subtract, 1)],
    [Scale(1), Scale(2)],
    [transforms.TypeCast("float32"), transforms.TypeCast("int32")],
    [transforms.Compose([vision.Invert(), same]), transforms.Compose([same, vision.Invert()])],
]


@pytest.mark.parametrize("operations", DIFFERENT, ids=lambda o: type(o[0]).__name__)
def test_other_operations_make_another_identity(operations, folder):
    assert len({crc(folder().map(op, "image")) for op in operations}) == len(operations)


def test_an_identity_does_not_change_by_use(folder):
    scale = Scale(2)
    before = crc(folder().map([scale, DECODE], "image"))
    scale.rng.random()
    DECODE(next(iter(folder()))[0].asnumpy())
    assert crc(folder().map([scale, DECODE], "image")) == before
    assert crc(folder().map([Scale(2), vision.Decode()], "image")) == before


def test_columns_and_arguments_of_sources_count(images, lines):
    base = ds.ImageFolderDataset(images)
    others = [
        ds.ImageFolderDataset(images, decode=True), ds.ImageFolderDataset(images, class_indexing={"cat": 3}),
        base.map(same, "label"), base.map(same, "image", "picture"), base.rename("image", "a"),
        base.project("image"), ds.TextFileDataset(lines), ds.CSVDataset(lines, column_names=["a"]),
        ds.CSVDataset(lines, column_names=["b"]),
    ]  # fmt: skip
    assert len({crc(d) for d in [base, *others]}) == len(others) + 1


def test_changed_files_make_another_identity_and_the_same_tree(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    before = identify(ds.TextFileDataset(str(path)))
    path.write_text("one\ntwo\n")
    after = identify(ds.TextFileDataset(str(path)))
    assert after.crc != before.crc and after.digest != before.digest and after.tree == before.tree


def test_content_counts_instead_of_time_if_that_is_wanted(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\n")

    def both():
        dataset = ds.TextFileDataset(str(path))
        return identify(dataset).crc, identify(dataset, check_content=True).crc

    first = both()
    os.utime(path, ns=(1, 1))
    second = both()
    assert second[0] != first[0] and second[1] == first[1]
    path.write_text("two\n")
    os.utime(path, ns=(1, 1))
    third = both()
    assert third[0] == second[0] and third[1] != second[1]


def test_all_files_of_a_record_set_count(tmp_path):
    for i in range(2):
        (tmp_path / f"set.mindrecord{i}").write_text("x")
    source = ds.TextFileDataset(str(tmp_path / "set.mindrecord0"))
    before = crc(source)
    (tmp_path / "set.mindrecord1").write_text("longer")
    assert crc(source) != before
