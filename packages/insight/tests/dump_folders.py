"""A dump for tests of the debugger: some steps of training, of which one reads a NaN."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

import mycelia as ms
from mycelia import debug, nn
from mycelia.engine import observing

STEPS = 4
BAD_STEP = 3  # counted from 1, as pages do


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(3, 4)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(4, 2)

    def construct(self, x):
        return self.fc2(self.relu(self.fc1(x)))


def dump_training(folder: Path, ranks: int = 1) -> None:
    """Write a dump of `STEPS` steps into `folder`; in `BAD_STEP` the data have one NaN. Ranks are alike."""
    ms.set_seed(1)
    loss = nn.WithLossCell(Net(), nn.MSELoss())
    step = nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params(), 0.1))
    rng = np.random.default_rng(0)
    with ms.config.context(mode=ms.GRAPH_MODE), debug.dump({"path": str(folder)}):
        observing.set_iteration(0)
        for i in range(STEPS):
            x = rng.standard_normal((5, 3)).astype(np.float32)
            if i == BAD_STEP - 1:
                x[0, 0] = np.nan
            step(ms.Tensor(x), ms.Tensor(np.ones((5, 2), np.float32)))
    for rank in range(1, ranks):
        shutil.copytree(folder / "rank_0", folder / f"rank_{rank}")
