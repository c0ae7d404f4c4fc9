"""Checkpoints that `tools/oracle.py --formats` exchanges, as code.

A checkpoint's code has `save(name)`, which writes files of this name, and `show(name)`, whose texts must be
equal in both frameworks.
"""

from __future__ import annotations

from oracle_networks import DATA

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
    name: DATA + _SHOW + _PLAIN + code
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
    f"optimizer {name}": DATA + _NAMES_ONLY.format(optimizer=code)
    for name, code in OPTIMIZERS_ELSEWHERE.items()
}
CHECKPOINTS |= {
    f"optimizer {name}": DATA + _TRAINING.format(optimizer=code) for name, code in OPTIMIZERS.items()
}
