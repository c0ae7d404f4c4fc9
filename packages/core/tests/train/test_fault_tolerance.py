"""`TrainFaultTolerance`: trainings that were left go on with the same bits, on as many ranks or fewer."""

from __future__ import annotations

import gc
import random
import threading
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
import mycelia.dataset as ds
from mycelia import nn, ops
from mycelia.engine.communication import world
from mycelia.engine.ops.random.generator import _streams
from mycelia.io import files
from mycelia.io.checkpoint import wait_for_saves
from mycelia.parallel.engines import threads
from mycelia.train import Callback, EarlyStopping, Model, ReduceLROnPlateau, TrainFaultTolerance

EPOCHS, ROWS = 3, 24


class Leave(Exception):
    pass


class LeaveBehind(Callback):
    """Ends the process in the middle of a training, as far as a test can."""

    def __init__(self, step):
        self.step = step

    def on_train_step_end(self, run_context):
        if run_context.original_args().cur_step_num == self.step:
            raise Leave


class Steps(Callback):
    """Notes which steps are taken, by number, epoch and the batch."""

    def __init__(self):
        self.taken = []

    def on_train_step_end(self, run_context):
        params = run_context.original_args()
        batch = params.train_dataset_element[0].asnumpy().ravel().tolist()
        self.taken.append((params.cur_step_num, params.cur_epoch_num, batch))


