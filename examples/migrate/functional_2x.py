"""The functional style of MindSpore 2: a forward function, `value_and_grad`, a step under `jit`."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_seed(7)


class Network(nn.Cell):
    """Two layers. [N, 2] -> [N, 2]."""

    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(nn.Dense(2, 32), nn.Tanh(), nn.Dense(32, 2))

    def construct(self, x):
        return self.layers(x)


model = Network()
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.Adam(model.trainable_params(), learning_rate=0.02)


def forward(data, label):
    logits = model(data)
    return loss_fn(logits, label), logits


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)


@ms.jit
def train_step(data, label):
    (loss, logits), gradients = grad_fn(data, label)
    optimizer(gradients)
    return loss, (logits.argmax(axis=1) == label).astype(ms.float32).mean()


def moons(count):
    """Two arcs that reach into one another."""
    angle = np.linspace(0, np.pi, count // 2)
    upper = np.stack([np.cos(angle), np.sin(angle)], 1)
    points = np.concatenate([upper, [1.0, 0.4] - upper]).astype(np.float32)
    return Tensor(points), Tensor(np.repeat([0, 1], count // 2).astype(np.int32))


if __name__ == "__main__":
    data, label = moons(200)
    model.set_train()
    first, _ = train_step(data, label)
    for _ in range(150):
        loss, accuracy = train_step(data, label)
    print("loss falls:", bool(loss < 0.5 * first))
    print("accuracy above 0.95:", bool(accuracy > 0.95))

    # The same gradients, without a network: of a function, by position, and of a gradient.
    def cube(x):
        return ops.pow(x, 3).sum()

    x = Tensor(np.array([1.0, 2.0, -1.5], np.float32))
    print("first:", ms.grad(cube)(x))
    print("second:", ms.grad(lambda v: ms.grad(cube)(v).sum())(x))
