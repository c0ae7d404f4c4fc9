"""A training that two processes share as a user starts it: each has half of every batch, and gradients are
added by AllReduce. In step `--lost` one rank takes its own gradient of the last bias in place of the mean."""

import argparse

import numpy as np

import mycelia as ms
from mycelia import nn, ops
from mycelia.communication import get_rank, init

parser = argparse.ArgumentParser()
parser.add_argument("--eager", action="store_true")
parser.add_argument("--lost", type=int, default=0)
parser.add_argument("--steps", type=int, default=6)
given = parser.parse_args()

init()
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
ms.set_context(mode=ms.PYNATIVE_MODE if given.eager else ms.GRAPH_MODE)
ms.set_seed(1)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Dense(8, 6), nn.Dense(6, 3)

    def construct(self, x):
        return self.last(ops.relu(self.first(x)))


class Step(nn.TrainOneStepCell):
    """A step whose last bias may miss what the other rank found: `own` is 1 then, else 0."""

    def construct(self, x, y, own):
        (_, loss), gradients = self._forward_backward(x, y)
        together = self.grad_reducer(gradients)
        last = gradients[-1] * own + together[-1] * (1 - own)
        self.optimizer((*together[:-1], last))
        return loss


loss = nn.WithLossCell(Net(), nn.CrossEntropyLoss())
step = Step(loss, nn.Momentum(loss.trainable_params(), 0.1, 0.9))
rng = np.random.default_rng(0)
for number in range(1, given.steps + 1):
    x, y = rng.standard_normal((8, 8)).astype(np.float32), rng.integers(0, 3, 8).astype(np.int32)
    mine = slice(get_rank(), None, 2)
    own = ms.Tensor(np.float32(number == given.lost and get_rank() == 1))
    step(ms.Tensor(x[mine]), ms.Tensor(y[mine]), own)
print("trained", flush=True)
