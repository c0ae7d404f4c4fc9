"""Faults planted in small trainings, and the tool that must name each at the right operator or step.

A fault changes a training as a bug would: a weight, a label, an attribute of a layer, a result on a device.
Its `find` runs the training and asks one tool; what that names must be `expected`, all of it and nothing
before it. `benchmarks/debug.py --faults` lists them, `tests/test_planted_faults.py` runs them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from faulty_trainings import (
    Fault,
    Training,
    checked_while_fused,
    diverges,
    first_not_finite,
    hits,
    lost_all_reduce,
    not_finite,
    on_device,
)

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops


class _Layer(nn.Cell):
    """A layer in the place of another, with a name of its own in scopes."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def construct(self, x):
        return self.function(x)


def _layer(function: Callable[[Tensor], Tensor]) -> dict[str, nn.Cell]:
    return {"tanh": _Layer(function)}


def _set(net: nn.Cell, name: str, value: Any) -> None:
    weight: Parameter = dict(net.parameters_and_names())[name]
    old = weight.asnumpy()
    new = value(old) if callable(value) else value
    weight.set_data(Tensor(np.broadcast_to(new, old.shape).astype(old.dtype).copy()))


def _at(step: int, name: str, value: Any) -> dict[str, Any]:
    """A weight that changes between two steps."""
    return {"between": lambda now, net: _set(net, name, value) if now == step else None}


def _weight(name: str, value: Any) -> dict[str, Any]:
    return {"change": lambda net: _set(net, name, value)}


def _swap(net: nn.Cell) -> None:
    first, second = (p.asnumpy().copy() for p in (net.fc2.weight, net.fc3.weight))
    net.fc2.weight.set_data(Tensor(second)), net.fc3.weight.set_data(Tensor(first))


def _images(step: int, change: Callable[[np.ndarray], np.ndarray]) -> dict[str, Any]:
    return {"data": lambda now, x, y: (change(x).astype(np.float32), y) if now == step else (x, y)}


def _labels(step: int, change: Callable[[np.ndarray], np.ndarray]) -> dict[str, Any]:
    return {"data": lambda now, x, y: (x, change(y).astype(np.int32)) if now == step else (x, y)}


def _with_element(x: np.ndarray, value: float) -> np.ndarray:
    x = x.copy()
    x.reshape(-1)[5] = value
    return x


def _stuck(x: np.ndarray, bit: int) -> np.ndarray:
    return (x.view(np.uint32) | np.uint32(1 << bit)).view(np.float32)


def _bfloat16(x: np.ndarray) -> np.ndarray:
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def _device_faults() -> Iterator[Fault]:
    """Those of the simulated device; none where `mycelia-backend-ascend-sim` is not installed."""
    try:
        from mycelia_backend_ascend_sim import faults
    except ModuleNotFoundError:
        return
    nan = lambda left, right: first_not_finite(left)
    yield Fault("dropped all-reduce", "mycelia-precision", lost_all_reduce(step=1, rank=0), "2 conv.weight")
    for name, fault, first, expected in (
        (
            "NaN in operator 2 of its type at step 1",
            faults.Nan("dense", index=2, step=1),
            nan,
            "1 Default/fc3-Dense/Dense-op0 nan",
        ),
        (
            "infinity in the first convolution at step 2",
            faults.Nan("conv", index=0, step=2, value=np.inf),
            nan,
            "2 Default/conv-Conv2d/Conv2D-op0 inf",
        ),
        (
            "NaN in a gradient at step 0",
            faults.Nan("gelu_grad", step=0),
            nan,
            "0 Gradients/Default/gelu-GELU/Grad_GeLU/GeLUGrad-op0 nan",
        ),
        (
            "stuck bit in a result",
            faults.StuckBit("relu", step=1, bit=22),
            None,
            "1 Default/relu-ReLU/ReLU-op0",
        ),
        (
            "stuck sign of a result",
            faults.StuckBit("tanh", step=0, bit=31),
            None,
            "0 Default/tanh-Tanh/Tanh-op0",
        ),
        (
            "NaN in the optimizer",
            faults.Nan("apply_momentum", index=1, step=1),
            nan,
            "1 Default/optimizer-Momentum/ApplyMomentum-op1 nan",
        ),
        (
            "infinity in the gradient of a normalization",
            faults.Nan("batch_norm_grad", step=1, value=-np.inf),
            nan,
            "1 Gradients/Default/norm-BatchNorm2d/Grad_BatchNorm/BatchNormGrad-op0 -inf",
        ),
    ):
        yield Fault(
            name, "mycelia-precision" if first is None else "mycelia-debug", on_device(fault, first), expected
        )
    halves = {"change": lambda net: net.to_float(ms.float16)}
    cut = on_device(faults.WrongRounding("dense", index=1, step=1), **halves)
    yield Fault("results cut instead of rounded", "mycelia-precision", cut, "1 Default/fc2-Dense/Dense-op0")


