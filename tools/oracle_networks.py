"""Networks that `tools/oracle.py --formats` exchanges, as code; `oracle_checkpoints.py` has the checkpoints.

A network's code leaves `net`, a Cell, and `inputs`, a list of arrays; and where it needs them `again`,
further such lists; `shapes`, what export gets in place of the inputs; `writing` and `reading`, keywords of
export and load; `training`, true to export the network as it trains; `rtol`.
"""

from __future__ import annotations

from pathlib import Path


def zoo() -> Path:
    """The folder of the model zoo."""
    return Path(__file__).resolve().parent.parent / "examples" / "zoo"


_ZOO = """
from zoo import ZOO

entry = ZOO[{name!r}]
net = entry.make()
inputs = list(entry.inputs(np.random.default_rng(0)))
"""
_ZOO_NAMES = """
    lenet alexnet vgg16 resnet18 resnet50 mobilenet_v1 mobilenet_v2 mobilenet_v3 efficientnet_b0 googlenet
    densenet unet lstm gru translator bert vit gan autoencoder
""".split()

DATA = """
def wave(*shape, step=0.37):
    return np.sin(step * np.arange(np.prod(shape), dtype=np.float32)).reshape(shape).astype(np.float32)
"""
_BATCH_NORM = """
net = nn.SequentialCell(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(4), nn.Flatten())
net.set_train()
for i in range(3):  # statistics that are not those of the beginning
    net(Tensor(wave(2, 3, 8, 8, step=0.2 + 0.1 * i)))
inputs = [wave(2, 3, 8, 8)]
"""
_MLP = """
net = nn.SequentialCell(nn.Dense(6, 8), nn.Tanh(), nn.Dense(8, 3))
inputs = [wave(4, 6)]
"""

