"""The networks of the benches for Mycelia and, since it is the same API, MindSpore.

Attributes are called as in models_torch.py, so that parameters correspond by name.
"""

import numpy as np

try:
    import mycelia as ms
    from mycelia import nn, ops
except ImportError:
    import mindspore as ms
    from mindspore import nn, ops


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="pad", padding=2, has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.fc1, self.fc2, self.fc3 = nn.Dense(400, 120), nn.Dense(120, 84), nn.Dense(84, 10)
        self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.flatten(self.pool(self.relu(self.conv2(x))))
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


class Mlp(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Dense(784, 512), nn.Dense(512, 512), nn.Dense(512, 10)
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


class Lstm(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table, self.lstm = nn.Embedding(10000, 128), nn.LSTM(128, 256, batch_first=True)
        self.head = nn.Dense(256, 2)

    def construct(self, ids):
        y, _ = self.lstm(self.table(ids))
        return self.head(y[:, -1])


def conv_norm(inputs, outputs, kernel, stride=1, group=1):
    conv = nn.Conv2d(inputs, outputs, kernel, stride, "pad", kernel // 2, group=group)
    return nn.SequentialCell(conv, nn.BatchNorm2d(outputs))


class Basic(nn.Cell):
    """Residual block of ResNet-18."""

    expansion = 1

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.first, self.second = conv_norm(inputs, width, 3, stride), conv_norm(width, width, 3)
        self.direct, self.relu = stride == 1 and inputs == width, nn.ReLU()
        if not self.direct:
            self.shortcut = conv_norm(inputs, width, 1, stride)

    def construct(self, x):
        y = self.second(self.relu(self.first(x)))
        if not self.direct:
            x = self.shortcut(x)
        return self.relu(y + x)


class Bottleneck(nn.Cell):
    """Residual block of ResNet-50."""

    expansion = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * 4
        self.first, self.second = conv_norm(inputs, width, 1), conv_norm(width, width, 3, stride)
        self.third = conv_norm(width, outputs, 1)
        self.direct, self.relu = stride == 1 and inputs == outputs, nn.ReLU()
        if not self.direct:
            self.shortcut = conv_norm(inputs, outputs, 1, stride)

    def construct(self, x):
        y = self.third(self.relu(self.second(self.relu(self.first(x)))))
        if not self.direct:
            x = self.shortcut(x)
        return self.relu(y + x)


class ResNet(nn.Cell):
    def __init__(self, block, counts, classes=1000, small=False):
        super().__init__()
        self.small = small
        self.stem = conv_norm(3, 64, 3) if small else conv_norm(3, 64, 7, 2)
        blocks, inputs = [], 64
        for stage, count in enumerate(counts):
            width = 64 << stage
            for i in range(count):
                blocks.append(block(inputs, width, 2 if i == 0 and stage else 1))
                inputs = width * block.expansion
        self.blocks, self.head = nn.SequentialCell(*blocks), nn.Dense(inputs, classes)
        self.relu, self.pool = nn.ReLU(), nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)

    def construct(self, x):
        x = self.relu(self.stem(x))
        if not self.small:
            x = self.pool(x)
        return self.head(self.blocks(x).mean((2, 3)))


class Inverted(nn.Cell):
    """Inverted residual block of MobileNetV2."""

    def __init__(self, inputs, outputs, stride, expansion):
        super().__init__()
        hidden = inputs * expansion
        layers = [conv_norm(inputs, hidden, 1), nn.ReLU6()] if expansion > 1 else []
        layers += [conv_norm(hidden, hidden, 3, stride, hidden), nn.ReLU6(), conv_norm(hidden, outputs, 1)]
        self.layers, self.residual = nn.SequentialCell(*layers), stride == 1 and inputs == outputs

    def construct(self, x):
        y = self.layers(x)
        return x + y if self.residual else y


MOBILE_STAGES = (  # expansion, channels, blocks, stride of the first
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


class MobileNetV2(nn.Cell):
    def __init__(self):
        super().__init__()
        layers, inputs = [conv_norm(3, 32, 3, 2), nn.ReLU6()], 32
        for expansion, outputs, count, stride in MOBILE_STAGES:
            for i in range(count):
                layers.append(Inverted(inputs, outputs, stride if i == 0 else 1, expansion))
                inputs = outputs
        layers += [conv_norm(320, 1280, 1), nn.ReLU6()]
        self.layers, self.head = nn.SequentialCell(*layers), nn.Dense(1280, 1000)

    def construct(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class EncoderLayer(nn.Cell):
    """Post-norm layer of BERT, without dropout and mask."""

    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value, self.project = (nn.Dense(width, width) for _ in range(4))
        self.up, self.down = nn.Dense(width, hidden), nn.Dense(hidden, width)
        self.norm1, self.norm2 = nn.LayerNorm((width,), epsilon=1e-5), nn.LayerNorm((width,), epsilon=1e-5)
        self.gelu, self.softmax = nn.GELU(approximate=False), nn.Softmax(-1)

    def construct(self, x):
        batch, time, width = x.shape
        parts = (batch, time, self.heads, self.size)
        q = self.query(x).reshape(parts).transpose((0, 2, 1, 3))
        k = self.key(x).reshape(parts).transpose((0, 2, 3, 1))
        v = self.value(x).reshape(parts).transpose((0, 2, 1, 3))
        scores = self.softmax(ops.matmul(q, k) * self.size**-0.5)
        y = ops.matmul(scores, v).transpose((0, 2, 1, 3)).reshape((batch, time, width))
        x = self.norm1(x + self.project(y))
        return self.norm2(x + self.down(self.gelu(self.up(x))))


class Bert(nn.Cell):
    def __init__(self, layers=4, width=256, heads=4, hidden=1024, words=30522, time=128):
        super().__init__()
        positions = np.random.default_rng(0).normal(size=(time, width), scale=0.02).astype(np.float32)
        self.table = nn.Embedding(words, width)
        self.positions = ms.Parameter(ms.Tensor(positions), name="positions")
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.layers = nn.SequentialCell(*[EncoderLayer(width, heads, hidden) for _ in range(layers)])
        self.head = nn.Dense(width, 2)

    def construct(self, ids):
        return self.head(self.layers(self.norm(self.table(ids) + self.positions))[:, 0])


TRAINING = {
    "LeNet b32": (LeNet, "momentum"),
    "MLP b64": (Mlp, "momentum"),
    "LSTM b32 t64": (Lstm, "adam"),
    "BERT-mini b8 t128": (Bert, "adam"),
    "ResNet-18 224 b4": (lambda: ResNet(Basic, (2, 2, 2, 2)), "momentum"),
    "ResNet-50 CIFAR b32": (lambda: ResNet(Bottleneck, (3, 4, 6, 3), 10, True), "momentum"),
}
INFERENCE = {
    "LeNet": LeNet,
    "MobileNetV2 224": MobileNetV2,
    "ResNet-50 224": lambda: ResNet(Bottleneck, (3, 4, 6, 3)),
    "BERT-base t128": lambda: Bert(12, 768, 12, 3072),
}
NAMES = {  # of parameters, as torch calls them
    "gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var",
    "embedding_table": "weight",
}  # fmt: skip


def training_step(name, x, y, compiled=True, parallel=False):
    """A function without arguments that does one step; `parallel`: with the processes that have joined."""
    make, optimizer = TRAINING[name]
    net = make()
    net.set_train()
    parameters = net.trainable_params()
    update = nn.Momentum(parameters, 0.01, 0.9) if optimizer == "momentum" else nn.Adam(parameters, 1e-4)
    loss = nn.CrossEntropyLoss()
    reducer = nn.DistributedGradReducer(update.parameters, True) if parallel else None

    def forward(x, y):
        return loss(net(x), y)

    gradient = ms.value_and_grad(forward, None, update.parameters)
    x, y = ms.Tensor(x), ms.Tensor(y)

    def step(x, y):
        value, gradients = gradient(x, y)
        update(reducer(gradients) if parallel else gradients)
        return value

    run = ms.jit(step) if compiled else step
    return lambda: run(x, y).asnumpy()


def with_weights(net, arrays):
    """The network with the parameters of torch's, which are given by torch's names."""
    for name, parameter in net.parameters_and_names():
        *path, last = name.split(".")
        source = ".".join([*path, NAMES.get(last, last)])
        parameter.set_data(ms.Tensor(arrays[source].reshape(parameter.shape)))
    return net
