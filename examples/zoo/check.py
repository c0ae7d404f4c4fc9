"""Checks networks of the zoo: compiled against eager, in inference and in training, outputs and gradients.

usage: check.py [NAME ...]
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from zoo import ZOO

import mycelia as ms


@dataclass(frozen=True)
class Verdict:
    """Largest differences between compiled and eager, relative to the largest number of the eager result (of
    all gradients together: in the Euclidean norm), and CPU seconds of a training step.
    """

    inference: float
    loss: float
    gradients: float
    eager_seconds: float
    compiled_seconds: float


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """max |found - expected| / max |expected|."""
    return float(np.abs(found - expected).max(initial=0) / max(np.abs(expected).max(initial=0), 1e-30))


def seconds_of(step, inputs) -> float:
    start = time.process_time()
    step(*inputs)
    return time.process_time() - start


def check(name: str) -> Verdict:
    """Runs the network `name` of the zoo eagerly and compiled, from the same weights."""
    entry = ZOO[name]
    ms.set_seed(1)
    net = entry.make()
    weights = net.trainable_params()
    statistics = [p for p in net.get_parameters() if not p.requires_grad]
    inputs = tuple(ms.Tensor(a) for a in entry.inputs(np.random.default_rng(0)))

    net.set_train(False)
    expected = net(*inputs).asnumpy()
    inference = difference(ms.jit(net)(*inputs).asnumpy(), expected)

    net.set_train(True)
    gradient = ms.value_and_grad(lambda *x: entry.loss(net(*x), *x), None, weights)
    compiled = ms.jit(lambda *x: gradient(*x))
    before = [p.asnumpy().copy() for p in statistics]
    loss, gradients = gradient(*inputs)
    moved = [p.asnumpy().copy() for p in statistics]
    for parameter, value in zip(statistics, before):
        parameter.set_data(ms.Tensor(value))
    compiled_loss, compiled_gradients = compiled(*inputs)
    for parameter, value in zip(statistics, moved):
        np.testing.assert_allclose(parameter.asnumpy(), value, rtol=1e-4, atol=1e-5, err_msg=parameter.name)
    # As one long vector: some gradients vanish in theory (a bias before a normalization), and a unit whose
    # input is nearly 0 may be on in one run and off in the other.
    there, here = (
        np.concatenate([g.asnumpy().ravel() for g in gs]) for gs in (gradients, compiled_gradients)
    )
    apart = float(np.linalg.norm(here - there) / np.linalg.norm(there))
    return Verdict(
        inference,
        difference(compiled_loss.asnumpy(), loss.asnumpy()),
        apart,
        seconds_of(gradient, inputs),
        seconds_of(compiled, inputs),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(ZOO)}; default: all")
    names = parser.parse_args().names
    unknown = [n for n in names if n not in ZOO]
    if unknown:
        parser.error(f"no network {unknown[0]!r}; there are {', '.join(ZOO)}")
    from rich.console import Console
    from rich.table import Table

    table = Table("network", "inference", "loss", "gradients", "eager", "compiled", title="compiled - eager")
    for name in names or ZOO:
        v = check(name)
        times = (f"{1e3 * s:.1f} ms" for s in (v.eager_seconds, v.compiled_seconds))
        table.add_row(name, *(f"{d:.1e}" for d in (v.inference, v.loss, v.gradients)), *times)
    Console().print(table)


if __name__ == "__main__":
    main()
