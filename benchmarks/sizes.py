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
from mycelia import Tensor, nn
from mycelia.testing.networks import Block, Decoder, training_step

RANDOM = np.random.default_rng(0)
NEW, WARM = 200, 16  # sizes that are measured, sizes before them


def tensor(*shape):
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


def layers():
    return nn.SequentialCell(nn.Dense(256, 512), nn.ReLU(), nn.Dense(512, 512), nn.ReLU(), nn.Dense(512, 10))


def training():
    return training_step(layers())


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
