"""Faults planted in other networks than the small one of `planted_faults`: a GRU, a U-Net, a transformer, and
a GAN trained by turns in PyNative mode.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from faulty_trainings import Fault, Training, diverges, first_not_finite, hits, not_finite

import mycelia as ms
from mycelia import Tensor, debug, nn, ops
from mycelia.engine import observing

Function = Callable[[Tensor], Tensor]


class Place(nn.Cell):
    """Where a fault of the code may stand."""

    def __init__(self, function: Function | None) -> None:
        super().__init__()
        self.function = function

    def construct(self, x):
        return x if self.function is None else self.function(x)


class Gru(nn.Cell):
    """Classes of sequences of five tokens, by a GRU of two layers."""

    def __init__(self, function: Function | None = None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.gru = nn.GRU(6, 8, num_layers=2, batch_first=True)
        self.place, self.norm, self.head = Place(function), nn.LayerNorm((8,)), nn.Dense(8, 3)

    def construct(self, x):
        y, _ = self.gru(self.embedding(x))
        return self.head(self.norm(self.place(y[:, -1])))


class UNet(nn.Cell):
    """Classes of images of 8 by 8, by a U-Net of two levels."""

    def __init__(self, function: Function | None = None) -> None:
        super().__init__()
        block = lambda i, o: nn.SequentialCell(nn.Conv2d(i, o, 3), nn.BatchNorm2d(o), nn.ReLU())
        self.first, self.second, self.last = block(1, 4), block(4, 8), block(8, 4)
        self.pool, self.up = nn.MaxPool2d(2, 2), nn.Conv2dTranspose(8, 4, 2, 2)
        self.place, self.out = Place(function), nn.Conv2d(4, 3, 1)

    def construct(self, x):
        beside = self.first(x)
        up = self.up(self.place(self.second(self.pool(beside))))
        return ops.mean(self.out(self.last(ops.cat((up, beside), 1))), (2, 3))


class Block(nn.Cell):
    """Causal attention of two heads and a feed-forward network, normalized before."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Dense(8, 8) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm((8,)), nn.LayerNorm((8,))
        self.wide, self.narrow = nn.Dense(8, 16), nn.Dense(16, 8)
        self.mask = Tensor(np.triu(np.full((5, 5), -np.inf, np.float32), 1))

    def construct(self, x):
        y = self.norm1(x)
        q, k, v = (w(y).reshape(-1, 5, 2, 4).transpose(0, 2, 1, 3) for w in (self.q, self.k, self.v))
        scores = ops.softmax(ops.matmul(q, k.transpose(0, 1, 3, 2)) / 2.0 + self.mask, -1)
        x = x + self.o(ops.matmul(scores, v).transpose(0, 2, 1, 3).reshape(-1, 5, 8))
        return x + self.narrow(ops.gelu(self.wide(self.norm2(x))))


class Transformer(nn.Cell):
    """Classes of sequences of five tokens, by two blocks."""

    def __init__(self, function: Function | None = None) -> None:
        super().__init__()
        self.embedding, self.head, self.place = nn.Embedding(11, 8), nn.Dense(8, 3), Place(function)
        self.blocks = nn.CellList([Block(), Block()])

    def construct(self, x):
        first, second = self.blocks
        return self.head(ops.mean(second(self.place(first(self.embedding(x)))), 1))


def _weighted(net: nn.Cell) -> nn.Cell:
    """The same weights in each process."""
    for name, weight in net.parameters_and_names():
        if weight.requires_grad and "norm" not in name and not name.endswith(("gamma", "beta")):
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            weight.set_data(Tensor((0.4 * rng.standard_normal(weight.shape)).astype(np.float32)))
    return net


