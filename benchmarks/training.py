"""Training steps of common networks, compiled: time of a step, of the first call, and peak memory."""

import peers
from models_data import TRAINING_GFLOP, training_batch
from peers import Case, Table

STEP_BARS = (0.5, 0.77, 0.83, 0.74, 0.74, 0.71)
FIRST_BARS = (0.25,) * 6


def run_mycelia(threads):
    import models

    models.ms.set_context(runtime_num_threads=threads)
    models.ms.set_seed(0)
    return lambda case: models.training_step(case, *training_batch(case))


def run_torch(threads):
    import models_torch

    models_torch.torch.set_num_threads(threads)
    return lambda case: models_torch.training_step(case, *training_batch(case))


def run_torch_compile(threads):
    import models_torch
    from torch._inductor import config

    models_torch.torch.set_num_threads(threads)
    config.compile_threads = 1  # compilers as children, whose CPU time counts, not as a pool
    return lambda case: models_torch.training_step(case, *training_batch(case), compiled=True)


def run_torch_compile_anew(threads):
    from torch._inductor import config

    config.force_disable_caches = True  # else what an earlier run compiled is loaded
    return run_torch_compile(threads)


def run_jax(threads):
    import models_jax

    return lambda case: models_jax.training_step(case, *training_batch(case))


def run_mindspore(threads):
    import mindspore
    import models

    mindspore.set_context(mode=mindspore.GRAPH_MODE, runtime_num_threads=threads)
    return lambda case: models.training_step(case, *training_batch(case))


SIDES = {
    "mycelia": run_mycelia,
    "torch": run_torch,
    "torch.compile": run_torch_compile,
    "jax": run_jax,
    "MindSpore": run_mindspore,
}
TABLES = [
    Table(
        "Training step, compiled",
        "CPU time of one step on one core, median; torch is eager; ratio to the best of torch and jax.",
        [
            Case(name, "ms", (bar, 0.2 if name.startswith("LeNet") else 0.5), gflop * 1e9)
            for (name, gflop), bar in zip(TRAINING_GFLOP.items(), STEP_BARS)
        ],
        SIDES,
        rate="flops",
        groups={"ratio": ("torch", "torch.compile", "jax"), "to MindSpore": ("MindSpore",)},
    ),
    Table(
        "First call of a training step",
        "CPU seconds of the first call in a fresh process: capture, compiling and the step itself, with the "
        "compilers that the peer starts. Bar for LeNet besides: 0.25 s.",
        [Case(name, "s", (bar,)) for name, bar in zip(TRAINING_GFLOP, FIRST_BARS)],
        {side: SIDES[side] for side in SIDES if side != "torch"} | {"torch.compile": run_torch_compile_anew},
        do="first",
        rounds=2,
    ),
    Table(
        "Peak memory of training",
        "High-water mark of resident memory of a fresh process after four steps; in parentheses what it was "
        "when the framework was imported, before there was a network.",
        [Case(name, "MB", (1.0,)) for name in TRAINING_GFLOP],
        {"mycelia": run_mycelia, "torch": run_torch},
        do="memory",
        rounds=2,
    ),
]

if __name__ == "__main__":
    peers.main(__file__, TABLES)
