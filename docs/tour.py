"""A tour of Mycelia in a few seconds: `python docs/tour.py`. Each stop is a function, in order."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops


def stop(title: str) -> None:
    print(f"\n== {title}")


def tensors() -> None:
    stop("Tensors: MindSpore's names, NumPy's memory")
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    print(x @ x.T)
    print("softmax of the rows:", ops.softmax(x, -1)[0])
    try:
        ops.matmul(x, x)
    except ValueError as error:
        print("an error says what, where and why:\n ", str(error).replace("\n", "\n  "))


def gradients() -> None:
    stop("Gradients of any order")
    f = lambda x: x**4
    for order in range(1, 5):
        f = ms.grad(f)
        print(f"derivative {order} of x^4 at 2: {f(Tensor(2.0))}")


def eager_speed() -> None:
    stop("An op costs little: the native core remembers what to do for each signature")
    a, b = Tensor(np.ones(4, np.float32)), Tensor(np.ones(4, np.float32))
    count = 100_000
    start = time.process_time()
    for _ in range(count):
        a + b
    print(f"{(time.process_time() - start) / count * 1e9:.0f} ns for an addition of four numbers")


@ms.jit
def newton(a):
    """The square root of `a`; the loop and its condition are part of the compiled graph."""
    x = a
    while abs(x * x - a) > 1e-6 * a:
        x = (x + a / x) / 2
    return x


def graphs() -> None:
    stop("Python's control flow, compiled and differentiated")
    print("newton(2) =", newton(Tensor(2.0)), "and its derivative", ms.grad(newton)(Tensor(2.0)))
    with tempfile.TemporaryDirectory() as folder, ms.config.context(save_graphs=1, save_graphs_path=folder):
        ms.jit(lambda x: ops.relu(x * 2 + 1).sum())(Tensor([1.0, -2.0]))
        last = sorted(Path(folder).glob("[0-9]*.ir"))[-1]
        print(last.read_text().strip())


class Spirals(nn.Cell):
    """Two hidden layers for points of the plane."""

    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Dense(2, 32), nn.Tanh(), nn.Dense(32, 32), nn.Tanh(), nn.Dense(32, 2)
        )
        self.temperature = Parameter(Tensor(1.0), name="temperature")

    def construct(self, x):
        return self.layers(x) / self.temperature


def spirals(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points on two interleaved spirals, and on which of the two each lies."""
    rng = np.random.default_rng(0)
    which = rng.integers(0, 2, count)
    radius = rng.uniform(0.2, 2.0, count)
    angle = 3 * radius + np.pi * which
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return (points + 0.03 * rng.normal(size=points.shape)).astype(np.float32), which.astype(np.int32)


def training(folder: Path) -> None:
    stop("Training: the whole step is one program")
    ms.set_seed(0)
    points, which = spirals(1000)
    net = Spirals()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    gradient = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

    @ms.jit
    def step(x, y):
        value, gradients = gradient(x, y)
        optimizer(gradients)
        return value

    x, y = Tensor(points), Tensor(which)
    start = time.perf_counter()
    for epoch in range(401):
        value = step(x, y)
        if epoch % 100 == 0:
            print(f"step {epoch}: loss {float(value):.4f}")
    right = float((net(x).argmax(1) == y).astype(ms.float32).mean())
    print(f"{right:.1%} right after {time.perf_counter() - start:.1f} s")
    net.set_train(False)
    ms.export(net, x, file_name=str(folder / "spirals.mindir"), file_format="MINDIR")
    np.save(folder / "expected.npy", net(x).asnumpy())
    np.save(folder / "points.npy", points)


FRESH = """
import numpy as np, mycelia as ms
net = ms.nn.GraphCell(ms.load("spirals.mindir"))
result = net(ms.Tensor(np.load("points.npy"))).asnumpy()
print("largest difference:", np.abs(result - np.load("expected.npy")).max())
"""


def files(folder: Path) -> None:
    stop("MindIR: loaded in a fresh process, without the Python that made it")
    subprocess.run([sys.executable, "-c", FRESH], cwd=folder, check=True)


def main() -> None:
    tensors()
    gradients()
    eager_speed()
    graphs()
    with tempfile.TemporaryDirectory() as name:
        training(Path(name))
        files(Path(name))
    print("\nNext: docs/guide.md, and `make quickstart` for handwritten digits.")


if __name__ == "__main__":
    main()
