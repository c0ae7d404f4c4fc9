"""DatasetHelper, exit by request, conversion for thor."""

import os
import signal

import numpy as np
import pytest

from mycelia import dataset, nn
from mycelia.train import (
    CheckpointConfig,
    ConvertNetUtils,
    DatasetHelper,
    FlopsUtilizationCollector,
    Model,
    OnRequestExit,
    TrainFaultTolerance,
    connect_network_with_dataset,
    data_sink,
)
from mycelia.train.callbacks import Callback


def batches(n=8):
    data = {"x": np.arange(n * 2, dtype=np.float32).reshape(n, 2) / n, "y": np.zeros((n, 1), np.float32)}
    return dataset.NumpySlicesDataset(data, shuffle=False).batch(2)


def model(metrics=None):
    net = nn.Dense(2, 1, weight_init="ones")
    return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), metrics=metrics), net


def test_the_helper_goes_on_where_it_stopped():
    helper = DatasetHelper(batches(), sink_size=3)
    first = [float(x[0, 0]) for x, _ in helper]
    second = [float(x[0, 0]) for x, _ in helper]
    assert helper.sink_size() == 3 and first == [0.0, 0.5, 1.0] and second == [1.5, 0.0, 0.5]
    assert len(list(DatasetHelper(batches(), dataset_sink_mode=False))) == 4
    with pytest.raises(ValueError):
        DatasetHelper(batches(), sink_size=0)


def test_queues_of_devices_are_not_there():
    with pytest.raises(RuntimeError):
        connect_network_with_dataset(nn.ReLU(), DatasetHelper(batches()))
    with pytest.raises(ValueError):
        data_sink(lambda x: x, batches())
    with pytest.raises(ValueError):
        TrainFaultTolerance()


def test_a_signal_ends_training_with_a_checkpoint(tmp_path):
    class Kill(Callback):
        def step_end(self, run_context):
            if run_context.original_args().cur_step_num == 2:
                os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.getsignal(signal.SIGUSR1)
    try:
        on_exit = OnRequestExit(save_mindir=False, directory=str(tmp_path), sig=signal.SIGUSR1)
        trained, net = model()
        trained.train(3, batches(), callbacks=[Kill(), on_exit], dataset_sink_mode=False)
        assert trained._optimizer.global_step.asnumpy().tolist() == [2]
        assert (tmp_path / "rank_0" / "Net_train.ckpt").is_file()
        again, other = model()
        on_exit.exit = False
        again.train(1, batches(2), callbacks=on_exit, dataset_sink_mode=False)
        assert again._optimizer.global_step.asnumpy().tolist() == [3]
    finally:
        signal.signal(signal.SIGUSR1, before)
    with pytest.raises(ValueError):
        OnRequestExit(sig=signal.SIGKILL)


@pytest.mark.parametrize("dropout", [False, True])
def test_an_exit_with_default_arguments_writes_where_mindspore_does(tmp_path, monkeypatch, dropout):
    class Kill(Callback):
        def step_end(self, run_context):
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    net = nn.SequentialCell(nn.Dense(2, 1), nn.Dropout(p=0.5) if dropout else nn.Identity())
    trained = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), metrics={"mse"})
    rows = {"x": np.ones((6, 2), np.float32), "y": np.ones((6, 1), np.float32)}
    data = dataset.NumpySlicesDataset(rows, shuffle=False).batch(2)
    try:
        trained.train(2, data, callbacks=[Kill(), OnRequestExit()], dataset_sink_mode=False)
        assert trained._optimizer.global_step.asnumpy().tolist() == [1]
        trained.eval(data, callbacks=[Kill(), OnRequestExit()], dataset_sink_mode=False)
    finally:
        signal.signal(signal.SIGTERM, before)
    written = sorted(path.name for path in (tmp_path / "rank_0").iterdir())
    of_train = ["Net_train.ckpt"] if dropout else ["Net_train.ckpt", "Net_train.mindir"]
    assert written == ["Net_eval.ckpt", "Net_eval.mindir", *of_train]


@pytest.mark.parametrize(
    ("init_step", "initial_epoch", "expected"),
    [
        (0, 1, [0, 1, 2, 3, "epoch 2, step 8"]), (6, 1, [2, 3, "epoch 2, step 8"]),
        (2, 1, [0, 1, 2, 3, "epoch 2, step 8"]), (6, 0, [2, 3, "epoch 1, step 2"]),
    ],
)  # fmt: skip
def test_training_goes_on_at_the_step_that_the_dataset_was_told(init_step, initial_epoch, expected):
    seen = []

    class Seen(Callback):
        def on_train_step_begin(self, run_context):
            seen.append(int(run_context.original_args().train_dataset_element[0].item()))

        def on_train_epoch_end(self, run_context):
            params = run_context.original_args()
            seen.append(f"epoch {params.cur_epoch_num}, step {params.cur_step_num}")
            run_context.request_stop()

    net = nn.Dense(1, 1)
    data = dataset.NumpySlicesDataset({"x": np.arange(4, dtype=np.float32)[:, None]}, shuffle=False).batch(1)
    data.set_init_step(init_step)
    trained = Model(net, optimizer=nn.SGD(net.trainable_params(), 0.0))
    trained.train(3, data, callbacks=[Seen()], dataset_sink_mode=False, initial_epoch=initial_epoch)
    assert seen == expected


def test_a_first_step_in_another_epoch_is_refused():
    net = nn.Dense(1, 1)
    data = dataset.NumpySlicesDataset({"x": np.arange(4, dtype=np.float32)[:, None]}, shuffle=False).batch(1)
    data.set_init_step(9)
    trained = Model(net, optimizer=nn.SGD(net.trainable_params(), 0.0))
    with pytest.raises(ValueError, match=r"set_init_step\(9\) of the dataset lies in epoch 3"):
        trained.train(3, data, dataset_sink_mode=False, initial_epoch=1)


def test_operations_of_a_step_are_counted(capsys):
    trained, _ = model()
    trained.train(1, batches(4), callbacks=FlopsUtilizationCollector(2, computility=1e6))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Full model flops is 16.0,") and "per step time" in lines[1]


def test_layers_are_converted_and_keep_their_parameters():
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Dense(2, 3))
    weight, names = net[2].weight, [p.name for p in net.get_parameters()]
    ConvertNetUtils().convert_to_thor_net(net)
    assert isinstance(net[0], nn.Conv2dThor) and isinstance(net[2], nn.DenseThor)
    assert net[2].weight is weight and [p.name for p in net.get_parameters()] == names


def test_settings_of_checkpoints_are_properties():
    config = CheckpointConfig(save_checkpoint_steps=5, keep_checkpoint_max=2)
    assert (config.save_checkpoint_steps, config.keep_checkpoint_max, config.map_param_inc) == (5, 2, False)


def test_a_helper_takes_what_can_be_iterated():
    class Source(list):
        def get_dataset_size(self):
            return len(self)

    helper = DatasetHelper(Source([(1,), (2,)]), dataset_sink_mode=False)
    assert list(helper) == [(1,), (2,)] and list(helper) == [(1,), (2,)]
