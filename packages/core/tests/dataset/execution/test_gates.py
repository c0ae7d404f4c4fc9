"""Gates and callbacks between a pipeline and the training."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds
from mycelia import log, nn


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """Every test has a seed and four cores, and leaves the settings as they were."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(ds.config, "_state", dict(ds.config._state))
    ds.config._state["seed"] = 5


def numbers(n=10, shuffle=False):
    return ds.NumpySlicesDataset(np.arange(n), ["x"], shuffle=shuffle)


def read(dataset, epochs=1):
    iterator = dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    passes = [[row[0].tolist() for row in iterator] for _ in range(epochs)]
    return passes[0] if epochs == 1 else passes


# ---- gates and callbacks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [None, 2])
def test_an_update_is_in_force_for_the_next_row(workers):
    state = {"step": 0}

    def update(data):
        state["step"] = data

    gated = numbers(6).sync_wait("step", num_batch=2, callback=update)
    mapped = gated.map(lambda x: x * 100 + state["step"], num_parallel_workers=workers)
    seen = []
    for i, row in enumerate(mapped.create_tuple_iterator(num_epochs=1, output_numpy=True)):
        seen.append(int(row[0]))
        if i % 2:
            mapped.sync_update("step", data=i)
    assert seen == [0, 100, 201, 301, 403, 503]


def test_a_gate_below_batch_counts_batches(monkeypatch):
    warned = []
    monkeypatch.setattr(log.logger("mycelia.dataset"), "warning", lambda *a: warned.append(a))
    state = {"step": 0}
    gated = numbers(12).sync_wait("step", callback=state.update)
    batched = gated.map(lambda x: x * 100 + state["step"]).batch(4)
    seen = []
    for i, row in enumerate(batched.create_tuple_iterator(num_epochs=1, output_numpy=True), 1):
        seen.append(row[0].tolist())
        batched.sync_update("step", data={"step": i})
    assert seen == [[0, 100, 200, 300], [401, 501, 601, 701], [802, 902, 1002, 1102]] and not warned


def test_a_gate_waits_for_another_thread():
    gated = numbers(3).sync_wait("go")
    iterator = gated.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert int(next(iterator)[0]) == 0
    later = threading.Timer(0.2, gated.sync_update, ("go", 2))
    later.start()
    assert [int(row[0]) for row in iterator] == [1, 2]
    later.join()


def test_a_gate_that_nobody_opens_gives_up_with_a_warning(monkeypatch):
    warned = []
    monkeypatch.setattr(log.logger("mycelia.dataset"), "warning", lambda text, *a: warned.append(text % a))
    ds.config.set_callback_timeout(1)
    gated = numbers(5).sync_wait("go", num_batch=2)
    assert read(gated) == list(range(5)) and len(warned) == 1 and "sync_update('go')" in warned[0]
    assert gated.output_shapes() == [[]] and len(warned) == 1  # a question is no reading


@pytest.mark.parametrize(
    "workers",
    [{}, {"num_parallel_workers": 2}, {"num_parallel_workers": 2, "python_multiprocessing": True}],
)
def test_callbacks_of_a_map_with_workers(workers):
    class Events(ds.DSCallback):
        def __init__(self, step_size):
            super().__init__(step_size)
            self.seen = []

        def ds_begin(self, context):
            self.seen.append("begin")

        def ds_epoch_begin(self, context):
            self.seen.append(f"epoch {context.cur_epoch_num}")

        def ds_step_begin(self, context):
            self.seen.append(f"before {context.cur_step_num}")

        def ds_step_end(self, context):
            self.seen.append(f"after {context.cur_step_num}")

        def ds_epoch_end(self, context):
            self.seen.append(f"end {context.cur_step_num_in_epoch}")

    events = Events(2)
    mapped = numbers(3).map(lambda x: x, callbacks=events, **workers)
    iterator = mapped.create_tuple_iterator(num_epochs=2, output_numpy=True)
    first = next(iterator)
    assert int(first[0]) == 0 and events.seen[-1] in ("before 1", "after 1")
    assert [int(row[0]) for row in iterator] == [1, 2] and len(list(iterator)) == 3
    assert events.seen == [
        "begin", "epoch 1", "before 1", "after 1", "before 3", "after 3", "end 3",
        "epoch 2", "before 4", "after 4", "before 6", "after 6", "end 3",
    ]  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2])
def test_a_callback_that_waits_for_the_training(workers):
    class Sees(ds.WaitedDSCallback):
        def __init__(self):
            super().__init__()
            self.steps = []

        def sync_step_begin(self, train_context, ds_context):
            self.steps.append((train_context.original_args().cur_step_num, ds_context.cur_step_num))

    sees = Sees()
    x = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32)
    data = ds.NumpySlicesDataset((x, x[:, :1].copy()), ["x", "y"], shuffle=False).batch(2)
    data = data.map(lambda x: x, ["x"], callbacks=sees, num_parallel_workers=workers)
    net = nn.Dense(2, 1)
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    model.train(2, data, callbacks=[sees], dataset_sink_mode=False)
    assert sees.steps == [(i, i + 1) for i in range(1, 8)]


def test_asking_for_shapes_runs_no_callbacks():
    class Told(ds.DSCallback):
        events: list = []

        def ds_begin(self, context):
            self.events.append(context.cur_epoch_num)

    dataset = numbers(3).map(lambda x: x, callbacks=Told())
    assert dataset.output_shapes() == [[]] and len(dataset) == 3 and Told.events == []
    assert len(read(dataset)) == 3 and Told.events == [0]
