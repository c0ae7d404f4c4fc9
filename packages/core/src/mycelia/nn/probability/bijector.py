"""Bijectors: invertible functions with the logarithm of their derivatives."""

from __future__ import annotations

import math

import numpy as np

from mycelia.engine import ops
from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.probability.checks import broadcast_shape, is_scalar, require

__all__ = ["Bijector", "Exp", "GumbelCDF", "Invert", "PowerTransform", "ScalarAffine", "Softplus"]


class Bijector(Cell):
    """Base class: a subclass defines `_forward`, `_inverse`, `_forward_log_jacobian` and
    `_inverse_log_jacobian` of a floating Tensor.

    `param`: what it was made with; ``param["param_dict"]`` are its parameters by name.  Called with a
    distribution it gives the TransformedDistribution, else ``bijector("forward", value)``.
    Errors: TypeError for values that do not float.
    """

    _transformed: type  # TransformedDistribution, which is made of bijectors, puts itself here

    def __init__(self, is_constant_jacobian=False, is_injective=True, name=None, dtype=None, param=None):
        super().__init__()
        owner = type(self).__name__
        for label, value, kind in (
            ("name", name, str),
            ("is_constant_jacobian", is_constant_jacobian, bool),
            ("is_injective", is_injective, bool),
        ):
            if not isinstance(value, kind):
                raise errors.type_error(owner, f"{label} must be a {kind.__name__}, but got {value!r}")
        if dtype is not None and not dtype.is_floating:
            raise errors.type_error(owner, f"dtype must be floating, but got {dtype}")
        given = (param or {}).get("param_dict", {})
        self.__dict__.update(
            name=name,
            dtype=dtype,
            parameters={k: v for k, v in (param or {}).items() if k != "self" and not k.startswith("_")},
            is_constant_jacobian=is_constant_jacobian,
            is_injective=is_injective,
            batch_shape=broadcast_shape(given.values()) if given else None,
            is_scalar_batch=bool(given) and is_scalar(given.values()),
        )

    def _set_parameters(self, **values) -> None:
        """Keep parameters as Tensors of one floating dtype."""
        owner, first = type(self).__name__, None
        for name, value in values.items():
            if value is None or isinstance(value, bool):
                raise errors.type_error(owner, f"{name} must not be {value!r}")
            tensor = Tensor(value)
            if not tensor.dtype.is_floating:
                raise errors.type_error(owner, f"{name} must be floating, but got {tensor.dtype}")
            first = first or tensor.dtype
            if tensor.dtype is not first:
                raise errors.type_error(owner, f"{name} must have the dtype {first} of the others")
            self.__dict__[f"_{name}"] = tensor

    def _check_value(self, value, name: str = "value"):
        if not isinstance(value, Tensor):
            raise errors.type_error(
                type(self).__name__, f"{name} must be a Tensor, but got {type(value).__name__}"
            )
        return value

    def _own(self, value, *names: str) -> tuple:
        """The value, checked, and parameters in its dtype."""
        self._check_value(value)
        if not value.dtype.is_floating:
            raise errors.type_error(type(self).__name__, f"the value must be floating, but got {value.dtype}")
        return value, *(self.cast_param_by_value(value, self.__dict__[f"_{n}"]) for n in names)

    def cast_param_by_value(self, value, para):
        """A parameter in the dtype of a value."""
        return ops.cast(para, value.dtype)

    def forward(self, value, *args, **kwargs):
        """The function of a value."""
        return self._forward(value, *args, **kwargs)

    def inverse(self, value, *args, **kwargs):
        """What the function takes to a value."""
        return self._inverse(value, *args, **kwargs)

    def forward_log_jacobian(self, value, *args, **kwargs):
        """The logarithm of the derivative's size at a value."""
        return self._forward_log_jacobian(value, *args, **kwargs)

    def inverse_log_jacobian(self, value, *args, **kwargs):
        """The logarithm of the size of the inverse's derivative at a value."""
        return self._inverse_log_jacobian(value, *args, **kwargs)

    def __call__(self, *args, **kwargs):
        from mycelia.nn.probability.base import Distribution

        if args and isinstance(args[0], Distribution):
            return self._transformed(self, args[0])
        return super().__call__(*args, **kwargs)

    def construct(self, name, *args, **kwargs):
        if name not in ("forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian"):
            raise errors.value_error(type(self).__name__, f"there is no method {name!r}")
        return getattr(self, name)(*args, **kwargs)

    def _shown(self, **values) -> str:
        if not self.is_scalar_batch:
            return f"batch_shape = {self.batch_shape}"
        return ", ".join(f"{name} = {value}" for name, value in values.items())


