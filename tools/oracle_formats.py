"""Both-way check of files: what one framework writes, the other reads, and computes the same with.

Each network is code that leaves `net`, a Cell, and `inputs`, a list of arrays. One framework runs it, saves a
checkpoint and MindIR, and its outputs; the other builds the network with other weights, loads the checkpoint,
loads the MindIR as well, and compares. Then they change places. A new network is an entry of NETWORKS.
"""

from __future__ import annotations

import sys
import tempfile

from oracle import HEAD, Oracle

NETWORKS: dict[str, str] = {
    "Dense": """
net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3))
inputs = [np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)]
""",
    "LeNet": """
class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(400, 120)
        self.fc2 = nn.Dense(120, 10)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        return self.fc2(self.relu(self.fc1(self.flatten(x))))

net = LeNet()
inputs = [np.cos(np.arange(2048, dtype=np.float32)).reshape(2, 1, 32, 32)]
""",
    "BatchNorm": """
net = nn.SequentialCell(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(4), nn.Flatten())
inputs = [np.sin(np.arange(384, dtype=np.float32)).reshape(2, 3, 8, 8)]
""",
    "several results": """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.scale = Parameter(Tensor(np.full(5, 0.5, np.float32)), name="scale")

    def construct(self, x, y):
        z = ops.matmul(x, y) * self.scale
        return z, ops.softmax(z, -1), z.sum()

net = Net()
inputs = [np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(15, dtype=np.float32).reshape(3, 5)]
""",
}

_BUILD = """
ms.set_seed({seed})
{network}
net.set_train(False)
tensors = [Tensor(a) for a in inputs]

def arrays(result):
    return [r.asnumpy() for r in (result if isinstance(result, (tuple, list)) else [result])]
"""

_WRITE = """
np.savez("outputs.npz", *arrays(net(*tensors)))
ms.save_checkpoint(net, "net.ckpt")
ms.export(net, *tensors, file_name="net", file_format="MINDIR")
"""

# Each line is a verdict: what was loaded, and how far the outputs are off, or what went wrong.
_READ = """
expected = list(np.load("outputs.npz").values())

def verdict(what, compute):
    try:
        found = compute()
        fits = len(found) == len(expected) and all(
            f.shape == e.shape and f.dtype == e.dtype and np.allclose(f, e, rtol=1e-4, atol=1e-5)
            for f, e in zip(found, expected)
        )
        print(what, "ok" if fits else "other outputs")
    except Exception as error:
        print(what, type(error).__name__, str(error).strip().split("\\n")[0][:100])

def from_checkpoint():
    left, unknown = ms.load_param_into_net(net, ms.load_checkpoint("net.ckpt"))
    if left or unknown:
        raise ValueError(f"not loaded: {left}, of no use: {unknown}")
    return arrays(net(*tensors))

verdict("ckpt", from_checkpoint)
verdict("MindIR", lambda: arrays(nn.GraphCell(ms.load("net.mindir"))(*tensors)))
"""

_WAYS = (("MindSpore", "Mycelia"), ("Mycelia", "MindSpore"))


def exchange(oracle: Oracle, network: str, writer: str, reader: str) -> dict[str, str]:
    """Verdicts, by kind of file, of what `writer` wrote and `reader` read; `ok` where it fits."""
    with tempfile.TemporaryDirectory() as folder:
        wrote = oracle.run(writer, HEAD + _BUILD.format(seed=1, network=network) + _WRITE, folder)
        if wrote.error:
            last = wrote.stderr.strip().rpartition("\n")[2][:100]
            return dict.fromkeys(("ckpt", "MindIR"), f"{writer} cannot write: {wrote.error} {last}")
        read = oracle.run(reader, HEAD + _BUILD.format(seed=2, network=network) + _READ, folder)
    found = dict(
        line.split(" ", 1) for line in read.text.splitlines() if line.startswith(("ckpt ", "MindIR "))
    )
    return {what: found.get(what, f"{reader} ended: {read.error}") for what in ("ckpt", "MindIR")}


def check(oracle: Oracle) -> int:
    """Exchange all networks both ways and print the table. 0 if everything fits, else 1."""
    failures = 0
    columns = [f"{what} {a} -> {b}" for a, b in _WAYS for what in ("ckpt", "MindIR")]
    print("| network | " + " | ".join(columns) + " |")
    print("| --- |" + " --- |" * len(columns))
    for name, network in NETWORKS.items():
        verdicts = [v for a, b in _WAYS for v in exchange(oracle, network, a, b).values()]
        failures += sum(v != "ok" for v in verdicts)
        print(f"| {name} | " + " | ".join(verdicts) + " |", flush=True)
    print(f"{failures} of {len(NETWORKS) * len(columns)} do not fit" if failures else "all fit")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit("run: python tools/oracle.py --formats")
