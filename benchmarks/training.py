"""Training steps of common networks, eager and compiled: MLP, LSTM, BERT-mini, ResNet-18."""

import numpy as np
import peers

NETWORKS = ("MLP b64", "LSTM b32 t64", "BERT-mini b8 t128", "ResNet-18 224 b4")
CASES = {f"{name}, {mode}": ("ms", None) for name in NETWORKS for mode in ("eager", "compiled")}
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # ResNet-18: channels and first stride


def batches() -> dict:
    """Inputs and labels of each network."""
    rng = np.random.default_rng(0)

    def floats(*shape):
        return rng.normal(size=shape).astype(np.float32)

    def classes(high, *shape):
        return rng.integers(0, high, shape).astype(np.int32)

    return {
        NETWORKS[0]: (floats(64, 784), classes(10, 64)),
        NETWORKS[1]: (floats(32, 64, 128), classes(10, 32)),
        NETWORKS[2]: (classes(30522, 8, 128), classes(2, 8)),
        NETWORKS[3]: (floats(4, 3, 224, 224), classes(1000, 4)),
    }


def run_mycelia(threads: int) -> dict:
    import mycelia as ms
    from mycelia import nn, ops

    ms.set_context(runtime_num_threads=threads)
    ms.set_seed(0)

    class Lstm(nn.Cell):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(128, 256, batch_first=True), nn.Dense(256, 10)

        def construct(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    class Bert(nn.Cell):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(256, 4, 1024, 0.1, "gelu", batch_first=True)
            self.table, self.layers = nn.Embedding(30522, 256), nn.TransformerEncoder(layer, 4)
            self.head = nn.Dense(256, 2)

        def construct(self, x):
            return self.head(self.layers(self.table(x))[:, 0])

    class Block(nn.Cell):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.first, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride, "pad", 1), nn.BatchNorm2d(outputs)
            self.second, self.norm2 = nn.Conv2d(outputs, outputs, 3, 1, "pad", 1), nn.BatchNorm2d(outputs)
            direct = stride == 1 and inputs == outputs
            down = nn.SequentialCell(nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
            self.shortcut = nn.Identity() if direct else down

        def construct(self, x):
            y = ops.relu(self.norm1(self.first(x)))
            return ops.relu(self.norm2(self.second(y)) + self.shortcut(x))

    class ResNet(nn.Cell):
        def __init__(self):
            super().__init__()
            self.stem, self.norm = nn.Conv2d(3, 64, 7, 2, "pad", 3), nn.BatchNorm2d(64)
            self.pool, blocks, inputs = nn.MaxPool2d(3, 2, "pad", 1), [], 64
            for outputs, stride in STAGES:
                blocks += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
                inputs = outputs
            self.blocks, self.head = nn.SequentialCell(blocks), nn.Dense(512, 1000)

        def construct(self, x):
            x = self.blocks(self.pool(ops.relu(self.norm(self.stem(x)))))
            return self.head(ops.mean(x, (2, 3)))

    def mlp():
        return nn.SequentialCell(
            nn.Dense(784, 512), nn.ReLU(), nn.Dense(512, 256), nn.ReLU(), nn.Dense(256, 10)
        )

    results = {}
    for (name, batch), make in zip(batches().items(), (mlp, Lstm, Bert, ResNet)):
        net = make()
        step = nn.TrainOneStepCell(
            nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Adam(net.trainable_params())
        ).set_train()
        x, y = (ms.Tensor(a) for a in batch)
        for mode, function in (("eager", step), ("compiled", ms.jit(step))):
            results[f"{name}, {mode}"] = peers.cpu_time_of(lambda f=function: f(x, y), 1, 5)  # noqa: B023
    return results


def run_torch(threads: int) -> dict:
    import torch
    from torch import nn

    torch.set_num_threads(threads)
    torch.manual_seed(0)

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(128, 256, batch_first=True), nn.Linear(256, 10)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(256, 4, 1024, 0.1, "gelu", batch_first=True)
            self.table, self.layers = nn.Embedding(30522, 256), nn.TransformerEncoder(layer, 4)
            self.head = nn.Linear(256, 2)

        def forward(self, x):
            return self.head(self.layers(self.table(x))[:, 0])

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.first, self.norm1 = (
                nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
                nn.BatchNorm2d(outputs),
            )
            self.second, self.norm2 = (
                nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
                nn.BatchNorm2d(outputs),
            )
            direct = stride == 1 and inputs == outputs
            down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
            self.shortcut = nn.Identity() if direct else down

        def forward(self, x):
            y = torch.relu(self.norm1(self.first(x)))
            return torch.relu(self.norm2(self.second(y)) + self.shortcut(x))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.norm = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
            self.pool, blocks, inputs = nn.MaxPool2d(3, 2, 1), [], 64
            for outputs, stride in STAGES:
                blocks += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
                inputs = outputs
            self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(512, 1000)

        def forward(self, x):
            x = self.blocks(self.pool(torch.relu(self.norm(self.stem(x)))))
            return self.head(x.mean((2, 3)))

    def mlp():
        return nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
        )

    results = {}
    loss = nn.CrossEntropyLoss()
    for (name, (x, y)), make in zip(batches().items(), (mlp, Lstm, Bert, ResNet)):
        net = make().train()
        optimizer = torch.optim.Adam(net.parameters())
        x, y = torch.from_numpy(x), torch.from_numpy(y).long()
        x = x.long() if x.dtype == torch.int32 else x

        def step(net=net, optimizer=optimizer, x=x, y=y):
            optimizer.zero_grad()
            loss(net(x), y).backward()
            optimizer.step()

        for mode in ("eager", "compiled"):
            results[f"{name}, {mode}"] = peers.cpu_time_of(step, 1, 5)
    return results


if __name__ == "__main__":
    peers.main(
        __file__,
        CASES,
        {"mycelia": run_mycelia, "torch": run_torch},
        "Training steps",
        "CPU time of one step with Adam, median; torch is eager in all rows; lower ratios are better.",
    )
