"""What `tools/oracle.py --formats` exchanges: code of networks and of checkpoints.

A network's code leaves `net`, a Cell, and `inputs`, a list of arrays; and where it needs them `again`,
further such lists; `shapes`, what export gets in place of the inputs; `writing` and `reading`, keywords of
export and load; `training`, true to export the network as it trains; `rtol`. A checkpoint's code has
`save(name)`, which writes files of this name, and `show(name)`, whose texts must be equal in both frameworks.
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

_DATA = """
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
    name: _DATA + code
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

_SHOW = """
import os

def facts(entries):
    for name, value in entries.items():
        if isinstance(value, str):
            yield f"{name} text {value}"
        else:
            data = value.float().asnumpy() if value.dtype == ms.bfloat16 else value.asnumpy()
            yield f"{name} {type(value).__name__} {value.dtype} {value.shape} {data.ravel()[:4].tolist()}"

def failure(call):
    try:
        call()
        return "no error"
    except Exception as error:
        return type(error).__name__
"""
_PLAIN = """
net = nn.SequentialCell(nn.Dense(3, 2), nn.BatchNorm1d(2))
"""

CHECKPOINTS: dict[str, str] = {
    name: _DATA + _SHOW + _PLAIN + code
    for name, code in {
        "appended values": """
def save(name):
    more = {"epoch": 3, "lr": 0.25, "on": True, "note": "grüß", "scale": Tensor(wave(2, 2))}
    ms.save_checkpoint(net, name + ".ckpt", append_dict=more)

def show(name):
    return facts(ms.load_checkpoint(name + ".ckpt"))
""",
        "choice of names": """
def save(name):
    ms.save_checkpoint(net, name + ".ckpt", choice_func=lambda n: n.startswith("0."))
    ms.save_checkpoint(net, name + "_all.ckpt")

def show(name):
    yield from facts(ms.load_checkpoint(name + ".ckpt"))
    file = name + "_all.ckpt"
    for options in (dict(filter_prefix="1."), dict(specify_prefix=["0.w", "1.b"]),
                    dict(choice_func=lambda n: "moving" in n),
                    dict(filter_prefix=["0"], specify_prefix="1.g")):
        yield from facts(ms.load_checkpoint(file, **options))
    yield failure(lambda: ms.load_checkpoint(file, choice_func=lambda n: False))
    yield failure(lambda: ms.load_checkpoint(file, specify_prefix=3))
""",
        "lists and dicts": """
def save(name):
    ms.save_checkpoint([{"name": "a", "data": Tensor(wave(2))}, {"name": "b", "data": Tensor(1, ms.int8)}],
                       name + "_list.ckpt")
    flags = Parameter(Tensor([True, False]), name="q")
    ms.save_checkpoint({"a": Parameter(Tensor(wave(3))), "t": "text", "p": flags}, name + "_dict.ckpt")
    ms.save_checkpoint(list(net.get_parameters()), name + "_parameters")

def show(name):
    for kind in ("list", "dict", "parameters"):
        yield from facts(ms.load_checkpoint(f"{name}_{kind}.ckpt"))
""",
        "dtypes": """
KINDS = (ms.bool_, ms.int8, ms.int16, ms.int32, ms.int64, ms.uint8, ms.uint16, ms.uint32, ms.uint64,
         ms.float16, ms.bfloat16, ms.float32, ms.float64)

def save(name):
    values = {str(k): Parameter(Tensor([[0, 1, 2]], k), requires_grad=False) for k in KINDS}
    ms.save_checkpoint(values, name + ".ckpt")
    ms.save_checkpoint(values, name, format="safetensors")

def show(name):
    yield from facts(ms.load_checkpoint(name + ".ckpt"))
    yield from sorted(facts(ms.load_checkpoint(name + ".safetensors", format="safetensors")))
""",
        "check sum": """
def save(name):
    ms.save_checkpoint(net, name + ".ckpt", crc_check=True)
    ms.save_checkpoint(net, name, crc_check=True, format="safetensors")
    with open(name + ".ckpt", "rb") as file:
        data = bytearray(file.read())
    data[data.index(b"1.gamma") + 40] ^= 4
    with open(name + "_damaged.ckpt", "wb") as file:
        file.write(data)

def show(name):
    yield from facts(ms.load_checkpoint(name + ".ckpt", crc_check=True))
    yield from sorted(facts(ms.load_checkpoint(name + ".safetensors", format="safetensors", crc_check=True)))
    yield failure(lambda: ms.load_checkpoint(name + "_damaged.ckpt", crc_check=True))
""",
        "keys": """
MODES = ("AES-GCM", "AES-CBC", "SM4-CBC")
KEY = b"0123456789abcdef"

def save(name):
    for mode in MODES:
        ms.save_checkpoint(net, f"{name}_{mode}.ckpt", enc_key=KEY, enc_mode=mode)

def show(name):
    for mode in MODES:
        yield from facts(ms.load_checkpoint(f"{name}_{mode}.ckpt", dec_key=KEY, dec_mode=mode))
        yield failure(lambda: ms.load_checkpoint(f"{name}_{mode}.ckpt", dec_key=b"x" * 16, dec_mode=mode))
        yield failure(lambda: ms.load_checkpoint(f"{name}_{mode}.ckpt"))
""",
        "from format to format": """
def save(name):
    ms.save_checkpoint(net, name + ".ckpt")
    os.makedirs(name, exist_ok=True)
    ms.ckpt_to_safetensors(name + ".ckpt", save_path=name, name_map={"0.bias": "fc.bias"})
    ms.safetensors_to_ckpt(f"{name}/{name}.safetensors", save_path=name)

def show(name):
    file = f"{name}/{name}.safetensors"
    yield from sorted(facts(ms.load_checkpoint(file, format="safetensors")))
    yield from sorted(facts(ms.load_checkpoint(f"{name}/{name}.ckpt")))
""",
        "into a network": """
def save(name):
    ms.save_checkpoint(net, name + ".ckpt", append_dict={"step": 5})
    ms.save_checkpoint({"net." + p.name: p for p in net.get_parameters()}, name + "_prefix.ckpt")
    half = {p.name: Parameter(p.astype(ms.float16)) for p in net.get_parameters()}
    ms.save_checkpoint(half, name + "_half.ckpt")
    odd = {"0.weight": Parameter(Tensor(wave(2, 3, 1, 1))), "0.bias": Parameter(Tensor(wave(3)))}
    ms.save_checkpoint(odd, name + "_odd.ckpt")

def show(name):
    yield str(list(ms.load_checkpoint_async(name + ".ckpt", net).result()))
    yield str(list(ms.load_checkpoint(name + ".ckpt", net=net, strict_load=True)))
    for kind in ("", "_prefix", "_half", "_odd"):
        for strict in (False, True):
            entries = ms.load_checkpoint(f"{name}{kind}.ckpt")
            try:
                yield str(ms.load_param_into_net(net, entries, strict_load=strict))
                yield from facts({p.name: p for p in net.get_parameters()})
            except Exception as error:
                yield type(error).__name__
""",
    }.items()
}