def _tokens(step: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(50 + step)
    return rng.integers(0, 11, (4, 5)).astype(np.int32), rng.integers(0, 3, 4).astype(np.int32)


def _images(step: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(50 + step)
    return rng.standard_normal((4, 1, 8, 8)).astype(np.float32), rng.integers(0, 3, 4).astype(np.int32)


def _training(kind: type[nn.Cell], mode: int, function: Function | None = None, **options: Any) -> Training:
    return Training(
        build=lambda: _weighted(kind(function)),
        batch=_images if kind is UNet else _tokens,
        mode=mode,
        **{"optimizer": lambda weights: nn.Adam(weights, 1e-2), **options},
    )


def _change(net: nn.Cell, name: str, function: Callable[[np.ndarray], Any]) -> None:
    weight = dict(net.parameters_and_names())[name]
    old = weight.asnumpy()
    new = np.broadcast_to(function(old.copy()), old.shape)
    weight.set_data(Tensor(np.ascontiguousarray(new, old.dtype)))


def _at(step: int, name: str, function: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    return {"between": lambda now, net: _change(net, name, function) if now == step else None}


def _swap(net: nn.Cell) -> None:
    block = net.blocks[0]
    q, k = block.q.weight.asnumpy().copy(), block.k.weight.asnumpy().copy()
    block.q.weight.set_data(Tensor(k)), block.k.weight.set_data(Tensor(q))


def _masked(value: float) -> dict[str, Any]:
    def change(net: nn.Cell) -> None:
        net.blocks[1].mask = Tensor(np.full((5, 5), value, np.float32))

    return {"change": change}


def _nan(array: np.ndarray) -> np.ndarray:
    array.reshape(-1)[3] = np.nan
    return array


def _gan(log: Function) -> Callable[[Path], str]:
    """A generator and a discriminator by turns, both eager; `log` is the one in their losses."""

    def find(folder: Path) -> str:
        ms.set_context(mode=ms.PYNATIVE_MODE)
        observing.set_iteration(0)
        generator, critic = _weighted(nn.Dense(3, 4)), _weighted(nn.Dense(4, 1))
        trained = [(net, nn.SGD(net.trainable_params(), 0.5)) for net in (critic, generator)]
        noise = Tensor(np.random.default_rng(1).standard_normal((8, 3)).astype(np.float32))
        real = Tensor(np.full((8, 4), 300.0, np.float32))

        def of_critic():
            return -ops.mean(log(ops.sigmoid(critic(real))) + log(1 - ops.sigmoid(critic(generator(noise)))))

        def of_generator():
            return -ops.mean(log(ops.sigmoid(critic(generator(noise)))))

        with debug.dump({"path": str(folder), "eager": True}):
            for _ in range(2):
                for (_, optimizer), loss in zip(trained, (of_critic, of_generator), strict=True):
                    optimizer(ms.grad(loss, None, optimizer.parameters)())
        return first_not_finite(folder)

    return find


def _born() -> list[tuple[str, Training, str]]:
    graph, eager = ms.GRAPH_MODE, ms.PYNATIVE_MODE
    second = "blocks-CellList/1-Block"
    return [
        (
            "NaN in a recurrent weight",
            _training(Gru, eager, **_at(1, "gru.weight_hh_l1", _nan)),
            "1 gru.weight_hh_l1 nan",
        ),
        (
            "infinite embedding",
            _training(Transformer, graph, **_at(2, "embedding.embedding_table", lambda v: v * np.inf)),
            "2 embedding.embedding_table inf",
        ),
        ("logarithm in a U-Net", _training(UNet, graph, ops.log), "0 Default/place-Place/Log-op0 -inf"),
        ("root of zero below", _training(UNet, eager, ops.rsqrt), "0 Default/place-Place/Rsqrt-op0 inf"),
        (
            "exponential in a transformer",
            _training(Transformer, eager, lambda x: ops.exp(100 * x)),
            "0 Default/place-Place/Exp-op0 inf",
        ),
        (
            "deviation of a constant",
            _training(Transformer, graph, lambda x: x / ops.std(0 * x)),
            "0 Default/place-Place/RealDiv-op0 inf",
        ),
        (
            "angle out of range",
            _training(Gru, graph, lambda x: ops.acos(9 * x)),
            "0 Default/place-Place/ACos-op0 nan",
        ),
        (
            "row that is masked whole",
            _training(Transformer, eager, **_masked(-np.inf)),
            f"0 Default/{second}/Softmax-op0 nan",
        ),
        (
            "rate that diverges in a transformer",
            _training(Transformer, graph, optimizer=lambda weights: nn.SGD(weights, 1e25)),
            "1 Default/blocks-CellList/0-Block/q-Dense/Dense-op0 inf",
        ),
    ]


def _departs() -> list[tuple[str, type[nn.Cell], int, dict[str, Any], str]]:
    """Of each the first thing that differs; where what an operator reads was made by none that was compared,
    that operator and its input.
    """
    graph, eager = ms.GRAPH_MODE, ms.PYNATIVE_MODE
    labels = lambda step, x, y: (x, y[::-1].copy() if step == 2 else y)
    tokens = {"data": lambda step, x, y: ((x + 1) % 11 if step == 1 else x, y)}
    adam = {"optimizer": lambda weights: nn.Adam(weights, 1e-2, beta1=0.8)}
    gates = {"change": lambda net: _change(net, "gru.weight_ih_l0", lambda v: np.roll(v, 8, 0))}
    turned = {"change": lambda net: _change(net, "up.weight", lambda v: v[:, :, ::-1, ::-1])}
    epsilon = {"change": lambda net: setattr(net.norm, "epsilon", 0.1)}
    variance = _at(2, "second.1.moving_variance", lambda v: 1 + 0 * v)
    block, loss = "Default/blocks-CellList/1-Block", "Default/_loss_fn-SoftmaxCrossEntropyWithLogits"
    sparse, embedding = "SparseSoftmaxCrossEntropyWithLogits-op0", "Default/embedding-Embedding/Embedding-op0"
    more = {"function": lambda x: x + 0.1}
    return [
        ("queries and keys swapped", Transformer, eager, {"change": _swap}, "0 blocks.0.q.weight"),
        ("gates in another order", Gru, graph, gates, "0 gru.weight_ih_l0"),
        ("mask that was lost", Transformer, graph, _masked(0.0), f"0 {block}/Add-op0 input 1"),
        ("tokens counted from one", Gru, graph, tokens, "1 inputs0"),
        ("tokens counted from one, eager", Gru, eager, tokens, f"1 {embedding} input 0"),
        ("labels backwards", UNet, eager, {"data": labels}, f"2 {loss}/{sparse} input 1"),
        ("another decay of Adam", Transformer, graph, adam, "0 Default/optimizer-Adam/Mul-op0 input 1"),
        ("variance that was reset", UNet, graph, variance, "2 second.1.moving_variance"),
        ("another epsilon", Gru, eager, epsilon, "0 Default/norm-LayerNorm/LayerNorm-op0"),
        ("kernel turned round", UNet, graph, turned, "0 up.weight"),
        ("operator too much", Transformer, graph, more, f"0 {block}/norm1-LayerNorm/LayerNorm-op0 input 0"),
    ]


def in_networks() -> list[Fault]:
    """All of them, and trainings without a fault, of which nothing may be named."""
    compared = [
        Fault(
            name, "mycelia-precision", diverges(_training(kind, mode, **options), _training(kind, mode)), at
        )
        for name, kind, mode, options, at in _departs()
    ]
    still = _training(Gru, ms.GRAPH_MODE, frozen="weight_hh_l1")
    frozen = Fault(
        "recurrent weight that is not trained", "condition weight_not_changed",
        hits(still, "weight_not_changed", "weight"), "1 gru.weight_hh_l1; 2 gru.weight_hh_l1",
    )  # fmt: skip
    sure = Fault("logarithm of a sure critic", "mycelia-debug", _gan(ops.log), "0 Default/Log-op0 -inf")
    clean = [not_finite(_training(Gru, ms.PYNATIVE_MODE)), not_finite(_training(UNet, ms.GRAPH_MODE))]
    clean += [_gan(lambda x: ops.log(x + 1e-6)), diverges(*[_training(Transformer, ms.GRAPH_MODE)] * 2)]
    return [
        *(Fault(name, "mycelia-debug", not_finite(t), expected) for name, t, expected in _born()),
        sure,
        frozen,
        *compared,
        *(Fault(f"clean, {number}", "both", find, "") for number, find in enumerate(clean)),
    ]
