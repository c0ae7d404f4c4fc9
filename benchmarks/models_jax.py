"""The networks of the training benches as functions in jax, images channels last as XLA likes them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

random = np.random.default_rng(0)


def weight(*shape, scale=None):
    scale = scale or (2 / np.prod(shape[:-1])) ** 0.5
    return jnp.asarray(random.normal(size=shape, scale=scale).astype(np.float32))


def dense(inputs, outputs):
    return {"w": weight(inputs, outputs), "b": jnp.zeros(outputs)}


def apply_dense(p, x):
    return x @ p["w"] + p["b"]


def classify(p, x):
    x = jax.nn.relu(apply_dense(p["fc2"], jax.nn.relu(apply_dense(p["fc1"], x))))
    return apply_dense(p["fc3"], x)


def conv(x, w, stride=1, pad=0):
    pads = [(pad, pad)] * 2
    return lax.conv_general_dilated(x, w, (stride, stride), pads, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def max_pool(x, size, stride, pad=0):
    pads = [(0, 0), (pad, pad), (pad, pad), (0, 0)]
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), pads)


def lenet():
    p = {
        "conv1": {"w": weight(5, 5, 1, 6), "b": jnp.zeros(6)},
        "conv2": {"w": weight(5, 5, 6, 16), "b": jnp.zeros(16)},
        "fc1": dense(400, 120), "fc2": dense(120, 84), "fc3": dense(84, 10),
    }  # fmt: skip

    def forward(p, x):
        x = max_pool(jax.nn.relu(conv(x, p["conv1"]["w"], 1, 2) + p["conv1"]["b"]), 2, 2)
        x = max_pool(jax.nn.relu(conv(x, p["conv2"]["w"]) + p["conv2"]["b"]), 2, 2).reshape(x.shape[0], -1)
        return classify(p, x)

    return p, forward


def mlp():
    p = {"fc1": dense(784, 512), "fc2": dense(512, 512), "fc3": dense(512, 10)}

    def forward(p, x):
        return classify(p, x)

    return p, forward


def lstm():
    p = {"table": weight(10000, 128, scale=1), "input": dense(128, 1024), "hidden": weight(256, 1024),
         "head": dense(256, 2)}  # fmt: skip

    def forward(p, ids):
        steps = apply_dense(p["input"], p["table"][ids]).swapaxes(0, 1)

        def cell(state, x):
            h, c = state
            i, f, g, o = jnp.split(x + h @ p["hidden"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        zero = jnp.zeros((ids.shape[0], 256))
        (h, _), _ = lax.scan(cell, (zero, zero), steps)
        return apply_dense(p["head"], h)

    return p, forward


def layer_norm(p, x):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p["g"] + p["b"]


def bert(layers=4, width=256, heads=4, hidden=1024, words=30522, time=128):
    def norm():
        return {"g": jnp.ones(width), "b": jnp.zeros(width)}

    def layer():
        parts = {name: dense(width, width) for name in ("query", "key", "value", "project")}
        parts |= {"up": dense(width, hidden), "down": dense(hidden, width), "norm1": norm(), "norm2": norm()}
        return parts

    p = {"table": weight(words, width, scale=1), "positions": weight(time, width, scale=0.02), "norm": norm(),
         "head": dense(width, 2), "layers": [layer() for _ in range(layers)]}  # fmt: skip

    def forward(p, ids):
        x = layer_norm(p["norm"], p["table"][ids] + p["positions"])
        parts = (*ids.shape, heads, width // heads)
        for layer in p["layers"]:
            q, k, v = (apply_dense(layer[name], x).reshape(parts) for name in ("query", "key", "value"))
            scores = jax.nn.softmax(jnp.einsum("bthe,bshe->bhts", q, k) * parts[-1] ** -0.5, -1)
            y = jnp.einsum("bhts,bshe->bthe", scores, v).reshape(x.shape)
            x = layer_norm(layer["norm1"], x + apply_dense(layer["project"], y))
            up = jax.nn.gelu(apply_dense(layer["up"], x), approximate=False)
            x = layer_norm(layer["norm2"], x + apply_dense(layer["down"], up))
        return apply_dense(p["head"], x[:, 0])

    return p, forward


def conv_norm(inputs, outputs, kernel):
    return {"w": weight(kernel, kernel, inputs, outputs), "g": jnp.ones(outputs), "b": jnp.zeros(outputs)}


def apply_conv_norm(p, x, stride=1):
    x = conv(x, p["w"], stride, p["w"].shape[0] // 2)
    mean = x.mean((0, 1, 2))
    variance = ((x - mean) ** 2).mean((0, 1, 2))
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p["g"] + p["b"]


def resnet(counts, expansion, classes, small):
    p, strides, inputs = {"stem": conv_norm(3, 64, 3 if small else 7), "blocks": []}, [], 64
    for stage, count in enumerate(counts):
        width = 64 << stage
        for i in range(count):
            stride, outputs = 2 if i == 0 and stage else 1, width * expansion
            if expansion == 1:
                convs = [conv_norm(inputs, width, 3), conv_norm(width, width, 3)]
            else:
                convs = [conv_norm(inputs, width, 1), conv_norm(width, width, 3)]
                convs.append(conv_norm(width, outputs, 1))
            block = {"convs": convs}
            if stride != 1 or inputs != outputs:
                block["shortcut"] = conv_norm(inputs, outputs, 1)
            p["blocks"].append(block)
            strides.append(stride)
            inputs = outputs
    p["head"] = dense(inputs, classes)

    def forward(p, x):
        x = jax.nn.relu(apply_conv_norm(p["stem"], x, 1 if small else 2))
        if not small:
            x = max_pool(x, 3, 2, 1)
        for block, stride in zip(p["blocks"], strides):
            y, strided = x, 0 if expansion == 1 else 1
            for i, each in enumerate(block["convs"]):
                y = apply_conv_norm(each, y if i == 0 else jax.nn.relu(y), stride if i == strided else 1)
            x = jax.nn.relu(y + (apply_conv_norm(block["shortcut"], x, stride) if "shortcut" in block else x))
        return apply_dense(p["head"], x.mean((1, 2)))

    return p, forward


TRAINING = {
    "LeNet b32": (lenet, "momentum"),
    "MLP b64": (mlp, "momentum"),
    "LSTM b32 t64": (lstm, "adam"),
    "BERT-mini b8 t128": (bert, "adam"),
    "ResNet-18 224 b4": (lambda: resnet((2, 2, 2, 2), 1, 1000, False), "momentum"),
    "ResNet-50 CIFAR b32": (lambda: resnet((3, 4, 6, 3), 4, 10, True), "momentum"),
}


def training_step(name, x, y):
    """A function without arguments that does one jitted step, its state donated."""
    make, optimizer = TRAINING[name]
    parameters, forward = make()
    each = jax.tree_util.tree_map
    x = jnp.asarray(x.transpose(0, 2, 3, 1) if x.ndim == 4 else x)
    y = jnp.asarray(y)

    def loss(p, x, y):
        return -jnp.take_along_axis(jax.nn.log_softmax(forward(p, x)), y[:, None], 1).mean()

    def momentum(state, x, y):
        p, v = state
        value, g = jax.value_and_grad(loss)(p, x, y)
        v = each(lambda v, g: 0.9 * v + g, v, g)
        return (each(lambda p, v: p - 0.01 * v, p, v), v), value

    def adam(state, x, y):
        p, m, v, t = state
        value, g = jax.value_and_grad(loss)(p, x, y)
        t = t + 1
        m = each(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = each(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        rate = 1e-4 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        return (each(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), p, m, v), m, v, t), value

    zeros = each(jnp.zeros_like, parameters)
    if optimizer == "momentum":
        state, step = (parameters, zeros), momentum
    else:
        state, step = (parameters, zeros, each(jnp.zeros_like, parameters), jnp.float32(0)), adam
    run = jax.jit(step, donate_argnums=0)

    def once():
        nonlocal state
        state, value = run(state, x, y)
        return float(value)

    return once
