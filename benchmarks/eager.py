"""What an eager op costs: dispatch, recording, backward, tensors from NumPy; and large results in a loop."""

import numpy as np
import peers

CASES = {
    "add of two 4-element tensors": ("ns", 0.15),
    "the same, x + y": ("ns", None),
    "add with gradient recorded": ("ns", 0.15),
    "chain of 10 ops, per op": ("ns", None),
    "chain of 10 ops, recorded, per op": ("ns", None),
    "chain of 10 ops, forward + backward": ("us", 0.3),
    "Tensor from a 4-element array, copied": ("ns", 0.15),
    "Tensor from a 4-element array, shared": ("ns", 0.5),
    "Tensor from a 256 x 256 array, copied": ("us", None),
    "to a 4-element array": ("ns", None),
    "exp, 64 MB": ("ms", 0.25),
    "softmax, 64 MB": ("ms", 0.25),
    "layer norm, 64 MB": ("ms", 0.25),
    "transpose, 64 MB": ("ms", 0.25),
}


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


def measure(add, x, y, xg, record, chain_of, backward, copy, share, back, large) -> dict:
    """The cases in the order of CASES, by the operations given."""
    small, big = np.array([1, 2, 3, 4], np.float32), np.ones((256, 256), np.float32)
    names = iter(CASES)

    def add_loop(n):
        for _ in range(n):
            add(x, y)

    def operator_loop(n):
        for _ in range(n):
            x + y

    def recorded_loop(n):
        for _ in range(n):
            add(xg, y)

    def chain_loop(n):
        for _ in range(n):
            chain_of(x, y)

    def chain_recorded_loop(n):
        for _ in range(n):
            chain_of(xg, y)

    results = {
        next(names): peers.loop_time_of(add_loop, 50000),
        next(names): peers.loop_time_of(operator_loop, 50000),
    }
    with record():
        results[next(names)] = peers.loop_time_of(recorded_loop, 30000)
    results[next(names)] = peers.loop_time_of(chain_loop, 3000) / 10
    with record():
        results[next(names)] = peers.loop_time_of(chain_recorded_loop, 3000) / 10
    results[next(names)] = peers.cpu_time_of(backward, 1000)
    results[next(names)] = peers.cpu_time_of(lambda: copy(small), 20000)
    results[next(names)] = peers.cpu_time_of(lambda: share(small), 20000)
    results[next(names)] = peers.cpu_time_of(lambda: copy(big), 1000)
    results[next(names)] = peers.cpu_time_of(back, 20000)
    for function in large:
        results[next(names)] = peers.cpu_time_of(function, 3, 5)
    return results


def run_mycelia(threads: int) -> dict:
    import mycelia as ms
    from mycelia import ops
    from mycelia.autodiff.reverse import Recording

    ms.set_context(runtime_num_threads=threads)
    x, y = ms.Tensor(np.array([1, 2, 3, 4], np.float32)), ms.Tensor(np.array([4, 3, 2, 1], np.float32))
    one_chain = lambda u, v: chain(ops.tanh, ops.relu, ops.exp, ops.sigmoid, ops.sum, u, v)
    gradient = ms.grad(one_chain, 0)
    watched, _ = Recording().watch(x)
    rows = ms.Tensor(np.random.default_rng(0).normal(size=(16384, 1024)).astype(np.float32))
    gamma, beta = ops.ones((1024,), ms.float32), ops.zeros((1024,), ms.float32)
    large = [
        lambda: ops.exp(rows), lambda: ops.softmax(rows, -1),
        lambda: ops.layer_norm(rows, (1024,), gamma, beta),
        lambda: ops.transpose(rows, (1, 0)),
    ]  # fmt: skip
    return measure(
        ops.add,
        x,
        y,
        watched,
        Recording,
        one_chain,
        lambda: gradient(x, y),
        ms.Tensor,
        ms.Tensor.from_numpy,
        x.asnumpy,
        large,
    )


def run_torch(threads: int) -> dict:
    from contextlib import nullcontext

    import torch

    torch.set_num_threads(threads)
    x, y = torch.tensor([1.0, 2, 3, 4]), torch.tensor([4.0, 3, 2, 1])
    xg = x.clone().requires_grad_()
    one_chain = lambda u, v: chain(torch.tanh, torch.relu, torch.exp, torch.sigmoid, torch.sum, u, v)
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(16384, 1024)).astype(np.float32))
    gamma, beta = torch.ones(1024), torch.zeros(1024)
    large = [
        lambda: torch.exp(rows), lambda: torch.softmax(rows, -1),
        lambda: torch.nn.functional.layer_norm(rows, (1024,), gamma, beta), lambda: rows.t().contiguous(),
    ]  # fmt: skip
    backward = lambda: torch.autograd.grad(one_chain(xg, y), xg)
    return measure(
        torch.add, x, y, xg, nullcontext, one_chain, backward, torch.tensor, torch.from_numpy, x.numpy, large
    )


if __name__ == "__main__":
    peers.main(__file__, CASES, {"mycelia": run_mycelia, "torch": run_torch}, "Eager ops",
               "CPU time at one thread on one core, median; ratio = Mycelia / torch round by round, "
               "lower is better.")  # fmt: skip
