"""Parameter initializers: MindSpore's classes, names and formulas.

Each fills a NumPy array in place. Random ones draw from a Philox stream that follows `set_seed`: the same
seed gives the same weights, in the order the parameters are made.
"""

from __future__ import annotations

import math

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import config, dtypes, errors

Tensor = _C.Tensor

__all__ = [
    "Constant", "Dirac", "HeNormal", "HeUniform", "Identity", "Initializer", "Normal", "One", "Orthogonal",
        "Sparse",
    "TruncatedNormal", "Uniform", "VarianceScaling", "XavierNormal", "XavierUniform", "Zero", "initializer",
]  # fmt: skip


class _Stream:
    """The random stream of the initializers; `set_seed` starts it anew.

    Without a seed NumPy's global stream gives one to each. It goes on by one number in any case, as in
    MindSpore: what a script draws from it after it made a network is the same there and here.
    """

    generator: np.random.Generator | None = None
    has_seed = False

    @classmethod
    def restart(cls, seed: int | None) -> None:
        cls.generator = np.random.Generator(np.random.Philox(seed))
        cls.has_seed = seed is not None

    @classmethod
    def begin(cls) -> None:
        """Prepare the stream for one initialization."""
        drawn = int(np.random.randint(1, 1 << 63))
        if not cls.has_seed:
            cls.generator = np.random.Generator(np.random.Philox(drawn))


config.on_change("seed", _Stream.restart)


def _fans(shape: tuple[int, ...]) -> tuple[float, float]:
    """(fan_in, fan_out) of a weight [out, in, spatial...]. Raises ValueError below rank 2."""
    if len(shape) < 2:
        raise errors.value_error(
            "initializer",
            f"fan in and fan out need a weight of rank 2 or more, but its shape is {list(shape)}",
        )
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def _gain(nonlinearity: str, slope: float) -> float:
    """The factor that keeps the variance through an activation (He et al. 2015)."""
    simple = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2)}
    simple.update(
        dict.fromkeys(
            ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 1.0
        )
    )
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in simple:
        raise errors.one_of(nonlinearity, [*simple, "leaky_relu"], subject="initializer", what="nonlinearity")
    return simple[nonlinearity]


