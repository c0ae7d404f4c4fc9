"""Sources and samplers: which rows come, in which order; MNIST files, also damaged ones."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from mycelia import Tensor
from mycelia import dataset as ds
from mycelia.io.idx import read_idx, write_idx


def read(dataset):
    return [row[0].tolist() for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


# ---- GeneratorDataset --------------------------------------------------------------------------------------


class Squares:
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return np.float32(i * i), np.int32(i)


def test_a_generator_function_is_read_anew_each_epoch():
    def rows():
        for i in range(3):
            yield (i,)

    dataset = ds.GeneratorDataset(rows, ["x"])
    assert read(dataset) == [0, 1, 2] == read(dataset) and len(dataset) == 3
    assert read(ds.GeneratorDataset(rows, ["x"], num_samples=2)) == [0, 1]


def test_random_access_sources_are_shuffled_unless_told_not_to():
    dataset = ds.GeneratorDataset(Squares(), ["square", "root"], shuffle=False)
    assert read(dataset) == [0, 1, 4, 9, 16] and len(dataset) == 5
    ds.config.set_seed(3)
    orders = [read(ds.GeneratorDataset(Squares(), ["square", "root"])) for _ in range(5)]
    assert all(sorted(order) == [0, 1, 4, 9, 16] for order in orders)
    assert any(order != [0, 1, 4, 9, 16] for order in orders)


def test_column_types_are_checked():
    dataset = ds.GeneratorDataset(Squares(), ["a", "b"], column_types=["float32", "int32"], shuffle=False)
    assert [t.name for t in dataset.output_types()] == ["float32", "int32"]
    with pytest.raises(RuntimeError, match="column 'a' has dtype float32"):
        read(ds.GeneratorDataset(Squares(), ["a", "b"], column_types=["int64", "int32"]))
    with pytest.raises(NotImplementedError):
        ds.GeneratorDataset(Squares(), ["a", "b"], column_types=["none such", "int32"])


def test_a_batch_sampler_makes_the_batches():
    by_rows = [[1, 2], [0, 3]]
    assert read(ds.GeneratorDataset(Squares(), ["a", "b"], batch_sampler=by_rows)) == [[1, 4], [0, 9]]
    joined = ds.GeneratorDataset(
        Squares(), ["a", "b"], batch_sampler=by_rows, collate_fn=lambda a, b: (np.stack(a) + 1, np.stack(b))
    )
    assert read(joined) == [[2, 5], [1, 10]] and len(joined) == 2


def test_tensors_and_lists_are_rows_too():
    dataset = ds.GeneratorDataset([(Tensor([1.0, 2.0]),), ([3, 4],)], ["x"], shuffle=False)
    assert read(dataset) == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (TypeError, lambda: ds.GeneratorDataset(3, ["x"])),
        (ValueError, lambda: ds.GeneratorDataset(Squares())),
        (ValueError, lambda: ds.GeneratorDataset(Squares(), ["x", "x"])),
        (RuntimeError, lambda: read(ds.GeneratorDataset(Squares(), ["x"]))),
        (ValueError, lambda: ds.GeneratorDataset(lambda: iter([]), ["x"], sampler=[1])),
        (
            ValueError,
            lambda: ds.GeneratorDataset(Squares(), ["a", "b"], shuffle=True, sampler=ds.SequentialSampler()),
        ),
        (ValueError, lambda: ds.GeneratorDataset(Squares(), ["a", "b"], num_shards=2)),
        (
            ValueError,
            lambda: ds.GeneratorDataset(Squares(), ["a", "b"], num_samples=2, sampler=ds.RandomSampler()),
        ),
        (ValueError, lambda: ds.GeneratorDataset(Squares(), ["a", "b"], num_samples=-1)),
        (TypeError, lambda: ds.GeneratorDataset(Squares(), ["a", "b"], sampler=3)),
        (RuntimeError, lambda: read(ds.GeneratorDataset([None], ["x"]))),
    ],
)
def test_wrong_generator_datasets(kind, wrong):
    with pytest.raises(kind):
        wrong()


def test_an_exception_of_the_source_reaches_the_reader():
    def rows():
        yield (1,)
        raise KeyError("broken row")

    with pytest.raises(RuntimeError, match="raised KeyError: 'broken row'"):
        read(ds.GeneratorDataset(rows, ["x"]))


# ---- NumpySlicesDataset ------------------------------------------------------------------------------------


def test_slices_of_arrays_tuples_and_dicts():
    assert read(ds.NumpySlicesDataset([[1, 2], [3, 4]], shuffle=False)) == [[1, 2], [3, 4]]
    assert ds.NumpySlicesDataset(([1], [2])).get_col_names() == ["column_0", "column_1"]
    assert ds.NumpySlicesDataset({"a": [1], "b": [2]}).get_col_names() == ["a", "b"]
    assert ds.NumpySlicesDataset([1, 2], "x").get_col_names() == ["x"]
    assert read(ds.NumpySlicesDataset(np.arange(9), num_samples=4, shuffle=False)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (ValueError, lambda: ds.NumpySlicesDataset(([1, 2], [1]))),
        (ValueError, lambda: ds.NumpySlicesDataset(([1], [2]), ["a"])),
        (TypeError, lambda: ds.NumpySlicesDataset(3)),
        (ValueError, lambda: ds.NumpySlicesDataset({})),
    ],
)
def test_wrong_slices(kind, wrong):
    with pytest.raises(kind):
        wrong()


# ---- samplers ----------------------------------------------------------------------------------------------


def sampled(sampler, n=6):
    dataset = ds.NumpySlicesDataset(np.arange(n), ["x"], sampler=sampler)
    values = read(dataset)
    assert len(values) == len(dataset)
    return values


def test_samplers_choose_rows():
    assert sampled(ds.SequentialSampler(2)) == [2, 3, 4, 5]
    assert sampled(ds.SequentialSampler(2, 2)) == [2, 3]
    assert sampled(ds.SubsetSampler([4, 0, 4])) == [4, 0, 4]
    assert sampled([1, 3]) == [1, 3]
    assert sorted(sampled(ds.SubsetRandomSampler([4, 0, 2]))) == [0, 2, 4]
    assert sorted(sampled(ds.RandomSampler())) == list(range(6))
    assert len(set(sampled(ds.RandomSampler(num_samples=3)))) == 3
    assert set(sampled(ds.RandomSampler(replacement=True, num_samples=5))) <= set(range(6))
    assert set(sampled(ds.WeightedRandomSampler([0, 1, 0, 1, 0, 0], 20))) == {1, 3}
    assert sorted(sampled(ds.WeightedRandomSampler([1, 1, 1], 3, replacement=False))) == [0, 1, 2]
    assert sampled(ds.WeightedRandomSampler([0, 1, 0], 3, replacement=False)) == [1, 0, 2]
    assert (
        sampled(ds.WeightedRandomSampler([0, 1])) == sampled(ds.WeightedRandomSampler([0, 1], 9)) == [1] * 6
    )


def test_shards_cover_everything_and_are_of_one_size():
    shards = [sampled(ds.DistributedSampler(4, i, shuffle=False), 10) for i in range(4)]
    assert [len(s) for s in shards] == [3, 3, 3, 3]
    assert shards[0] == [0, 4, 8] and set(sum(shards, [])) == set(range(10))
    ds.config.set_seed(2)
    parts = []
    for i in range(2):
        parts += read(ds.NumpySlicesDataset(np.arange(6), num_shards=2, shard_id=i))
    assert sorted(parts) == list(range(6))


def test_pk_sampler_draws_the_same_number_of_every_class(tmp_path):
    for name, count in (("a", 2), ("b", 3), ("c", 1)):
        (tmp_path / name).mkdir()
        for i in range(count):
            (tmp_path / name / f"{i}.png").write_bytes(f"{name}{i}".encode())

    def drawn(*args, **kwargs):
        dataset = ds.ImageFolderDataset(str(tmp_path), sampler=ds.PKSampler(*args, **kwargs))
        found = [
            bytes(row[0]).decode() for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
        ]
        assert len(found) == len(dataset)
        return found

    found = drawn(2)
    assert sorted(found[:2]) == ["a0", "a1"] and found[4:] == ["c0", "c0"]
    assert len(set(found[2:4])) == 2 and {name[0] for name in found[2:4]} == {"b"}
    assert sorted(drawn(5)[5:10])[::2] == ["b0", "b1", "b2"] and len(drawn(2, num_samples=3)) == 3
    mixed = drawn(3, shuffle=True)
    assert [len({name[0] for name in mixed[i : i + 3]}) for i in (0, 3, 6)] == [1, 1, 1]
    with pytest.raises(NotImplementedError):
        ds.PKSampler(1, 2)
    with pytest.raises(ValueError, match="class of rows"):
        sampled(ds.PKSampler(1))


class EveryThird(ds.Sampler):
    def __iter__(self):
        return iter(range(0, self.dataset_size, 3))


def chain(parent, child):
    parent.add_child(child)
    return parent


@pytest.mark.parametrize(
    "sampler, rows",
    [
        (EveryThird(), [0, 3, 6, 9]),
        (EveryThird(2), [0, 3]),
        (chain(ds.SequentialSampler(1, 3), ds.SubsetSampler([9, 8, 7, 6, 5])), [8, 7, 6]),
        (chain(ds.SubsetSampler([0, 2]), ds.DistributedSampler(2, 1, False)), [1, 5]),
        (chain(ds.DistributedSampler(2, 1, False), ds.SequentialSampler(2, 5)), [3, 5, 2]),
        (ds.DistributedSampler(3, 1, False, offset=1), [0, 3, 6, 9]),
        (ds.DistributedSampler(3, 2, False, offset=1), [1, 4, 7]),
        (ds.DistributedSampler(3, 0, False, offset=3), [0, 3, 6, 9]),
        (ds.DistributedSampler(15, 0, False, offset=2), [0]),
        (iter([4, 2]), [4, 2]),
        (((3,), np.array([1])), [3, 1]),
    ],
)
def test_own_and_chained_samplers(sampler, rows):
    assert sampled(sampler, 10) == rows


def test_samplers_answer_questions():
    both = chain(ds.SequentialSampler(1), ds.RandomSampler(num_samples=4))
    assert both.is_shuffled() and not both.is_sharded() and both.get_num_samples() == 4
    assert both.get_shuffle_mode() == ds.Shuffle.GLOBAL and both.get_child().num_samples == 4
    assert ds.DistributedSampler(2, 0, False).is_sharded() and ds.SubsetSampler([1, 2]).get_num_samples() == 2
    with pytest.raises(RuntimeError):
        both.add_child(ds.SequentialSampler())


def test_use_sampler_replaces_the_sampler():
    dataset = ds.NumpySlicesDataset(np.arange(4), shuffle=False)
    dataset.use_sampler(ds.SubsetSampler([3]))
    assert read(dataset) == [3]


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (RuntimeError, lambda: sampled(ds.SequentialSampler(-1))),
        (TypeError, lambda: ds.SequentialSampler("a")),
        (ValueError, lambda: ds.RandomSampler(num_samples=-1)),
        (TypeError, lambda: ds.RandomSampler(replacement=1)),
        (TypeError, lambda: ds.SubsetSampler([0.5])),
        (RuntimeError, lambda: sampled(ds.SubsetSampler([6]))),
        (RuntimeError, lambda: sampled(ds.WeightedRandomSampler([]))),
        (RuntimeError, lambda: sampled(ds.WeightedRandomSampler([-1, 2]))),
        (RuntimeError, lambda: sampled(ds.WeightedRandomSampler([1] * 7, 2))),
        (RuntimeError, lambda: sampled(ds.WeightedRandomSampler([1, 2], 3, replacement=False))),
        (RuntimeError, lambda: sampled(ds.DistributedSampler(2, 2))),
        (RuntimeError, lambda: sampled(ds.DistributedSampler(2, 1, offset=3))),
        (RuntimeError, lambda: sampled(chain(ds.SubsetSampler([4]), ds.SequentialSampler(0, 2)))),
        (TypeError, lambda: ds.PKSampler("a")),
        (NotImplementedError, lambda: sampled(ds.Sampler())),
    ],
)
def test_wrong_samplers(kind, wrong):
    with pytest.raises(kind):
        wrong()


# ---- MNIST -------------------------------------------------------------------------------------------------


@pytest.fixture
def mnist(tmp_path):
    """A directory with 4 training and 2 test digits."""
    images = np.arange(6 * 28 * 28, dtype=np.uint64).reshape(6, 28, 28).astype(np.uint8)
    labels = np.array([5, 0, 4, 1, 9, 2], np.uint8)
    for part, of in (("train", slice(4)), ("t10k", slice(4, 6))):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte", images[of])
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte", labels[of])
    return tmp_path


def test_mnist_rows_are_image_and_label(mnist):
    dataset = ds.MnistDataset(str(mnist), "train", shuffle=False)
    assert dataset.get_col_names() == ["image", "label"] and len(dataset) == 4
    rows = list(dataset.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [int(r["label"]) for r in rows] == [5, 0, 4, 1]
    assert rows[1]["image"].shape == (28, 28, 1) and rows[1]["image"].dtype == np.uint8
    assert rows[0]["label"].dtype == np.uint32 and rows[1]["image"][0, 0, 0] == 784 % 256


def test_mnist_usage_chooses_files(mnist):
    assert [len(ds.MnistDataset(mnist, usage)) for usage in ("train", "test", "all", None)] == [4, 2, 6, 6]
    with pytest.raises(ValueError, match="'train', 'test', 'all'"):
        ds.MnistDataset(mnist, "valid")


def test_mnist_files_may_be_gzipped(mnist):
    for path in list(mnist.iterdir()):
        with gzip.open(f"{path}.gz", "wb") as file:
            file.write(path.read_bytes())
        path.unlink()
    assert len(ds.MnistDataset(mnist)) == 6


def test_missing_mnist_files_are_named(mnist, tmp_path):
    (mnist / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(RuntimeError, match="train-labels"):
        len(ds.MnistDataset(mnist, "train"))
    with pytest.raises(ValueError, match="not a directory"):
        ds.MnistDataset(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RuntimeError, match="no files"):
        len(ds.MnistDataset(tmp_path / "empty"))


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda data: data[:-1], "should hold"),
        (lambda data: data + b"x", "should hold"),
        (lambda data: data[:10], "header is cut off"),
        (lambda data: b"", "not an IDX file"),
        (lambda data: b"\x89PNG" + data, "not an IDX file"),
        (lambda data: data[:2] + b"\x07" + data[3:], "not an IDX file"),
    ],
)
def test_damaged_mnist_files_are_refused_by_name(mnist, damage, message):
    path = mnist / "train-images-idx3-ubyte"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RuntimeError, match=f"train-images-idx3-ubyte.*{message}"):
        len(ds.MnistDataset(mnist, "train"))


def test_a_cut_gzip_file_is_refused_by_name(mnist):
    path = mnist / "train-images-idx3-ubyte"
    (mnist / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(path.read_bytes())[:-20])
    path.unlink()
    with pytest.raises(RuntimeError, match="train-images-idx3-ubyte.gz"):
        len(ds.MnistDataset(mnist, "train"))


def test_images_and_labels_must_be_as_many(mnist):
    write_idx(mnist / "train-labels-idx1-ubyte", np.zeros(3, np.uint8))
    with pytest.raises(RuntimeError, match="do not fit together"):
        len(ds.MnistDataset(mnist, "train"))


def test_idx_files_of_other_types(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(bytes([0, 0, 13, 1, 0, 0, 0, 2]) + np.array([1.5, -2], ">f4").tobytes())
    found = read_idx(path)
    assert found.tolist() == [1.5, -2] and found.dtype == np.float32


# ---- transforms --------------------------------------------------------------------------------------------


def test_transforms():
    t = ds.transforms
    assert t.OneHot(3)(np.int32(1)).tolist() == [0, 1, 0]
    np.testing.assert_allclose(t.OneHot(4, 0.2)(np.int32(1)), [0.05, 0.85, 0.05, 0.05], rtol=1e-6)
    assert t.Compose([lambda x: x + 1, t.Duplicate()])(np.int32(1)) == (2, 2)
    assert t.Fill(7)(np.zeros(2, np.int32)).tolist() == [7, 7]
    for kind, wrong in (
        (ValueError, lambda: t.OneHot(0)),
        (RuntimeError, lambda: t.OneHot(3)(np.int32(3))),
        (RuntimeError, lambda: t.OneHot(3)(np.float32(1))),
        (ValueError, lambda: t.OneHot(3, 2.0)),
        (TypeError, lambda: t.Compose([3])),
    ):
        with pytest.raises(kind):
            wrong()


def test_vision_transforms():
    v = ds.vision
    image = np.arange(12, dtype=np.uint8).reshape(2, 3, 2)
    assert v.HWC2CHW()(image).shape == (2, 2, 3) and v.HWC2CHW()(image)[1, 0, 2] == image[0, 2, 1]
    np.testing.assert_allclose(v.Rescale(1 / 255, -1.0)(image), image / 255 - 1, atol=1e-6)
    np.testing.assert_allclose(v.Normalize([1, 2], [2, 4])(image), (image - [1, 2]) / [2, 4], rtol=1e-6)
    chw = image.transpose(2, 0, 1)
    np.testing.assert_allclose(
        v.Normalize([1, 2], [2, 4], is_hwc=False)(chw), v.Normalize([1, 2], [2, 4])(image).transpose(2, 0, 1)
    )
    flat = np.full((4, 6), 7, np.uint8)
    assert v.Resize((2, 3))(flat).tolist() == [[7] * 3] * 2 and v.Resize(2)(flat).shape == (2, 3)
    assert v.Resize((8, 12), v.Inter.NEAREST)(flat).shape == (8, 12)
    ramp = np.array([[0.0, 10.0]], np.float32)
    np.testing.assert_allclose(v.Resize((1, 4))(ramp), [[0, 2.5, 7.5, 10]])
    for kind, wrong in (
        (RuntimeError, lambda: v.HWC2CHW()(np.zeros(3))),
        (ValueError, lambda: v.Normalize([1], [0])),
        (ValueError, lambda: v.Normalize([1, 2], [1])),
        (ValueError, lambda: v.Resize(0)),
    ):
        with pytest.raises(kind):
            wrong()


# ---- rows by their place, and sources that give theirs once ------------------------------------------------


class Few:
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index * index


def test_rows_by_their_place():
    ds.config.set_seed(5)
    shuffled = ds.GeneratorDataset(Few(), ["x"], shuffle=True)
    assert [shuffled[i] for i in range(4)] == read(shuffled)
    assert ds.GeneratorDataset(Few(), ["x"], sampler=[3, 1])[np.int64(1)] == 1
    table = ds.NumpySlicesDataset({"a": [1, 2], "b": [[3, 4], [5, 6]]}, shuffle=False)
    assert [np.asarray(c).tolist() for c in table[1]] == [2, [5, 6]]
    for kind, index, dataset in (
        (RuntimeError, 4, shuffled),
        (RuntimeError, -1, shuffled),
        (TypeError, 1.0, shuffled),
        (TypeError, slice(2), table),
        (RuntimeError, 0, ds.GeneratorDataset(lambda: iter([1]), ["x"])),
        (RuntimeError, 0, ds.GeneratorDataset(Few(), ["x"], batch_sampler=[[1, 2]])),
    ):
        with pytest.raises(kind):
            dataset[index]


@pytest.mark.parametrize("source", [(i for i in range(3)), zip(range(3)), iter([0, 1, 2])])
def test_a_generator_object_gives_its_rows_in_every_epoch(source):
    dataset = ds.GeneratorDataset(source, ["x"])
    assert len(dataset) == 3 and read(dataset) == [0, 1, 2]
    iterator = dataset.create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [[int(row[0]) for row in iterator] for _ in range(2)] == [[0, 1, 2]] * 2


def test_samplers_may_announce_how_many_rows_they_give():
    class Announcing(ds.Sampler):
        def __init__(self, announced, num_samples=None):
            super().__init__(num_samples)
            self.announced = announced

        def __iter__(self):
            return iter(range(4))

        def __len__(self):
            return self.announced

    assert sampled(Announcing(2)) == [0, 1] and sampled(Announcing(9, 3)) == [0, 1, 2]
    dataset = ds.NumpySlicesDataset(np.arange(6), sampler=Announcing(5))
    assert len(dataset) == 5
    with pytest.raises(RuntimeError, match="generator 4 is different from generator.len 5"):
        read(dataset)


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (TypeError, lambda: ds.GeneratorDataset(Few(), ["x"], batch_sampler=1)),
        (RuntimeError, lambda: read(ds.GeneratorDataset(Few(), ["x"], batch_sampler=[1, 2]))),
        (RuntimeError, lambda: read(ds.GeneratorDataset(Few(), ["x"], batch_sampler=[["1"]]))),
        (ValueError, lambda: ds.GeneratorDataset(Few(), ["x"], max_rowsize=-2)),
        (ValueError, lambda: ds.NumpySlicesDataset([1]).map(abs, max_rowsize=[-2, 1])),
        (RuntimeError, lambda: read(ds.GeneratorDataset([np.array([{1}])], ["x"]))),
        (TypeError, lambda: ds.WeightedRandomSampler((0.5, 0.5))),
        (RuntimeError, lambda: ds.WeightedRandomSampler([0, 0]).parse()),
        (RuntimeError, lambda: ds.DistributedSampler(2, 0, offset=3).parse()),
        (TypeError, lambda: ds.NumpySlicesDataset([1]).use_sampler([0])),
        (TypeError, lambda: ds.GeneratorDataset(lambda: iter([1]), ["x"], num_shards="2", shard_id=0)),
        (TypeError, lambda: ds.GeneratorDataset(lambda: iter([1]), ["x"], sampler=3)),
    ],
)
def test_wrong_arguments_of_generators_and_samplers(kind, wrong):
    with pytest.raises(kind):
        wrong()


def test_columns_may_be_of_any_dtype():
    dataset = ds.GeneratorDataset([(np.int8(1), np.float32(2))], ["a", "b"], column_types=[None, np.float32])
    assert read(dataset) == [1] and dataset.get_batch_size() == 1
    assert ds.GeneratorDataset(Few(), ["x"], batch_sampler=[[1, 2]]).get_batch_size() == -1


def test_the_length_of_a_source_is_asked_for_when_it_is_needed():
    class Endless:
        def __getitem__(self, index):
            return index

    with pytest.raises(RuntimeError, match="'__len__' method is required"):
        ds.GeneratorDataset(Endless(), ["x"]).get_dataset_size()
