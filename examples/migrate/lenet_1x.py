"""LeNet as one wrote it for MindSpore 1.x: primitives, an optimizer of one's own, cells around a step."""

import mindspore.context as context
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor
from mindspore.common import dtype as mstype
from mindspore.common import set_seed
from mindspore.common.initializer import Normal
from mindspore.common.parameter import ParameterTuple
from mindspore.nn.optim.optimizer import Optimizer
from mindspore.nn.wrap.cell_wrapper import WithLossCell
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")


class LeNet(nn.Cell):
    """Two convolutions and three full layers. [N, 1, 32, 32] -> [N, 10]."""

    def __init__(self):
        super(LeNet, self).__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", weight_init=Normal(0.1))
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", weight_init=Normal(0.1))
        self.fc1 = nn.Dense(16 * 5 * 5, 120, Normal(0.05))
        self.fc2 = nn.Dense(120, 84, Normal(0.05))
        self.fc3 = nn.Dense(84, 10, Normal(0.05))
        self.relu = P.ReLU()
        self.pool = P.MaxPool(kernel_size=2, strides=2)
        self.reshape = P.Reshape()
        self.shape = P.Shape()

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.reshape(x, (self.shape(x)[0], -1))
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


class CrossEntropy(nn.Cell):
    """Mean cross entropy of class numbers."""

    def __init__(self):
        super(CrossEntropy, self).__init__()
        self.one_hot = P.OneHot()
        self.cross_entropy = P.SoftmaxCrossEntropyWithLogits()
        self.mean = P.ReduceMean(keep_dims=False)
        self.on, self.off = Tensor(1.0, mstype.float32), Tensor(0.0, mstype.float32)

    def construct(self, logits, label):
        label = self.one_hot(label, F.shape(logits)[1], self.on, self.off)
        loss, _ = self.cross_entropy(logits, label)
        return self.mean(loss, (-1,))


class HeavyBall(Optimizer):
    """Momentum, written out: v = m v + g, w = w - lr v."""

    def __init__(self, params, learning_rate, momentum):
        super(HeavyBall, self).__init__(learning_rate, params)
        self.momentum = Tensor(momentum, mstype.float32)
        self.velocity = self.parameters.clone(prefix="velocity", init="zeros")
        self.add, self.mul, self.assign = P.TensorAdd(), P.Mul(), P.Assign()

    def construct(self, gradients):
        rate = self.get_lr()
        done = True
        for weight, gradient, velocity in zip(self.parameters, gradients, self.velocity):
            moved = self.add(self.mul(velocity, self.momentum), gradient)
            done = F.depend(done, self.assign(velocity, moved))
            done = F.depend(done, self.assign(weight, weight - rate * moved))
        return done


class TrainStep(nn.Cell):
    """Loss, gradients, update."""

    def __init__(self, network, optimizer):
        super(TrainStep, self).__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.weights = ParameterTuple(network.trainable_params())
        self.optimizer = optimizer
        self.grad = C.GradOperation(get_by_list=True)

    def construct(self, data, label):
        loss = self.network(data, label)
        gradients = self.grad(self.network, self.weights)(data, label)
        return F.depend(loss, self.optimizer(gradients))


def digits(count):
    """Images of a bright square, whose place tells its class."""
    random = np.random.RandomState(0)
    label = random.randint(0, 10, count).astype(np.int32)
    image = random.normal(0, 0.1, (count, 1, 32, 32)).astype(np.float32)
    for i, n in enumerate(label):
        row, column = 3 + 13 * (n // 5), 2 + 6 * (n % 5)
        image[i, 0, row : row + 12, column : column + 5] += 1
    return image, label


if __name__ == "__main__":
    set_seed(1)
    image, label = digits(64)
    net = LeNet()
    step = TrainStep(WithLossCell(net, CrossEntropy()), HeavyBall(net.trainable_params(), 0.05, 0.9))
    step.set_train()
    losses = [float(step(Tensor(image), Tensor(label)).asnumpy()) for _ in range(45)]
    print("loss falls:", losses[-1] < 0.5 * losses[0])
    predicted = P.Argmax(axis=1)(net(Tensor(image)))
    print("right:", (predicted.asnumpy() == label).mean() > 0.8)
