"""A network with a loop whose length its input decides, and its gradient."""

import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Parameter, Tensor, context, ops
from mindspore.common import dtype as mstype

context.set_context(mode=context.GRAPH_MODE)


class Grow(nn.Cell):
    """Multiplies by a weight until the sum of squares reaches a limit. Returns value and rounds."""

    def __init__(self, limit):
        super().__init__()
        self.limit = limit
        self.weight = Parameter(Tensor(np.array([2.0, 1.5], np.float32)), name="weight")

    def construct(self, x):
        rounds = ops.zeros((), mstype.int32)
        while ops.reduce_sum(x * x) < self.limit:
            x = x * self.weight
            if x.max() > 4.0:
                x = x - 0.5
            rounds = rounds + 1
        return x, rounds


class Total(nn.Cell):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def construct(self, x):
        value, _ = self.network(x)
        return value.sum()


if __name__ == "__main__":
    net = Grow(100.0)
    for start in ([1.0, 1.0], [0.01, 3.0], [20.0, 1.0]):
        value, rounds = net(Tensor(np.array(start, np.float32)))
        print(start, "->", value, "after", int(rounds.asnumpy()))
    gradient = ms.grad(Total(net), None, net.trainable_params())(Tensor(np.array([1.0, 1.0], np.float32)))
    print("gradient of the weight:", gradient)
