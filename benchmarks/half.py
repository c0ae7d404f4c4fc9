"""float16 and bfloat16 against float32, eager and compiled: networks, single ops and steps of optimizers.

There is no peer: the bars are ratios to Mycelia itself.
"""

import sys
import time

import numpy as np
import peers
import sizes

import mycelia as ms
from mycelia import Tensor, nn, ops

RANDOM = np.random.default_rng(0)
ROUNDS, BAR = 15, "<= 1.3"


def tensor(*shape):
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


class Images(nn.Cell):
    """Convolution, batch normalization, activation, twice, and a classifier."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 32, 3), nn.Conv2d(32, 64, 3)
        self.norms = nn.CellList([nn.BatchNorm2d(32), nn.BatchNorm2d(64)])
        self.pool, self.dense = nn.MaxPool2d(2, 2), nn.Dense(64, 10)

    def construct(self, x):
        x = self.pool(ops.relu(self.norms[0](self.first(x))))
        x = ops.relu(self.norms[1](self.second(x)))
        return self.dense(x.mean((2, 3)))


def attention(q, k, v):
    return ops.matmul(ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) * 0.125), v)


def elementwise(x, y):
    return ops.tanh((x + y) * y - x) * 0.5


CASES = {
    "dense 512 -> 512, batch 128": (lambda: nn.Dense(512, 512), [(128, 512)]),
    "dense layers 256, 1024, 256, batch 64": (
        lambda: nn.SequentialCell(nn.Dense(256, 1024), nn.ReLU(), nn.Dense(1024, 256)),
        [(64, 256)],
    ),
    "convolution 3 x 3, 32 channels, 32 x 32": (lambda: nn.Conv2d(32, 32, 3), [(4, 32, 32, 32)]),
    "images: convolutions, norms, pool": (Images, [(4, 3, 32, 32)]),
    "batch norm, 32 channels": (lambda: nn.BatchNorm2d(32), [(8, 32, 32, 32)]),
    "layer norm 256": (lambda: nn.LayerNorm((256,)), [(512, 256)]),
    "transformer layer 256, length 64": (sizes.Block, [(1, 64, 256)]),
    "attention, 8 heads, 128 x 64": (lambda: attention, [(1, 8, 128, 64)] * 3),
    "softmax 512 x 512": (lambda: lambda x: ops.softmax(x), [(512, 512)]),
    "elementwise chain 512 x 512": (lambda: elementwise, [(512, 512)] * 2),
    "sum of rows 512 x 512": (lambda: lambda x: x.sum(-1), [(512, 512)]),
}


#: one op each, bound by memory: name -> function, shapes
OPS = {
    "add": (ops.add, [(512, 512)] * 2),
    "multiply by a row": (ops.mul, [(512, 512), (512,)]),
    "relu": (ops.relu, [(512, 512)]),
    "exp": (ops.exp, [(512, 512)]),
    "gelu": (ops.gelu, [(512, 512)]),
    "less": (ops.less, [(512, 512)] * 2),
    "isnan": (ops.isnan, [(512, 512)]),
    "where": (lambda x, y: ops.where(x > 0, x, y), [(512, 512)] * 2),
    "sum of rows": (lambda x: x.sum(-1), [(512, 512)]),
    "sum of columns": (lambda x: x.sum(0), [(512, 512)]),
    "sum": (lambda x: x.sum(), [(512, 512)]),
    "max of columns": (lambda x: x.max(0), [(512, 512)]),
    "cumsum of columns": (lambda x: ops.cumsum(x, 0), [(512, 512)]),
    "softmax of columns": (lambda x: ops.softmax(x, 0), [(512, 512)]),
    "log_softmax": (lambda x: ops.log_softmax(x, -1), [(512, 512)]),
    "dropout": (lambda x: ops.dropout(x, 0.5), [(512, 512)]),
    "transpose": (lambda x: x.transpose(1, 0), [(512, 512)]),
    "copy": (lambda x: x.copy(), [(512, 512)]),
    "to int32": (lambda x: x.astype(ms.int32), [(512, 512)]),
    "add 4096 x 4096": (ops.add, [(4096, 4096)] * 2),
    "sum 4096 x 4096": (lambda x: x.sum(), [(4096, 4096)]),
    "softmax 4096 x 4096": (lambda x: ops.softmax(x, -1), [(4096, 4096)]),
    "add 32 x 32": (ops.add, [(32, 32)] * 2),
    "sum 32 x 32": (lambda x: x.sum(), [(32, 32)]),
}

#: a step of one Parameter and its gradient
OPTIMIZERS = {
    "SGD": lambda p: nn.SGD(p, 1e-3),
    "SGD, momentum": lambda p: nn.SGD(p, 1e-3, momentum=0.9),
    "Momentum": lambda p: nn.Momentum(p, 1e-3, 0.9),
    "Adam": lambda p: nn.Adam(p, 1e-3),
    "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, 1e-3),
    "AdamW": lambda p: ms.experimental.optim.AdamW(p, 1e-3),
    "Lamb": lambda p: nn.Lamb(p, 1e-3),
    "RMSProp": lambda p: nn.RMSProp(p, 1e-3),
    "Adagrad": lambda p: nn.Adagrad(p, learning_rate=1e-3),
    "Adadelta": lambda p: nn.Adadelta(p, 1e-3),
    "AdaMax": lambda p: nn.AdaMax(p, 1e-3),
    "FTRL": lambda p: nn.FTRL(p),
    "ProximalAdagrad": lambda p: nn.ProximalAdagrad(p),
    "Rprop": lambda p: nn.Rprop(p, 1e-3),
}


def step_of(make, dtype):
    """(a function of the gradient that takes a step, the gradient)."""
    optimizer = make([ms.Parameter((tensor(512, 512) * 0.1).astype(dtype), name="weight")])
    return lambda gradient: optimizer((gradient,)), [(tensor(512, 512) * 0.1).astype(dtype)]


def functions(make, dtype):
    """(inference, gradients) of the case in `dtype`."""
    run = make()
    parameters = []
    if isinstance(run, nn.Cell):
        for parameter in run.get_parameters():
            parameter.set_dtype(dtype)
        parameters = run.trainable_params()
    gradient = ms.value_and_grad(
        lambda *a: run(*a).astype(ms.float32).sum(), None if parameters else 0, parameters or None
    )
    return (lambda *a: run(*a)), gradient


def ratios(wide, narrows) -> list[float]:
    """Milliseconds of `wide`, then the times of the others in parts of it, taken in turn."""
    found = [[] for _ in range(1 + len(narrows))]
    for position in range(ROUNDS + 2):
        for times, (function, args) in zip(found, (wide, *narrows)):
            start = time.process_time()
            for _ in range(3):
                function(*args)
            if position > 1:
                times.append((time.process_time() - start) / 3)
    wide_time, *others = (min(times) for times in found)
    return [wide_time * 1e3, *(t / wide_time for t in others)]


def main() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE, runtime_num_threads=1)
    rows = []
    types = (ms.float32, ms.float16, ms.bfloat16)

    def add_row(name, made):
        """`made`: (function, arguments) for each of the types."""
        row = [name]
        for wrap in (lambda f: f, ms.jit):
            wide, *narrows = [(wrap(function), args) for function, args in made]
            milliseconds, half, brain = ratios(wide, narrows)
            row += [f"{milliseconds:.2g} ms", f"{half:.2f}", f"{brain:.2f}"]
        rows.append([*row, BAR])

    for name, (make, shapes) in CASES.items():
        inputs = [tensor(*shape) for shape in shapes]
        made = [(functions(make, dtype), [x.astype(dtype) for x in inputs]) for dtype in types]
        for side, title in enumerate(("inference", "gradients")):
            add_row(f"{name}, {title}", [(pair[side], args) for pair, args in made])
    for name, (function, shapes) in OPS.items():
        inputs = [tensor(*shape) for shape in shapes]
        # a function of its own for each type, so that compiling one does not count another's sizes
        made = [((lambda *a, f=function: f(*a)), [x.astype(dtype) for x in inputs]) for dtype in types]
        add_row(f"op: {name}", made)
    for name, make in OPTIMIZERS.items():
        add_row(f"step: {name}", [step_of(make, dtype) for dtype in types])
    peers.report(
        "16-bit floats",
        rows,
        f"CPU time at one thread, best of {ROUNDS}; ratios = the type / float32. {sizes.processor()}.",
        ["case", "float32", "float16", "bfloat16", "float32, compiled", "float16", "bfloat16", "bar"],
        write="--no-write" not in sys.argv,
    )


if __name__ == "__main__":
    main()
