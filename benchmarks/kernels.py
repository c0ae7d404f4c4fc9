"""Single kernels: matrix products, convolutions, and ops that are bound by memory."""

import numpy as np
import peers
from peers import Case, Table, timed

SQUARES = (64, 128, 256, 512, 1024, 2048, 4096)
# (rows, columns, depth) with constant weights. The names say outputs x positions x inputs of ResNet-50 and
# tokens x outputs x inputs of BERT-base.
PACKED = {
    "ResNet-50 64x3136x64": (3136, 64, 64), "ResNet-50 256x3136x64": (3136, 256, 64),
    "ResNet-50 128x784x512": (784, 128, 512), "ResNet-50 512x784x128": (784, 512, 128),
    "ResNet-50 256x196x1024": (196, 256, 1024), "ResNet-50 1024x196x256": (196, 1024, 256),
    "ResNet-50 512x49x2048": (49, 512, 2048), "ResNet-50 2048x49x512": (49, 2048, 512),
    "BERT 128x768x768": (128, 768, 768), "BERT 128x3072x768": (128, 3072, 768),
    "BERT 128x768x3072": (128, 768, 3072),
}  # fmt: skip
# inputs, outputs, size, kernel, stride, groups; bars forward and backward
CONVS = {
    "3x3 64 56x56": (64, 64, 56, 3, 1, 1, 0.5, 1.0),
    "3x3 128 28x28": (128, 128, 28, 3, 1, 1, 0.5, 1.0),
    "3x3 256 14x14": (256, 256, 14, 3, 1, 1, 0.6, 1.0),
    "3x3 512 7x7": (512, 512, 7, 3, 1, 1, 1.0, 1.0),
    "1x1 64-256 56x56": (64, 256, 56, 1, 1, 1, 0.95, 1.0),
    "1x1 512-128 28x28": (512, 128, 28, 1, 1, 1, 0.95, 1.0),
    "1x1 1024-256 14x14": (1024, 256, 14, 1, 1, 1, 0.95, 1.0),
    "1x1 512-2048 7x7": (512, 2048, 7, 1, 1, 1, 0.95, 1.0),
    "stem 7x7 s2 224x224": (3, 64, 224, 7, 2, 1, 1.0, 1.0),
    "3x3 s2 128 56x56": (128, 128, 56, 3, 2, 1, 1.0, 1.0),
    "depthwise 144 56x56": (144, 144, 56, 3, 1, 144, 0.9, 1.0),
    "depthwise 576 14x14": (576, 576, 14, 3, 1, 576, 0.9, 1.0),
}
SIZES = {"3 MB": (1024, 768), "64 MB": (16384, 1024)}
MEMORY_BARS = {
    "softmax": 0.5, "layer norm": 0.7, "gelu erf": 0.8, "gelu tanh": 0.8, "exp": 0.4, "transpose": 0.4,
}  # fmt: skip
random = np.random.default_rng(0)


def floats(*shape):
    return random.normal(size=shape).astype(np.float32)


