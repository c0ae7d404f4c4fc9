"""Small trainings in which a fault may be planted, and the tools that are asked what is wrong with them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import Tensor, debug, nn
from mycelia.debug.checking import check_tensor
from mycelia.debug.conditions import condition
from mycelia.debug.conditions.recommended import suits
from mycelia.debug.precision.comparison import Comparison
from mycelia.debug.reading.folders import Dump
from mycelia.engine import observing
from mycelia.engine.compile import overflow

#: Runs a faulty training in a folder and asks a tool; what that names.
Find = Callable[[Path], str]
STEPS = 3
EXACT = 1 - 1e-12  # runs of one machine are alike bit by bit


@dataclass(frozen=True)
class Fault:
    """`tool`: who is asked; `expected`: the step and the operator that it must name, and no other."""

    name: str
    tool: str
    find: Find
    expected: str


class Net(nn.Cell):
    """Convolution, normalization and three dense layers; `attributes` are what a fault may get wrong."""

    def __init__(self, padding=1, epsilon=1e-3, slope=0.2, approximate=True, keep=None, **replaced):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, pad_mode="pad", padding=padding, has_bias=False)
        self.norm = nn.BatchNorm2d(4, eps=epsilon)
        self.leaky = nn.LeakyReLU(slope)
        self.flat = nn.Flatten()
        self.fc1 = nn.Dense(4 * 4 * 4, 8)
        self.gelu = nn.GELU(approximate)
        self.fc2 = nn.Dense(8, 8)
        self.tanh = nn.Tanh()
        self.fc3 = nn.Dense(8, 8)
        self.relu = nn.ReLU()
        self.head = nn.Dense(8, 3)
        for name, cell in replaced.items():
            setattr(self, name, cell)
        for name, weight in self.parameters_and_names():
            if weight.requires_grad and not name.startswith("norm"):
                rng = np.random.default_rng(zlib.crc32(name.encode()))
                scale = 0.1 if weight.ndim == 1 else 1.5 / np.sqrt(weight[0].size)
                weight.set_data(Tensor((scale * rng.standard_normal(weight.shape)).astype(np.float32)))

    def construct(self, x):
        x = self.flat(self.leaky(self.norm(self.conv(x))))
        x = self.tanh(self.fc2(self.gelu(self.fc1(x))))
        return self.head(self.relu(self.fc3(x)))


def batch(step: int) -> tuple[np.ndarray, np.ndarray]:
    """Images [8, 2, 4, 4] and their classes [8]."""
    rng = np.random.default_rng(100 + step)
    return rng.standard_normal((8, 2, 4, 4)).astype(np.float32), rng.integers(0, 3, 8).astype(np.int32)


def as_it_is(step: int, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Batches without a fault."""
    return x, y


@dataclass
class Training:
    """A training as a fault changes it: `data` is (step, x, y) -> (x, y), `between` comes before a step;
    `build` makes the network of the arguments `net`, `optimizer` takes Momentum's place.
    """

    net: dict[str, Any] = field(default_factory=dict)
    build: Callable[..., nn.Cell] = Net
    batch: Callable[[int], tuple[np.ndarray, np.ndarray]] = batch
    optimizer: Callable[[list[ms.Parameter]], nn.Cell] | None = None
    mode: int = ms.GRAPH_MODE
    change: Callable[[nn.Cell], None] = lambda net: None
    data: Callable[[int, np.ndarray, np.ndarray], tuple] = as_it_is
    between: Callable[[int, nn.Cell], None] = lambda step, net: None
    learning_rate: float = 0.02
    momentum: float = 0.9
    frozen: str = ""
    loss: Callable[[], nn.Cell] = lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    steps: int = STEPS

    def run(self, folder: Path, **fields: Any) -> Path:
        """Train and dump all steps."""
        ms.set_context(mode=self.mode)
        observing.set_iteration(0)
        net = self.build(**self.net)
        self.change(net)
        trained = [p for p in net.trainable_params() if not self.frozen or self.frozen not in p.name]
        optimizer = (
            self.optimizer(trained)
            if self.optimizer
            else nn.Momentum(trained, self.learning_rate, self.momentum)
        )
        step = nn.TrainOneStepCell(nn.WithLossCell(net, self.loss()), optimizer)
        step.set_train()
        given = [self.batch(number) for number in range(self.steps)]
        changed = [self.data(number, *batch) for number, batch in enumerate(given)]
        # A shift of labels that are all alike, for instance, would plant nothing.
        is_other = [not all(map(np.array_equal, *pair)) for pair in zip(given, changed, strict=True)]
        assert any(is_other) or self.data is as_it_is, "no batch has the fault that was to be planted in it"
        with debug.dump({"path": str(folder), **fields}):
            for number, batch in enumerate(changed):
                self.between(number, net)
                step(*map(Tensor, batch))
        return folder


