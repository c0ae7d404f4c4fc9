"""`GradientAccumulation`: an optimizer that takes a step for several batches."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.wrap.loss_scale import positive_int


class GradientAccumulation(Cell):
    """``cell(loss, grads)`` adds gradients, and every `max_accumulation_step` calls gives their mean to the
    optimizer; returns the loss.

    What is added lies in Parameters named ``grad_accumulation.*``, the calls in ``accumulation_step``. Among
    several processes a `DistributedGradReducer` comes before it.
    Errors: TypeError unless `optimizer` is one, ValueError for a number of steps below 1.
    """

    def __init__(self, max_accumulation_step, optimizer):
        super().__init__(auto_prefix=False)
        if not hasattr(optimizer, "parameters"):
            raise errors.type_error(
                "GradientAccumulation", f"optimizer must be an Optimizer, but got {type(optimizer).__name__}"
            )
        self._max_accumulation_step = positive_int(
            "GradientAccumulation", "max_accumulation_step", max_accumulation_step
        )
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self._grad_accumulation = self.weights.clone(prefix="grad_accumulation", init="zeros")
        self._accumulation_step = Parameter(
            Tensor(0, dtypes.int32), name="accumulation_step", requires_grad=False
        )

    def construct(self, loss, grads):
        for total, gradient in zip(self._grad_accumulation, grads, strict=True):
            ops.assign_add(total, gradient / self._max_accumulation_step)
        ops.assign_add(self._accumulation_step, 1)
        if self._accumulation_step >= self._max_accumulation_step:
            self.optimizer(self._grad_accumulation)
            ops.assign(self._accumulation_step, 0)
            for total in self._grad_accumulation:
                ops.assign(total, ops.zeros_like(total))
        return loss