def _reader(name: str, doc: str):
    return property(lambda self: self.__dict__[f"_{name}"], doc=doc)


class PowerTransform(Bijector):
    """``(1 + power * x) ** (1 / power)``, ``exp(x)`` for power 0. Errors: ValueError below 0."""

    power = _reader("power", "The power.")

    def __init__(self, power=0.0, name="PowerTransform"):
        super().__init__(name=name, param={"param_dict": {"power": power}, "power": power, "name": name})
        self._set_parameters(power=power)
        require("PowerTransform", "power", self._power, lambda p: p >= 0, "at least 0")

    def extend_repr(self) -> str:
        return self._shown(power=self.power)

    def _forward(self, x):
        x, power = self._own(x, "power")
        flat = power == 0
        safe = ops.where(flat, 1.0, power).astype(x.dtype)
        return ops.where(flat, ops.exp(x), ops.exp(ops.log1p(x * safe) / safe))

    def _inverse(self, y):
        y, power = self._own(y, "power")
        flat = power == 0
        safe = ops.where(flat, 1.0, power).astype(y.dtype)
        return ops.where(flat, ops.log(y), ops.expm1(ops.log(y) * safe) / safe)

    def _forward_log_jacobian(self, x):
        x, power = self._own(x, "power")
        flat = power == 0
        safe = ops.where(flat, 1.0, power).astype(x.dtype)
        return ops.where(flat, x, (1.0 / safe - 1) * ops.log1p(x * safe))

    def _inverse_log_jacobian(self, y):
        y, power = self._own(y, "power")
        return (power - 1) * ops.log(y)


class Exp(PowerTransform):
    """``exp(x)``."""

    def __init__(self, name="Exp"):
        super().__init__(name=name)

    def extend_repr(self) -> str:
        return "exp"


class ScalarAffine(Bijector):
    """``scale * x + shift``."""

    scale = _reader("scale", "The factor.")
    shift = _reader("shift", "The summand.")

    def __init__(self, scale=1.0, shift=0.0, name="ScalarAffine"):
        given = {"scale": scale, "shift": shift}
        super().__init__(
            is_constant_jacobian=True, name=name, param={"param_dict": given, **given, "name": name}
        )
        self._set_parameters(**given)

    def extend_repr(self) -> str:
        return self._shown(scale=self.scale, shift=self.shift)

    def _forward(self, x):
        x, scale, shift = self._own(x, "scale", "shift")
        return scale * x + shift + ops.zeros_like(x)

    def _inverse(self, y):
        y, scale, shift = self._own(y, "scale", "shift")
        return (y - shift) / scale

    def _forward_log_jacobian(self, x):
        _, scale = self._own(x, "scale")
        return ops.log(ops.abs(scale))

    def _inverse_log_jacobian(self, y):
        _, scale = self._own(y, "scale")
        return -ops.log(ops.abs(scale))


