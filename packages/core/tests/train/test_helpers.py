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
    SummaryCollector,
    SummaryLandscape,
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
        assert (tmp_path / "Net_train.ckpt").is_file()
        again, other = model()
        on_exit.exit = False
        again.train(1, batches(2), callbacks=on_exit, dataset_sink_mode=False)
        assert again._optimizer.global_step.asnumpy().tolist() == [3]
    finally:
        signal.signal(signal.SIGUSR1, before)
    with pytest.raises(ValueError):
        OnRequestExit(sig=signal.SIGKILL)


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


def test_the_landscape_of_a_training(tmp_path):
    options = {"landscape_size": 3, "intervals": [[1, 2, 3, 4]]}
    collector = SummaryCollector(
        str(tmp_path),
        collect_specified_data={"collect_landscape": options},
        keep_default_action=False,
    )
    trained, _ = model()
    trained.train(1, batches(), callbacks=collector, dataset_sink_mode=False)

    def parts():
        fresh, net = model({"Loss": nn.Loss()})
        return fresh, net, batches(), {"Loss": nn.Loss()}

    landscape = SummaryLandscape(str(tmp_path))
    landscape.gen_landscapes_with_multi_process(parts, collect_landscape=options)
    written = sorted(tmp_path.glob("events.*_MS"))
    assert any(b"landscape_0" in path.read_bytes() for path in written)
    landscape.clean_ckpt()
    with pytest.raises(ValueError):
        landscape.gen_landscapes_with_multi_process(parts)


def test_settings_of_checkpoints_are_properties():
    config = CheckpointConfig(save_checkpoint_steps=5, keep_checkpoint_max=2)
    assert (config.save_checkpoint_steps, config.keep_checkpoint_max, config.map_param_inc) == (5, 2, False)


def test_a_helper_takes_what_can_be_iterated():
    class Source(list):
        def get_dataset_size(self):
            return len(self)

    helper = DatasetHelper(Source([(1,), (2,)]), dataset_sink_mode=False)
    assert list(helper) == [(1,), (2,)] and list(helper) == [(1,), (2,)]