class Noisy(nn.Cell):
    """Draws random numbers of all kinds that a training may draw."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Dense(3, 6), nn.BatchNorm1d(6)
        self.dropout, self.last = nn.Dropout(p=0.3), nn.Dense(6, 1)
        self.normal = ops.StandardNormal(seed=5)  # a stream of its own

    def construct(self, x):
        x = self.dropout(ops.relu(self.norm(self.first(x))))
        return self.last(x) + 0.1 * self.normal((x.shape[0], 1)) + ops.uniform((1,), 0.0, 0.1, seed=3)


def rows():
    return ms.Tensor(np.random.RandomState(3).randn(ROWS, 3).astype(np.float32)).asnumpy()


def batches(size=4, **share):
    columns = rows(), rows().sum(1, keepdims=True)
    return ds.NumpySlicesDataset(columns, ["x", "y"], shuffle=True, **share).batch(size, drop_remainder=True)


def made(net_class=Noisy, **options):
    ms.set_seed(11)
    net = net_class()
    optimizer = nn.Adam(net.trainable_params(), nn.ExponentialDecayLR(0.05, 0.9, 4))
    return Model(net, nn.MSELoss(), optimizer, metrics={"loss"}, **options)


def weights(model):
    return {p.name: p.asnumpy().copy() for p in model.train_network.get_parameters()}


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def test_a_training_that_was_left_goes_on_to_the_same_bits(tmp_path, mode):
    """Twice: in the middle of an epoch, and right behind one."""
    scale = {"loss_scale_manager": ms.DynamicLossScaleManager(2**10, 2, 3)}
    whole, steps = made(**scale), Steps()
    whole.train(EPOCHS, batches(), callbacks=steps)
    taken = []
    for leave, first in ((8, 1), (13, 7), (None, 13)):
        model, these = made(**scale), Steps()
        ends = [LeaveBehind(leave)] if leave else []
        callbacks = [these, TrainFaultTolerance(tmp_path, save_checkpoint_steps=3), *ends]
        if leave:
            with pytest.raises(Leave):
                model.train(EPOCHS, batches(), callbacks=callbacks)
        else:
            model.train(EPOCHS, batches(), callbacks=callbacks)
        assert these.taken[0][0] == first
        taken = [step for step in taken if step[0] < first] + these.taken
    assert taken == steps.taken  # numbers, epochs and data
    assert same(weights(model), weights(whole))
    assert [path.name for path in tmp_path.iterdir()] == ["step_18"]
    finished = made(**scale)  # what is done is not done again
    finished.train(EPOCHS, batches(), callbacks=TrainFaultTolerance(tmp_path, save_checkpoint_steps=3))
    assert same(weights(finished), weights(whole))


@pytest.mark.parametrize("left", ["as garbage", "alive"])
def test_streams_of_other_networks_do_not_count(tmp_path, left):
    """Those of networks that had been made before, which were gone when the training went on."""
    whole = made()
    whole.train(EPOCHS, batches())
    other = made()
    other.itself = other  # until garbage is collected
    keeps = TrainFaultTolerance(tmp_path, save_checkpoint_steps=3)
    gc.disable()
    try:
        if left == "as garbage":
            other = None
        with pytest.raises(Leave):
            made().train(EPOCHS, batches(), callbacks=[keeps, LeaveBehind(8)])
    finally:
        gc.enable()
    other = None
    gc.collect()
    again = made()
    again.train(EPOCHS, batches(), callbacks=keeps)
    assert same(weights(again), weights(whole))


def test_streams_that_the_first_draw_makes_go_on(tmp_path, monkeypatch, caplog):
    """By functions; those that objects make while they train are named."""

    class Drawing(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense, self.category = nn.Dense(3, 1), ops.RandomCategorical()

        def construct(self, x):
            drawn = ops.random_categorical(ops.zeros((1, 4)), 1, 21), self.category(ops.zeros((1, 4)), 1, 23)
            return self.dense(x) * drawn[0].astype(ms.float32), drawn[1]

    class First(nn.Cell):
        def construct(self, outputs, y):
            return ((outputs[0] - y) ** 2).mean()

    def run(*callbacks):
        monkeypatch.setattr(_streams, "categorical", {})  # as in a process that begins
        ms.set_seed(11)
        net = Drawing()
        model = Model(net, First(), nn.SGD(net.trainable_params(), 0.1))
        try:
            model.train(EPOCHS, batches(), callbacks=list(callbacks))
        except Leave:
            pass
        return weights(model)

    whole = run()
    run(TrainFaultTolerance(tmp_path, save_checkpoint_steps=3), LeaveBehind(8))
    assert same(run(TrainFaultTolerance(tmp_path)), whole)
    assert "streams of the seeds [23] begin anew" in caplog.text


def test_what_other_callbacks_change_at_the_end_of_an_epoch_is_kept(tmp_path):
    """Also if they come later in the list."""

    def run(*callbacks):
        model = made(lambda: nn.Dense(3, 1))
        model._optimizer = nn.SGD(model.predict_network.trainable_params(), 0.5)
        model = Model(model.predict_network, nn.MSELoss(), model._optimizer, metrics={"mse": nn.MSE()})
        plateau = ReduceLROnPlateau(monitor="mse", patience=1, min_delta=100.0, mode="min")
        try:
            model.fit(EPOCHS, batches(), batches(), callbacks=[*callbacks, plateau])
        except Leave:
            pass
        return weights(model)

    whole = run()
    run(TrainFaultTolerance(tmp_path, save_checkpoint_steps=6), LeaveBehind(7))
    assert (tmp_path / "step_6").is_dir()
    again = run(TrainFaultTolerance(tmp_path, save_checkpoint_steps=6))
    assert whole["learning_rate"] < 0.5 and same(again, whole)


def test_a_training_that_was_stopped_stays_so(tmp_path):
    def run():
        model, steps = made(), Steps()
        stop = EarlyStopping(monitor="loss", mode="max", min_delta=1e9)
        model.fit(EPOCHS, batches(), batches(), callbacks=[steps, stop, TrainFaultTolerance(tmp_path)])
        return len(steps.taken)

    assert run() == 6 and run() == 0


def test_random_numbers_of_python_and_numpy_go_on(tmp_path):
    drawn = []

    class Draw(Callback):
        def on_train_step_end(self, run_context):
            number = run_context.original_args().cur_step_num
            drawn.append((number, random.random(), np.random.rand()))

    random.seed(1)
    np.random.seed(1)
    keeps = TrainFaultTolerance(tmp_path, save_checkpoint_steps=4)
    with pytest.raises(Leave):
        made().train(EPOCHS, batches(), callbacks=[Draw(), keeps, LeaveBehind(7)])
    random.seed(2)
    np.random.seed(2)
    made().train(EPOCHS, batches(), callbacks=[Draw(), keeps, LeaveBehind(0)])
    assert drawn[7:10] == drawn[4:7]  # steps 5 to 7


class OwnBatches:
    """A dataset of the user's own, which cannot be told where to begin: shares of batches of 12 rows."""

    def __init__(self, rank=0, size=1, columns=1):
        self.columns = columns
        self.x = np.split(rows().reshape(2, 12, 3), size, axis=1)[rank]

    def get_dataset_size(self):
        return 2

    def create_tuple_iterator(self, *args, **kwargs):
        sums = [np.repeat(x.sum(1, keepdims=True), self.columns, 1) for x in self.x]
        return [(ms.Tensor(x), ms.Tensor(y)) for x, y in zip(self.x, sums)]


