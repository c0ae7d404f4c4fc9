"""Every network of examples/zoo gives compiled what it gives eagerly: outputs, gradients, steps of training.

Distances are Euclidean and relative.  How near two float32 runs can come depends on the network: a unit whose
input is nearly 0 may be on in one and off in the other.  So eager runs on slightly other inputs say what is
noise, and networks with many such units are compared in float64 as well.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import config, nn

ROOT = Path(__file__).resolve().parent.parent / "examples" / "zoo"
sys.path.insert(0, str(ROOT))

from zoo import ZOO  # noqa: E402

# Batch norm over few values lets two steps of these move anywhere: eager runs on inputs that differ by 1e-7
# end 0.2 to 2.5 apart.
CHAOTIC = ["resnet50", "mobilenet_v1", "mobilenet_v2", "mobilenet_v3", "efficientnet_b0", "googlenet"]

DIRECT, WINOGRAD = 1e-5, 1e-4  # what rounding may cost; Winograd's transforms take one more digit


# Networks that take pictures of any size get small ones.
SIDES = {"resnet50": 16} | dict.fromkeys(
    ("resnet18", "mobilenet_v1", "mobilenet_v2", "mobilenet_v3", "efficientnet_b0", "googlenet"), 32
)


def arguments(name, batch, dtype="float32", part=1):
    """Inputs of a batch size, made of the network's own; of pictures a part of each side."""
    side = SIDES.get(name, 0) // part
    for array in ZOO[name].inputs(np.random.default_rng(0)):
        array = array[..., :side, :side] if side else array
        array = np.concatenate([array, array[::-1] * array.dtype.type(0.7 if array.dtype.kind == "f" else 1)])
        yield np.resize(array, (batch, *array.shape[1:])).astype(
            dtype if array.dtype.kind == "f" else "int32"
        )


def tensors(arrays, change=0.0, seed=0):
    """Float arrays changed by a relative amount, up or down."""
    rng = np.random.default_rng(seed)
    for array in arrays:
        if array.dtype.kind == "f" and change:
            array = (array * (1 + change * rng.choice([-1, 1], array.shape))).astype(array.dtype)
        yield ms.Tensor(array)


def distance(found, expected):
    return float(np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-30))


def joined(values):
    return np.concatenate([np.asarray(v.asnumpy(), np.float64).ravel() for v in values])


class Training:
    """A network, its optimizer, and its first state, to which each run returns."""

    def __init__(self, name, dtype=ms.float32):
        ms.set_seed(1)
        self.net = net = ZOO[name].make()
        for parameter in net.get_parameters():
            parameter.set_dtype(dtype)
        net.set_train(True)
        self.optimizer = optimizer = nn.Momentum(net.trainable_params(), 0.003, 0.9)
        self.state = {p.name: p for p in (*net.get_parameters(), *optimizer.get_parameters())}
        self.first = {name: p.asnumpy().copy() for name, p in self.state.items()}
        loss = ZOO[name].loss
        gradient = ms.value_and_grad(lambda *x: loss(net(*x), *x), None, optimizer.parameters)

        def step(*inputs):
            value, gradients = gradient(*inputs)
            optimizer(gradients)
            return value, gradients

        self.step = step

    def run(self, step, *inputs):
        """Losses of two steps, gradients of the first, by how much all Parameters and statistics moved."""
        for name, parameter in self.state.items():
            parameter.set_data(ms.Tensor(self.first[name]))
        loss, gradients = step(*inputs)
        gradients = joined(gradients)
        losses = joined([loss, step(*inputs)[0]])
        moves = [joined([p]) - self.first[name].ravel() for name, p in self.state.items()]
        return losses, gradients, np.concatenate(moves)


@pytest.mark.parametrize("name", ZOO)
def test_two_steps_of_training_are_those_of_an_eager_run(name):
    training = Training(name)
    arrays = list(arguments(name, 3))
    expected = training.run(training.step, *tensors(arrays))
    noise = np.zeros(len(expected))
    for seed in range(2):
        other = training.run(training.step, *tensors(arrays, 1e-6, seed))
        noise = np.maximum(noise, [distance(a, b) for a, b in zip(other, expected)])
    for strict, rounding in ((False, WINOGRAD), (True, DIRECT)):
        with config.context(strict_accuracy=strict):
            found = training.run(ms.jit(lambda *x: training.step(*x)), *tensors(arrays))
        for what, a, b, n in zip(("losses", "gradients", "moves"), found, expected, noise, strict=True):
            if n > 0.1:  # a bit of the input decides: float32 tells nothing, float64 does
                assert name in CHAOTIC
                continue
            assert distance(a, b) <= max(rounding, 3 * n), (what, strict)


@pytest.mark.parametrize("name", ZOO)
def test_bits_of_a_training_step_do_not_depend_on_threads(name):
    training = Training(name)
    inputs = tuple(tensors(arguments(name, 2, part=2)))
    found = []
    for threads in (1, 2, 3):
        with config.context(runtime_num_threads=threads):
            found.append(np.concatenate(training.run(ms.jit(lambda *x: training.step(*x)), *inputs)))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


@pytest.mark.parametrize("name", CHAOTIC)
def test_training_in_float64_knows_no_noise(name):
    training = Training(name, ms.float64)
    inputs = tuple(tensors(arguments(name, 2, "float64", 2)))
    expected = training.run(training.step, *inputs)
    found = training.run(ms.jit(lambda *x: training.step(*x)), *inputs)
    assert max(distance(a, b) for a, b in zip(found, expected, strict=True)) < 1e-9


@pytest.mark.parametrize("name", ZOO)
def test_inference_at_several_batch_sizes(name):
    ms.set_seed(1)
    net = ZOO[name].make().set_train(False)
    for strict, rounding, batches in ((False, WINOGRAD, (2,)), (True, DIRECT, (2, 1, 5))):
        with config.context(strict_accuracy=strict):
            compiled = ms.jit(net)
            for batch in batches:
                inputs = tuple(tensors(arguments(name, batch)))
                assert distance(joined([compiled(*inputs)]), joined([net(*inputs)])) <= rounding, (
                    batch,
                    strict,
                )


@pytest.mark.parametrize(("dtype", "rounding"), [(ms.float16, 2e-3), (ms.bfloat16, 2e-2)], ids=str)
@pytest.mark.parametrize(
    "name", ["lenet", "resnet18", "mobilenet_v2", "unet", "lstm", "gru", "translator", "vit"]
)
def test_inference_with_16_bits(name, dtype, rounding):
    ms.set_seed(1)
    net = ZOO[name].make().set_train(False).to_float(dtype)
    inputs = tuple(tensors(arguments(name, 2)))
    found, expected = ms.jit(net)(*inputs), net(*inputs)
    assert found.dtype == expected.dtype
    assert distance(joined([found.astype(ms.float32)]), joined([expected.astype(ms.float32)])) <= rounding


def test_check_prints_a_table_and_refuses_unknown_names():
    def run(*names):
        return subprocess.run(
            [sys.executable, str(ROOT / "check.py"), *names], text=True, capture_output=True
        )

    done = run("lenet", "lstm")
    assert done.returncode == 0, done.stderr
    assert "lenet" in done.stdout and "lstm" in done.stdout and "gru" not in done.stdout
    refused = run("lenets")
    assert refused.returncode == 2 and "there are lenet, alexnet" in refused.stderr
