"""Operations on datasets, each against what plain Python would give."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor
from mycelia import dataset as ds


@pytest.fixture(autouse=True)
def seed():
    """Shuffles of these tests do not depend on what ran before."""
    before = ds.config.get_seed()
    ds.config.set_seed(5)
    yield
    if before is not None:
        ds.config.set_seed(before)


def numbers(n=10, name="x"):
    return ds.NumpySlicesDataset(np.arange(n), [name], shuffle=False)


def read(dataset):
    """The values of the first column."""
    return [row[0].tolist() for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


# ---- batch -------------------------------------------------------------------------------------------------


def test_batch_stacks_rows_and_may_drop_the_rest():
    batches = numbers().batch(4)
    assert read(batches) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert batches.get_dataset_size() == len(batches) == 3 and batches.get_batch_size() == 4
    dropped = numbers().batch(4, drop_remainder=True)
    assert read(dropped) == [[0, 1, 2, 3], [4, 5, 6, 7]] and len(dropped) == 2


def test_a_batch_size_may_be_a_function_of_the_batch():
    growing = numbers().batch(lambda info: info.get_batch_num() + 1)
    assert read(growing) == [[0], [1, 2], [3, 4, 5], [6, 7, 8, 9]] and len(growing) == 4


def test_per_batch_map_sees_columns_and_the_batch():
    def double(xs, info):
        return [x * 2 + info.get_batch_num() for x in xs]

    assert read(numbers(4).batch(2, per_batch_map=double, input_columns=["x"])) == [[0, 2], [5, 7]]


def test_per_batch_map_may_change_columns():
    both = ds.NumpySlicesDataset((np.arange(4), np.arange(4) * 10), ["a", "b"], shuffle=False)
    made = both.batch(
        2,
        per_batch_map=lambda a, info: (a, [v + 1 for v in a]),
        input_columns=["a"],
        output_columns=["a", "c"],
    )
    assert made.get_col_names() == ["a", "c", "b"]
    first = next(made.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert {k: v.tolist() for k, v in first.items()} == {"a": [0, 1], "c": [1, 2], "b": [0, 10]}


def test_rows_of_different_shapes_cannot_be_stacked():
    ragged = ds.GeneratorDataset(lambda: iter([(np.zeros(2),), (np.zeros(3),)]), ["x"])
    with pytest.raises(
        RuntimeError, match=r"different shapes, but column 'x' has rows of \[\(2,\), \(3,\)\]"
    ):
        read(ragged.batch(2))


# ---- map, filter -------------------------------------------------------------------------------------------


def test_map_applies_functions_in_order_to_the_first_column():
    assert read(numbers(3).map([lambda x: x + 1, lambda x: x * 10])) == [10, 20, 30]
    assert read(numbers(3).map(lambda x: x + 1, ["x"])) == [1, 2, 3]


def test_map_joins_and_splits_columns():
    both = ds.NumpySlicesDataset((np.arange(3), np.arange(3) * 10), ["a", "b"], shuffle=False)
    summed = both.map(lambda a, b: a + b, ["a", "b"], ["s"])
    assert summed.get_col_names() == ["s"] and read(summed) == [0, 11, 22]
    split = both.map(lambda a: (a, a + 1), ["a"], ["a", "next"])
    assert split.get_col_names() == ["a", "next", "b"]
    renamed = both.map(lambda b: b + 1, ["b"], ["c"])
    assert renamed.get_col_names() == ["a", "c"]


def test_map_uses_transforms():
    mapped = numbers(2).map(ds.transforms.TypeCast(ms.float32))
    assert [row[0].dtype for row in mapped.create_tuple_iterator(num_epochs=1)] == [ms.float32, ms.float32]


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (ValueError, lambda: numbers().map(3)),
        (ValueError, lambda: numbers().map(abs, ["x", "x"])),
        (TypeError, lambda: numbers().map(abs, 3)),
        (ValueError, lambda: numbers().map(abs, num_parallel_workers=0)),
        (RuntimeError, lambda: read(numbers().map(abs, ["y"]))),
        (RuntimeError, lambda: read(numbers().map(lambda x: (x, x), ["x"], ["a"]))),
        (RuntimeError, lambda: read(numbers().map(lambda x: None))),
        (RuntimeError, lambda: read(numbers().map(lambda x: 1 // 0 if x == 0 else x))),
    ],
)
def test_maps_that_cannot_be(kind, wrong):
    with pytest.raises(kind):
        wrong()


def test_filter_keeps_what_the_predicate_allows():
    even = numbers().filter(lambda x: x % 2 == 0)
    assert read(even) == [0, 2, 4, 6, 8] and len(even) == 5
    with pytest.raises(TypeError, match="predicate"):
        numbers().filter(3)


# ---- order and number of rows ------------------------------------------------------------------------------


def test_shuffle_permutes_and_follows_the_seed():
    def order():
        ds.config.set_seed(7)
        iterator = numbers(50).shuffle(50).create_tuple_iterator(num_epochs=2, output_numpy=True)
        return tuple([row[0].tolist() for row in iterator] for _ in range(2))

    (first, second), again = order(), order()
    assert sorted(first) == list(range(50)) and first != list(range(50))
    assert first != second  # every epoch has an order of its own
    assert (first, second) == again


def test_shuffle_mixes_within_its_buffer():
    values = read(numbers(100).shuffle(5))
    assert sorted(values) == list(range(100))
    assert all(value < position + 5 for position, value in enumerate(values))


def test_repeat_take_skip_concat():
    assert read(numbers(2).repeat(3)) == [0, 1] * 3 and len(numbers(2).repeat(3)) == 6
    assert numbers(2).repeat(3).get_repeat_count() == 3
    endless = iter(numbers(2).repeat().create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert [next(endless)[0].tolist() for _ in range(5)] == [0, 1, 0, 1, 0]
    assert read(numbers().take(3)) == [0, 1, 2] and len(numbers().take(30)) == 10
    assert read(numbers().take(-1)) == list(range(10))
    assert read(numbers().skip(7)) == [7, 8, 9] and len(numbers().skip(70)) == 0
    assert read(numbers(2) + numbers(3)) == [0, 1, 0, 1, 2] == read(numbers(2).concat([numbers(3)]))
    assert len(numbers(2).concat(numbers(3))) == 5


def test_operations_are_applied_in_the_order_they_are_written():
    assert read(numbers(5).repeat(2).batch(4)) == [[0, 1, 2, 3], [4, 0, 1, 2], [3, 4]]
    assert read(numbers(5).batch(4).repeat(2)) == [[0, 1, 2, 3], [4], [0, 1, 2, 3], [4]]


def test_zip_puts_columns_side_by_side():
    zipped = ds.zip((numbers(3), numbers(5, "y")))
    assert zipped.get_col_names() == ["x", "y"] and len(zipped) == 3
    assert [[c.tolist() for c in row] for row in zipped.create_tuple_iterator(output_numpy=True,
        num_epochs=1)] == [
        [0, 0], [1, 1], [2, 2]
    ]  # fmt: skip
    assert numbers(3).zip(numbers(5, "y")).get_col_names() == ["x", "y"]
    with pytest.raises(RuntimeError, match="rename"):
        read(ds.zip((numbers(), numbers())))
    with pytest.raises(TypeError, match="tuple"):
        ds.zip([numbers()])
    with pytest.raises(ValueError, match="at least two"):
        ds.zip((numbers(),))


def test_project_and_rename():
    both = ds.NumpySlicesDataset({"a": [1], "b": [2]}, shuffle=False)
    assert both.project(["b", "a"]).get_col_names() == ["b", "a"] and read(both.project("b")) == [2]
    assert both.rename("a", "c").get_col_names() == ["c", "b"]
    for wrong in (lambda: both.project("z"), lambda: both.rename("z", "y"), lambda: both.rename("a", "b")):
        with pytest.raises(RuntimeError):
            read(wrong())
    for wrong in (lambda: both.project([]), lambda: both.rename(["a", "b"], "c")):
        with pytest.raises(ValueError):
            wrong()


def test_split_parts_do_not_overlap():
    train, test = numbers().split([7, 3], randomize=False)
    assert read(train) == list(range(7)) and read(test) == [7, 8, 9]
    train, test = numbers().split([0.8, 0.2])
    first = (read(train), read(test))
    assert sorted(first[0] + first[1]) == list(range(10))
    assert (read(train), read(test)) == first  # the parts stay what they are
    for kind, wrong in (
        (RuntimeError, [[7, 7], [0.99, 0.01]]),
        (ValueError, [[0.5, 0.6], [], ["a"], [0, 10], [3, 7.0]]),
        (TypeError, [3]),
    ):
        for sizes in wrong:
            with pytest.raises(kind, match="split"):
                numbers().split(sizes)


@pytest.mark.parametrize(
    "rows, fractions, counts",
    [(10, [0.33, 0.33, 0.34], [4, 3, 3]), (11, [0.5, 0.5], [5, 6]), (7, [0.5, 0.25, 0.25], [3, 2, 2])],
)
def test_split_by_fractions_gives_every_row_to_a_part(rows, fractions, counts):
    assert [len(part) for part in numbers(rows).split(fractions)] == counts


def test_apply_calls_the_function():
    assert read(numbers(4).apply(lambda d: d.batch(2))) == [[0, 1], [2, 3]]
    with pytest.raises(TypeError, match="apply_func returns"):
        numbers().apply(lambda d: 3)


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (ValueError, lambda: numbers().batch(0)),
        (TypeError, lambda: numbers().batch(2.0)),
        (TypeError, lambda: numbers().batch(2, drop_remainder=1)),
        (TypeError, lambda: numbers().batch(2, unknown=1)),
        (ValueError, lambda: numbers().shuffle(1)),
        (TypeError, lambda: numbers().shuffle(2.5)),
        (ValueError, lambda: numbers().repeat(0)),
        (ValueError, lambda: numbers().repeat(-2)),
        (ValueError, lambda: numbers().take(0)),
        (ValueError, lambda: numbers().skip(-1)),
        (RuntimeError, lambda: read(numbers().concat(numbers(name="y")))),
        (TypeError, lambda: numbers().concat(3)),
        (RuntimeError, lambda: numbers().create_tuple_iterator(num_epochs=0)),
        (RuntimeError, lambda: numbers().create_tuple_iterator(["y"])),
        (RuntimeError, lambda: numbers().sync_wait("a").sync_update("b")),
        (RuntimeError, lambda: numbers().sync_wait("a").shuffle(3)),
        (TypeError, lambda: numbers().flat_map(3)),
    ],
)
def test_wrong_arguments_are_refused(kind, wrong):
    with pytest.raises(kind):
        wrong()


# ---- iterators ---------------------------------------------------------------------------------------------


def test_iterators_give_tensors_or_arrays_as_lists_or_dicts():
    both = ds.NumpySlicesDataset({"a": [1.5], "b": [2]}, shuffle=False)
    (row,) = both.create_tuple_iterator(num_epochs=1)
    assert isinstance(row, list) and isinstance(row[0], Tensor)
    (row,) = both.create_dict_iterator(num_epochs=1, output_numpy=True)
    assert list(row) == ["a", "b"] and isinstance(row["a"], np.ndarray)
    (row,) = both.create_tuple_iterator(columns=["b"], num_epochs=1)
    assert len(row) == 1


def test_one_for_loop_is_one_epoch():
    iterator = numbers(2).create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [[row[0].tolist() for row in iterator] for _ in range(2)] == [[0, 1], [0, 1]]
    with pytest.raises(RuntimeError, match="num_epochs"):
        next(iterator)
    endless = numbers(2).create_tuple_iterator(output_numpy=True)
    assert [[row[0].tolist() for row in endless] for _ in range(3)] == [[0, 1]] * 3


def test_a_stopped_iterator_gives_nothing_more():
    iterator = numbers().create_tuple_iterator()
    next(iterator)
    iterator.stop()
    with pytest.raises(AttributeError):
        next(iterator)


def test_shapes_and_types_of_the_first_row():
    both = ds.NumpySlicesDataset((np.zeros((4, 2), np.float32), np.arange(4)), ["a", "b"]).batch(2)
    assert both.output_shapes() == [[2, 2], [2]]
    assert both.output_types() == [np.float32, np.int64]
    with pytest.raises(RuntimeError, match="empty"):
        numbers(1).skip(1).output_shapes()


def test_texts_stay_arrays():
    (row,) = ds.NumpySlicesDataset(["word"], ["t"]).create_tuple_iterator(num_epochs=1)
    assert isinstance(row[0], np.ndarray) and str(row[0]) == "word"


# ---- settings ----------------------------------------------------------------------------------------------


def test_settings():
    before = ds.config.get_num_parallel_workers()
    ds.config.set_num_parallel_workers(1)
    ds.config.set_prefetch_size(4)
    assert (ds.config.get_num_parallel_workers(), ds.config.get_prefetch_size()) == (1, 4)
    ds.config.set_num_parallel_workers(before)
    ds.config.set_prefetch_size(16)
    for kind, wrong in (
        (ValueError, lambda: ds.config.set_num_parallel_workers(0)),
        (TypeError, lambda: ds.config.set_prefetch_size("a")),
        (TypeError, lambda: ds.config.set_seed("a")),
        (ValueError, lambda: ds.config.set_seed(-1)),
    ):
        with pytest.raises(kind):
            wrong()


# ---- padded and bucketed batches ---------------------------------------------------------------------------


def ragged(n=5):
    return ds.GeneratorDataset(lambda: ((np.arange(i + 1), np.float32(i)) for i in range(n)), ["a", "b"])


@pytest.mark.parametrize(
    "pad_info, first",
    [
        ({}, [[0, 0, 0], [0, 1, 0], [0, 1, 2]]),
        ({"a": None}, [[0, 0, 0], [0, 1, 0], [0, 1, 2]]),
        ({"a": ([None], 7)}, [[0, 7, 7], [0, 1, 7], [0, 1, 2]]),
        ({"a": ([2], -1)}, [[0, -1], [0, 1], [0, 1]]),  # longer rows are cut
    ],
)
def test_padded_batches(pad_info, first):
    assert read(ragged().padded_batch(3, pad_info=pad_info))[0] == first


def test_buckets_of_lengths():
    batches = ragged(7).bucket_batch_by_length(["a"], [2, 4], [2, 2, 3])
    assert read(batches) == [
        [[0, 1, 0], [0, 1, 2]],
        [[0, 1, 2, 3, 0, 0], [0, 1, 2, 3, 4, 0], [0, 1, 2, 3, 4, 5]],
        [[0]],
        [[0, 1, 2, 3, 4, 5, 6]],
    ]
    to_boundary = ragged(3).bucket_batch_by_length(
        ["a"], [3, 6], [2, 2, 1], pad_info={"a": ([None], -1)}, pad_to_bucket_boundary=True
    )
    assert read(to_boundary) == [[[0, -1], [0, 1]], [[0, 1, 2, -1, -1]]]


@pytest.mark.parametrize(
    "boundaries, sizes",
    [([], [2]), ([3, 5], [2, 2]), ([5, 3], [2, 2, 2]), ([0, 3], [2, 2, 2]), ([3], [0, 1])],
)
def test_buckets_that_cannot_be(boundaries, sizes):
    with pytest.raises(ValueError):
        ragged().bucket_batch_by_length(["a"], boundaries, sizes)


# ---- less common operations --------------------------------------------------------------------------------


def test_flat_map_joins_what_the_function_makes():
    twice = numbers(3).flat_map(lambda x: ds.NumpySlicesDataset([x, x], ["y"], shuffle=False))
    assert read(twice) == [0, 0, 1, 1, 2, 2] and twice.get_col_names() == ["y"]


def test_sync_update_changes_what_comes_next():
    state = {"plus": 0}
    gated = numbers(4).sync_wait("gate", callback=lambda data: state.update(plus=data))
    mapped = gated.map(lambda x: x + state["plus"])
    seen = []
    for row in mapped.create_tuple_iterator(num_epochs=1, output_numpy=True):
        seen.append(row[0].tolist())
        mapped.sync_update("gate", data=10 * len(seen))
    assert seen == [0, 11, 22, 33]


def test_callbacks_of_map_hear_of_epochs_and_steps():
    heard = []

    class Listener(ds.DSCallback):
        def ds_begin(self, context):
            heard.append("begin")

        def ds_epoch_begin(self, context):
            heard.append(f"epoch {context.cur_epoch_num}")

        def ds_step_end(self, context):
            heard.append(f"step {context.cur_step_num_in_epoch} of all {context.cur_step_num}")

    mapped = numbers(2).map(lambda x: x, callbacks=Listener())
    iterator = mapped.create_tuple_iterator(num_epochs=2)
    for _ in range(2):
        list(iterator)
    assert heard == ["begin", "epoch 1", "step 1 of all 1", "step 2 of all 2", "epoch 2",
                     "step 1 of all 3", "step 2 of all 4"]  # fmt: skip


@pytest.mark.parametrize("mode, left", [("SKIP", [0, 3, 4]), ("REPLACE", [0, 3, 4, 0, 3])])
def test_rows_that_fail_may_be_left_out_or_replaced(mode, left):
    def picky(x):
        if x in (1, 2):
            raise ValueError(x)
        return x

    ds.config.set_error_samples_mode(ds.ErrorSamplesMode[mode])
    try:
        assert read(numbers(5).map(picky)) == left
    finally:
        ds.config.set_error_samples_mode(ds.ErrorSamplesMode.RETURN)


def test_columns_may_be_dicts():
    rows = [({"a": i, "b": [1, 2]}, i) for i in range(2)]
    dataset = ds.GeneratorDataset(rows, ["d", "i"], shuffle=False)
    first = next(dataset.create_tuple_iterator(output_numpy=True))
    assert first[0]["a"].tolist() == 0 and [v.tolist() for v in first[0]["b"]] == [1, 2]
    batch = next(dataset.batch(2).create_dict_iterator())
    assert batch["d"]["a"].asnumpy().tolist() == [0, 1] and batch["d"]["b"].shape == (2, 2)


def test_concat_may_be_sampled():
    joined = numbers(3).concat(numbers(4))
    joined.use_sampler(ds.DistributedSampler(2, 1, shuffle=False))
    assert read(joined) == [1, 0, 2] and len(joined) == 3
    with pytest.raises(TypeError):
        joined.use_sampler(ds.SequentialSampler())