def _he_fan(shape: tuple[int, ...], mode: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise errors.value_error("initializer", f"mode must be 'fan_in' or 'fan_out', but got {mode!r}")
    return _fans(shape)[mode == "fan_out"]


def _truncated(shape, sigma: float, mean: float, low: float, high: float) -> np.ndarray:
    """Normal values in [low, high], by rejection: from the normal when it mostly falls
    inside, else from the uniform.
    """
    from_normal = low <= mean <= high and high - low > 2 * sigma
    nearest = min(max(mean, low), high)
    values = np.empty(math.prod(shape))
    filled = 0
    while filled < values.size:
        count = 2 * (values.size - filled) + 16
        if from_normal:
            drawn = _Stream.generator.normal(mean, sigma, count)
            drawn = drawn[(drawn >= low) & (drawn <= high)]
        else:
            drawn = _Stream.generator.uniform(low, high, count)
            log_density = ((nearest - mean) ** 2 - (drawn - mean) ** 2) / (2 * sigma**2)
            drawn = drawn[np.log(_Stream.generator.uniform(size=count)) < log_density]
        drawn = drawn[: values.size - filled]
        values[filled : filled + drawn.size] = drawn
        filled += drawn.size
    return values.reshape(shape)


class Initializer:
    """Base class: ``__call__(array)`` fills a NumPy array in place."""

    def __init__(self, **kwargs):
        self._kwargs = kwargs

    def __call__(self, arr: np.ndarray) -> None:
        self._initialize(arr)  # MindSpore's name of it, which initializers of users define

    def _initialize(self, arr: np.ndarray) -> None:
        raise errors.error(errors.NotSupportedError, type(self).__name__, "_initialize(array) is not defined")


class Zero(Initializer):
    """All zeros."""

    def __call__(self, arr):
        arr[...] = 0


class One(Initializer):
    """All ones."""

    def __call__(self, arr):
        arr[...] = 1


class Constant(Initializer):
    """All `value`: a number, or an array that broadcasts."""

    def __init__(self, value):
        super().__init__(value=value)
        self.value = value

    def __call__(self, arr):
        arr[...] = self.value


class Uniform(Initializer):
    """Uniform in [-scale, scale)."""

    def __init__(self, scale: float = 0.07):
        super().__init__(scale=scale)
        self.scale = scale

    def __call__(self, arr):
        arr[...] = _Stream.generator.uniform(-self.scale, self.scale, arr.shape)


class Normal(Initializer):
    """Normal with standard deviation `sigma` and `mean`."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0):
        super().__init__(sigma=sigma, mean=mean)
        self.sigma, self.mean = sigma, mean

    def __call__(self, arr):
        arr[...] = _Stream.generator.normal(self.mean, self.sigma, arr.shape)


class TruncatedNormal(Initializer):
    """Normal values of standard deviation `sigma` and `mean` that lie in [a, b].
    Raises ValueError unless a < b.
    """

    def __init__(self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0):
        super().__init__(sigma=sigma, mean=mean, a=a, b=b)
        if not a < b:
            raise errors.value_error("TruncatedNormal", f"a must be less than b, but got a={a}, b={b}")
        self.sigma, self.mean, self.a, self.b = sigma, mean, a, b

    def __call__(self, arr):
        arr[...] = _truncated(arr.shape, self.sigma, self.mean, self.a, self.b)


class XavierUniform(Initializer):
    """Uniform with bound ``gain * sqrt(6 / (fan_in + fan_out))`` (Glorot and Bengio 2010)."""

    def __init__(self, gain: float = 1):
        super().__init__(gain=gain)
        self.gain = gain

    def __call__(self, arr):
        bound = self.gain * math.sqrt(6 / sum(_fans(arr.shape)))
        arr[...] = _Stream.generator.uniform(-bound, bound, arr.shape)


class XavierNormal(Initializer):
    """Normal with standard deviation ``gain * sqrt(2 / (fan_in + fan_out))`` (Glorot and Bengio 2010)."""

    def __init__(self, gain: float = 1):
        super().__init__(gain=gain)
        self.gain = gain

    def __call__(self, arr):
        arr[...] = _Stream.generator.normal(0, self.gain * math.sqrt(2 / sum(_fans(arr.shape))), arr.shape)


class HeUniform(Initializer):
    """Uniform with bound ``gain * sqrt(3 / fan)`` (He et al. 2015)."""

    def __init__(self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"):
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def __call__(self, arr):
        fan = _he_fan(arr.shape, self.mode)
        bound = _gain(self.nonlinearity, self.negative_slope) * math.sqrt(3 / fan) if fan else 0.0
        arr[...] = _Stream.generator.uniform(-bound, bound, arr.shape)


class HeNormal(Initializer):
    """Normal with standard deviation ``gain / sqrt(fan)`` (He et al. 2015)."""

    def __init__(self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"):
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def __call__(self, arr):
        fan = _he_fan(arr.shape, self.mode)
        sigma = _gain(self.nonlinearity, self.negative_slope) / math.sqrt(fan) if fan else 0.0
        arr[...] = _Stream.generator.normal(0, sigma, arr.shape)


class Identity(Initializer):
    """The identity matrix. Raises ValueError unless the rank is 2."""

    def __call__(self, arr):
        if arr.ndim != 2:
            raise errors.value_error(
                "Identity", f"the weight must have rank 2, but its shape is {list(arr.shape)}"
            )
        arr[...] = np.eye(*arr.shape)


class Sparse(Initializer):
    """Normal values of standard deviation `sigma`;
    in each column the share `sparsity` of the rows is zero.
    """

    def __init__(self, sparsity: float, sigma: float = 0.01):
        super().__init__(sparsity=sparsity, sigma=sigma)
        self.sparsity, self.sigma = sparsity, sigma

    def __call__(self, arr):
        if arr.ndim != 2:
            raise errors.value_error(
                "Sparse", f"the weight must have rank 2, but its shape is {list(arr.shape)}"
            )
        rows, columns = arr.shape
        zeros = math.ceil(self.sparsity * rows)
        arr[...] = _Stream.generator.normal(0, self.sigma, arr.shape)
        for column in range(columns):
            arr[_Stream.generator.permutation(rows)[:zeros], column] = 0


class Dirac(Initializer):
    """Convolution weights that pass the input channels through.
    Raises ValueError unless the rank is 3, 4 or 5.
    """

    def __init__(self, groups: int = 1):
        super().__init__(groups=groups)
        self.groups = groups

    def __call__(self, arr):
        if arr.ndim not in (3, 4, 5):
            raise errors.value_error(
                "Dirac", f"the weight must have rank 3, 4 or 5, but its shape is {list(arr.shape)}"
            )
        if arr.shape[0] % self.groups:
            raise errors.value_error(
                "Dirac", f"{arr.shape[0]} output channels cannot be split into {self.groups} groups"
            )
        arr[...] = 0
        per_group = arr.shape[0] // self.groups
        middle = tuple(n // 2 for n in arr.shape[2:])
        for group in range(self.groups):
            for channel in range(min(per_group, arr.shape[1])):
                arr[(group * per_group + channel, channel, *middle)] = 1


class Orthogonal(Initializer):
    """A (semi-)orthogonal matrix times `gain`, trailing dimensions flattened (Saxe et al. 2013)."""

    def __init__(self, gain: float = 1.0):
        super().__init__(gain=gain)
        self.gain = gain

    def __call__(self, arr):
        if arr.ndim < 2:
            raise errors.value_error(
                "Orthogonal", f"the weight must have rank 2 or more, but its shape is {list(arr.shape)}"
            )
        rows, columns = arr.shape[0], math.prod(arr.shape[1:])
        values = _Stream.generator.normal(size=(rows, columns))
        q, r = np.linalg.qr(values.T if rows < columns else values)
        q *= np.sign(np.diag(r))
        arr[...] = self.gain * (q.T if rows < columns else q).reshape(arr.shape)


class VarianceScaling(Initializer):
    """Variance ``scale / fan``, with `distribution` 'uniform', 'truncated_normal' or 'untruncated_normal'."""

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal"):
        super().__init__(scale=scale, mode=mode, distribution=distribution)
        if scale <= 0:
            raise errors.value_error("VarianceScaling", f"scale must be positive, but got {scale}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise errors.one_of(
                mode, ["fan_in", "fan_out", "fan_avg"], subject="VarianceScaling", what="mode"
            )
        if distribution not in ("uniform", "truncated_normal", "untruncated_normal"):
            raise errors.one_of(
                distribution,
                ["uniform", "truncated_normal", "untruncated_normal"],
                subject="VarianceScaling",
                what="distribution",
            )
        self.scale, self.mode, self.distribution = scale, mode, distribution

    def __call__(self, arr):
        fan_in, fan_out = _fans(arr.shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "truncated_normal":
            # 0.8796...: standard deviation of a standard normal cut at +-2, so that the variance comes out
            # right
            sigma = math.sqrt(variance) / 0.87962566103423978
            arr[...] = sigma * _truncated(arr.shape, 1.0, 0.0, -2, 2)
        elif self.distribution == "untruncated_normal":
            arr[...] = _Stream.generator.normal(0, math.sqrt(variance), arr.shape)
        else:
            bound = math.sqrt(3 * variance)
            arr[...] = _Stream.generator.uniform(-bound, bound, arr.shape)


_RANDOM = (
    Uniform, Normal, TruncatedNormal, XavierUniform, XavierNormal, HeUniform, HeNormal, Sparse, Orthogonal,
    VarianceScaling,
)  # fmt: skip
_ALIASES = {
    "zero": Zero, "zeros": Zero, "one": One, "ones": One, "xaviernormal": XavierNormal,
        "xavier_normal": XavierNormal,
    "xavieruniform": XavierUniform, "xavier_uniform": XavierUniform, "heuniform": HeUniform,
        "he_uniform": HeUniform,
    "henormal": HeNormal, "he_normal": HeNormal, "identity": Identity, "sparse": Sparse, "dirac": Dirac,
    "orthogonal": Orthogonal, "variancescaling": VarianceScaling, "uniform": Uniform, "normal": Normal,
    "truncatednormal": TruncatedNormal,
}  # fmt: skip


def initializer(init, shape=None, dtype=dtypes.float32) -> Tensor:
    """A Tensor of `shape` and `dtype` filled by `init`: an Initializer, its name, a number,
    or a Tensor of that shape.

    Raises ValueError for an unknown name or a shape that does not fit, TypeError for anything else.
    """
    dtype = dtypes.as_dtype(dtype)
    if isinstance(init, Tensor):
        wanted = None if shape is None else _shape(shape)
        if wanted is not None and wanted != init.shape:
            raise errors.value_error(
                "initializer", f"init has shape {list(init.shape)}, but shape is {list(wanted)}"
            )
        return init
    shape = _shape(() if shape is None else shape)
    if isinstance(init, str):
        found = _ALIASES.get(init.lower())
        if found is None:
            raise errors.one_of(init, _ALIASES, subject="initializer", what="init")
        init = found()
    elif isinstance(init, (int, float)) and not isinstance(init, bool):
        init = Constant(init)
    elif isinstance(init, type) and issubclass(init, Initializer):
        init = init()
    if not isinstance(init, Initializer):
        raise errors.type_error(
            "initializer", f"init must be an Initializer, its name, a number or a Tensor, but got {init!r}"
        )
    # 16-bit types are filled in float32 and rounded once.
    array = np.zeros(shape, np.float32 if dtype.is_floating and dtype.itemsize == 2 else dtype.np)
    if isinstance(init, _RANDOM):
        _Stream.begin()
    init(array)
    return Tensor(array, dtype)


def _shape(shape) -> tuple[int, ...]:
    items = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in items:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
            raise errors.value_error("initializer", f"shape must hold sizes of 0 and more, but got {shape!r}")
    return tuple(int(n) for n in items)
