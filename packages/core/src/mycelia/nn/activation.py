"""Activation layers: each calls the op of its name."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import float32
from mycelia.engine.ops.elementwise import activation as _activation
from mycelia.engine.ops.elementwise import gelu as _gelu
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import rectifiers as _rectifiers
from mycelia.engine.ops.reductions import softmaxes as _softmaxes
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.nn.cell import Cell


def _layer(name: str, function, doc: str) -> type[Cell]:
    """A layer without parameters or settings."""

    def construct(self, x):
        return function(x)

    return type(
        name, (Cell,), {"construct": construct, "__doc__": doc, "__module__": __name__, "__qualname__": name}
    )


ReLU = _layer("ReLU", _rectifiers.relu, "``max(x, 0)``. Shapes: any -> same.")
ReLU6 = _layer("ReLU6", _rectifiers.relu6, "``min(max(x, 0), 6)``. Shapes: any -> same.")
Sigmoid = _layer("Sigmoid", _activation.sigmoid, "``1 / (1 + exp(-x))``. Shapes: any -> same.")
LogSigmoid = _layer("LogSigmoid", _activation.logsigmoid, "``log(sigmoid(x))``. Shapes: any -> same.")
Tanh = _layer("Tanh", _math.tanh, "Hyperbolic tangent. Shapes: any -> same.")
Tanhshrink = _layer("Tanhshrink", _activation.tanhshrink, "``x - tanh(x)``. Shapes: any -> same.")
SiLU = _layer("SiLU", _activation.silu, "``x * sigmoid(x)``. Shapes: any -> same.")
Mish = _layer("Mish", _activation.mish, "``x * tanh(softplus(x))``. Shapes: any -> same.")
Softsign = _layer("Softsign", _activation.softsign, "``x / (1 + |x|)``. Shapes: any -> same.")
HSigmoid = _layer("HSigmoid", _rectifiers.hardsigmoid, "``clip(x + 3, 0, 6) / 6``. Shapes: any -> same.")
HSwish = _layer("HSwish", _rectifiers.hardswish, "``x * hardsigmoid(x)``. Shapes: any -> same.")
FastGelu = _layer("FastGelu", _gelu.fast_gelu, "A quick approximation of GELU. Shapes: any -> same.")
SeLU = _layer(
    "SeLU",
    _activation.selu,
    "Self-normalizing exponential unit (Klambauer et al. 2017). Shapes: any -> same.",
)


class GELU(Cell):
    """``x * Phi(x)``; the tanh form with `approximate`. Shapes: any -> same."""

    def __init__(self, approximate: bool = True):
        super().__init__()
        if not isinstance(approximate, bool):
            raise errors.type_error("GELU", f"approximate must be a bool, but got {approximate!r}")
        self.approximate = approximate

    def construct(self, x):
        return _gelu.gelu(x, "tanh" if self.approximate else "none")


class LeakyReLU(Cell):
    """``x`` where positive, else ``alpha * x``. Shapes: any -> same."""

    def __init__(self, alpha: float = 0.2):
        super().__init__()
        self.alpha = alpha

    def construct(self, x):
        return _rectifiers.leaky_relu(x, self.alpha)


class ELU(Cell):
    """``x`` where positive, else ``alpha * (exp(x) - 1)``. Shapes: any -> same."""

    def __init__(self, alpha: float = 1.0):
        super().__init__()
        self.alpha = alpha

    def construct(self, x):
        return _activation.elu(x, self.alpha)


class CELU(Cell):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``. Shapes: any -> same."""

    def __init__(self, alpha: float = 1.0):
        super().__init__()
        self.alpha = alpha

    def construct(self, x):
        return _activation.celu(x, self.alpha)


class PReLU(Cell):
    """Leaky ReLU with a learned slope per channel (axis 1), or one for all. Shapes: any -> same."""

    def __init__(self, channel: int = 1, w=0.25):
        super().__init__()
        if isinstance(channel, bool) or not isinstance(channel, int) or channel < 1:
            raise errors.value_error("PReLU", f"channel must be a positive int, but got {channel!r}")
        if isinstance(w, Tensor):
            slope = w
        else:
            values = np.broadcast_to(np.asarray(w, np.float32), (channel,))
            slope = Tensor(values, float32)
        self.w = Parameter(slope, name="a")

    def construct(self, x):
        return _rectifiers.prelu(x, self.w)


