"""Networks whose inputs change their size from call to call, for tests and measurements of open sizes."""

from __future__ import annotations

import numpy as np

import mycelia as ms
from mycelia import Parameter, Tensor, nn
from mycelia.engine import ops


def heads_of(x: Tensor, heads: int) -> Tensor:
    """[b, n, heads * d] -> [b, heads, n, d]."""
    b, n, width = x.shape
    return x.reshape(b, n, heads, width // heads).transpose(0, 2, 1, 3)


class Block(nn.Cell):
    """A transformer's layer with a table of positions and a causal mask.

    Shapes: [b, n, width] -> the same, for n up to `longest`.
    """

    def __init__(self, width: int = 256, heads: int = 4, longest: int = 1024):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Dense(width, width) for _ in range(4))
        self.first, self.second = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
        table = np.random.default_rng(0).standard_normal((1, longest, width)).astype(np.float32)
        self.table = Parameter(Tensor(table), name="table")

    def construct(self, x):
        b, n, d = x.shape
        x = x + self.table[:, :n]
        y = self.first(x)
        q, k, v = (heads_of(layer(y), self.heads) for layer in (self.query, self.key, self.value))
        scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) / (d // self.heads) ** 0.5
        scores = scores.masked_fill(ops.tril(ops.ones((n, n), ms.float32)) == 0, -1e9)
        y = ops.matmul(ops.softmax(scores), v).transpose(0, 2, 1, 3).reshape(b, n, d)
        x = x + self.out(y)
        return x + self.down(ops.gelu(self.up(self.second(x))))


class Decoder(nn.Cell):
    """One token against keys and values that grow by it.

    Shapes: [1, 1, width], keys and values [1, heads, n, width / heads] -> [1, 1, width], both with n + 1.
    """

    def __init__(self, width: int = 256, heads: int = 4):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Dense(width, width) for _ in range(4))

    def construct(self, x, keys, values):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.query, self.key, self.value))
        keys, values = ops.cat((keys, k), 2), ops.cat((values, v), 2)
        scores = ops.softmax(ops.matmul(q, keys.swapaxes(2, 3)) / q.shape[-1] ** 0.5)
        y = ops.matmul(scores, values)
        return self.out(y.transpose(0, 2, 1, 3).reshape(1, 1, -1)), keys, values


def training_step(net: nn.Cell, learning_rate: float = 1e-3):
    """A function of a batch that updates `net` by Adam and returns the loss, the mean of squared results."""
    optimizer = nn.Adam(net.trainable_params(), learning_rate)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

    def step(x):
        loss, gradients = gradient(x)
        optimizer(gradients)
        return loss

    return step
