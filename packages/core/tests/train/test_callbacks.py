"""What the callbacks print, watch and change. Printed lines are MindSpore 2.10's."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mycelia import Tensor, nn, train
from mycelia import dataset as ds

X = np.arange(24, dtype=np.float32).reshape(12, 2) / 10
Y = (X @ np.array([[1.0], [2.0]], np.float32)).astype(np.float32)


def data(batch=4):
    return ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=False).batch(batch)


def model(rate=0.05):
    net = nn.Dense(2, 1, weight_init=Tensor(np.array([[0.1, 0.2]], np.float32)), bias_init="zeros")
    return train.Model(
        net, nn.MSELoss(), nn.Momentum(net.trainable_params(), rate, 0.9), metrics={"loss", "mae"}
    )


def lines(capsys):
    return capsys.readouterr().out.splitlines()


# ---- LossMonitor, TimeMonitor ------------------------------------------------------------------------------


def test_loss_monitor_prints_epoch_step_and_loss(capsys):
    model().train(2, data(), callbacks=[train.LossMonitor()])
    printed = lines(capsys)
    assert len(printed) == 6
    assert printed[0] == "epoch: 1 step: 1, loss is 1.344599962234497"
    assert [p.split(",")[0] for p in printed] == [f"epoch: {e} step: {s}" for e in (1, 2) for s in (1, 2, 3)]


def test_loss_monitor_prints_every_so_many_steps(capsys):
    model().train(2, data(), callbacks=[train.LossMonitor(2)])
    assert [p.split(",")[0] for p in lines(capsys)] == [
        "epoch: 1 step: 2",
        "epoch: 2 step: 1",
        "epoch: 2 step: 3",
    ]


def test_loss_monitor_prints_evaluation_results(capsys):
    model().fit(2, data(), data(), valid_frequency=2, callbacks=[train.LossMonitor(0)])
    (line,) = lines(capsys)
    assert re.fullmatch(r"Eval result: epoch 2, metrics: \{'loss': 2\.77490\d*, 'mae': 1\.63007\d*\}", line)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_ends_training(bad):
    class Bad(nn.Cell):
        def __init__(self):
            super().__init__()
            self.d = nn.Dense(2, 1)

        def construct(self, x):
            return self.d(x) + bad

    net = Bad()
    m = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    message = (
        r"In epoch: 1 step: 1, loss is NAN or INF, training process cannot continue, terminating training\."
    )
    with pytest.raises(ValueError, match=message):
        m.train(1, data(), callbacks=[train.LossMonitor()])


def test_time_monitor_prints_milliseconds(capsys):
    model().train(1, data(), callbacks=[train.TimeMonitor()])
    model().train(1, data(), callbacks=[train.TimeMonitor(data_size=1, data_time=True)])
    model().eval(data(), callbacks=[train.TimeMonitor()])
    first, second, third = lines(capsys)
    number = r"(\d+\.\d{3})"
    total, step = re.fullmatch(rf"Train epoch time: {number} ms, per step time: {number} ms", first).groups()
    assert abs(float(total) / 3 - float(step)) < 0.002
    pattern = rf"Train epoch time: {number} ms, per step time: {number} ms \(data time: {number} ms\)"
    total, step, _ = re.fullmatch(pattern, second).groups()
    assert total == step
    assert third.startswith("Eval epoch time: ")


def test_time_of_a_training_epoch_in_fit_covers_the_evaluation_inside_it(capsys):
    model().fit(1, data(1), data(12), callbacks=[train.TimeMonitor()])
    inner, outer = (float(re.search(r"epoch time: (\S+) ms", line).group(1)) for line in lines(capsys))
    assert outer > inner


def test_lambda_callback_calls_each_function_with_the_run_context():
    events = [f"on_{mode}_{event}" for mode in ("train", "eval") for event in
              ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")]  # fmt: skip
    log = []
    functions = {
        e: (lambda r, e=e: log.append(e if isinstance(r, train.RunContext) else None)) for e in events
    }
    model().fit(1, data(12), data(12), callbacks=train.LambdaCallback(**functions))
    assert sorted(log) == sorted(events)


# ---- EarlyStopping -----------------------------------------------------------------------------------------


def stopped_after(values, **options):
    """The epoch in which EarlyStopping stops when `eval_loss` takes these values; 0 if it does not."""
    callback = train.EarlyStopping(**options)
    params = train.Model(nn.Dense(1, 1))._parameters("train", None, len(values), 1)
    params.train_network = nn.Dense(1, 1)
    context = train.RunContext(params)
    callback.on_train_begin(context)
    for epoch, value in enumerate(values, 1):
        params.cur_epoch_num, params.eval_results = epoch, {"eval_loss": value, "accuracy": value}
        callback.on_train_epoch_end(context)
        if context.get_stop_requested():
            return epoch
    return 0


@pytest.mark.parametrize(
    "values, options, want",
    [
        ([5, 4, 3, 2], {}, 0),
        ([5, 5], {}, 2),
        ([5, 4, 4, 4, 4], dict(patience=2), 4),
        ([5, 4, 4, 3, 3, 3], dict(patience=2), 6),
        ([5, 4.95, 4.9], dict(min_delta=0.2, patience=1), 2),
        ([1, 2, 3], dict(mode="max"), 0),
        ([1, 2, 3], dict(monitor="accuracy"), 0),
        ([3, 2], dict(monitor="accuracy", patience=1), 2),
        ([5, 4, 3], dict(baseline=1, patience=2), 2),
        ([5, 0.5, 0.4], dict(baseline=1, patience=2), 0),
    ],
)
def test_early_stopping(values, options, want):
    assert stopped_after(values, **{"patience": 1, **options}) == want


def test_early_stopping_prints_and_restores_the_best_weights(capsys):
    m = model()
    best = []
    note = train.LambdaCallback(
        on_train_epoch_end=lambda r: best.append(
            (r.original_args().eval_results["loss"], m.predict_network.weight.asnumpy().copy())
        )
    )
    m.fit(
        6,
        data(),
        data(),
        callbacks=[note, train.EarlyStopping(patience=2, verbose=True, restore_best_weights=True)],
    )
    assert lines(capsys) == [
        "Restoring model weights from the end of the best epoch.",
        f"Epoch {len(best):05d}: early stopping",
    ]
    assert len(best) < 6
    np.testing.assert_array_equal(m.predict_network.weight.asnumpy(), min(best, key=lambda b: b[0])[1])


def test_fit_watches_the_loss_of_the_evaluation_without_a_metric_of_it(capsys):
    net = nn.Dense(2, 1)
    m = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.0), metrics={"mae"})
    seen, history = [], train.History()
    note = train.LambdaCallback(on_train_epoch_end=lambda r: seen.append(r.original_args().eval_results))
    m.fit(5, data(), data(), callbacks=[note, history, train.LossMonitor(0), train.EarlyStopping(patience=2)])
    of_batches = [float(nn.MSELoss()(net(x), y).asnumpy()) for x, y in data().create_tuple_iterator()]
    np.testing.assert_allclose([one["eval_loss"] for one in seen], [np.mean(of_batches)] * 3, rtol=1e-6)
    assert sorted(history.history) == ["mae", "net_output"]
    assert lines(capsys)[-1] == f"Eval result: epoch 3, metrics: {{'mae': {seen[-1]['mae']!r}}}"


def test_a_monitor_that_is_not_there_warns_and_goes_on():
    model().fit(2, data(), data(), callbacks=[train.EarlyStopping(monitor="goodness")])


def test_the_training_loss_can_be_watched_without_evaluation():
    steps = []
    count = train.LambdaCallback(on_train_epoch_end=lambda r: steps.append(1))
    model().train(8, data(), callbacks=[train.EarlyStopping(monitor="loss", patience=1), count])
    assert 1 <= len(steps) < 8


# ---- learning rates ----------------------------------------------------------------------------------------


def test_reduce_lr_on_plateau_prints_and_reduces(capsys):
    m = model()
    m.fit(
        4,
        data(),
        data(),
        callbacks=[train.ReduceLROnPlateau(patience=1, verbose=True, mode="max", min_lr=0.001)],
    )
    assert lines(capsys) == ["Epoch 00004: ReduceLROnPlateau reducing learning rate to 0.0050000004."]
    np.testing.assert_allclose(m._optimizer.learning_rate.asnumpy(), 0.005, rtol=1e-6)


def rates(values, **options):
    """The learning rate after each epoch when `eval_loss` takes these values."""
    m = model(1.0)
    callback = train.ReduceLROnPlateau(**options)
    params = m._parameters("train", None, len(values), 1)
    context = train.RunContext(params)
    callback.on_train_begin(context)
    seen = []
    for epoch, value in enumerate(values, 1):
        params.cur_epoch_num, params.eval_results = epoch, {"eval_loss": value}
        callback.on_train_epoch_end(context)
        seen.append(round(float(m._optimizer.learning_rate.asnumpy()), 6))
    return seen


@pytest.mark.parametrize(
    "values, options, want",
    [
        ([5, 4, 4, 4], dict(patience=2), [1, 1, 1, 0.1]),
        ([5, 5, 5], dict(patience=1, factor=0.5), [1, 0.5, 0.25]),
        ([5, 5, 5, 5], dict(patience=1, factor=0.5, min_lr=0.4), [1, 0.5, 0.4, 0.4]),
        ([5, 5, 5, 5], dict(patience=1, factor=0.5, cooldown=1), [1, 0.5, 0.25, 0.125]),
        ([5, 5, 5, 5, 5], dict(patience=1, factor=0.5, cooldown=2), [1, 0.5, 0.5, 0.25, 0.25]),
        ([5, 4.99], dict(patience=1, min_delta=0.1), [1, 0.1]),
    ],
)
def test_reduce_lr_on_plateau(values, options, want):
    assert rates(values, **options) == want


def test_learning_rate_scheduler_sees_rate_and_step():
    seen = []
    m = model()
    scheduler = train.LearningRateScheduler(lambda rate, step: rate * (0.5 if step == 2 else 1))
    note = train.LambdaCallback(
        on_train_step_end=lambda r: seen.append(float(m._optimizer.learning_rate.asnumpy()))
    )
    m.train(1, data(), callbacks=[scheduler, note])
    np.testing.assert_allclose(seen, [0.05, 0.025, 0.025])


@pytest.mark.parametrize(
    "callback", [train.ReduceLROnPlateau(), train.LearningRateScheduler(lambda rate, step: rate)]
)
@pytest.mark.parametrize("changing", [True, False])
def test_changing_rates_cannot_be_changed_by_callbacks(callback, changing):
    net = nn.Dense(2, 1)
    params = net.trainable_params()
    if changing:
        optimizer = nn.SGD(params, [0.1, 0.2])
    else:
        optimizer = nn.SGD([{"params": params[:1], "lr": 0.2}, {"params": params[1:]}], 0.1)
    m = train.Model(net, nn.MSELoss(), optimizer, metrics={"loss"})
    with pytest.raises(ValueError, match="learning rate"):
        m.fit(1, data(), data(), callbacks=[callback])


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (ValueError, lambda: train.LossMonitor(-1)),
        (TypeError, lambda: train.LossMonitor(1.5)),
        (TypeError, lambda: train.LossMonitor(True)),
        (ValueError, lambda: train.TimeMonitor(0)),
        (TypeError, lambda: train.LambdaCallback(on_train_begin=3)),
        (TypeError, lambda: train.EarlyStopping(monitor=3)),
        (ValueError, lambda: train.EarlyStopping(patience=-1)),
        (ValueError, lambda: train.EarlyStopping(mode="best")),
        (TypeError, lambda: train.EarlyStopping(min_delta="1")),
        (TypeError, lambda: train.EarlyStopping(patience=1.5)),
        (TypeError, lambda: train.EarlyStopping(baseline="1")),
        (TypeError, lambda: train.EarlyStopping(restore_best_weights=1)),
        (TypeError, lambda: train.ReduceLROnPlateau(verbose=1)),
        (TypeError, lambda: train.ReduceLROnPlateau(cooldown=0.5)),
        (TypeError, lambda: train.ReduceLROnPlateau(min_lr="0")),
        (ValueError, lambda: train.ReduceLROnPlateau(factor=1.5)),
        (ValueError, lambda: train.ReduceLROnPlateau(cooldown=-1)),
        (TypeError, lambda: train.LearningRateScheduler(0.1)),
        (TypeError, lambda: train.RunContext(3)),
    ],
)
def test_wrong_arguments_are_refused(kind, wrong):
    with pytest.raises(kind):
        wrong()
