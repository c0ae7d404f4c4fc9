"""Frozen gradients: in each step only the Parameters behind some layer learn."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import dtypes, errors, ignored
from mycelia.engine.ops.arrays.create import full_like
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.tensors.tensor import Parameter, ParameterTuple, Tensor
from mycelia.faces.boost.parameters import ParameterProcess, made_again, parameters_of
from mycelia.nn.cell import Cell
from mycelia.nn.dense import Identity
from mycelia.nn.optim.adaptive import LARS
from mycelia.nn.optim.optimizer import Optimizer


class FreezeOpt(Cell):
    """One optimizer like `opt` for each of `train_parameter_groups`.

    `train_strategy`: the group that learns in each step, ints or a 1-D int32 Tensor.
    Errors: TypeError and ValueError name the argument; ValueError for a strategy without groups.
    """

    def __init__(self, opt: Optimizer, train_parameter_groups=None, train_strategy=None):
        super().__init__()
        if not isinstance(opt, Optimizer):
            raise errors.type_error("FreezeOpt", f"opt must be an Optimizer, but got {type(opt).__name__}")
        if train_strategy is not None and train_parameter_groups is None:
            raise errors.value_error("FreezeOpt", "train_strategy needs train_parameter_groups")
        groups = train_parameter_groups
        if groups is None:
            groups = [list(opt.parameters)]
        if not isinstance(groups, (tuple, list)):
            raise errors.type_error(
                "FreezeOpt",
                f"train_parameter_groups must be a list or tuple, but got {type(groups).__name__}",
            )
        for group in groups:
            if not isinstance(group, (tuple, list)):
                raise errors.type_error(
                    "FreezeOpt", f"a group must be a list or tuple, but got {type(group).__name__}"
                )
        self.single_opt = opt.opt if isinstance(opt, LARS) else opt
        self.parameters = ParameterTuple(opt.parameters)
        self.learning_rate = self.single_opt.learning_rate
        self.groups_num = len(groups)
        self.train_strategy = _strategy(train_strategy)
        self.opts = [made_again(opt, group) for group in groups]
        for i, made in enumerate(self.opts):
            learned = {id(p) for p in made.parameters}
            for parameter in made.get_parameters():  # the optimizer's own: moments and the like
                if id(parameter) not in learned:
                    parameter.name = f"boost_{i}.{parameter.name}"


def _strategy(given) -> Tensor | None:
    if given is None:
        return None
    if isinstance(given, Tensor):
        if given.ndim != 1 or given.dtype != dtypes.int32:
            raise errors.value_error(
                "FreezeOpt",
                f"train_strategy must be a 1-D int32 Tensor, but it is {given.dtype}{given.shape}",
            )
        return given
    if not isinstance(given, (tuple, list)):
        raise errors.type_error(
            "FreezeOpt", f"train_strategy must be ints or a Tensor, but got {type(given).__name__}"
        )
    if not all(isinstance(n, int) for n in given):
        raise errors.value_error("FreezeOpt", f"train_strategy must hold ints, but got {given}")
    return Tensor(given, dtypes.int32)


class _TrainFreezeCell(Cell):
    """One step that changes the Parameters of one optimizer; returns the loss."""

    def __init__(self, network, sens, grad, optimizer):
        super().__init__(auto_prefix=False)
        self.net, self.grad, self.opt, self.sens = network, grad, optimizer, sens
        self.parameters = ParameterTuple(optimizer.parameters)

    def construct(self, *inputs):
        loss = self.net(*inputs)
        cotangent = cast(full_like(loss, self.sens), loss.dtype)
        self.opt(self.grad(self.net, self.parameters)(*inputs, cotangent))
        return loss


class GradientFreeze:
    """Splits a network's Parameters into `param_groups` and freezes the first of them with probability
    `freeze_p` for `total_steps`.

    `freeze_type` 0: one group after the other; 1: groups at random, the last ones more rarely.
    """

    def __init__(self, param_groups: int, freeze_type: int, freeze_p: float, total_steps: int):
        self._param_groups, self._freeze_type = param_groups, freeze_type
        self._freeze_p, self._total_steps = freeze_p, total_steps
        self.grad_reducer = Identity()

    def split_parameters_groups(self, net: Cell, freeze_para_groups_number: int) -> list[list[Parameter]]:
        """Group i: the Parameters from the i-th part of the network on.

        A part begins with a weight, and has at least three Parameters.
        """
        parts: list[list[Parameter]] = [[]]
        for parameter in net.trainable_params():
            begins = not ("bn" in parameter.name or "bias" in parameter.name)
            if begins and len(parts[-1]) >= 3:
                parts.append([])
            parts[-1].append(parameter)
        parts = [part for part in parts if part]
        stride = len(parts) // freeze_para_groups_number
        return [[p for part in parts[i * stride :] for p in part] for i in range(freeze_para_groups_number)]

    def generate_freeze_index_sequence(
        self, parameter_groups_number: int, freeze_strategy: int, freeze_p: float, total_steps: int
    ) -> list[int]:
        """The group of each step, for 1 % more than `total_steps`. Errors: ValueError for others."""
        steps = int(total_steps * 1.01)
        later = list(range(1, parameter_groups_number))
        if not later:
            return [0] * steps
        if freeze_strategy == 0:
            whole = int(freeze_p * len(later) // (1 - freeze_p) + 0.5)
            cycle = [0] * whole + later
            return cycle * -(-steps // len(cycle))
        if freeze_strategy != 1:
            raise errors.value_error(
                "GradientFreeze", f"the strategy must be 0 or 1, but got {freeze_strategy}"
            )
        share = np.array(later) / sum(later)
        sequence, frozen = [0], 0
        while len(sequence) < steps:
            freeze = frozen / len(sequence) < 1 - freeze_p
            sequence.append(int(np.random.choice(later[::-1], p=share)) if freeze else 0)
            frozen += freeze
        return sequence

    def freeze_generate(self, network: Cell, optimizer: Optimizer) -> tuple[Cell, FreezeOpt]:
        """The network, and an optimizer that freezes."""
        groups = self.split_parameters_groups(network, self._param_groups)
        given = parameters_of(optimizer)
        groups = [ParameterProcess.generate_group_params(group, given) for group in groups]
        steps = self.generate_freeze_index_sequence(
            self._param_groups, self._freeze_type, self._freeze_p, self._total_steps
        )
        return network, FreezeOpt(optimizer, groups, steps)


@ignored.arguments(
    mean="gradients are those of this process",
    degree="no other process takes part",
    max_accumulation_step="gradients are not accumulated",
)
def freeze_cell(
    reducer_flag,
    network,
    optimizer,
    sens,
    grad,
    use_grad_accumulation,
    mean=None,
    degree=None,
    max_accumulation_step=1,
) -> tuple[Cell, ...]:
    """A training step for each optimizer of a FreezeOpt.

    `grad`: a GradOperation by a list, with a cotangent. Errors: RuntimeError for gradients that are joined
    over devices or accumulated.
    """
    if reducer_flag or use_grad_accumulation:
        raise errors.error(
            errors.MyceliaRuntimeError,
            "freeze_cell",
            "gradients that are joined over devices or accumulated need several Ascend devices",
        )
    return tuple(_TrainFreezeCell(network, sens, grad, opt) for opt in optimizer.opts)