def _of_code() -> Iterator[Fault]:
    for name, function, expected in (
        ("logarithm of zero", lambda x: ops.log(ops.relu(x)), "0 Default/tanh-_Layer/Log-op0 -inf"),
        ("division by zero", lambda x: x / (x - x), "0 Default/tanh-_Layer/RealDiv-op0 inf"),
        ("root of what is negative", lambda x: ops.sqrt(x), "0 Default/tanh-_Layer/Sqrt-op0 nan"),
        ("exponential of large numbers", lambda x: ops.exp(x * 200.0), "0 Default/tanh-_Layer/Exp-op0 inf"),
        (
            "float16 overflow",
            lambda x: (x.astype(ms.float16) * 60000.0).astype(ms.float32) * 1e-6,
            "0 Default/tanh-_Layer/Mul-op0 inf",
        ),
        (
            "slope of the root at zero",
            lambda x: ops.sqrt(ops.relu(x)),
            "0 Gradients/Default/tanh-_Layer/Grad_Sqrt/RealDiv-op0 nan",
        ),
        ("power of what is negative", lambda x: ops.pow(x, 0.5), "0 Default/tanh-_Layer/Pow-op0 nan"),
    ):
        yield Fault(name, "mycelia-debug", not_finite(Training(net=_layer(function))), expected)


