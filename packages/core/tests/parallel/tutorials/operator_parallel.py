"""Operators cut by strategies; each rank saves its part, which others may load by the strategy file."""

import os
import sys

import mindspore as ms
from data import create_dataset
from mindspore import nn, ops
from mindspore.common.initializer import initializer
from mindspore.communication import get_group_size, get_rank, init
from mindspore.nn.utils import no_init_parameters
from mindspore.parallel.auto_parallel import AutoParallel

ms.set_context(mode=ms.GRAPH_MODE)
init()
ms.set_seed(1)
folder, mode = sys.argv[1:3]


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten = ops.Flatten()
        self.fc1_weight = ms.Parameter(initializer("normal", [28 * 28, 32], ms.float32))
        self.fc2_weight = ms.Parameter(initializer("normal", [32, 32], ms.float32))
        self.fc3_weight = ms.Parameter(initializer("normal", [32, 10], ms.float32))
        self.matmul1 = ops.MatMul()
        self.relu1 = ops.ReLU()
        self.matmul2 = ops.MatMul()
        self.relu2 = ops.ReLU()
        self.matmul3 = ops.MatMul()

    def construct(self, x):
        x = self.flatten(x)
        x = self.matmul1(x, self.fc1_weight)
        x = self.relu1(x)
        x = self.matmul2(x, self.fc2_weight)
        x = self.relu2(x)
        return self.matmul3(x, self.fc3_weight)


with no_init_parameters():
    net = Network()
    optimizer = nn.Momentum(net.trainable_params(), 1e-2, 0.9)
net.init_parameters_data()
size = get_group_size()
if size > 1:
    net.matmul1.shard(((size // 2, 2), (2, 1)))
    if mode == "semi_auto":
        net.relu1.shard(((size, 1),))
        net.matmul2.shard(((1, size), (size, 1)))
        net.relu2.shard(((size // 2, 1),))
loss_fn = nn.CrossEntropyLoss()


def forward_fn(data, target):
    logits = net(data)
    loss = loss_fn(logits, target)
    return loss, logits


grad_fn = ms.value_and_grad(forward_fn, None, net.trainable_params(), has_aux=True)


def train_step(inputs, targets):
    (loss_value, _), grads = grad_fn(inputs, targets)
    optimizer(grads)
    return loss_value


step = AutoParallel(train_step, parallel_mode=mode)
step.dataset_strategy("full_batch")
step.save_param_strategy_file(f"{folder}/strategy.ckpt")
if "hsdp" in sys.argv:
    step.hsdp(threshold=0)

for i, (image, label) in enumerate(create_dataset(32)):
    print(f"epoch: 0, step: {i}, loss is {float(step(image, label)):.7f}")
os.makedirs(f"{folder}/rank_{get_rank()}", exist_ok=True)
ms.save_checkpoint(net, f"{folder}/rank_{get_rank()}/checkpoint_{get_rank()}.ckpt", integrated_save=False)
print("cut", sorted(p.name for p in net.get_parameters() if p.sliced))
print("states", [list(p.shape) for p in optimizer.moments])