class Softplus(Bijector):
    """``log(1 + exp(sharpness * x)) / sharpness``."""

    sharpness = _reader("sharpness", "How sharp the bend is.")

    # Beyond this, 1 + exp(x) rounds to one of its terms in float32.
    _bound = -(math.log(np.finfo(np.float32).eps) + 1)

    def __init__(self, sharpness=1.0, name="Softplus"):
        given = {"sharpness": sharpness}
        super().__init__(name=name, param={"param_dict": given, **given, "name": name})
        self._set_parameters(**given)

    def extend_repr(self) -> str:
        return self._shown(sharpness=self.sharpness)

    def _softplus(self, x):
        small, large = x < -self._bound, x > self._bound
        inner = ops.where(ops.logical_or(small, large), 1.0, x).astype(x.dtype)
        return ops.where(small, ops.exp(x), ops.where(large, x, ops.log(ops.exp(inner) + 1.0)))

    def _inverse_softplus(self, y):
        small, large = y < math.exp(-self._bound), y > self._bound
        inner = ops.where(ops.logical_or(small, large), 1.0, y).astype(y.dtype)
        middle = inner + ops.log(ops.abs(ops.expm1(-inner)))
        return ops.where(small, ops.log(y), ops.where(large, y, middle))

    def _forward(self, x):
        x, sharpness = self._own(x, "sharpness")
        return self._softplus(sharpness * x) / sharpness

    def _inverse(self, y):
        y, sharpness = self._own(y, "sharpness")
        return self._inverse_softplus(sharpness * y) / sharpness

    def _forward_log_jacobian(self, x):
        x, sharpness = self._own(x, "sharpness")
        return -self._softplus(-sharpness * x)  # the logarithm of the sigmoid

    def _inverse_log_jacobian(self, y):
        y, sharpness = self._own(y, "sharpness")
        return sharpness * y - self._inverse_softplus(sharpness * y)


class GumbelCDF(Bijector):
    """``exp(-exp(-(x - loc) / scale))``. Errors: ValueError unless scale is positive."""

    loc = _reader("loc", "The place.")
    scale = _reader("scale", "The spread.")

    def __init__(self, loc=0.0, scale=1.0, name="GumbelCDF"):
        given = {"loc": loc, "scale": scale}
        super().__init__(name=name, param={"param_dict": given, **given, "name": name})
        self._set_parameters(**given)
        require("GumbelCDF", "scale", self._scale, lambda s: s > 0, "positive")

    def extend_repr(self) -> str:
        return self._shown(loc=self.loc, scale=self.scale)

    def _forward(self, x):
        x, loc, scale = self._own(x, "loc", "scale")
        return ops.exp(-ops.exp((loc - x) / scale))

    def _inverse(self, y):
        y, loc, scale = self._own(y, "loc", "scale")
        return loc - scale * ops.log(-ops.log(y))

    def _forward_log_jacobian(self, x):
        x, loc, scale = self._own(x, "loc", "scale")
        z = (x - loc) / scale
        return -z - ops.exp(-z) - ops.log(scale)

    def _inverse_log_jacobian(self, y):
        y, scale = self._own(y, "scale")
        return ops.log(-scale / (y * ops.log(y)))


class Invert(Bijector):
    """A bijector the other way round."""

    def __init__(self, bijector, name=""):
        if not isinstance(bijector, Bijector):
            raise errors.type_error(
                "Invert", f"bijector must be a Bijector, but got {type(bijector).__name__}"
            )
        super().__init__(
            is_constant_jacobian=bijector.is_constant_jacobian,
            is_injective=bijector.is_injective,
            name=name or "Invert" + bijector.name,
            dtype=bijector.dtype,
            param={"bijector": bijector},
        )
        self._bijector = bijector
        self.__dict__.update(batch_shape=bijector.batch_shape, is_scalar_batch=bijector.is_scalar_batch)

    @property
    def bijector(self) -> Bijector:
        """The bijector that is inverted."""
        return self._bijector

    def forward(self, x):
        return self.bijector("inverse", x)

    def inverse(self, y):
        return self.bijector("forward", y)

    def forward_log_jacobian(self, x):
        return self.bijector("inverse_log_jacobian", x)

    def inverse_log_jacobian(self, y):
        return self.bijector("forward_log_jacobian", y)