class RReLU(Cell):
    """Leaky ReLU with random slopes from [lower, upper] in training,
    their mean otherwise. Shapes: any -> same.
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3):
        super().__init__()
        if lower > upper:
            raise errors.value_error("RReLU", f"lower must be at most upper, but got {lower} and {upper}")
        self.lower, self.upper = lower, upper

    def construct(self, x):
        from mycelia.engine.ops.random.random import rrelu

        return rrelu(x, self.lower, self.upper)


class GLU(Cell):
    """``a * sigmoid(b)`` of the two halves along `axis`. Shapes: [..., 2n, ...] -> [..., n, ...]."""

    def __init__(self, axis: int = -1):
        super().__init__()
        self.axis = axis

    def construct(self, x):
        return _activation.glu(x, self.axis)


class Softmax(Cell):
    """Normalized exponentials along `axis`. Shapes: any -> same."""

    def __init__(self, axis: int = -1):
        super().__init__()
        self.axis = axis

    def construct(self, x):
        return _softmaxes.softmax(x, self.axis)


class Softmax2d(Cell):
    """Softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def construct(self, x):
        return _softmaxes.softmax(x, -3)


class Softmin(Cell):
    """Softmax of ``-x`` along `axis`. Shapes: any -> same."""

    def __init__(self, axis: int = -1):
        super().__init__()
        self.axis = axis

    def construct(self, x):
        return _softmaxes.softmax(_math.neg(x), self.axis)


class LogSoftmax(Cell):
    """Logarithm of softmax along `axis`. Shapes: any -> same."""

    def __init__(self, axis: int = -1):
        super().__init__()
        self.axis = axis

    def construct(self, x):
        return _softmaxes.log_softmax(x, self.axis)


class Hardtanh(Cell):
    """Limit to [min_val, max_val]. Shapes: any -> same."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0):
        super().__init__()
        if min_val >= max_val:
            raise errors.value_error(
                "Hardtanh", f"min_val must be less than max_val, but got {min_val} and {max_val}"
            )
        self.min_val, self.max_val = min_val, max_val

    def construct(self, x):
        return _rectifiers.hardtanh(x, self.min_val, self.max_val)


class HShrink(Cell):
    """Zero within [-lambd, lambd], else ``x``. Shapes: any -> same."""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def construct(self, x):
        return _rectifiers.hardshrink(x, self.lambd)


class SoftShrink(Cell):
    """Shrink towards zero by `lambd`. Shapes: any -> same."""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def construct(self, x):
        return _rectifiers.softshrink(x, self.lambd)


class Threshold(Cell):
    """``x`` where above `threshold`, else `value`. Shapes: any -> same."""

    def __init__(self, threshold: float, value: float):
        super().__init__()
        self.threshold, self.value = threshold, value

    def construct(self, x):
        return _rectifiers.threshold(x, self.threshold, self.value)


_BY_NAME = {
    "softmin": Softmin, "softmax": Softmax, "softmax2d": Softmax2d, "logsoftmax": LogSoftmax, "relu": ReLU,
    "relu6": ReLU6, "rrelu": RReLU, "silu": SiLU, "tanh": Tanh, "tanhshrink": Tanhshrink,
        "hardtanh": Hardtanh,
    "gelu": GELU, "fast_gelu": FastGelu, "elu": ELU, "sigmoid": Sigmoid, "softsign": Softsign, "prelu": PReLU,
    "leakyrelu": LeakyReLU, "hswish": HSwish, "hsigmoid": HSigmoid, "logsigmoid": LogSigmoid,
        "softshrink": SoftShrink,
    "hshrink": HShrink, "threshold": Threshold, "mish": Mish,
}  # fmt: skip


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """The activation layer called `name`, or None for None. Raises KeyError naming the ones there are."""
    if name is None:
        return None
    if name not in _BY_NAME:
        where = prim_name or "get_activation"
        raise errors.error(
            errors.MyceliaKeyError, where, f"activation must be one of {sorted(_BY_NAME)}, but got {name!r}"
        )
    return _BY_NAME[name]()
