"""Compiled functions that are called with a new size every time, against eager calls of the same function.

There is no peer: the bars are ratios to Mycelia itself.
"""

import platform
import sys
import time
from pathlib import Path

import numpy as np
import peers

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops

RANDOM = np.random.default_rng(0)
NEW, WARM = 200, 16  # sizes that are measured, sizes before them


def tensor(*shape):
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


class Block(nn.Cell):
    """A transformer's layer of width 256 with a table of positions and a causal mask."""

    def __init__(self, width=256, heads=4):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Dense(width, width) for _ in range(4))
        self.first, self.second = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
        self.table = Parameter(tensor(1, 1024, width), name="table")

    def split(self, x):
        b, n, d = x.shape
        return x.reshape(b, n, self.heads, d // self.heads).transpose(0, 2, 1, 3)

    def construct(self, x):
        b, n, d = x.shape
        x = x + self.table[:, :n]
        y = self.first(x)
        q, k, v = self.split(self.query(y)), self.split(self.key(y)), self.split(self.value(y))
        scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) / (d // self.heads) ** 0.5
        scores = scores.masked_fill(ops.tril(ops.ones((n, n), ms.float32)) == 0, -1e9)
        y = ops.matmul(ops.softmax(scores), v).transpose(0, 2, 1, 3).reshape(b, n, d)
        x = x + self.out(y)
        return x + self.down(ops.gelu(self.up(self.second(x))))


class Decoder(nn.Cell):
    """One token against keys and values that grow by it."""

    def __init__(self, width=256, heads=4):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Dense(width, width) for _ in range(4))

    def split(self, x):
        return x.reshape(1, 1, self.heads, -1).transpose(0, 2, 1, 3)

    def construct(self, x, keys, values):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        keys, values = ops.cat((keys, k), 2), ops.cat((values, v), 2)
        y = ops.matmul(ops.softmax(ops.matmul(q, keys.swapaxes(2, 3)) / 8.0), values)
        return self.out(y.transpose(0, 2, 1, 3).reshape(1, 1, -1)), keys, values


def layers():
    return nn.SequentialCell(nn.Dense(256, 512), nn.ReLU(), nn.Dense(512, 512), nn.ReLU(), nn.Dense(512, 10))


def training():
    net = layers()
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

    def step(x):
        loss, gradients = gradient(x)
        optimizer(gradients)
        return loss

    return step


CASES = {
    "dense layers, batch": (layers, lambda n: (tensor(n, 256),)),
    "transformer layer, length": (Block, lambda n: (tensor(1, n, 256),)),
    "decoder, keys": (Decoder, lambda n: (tensor(1, 1, 256), tensor(1, 4, n, 64), tensor(1, 4, n, 64))),
    "training step, batch": (training, lambda n: (tensor(n, 256),)),
}


def times(function, arguments) -> np.ndarray:
    """CPU milliseconds of each call."""
    found = []
    for args in arguments:
        start = time.process_time()
        function(*args)
        found.append(time.process_time() - start)
    return np.array(found) * 1e3


def main() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE, runtime_num_threads=1)
    rows = []
    for name, (make, arguments) in CASES.items():
        eager, compiled = make(), ms.jit(make())
        given = [arguments(n) for n in range(2, 2 + WARM + NEW)]
        for args in given[:WARM]:
            eager(*args), compiled(*args)
        new = given[WARM:]
        first, compiled_first = times(eager, new), times(compiled, new)
        again, compiled_again = times(eager, new[-50:]), times(compiled, new[-50:])
        rows.append(
            [
                name,
                f"{first.mean():.2f} ms",
                f"{compiled_first.mean():.2f} ms",
                f"{compiled_first.mean() / first.mean():.2f}",
                "<= 1.2",
                f"{np.median(compiled_again) / np.median(again):.2f}",
                str(compiled.cache_info().captures),
            ]
        )
    peers.report(
        "Sizes that change in every call",
        rows,
        f"CPU time of a call with a size that was never there before, mean of {NEW}, at one thread; ratio = "
        f"compiled / eager. {processor()}.",
        ["case", "eager", "compiled", "ratio", "bar", "ratio, known sizes", "captures"],
        write="--no-write" not in sys.argv,
    )


def processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")


if __name__ == "__main__":
    main()
