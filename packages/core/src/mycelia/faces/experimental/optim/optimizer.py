"""The base of the optimizers with `param_groups`, and the checks of their arguments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from mycelia.engine.base import dtypes, errors, log
from mycelia.engine.communication import mode, stages
from mycelia.engine.ops.control_flow.state import assign_add
from mycelia.engine.tensors.tensor import Parameter, ParameterTuple, Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.optim.owners import whole_ones
from mycelia.nn.optim.states import OwnsStates


def at_least(owner: str, least: float, **values) -> None:
    """Raise ValueError for a value below `least`."""
    for name, value in values.items():
        if value < least:
            raise errors.value_error(owner, f"{name} must be at least {least}, but got {value}")


def above(owner: str, bound: float, **values) -> None:
    """Raise ValueError for a value that is not above `bound`."""
    for name, value in values.items():
        if value <= bound:
            raise errors.value_error(owner, f"{name} must be greater than {bound}, but got {value}")


def fractions(owner: str, **values) -> None:
    """Raise ValueError for a value outside of [0, 1)."""
    for name, value in values.items():
        if not 0.0 <= value < 1.0:
            raise errors.value_error(owner, f"{name} must be in [0, 1), but got {value}")


class Optimizer(OwnsStates, Cell):
    """Base class: `params` are Parameters or groups ``{"params": [...], option: value}``, `defaults` the
    options of a group that does not name them.

    `param_groups` are the groups with all options, `parameters` all Parameters in order,
    `group_start_id` where each group begins among them, `lrs` their learning rates as Parameters.
    A subclass defines `construct(gradients)`. Where `enable_parallel_optimizer` is set each process updates
    some of the Parameters: then it goes through what `_own` gives, ends with `_given`, and says so by
    ``by_parameter = True``.  Errors: TypeError and ValueError name the argument.
    """

    def __init__(self, params, defaults: dict):
        super().__init__(auto_prefix=False)
        dividing = mode.dividing_states(type(self).__name__)
        if stages.current(type(self).__name__) is not None:
            raise errors.error(
                errors.NotSupportedError, type(self).__name__,
                "stages of a pipeline are trained by the optimizers of nn only",
            )  # fmt: skip
        if params is None:
            raise errors.value_error("Optimizer", "params must not be None")
        if not isinstance(params, Iterable):
            raise errors.type_error("Optimizer", f"params must be a list, but got {type(params).__name__}")
        groups = list(params)
        if not groups:
            raise errors.value_error(
                "Optimizer", "params must not be empty", hint="does the network have trainable parameters?"
            )
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups: list[dict] = []
        self.__dict__["parameters"] = ()
        self.__dict__["lrs"] = []
        self.group_start_id = [0]
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)
        self.parameters = ParameterTuple(self.parameters)
        if dividing is not None:
            self.__dict__["owners"] = whole_ones(self, Optimizer, dividing)

    def add_param_group(self, param_group: dict) -> None:
        """Add a group; options that it does not name are the defaults.

        Errors: NotImplementedError if it is known already which process updates which Parameter.
        """
        if self.owners is not None:
            raise errors.error(
                errors.NotSupportedError, type(self).__name__,
                "enable_parallel_optimizer has given the Parameters to processes: no group can be added",
            )  # fmt: skip
        group = self._checked_group(param_group)
        for name, default in self.defaults.items():
            group.setdefault(name, default)
        group["lr"] = self._rate(group.get("lr"), f"learning_rate_group_{len(self.param_groups)}")
        group["weight_decay"] = self._decay(group.get("weight_decay", 0.0))
        self.lrs.append(group["lr"])
        self.__dict__["parameters"] = (*self.parameters, *group["params"])
        self.param_groups.append(group)
        self.group_start_id.append(self.group_start_id[-1] + len(group["params"]))

    def _checked_group(self, group) -> dict:
        if not isinstance(group, dict):
            raise errors.type_error("Optimizer", f"a group must be a dict, but got {type(group).__name__}")
        params = group["params"]
        if isinstance(params, set):
            raise errors.type_error("Optimizer", "the params of a group must be in order, but got a set")
        group["params"] = params = [params] if isinstance(params, Parameter) else list(params)
        for parameter in params:
            if not isinstance(parameter, Parameter):
                raise errors.type_error(
                    "Optimizer", f"params must hold Parameters, but got {type(parameter).__name__}"
                )
        ids = {id(p) for p in params}
        if len(ids) < len(params):
            log.logger(__name__).warning("a parameter group holds a Parameter twice")
        if ids & {id(p) for p in self.parameters}:
            raise errors.value_error("Optimizer", "a Parameter is in more than one group")
        return group

    def _rate(self, rate, name: str) -> Parameter:
        owner = type(self).__name__
        if isinstance(rate, (int, float)):
            at_least(owner, 0.0, lr=rate)
            return Parameter(Tensor(float(rate), dtypes.float32), name)
        if not isinstance(rate, Tensor):
            raise errors.type_error(owner, f"lr must be a number or a Tensor, but got {type(rate).__name__}")
        if rate.ndim:
            raise errors.value_error(owner, f"a Tensor lr must be a scalar, but its shape is {rate.shape}")
        return Parameter(rate.astype(dtypes.float32), name)

    def _decay(self, decay) -> float:
        owner = type(self).__name__
        if not isinstance(decay, (int, float)):
            raise errors.type_error(owner, f"weight_decay must be a number, but got {type(decay).__name__}")
        at_least(owner, 0.0, weight_decay=decay)
        return float(decay)

    def _rate_of(self, group_id: int):
        """The learning rate of a group: what a scheduler writes to, or a number that the user put there."""
        rate = self.param_groups[group_id].get("lr")
        return Tensor(rate, dtypes.float32) if isinstance(rate, (int, float)) else self.lrs[group_id]

    def _span(self, group_id: int) -> tuple[int, int]:
        return self.group_start_id[group_id], self.group_start_id[group_id + 1]

    def _decay_weight(self, weight_decay: float, params, gradients) -> tuple:
        if weight_decay == 0.0:
            return tuple(gradients)
        return tuple(p * weight_decay + g for p, g in zip(params, gradients))

    def _gradients(self, gradients, start: int, end: int, maximize: bool, weight_decay: float) -> tuple:
        """The gradients of a group with the wanted sign and with weight decay."""
        part = tuple(-g for g in gradients[start:end]) if maximize else tuple(gradients[start:end])
        return self._decay_weight(weight_decay, self.parameters[start:end], part)

    def _rows(self, start: int, end: int, *states):
        """What an update rule goes through: a Parameter, its states and its gradient, which come last and as
        many as there are Parameters from `start` to `end`.
        """
        *states, gradients = states
        rows = zip(self.parameters[start:end], *(state[start:end] for state in states), gradients)
        return self._own(start, rows)

    def _own(self, start: int, rows: Iterable) -> Iterable:
        """Of rows for the Parameters from `start` on those that this process updates."""
        return rows if self.owners is None else [r for i, r in enumerate(rows, start) if self.owners.has(i)]

    def _given(self) -> bool:
        """The end of a step: all processes get what each has updated."""
        if self.owners is not None:
            self.owners.give(self.parameters)
        return True

    def _step_counter(self, name: str) -> Parameter:
        return Parameter(Tensor(0, dtypes.int32), name)

    def construct(self, *hyper_params):
        raise NotImplementedError(f"{type(self).__name__} does not define construct(gradients)")

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            for key in sorted(group):
                value = group[key]
                if key != "params":
                    shown = value.value() if key == "lr" and isinstance(value, Parameter) else value
                    lines.append(f"    {key}: {shown}")
        return "\n".join(lines) + "\n)"


def count_step(counter: Parameter) -> None:
    """Add one to a step counter."""
    assign_add(counter, 1)
