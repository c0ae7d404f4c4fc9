"""`GradWatch` tells of gradients that are finite and wrong, and leaves a good training alone."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset, nn
from mycelia.train import GradWatch, Model

STEPS, BAD = 30, 20  # the step, from 1, that is planted


def train(watch, mode, factor=1.0):
    """A training whose data of step `BAD` are `factor` times what they are else; how many steps it made."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((STEPS, 4, 2)).astype(np.float32)
    y = np.zeros((STEPS, 4, 2), np.float32)
    x[BAD - 1] *= factor
    ms.set_seed(2)
    net = nn.SequentialCell(nn.Dense(2, 3), nn.Dense(3, 2))
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 1e-9))
    steps = []

    class Counts(ms.Callback):
        def step_end(self, run_context):
            steps.append(run_context.original_args().cur_step_num)

    data = dataset.NumpySlicesDataset((x, y), shuffle=False)
    ms.set_context(mode=mode)
    try:
        model.train(1, data, callbacks=[watch, Counts()], dataset_sink_mode=False)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    return len(steps)


@pytest.fixture(params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "eager"])
def mode(request):
    return request.param


def test_a_good_training_is_left_alone(mode):
    watch = GradWatch()
    assert train(watch, mode) == STEPS and watch.steps == []


def test_a_norm_beyond_its_deviations_is_told(mode):
    watch = GradWatch()
    assert train(watch, mode, factor=100.0) == STEPS
    (found,) = watch.steps
    assert found[0] == BAD and "has the norm" in found[2] and "deviation" in found[2]


def test_a_value_beyond_the_bound_ends_the_training(mode):
    with pytest.raises(ArithmeticError, match=rf"step {BAD}: .* has .*, more than 1000"):
        train(GradWatch(absolute=1000.0, sigmas=1e9, action="raise"), mode, factor=1e4)
    assert train(GradWatch(absolute=1000.0, sigmas=1e9, action="stop"), mode, factor=1e4) == BAD


@pytest.mark.parametrize("bound", [1e30, np.inf])
def test_what_is_not_finite_is_beyond_any_bound(mode, bound):
    watch = GradWatch(absolute=bound, warmup=STEPS)
    train(watch, mode, factor=np.inf)
    assert watch.steps[0][0] == BAD and "has inf" in watch.steps[0][2]


@pytest.mark.parametrize(
    "arguments", [dict(absolute=0), dict(sigmas=-1.0), dict(warmup=True), dict(action="skip")]
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        GradWatch(**arguments)