def geometry(case):
    """(x, w, dy, stride, pad, groups) of a convolution."""
    inputs, outputs, size, kernel, stride, groups, *_ = CONVS[case]
    result = (size - 1) // stride + 1
    x, w = floats(1, inputs, size, size), floats(outputs, inputs // groups, kernel, kernel)
    return x, w, floats(1, outputs, result, result), stride, kernel // 2, groups


def conv_flops(case):
    inputs, outputs, size, kernel, stride, groups, *_ = CONVS[case]
    return 2.0 * outputs * ((size - 1) // stride + 1) ** 2 * (inputs // groups) * kernel**2


def quickest(candidates):
    """Of several ways that give the same result, the one that takes the least time here."""
    return min(candidates, key=lambda run: timed(run, 0.03))


# ---- Mycelia -----------------------------------------------------------------------------------------------


def mycelia(threads):
    import mycelia as ms

    ms.set_context(runtime_num_threads=threads)
    return ms


def squares_mycelia(threads):
    ms = mycelia(threads)

    def make(case):
        n = int(case)
        x, y = ms.Tensor(floats(n, n)), ms.Tensor(floats(n, n))
        return lambda: ms.ops.matmul(x, y)

    return make


def packed_mycelia(threads):
    ms = mycelia(threads)

    def make(case):
        rows, columns, depth = PACKED[case]
        net = ms.nn.Dense(depth, columns, has_bias=False).set_train(False)
        x, run = ms.Tensor(floats(rows, depth)), ms.jit(net)
        return lambda: run(x)

    return make


def device_convs(ms, case, only=None):
    """The kernels that compiled graphs use, on images with channels last, by direction. Weights are packed
    before forward, as for inference, and in each call for the data gradient, as a training step has to.

    `only`: this algorithm instead of the one that the backend chooses.
    """
    from mycelia.engine.ops.lowered import channels_last as last
    from mycelia.engine.ops.lowered.channels_last_grad import conv_last_input_grad, conv_last_weight_grad

    x, w, dy, stride, pad, groups = geometry(case)
    inputs, outputs, size, kernel = x.shape[1], w.shape[0], x.shape[2:], w.shape[2:]
    w = ms.Tensor(w)
    x, dy = (ms.Tensor(np.ascontiguousarray(a.transpose(0, 2, 3, 1))) for a in (x, dy))
    how = {"kernel": kernel, "stride": (stride,) * 2, "pad": (pad,) * 4, "group": groups}
    turned = {**how, "pad": tuple(k - 1 - pad for k in kernel * 2)}
    if only is None:
        from mycelia_backend_cpu.convolution import choose_convolution

    def algorithm(images, channels, window):
        return only or choose_convolution(images.shape, channels, **window, dilation=(1, 1), strict=False)

    def forward():
        name = algorithm(x, outputs, how)
        pack = last.conv_pack(w, algorithm=name, group=groups)
        return lambda: last.conv_last(x, pack, channels=outputs, algorithm=name, **how)

    def data():
        if stride > 1:
            name = "depthwise" if groups == inputs == outputs else "direct"
        else:
            name = algorithm(dy, inputs, turned)

        def run():
            pack = last.conv_pack(w, algorithm=name, group=groups, transposed=True)
            if stride > 1:
                return conv_last_input_grad(dy, pack, channels=inputs, size=size, algorithm=name, **how)
            return last.conv_last(dy, pack, channels=inputs, algorithm=name, **turned)

        return run

    def weights():
        name = only or ("winograd4" if has_winograd(case) else "direct")
        return lambda: conv_last_weight_grad(x, dy, algorithm=name, **how)

    return {"forward": forward, "data": data, "weights": weights}


def has_winograd(case):
    """Whether Winograd's transforms are a choice."""
    _, _, _, kernel, stride, groups, *_ = CONVS[case]
    return (kernel, stride, groups) == (3, 1, 1)


def convs_mycelia(threads):
    ms = mycelia(threads)

    def make(case):
        name, direction, *only = case.split(", ")
        return device_convs(ms, name, *only)[direction]()

    return make


def memory_mycelia(threads):
    ms = mycelia(threads)
    ops = ms.ops

    def make(case):
        name, size = case.rsplit(", ", 1)
        x = ms.Tensor(floats(*SIZES[size]))
        columns = SIZES[size][1]
        gamma, beta = ms.Tensor(np.ones(columns, np.float32)), ms.Tensor(np.zeros(columns, np.float32))
        return {
            "softmax": lambda: ops.softmax(x, -1),
            "layer norm": lambda: ops.layer_norm(x, (columns,), gamma, beta),
            "gelu erf": lambda: ops.gelu(x, approximate="none"),
            "gelu tanh": lambda: ops.gelu(x, approximate="tanh"),
            "exp": lambda: ops.exp(x),
            "transpose": lambda: ops.transpose(x, (1, 0)),
        }[name]

    return make


# ---- torch -------------------------------------------------------------------------------------------------


def torch_of(threads):
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return torch


def squares_torch(threads):
    torch = torch_of(threads)

    def make(case):
        x, y = (torch.from_numpy(floats(int(case), int(case))) for _ in range(2))
        out = torch.empty_like(x)
        return lambda: torch.mm(x, y, out=out)

    return make


def packed_torch(threads):
    torch = torch_of(threads)

    def make(case):
        rows, columns, depth = PACKED[case]
        x, w = torch.from_numpy(floats(rows, depth)), torch.from_numpy(floats(columns, depth))
        xt, wt, y, yt = (
            x.t().contiguous(), w.t().contiguous(), torch.empty(rows, columns), torch.empty(columns, rows),
        )  # fmt: skip
        return quickest([
            lambda: torch.mm(x, w.t(), out=y), lambda: torch.mm(x, wt, out=y), lambda: torch.mm(w, xt, out=yt)
        ])  # fmt: skip

    return make


def convs_torch(threads):
    torch = torch_of(threads)

    def make(case):
        name, direction, *_ = case.split(", ")
        x, w, dy, stride, pad, groups = geometry(name)

        def run(form):
            a, b, c = (torch.from_numpy(t).to(memory_format=form) for t in (x, w, dy))
            if direction == "forward":
                return lambda: torch.conv2d(a, b, None, stride, pad, 1, groups)
            mask = [direction == "data", direction == "weights", False]
            backward = torch.ops.aten.convolution_backward
            window = [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups
            return lambda: backward(c, a, b, None, *window, mask)

        return quickest([run(torch.contiguous_format), run(torch.channels_last)])

    return make


def memory_torch(threads):
    torch = torch_of(threads)
    aten = torch.ops.aten

    def make(case):
        name, size = case.rsplit(", ", 1)
        rows, columns = SIZES[size]
        x = torch.from_numpy(floats(rows, columns))
        gamma, beta = torch.ones(columns), torch.zeros(columns)
        # Memory for results is at hand, as Mycelia keeps freed blocks: no call waits for fresh pages.
        out, turned = torch.empty_like(x), torch.empty(columns, rows)
        saved = {"out1": torch.empty(rows, 1), "out2": torch.empty(rows, 1)}
        return {
            "softmax": lambda: torch.softmax(x, -1, out=out),
            "layer norm": lambda: aten.native_layer_norm.out(
                x, (columns,), gamma, beta, 1e-7, out0=out, **saved
            ),
            "gelu erf": lambda: aten.gelu.out(x, approximate="none", out=out),
            "gelu tanh": lambda: aten.gelu.out(x, approximate="tanh", out=out),
            "exp": lambda: torch.exp(x, out=out),
            "transpose": lambda: turned.copy_(x.t()),
        }[name]

    return make


# ---- OpenBLAS, oneDNN --------------------------------------------------------------------------------------


def squares_numpy(threads):
    def make(case):
        x, y = floats(int(case), int(case)), floats(int(case), int(case))
        out = np.empty_like(x)
        return lambda: np.matmul(x, y, out=out)

    return make


def packed_numpy(threads):
    def make(case):
        rows, columns, depth = PACKED[case]
        x, w = floats(rows, depth), floats(columns, depth)
        xt, wt = np.ascontiguousarray(x.T), np.ascontiguousarray(w.T)
        y, yt = np.empty((rows, columns), np.float32), np.empty((columns, rows), np.float32)
        return quickest([
            lambda: np.matmul(x, w.T, out=y), lambda: np.matmul(x, wt, out=y),
            lambda: np.matmul(w, xt, out=yt),
        ])  # fmt: skip

    return make


def packed_onednn(threads):
    import onednn

    def make(case):
        rows, columns, depth = PACKED[case]
        return onednn.conv(depth, columns, rows, 1, 1, 1, 0, "forward", 1)

    return make


def convs_onednn(threads):
    import onednn

    def make(case):
        name, direction, *_ = case.split(", ")
        inputs, outputs, size, kernel, stride, groups, *_ = CONVS[name]
        return onednn.conv(inputs, outputs, size, kernel, stride, groups, kernel // 2, direction)

    return make


NOTE = "CPU time on one core, median; percent of the multiply-add peak of the same minute."
TABLES = [
    Table(
        "Matrix product, squares",
        f"{NOTE} torch runs MKL, NumPy OpenBLAS.",
        [Case(str(n), "ms", (1.05,), 2.0 * n**3) for n in SQUARES],
        {"mycelia": squares_mycelia, "torch": squares_torch, "OpenBLAS": squares_numpy},
        rate="flops",
    ),
    Table(
        "Matrix product, constant weights",
        f"{NOTE} Each peer in the better orientation; oneDNN as a 1x1 convolution with packed weights.",
        [Case(name, "ms", (0.95,), 2.0 * np.prod(shape)) for name, shape in PACKED.items()],
        {"mycelia": packed_mycelia, "torch": packed_torch, "OpenBLAS": packed_numpy, "oneDNN": packed_onednn},
        rate="flops",
    ),
    Table(
        "Convolutions",
        f"{NOTE} Batch 1. Mycelia: the kernels and the algorithm that compiled graphs choose, for 3x3 and "
        "stride 1 among Winograd's and the direct one, which has rows of its own; data gradients pack the "
        "weights in each call. torch: the better of both layouts; oneDNN: its own blocked layout, direct, no "
        "reorders. "
        "FLOPs are those of the definition.",
        [
            Case(f"{name}, {direction}{only}", "ms", (shape[bar],) if not only else (), conv_flops(name))
            for name, shape in CONVS.items()
            for direction, bar in (("forward", 6), ("data", 7), ("weights", 7))
            for only in (("", ", direct") if has_winograd(name) else ("",))
        ],
        {"mycelia": convs_mycelia, "torch": convs_torch, "oneDNN": convs_onednn},
        rate="flops",
    ),
    Table(
        "Ops bound by memory",
        "CPU time on one core, median; bytes read and written against the rate of a copy of that size. "
        "torch writes into memory that it is given.",
        [
            Case(f"{name}, {size}", "ms", (bar if size == "3 MB" else 0.25,), 8.0 * np.prod(shape))
            for size, shape in SIZES.items()
            for name, bar in MEMORY_BARS.items()
        ],
        {"mycelia": memory_mycelia, "torch": memory_torch},
        rate="bytes",
    ),
]

if __name__ == "__main__":
    peers.main(__file__, TABLES)
