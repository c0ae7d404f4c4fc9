"""Cells derived from layers call the operators that the layers hold, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops

X = ms.Tensor(np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 2, 4, 4))


class Conv(nn.Conv2d):
    def construct(self, x):
        y = self.conv2d(x, self.weight)
        return self.bias_add(y, self.bias) if self.has_bias else y


class Dense(nn.Dense):
    def construct(self, x):
        x = self.matmul(self.reshape(x, (-1, 4)), self.weight)
        if self.has_bias:
            x = self.bias_add(x, self.bias)
        return self.activation(x) if self.activation_flag else x


class Norm(nn.LayerNorm):
    def construct(self, x):
        y, _, _ = self.layer_norm(x, self.gamma, self.beta)
        return y


class Loss(nn.LossBase):
    def construct(self, x, y):
        return self.reduce_mean(self.mul(self.cast(x, ms.float32), y))


class Chain(nn.SequentialCell):
    def construct(self, x):
        for cell in self.cell_list:
            x = cell(x)
        return x


CELLS = [
    (Conv, nn.Conv2d, (2, 3, 3, 2, "pad", 1), {"has_bias": True}),
    (Conv, nn.Conv2d, (2, 4, 3), {"group": 2}),
    (Norm, nn.LayerNorm, ((4,),), {}),
    (Chain, nn.SequentialCell, ([nn.Tanh(), nn.ReLU()],), {}),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("derived", "layer", "arguments", "options"), CELLS)
def test_operators_of_layers(derived, layer, arguments, options, compiled):
    ms.set_seed(3)
    want = layer(*arguments, **options)
    got = derived(*arguments, **options)
    for parameter, other in zip(got.get_parameters(), want.get_parameters(), strict=True):
        parameter.set_data(other)
    run = ms.jit(got) if compiled else got
    np.testing.assert_allclose(run(X).asnumpy(), want(X).asnumpy(), rtol=1e-5, atol=1e-5)


def test_dense_and_loss():
    net = Dense(4, 3, activation="relu")
    want = ops.relu(ops.dense(X.reshape((-1, 4)), net.weight, net.bias))
    np.testing.assert_allclose(net(X).asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(Loss()(X, X).asnumpy(), np.square(X.asnumpy()).mean(), rtol=1e-5)


def test_what_layers_hold_can_be_replaced():
    chain = Chain([nn.ReLU()])
    chain.append(nn.Tanh())
    assert len(chain.cell_list) == 2
    chain.cell_list = [nn.ReLU()]
    assert len(chain.cell_list) == 1
    assert nn.Dropout(keep_prob=0.75).keep_prob == 0.75


def test_a_metric_of_ones_own_converts_its_batches():
    class Total(nn.Metric):
        def clear(self):
            self._sum = 0

        def update(self, *inputs):
            self._sum += self._convert_data(inputs[0]).sum()

        def eval(self):
            return self._sum

    metric = Total()
    metric.clear()
    for batch in (ms.Tensor([1, 2]), [3], np.array([4])):
        metric.update(batch)
    assert metric.eval() == 10
    with pytest.raises(TypeError, match="str"):
        metric.update("five")
