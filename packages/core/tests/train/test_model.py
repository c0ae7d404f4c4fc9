"""`Model`: training, evaluation, prediction, and the order in which callbacks are called. Numbers are
MindSpore 2.10's."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, train
from mycelia import dataset as ds

X = np.arange(24, dtype=np.float32).reshape(12, 2) / 10
Y = (X @ np.array([[1.0], [2.0]], np.float32)).astype(np.float32)


def data(batch=4):
    return ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=False).batch(batch)


def line():
    return nn.Dense(2, 1, weight_init=Tensor(np.array([[0.1, 0.2]], np.float32)), bias_init="zeros")


def model(rate=0.05, metrics=("loss", "mae")):
    net = line()
    return train.Model(
        net, nn.MSELoss(), nn.Momentum(net.trainable_params(), rate, 0.9), metrics=set(metrics)
    )


def recorder(log, names, prefix=""):
    """A callback that notes which events came."""
    body = {n: (lambda self, run_context, n=n: log.append(prefix + n)) for n in names}
    return type("Recorder", (train.Callback,), body)()


OLD = ["begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end"]
NEW = ["begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end"]


def test_training_calls_callbacks_in_order():
    log = []
    model().train(2, data(), callbacks=[recorder(log, OLD)])
    epoch = ["epoch_begin", *["step_begin", "step_end"] * 3, "epoch_end"]
    assert log == ["begin", *epoch, *epoch, "end"]


def test_evaluation_calls_callbacks_in_order():
    log = []
    model().eval(data(), callbacks=[recorder(log, OLD)])
    assert log == ["begin", "epoch_begin", *["step_begin", "step_end"] * 3, "epoch_end", "end"]


def test_fit_tells_training_from_evaluation():
    log = []
    names = [f"on_{mode}_{event}" for mode in ("train", "eval") for event in NEW]
    model().fit(1, data(6), data(12), callbacks=recorder(log, names))
    assert log == [
        "on_train_begin", "on_train_epoch_begin", *["on_train_step_begin", "on_train_step_end"] * 2,
            "on_eval_begin",
        "on_eval_epoch_begin", "on_eval_step_begin", "on_eval_step_end", "on_eval_epoch_end", "on_eval_end",
        "on_train_epoch_end", "on_train_end",
    ]  # fmt: skip


def test_several_callbacks_run_in_list_order_and_are_entered_and_left():
    log = []

    class Managed(train.Callback):
        def __enter__(self):
            log.append("enter")
            return self

        def __exit__(self, *err):
            log.append(("exit", err[0]))

        def step_end(self, run_context):
            raise KeyError("stop")

    with pytest.raises(KeyError):
        model().train(1, data(), callbacks=[recorder(log, ["step_begin"]), Managed()])
    assert log == ["enter", "step_begin", ("exit", KeyError)]


def test_losses_are_mindspores():
    losses = []
    seen = train.LambdaCallback(
        on_train_step_end=lambda r: losses.append(float(r.original_args().net_outputs.asnumpy()))
    )
    model().train(2, data(), callbacks=[seen])
    want = [
        1.344599962234497,
        8.981151580810547,
        9.771382331848145,
        1.30079185962677,
        13.313966751098633,
        40.93958282470703,
    ]
    np.testing.assert_allclose(losses, want, rtol=1e-6)


def test_evaluation_after_fit_is_mindspores():
    m, history = model(), train.History()
    m.fit(3, data(), data(), callbacks=[history])
    assert history.epoch == {"epoch": [1, 2, 3]}
    np.testing.assert_allclose(history.history["net_output"], [9.771382, 40.939583, 28.867374], rtol=1e-6)
    np.testing.assert_allclose(
        history.history["mae"], [1.237843632698059, 1.630075454711914, 2.0571040511131287], rtol=1e-6
    )
    np.testing.assert_allclose(
        history.history["loss"], [1.539358417193095, 2.7749037742614746, 5.838219205538432], rtol=1e-6
    )


@pytest.mark.parametrize("frequency, want", [(2, [2, 4]), ([1, 4], [1, 4])])
def test_evaluation_runs_every_so_many_epochs_or_after_the_ones_listed(frequency, want):
    epochs = []

    def note(run_context):
        params = run_context.original_args()
        if params.eval_results:
            epochs.append(params.cur_epoch_num)

    seen = train.LambdaCallback(on_train_epoch_end=note)
    model().fit(4, data(), data(), valid_frequency=frequency, callbacks=[seen])
    assert epochs == want


def test_eval_gives_metrics_by_the_names_of_the_dict():
    net = line()
    m = train.Model(net, nn.MSELoss(), metrics={"error": train.MAE(), "value": train.Loss()})
    result = m.eval(data())
    assert list(result) == ["error", "value"]
    np.testing.assert_allclose(result["error"], np.abs(X @ [[0.1], [0.2]] - Y).mean(), rtol=1e-5)


def test_an_evaluation_network_and_its_indexes():
    class Both(nn.Cell):
        def construct(self, x, y):
            return (y * 0 + 3).mean(), x, x + 1

    m = train.Model(line(), eval_network=Both(), eval_indexes=[0, 1, 2], metrics={"loss", "mae"})
    assert m.eval(data(12)) == {"loss": 3.0, "mae": 2.0}
    with pytest.raises(ValueError, match="eval_indexes"):
        train.Model(line(), eval_network=Both(), eval_indexes=[0], metrics={"mae"})


def test_a_network_that_returns_its_loss_needs_no_loss_fn():
    class WithLoss(nn.Cell):
        def __init__(self):
            super().__init__()
            self.line = line()

        def construct(self, x, y):
            return ((self.line(x) - y) ** 2).mean()

    net = WithLoss()
    before = net.line.weight.asnumpy().copy()
    train.Model(net, optimizer=nn.SGD(net.trainable_params(), 0.01)).train(1, data())
    assert (net.line.weight.asnumpy() != before).all()


def test_stop_requests_end_training_after_the_step():
    steps = []
    stop = train.LambdaCallback(
        on_train_step_end=lambda r: (
            steps.append(r.original_args().cur_step_num),
            r.request_stop() if r.original_args().cur_step_num == 4 else None,
        )
    )
    model().train(5, data(), callbacks=[stop])
    assert steps == [1, 2, 3, 4]


def test_initial_epoch_counts_on():
    seen = []
    note = train.LambdaCallback(
        on_train_step_end=lambda r: seen.append(
            (r.original_args().cur_epoch_num, r.original_args().cur_step_num)
        )
    )
    model().train(3, data(), callbacks=[note], initial_epoch=2)
    assert seen == [(3, 7), (3, 8), (3, 9)]


def test_sink_size_counts_steps_and_goes_on_in_the_data():
    seen = []
    note = train.LambdaCallback(
        on_train_step_begin=lambda r: seen.append(
            (
                r.original_args().cur_epoch_num,
                float(r.original_args().train_dataset_element[0].asnumpy()[0, 0]),
            )
        )
    )
    model().train(2, data(), callbacks=[note], dataset_sink_mode=True, sink_size=2)
    assert [(e, round(v, 1)) for e, v in seen] == [(1, 0.0), (1, 0.8), (2, 1.6), (2, 0.0)]


def test_predict_leaves_training_mode():
    net = nn.SequentialCell(line(), nn.Dropout(p=0.9))
    net.set_train()
    result = train.Model(net).predict(Tensor(X[:2]))
    np.testing.assert_allclose(result.asnumpy(), X[:2] @ [[0.1], [0.2]], rtol=1e-5)
    assert not net.training


def test_the_runs_parameters_answer_as_keys_and_attributes():
    m = model()
    params = []
    m.train(
        1, data(), callbacks=train.LambdaCallback(on_train_begin=lambda r: params.append(r.original_args()))
    )
    (p,) = params
    assert p.optimizer is p["optimizer"] is m._optimizer
    assert (p.epoch_num, p.batch_num, p.mode, p.network) == (1, 3, "train", m.predict_network)
    with pytest.raises(AttributeError, match="no 'nothing'"):
        p.nothing  # noqa: B018


def test_graph_mode_gives_the_same_losses():
    def losses():
        values = []
        note = train.LambdaCallback(
            on_train_step_end=lambda r: values.append(float(r.original_args().net_outputs.asnumpy()))
        )
        model().train(1, data(), callbacks=[note])
        return values

    eager = losses()
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        np.testing.assert_allclose(losses(), eager, rtol=1e-5)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (TypeError, lambda: train.Model(3)),
        (TypeError, lambda: train.Model(line(), optimizer=3)),
        (ValueError, lambda: train.Model(line(), unknown=1)),
        (KeyError, lambda: train.Model(line(), nn.MSELoss(), metrics={"goodness"})),
        (TypeError, lambda: train.Model(line(), nn.MSELoss(), metrics={"a": 3})),
        (TypeError, lambda: train.Model(line(), nn.MSELoss(), metrics="acc")),
        (ValueError, lambda: model().train(0, data())),
        (TypeError, lambda: model().train(1.5, data())),
        (ValueError, lambda: model().train(2, data(), initial_epoch=2)),
        (TypeError, lambda: model().train(1, [1, 2])),
        (TypeError, lambda: model().train(1, data(), callbacks=[3])),
        (ValueError, lambda: train.Model(line(), nn.MSELoss()).train(1, data())),
        (ValueError, lambda: train.Model(line(), nn.MSELoss()).eval(data())),
        (ValueError, lambda: train.Model(line(), metrics={"mae"}).eval(data())),
        (ValueError, lambda: model().train(1, ds.NumpySlicesDataset((X, Y)).batch(100, drop_remainder=True))),
        (ValueError, lambda: model().train(1, ds.NumpySlicesDataset((X, Y, Y)).batch(4))),
        (TypeError, lambda: model().fit(1, data(), data(), valid_frequency=1.5)),
        (TypeError, lambda: model().predict(X)),
    ],
)
def test_wrong_use_is_refused(kind, wrong):
    with pytest.raises(kind):
        wrong()


TEN_THOUSAND_STEPS = """
import math
import numpy as np
from mycelia import Tensor, nn

