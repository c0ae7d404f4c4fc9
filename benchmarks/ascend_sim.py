"""LeNet's training step on the Ascend simulator against the CPU backend: how much patience it takes.

The bar is 50 times the CPU backend's time. CPU time of one thread, the two by turns, best of all turns.
"""

import os
import sys
import time

import numpy as np
import peers

import mycelia as ms
from mycelia import nn
from mycelia.testing.training_contract import LeNet

TURNS, BATCH = 15, 32
CASES = {
    "float32, compiled": ("O0", True),
    "float16, compiled": ("O3", True),
    "float32, eager": ("O0", False),
}


def steps(level: str, compiled: bool):
    """A training step on the present target, without arguments."""
    ms.set_seed(1)
    net = ms.amp.auto_mixed_precision(LeNet(), level)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    gradient = ms.value_and_grad(lambda x, y: loss(net(x).astype(ms.float32), y), None, optimizer.parameters)

    def step(x, y):
        value, gradients = gradient(x, y)
        optimizer(gradients)
        return value

    run = ms.jit(step) if compiled else step
    rng = np.random.default_rng(0)
    x = ms.Tensor(rng.standard_normal((BATCH, 1, 32, 32)).astype(np.float32))
    y = ms.Tensor(rng.integers(0, 10, BATCH).astype(np.int32))
    return lambda: float(run(x, y))


def main() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE, runtime_num_threads=1)
    rows = []
    for name, (level, compiled) in CASES.items():
        made, best = {}, {}
        for target in ("CPU", "Ascend"):
            with ms.config.context(device_target=target):
                made[target] = steps(level, compiled)
                for _ in range(3):
                    made[target]()
        for _ in range(TURNS):
            for target, run in made.items():
                with ms.config.context(device_target=target):
                    run()  # Parameters come to the target
                    start = time.process_time()
                    run()
                    spent = time.process_time() - start
                best[target] = min(best.get(target, spent), spent)
        ratio = best["Ascend"] / best["CPU"]
        times = (f"{best['CPU'] * 1e3:.2f} ms", f"{best['Ascend'] * 1e3:.1f} ms")
        rows.append([name, *times, f"{ratio:.0f}", "<= 50"])
    load = os.getloadavg()[0]
    peers.report(
        "Ascend simulator",
        rows,
        f"CPU time of a training step of LeNet, batch {BATCH}, at one thread, best of {TURNS} by turns; "
        f"ratio = simulator / CPU backend. Load of the machine {load:.0f}.",
        ["step", "CPU backend", "simulator", "ratio", "bar"],
        write="--no-write" not in sys.argv,
    )


if __name__ == "__main__":
    main()
