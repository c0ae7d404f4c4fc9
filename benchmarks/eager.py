"""What an eager op costs: dispatch, recording, backward, tensors from NumPy; large results; steps."""

from contextlib import nullcontext

import numpy as np
import peers
from models_data import training_batch
from peers import Case, Loop, Table

ROWS = (16384, 1024)  # 64 MB
SMALL = np.array([1, 2, 3, 4], np.float32)
BIG = np.ones((256, 256), np.float32)
CASES = [
    Case("add of two 4-element tensors", "ns", (0.15,)),
    Case("the same, x + y", "ns"),
    Case("add with gradient recorded", "ns", (0.15,)),
    Case("chain of 10 ops, per op", "ns"),
    Case("chain of 10 ops, recorded, per op", "ns"),
    Case("chain of 10 ops, forward + backward", "us", (0.3,)),
    Case("Tensor from a 4-element array, copied", "ns", (0.15,)),
    Case("Tensor from a 4-element array, shared", "ns", (0.5,)),
    Case("Tensor from a 256 x 256 array, copied", "us"),
    Case("to a 4-element array", "ns"),
    Case("exp, 64 MB", "ms", (0.25,)),
    Case("softmax, 64 MB", "ms", (0.25,)),
    Case("layer norm, 64 MB", "ms", (0.25,)),
    Case("transpose, 64 MB", "ms", (0.25,)),
]
STEPS = {"LeNet b32": 0.6, "MLP b64": None, "LSTM b32 t64": None, "BERT-mini b8 t128": None,
         "ResNet-18 224 b4": None}  # fmt: skip


def chain(tanh, relu, exp, sigmoid, total, u, v):
    t = u + v
    t = t * u
    t = tanh(t)
    t = t - v
    t = relu(t)
    t = t * 0.5
    t = exp(t)
    t = t + u
    t = sigmoid(t)
    return total(t)


def repeated(call, *arguments):
    """A loop of calls, to leave the cost of a further call around each out."""

    def loop(count):
        for _ in range(count):
            call(*arguments)

    return loop


def operator(x, y):
    def loop(count):
        for _ in range(count):
            x + y

    return loop


def recording(record, loop):
    def inside(count):
        with record():
            loop(count)

    return inside


def run_mycelia(threads):
    import mycelia as ms
    from mycelia import ops
    from mycelia.engine.autodiff.reverse import Recording

    ms.set_context(runtime_num_threads=threads)
    x, y = ms.Tensor(SMALL), ms.Tensor(SMALL[::-1].copy())

    def one(u, v):
        return chain(ops.tanh, ops.relu, ops.exp, ops.sigmoid, ops.sum, u, v)

    gradient = ms.grad(one, 0)
    watched, _ = Recording().watch(x)
    rows = ms.Tensor(np.random.default_rng(0).normal(size=ROWS).astype(np.float32))
    gamma, beta = ops.ones(ROWS[1:], ms.float32), ops.zeros(ROWS[1:], ms.float32)
    large = (
        lambda: ops.exp(rows), lambda: ops.softmax(rows, -1),
        lambda: ops.layer_norm(rows, ROWS[1:], gamma, beta), lambda: ops.transpose(rows, (1, 0)),
    )  # fmt: skip
    backward = repeated(gradient, x, y)
    arrays = (ms.Tensor, ms.Tensor.from_numpy, x.asnumpy)
    return runs(ops.add, x, y, watched, Recording, one, backward, arrays, large)


def run_torch(threads):
    import torch

    torch.set_num_threads(threads)
    x, y = torch.from_numpy(SMALL), torch.from_numpy(SMALL[::-1].copy())
    watched = x.clone().requires_grad_()

    def one(u, v):
        return chain(torch.tanh, torch.relu, torch.exp, torch.sigmoid, torch.sum, u, v)

    rows = torch.from_numpy(np.random.default_rng(0).normal(size=ROWS).astype(np.float32))
    gamma, beta = torch.ones(ROWS[1]), torch.zeros(ROWS[1])
    # Memory for the results is at hand: Mycelia keeps freed blocks, torch's allocator gives 64 MB back.
    out, turned = torch.empty_like(rows), torch.empty(ROWS[::-1])
    epsilon, mean, scale = 1e-7, torch.empty(ROWS[0], 1), torch.empty(ROWS[0], 1)
    normalize = torch.ops.aten.native_layer_norm.out
    large = (
        lambda: torch.exp(rows, out=out), lambda: torch.softmax(rows, -1, out=out),
        lambda: normalize(rows, ROWS[1:], gamma, beta, epsilon, out0=out, out1=mean, out2=scale),
        lambda: turned.copy_(rows.t()),
    )  # fmt: skip
    backward = repeated(lambda: torch.autograd.grad(one(watched, y), watched))
    arrays = (torch.tensor, torch.from_numpy, x.numpy)
    return runs(torch.add, x, y, watched, nullcontext, one, backward, arrays, large)


def runs(add, x, y, watched, record, one, backward, arrays, large):
    """The cases in the order of CASES, by the operations given."""
    copy, share, back = arrays
    found = [
        Loop(repeated(add, x, y), 50000),
        Loop(operator(x, y), 50000),
        Loop(recording(record, repeated(add, watched, y)), 30000),
        Loop(repeated(one, x, y), 3000, 10),
        Loop(recording(record, repeated(one, watched, y)), 3000, 10),
        Loop(backward, 1000),
        Loop(repeated(copy, SMALL), 20000),
        Loop(repeated(share, SMALL), 20000),
        Loop(repeated(copy, BIG), 1000),
        Loop(repeated(back), 20000),
        *large,
    ]
    return {case.name: run for case, run in zip(CASES, found, strict=True)}.get


def steps_mycelia(threads):
    import models

    models.ms.set_context(runtime_num_threads=threads)
    return lambda case: models.training_step(case, *training_batch(case), compiled=False)


def steps_torch(threads):
    import models_torch

    models_torch.torch.set_num_threads(threads)
    return lambda case: models_torch.training_step(case, *training_batch(case))


NOTE = (
    "CPU time at one thread on one core, median; ratio = Mycelia / torch round by round, lower is better. "
    "torch writes the 64 MB results into memory that it is given."
)
TABLES = [
    Table("Eager ops", NOTE, CASES, {"mycelia": run_mycelia, "torch": run_torch}),
    Table(
        "Training step, eager",
        NOTE.rpartition(" torch")[0],
        [Case(name, "ms", (bar,)) for name, bar in STEPS.items()],
        {"mycelia": steps_mycelia, "torch": steps_torch},
    ),
]

if __name__ == "__main__":
    peers.main(__file__, TABLES)
