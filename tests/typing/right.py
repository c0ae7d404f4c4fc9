"""What scripts do; a type checker finds nothing wrong, and the types that `assert_type` names."""

from typing import Any, assert_type

import numpy as np

import mycelia as ms
import mycelia.dataset as ds
import mycelia.dataset.vision as vision
import mycelia.numpy as mnp
from mycelia import Tensor, mint, nn, ops
from mycelia.common.initializer import Normal
from mycelia.common.tensor import Tensor as DeepTensor
from mycelia.mint.nn import functional as F
from mycelia.train import Model
from mycelia.train.callback import LossMonitor


class Net(nn.Cell):
    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 5, pad_mode="valid", weight_init=Normal(0.02))
        self.flatten = nn.Flatten()
        self.dense = nn.Dense(in_channels=6 * 24 * 24, out_channels=classes, has_bias=True)
        self.scale = ms.Parameter(Tensor(np.ones(1), ms.float32), name="scale")

    def construct(self, x: Tensor) -> Tensor:
        return self.dense(self.flatten(ops.relu(self.conv(x)))) * self.scale


x = Tensor([[1.0, 2.0], [3.0, 4.0]])
assert_type(x + 1, Tensor)
assert_type(2.0 * x - x @ x, Tensor)
assert_type(-x[0], Tensor)
assert_type(x > 0, Tensor)
assert_type(x.reshape(4, 1).sum(axis=0), Tensor)
assert_type(x.shape, tuple[int, ...])
assert_type(x.asnumpy().max(), Any)
assert_type(ops.relu(x), Tensor)
assert_type(ops.add(x, 1.5), Tensor)
assert_type(ops.concat((x, x), axis=1), Tensor)
assert_type(ops.ReLU()(x), Tensor)
assert_type(ops.rms_norm(x, x), tuple[Tensor, Tensor])
assert_type(mint.add(x, x, alpha=2), Tensor)
assert_type(F.gelu(x, approximate="tanh"), Tensor)
assert_type(mnp.cumsum(x, axis=0), Tensor)
for row in x:
    assert_type(row, Tensor)
deep: DeepTensor = x

net = Net()
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-3)
other = mint.optim.AdamW(net.trainable_params(), lr=1e-3)
model = Model(net, loss, optimizer, metrics={"accuracy"})
data = ds.NumpySlicesDataset({"image": np.zeros((8, 1, 28, 28), np.float32)}, shuffle=False)
data = data.map([vision.Rescale(1 / 255, 0.0)], input_columns="image").batch(4, drop_remainder=True)
model.train(1, data, callbacks=[LossMonitor(per_print_times=1)], dataset_sink_mode=False)
step = ms.value_and_grad(lambda a: (a * a).sum(), grad_position=0)
ms.set_context(mode=ms.GRAPH_MODE)
ms.save_checkpoint(net, "net.ckpt")