# A step of training, saved with all its state and gone on with: here and there, the same weights.
_TRAINING = """
net = nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 2))
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), {optimizer})
step.set_train()

def train():
    for i in range(2):
        step(Tensor(wave(5, 3, step=0.3 + 0.1 * i)), Tensor(wave(5, 2)))

def save(name):
    train()
    ms.save_checkpoint(step, name + ".ckpt")
    ms.save_checkpoint(step.optimizer, name + "_optimizer.ckpt")

def show(name):
    entries = ms.load_checkpoint(name + "_optimizer.ckpt")
    yield from (f"{{n}} {{v.dtype}} {{v.shape}}" for n, v in entries.items())
    yield str(ms.load_param_into_net(step, ms.load_checkpoint(name + ".ckpt")))
    train()
    for p in net.get_parameters():
        yield f"{{p.name}} {{[round(v, 4) + 0.0 for v in p.asnumpy().ravel().tolist()]}}"
"""
OPTIMIZERS = {
    "SGD": "nn.SGD(net.trainable_params(), 0.1, momentum=0.9, nesterov=True)",
    "Momentum": "nn.Momentum(net.trainable_params(), 0.1, 0.9)",
    "Momentum, rates by step": "nn.Momentum(net.trainable_params(), [0.1, 0.2, 0.3, 0.4, 0.5], 0.9)",
    "Momentum, groups": """nn.Momentum(
        [{"params": net[0].trainable_params(), "lr": 0.2, "weight_decay": 0.01},
         {"params": net[2].trainable_params()}], nn.CosineDecayLR(0.01, 0.1, 8), 0.9)""",
    "Adam": "nn.Adam(net.trainable_params(), 0.01)",
    "Adam, AMSGrad": "nn.Adam(net.trainable_params(), 0.01, use_amsgrad=True)",
    "AdamWeightDecay": "nn.AdamWeightDecay(net.trainable_params(), 0.01, weight_decay=0.1)",
    "AdaMax": "nn.AdaMax(net.trainable_params(), 0.01)",
    "Adagrad": "nn.Adagrad(net.trainable_params(), learning_rate=0.1)",
    "Adadelta": "nn.Adadelta(net.trainable_params(), learning_rate=0.1)",
    "RMSProp": "nn.RMSProp(net.trainable_params(), 0.01, momentum=0.5)",
    "RMSProp, centred": "nn.RMSProp(net.trainable_params(), 0.01, momentum=0.5, centered=True)",
    "Ftrl": "nn.FTRL(net.trainable_params(), learning_rate=0.1)",
    "ProximalAdagrad": "nn.ProximalAdagrad(net.trainable_params(), learning_rate=0.1)",
    "LazyAdam": "nn.LazyAdam(net.trainable_params(), 0.01)",
    "ASGD": "nn.ASGD(net.trainable_params(), 0.1)",
    "AdamOffload": "nn.AdamOffload(net.trainable_params(), 0.01)",
    "Rprop": "nn.Rprop(net.trainable_params(), 0.01)",
}  # fmt: skip
_NAMES_ONLY = _TRAINING.replace("    train()\n", "")
OPTIMIZERS_ELSEWHERE = {  # MindSpore runs them on other devices only: the states are exchanged
    "LARS": "nn.LARS(nn.Momentum(net.trainable_params(), 0.1, 0.9), epsilon=1e-8, coefficient=0.02)",
    "Lamb": "nn.Lamb(net.trainable_params(), 0.01)",
}
CHECKPOINTS |= {
    f"optimizer {name}": _DATA + _NAMES_ONLY.format(optimizer=code)
    for name, code in OPTIMIZERS_ELSEWHERE.items()
}
CHECKPOINTS |= {
    f"optimizer {name}": _DATA + _TRAINING.format(optimizer=code) for name, code in OPTIMIZERS.items()
}
