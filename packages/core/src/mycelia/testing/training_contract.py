"""Checks of a backend that trains: updates in place, optimizers, kept values, control flow, a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.testing.comparison import compare, device_of, draw, on_backend


def check_updates(backend: str) -> None:
    """Updates change the Parameter and what NumPy sees of it, and no other Tensor on its memory."""
    for compiled in (False, True):
        with on_backend(backend):
            parameter = Parameter(Tensor(draw(4, 3)), name="p")
            kept, before = parameter.value(), parameter.asnumpy().copy()
            addition = Tensor(draw(4, 3, seed=1))

            def add(x, parameter=parameter):
                ops.assign_add(parameter, x)
                return parameter * 1

            step = ms.jit(add) if compiled else add
            after = step(addition)
            want = before + addition.asnumpy()
            np.testing.assert_allclose(after.asnumpy(), want, rtol=1e-6)
            np.testing.assert_allclose(parameter.asnumpy(), want, rtol=1e-6)
            np.testing.assert_array_equal(kept.asnumpy(), before, err_msg="an update changed another Tensor")
            exported = Tensor(before)
            seen = exported.asnumpy()
            ops.assign(exported, addition)
            np.testing.assert_array_equal(exported.asnumpy(), addition.asnumpy())
            if not device_of(backend):
                np.testing.assert_array_equal(seen, addition.asnumpy())
            moved = Parameter(Tensor(before), name="moved")
            seen = moved.asnumpy()  # while it lies on the host
            ops.assign(moved, addition)
            np.testing.assert_array_equal(seen, addition.asnumpy(), err_msg="NumPy missed an update")


def check_optimizers(backend: str) -> None:
    """Steps of optimizers give what they give on the reference, eagerly and compiled."""
    made: tuple[Callable[[Any], nn.Optimizer], ...] = (
        lambda p: nn.SGD(p, 0.1), lambda p: nn.Momentum(p, 0.1, 0.9), lambda p: nn.Adam(p, 0.1),
    )  # fmt: skip

    def train(make: Callable[[Any], nn.Optimizer], compiled: bool) -> list[Tensor]:
        weights = [Parameter(Tensor(draw(5, n, seed=n)), name=f"w{n}") for n in (1, 4)]
        optimizer = make(ms.ParameterTuple(weights))

        def step(x):
            gradients = ms.grad(lambda x: sum(((x @ w) ** 2).sum() for w in weights), None, weights)(x)
            optimizer(tuple(gradients))
            return x

        run = ms.jit(step) if compiled else step
        for seed in range(3):
            run(Tensor(0.3 * draw(3, 5, seed=10 + seed)))
        return [*weights]

    for make in made:
        for compiled in (False, True):
            compare(backend, lambda make=make, compiled=compiled: train(make, compiled))


def check_kept_values(backend: str) -> None:
    """What compiled functions keep of Parameters is computed anew when these change."""
    with on_backend(backend):
        weight = Parameter(Tensor(draw(6, 5)), name="w")
        function = ms.jit(lambda x: x @ weight.T)
        x = Tensor(draw(2, 5, seed=1))
        for seed in range(3):
            np.testing.assert_allclose(
                function(x).asnumpy(), x.asnumpy() @ weight.asnumpy().T, rtol=1e-4, atol=1e-6
            )
            if seed == 0:
                weight.set_data(Tensor(draw(6, 5, seed=2)))
            else:
                ops.assign_add(weight, Tensor(draw(6, 5, seed=3)))


def check_control_flow(backend: str) -> None:
    """Conditions and loops over tensors, their gradients, and constants in graphs."""
    table = Tensor(draw(3, 3, seed=5))

    def branch(x):
        if x.sum() > 0:
            return x * 2 + table
        return x - table

    def loop(x):
        n = ms.Tensor(0)
        while n < 3:
            x, n = ops.tanh(x @ table), n + 1
        return x

    for function in (branch, loop):
        for seed in (0, 1):
            x = draw(3, 3, seed=seed)
            compare(backend, lambda f=function, x=x: (ms.jit(f)(Tensor(x)),))
            compare(backend, lambda f=function, x=x: (ms.jit(ms.grad(f))(Tensor(x)),))
    scanned = ms.jit(lambda x: ops.cumsum(x, 0) * x.max())
    compare(backend, lambda: [scanned(Tensor(draw(n, 3))) for n in (2, 3, 5, 1)])  # other sizes each time


class LeNet(nn.Cell):
    """LeNet-5 (LeCun et al. 1998) with weights that are the same each time: [n, 1, 32, 32] -> [n, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
        )  # fmt: skip
        self.classifier = nn.SequentialCell(
            nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10)
        )
        for seed, parameter in enumerate(self.trainable_params()):
            shape = parameter.shape
            scale = 1 / np.sqrt(max(np.prod(shape[1:]), 1))
            parameter.set_data(Tensor((scale * draw(*shape, seed=seed)).astype(np.float32)))

    def construct(self, x):
        return self.classifier(self.features(x))


def train_lenet(compiled: str, steps: int = 4) -> list[Tensor]:
    """The losses of `steps` on one batch, and then the Parameters. `compiled`: "", "step" for the whole step
    as one graph, or "forward", which leaves gradient and optimizer to eager calls.
    """
    net, loss = LeNet(), nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.02, 0.9)
    forward = ms.jit(lambda x: net(x)) if compiled == "forward" else net
    gradient = ms.value_and_grad(lambda x, y: loss(forward(x), y), None, optimizer.parameters)

    def step(x, y):
        value, gradients = gradient(x, y)
        optimizer(gradients)
        return value

    run = ms.jit(step) if compiled == "step" else step
    images = Tensor(draw(6, 1, 32, 32))
    labels = Tensor(np.array([0, 9, 3, 3, 5, 1], np.int32))
    return [*(run(images, labels) for _ in range(steps)), *net.trainable_params()]


def check_training(backend: str) -> None:
    """LeNet learns as on the reference: eagerly, as one graph, and with a compiled forward pass."""
    for compiled in ("", "step", "forward"):
        compare(backend, lambda compiled=compiled: train_lenet(compiled), rtol=1e-3)
