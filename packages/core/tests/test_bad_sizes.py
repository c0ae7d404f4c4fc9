"""Sizes out of the usual: huge shapes, empty batches, division by zero, memory that overlaps."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.engine import _C


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def ints(*values) -> Tensor:
    return Tensor(np.array(values, np.int32))


X = ones(2, 3)
I = ints(1, 0, 2)
EMPTY = ones(0, 3)


# ---- sizes -------------------------------------------------------------------------------------------------

HUGE = {
    "bytes overflow": lambda: ops.zeros((2**31, 2**30), ms.float64),
    "count overflows": lambda: ops.ones((2**62, 4), ms.int8),
    "count wraps to 0": lambda: ops.zeros((2**32, 2**32), ms.int8),
    "terabytes": lambda: ops.zeros((2**40,), ms.float32),
    "broadcast": lambda: ops.broadcast_to(Tensor(1.0), (2**20, 2**20)),
    "tile": lambda: ops.tile(X, (2**30, 2**10)),
    "matmul": lambda: ops.matmul(ops.ones((2**22, 1)), ops.ones((1, 2**22))),
    "one hot": lambda: ops.one_hot(I, 2**50, Tensor(1.0), Tensor(0.0)),
    "outer sum": lambda: ops.ones((2**22, 1)) + ops.ones((1, 2**22)),
    "empty": lambda: _C.empty(ms.float64, (2**61,)),
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_shapes_are_a_memory_error_and_the_process_lives(name):
    gc.collect()  # what earlier tests left must not be freed in between
    before = _C.memory_statistics()["live_bytes"]
    with pytest.raises(MemoryError, match=r"\d+ bytes"):
        HUGE[name]()
    assert (X + X).asnumpy().sum() == 12
    gc.collect()
    assert _C.memory_statistics()["live_bytes"] <= before


LAYERS = {
    "dense": (lambda: nn.Dense(4, 3), (0, 4)),
    "conv1d": (lambda: nn.Conv1d(3, 4, 3), (0, 3, 8)),
    "conv2d": (lambda: nn.Conv2d(3, 4, 3), (0, 3, 8, 8)),
    "conv3d": (lambda: nn.Conv3d(3, 4, 3), (0, 3, 6, 6, 6)),
    "batch norm": (lambda: nn.BatchNorm2d(3), (0, 3, 4, 4)),
    "layer norm": (lambda: nn.LayerNorm((4,)), (0, 4)),
    "group norm": (lambda: nn.GroupNorm(1, 3), (0, 3, 4, 4)),
    "instance norm": (lambda: nn.InstanceNorm2d(3), (0, 3, 4, 4)),
    "max pool": (lambda: nn.MaxPool2d(2, 2), (0, 3, 4, 4)),
    "avg pool": (lambda: nn.AvgPool2d(2, 2), (0, 3, 4, 4)),
    "adaptive pool": (lambda: nn.AdaptiveAvgPool2d(1), (0, 3, 4, 4)),
    "lstm": (lambda: nn.LSTM(4, 5), (3, 0, 4)),
    "gru": (lambda: nn.GRU(4, 5), (3, 0, 4)),
    "rnn": (lambda: nn.RNN(4, 5), (3, 0, 4)),
    "transformer": (lambda: nn.TransformerEncoderLayer(4, 2, 8), (3, 0, 4)),
    "dropout": (lambda: nn.Dropout(p=0.5), (0, 4)),
    "softmax": (nn.Softmax, (0, 4)),
    "gelu": (nn.GELU, (0, 4)),
    "prelu": (nn.PReLU, (0, 1)),
    "flatten": (nn.Flatten, (0, 3, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_empty_batch_goes_through_layer_and_gradient(name):
    make, shape = LAYERS[name]
    layer, x = make(), ones(*shape)
    layer.set_train()

    def run(x):
        out = layer(x)
        return out[0] if isinstance(out, tuple) else out

    assert run(x).size == 0
    weights = layer.trainable_params()
    found = ms.grad(run, 0, weights or None)(x)
    of_x, of_weights = found if weights else (found, ())
    assert of_x.shape == shape
    assert [g.shape for g in of_weights] == [w.shape for w in weights]
    assert all(not g.asnumpy().any() for g in of_weights)


@pytest.mark.parametrize("name, empty", [("sum", 0.0), ("prod", 1.0), ("any", False), ("all", True)])
def test_reductions_of_nothing_give_their_neutral_element(name, empty):
    x = EMPTY.astype(ms.bool_) if name in ("any", "all") else EMPTY
    assert getattr(x, name)().item() == empty
    assert getattr(x, name)(0).asnumpy().tolist() == [empty] * 3


def test_integer_division_by_zero_does_not_trap():
    assert (ints(5, -5, 0) // 0).asnumpy().tolist() == [2**31 - 1, -(2**31), 0]
    assert (ints(5, -5, 0) % 0).asnumpy().tolist() == [5, -5, 0]
    assert (
        Tensor(np.array([-(2**31)], np.int32)) // -1
    ).asnumpy().size == 1  # the one quotient that overflows


def test_overlapping_assignment_reads_before_it_writes():
    x = Tensor(np.arange(6, dtype=np.float32))
    x[1:] = x[:-1]
    assert x.asnumpy().tolist() == [0, 0, 1, 2, 3, 4]
    x[:-1] = x[1:]
    assert x.asnumpy().tolist() == [0, 1, 2, 3, 4, 4]
    x[::-1] = x
    assert x.asnumpy().tolist() == [4, 4, 3, 2, 1, 0]
    y = Tensor(np.arange(9, dtype=np.float32).reshape(3, 3))
    y[Tensor([0, 1])] = y[Tensor([1, 2])]
    assert y.asnumpy()[:, 0].tolist() == [3, 6, 6]


def test_failed_assignment_leaves_the_tensor_alone():
    x = Tensor(np.arange(6, dtype=np.float32))
    for key, value in [(Tensor([0, 9]), 1.0), (slice(0, 2), np.ones(5)), (7, 1.0)]:
        with pytest.raises((IndexError, ValueError)):
            x[key] = value
    assert x.asnumpy().tolist() == [0, 1, 2, 3, 4, 5]


def test_tensor_without_data_says_so():
    x = Tensor(shape=(2,), dtype=ms.float32)
    for use in (lambda: x + 1, x.asnumpy, lambda: memoryview(x), x.__dlpack__):
        with pytest.raises(RuntimeError):
            use()
