"""Mixed precision: loss scalers for training functions, and what `mycelia.train` has for networks."""

from __future__ import annotations

from abc import ABC, abstractmethod

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.nn.wrap.loss_scale import has_overflow, positive_int, scaling_listeners
from mycelia.train.amp import (
    auto_mixed_precision,
    build_train_network,
    custom_mixed_precision,
    get_black_list,
    get_white_list,
)
from mycelia.train.loss_scale_manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager

__all__ = [
    "DynamicLossScaleManager", "DynamicLossScaler", "FixedLossScaleManager", "LossScaleManager", "LossScaler",
    "StaticLossScaler", "all_finite", "auto_mixed_precision", "build_train_network", "custom_mixed_precision",
    "get_black_list", "get_white_list", "init_status",
]  # fmt: skip


def all_finite(inputs) -> Tensor:
    """A bool Tensor: whether all elements of the Tensors (in tuples or lists) are finite.

    Errors: TypeError for anything but Tensors.
    """
    from mycelia.engine.ops import logical_not

    return logical_not(has_overflow(inputs))


def init_status() -> Tensor:
    """A status that `all_finite` may be given on other devices; overflow shows in the values here."""
    return Tensor([0] * 8, dtypes.int32)


def _map(function, inputs):
    if isinstance(inputs, (tuple, list)):
        return tuple(_map(function, x) for x in inputs)
    return function(inputs)


def _start(owner: str, scale_value) -> Parameter:
    if isinstance(scale_value, bool) or not isinstance(scale_value, (int, float)):
        raise errors.type_error(
            owner, f"scale_value must be a float or int, but got {type(scale_value).__name__}"
        )
    if scale_value < 1:
        raise errors.value_error(owner, f"scale_value must be at least 1, but got {scale_value}")
    return Parameter(Tensor(scale_value, dtypes.float32), name="scale_value")


def _grad_scale_map(scale_value, inputs):
    """`inputs` times the scale, in their dtypes. Scalers that users derive call it by this name."""
    return _map(lambda x: x * scale_value.astype(x.dtype), inputs)


def _grad_unscale_map(scale_value, inputs):
    """`inputs` times the reciprocal of the scale, rounded to their dtypes, as MindSpore does."""
    return _map(lambda x: x * (1.0 / scale_value).astype(x.dtype), inputs)


class LossScaler(ABC):
    """Base class: scales a loss, unscales gradients, adjusts itself after each step."""

    @abstractmethod
    def scale(self, inputs):
        """`inputs` (a Tensor, or a tuple of them) times the scale."""

    @abstractmethod
    def unscale(self, inputs):
        """`inputs` (a Tensor, or a tuple of them) divided by the scale."""

    @abstractmethod
    def adjust(self, grads_finite):
        """Take note of a step whose gradients were finite or not."""


class _Scaling(LossScaler):
    scale_value: Parameter

    def scale(self, inputs):
        for listener in scaling_listeners:
            listener(self.scale_value)
        return _grad_scale_map(self.scale_value, inputs)

    def unscale(self, inputs):
        return _grad_unscale_map(self.scale_value, inputs)


class StaticLossScaler(_Scaling):
    """A scale that stays. Errors: TypeError or ValueError unless `scale_value` is a number >= 1."""

    def __init__(self, scale_value):
        self.scale_value = _start("StaticLossScaler", scale_value)

    def adjust(self, grads_finite) -> bool:
        """Nothing to do: returns False."""
        del grads_finite  # the scale stays
        return False


class DynamicLossScaler(_Scaling):
    """A scale that an overflow divides by `scale_factor`, to 1 at least, and `scale_window` good steps
    multiply by it.

    Errors: TypeError or ValueError unless `scale_value` is a number >= 1, the others ints > 0.
    """

    def __init__(self, scale_value, scale_factor: int, scale_window: int):
        self.scale_value = _start("DynamicLossScaler", scale_value)
        self.scale_window = positive_int("DynamicLossScaler", "scale_window", scale_window)
        self.scale_factor = positive_int("DynamicLossScaler", "scale_factor", scale_factor)
        self.counter = Parameter(Tensor(0, dtypes.int32), name="counter")

    def adjust(self, grads_finite) -> bool:
        """Change the scale after a step; `grads_finite`: a bool Tensor. Returns True."""
        from mycelia.engine.ops import isfinite, logical_and, maximum, select

        if not isinstance(grads_finite, Tensor):
            grads_finite = Tensor(bool(grads_finite))
        scale = self.scale_value * 1.0
        raised = scale * float(self.scale_factor)
        due = logical_and(self.counter == self.scale_window - 1, isfinite(raised))
        reduced = maximum(scale / float(self.scale_factor), 1.0)
        assign(self.scale_value, select(grads_finite, select(due, raised, scale), reduced))
        counter = (self.counter + 1) % self.scale_window
        assign(self.counter, counter * grads_finite.astype(dtypes.int32))
        return True
