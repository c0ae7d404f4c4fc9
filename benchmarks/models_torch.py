"""The networks of the benches in torch; models_torch.py DIRECTORY writes those of inference as ONNX."""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from models_data import EXPORTED, inference_input
from torch import nn


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(784, 512), nn.Linear(512, 512), nn.Linear(512, 10)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.lstm = nn.Embedding(10000, 128), nn.LSTM(128, 256, batch_first=True)
        self.head = nn.Linear(256, 2)

    def forward(self, ids):
        return self.head(self.lstm(self.table(ids))[0][:, -1])


def conv_norm(inputs, outputs, kernel, stride=1, groups=1):
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


class Basic(nn.Module):
    expansion = 1

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.first, self.second = conv_norm(inputs, width, 3, stride), conv_norm(width, width, 3)
        direct = stride == 1 and inputs == width
        self.shortcut = nn.Identity() if direct else conv_norm(inputs, width, 1, stride)

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * 4
        self.first, self.second = conv_norm(inputs, width, 1), conv_norm(width, width, 3, stride)
        self.third = conv_norm(width, outputs, 1)
        direct = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if direct else conv_norm(inputs, outputs, 1, stride)

    def forward(self, x):
        return F.relu(self.third(F.relu(self.second(F.relu(self.first(x))))) + self.shortcut(x))


class ResNet(nn.Module):
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
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.relu(self.stem(x))
        if not self.small:
            x = F.max_pool2d(x, 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


class Inverted(nn.Module):
    def __init__(self, inputs, outputs, stride, expansion):
        super().__init__()
        hidden = inputs * expansion
        layers = [conv_norm(inputs, hidden, 1), nn.ReLU6()] if expansion > 1 else []
        layers += [conv_norm(hidden, hidden, 3, stride, hidden), nn.ReLU6(), conv_norm(hidden, outputs, 1)]
        self.layers, self.residual = nn.Sequential(*layers), stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.layers(x) if self.residual else self.layers(x)


MOBILE_STAGES = (  # expansion, channels, blocks, stride of the first
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


class MobileNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        layers, inputs = [conv_norm(3, 32, 3, 2), nn.ReLU6()], 32
        for expansion, outputs, count, stride in MOBILE_STAGES:
            for i in range(count):
                layers.append(Inverted(inputs, outputs, stride if i == 0 else 1, expansion))
                inputs = outputs
        layers += [conv_norm(320, 1280, 1), nn.ReLU6()]
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(1280, 1000)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value, self.project = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        batch, time, width = x.shape
        parts = (batch, time, self.heads, self.size)
        q, k, v = (f(x).view(parts).transpose(1, 2) for f in (self.query, self.key, self.value))
        scores = torch.softmax(q @ k.transpose(-1, -2) * self.size**-0.5, -1)
        x = self.norm1(x + self.project((scores @ v).transpose(1, 2).reshape(batch, time, width)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, layers=4, width=256, heads=4, hidden=1024, words=30522, time=128):
        super().__init__()
        self.table, self.positions = nn.Embedding(words, width), nn.Parameter(torch.randn(time, width) * 0.02)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(*[EncoderLayer(width, heads, hidden) for _ in range(layers)])
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        return self.head(self.layers(self.norm(self.table(ids) + self.positions))[:, 0])


class Fire(nn.Module):
    def __init__(self, inputs, squeezed, expanded):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        sizes = ((1, 0), (3, 1))
        self.expand = nn.ModuleList([nn.Conv2d(squeezed, expanded, k, padding=p) for k, p in sizes])

    def forward(self, x):
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(each(x)) for each in self.expand], 1)


class SqueezeNet(nn.Module):
    """Iandola et al. 2016, version 1.1."""

    def __init__(self):
        super().__init__()
        fires = [(64, 16, 64), (128, 16, 64), None, (128, 32, 128), (256, 32, 128), None,
                 (256, 48, 192), (384, 48, 192), (384, 64, 256), (512, 64, 256)]  # fmt: skip
        pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.stem = nn.Conv2d(3, 64, 3, stride=2)
        self.fires = nn.Sequential(*[pool if f is None else Fire(*f) for f in (None, *fires)])
        self.head = nn.Conv2d(512, 1000, 1)

    def forward(self, x):
        return F.relu(self.head(self.fires(F.relu(self.stem(x))))).mean((2, 3))


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
NETWORKS = {"SqueezeNet 224": SqueezeNet, **INFERENCE}


def training_step(name, x, y, compiled=False, parallel=False):
    """A function without arguments that does one step; `parallel`: with the processes that have joined."""
    make, optimizer = TRAINING[name]
    torch.manual_seed(0)
    net = make().train()
    net = nn.parallel.DistributedDataParallel(net) if parallel else net
    if optimizer == "momentum":
        update = torch.optim.SGD(net.parameters(), 0.01, 0.9)
    else:
        update = torch.optim.Adam(net.parameters(), 1e-4)
    x, y = torch.from_numpy(x), torch.from_numpy(y).long()
    x = x.long() if x.dtype == torch.int32 else x
    forward = torch.compile(net) if compiled else net

    def step():
        update.zero_grad()
        loss = F.cross_entropy(forward(x), y)
        loss.backward()
        update.step()
        return loss.item()

    return step


def inference_network(name):
    torch.manual_seed(0)
    net = NETWORKS[name]().eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):  # statistics that make folding real work
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return net


def export(name, folder):
    """NAME.onnx, NAME.npz (input x, result y) and NAME.weights.npz."""
    net, x = inference_network(name), torch.from_numpy(inference_input(name))
    x = x.long() if x.dtype == torch.int32 else x
    with torch.no_grad():
        y = net(x)
    names = {"input_names": ["x"], "output_names": ["y"]}
    torch.onnx.export(net, (x,), str(folder / f"{name}.onnx"), dynamo=False, opset_version=17, **names)
    np.savez(folder / f"{name}.weights.npz", **{k: v.numpy() for k, v in net.state_dict().items()})
    np.savez(folder / f"{name}.npz", x=x.numpy(), y=y.numpy())


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for each in EXPORTED:
        export(each, target)
