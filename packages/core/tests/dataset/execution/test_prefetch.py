"""Reading ahead in a thread: the same rows and errors, and nothing is left behind."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest

from mycelia import dataset as ds
from mycelia.dataset import transforms
from mycelia.dataset.execution import prefetch

THREAD = "mycelia reads ahead"


@pytest.fixture(autouse=True)
def seed():
    before = ds.config.get_seed()
    ds.config.set_seed(3)
    yield
    ds.config.set_seed(before)
    assert not running()


@pytest.fixture
def always(monkeypatch):
    """Each pipeline of the package's own steps is read ahead from its third row on, and stays so."""
    monkeypatch.setattr(prefetch, "_TRIED", 2)
    monkeypatch.setattr(prefetch, "_WORTH_S", 0.0)
    monkeypatch.setattr(prefetch, "_LEAST_OUTSIDE", 0.0)
    monkeypatch.setattr(prefetch, "_GAIN", float("inf"))


@pytest.fixture
def tried(always, monkeypatch):
    """Reading ahead is tried, and never turns out to gain."""
    monkeypatch.setattr(prefetch, "_GAIN", 0.0)


def running() -> int:
    """Threads that read ahead, once those that end have ended."""
    gc.collect()
    for _ in range(1000):
        found = sum(thread.name == THREAD for thread in threading.enumerate())
        if not found:
            break
        time.sleep(0.005)
    return found


def pipeline(rows=40):
    source = ds.NumpySlicesDataset(np.arange(rows, dtype=np.float32), ["x"], shuffle=True)
    return source.map(transforms.TypeCast(np.int32), "x").shuffle(7).batch(2)


def read(dataset, epochs=3):
    iterator = dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[row[0].tolist() for row in iterator] for _ in range(epochs)]


@pytest.mark.parametrize("mode", ["always", "tried"])
def test_rows_are_those_of_reading_in_turns(mode, request):
    expected = read(pipeline())
    request.getfixturevalue(mode)
    assert read(pipeline()) == expected and len(expected[0]) == 20
    assert read(pipeline(3)) == [[a, b] for a, b in read(pipeline(3))], "epochs shorter than a try"


def test_a_thread_reads_while_the_program_computes(always):
    iterator = pipeline().create_tuple_iterator(num_epochs=1, output_numpy=True)
    for _ in range(5):
        next(iterator)
    assert any(thread.name == THREAD for thread in threading.enumerate())
    assert len(list(iterator)) == 15


def test_it_gives_up_where_nothing_is_won(tried):
    iterator = pipeline(80).create_tuple_iterator(num_epochs=1, output_numpy=True)
    for _ in range(12):
        next(iterator)
    assert not running() and len(list(iterator)) == 28


def test_leaving_early_ends_the_thread(always):
    for number, _ in enumerate(pipeline().create_tuple_iterator(num_epochs=2, output_numpy=True)):
        if number == 6:
            break
    assert not running()
    iterator = pipeline().create_tuple_iterator(num_epochs=2, output_numpy=True)
    first = [next(iterator)[0].tolist() for _ in range(6)]
    iterator.next_epoch()
    assert [row[0].tolist() for row in iterator] == read(pipeline())[1] and first == read(pipeline())[0][:6]


def test_going_on_from_a_state_does_not_count_rows_that_wait(always):
    iterator = pipeline().create_tuple_iterator(num_epochs=1, output_numpy=True)
    for _ in range(6):
        next(iterator)
    state, rest = iterator.state_dict(), [row[0].tolist() for row in iterator]
    other = pipeline().create_tuple_iterator(num_epochs=1, output_numpy=True)
    other.load_state_dict(state)
    assert [row[0].tolist() for row in other] == rest and len(rest) == 14


def test_an_error_comes_in_its_turn(always, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("".join(f"{i}\n" for i in range(9)) + "no number\n")
    dataset = ds.CSVDataset(str(path), column_names=["x"], column_defaults=[1], shuffle=False)
    iterator = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    found = []
    with pytest.raises(RuntimeError, match="line 10"):
        for row in iterator:
            found.append(int(row[0]))
    assert found == list(range(9))


def test_an_interrupt_ends_the_thread(always, monkeypatch):
    iterator = pipeline().create_tuple_iterator(num_epochs=1, output_numpy=True)
    for _ in range(6):
        next(iterator)

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(prefetch.Ahead, "__next__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(iterator)


class Counted:
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return i


class Turned(ds.Sampler):
    def __iter__(self):
        return iter(range(self.dataset_size - 1, -1, -1))


def test_pipelines_with_the_users_code_are_read_in_turns(always):
    made = ds.NumpySlicesDataset(np.arange(12), ["x"], shuffle=False)
    for dataset in (
        ds.GeneratorDataset(Counted(), ["x"]),
        ds.NumpySlicesDataset(np.arange(12), ["x"], sampler=Turned()),
        made.map(lambda x: x + 1),
        made.filter(lambda x: True),
        made.batch(1, per_batch_map=lambda x, info: x),
        made.batch(lambda info: 1),
        made.sync_wait("gate", 100),
    ):
        iterator = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
        for _ in range(6):
            next(iterator)
        assert not any(thread.name == THREAD for thread in threading.enumerate())


def test_rows_that_are_quick_to_make_are_read_in_turns():
    iterator = pipeline(80).create_tuple_iterator(num_epochs=1, output_numpy=True)
    for _ in range(20):
        next(iterator)
    assert iterator._pace.settled and not running()
