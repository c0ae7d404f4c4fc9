"""Errors of datasets: their types, and the pieces of their texts that existing scripts look for."""

import numpy as np
import pytest

import mycelia.dataset as ds
from mycelia.dataset import audio, text, transforms, vision

NUMBERS = np.arange(6, dtype=np.int64)


def numbers(**options):
    return ds.NumpySlicesDataset(NUMBERS, "x", **{"shuffle": False, **options})


def rows(dataset):
    return [tuple(row) for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


ARGUMENTS = [
    (lambda: numbers().batch("2"), TypeError, "batch_size should either be an int or a callable"),
    (
        lambda: numbers().batch(0),
        ValueError,
        "Input batch_size is not within the required interval of [1, 2147483647].",
    ),
    (
        lambda: numbers().shuffle(1),
        ValueError,
        "Input buffer_size is not within the required interval of [2, ",
    ),
    (lambda: numbers().take(0), ValueError, "within the required interval of (0, 2147483647]"),
    (
        lambda: numbers().skip("1"),
        TypeError,
        "Argument count with value 1 is not of type [<class 'int'>], but got <class 'str'>.",
    ),
    (
        lambda: numbers().skip(True),
        TypeError,
        "Argument count with value True is not of type (<class 'int'>,)",
    ),
    (lambda: numbers().project([]), ValueError, "columns should not be empty."),
    (lambda: numbers().project(["x", "x"]), ValueError, "Every column name should not be same with others"),
    (
        lambda: numbers().map(lambda x: x, callbacks=[3]),
        TypeError,
        "Argument callbacks[0] with value 3 is not of type",
    ),
    (
        lambda: numbers(num_samples=-1),
        ValueError,
        "num_samples exceeds the boundary between 0 and 9223372036854775807(INT64_MAX)!",
    ),
    (
        lambda: numbers(num_parallel_workers=0),
        ValueError,
        "num_parallel_workers exceeds the boundary between 1 and",
    ),
    (
        lambda: numbers(num_shards=2, shard_id=2),
        ValueError,
        "Input shard_id is not within the required interval of [0, 1].",
    ),
    (
        lambda: numbers(num_shards=2),
        ValueError,
        "num_shards is specified and currently requires shard_id as well.",
    ),
    (lambda: numbers(shard_id=0), ValueError, "shard_id is specified but num_shards is not."),
    (lambda: numbers().save("x", 0), ValueError, "num_files should between 0 and 1000."),
    (lambda: numbers().save("x", 1, "csv"), ValueError, "csv dataset format is not supported."),
    (lambda: ds.TextFileDataset(""), ValueError, "Input dataset_files can not be empty"),
    (lambda: ds.TextFileDataset("no/such*"), ValueError, "The following patterns did not match any files"),
    (
        lambda: ds.MnistDataset("no/such"),
        ValueError,
        "The folder no/such does not exist or is not a directory or permission denied!",
    ),
    (
        lambda: ds.FakeImageDataset(2, ("1", 2, 3)),
        TypeError,
        "Argument image_size[0] with value 1 is not of type [<class 'int'>]",
    ),
    (
        lambda: ds.SubsetSampler([1.5]),
        TypeError,
        "Type of indices element must be int, but got list[0]: 1.5, type: <class 'float'>.",
    ),
    (
        lambda: ds.WeightedRandomSampler(["a"]),
        TypeError,
        "type of weights element must be number, but got w[0]",
    ),
    (
        lambda: audio.Gain("1"),
        TypeError,
        "Argument gain_db with value 1 is not of type [<class 'float'>, <class 'int'>]",
    ),
    (
        lambda: audio.AllpassBiquad(0, 1.0),
        ValueError,
        "sample_rate is not within the required interval of [-2147483648, 0) and (0, 2147483647].",
    ),
    (lambda: text.AddToken(1.5), TypeError, "Argument token with value 1.5 is not of type [<class 'str'>]"),
    (
        lambda: transforms.Compose([3]),
        TypeError,
        "transforms[0] is neither a transforms op (TensorOperation) nor a callable pyfunc.",
    ),
    (lambda: transforms.Compose([]), ValueError, "transforms list can not be empty."),
    (
        lambda: vision.Resize(3, 100),
        TypeError,
        "Argument interpolation with value 100 is not of type [<enum 'Inter'>]",
    ),
    (
        lambda: vision.AutoContrast(50.0),
        ValueError,
        "Input cutoff is not within the required interval of [0, 50).",
    ),
    (lambda: vision.GaussianBlur(2), ValueError, "is not an odd value"),
    (lambda: vision.Invert()([1]), TypeError, "Input should be NumPy or PIL image, got <class 'list'>."),
    (lambda: vision.read_video(3), TypeError, "Input filename is not of type"),
    (lambda: vision.read_video("no/such"), ValueError, "Invalid file path, no/such does not exist."),
    (lambda: vision.read_video(__file__), RuntimeError, "Failed to open the file"),
    (lambda: vision.read_video_timestamps(__file__, "min"), RuntimeError, "Not supported pts_unit"),
    (
        lambda: vision.DecodeVideo()(np.zeros((2, 2), np.uint8)),
        RuntimeError,
        "only support 1D input, got rank: 2",
    ),
]


@pytest.mark.parametrize(("make", "kind", "piece"), ARGUMENTS, ids=lambda v: v if isinstance(v, str) else "")
def test_wrong_arguments(make, kind, piece):
    with pytest.raises(kind) as found:
        make()
    assert piece in str(found.value)


def test_a_choice_that_is_close_is_a_hint(tmp_path):
    with pytest.raises(ValueError) as found:
        ds.GTZANDataset(str(tmp_path), usage="trian")
    assert "Input usage is not within the valid set of ['train', 'valid', 'test', 'all']" in str(found.value)
    assert "'train'" in found.value.hint


def fails(value):
    raise KeyError("of the test")


ROWS = [
    (lambda: numbers().map(fails), "map operation: [PyFunc] failed."),
    (lambda: numbers().map(fails), "Exception thrown from user defined Python function in dataset"),
    (
        lambda: numbers().map(lambda x: (x, x)),
        "the number of columns returned in 'map' operations should match the number of",
    ),
    (lambda: numbers().map(transforms.Slice(3)), "map operation: [Slice] failed."),
    (
        lambda: numbers().map(lambda x: np.zeros(int(x))).batch(2),
        "Cannot batch tensors with different shapes",
    ),
    (lambda: numbers().batch(-1), "Batch size cannot be -1 without using batch sampler."),
    (lambda: numbers() + ds.NumpySlicesDataset(np.ones(2, np.float32), "x"), "different types or ranks"),
    (
        lambda: numbers(sampler=ds.SubsetSampler([9]), shuffle=None),
        "Sample ID (9) is out of bound, expected range [0, 5]",
    ),
]


@pytest.mark.parametrize(("make", "piece"), ROWS, ids=[piece for _, piece in ROWS])
def test_wrong_rows(make, piece):
    with pytest.raises(RuntimeError) as found:
        rows(make())
    assert piece in str(found.value)


def test_a_failed_row_names_its_file(tmp_path):
    (tmp_path / "lines.txt").write_text("one\ntwo\n")
    data = ds.TextFileDataset(str(tmp_path / "lines.txt"), shuffle=False).map(fails)
    with pytest.raises(RuntimeError) as found:
        rows(data)
    said = str(found.value)
    assert "map operation: [PyFunc] failed. The corresponding data file is: " in said
    assert "lines.txt" in said and "in row 0 of epoch 1" in said and "KeyError" in said


def test_an_epoch_too_many():
    iterator = numbers().create_tuple_iterator(num_epochs=1)
    assert len(list(iterator)) == 6
    with pytest.raises(RuntimeError, match="User tries to fetch data beyond the specified number of epochs"):
        next(iterator)
