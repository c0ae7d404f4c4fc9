"""Training steps with a scaled loss, for float16: gradients that would vanish are kept, steps whose
gradients overflow are left out (Micikevicius et al. 2018, "Mixed Precision Training").
"""

from __future__ import annotations

from collections.abc import Callable

from mycelia.engine.backends import registry
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.communication.collectives import all_reduce
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.parts import Part, operator
from mycelia.nn.wrap.cell_wrapper import TrainOneStepCell
from mycelia.ops.composite import HyperMap

#: Who hears that a LossScaler scales a value, and by which scale.
scaling_listeners: list[Callable[[Parameter], None]] = []


def positive_int(owner: str, name: str, value) -> int:
    """`value`, if it is an int above 0; else ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise errors.value_error(owner, f"{name} must be an int > 0, but got {value!r}")
    return value


def has_overflow(tensors):
    """A bool Tensor: whether an element of the Tensors (nested in tuples and lists) is inf or nan.

    On a device that saturates also whether anything overflowed since this was asked last.
    """
    from mycelia.engine.ops import isfinite, logical_not, logical_or
    from mycelia.engine.ops.control_flow.device import overflow_status

    found, members = None, list(_flat(tensors))
    for tensor in members:
        bad = logical_not(isfinite(tensor).all())
        found = bad if found is None else logical_or(found, bad)
    if found is None:
        raise errors.value_error("all_finite", "there is no Tensor to look at")
    return logical_or(found, overflow_status(members)) if registry.target().backend.saturates else found


def _flat(value):
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for member in value:
            yield from _flat(member)
    else:
        raise errors.type_error(
            "all_finite", f"Tensors, or tuples or lists of them, are needed, but got {type(value).__name__}"
        )


class DynamicLossScaleUpdateCell(Cell):
    """``cell(loss_scale, overflow)`` changes the Parameter `loss_scale` and returns `overflow`.

    An overflow divides it by `scale_factor`, to 1 at least; `scale_window` steps without one multiply it.
    """

    def __init__(self, loss_scale_value, scale_factor: int, scale_window: int):
        super().__init__()
        self.scale_window = Tensor(scale_window, dtypes.int32)
        self.scale_factor = Tensor(scale_factor, dtypes.float32)
        self.loss_scale_value = loss_scale_value
        self.cur_iter = Parameter(Tensor(1, dtypes.int32), name="current_iterator_step")
        self.last_overflow_iter = Parameter(Tensor(0, dtypes.int32), name="last_overflow_iterator_step")

    def get_loss_scale(self):
        """The scale to begin with."""
        return self.loss_scale_value

    def construct(self, loss_scale, overflow):
        from mycelia.engine.ops import less_equal, logical_and, logical_not, logical_or, maximum, select

        scale = loss_scale * 1.0
        reduced = select(overflow, maximum(scale / self.scale_factor, 1.0), scale)
        due = less_equal(self.scale_window, self.cur_iter - self.last_overflow_iter)
        restart = logical_or(overflow, due)
        assign(self.last_overflow_iter, select(restart, self.cur_iter * 1, self.last_overflow_iter * 1))
        grows = logical_and(due, logical_not(overflow))
        assign(loss_scale, select(grows, reduced * self.scale_factor, reduced))
        assign(self.cur_iter, self.cur_iter + 1)
        return overflow


class FixedLossScaleUpdateCell(Cell):
    """``cell(loss_scale, overflow)`` returns `overflow` and leaves the scale as it is."""

    def __init__(self, loss_scale_value):
        super().__init__()
        self.loss_scale_value = loss_scale_value

    def get_loss_scale(self):
        """The scale to begin with."""
        return self.loss_scale_value

    def construct(self, _, overflow):
        return overflow


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """One training step with the loss scaled by `scale_sense`: ``(loss, overflow, the scale from now on)``.

    The gradients are those of the scaled loss, divided by the scale; if one of them is inf or nan, the
    optimizer is not called. `scale_sense`: a Tensor [] or [1], or a Cell such as
    `DynamicLossScaleUpdateCell` that is asked for the scale to begin with and called with scale and
    overflow after each step. Errors: TypeError or ValueError for another `scale_sense`.
    """

    def __init__(self, network, optimizer, scale_sense):
        super().__init__(network, optimizer, sens=None)
        self.hyper_map = HyperMap()
        self.loss_scaling_manager = None
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense
            scale_sense = Tensor(scale_sense.get_loss_scale(), dtypes.float32)
        elif not isinstance(scale_sense, Tensor):
            raise errors.type_error(
                "TrainOneStepWithLossScaleCell",
                f"scale_sense must be a Cell or a Tensor, but got {type(scale_sense).__name__}",
            )
        elif scale_sense.shape not in ((), (1,)):
            raise errors.value_error(
                "TrainOneStepWithLossScaleCell",
                f"scale_sense must have shape [] or [1], but it has {list(scale_sense.shape)}",
            )
        self.scale_sense = Parameter(scale_sense, name="scale_sense")
        self.is_distributed = self.gpu_target = False

    equal, less_equal = operator("Equal"), operator("LessEqual")
    reduce_sum, reduce_all = operator("ReduceSum", keep_dims=False), operator("ReduceAll", keep_dims=False)
    allreduce = operator("AllReduce")
    base = Part(lambda cell: Tensor(1, dtypes.float32))

    def construct(self, *inputs):
        loss, grads = self._loss_and_gradients(inputs, lambda g: g / self.scale_sense.astype(g.dtype))
        found = self.get_overflow_status(None, tuple(g for g in grads if g is not None))
        if self._scatters or self.in_stages:  # each process has seen its parts only
            found = all_reduce(found.astype(dtypes.int32), "max") > 0
        overflow = self.process_loss_scale(found)
        if not overflow:
            self.optimizer(grads)
        return loss, found, self.scale_sense

    construct.captured_call = True  # its condition is a Tensor

    def _scaled_loss(self, *inputs):
        loss = self._loss(self.scale_sense, *inputs)
        first = loss[0] if isinstance(loss, (tuple, list)) else loss
        return first * self.scale_sense.astype(first.dtype), loss

    def set_sense_scale(self, sens) -> None:
        """Set the scale. Errors: TypeError unless `sens` is a Tensor."""
        if not isinstance(sens, Tensor):
            raise errors.type_error(
                "TrainOneStepWithLossScaleCell", f"sens must be a Tensor, but got {type(sens).__name__}"
            )
        self.scale_sense.set_data(sens)

    def start_overflow_check(self, pre_cond, compute_input):
        """``(status, compute_input)``: overflow shows in the values themselves, so nothing is cleared."""
        del pre_cond  # overflow shows in the values
        return Tensor([0] * 8, dtypes.int32), compute_input

    def get_overflow_status(self, status, compute_output):
        """A bool Tensor: whether one of the gradients is inf or nan."""
        del status  # overflow shows in the values
        return has_overflow(compute_output)

    def process_loss_scale(self, overflow):
        """Lets the update cell change the scale; returns whether the step is to be left out."""
        if self.loss_scaling_manager is not None:
            return self.loss_scaling_manager(self.scale_sense, overflow)
        return overflow
