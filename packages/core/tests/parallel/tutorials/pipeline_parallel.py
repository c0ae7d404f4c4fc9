"""Two stages of a pipeline, each of which may be several ranks; the step is compiled."""

import mindspore as ms
from data import create_dataset
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.parallel.auto_parallel import AutoParallel
from mindspore.parallel.nn import Pipeline, PipelineGradReducer

ms.set_context(mode=ms.GRAPH_MODE)
init()
ms.set_seed(1)
STAGES = min(2, get_group_size())


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.layer1 = nn.Dense(28 * 28, 64)
        self.relu1 = nn.ReLU()
        self.layer2 = nn.Dense(64, 64)
        self.relu2 = nn.ReLU()
        self.layer3 = nn.Dense(64, 10)

    def construct(self, x):
        x = self.flatten(x)
        x = self.relu1(self.layer1(x))
        x = self.relu2(self.layer2(x))
        return self.layer3(x)


net = Network()
net_with_loss = Pipeline(
    nn.WithLossCell(net, nn.CrossEntropyLoss()), 4,
    stage_config={
        "_backbone.flatten": 0, "_backbone.layer1": 0, "_backbone.relu1": 0, "_backbone.layer2": STAGES - 1,
        "_backbone.relu2": STAGES - 1, "_backbone.layer3": STAGES - 1,
    },
)  # fmt: skip
net_with_loss.set_train()
optimizer = nn.SGD(net.trainable_params(), 1e-2)
pp_grad_reducer = PipelineGradReducer(optimizer.parameters)


def forward_fn(inputs, target):
    return net_with_loss(inputs, target)


grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)


def train_one_step(inputs, target):
    loss, grads = grad_fn(inputs, target)
    grads = pp_grad_reducer(grads)
    optimizer(grads)
    return loss


parallel_net = AutoParallel(train_one_step, parallel_mode="semi_auto")
if STAGES > 1:
    parallel_net.pipeline(stages=STAGES, scheduler="1f1b")
    parallel_net.enable_gradients_mean()

width = get_group_size() // STAGES
data_set = create_dataset(32 // width, num_shards=width, shard_id=get_rank() % width)
for i, (image, label) in enumerate(data_set):
    loss = parallel_net(image, label)
    print(f"epoch: 0, step: {i}, loss is {float(loss):.7f}")