net = nn.Dense(2, 1)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params()))
x, y = Tensor(np.ones((4, 2), np.float32)), Tensor(np.ones((4, 1), np.float32))

def resident_kb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4

for _ in range(1000):
    step(x, y)
before = resident_kb()
for _ in range(10_000):
    loss = step(x, y)
assert math.isfinite(float(loss.asnumpy()))
print(resident_kb() - before)
"""


def test_ten_thousand_steps_do_not_grow_the_process():
    """In a process of its own, where no memory is that of other tests."""
    done = subprocess.run([sys.executable, "-c", TEN_THOUSAND_STEPS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1024  # a leak of 100 bytes a step would show


def test_a_dataset_that_is_its_own_iterator_is_reset():
    class Source:
        left = 0

        def get_dataset_size(self):
            return 2

        def create_tuple_iterator(self, **options):
            return self

        def __iter__(self):
            return self

        def __next__(self):
            if not self.left:
                raise StopIteration
            self.left -= 1
            return Tensor([[1.0, 2.0]]), Tensor([[1.0]])

        def reset(self):
            self.left = 2

    seen = []
    network = nn.Dense(2, 1)
    model = train.Model(network, nn.MSELoss(), nn.SGD(network.trainable_params()))
    model.train(3, Source(), callbacks=train.LambdaCallback(on_train_step_end=lambda context: seen.append(1)))
    assert len(seen) == 6


def test_predict_has_no_other_backends():
    model = train.Model(nn.ReLU())
    assert model.predict(Tensor([-1.0, 2.0]), backend="lite").asnumpy().tolist() == [0.0, 2.0]
    with pytest.raises(ValueError):
        model.predict(Tensor([1.0]), backend="gpu")
