"""Values of summary operators beside what the collector records: at which steps, and which values."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, dataset, nn, ops
from mycelia.train import Model, SummaryCollector, SummaryRecord


class Shown(nn.Cell):
    """A dense layer that records its input's sum and the input itself."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(1, 1)
        self.scalar, self.tensor = ops.ScalarSummary(), ops.TensorSummary()

    def construct(self, x):
        self.scalar("sum", x.sum())
        self.tensor("input", x)
        return self.dense(x)


def steps_by_tag(folder) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    (path,) = folder.glob("events.*_MS")
    data = path.read_bytes()
    while data:
        size = int.from_bytes(data[:8], "little")
        event = ms.train.summary_pb2.Event.FromString(data[12 : 12 + size])
        for value in event.summary.value:
            found.setdefault(value.tag, []).append(event.step)
            if value.tag == "sum":
                assert value.scalar_value == event.step
        data = data[size + 16 :]
    return found


def train(folder, steps: int, sink: bool = False, **options) -> dict[str, list[int]]:
    columns = {"x": np.arange(1, steps + 1, dtype=np.float32)[:, None], "y": np.zeros((steps, 1), np.float32)}
    net = Shown()
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 1e-6))
    options |= {"collect_specified_data": {"collect_metric": True}, "keep_default_action": False}
    collector = SummaryCollector(str(folder), **options)
    batches = dataset.NumpySlicesDataset(columns, shuffle=False).batch(1)
    model.train(1, batches, callbacks=[collector], dataset_sink_mode=sink)
    return steps_by_tag(folder)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize(
    ("steps", "options", "scalars", "tensors"),
    [
        (8, {"collect_freq": 3}, [1, 3, 6], [1, 3, 6]),
        (8, {"collect_freq": 3, "collect_tensor_freq": 2}, [1, 3, 6], [1, 2, 4, 6, 8]),
        (8, {"collect_freq": 2, "collect_tensor_freq": 5}, [1, 2, 4, 6, 8], [1, 5]),
        (45, {"collect_freq": 1}, list(range(1, 46)), [1, *range(2, 39, 2)]),  # 20, counted from 0
        (21, {"collect_freq": 1}, list(range(1, 22)), list(range(1, 21))),
    ],
)
def test_tensors_are_recorded_at_the_steps_of_mindspore(tmp_path, mode, steps, options, scalars, tensors):
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        found = train(tmp_path, steps, **options)
    finally:
        ms.set_context(mode=before)
    assert found == {"loss/auto": scalars, "sum": scalars, "input": tensors}


def test_the_last_step_of_an_epoch_is_recorded_once(tmp_path):
    assert train(tmp_path, 4, collect_freq=2)["loss/auto"] == [1, 2, 4]


def test_sink_mode_records_the_last_step_of_an_epoch(tmp_path):
    assert train(tmp_path, 4, sink=True, collect_freq=2)["loss/auto"] == [4]


def test_the_value_of_an_operator_is_that_of_its_step(tmp_path):
    array = np.zeros(3, np.float32)
    with SummaryRecord(str(tmp_path)) as record:
        for step in range(3):
            array[:] = step
            record.take("tensor", "t", Tensor.from_numpy(array))
            array[:] = -1
            record.record(step)
        record.take("tensor", "t", Tensor(np.ones((2, 2))))
        record.record(3)
        path = record.log_dir
    with open(path, "rb") as file:
        data, found = file.read(), []
    while data:
        size = int.from_bytes(data[:8], "little")
        for value in ms.train.summary_pb2.Event.FromString(data[12 : 12 + size]).summary.value:
            found.append(list(value.tensor.float_data))
        data = data[size + 16 :]
    assert found == [[0] * 3, [1] * 3, [2] * 3, [1] * 4]
