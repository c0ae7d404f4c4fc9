"""`boost.GradientAccumulation`: steps for several batches."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import boost, nn


def trained(batches, accumulates, mode):
    ms.set_seed(2)
    net = nn.Dense(3, 2)
    optimizer = nn.Adam(net.trainable_params(), 0.1)
    gradients_of = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
    end = boost.GradientAccumulation(accumulates, optimizer)

    def step(x):
        loss, grads = gradients_of(x)
        return end(loss, grads)

    run = ms.jit(step) if mode == ms.GRAPH_MODE else step
    losses = [float(run(ms.Tensor(x))) for x in batches]
    return losses, [p.asnumpy().copy() for p in net.trainable_params()], optimizer, end


def test_three_batches_are_one_of_all(mode):
    batches = np.random.RandomState(0).randn(6, 4, 3).astype(np.float32)
    losses, weights, optimizer, end = trained(batches, 3, mode)
    whole, expected, _, _ = trained(batches.reshape(2, 12, 3), 1, mode)
    assert optimizer.global_step.asnumpy().tolist() == [2] and len(losses) == 6
    assert np.isclose(np.mean(losses[:3]), whole[0])
    assert all(np.allclose(x, y, atol=1e-6) for x, y in zip(weights, expected))
    names = {p.name: p.asnumpy() for p in end.get_parameters() if "accumulation" in p.name}
    assert sorted(names) == ["accumulation_step", "grad_accumulation.bias", "grad_accumulation.weight"]
    assert not any(value.any() for value in names.values())


def test_what_is_not_whole_yet_waits(mode):
    batches = np.random.RandomState(0).randn(5, 4, 3).astype(np.float32)
    _, weights, optimizer, end = trained(batches, 3, mode)
    _, before, _, _ = trained(batches[:3], 3, mode)
    assert all(np.array_equal(x, y) for x, y in zip(weights, before))
    assert int(end._accumulation_step.asnumpy()) == 2 and end._grad_accumulation[0].asnumpy().any()


@pytest.mark.parametrize(("count", "kind"), [(0, ValueError), (1.5, ValueError), (True, ValueError)])
def test_bad_numbers_of_steps_are_named(count, kind):
    with pytest.raises(kind, match="max_accumulation_step must be an int > 0"):
        boost.GradientAccumulation(count, nn.SGD(nn.Dense(2, 2).trainable_params()))


def test_what_is_no_optimizer_is_named():
    with pytest.raises(TypeError, match="optimizer must be an Optimizer, but got ReLU"):
        boost.GradientAccumulation(2, nn.ReLU())