def _short(name: str) -> str:
    return re.sub(r"network-WithLossCell/|_backbone-\w+/", "", name)


def diverges(training: Training, reference: Training | None = None, **fields: Any) -> Find:
    """`mycelia-precision vc`: the first operator with inputs as in the reference and another output."""

    def find(folder: Path) -> str:
        right = (reference or Training()).run(folder / "right", **fields)
        return first_divergence(training.run(folder / "left", **fields), right)

    return find


def first_divergence(left: Path, right: Path) -> str:
    comparison = Comparison(Dump(left), Dump(right), threshold=EXACT)
    for _ in comparison.rows():
        pass
    found = comparison.divergence
    if found is None:
        return ""
    read = f" input {found.slot}" if found.io == "input" else ""
    return f"{found.iteration} {_short(found.operator)}{read}"


def not_finite(training: Training) -> Find:
    """`mycelia-debug`: where the first value that is not finite was born."""
    return lambda folder: first_not_finite(training.run(folder))


def first_not_finite(folder: Path) -> str:
    found = debug.DumpAnalyzer(folder).trace_nonfinite()
    first = next((row for row in found if row["born"] is not False), None)
    return "" if first is None else f"{first['iteration']} {_short(first['op_full_name'])} {first['kind']}"


def hits(training: Training, name: str, which: str = "", **bounds: float) -> Find:
    """A watch condition on what it is for, where the name contains `which`: all that hit, in order."""

    def find(folder: Path) -> str:
        dump, wanted = debug.DumpAnalyzer(training.run(folder)), condition(name)
        found = []
        for tensor in sorted(dump.select_tensors(which), key=lambda t: (t.iteration, t.record.stamp)):
            node = tensor.node
            if tensor.io != "output" or not suits(wanted, node.kind, node.name):
                continue
            if check_tensor(tensor, wanted, bounds).hit:
                found.append(f"{tensor.iteration} {_short(node.name)}")
        return "; ".join(dict.fromkeys(found))

    return find


def checked_while_fused(training: Training) -> Find:
    """`check_overflow`: the first instruction of the compiled program with a value that is not finite."""

    def find(folder: Path) -> str:
        told: list[str] = []
        watched = overflow.Check(lambda found: told.append(_named(found[0].operator)))
        watched.start()
        try:
            training.run(folder, iteration="1000")  # no step: programs stay fused
        finally:
            watched.stop()
        return told[0] if told else ""

    return find


def _named(operator: observing.Operator) -> str:
    parts = ", ".join(part.type for part in operator.parts)
    return _short(operator.name) + (f" of {parts}" if parts else "")


def lost_all_reduce(step: int, rank: int) -> Find:
    """Two ranks that average their gradients on a device that loses a rank once: what their weights say."""

    def find(folder: Path) -> str:
        from mycelia_backend_ascend_sim import collectives, faults

        nets = [Net(), Net()]
        images = [[batch(2 * now + of) for of in range(2)] for now in range(STEPS)]
        ms.set_context(mode=ms.GRAPH_MODE)
        observing.set_iteration(0)
        with faults.inject(faults.DroppedAllReduce(rank=rank, step=step)) as injected:
            for injected.step, batches in enumerate(images):
                first = observing.iteration()
                gradients = []
                for of, (net, (x, y)) in enumerate(zip(nets, batches, strict=True)):
                    observing.set_iteration(first)
                    with debug.dump({"path": str(folder / str(of)), "eager": False}):
                        net(Tensor(images[0][0][0]))  # the same on both
                    loss = nn.WithLossCell(
                        net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
                    )
                    gradients.append(ms.grad(loss, None, net.trainable_params())(Tensor(x), Tensor(y)))
                    observing.set_iteration(first + 1)
                for place, of_weight in enumerate(zip(*gradients, strict=True)):
                    for net, total in zip(nets, collectives.all_reduce([g.asnumpy() for g in of_weight])):
                        weight = net.trainable_params()[place]
                        weight.set_data(weight - Tensor(0.01 * total))
        return first_divergence(folder / "0", folder / "1")

    return find


def on_device(fault: Any, first: Callable[[Path, Path], str] | None = None, **changes: Any) -> Find:
    """A fault of a simulated device: its run against one without, or what `first` says of the two dumps."""

    def find(folder: Path) -> str:
        from mycelia_backend_ascend_sim import faults

        before = ms.get_context("device_target")
        ms.set_context(device_target="Ascend")
        try:
            right = Training(**changes).run(folder / "right")
            with faults.inject(fault) as planted:

                def count(step: int, net: nn.Cell) -> None:
                    planted.step = step

                left = Training(between=count, **changes).run(folder / "left")
        finally:
            ms.set_context(device_target=before)
        assert planted.hits, "the device never met the operator"
        return (first or first_divergence)(left, right)

    return find