def wrong_fusion() -> Fault:
    """A rule of the compiler that loses an activation; ten trainings in processes of their own."""

    def find(folder: Path) -> str:
        script = Path(__file__).resolve().parent.parent / "examples" / "precision" / "find_the_fusion.py"
        done = subprocess.run(
            [sys.executable, script, "--output", folder],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return next((line for line in done.stdout.splitlines() if line.startswith("guilty: ")), "")

    return Fault("wrong fusion rule", "mycelia-precision bisect", find, "guilty: ub_matmul_bias_activation")


def clean() -> list[Fault]:
    """What the tools are asked of trainings without a fault: nothing may be named."""
    right = Training()
    watched = (
        ("tensor_all_zero", "-op", {}),
        ("weight_not_changed", "", {}),
        ("weight_initialization", "", {}),
        ("gradient_vanishing", "", {"abs_mean_lt": 1e-9}),
        ("gradient_too_large", "", {"abs_mean_gt": 1.0}),
        ("weight_change_too_large", "", {"abs_mean_update_ratio_gt": 1.0}),
        ("weight_change_too_small", ".weight", {}),
        ("tensor_range", "/GeLU-op", {"max_min_lt": 0.5}),
        (
            "activation_range",
            "Tanh",
            {"range_start_inclusive": -0.999999, "range_end_inclusive": 0.999999, "range_percentage_lt": 5.0},
        ),
    )
    return [
        Fault("clean", "mycelia-debug", not_finite(right), ""),
        Fault("clean", "mycelia-precision", diverges(right), ""),
        Fault("clean", "check_overflow", checked_while_fused(right), ""),
        *(
            Fault("clean", f"condition {name}", hits(right, name, which, **bounds), "")
            for name, which, bounds in watched
        ),
    ]


def planted() -> list[Fault]:
    """All of them."""
    debugged = (
        ("NaN in a batch", Training(**_images(1, lambda x: _with_element(x, np.nan))), "1 inputs0 nan"),
        (
            "infinity in a weight",
            Training(**_at(2, "fc2.weight", lambda w: _with_element(w, np.inf))),
            "2 fc2.weight inf",
        ),
        (
            "learning rate that diverges",
            Training(learning_rate=1e30),
            "1 Default/norm-BatchNorm2d/BatchNorm-op0 inf",
        ),
    )
    compared = (
        ("swapped weights", Training(change=_swap), "0 fc2.weight"),
        ("transposed weight", Training(**_weight("fc3.weight", lambda w: w.T)), "0 fc3.weight"),
        ("weight that was not loaded", Training(**_weight("head.weight", 0.0)), "0 head.weight"),
        ("sign of a weight", Training(**_weight("fc1.weight", lambda w: -w)), "0 fc1.weight"),
        ("weight cut to bfloat16", Training(**_at(1, "fc3.weight", _bfloat16)), "1 fc3.weight"),
        (
            "stuck bit in a weight",
            Training(**_at(2, "conv.weight", lambda w: _stuck(w, 20))),
            "2 conv.weight",
        ),
        ("lost statistics", Training(**_at(2, "norm.moving_mean", 0.0)), "2 norm.moving_mean"),
        ("lost momentum", Training(momentum=0.8), "0 momentum"),
        ("another learning rate", Training(learning_rate=0.021), "0 learning_rate"),
        ("labels shifted by one sample", Training(**_labels(1, lambda y: np.roll(y, 1))), "1 inputs1"),
        ("labels counted from one", Training(**_labels(0, lambda y: np.minimum(y + 1, 2))), "0 inputs1"),
        ("images not normalized", Training(**_images(0, lambda x: 255 * x)), "0 inputs0"),
        ("channels in another order", Training(**_images(1, lambda x: x[:, ::-1])), "1 inputs0"),
        ("a sample twice", Training(**_images(2, lambda x: x[[0, 0, 2, 3, 4, 5, 6, 7]])), "2 inputs0"),
        ("another epsilon", Training(net={"epsilon": 1e-5}), "0 Default/norm-BatchNorm2d/BatchNorm-op0"),
        ("another slope", Training(net={"slope": 0.01}), "0 Default/leaky-LeakyReLU/LeakyReLU-op0"),
        ("another formula of GELU", Training(net={"approximate": False}), "0 Default/gelu-GELU/GeLU-op0"),
        (
            "padding on the wrong side",
            Training(net={"padding": (2, 0, 2, 0)}),
            "0 Default/conv-Conv2d/Conv2D-op0",
        ),
    )
    every = "1 conv.weight; 1 fc1.weight; 1 fc2.weight; 1 fc3.weight; 1 head.weight"
    slope_of_tanh = "Gradients/Default/tanh-Tanh/Grad_Tanh/TanhGrad-op0"
    small, large = {"abs_mean_lt": 1e-9}, {"abs_mean_gt": 1.0}
    watched = (
        (
            "dead layer",
            Training(**_weight("fc3.bias", -100.0)),
            "tensor_all_zero",
            "/ReLU-op",
            {},
            "0 Default/relu-ReLU/ReLU-op0; 1 Default/relu-ReLU/ReLU-op0; 2 Default/relu-ReLU/ReLU-op0",
        ),
        (
            "missing gradient",
            Training(frozen="fc2"),
            "weight_not_changed",
            "",
            {},
            "1 fc2.weight; 1 fc2.bias; 2 fc2.weight; 2 fc2.bias",
        ),
        (
            "layer cut off from the loss",
            Training(net={"gelu": _Layer(lambda x: ops.stop_gradient(ops.gelu(x)))}),
            "weight_not_changed",
            ".weight",
            {},
            "1 conv.weight; 1 fc1.weight; 2 conv.weight; 2 fc1.weight",
        ),
        (
            "weights that begin as zero",
            Training(**_weight("fc3.weight", 0.0)),
            "weight_initialization",
            "",
            {},
            "0 fc3.weight",
        ),
        (
            "vanishing gradient",
            Training(**_at(1, "fc2.bias", 50.0)),
            "gradient_vanishing",
            "TanhGrad",
            small,
            f"1 {slope_of_tanh}; 2 {slope_of_tanh}",
        ),
        (
            "exploding gradient",
            Training(**_at(2, "head.weight", lambda w: 1e4 * w)),
            "gradient_too_large",
            "head",
            large,
            "2 Gradients/Default/head-Dense/Grad_Dense/MatMul-op0",
        ),
        (
            "saturated activation",
            Training(**_at(1, "fc2.weight", lambda w: 1e6 * w)),
            "activation_range",
            "Tanh",
            {"range_start_inclusive": -0.999999, "range_end_inclusive": 0.999999, "range_percentage_lt": 5.0},
            "1 Default/tanh-Tanh/Tanh-op0; 2 Default/tanh-Tanh/Tanh-op0",
        ),
        (
            "steps that are too long",
            Training(learning_rate=50.0, steps=2),
            "weight_change_too_large",
            ".weight",
            {"abs_mean_update_ratio_gt": 1.0},
            every,
        ),
        (
            "steps that are too short",
            Training(learning_rate=1e-9, steps=2),
            "weight_change_too_small",
            ".weight",
            {},
            every,
        ),
        (
            "collapsed features",
            Training(**_weight("fc1.weight", 0.0)),
            "tensor_range",
            "/GeLU-op",
            {"max_min_lt": 0.5},
            "0 Default/gelu-GELU/GeLU-op0; 1 Default/gelu-GELU/GeLU-op0; 2 Default/gelu-GELU/GeLU-op0",
        ),
    )
    fused = Training(net=_layer(lambda x: ops.log(ops.relu(x) * 0.5)))
    return [
        *_of_code(),
        *(Fault(name, "mycelia-debug", not_finite(t), expected) for name, t, expected in debugged),
        *(Fault(name, "mycelia-precision", diverges(t), expected) for name, t, expected in compared),
        *(
            Fault(name, f"condition {c}", hits(t, c, which, **bounds), expected)
            for name, t, c, which, bounds, expected in watched
        ),
        Fault(
            "NaN in a fused operator",
            "check_overflow",
            checked_while_fused(fused),
            "Default/tanh-_Layer/FusedMap-op57 of ReLU, Mul, Log",
        ),
        *_device_faults(),
    ]