NETWORKS: dict[str, str] = {f"zoo {name}": _ZOO.format(name=name) for name in _ZOO_NAMES}
NETWORKS |= {
    name: DATA + code
    for name, code in {
        "dense": _MLP,
        "BatchNorm, inference": _BATCH_NORM,
        "BatchNorm, training": _BATCH_NORM + "training = True\n",
        "several results": """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.scale = Parameter(Tensor(np.full(5, 0.5, np.float32)), name="scale")

    def construct(self, x, y):
        z = ops.matmul(x, y) * self.scale
        return z, (ops.softmax(z, -1), z.sum()), ops.argmax(z, 1)

net = Net()
inputs = [wave(2, 3), wave(3, 5)]
""",
        "if": """
class Net(nn.Cell):
    def construct(self, x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return y + x.mean()

net = Net()
inputs = [wave(2, 3)]
again = [[-wave(2, 3)]]
""",
        "while": """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 4)

    def construct(self, x, n):
        i = ops.zeros_like(n)
        while i < n:
            x = ops.tanh(self.fc(x))
            i = i + 1
        return x, i

net = Net()
inputs = [wave(2, 4), np.array(3, np.int32)]
again = [[wave(2, 4), np.array(0, np.int32)], [wave(2, 4), np.array(6, np.int32)]]
""",
        "if in while": """
class Net(nn.Cell):
    def construct(self, x, n):
        i = ops.zeros_like(n)
        while i < n:
            if x.sum() > 2:
                x = x * 0.5
            else:
                x = x + 0.75
            i = i + 1
        if i > 4:
            x = -x
        return x

net = Net()
inputs = [wave(2, 4), np.array(3, np.int32)]
again = [[wave(2, 4), np.array(0, np.int32)], [wave(2, 4), np.array(7, np.int32)]]
""",
        "for with break": """
class Net(nn.Cell):
    def construct(self, x):
        total = ops.zeros_like(x)
        for i in range(5):
            total = total + x * i
            x = x - 0.25
        return total

net = Net()
inputs = [wave(3, 2)]
""",
        "LSTM with states": """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 7, num_layers=2, batch_first=True, bidirectional=True)

    def construct(self, x, h, c):
        return self.lstm(x, (h, c))

net = Net()
inputs = [wave(3, 4, 5), wave(4, 3, 7), wave(4, 3, 7, step=0.2)]
""",
        "GRU with lengths": """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(5, 6, batch_first=True)

    def construct(self, x, h, lengths):
        return self.gru(x, h, lengths)

net = Net()
inputs = [wave(3, 4, 5), wave(1, 3, 6), np.array([4, 2, 3], np.int32)]
""",
        "cells of LSTM, GRU and RNN": """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(5, 6), nn.GRUCell(6, 6), nn.RNNCell(6, 6)

    def construct(self, x, h, c):
        for i in range(3):
            h, c = self.lstm(x, (h, c))
            h = self.rnn(self.gru(h, c), c)
        return h, c

net = Net()
inputs = [wave(3, 5), wave(3, 6), wave(3, 6, step=0.2)]
""",
        "attention": """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.norm = nn.LayerNorm((16,))

    def construct(self, x, mask):
        y, weights = self.attention(x, x, x, attn_mask=mask)
        return self.norm(x + y), weights

net = Net()
inputs = [wave(2, 5, 16), np.triu(np.ones((5, 5)), 1).astype(bool)]
""",
        "attention by hand": """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Dense(12, 36), nn.Dense(12, 12)
        self.norm, self.drop = nn.LayerNorm((12,)), nn.Dropout(p=0.1)

    def construct(self, x):
        n, t, c = x.shape
        q, k, v = ops.split(self.qkv(self.norm(x)), 12, axis=-1)
        q, k, v = [a.reshape(n, t, 3, 4).transpose(0, 2, 1, 3) for a in (q, k, v)]
        weights = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) / 2.0, axis=-1)
        y = ops.matmul(self.drop(weights), v).transpose(0, 2, 1, 3).reshape(n, t, c)
        return x + ops.gelu(self.out(y))

net = Net()
inputs = [wave(2, 5, 12)]
""",
        "unknown rows": _MLP
        + """
shapes = [Tensor(shape=[None, 6], dtype=ms.float32)]
again = [[wave(1, 6)], [wave(9, 6)]]
""",
        "unknown pictures": """
net = nn.SequentialCell(
    nn.Conv2d(3, 4, 3, pad_mode="same"), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
    nn.Dense(64, 5),
)
inputs = [wave(2, 3, 8, 8)]
shapes = [Tensor(shape=[None, 3, 8, 8], dtype=ms.float32)]
again = [[wave(5, 3, 8, 8)]]
""",
        "unknown lengths": """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table, self.fc = nn.Embedding(20, 8), nn.Dense(8, 3)

    def construct(self, tokens):
        x = self.table(tokens)
        return self.fc(x).mean(1), ops.reshape(x, (-1, 4)), x.sum(1)

net = Net()
inputs = [np.arange(6, dtype=np.int32).reshape(2, 3)]
shapes = [Tensor(shape=[None, None], dtype=ms.int32)]
again = [[np.arange(12, dtype=np.int32).reshape(3, 4)]]
""",
        "unknown rows, reshaped": """
class Net(nn.Cell):
    def construct(self, x):
        y = x.reshape(-1, x.shape[1] * x.shape[2]).view(-1, 2, 6)
        return y + 1, x.flatten(start_dim=1), x.transpose(1, 0, 2), ops.concat((x, x), 0), x.sum(0)

net = Net()
inputs = [wave(2, 4, 3)]
shapes = [Tensor(shape=[None, 4, 3], dtype=ms.float32)]
again = [[wave(5, 4, 3)]]
""",
        "a parameter that counts": """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.count = Parameter(Tensor(np.zeros(1, np.float32)), name="count", requires_grad=False)

    def construct(self, x):
        self.count += 1
        return x * self.count

net = Net()
training = True
inputs = [wave(2, 3)]
again = [inputs, inputs]
""",
        "picking and padding": """
class Net(nn.Cell):
    def construct(self, x, index):
        a = ops.gather(x, index, 1)
        b = x[:, 1:4:2] + x[..., -1:]
        c = ops.pad(x, (1, 2), value=0.5)
        d = ops.topk(x, 2)[0]
        e = ops.where(x > 0, x, ops.zeros_like(x))
        f = ops.concat((a, d), 1)
        return a, b, c, d, e, f, ops.stack((x, e), 0), ops.one_hot(index, 6), ops.cumsum(x, 1)

net = Net()
inputs = [wave(3, 5), np.array([2, 0], np.int32)]
""",
        "convolutions": """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(4, 8, 3, stride=2, pad_mode="pad", padding=1, group=2, has_bias=True)
        self.b = nn.Conv2dTranspose(8, 4, 3, stride=2, pad_mode="same")
        self.c = nn.Conv1d(4, 6, 3, dilation=2, pad_mode="same")
        self.d = nn.Conv3d(2, 3, 3, pad_mode="valid")
        self.norm = nn.GroupNorm(2, 4)
        self.pool, self.mean = nn.AdaptiveAvgPool2d(3), nn.AvgPool2d(3, 2, pad_mode="same")

    def construct(self, x, y, z):
        h = self.norm(ops.leaky_relu(self.b(self.a(x))))
        return h, self.pool(h), self.mean(h), ops.sigmoid(self.c(y)), self.d(z)

net = Net()
inputs = [wave(2, 4, 10, 10), wave(2, 4, 9), wave(1, 2, 5, 5, 5)]
""",
        "activations and losses": """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.parts = nn.CellList([nn.ReLU6(), nn.HSwish(), nn.HSigmoid(), nn.ELU(), nn.SiLU(), nn.GELU(),
                                  nn.PReLU(), nn.Softmax(), nn.LogSoftmax(), nn.LogSigmoid(), nn.Mish(),
                                  nn.SeLU(), nn.CELU(), nn.Softsign(), nn.HShrink(), nn.SoftShrink()])
        self.loss = nn.CrossEntropyLoss()

    def construct(self, x, labels):
        results = ()
        for cell in self.parts:
            results += (cell(x),)
        return results + (self.loss(x, labels), ops.mse_loss(x, results[0]))

net = Net()
inputs = [2 * wave(3, 5), np.array([1, 4, 0], np.int32)]
""",
        "half precision": """
net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3)).to_float(ms.float16)
inputs = [wave(4, 6)]
rtol = 2e-3  # of float16, in which the sums are rounded
""",
        **{
            f"key, {mode}": _MLP + f"writing = dict(enc_key=b'0123456789abcdef', enc_mode={mode!r})\n"
            f"reading = dict(dec_key=b'0123456789abcdef', dec_mode={mode!r})\n"
            for mode in ("AES-GCM", "AES-CBC", "SM4-CBC")
        },
        "weights in another file": """
import sys
# both compare kibibytes with this; lowered, so that a small network has such files
for module, limit in (("mindspore.train.serialization", "TOTAL_SAVE"), ("mycelia.io.mindir", "_SPLIT_KIB")):
    if module in sys.modules:
        setattr(sys.modules[module], limit, 8)
net = nn.SequentialCell(nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, 8))
inputs = [wave(3, 64)]
""",
    }.items()
}
