"""Training steps of boost, and the names that need an Ascend device."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor
from mycelia.faces.boost.freeze import FreezeOpt, freeze_cell
from mycelia.nn.wrap.cell_wrapper import TrainOneStepCell


class BoostTrainOneStepCell(TrainOneStepCell):
    """One training step; with a FreezeOpt, that of the group whose turn it is. Returns the loss."""

    def __init__(self, network, optimizer, sens=None):
        super().__init__(network, optimizer, sens)
        self.freeze = isinstance(optimizer, FreezeOpt)
        self.train_strategy = getattr(optimizer, "train_strategy", None)
        self.use_grad_accumulation, self.max_accumulation_step = False, 1
        self.enable_dim_reduce = self.check_dim_reduce_enable()
        self.enable_adasum = self.check_adasum_enable()
        self.step = 0
        self.freeze_nets = ()
        if self.freeze:
            self.freeze_nets = freeze_cell(False, network, optimizer, self.sens, self.grad, False)

    def construct(self, *inputs):
        if self.freeze:
            return self.gradient_freeze_process(*inputs)
        return super().construct(*inputs)

    def gradient_freeze_process(self, *inputs) -> Tensor:
        """A step of the group whose turn it is; returns the loss."""
        plan = self.train_strategy
        turn, turns = (
            (self.step, len(self.freeze_nets)) if plan is None else (int(plan[self.step]), len(plan))
        )
        loss = self.freeze_nets[turn](*inputs)
        self.step = (self.step + 1) % turns
        return loss

    def gradient_accumulation_process(self, loss, grads, sens, *inputs) -> Tensor:
        """Errors: RuntimeError; gradients accumulate by the settings of several devices."""
        raise _needs_ascend("BoostTrainOneStepCell.gradient_accumulation_process")

    def adasum_process(self, loss, grads) -> Tensor:
        """Errors: RuntimeError; AdaSum joins several devices."""
        raise _needs_ascend("BoostTrainOneStepCell.adasum_process")

    def check_adasum_enable(self) -> bool:
        """Whether the steps of devices are joined by AdaSum: with one device, never."""
        return False

    def check_dim_reduce_enable(self) -> bool:
        """Whether the optimizer is marked for steps in few dimensions."""
        return bool(getattr(self.optimizer, "dim_reduce", None))


def _needs_ascend(name: str) -> Exception:
    return errors.error(errors.MyceliaRuntimeError, name, "it needs Ascend devices")


def _only_ascend(name: str, what: str) -> type:
    def __init__(self, *args, **kwargs):
        raise _needs_ascend(name)

    return type(name, (), {"__init__": __init__, "__doc__": f"{what} Errors: RuntimeError without Ascend."})


AdaSum = _only_ascend("AdaSum", "Joins steps of devices.")
AutoBoost = _only_ascend("AutoBoost", "Chooses among the algorithms by a level.")
BoostTrainOneStepWithLossScaleCell = _only_ascend(
    "BoostTrainOneStepWithLossScaleCell", "A training step with a scaled loss."
)
DimReduce = _only_ascend("DimReduce", "Second order steps in few dimensions.")
GroupLossScaleManager = _only_ascend("GroupLossScaleManager", "A loss scale for each group of layers.")
