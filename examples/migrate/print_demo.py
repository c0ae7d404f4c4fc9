"""Print in graph mode: a tensor and a text, in the order of the code."""

import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from mindspore.ops import operations as P

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")


class PrintDemo(nn.Cell):
    """Adds, and tells what."""

    def __init__(self):
        super(PrintDemo, self).__init__()
        self.print = P.Print()

    def construct(self, x, y):
        self.print("x and y:", x, y)
        total = x + y
        self.print("total:", total)
        return total


if __name__ == "__main__":
    x = Tensor(np.array([[1, 2, 3], [4, 5, 6]], np.int32))
    y = Tensor(np.array([0.5, 0.25, -1.0], np.float32))
    print(PrintDemo()(x, y).shape)
