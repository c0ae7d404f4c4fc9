"""Kernels of 16-bit floats against those of float32, on about a million elements: which take too long.

half_kernels.py [--all] [PART ...]: cases whose name contains a PART; without --all only those above the bar,
and the ops that no case is for. Prints only: the table of half.py has what networks are made of.
"""

import sys

import half
import numpy as np

import mycelia as ms
from mycelia.backends import registry
from mycelia.ops.define import find
from mycelia.testing.samples import all_samples

BAR = 1.3
RANDOM = half.RANDOM
SQUARE, IMAGES = (1024, 1024), (16, 64, 32, 32)
ELEMENTWISE = (
    ".elementwise.",
    ".lowered.rounded",
    "nn_ops.optim",
    "nn_ops.adaptive_optim",
    "control_flow.state",
)


def numbers(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def positive(*shape):
    return np.abs(numbers(*shape)) + np.float32(0.1)


def places(most, *shape):
    return RANDOM.integers(0, most, shape)


def of_one_shape():
    """Cases of the ops whose first sample has tensors of one shape: the same with large ones."""
    kernels = registry.load("cpu").narrow
    seen = set()
    for sample in all_samples():
        name, module = sample.op.name, sample.op.definition.body.__module__
        shapes = {a.shape for a in sample.args if isinstance(a, np.ndarray) and a.size > 1}
        if name in kernels and name not in seen and any(part in module for part in ELEMENTWISE):
            seen.add(name)
            full = [isinstance(a, np.ndarray) and a.shape in shapes for a in sample.args]
            args = [np.tanh(positive(*SQUARE)) if is_full else a for is_full, a in zip(full, sample.args)]
            yield name, args, sample.attrs


def reductions():
    x = np.abs(numbers(*SQUARE)) * np.float32(0.1) + 1
    for name in ("sum", "mean", "prod", "reduce_max", "reduce_min", "l2_norm"):
        axis = "dim" if name == "sum" else "axis"
        for shape, axes in [
            (SQUARE, None),
            (SQUARE, (0,)),
            (SQUARE, (1,)),
            ((131072, 8), (1,)),
            ((131072, 8), (0,)),
        ]:
            yield name, [x.reshape(shape)], {axis: axes}
    for name in ("argmax", "argmin", "max_with_index", "min_with_index", "cumsum", "cumprod"):
        for shape, at in [(SQUARE, 0), (SQUARE, 1), ((16384, 64), 1)]:
            yield name, [x.reshape(shape)], {"axis": at}
    for name in ("softmax", "log_softmax", "softmax_grad", "log_softmax_grad"):
        for shape, at in [(SQUARE, 0), (SQUARE, 1), ((16384, 64), 1)]:
            yield name, [x.reshape(shape)] * (1 + name.endswith("grad")), {"axis": at}
    yield "sum_to", [x], {"shape": (1024,)}
    yield "place_along", [numbers(1024, 1), places(1024, 1024, 1)], {"axis": 1, "length": 1024}
    yield "sort", [numbers(1024, 256)], {}
    yield "topk", [numbers(1024, 256)], {"k": 5}


def norms_and_losses():
    n, c = IMAGES[:2]
    for shape, more in [(IMAGES, {}), ((n, 32, 32, c), {"data_format": "NHWC"})]:
        x, dy, one, var = numbers(*shape), numbers(*shape), numbers(c), positive(c)
        yield "batch_norm_infer", [x, one, one, one, var], more
        yield "batch_norm_train", [one, var, x, one, one], more
        yield "batch_norm_act_train", [one, var, x, one, one, dy], {"activation": "relu", **more}
        yield "batch_norm_grad", [dy, x, one, one, var], more
        yield "batch_norm_act_grad", [dy, x, one, one, one, var], more
    for rows, width in [(1024, 1024), (16384, 64)]:
        x, dy, one = numbers(rows, width), numbers(rows, width), numbers(width)
        mean, std = numbers(rows, 1), positive(rows, 1)
        yield "layer_norm", [x, one, one], {}
        yield "layer_norm_grad", [dy, x, mean, std, one], {}
        yield "rms_norm", [x, one], {}
        yield "rms_norm_grad", [dy, x, one, std], {}
    x, dy, one = numbers(*IMAGES), numbers(*IMAGES), numbers(c)
    yield "group_norm", [x, one, one], {"num_groups": 8}
    yield "group_norm_grad", [dy, x, numbers(n, 8), positive(n, 8), one], {"num_groups": 8}
    x, y = numbers(*SQUARE), positive(*SQUARE)
    yield "sparse_softmax_cross_entropy_with_logits", [x, places(1024, 1024)], {}
    for name in ("softmax_cross_entropy_with_logits", "sigmoid_cross_entropy_with_logits", "squared_error"):
        yield name, [x, y], {}
    yield "squared_error_grad", [np.float32(1), x, y], {}
    yield "dropout", [x, np.array([3, 4])], {"p": 0.5}


def images():
    x, dy = numbers(*IMAGES), numbers(16, 64, 16, 16)
    halves = {"kernel": (2, 2), "stride": (2, 2)}
    yield "max_pool", [x], {**halves, "pad": (0,)}
    yield "max_pool_grad", [x, dy], {**halves, "pad": (0,)}
    yield "max_pool_index", [x], {**halves, "pad": (0,)}
    yield "avg_pool", [x], halves
    yield "avg_pool_grad", [dy], {**halves, "size": (32, 32)}
    for name in ("adaptive_max_pool", "adaptive_max_pool_index", "adaptive_avg_pool"):
        yield name, [x], {"size": (7, 7)}
    yield "adaptive_avg_pool_grad", [numbers(16, 64, 7, 7)], {"size": (32, 32)}
    yield "pool_take", [x, places(1024, 16, 64, 16, 16)], {}
    yield "pool_scatter", [dy, places(1024, 16, 64, 16, 16)], {"size": (32, 32)}
    yield "bias_add", [x, numbers(64)], {}
    x = numbers(4, 64, 32, 32)
    for side, group in [(3, 1), (1, 1), (3, 64)]:
        w, more = numbers(64, 64 // group, side, side), {"pad": (side // 2,) * 4, "group": group}
        yield "conv", [x, w, None], more
        yield "conv_input_grad", [x, w], {"size": (32, 32), **more}
        yield "conv_weight_grad", [x, x], {"kernel": (side, side), **more}


def products():
    for m, n, k in [(256, 256, 256), (1, 1024, 1024), (16, 1024, 1024), (16384, 16, 64), (1024, 1024, 16)]:
        yield "mat_mul", [numbers(m, k), numbers(k, n)], {}
        yield "dense", [numbers(m, k), numbers(n, k), numbers(n)], {}
    for count, side in [(16, 128), (256, 32)]:
        yield "batch_matmul", [numbers(count, side, side)] * 2, {}
    yield "attention", [numbers(1, 8, 256, 64)] * 3, {"scale": 0.1}
    for name, gates in [("lstm_layer", 4), ("gru_layer", 3), ("rnn_layer", 1)]:
        states = [numbers(16, 128)] * (2 if gates == 4 else 1)
        weights = [numbers(gates * 128, 128) * np.float32(0.1)] * 2 + [numbers(gates * 128)] * 2
        yield name, [numbers(32, 16, 128), *states, *weights], {}


def converted(value, dtype):
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    tensor = ms.Tensor(np.asarray(value))
    return tensor.astype(dtype) if tensor.dtype is ms.float32 else tensor


def main() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE, runtime_num_threads=1)
    parts = [a for a in sys.argv[1:] if a != "--all"]
    missing = set(registry.load("cpu").narrow)
    for make in (of_one_shape, reductions, norms_and_losses, images, products):
        for name, args, attrs in make():
            missing.discard(name)
            shapes = " ".join(str(a.shape) for a in args if isinstance(a, np.ndarray))
            title = f"{name} {shapes} {attrs or ''}"
            if (parts and not any(part in title for part in parts)) or name.startswith("round_"):
                continue  # roundings take float32 alone
            op, calls = find(name), []
            for dtype in (ms.float32, ms.float16, ms.bfloat16):
                tensors = [converted(a, dtype) for a in args]
                calls.append(((lambda *a, op=op, attrs=attrs: op(*a, **attrs)), tensors))
            milliseconds, *ratios = half.ratios(calls[0], calls[1:])
            if max(ratios) > BAR or "--all" in sys.argv:
                print(f"{milliseconds:8.3f} ms  {ratios[0]:.2f}  {ratios[1]:.2f}  {title[:80]}", flush=True)
    if not parts:
        print("no case:", *sorted(missing))


if __name__ == "__main__":
    main()
