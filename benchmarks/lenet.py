"""One training step of LeNet-5, batch 32 of 1 x 28 x 28 images: forward, backward, momentum."""

import numpy as np
import peers

CASES = {"eager step": ("ms", 0.6), "compiled step": ("ms", None)}
BATCH = 32


def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(BATCH, 1, 28, 28)).astype(np.float32), rng.integers(0, 10, BATCH).astype(np.int32)


def run_mycelia(threads: int) -> dict:
    import mycelia as ms
    from mycelia import nn

    ms.set_context(runtime_num_threads=threads)
    ms.set_seed(0)

    class LeNet(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = (
                nn.Conv2d(1, 6, 5, pad_mode="valid"),
                nn.Conv2d(6, 16, 5, pad_mode="valid"),
            )
            self.fc1, self.fc2, self.fc3 = nn.Dense(256, 120), nn.Dense(120, 84), nn.Dense(84, 10)
            self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()

        def construct(self, x):
            x = self.pool(self.relu(self.conv1(x)))
            x = self.flatten(self.pool(self.relu(self.conv2(x))))
            return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))

    net = LeNet()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer).set_train()
    x, y = (ms.Tensor(a) for a in data())
    results = {"eager step": peers.cpu_time_of(lambda: step(x, y), 50)}
    compiled = ms.jit(step)
    results["compiled step"] = peers.cpu_time_of(lambda: compiled(x, y), 50)
    return results


def run_torch(threads: int) -> dict:
    import torch
    from torch import nn

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), 0.01, 0.9)
    loss = nn.CrossEntropyLoss()
    x, y = (torch.from_numpy(a) for a in data())
    y = y.long()

    def step():
        optimizer.zero_grad()
        loss(net(x), y).backward()
        optimizer.step()

    time = peers.cpu_time_of(step, 50)
    return {"eager step": time, "compiled step": time}


if __name__ == "__main__":
    peers.main(__file__, CASES, {"mycelia": run_mycelia, "torch": run_torch}, "LeNet-5 training step",
               "CPU time of one step, median; torch is eager in both rows; "
               "ratio = Mycelia / torch, lower is better.", (1, 2))  # fmt: skip