def test_datasets_that_cannot_begin_in_between_are_read_to_there(tmp_path):
    whole = made()
    whole.train(4, OwnBatches())
    with pytest.raises(Leave):
        made().train(4, OwnBatches(), callbacks=[TrainFaultTolerance(tmp_path, save_checkpoint_steps=3),
                                                 LeaveBehind(4)])  # fmt: skip
    again, steps = made(), Steps()
    again.train(4, OwnBatches(), callbacks=[TrainFaultTolerance(tmp_path), steps])
    assert [number for number, _, _ in steps.taken] == [4, 5, 6, 7, 8]
    assert same(weights(again), weights(whole))


# ---- several ranks ---------------------------------------------------------------------------------------


one_at_a_time = threading.Lock()  # ranks that are threads share the seed


class Plain(nn.Cell):
    """Ranks that are threads draw from one stream, so nothing here draws."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Dense(3, 6), nn.BatchNorm1d(6), nn.Dense(6, 1)

    def construct(self, x):
        return self.last(ops.relu(self.norm(self.first(x))))


@pytest.fixture
def together():
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    yield
    ms.reset_auto_parallel_context()


def train_on(size, folder, leave=None, batch=12, net=Plain, own_folders=False, own_batches=False, columns=1):
    """Weights of all ranks; the first step of each where it was not left."""

    def work(rank):
        data = batches(batch // size, num_shards=size, shard_id=rank)
        if own_batches:
            data = OwnBatches(rank, size, columns)
        with one_at_a_time:
            model, steps = made(net), Steps()
        where = folder / str(rank) if own_folders else folder
        callbacks = [steps, TrainFaultTolerance(where, save_checkpoint_steps=3)] if folder else [steps]
        try:
            model.train(5, data, callbacks=[*callbacks, LeaveBehind(leave or 0)])
        except Leave:
            world.group("test", world.WORLDS[0]).barrier()  # the others are left as well
        return weights(model), [number for number, _, _ in steps.taken][:1]

    found = threads.run(size, work)
    wait_for_saves()
    return found


@pytest.mark.parametrize("own_folders", [False, True])
def test_ranks_go_on_each_with_its_own_state(tmp_path, together, own_folders):
    whole = train_on(2, None)
    assert not same(whole[0][0], whole[1][0])  # the statistics of the normalizations
    train_on(2, tmp_path, 8, own_folders=own_folders)
    again = train_on(2, tmp_path, own_folders=own_folders)
    for rank in range(2):
        assert again[rank][1] == [7] and same(again[rank][0], whole[rank][0])


def test_fewer_and_more_ranks_go_on_from_the_same_step(tmp_path, together):
    dense = {"net": lambda: nn.Dense(3, 1), "own_batches": True}
    whole = train_on(3, None, **dense)
    train_on(3, tmp_path, 8, **dense)
    fewer = train_on(2, tmp_path, 9, **dense)
    assert [first for _, first in fewer] == [[7]] * 2
    more = train_on(4, tmp_path, **dense)
    assert [first for _, first in more] == [[7]] * 4  # nothing newer was whole
    for name, value in more[0][0].items():
        assert np.allclose(value, whole[0][0][name], atol=1e-6), name
    assert [p.name for p in files_of(tmp_path, 10)] == [f"rank_{r}_of_4.ckpt" for r in range(4)]


def test_parts_of_states_go_on_among_another_number_of_ranks(tmp_path, together):
    """Of optimizers whose states are divided, and where they are not any more."""
    parts = {"parallel_optimizer_threshold": 0}
    dense = {"net": lambda: nn.Dense(3, 5), "own_batches": True, "columns": 5}
    whole = train_on(2, None, **dense)
    ms.set_auto_parallel_context(enable_parallel_optimizer=True, parallel_optimizer_config=parts)
    for size, leave in ((2, 4), (3, 7), (3, 10)):
        train_on(size, tmp_path, leave, **dense)
    ms.set_auto_parallel_context(enable_parallel_optimizer=False)
    again = train_on(2, tmp_path, **dense)
    assert again[0][1] == [10] and len(again[0][0]) == len(whole[0][0])
    for name, value in again[0][0].items():
        assert np.allclose(value, whole[0][0][name], atol=1e-6), name


def test_an_epoch_of_other_length_goes_on_where_it_was(tmp_path, together, caplog):
    """4 of 8 batches of 3 rows from each of 2 ranks are 2 of 4 of one rank that takes 6."""
    train_on(1, tmp_path, 5, batch=6)  # 4 steps an epoch; left in the second, the state is of step 3
    (one,) = train_on(1, tmp_path, batch=4)  # 6 steps an epoch: 3 of 4 are 4 of 6, and a half
    assert one[1] == [5] and "some samples of this one come twice" in caplog.text


def files_of(folder, step):
    return sorted((folder / f"step_{step}").iterdir())


@pytest.mark.parametrize("damage", ["missing", "empty", "short", "last value", "bit"])
def test_a_state_that_is_not_whole_on_all_ranks_is_never_read(tmp_path, together, damage, caplog):
    whole = train_on(2, None)
    train_on(2, tmp_path, 8)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step_3", "step_6"]
    victim = files_of(tmp_path, 6)[1]
    data = bytearray(victim.read_bytes())
    victim.chmod(0o600)
    if damage == "missing":
        victim.unlink()
    elif damage == "bit":
        data[len(data) // 2] ^= 1
        victim.write_bytes(data)
    else:
        keep = {"empty": 0, "short": len(data) // 2, "last value": data.rindex(b"training_state") - 4}[damage]
        victim.write_bytes(data[:keep])
    again = train_on(2, tmp_path)
    assert [first for _, first in again] == [[4], [4]]
    assert all(same(again[rank][0], whole[rank][0]) for rank in range(2))
    assert damage == "missing" or "the state of step 6 is left out: rank 1" in caplog.text


def test_states_that_are_all_damaged_are_an_error_and_not_a_new_beginning(tmp_path):
    made().train(1, batches(), callbacks=TrainFaultTolerance(tmp_path))
    (file,) = files_of(tmp_path, 6)
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(RuntimeError, match=r"none of the states of the steps \[6\] .* can be read"):
        made().train(1, batches(), callbacks=TrainFaultTolerance(tmp_path))


def test_a_state_of_another_network_is_named(tmp_path):
    made().train(1, batches(), callbacks=TrainFaultTolerance(tmp_path))
    before = files_of(tmp_path, 6)[0].read_bytes()
    with pytest.raises(RuntimeError, match="of another network|shape"):
        made(lambda: nn.Dense(3, 1)).train(1, batches(), callbacks=TrainFaultTolerance(tmp_path))
    assert files_of(tmp_path, 6)[0].read_bytes() == before


def test_a_full_disk_of_one_rank_is_named_on_all(tmp_path, together, monkeypatch):
    write = files.Temporary.complete

    def complete(self):
        if "rank_1_of_2" in self.path:
            raise OSError(28, "No space left on device", self.path)
        write(self)

    monkeypatch.setattr(files.Temporary, "complete", complete)
    told = []

    def work(rank):
        share = {"num_shards": 2, "shard_id": rank}
        keeps = TrainFaultTolerance(tmp_path, save_checkpoint_steps=2)
        with one_at_a_time:
            model = made(Plain)
        try:
            model.train(2, batches(4, **share), callbacks=keeps)
        except RuntimeError as cause:
            told.append(str(cause))

    threads.run(2, work)
    assert len(told) == 2
    for one in told:
        assert "rank 1 cannot write its state: OSError: [Errno 28] No space left on device" in one
        assert "rank 0" not in one
    assert not [p for p in tmp_path.rglob("*") if p.name.endswith(".tmp")]


def test_files_of_others_in_the_folder_stay(tmp_path):
    (tmp_path / "step_1").mkdir()
    (tmp_path / "step_1" / "notes.txt").write_text("mine")
    (tmp_path / "step_x").write_text("mine")
    made().train(1, batches(), callbacks=TrainFaultTolerance(tmp_path, save_checkpoint_steps=1))
    names = {str(Path(p).relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert names == {"step_1/notes.txt", "step_x", "step_6/rank_0_of_1.ckpt"}


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({}, ValueError, "ckpt_save_path must name a folder, but got None"),
        ({"ckpt_save_path": 3}, TypeError, "ckpt_save_path must be a path, but got int"),
        ({"ckpt_save_path": "x", "save_checkpoint_steps": 0}, ValueError, "must be positive, but got 0"),
        ({"ckpt_save_path": "x", "save_checkpoint_steps": 2.0}, TypeError, "must be an int, but got 2.0"),
        ({"ckpt_save_path": "x", "often": 1}, TypeError, r"unexpected arguments \['often'\]"),
        ({"ckpt_save_fn": print}, NotImplementedError, "ckpt_save_fn: functions of the user's own"),
    ],
)
def test_bad_arguments_are_named(given, kind, message):
    with pytest.raises(kind, match=message):
        TrainFaultTolerance(**given)


def test_an_initial_epoch_beyond_the_state_is_named(tmp_path):
    made().train(1, batches(), callbacks=TrainFaultTolerance(tmp_path))
    with pytest.raises(ValueError, match="12 steps are done by initial_epoch, but the newest state"):
        made().train(3, batches(), callbacks=TrainFaultTolerance(tmp_path), initial_epoch=2)
