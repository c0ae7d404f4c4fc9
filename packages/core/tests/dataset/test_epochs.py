"""Epochs as the user counts them below `repeat`, lists of iterators, gates, and what `save` writes."""

import gc
import weakref

import numpy as np
import pytest

import mycelia.dataset as ds
from mycelia.dataset.execution import iterator as iterators


def numbers(count=4):
    return ds.NumpySlicesDataset(np.arange(count), "x", shuffle=False)


def read(dataset, epochs=1):
    reader = dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[row[0].tolist() for row in reader] for _ in range(epochs)]


def test_a_batch_function_below_repeat_sees_the_iterators_epoch():
    def mark(column, info):
        return ([np.asarray([int(v), info.get_epoch_num(), info.get_batch_num()]) for v in column],)

    data = numbers().batch(2, per_batch_map=mark, input_columns=["x"]).repeat(2)
    first = [[[0, 0, 0], [1, 0, 0]], [[2, 0, 1], [3, 0, 1]]]
    second = [[[0, 1, 0], [1, 1, 0]], [[2, 1, 1], [3, 1, 1]]]
    assert read(data, 2) == [first * 2, second * 2]


class Events(ds.DSCallback):
    def __init__(self):
        super().__init__(1)
        self.seen = []

    def ds_begin(self, context):
        self.seen.append("begin")

    def ds_epoch_begin(self, context):
        self.seen.append(("epoch", context.cur_epoch_num, context.cur_step_num))

    def ds_epoch_end(self, context):
        self.seen.append(("end", context.cur_epoch_num, context.cur_step_num))

    def ds_step_begin(self, context):
        self.seen.append((context.cur_step_num_in_epoch, context.cur_step_num))


@pytest.mark.parametrize("repeat", [lambda d: d.repeat(2), lambda d: d.repeat(2).repeat(2)])
def test_callbacks_below_repeat_count_epochs_of_the_iterator(repeat):
    events = Events()
    data = repeat(numbers(2).map(lambda x: x, callbacks=events))
    steps = data.get_dataset_size()
    read(data, 2)
    expected = ["begin"]
    for epoch in range(2):
        done = epoch * steps
        expected.append(("epoch", epoch + 1, done))
        expected += [(i, done + i) for i in range(1, steps + 1)]
        expected.append(("end", epoch + 1, done + steps))
    assert events.seen == expected


def test_dicts_of_a_batch_function_keep_their_lists():
    def described(column, info):
        return ([{"value": v, "square": v * v} for v in column],)

    data = numbers().batch(2, per_batch_map=described)
    made = next(data.create_dict_iterator(num_epochs=1, output_numpy=True))["x"]
    assert isinstance(made["square"], list)
    assert [int(v) for v in made["square"]] == [0, 1]


@pytest.mark.parametrize("made", [({"a": 1}, [1]), ({"a": 1}, {"a"})])
def test_a_batch_is_whole_in_all_columns_or_in_none(made):
    both = ds.NumpySlicesDataset((np.arange(4), np.arange(4)), ["x", "y"]).batch(
        2, per_batch_map=lambda *_: made
    )
    with pytest.raises(RuntimeError, match="mismatched types returned from per_batch_map"):
        read(both)


def test_iterators_are_known_until_they_go():
    one, two = (numbers().create_tuple_iterator(num_epochs=1) for _ in range(2))
    known = [weakref.ref(i) for i in (one, two)]
    assert set(known) <= set(iterators.ITERATORS_LIST)
    del one
    gc.collect()
    assert known[0] not in iterators.ITERATORS_LIST and known[1] in iterators.ITERATORS_LIST
    next(two)
    iterators._cleanup()
    with pytest.raises(AttributeError):
        next(two)


def test_gates_that_are_disabled_hold_nothing_up(capfd):
    data = numbers().sync_wait("gate", 1)
    data.disable_sync()
    assert read(data) == read(data) == [[0, 1, 2, 3]]
    assert "callback_timeout" not in capfd.readouterr().err  # no row waited until it was given up


def test_saved_rows_may_differ_in_their_first_axis(tmp_path):
    source = [(np.uint64(7 + i), np.arange(i + 1), np.ones((i + 1, 2), np.float32)) for i in range(3)]
    file = str(tmp_path / "rows.mindrecord")
    ds.GeneratorDataset(source, ["image/class", "some", "wide"], shuffle=False).save(file)
    back = list(ds.MindDataset(file, shuffle=False).create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [int(row["image_class"]) for row in back] == [7, 8, 9]
    assert [row["some"].tolist() for row in back] == [[0], [0, 1], [0, 1, 2]]
    assert [row["wide"].shape for row in back] == [(1, 2), (2, 2), (3, 2)]


@pytest.mark.parametrize(
    ("values", "piece"),
    [
        ([np.zeros((1, 2)), np.zeros((1, 3))], "Except for the shape of dimension 0"),
        ([np.uint64(2**63)], "does not fit"),
    ],
)
def test_rows_that_mindrecord_cannot_hold(tmp_path, values, piece):
    data = ds.GeneratorDataset([(v,) for v in values], ["a"], shuffle=False)
    with pytest.raises(RuntimeError, match=piece):
        data.save(str(tmp_path / "rows.mindrecord"))
