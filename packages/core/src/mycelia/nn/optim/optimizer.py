"""`Optimizer`: learning rates, parameter groups and weight decay, which all optimizers share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.communication import mode
from mycelia.engine.ops.control_flow.state import assign_add
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.tensors.tensor import Parameter, ParameterTuple, Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.learning_rate_schedule import LearningRateSchedule
from mycelia.nn.optim import sharing
from mycelia.nn.optim.handles import Handles
from mycelia.nn.optim.owners import whole_ones
from mycelia.nn.optim.states import OwnsStates
from mycelia.nn.parameters import release


class _TableRate(LearningRateSchedule):
    """One learning rate per step; the last one stays."""

    def __init__(self, rates: np.ndarray, name: str):
        super().__init__()
        self.learning_rate = Parameter(Tensor(np.asarray(rates, np.float32)), name, requires_grad=False)

    def construct(self, global_step):
        from mycelia.engine.ops.arrays.gathering import gather

        last = self.learning_rate.size - 1
        return gather(self.learning_rate, _clipping.minimum(global_step, last), 0)


class Optimizer(OwnsStates, Handles, Cell):
    """Base class of the optimizers.

    `learning_rate`: a number, a 0-d Tensor, one rate per step (list or 1-D Tensor), or a
    LearningRateSchedule. `parameters`: Parameters, or groups ``{"params", "lr", "weight_decay",
    "grad_centralization", "order_params"}``. `weight_decay`: a number or a Cell of the step; without groups
    it spares parameters named beta and gamma. `loss_scale`: gradients are divided by it.

    A subclass defines ``update(index, parameter, gradient, learning_rate)``, and says ``elementwise = True``
    if that treats each element alone, or ``by_parameter = True`` if it reads and writes nothing but this
    Parameter and its states: then `enable_parallel_optimizer` may divide its states.
    Errors: TypeError and ValueError name the argument.
    """

    def __new__(cls, *args, **kwargs):
        made = super().__new__(cls)
        made.__dict__["made_with"] = args, kwargs  # so that one like it can be made for other Parameters
        return made

    def __init__(self, learning_rate, parameters, weight_decay=0.0, loss_scale=1.0):
        super().__init__(auto_prefix=False)
        owner = type(self).__name__
        mode.degree(owner)  # asks whether the settings can be followed
        parameters = self._list_of(parameters)
        if isinstance(loss_scale, bool) or not isinstance(loss_scale, (int, float)):
            raise errors.type_error(owner, f"loss_scale must be a float, but got {loss_scale!r}")
        if loss_scale <= 0:
            raise errors.value_error(owner, f"loss_scale must be positive, but got {loss_scale}")
        self.loss_scale = float(loss_scale)
        self.global_step = Parameter(Tensor(np.zeros(1, np.int32)), name="global_step", requires_grad=False)
        self.is_group = isinstance(parameters[0], dict)
        self.is_group_lr = False
        self.dynamic_lr = False
        default = self._rate(learning_rate, "learning_rate")
        if self.is_group:
            self._init_groups(parameters, default, weight_decay)
        else:
            self.learning_rate = default
            self.dynamic_lr = isinstance(default, Cell)
            self.parameters = ParameterTuple(parameters)
            decay = self._decay(weight_decay)
            spared = [self._spares_norms and ("beta" in p.name or "gamma" in p.name) for p in self.parameters]
            self._decays = [0.0 if s else decay for s in spared]
            self._centralize = [False] * len(parameters)
        self._share(mode.dividing_states(owner))
        self.dynamic_weight_decay = any(isinstance(d, Cell) for d in self._decays)
        self.exec_weight_decay = any(isinstance(d, Cell) or d > 0 for d in self._decays)

    elementwise = False  # whether a step treats each element alone
    shares: sharing.Shares | None = None  # the parts of states that this process keeps; None: all of all
    keeps_parts = False  # whether of gradients, too, no more than these parts is kept
    _spares_norms = True  # parameters of normalizations do not decay, unless groups say so
    _one_result = False  # a step returns True instead of one True a Parameter

    # ---- construction --------------------------------------------------------------------------------------

    def _share(self, dividing: mode.Dividing | None) -> None:
        """Divide the states of Parameters among the processes, perhaps also their gradients and values.

        Errors: NotImplementedError if a step needs whole Parameters.
        """
        if dividing is None:
            return
        if not sharing.says(type(self), Optimizer, "elementwise"):
            self.__dict__["owners"] = whole_ones(self, Optimizer, dividing)
            return
        if type(self).construct is not Optimizer.construct:  # it has no states of its own, as LARS
            if dividing.level > 1:
                raise errors.error(
                    errors.NotSupportedError, type(self).__name__,
                    f"optimizer_level='level{dividing.level}' divides gradients, which it needs whole",
                    hint="optimizer_level='level1' divides the states of the optimizer within",
                )  # fmt: skip
            return
        shares = sharing.planned(self.parameters, dividing)
        # The mean of a gradient needs all of it.
        whole = [c and _is_centered(p) for c, p in zip(self._centralize, self.parameters)]
        self.shares = tuple(None if w else share for w, share in zip(whole, shares))
        self.keeps_parts = dividing.level > 1
        if dividing.level > 2:
            sharing.divide_weights(self.shares, self.parameters)

    def _list_of(self, parameters) -> list:
        owner = type(self).__name__
        if (
            parameters is None
            or isinstance(parameters, (str, Tensor))
            or not isinstance(parameters, Iterable)
        ):
            raise errors.type_error(
                owner, f"params must be a list of Parameters or dicts, but got {type(parameters).__name__}"
            )
        parameters = list(parameters)
        if not parameters:
            raise errors.value_error(
                owner,
                "For 'Optimizer', the argument parameters must not be empty",
                hint="does the network have trainable parameters?",
            )
        if not (
            all(isinstance(p, Parameter) for p in parameters) or all(isinstance(p, dict) for p in parameters)
        ):
            kinds = sorted({type(p).__name__ for p in parameters})
            raise errors.type_error(
                owner, f"params must hold Parameters only or dicts only, but got {', '.join(kinds)}"
            )
        return parameters

    def _rate(self, rate, name: str):
        """A Parameter for a fixed rate, a cell for a changing one."""
        owner = type(self).__name__
        if isinstance(rate, LearningRateSchedule):
            return rate
        if isinstance(rate, bool):
            raise errors.type_error(owner, f"learning_rate must be a number, but got {rate!r}")
        if isinstance(rate, (int, float, np.number)):
            if rate < 0:
                raise errors.value_error(owner, f"learning_rate must be at least 0, but got {rate}")
            return Parameter(Tensor(float(rate), dtypes.float32), name, requires_grad=False)
        if isinstance(rate, Tensor) and rate.ndim == 0:
            return Parameter(Tensor(rate, dtypes.float32), name, requires_grad=False)
        if isinstance(rate, Tensor):
            if rate.ndim != 1:
                raise errors.value_error(
                    owner,
                    f"a Tensor learning_rate must have rank 0 or 1, but its shape is {list(rate.shape)}",
                )
            return _TableRate(rate.asnumpy(), name)
        if isinstance(rate, Iterable) and not isinstance(rate, (str, bytes)):
            values = np.array(list(rate), np.float32)
            if values.ndim != 1 or not values.size:
                raise errors.value_error(owner, "a list of learning rates must hold numbers, one per step")
            return _TableRate(values, name)
        raise errors.type_error(
            owner,
            "learning_rate must be a number, a Tensor, a list or a LearningRateSchedule, but got "
            f"{type(rate).__name__}",
        )

    def _decay(self, weight_decay):
        owner = type(self).__name__
        if isinstance(weight_decay, Cell):
            return weight_decay
        if isinstance(weight_decay, bool) or not isinstance(weight_decay, (int, float)):
            raise errors.type_error(
                owner, f"weight_decay must be a number or a Cell, but got {weight_decay!r}"
            )
        if weight_decay < 0:
            raise errors.value_error(owner, f"weight_decay must be at least 0, but got {weight_decay}")
        return float(weight_decay) * self.loss_scale

    def _init_groups(self, groups: list[dict], default, weight_decay) -> None:
        owner = type(self).__name__
        known = {"params", "lr", "weight_decay", "grad_centralization", "order_params"}
        order = None
        rows: list[tuple] = []
        rates: list = []
        seen: set[int] = set()
        default_decay = self._decay(weight_decay)
        for i, group in enumerate(groups):
            unknown = set(group) - known
            if unknown:
                raise errors.error(
                    errors.MyceliaKeyError,
                    owner,
                    f"a parameter group has unknown keys {sorted(unknown)}; known are {sorted(known)}",
                )
            if "order_params" in group:
                if len(group) > 1:
                    raise errors.value_error(owner, "the group with 'order_params' must hold nothing else")
                order = self._list_of(group["order_params"])
                continue
            if "params" not in group:
                raise errors.error(errors.MyceliaKeyError, owner, f"parameter group {i} has no 'params'")
            rate = default
            if "lr" in group:
                rate = self._rate(group["lr"], f"learning_rate_group_{i}")
                self.is_group_lr = True
            decay = self._decay(group["weight_decay"]) if "weight_decay" in group else default_decay
            for p in self._list_of(group["params"]):
                if id(p) in seen:
                    raise errors.error(
                        errors.MyceliaRuntimeError, owner, f"parameter '{p.name}' is in more than one group"
                    )
                seen.add(id(p))
                rows.append((p, rate, decay, bool(group.get("grad_centralization", False))))
        if order is not None:
            by_id = {id(r[0]): r for r in rows}
            if {id(p) for p in order} != set(by_id):
                raise errors.value_error(
                    owner, "'order_params' must hold exactly the parameters of all groups"
                )
            rows = [by_id[id(p)] for p in order]
        self.dynamic_lr = any(isinstance(r[1], Cell) for r in rows)
        if self.is_group_lr:
            for _, rate, _, _ in rows:
                if rate is default or all(rate is not r for r in rates):
                    rates.append(rate)
                name = rate.name if isinstance(rate, Parameter) else f"learning_rate_{len(self._cells)}"
                if isinstance(rate, Parameter):
                    self._params.setdefault(name, rate)
                elif all(rate is not c for c in self._cells.values()):
                    self._cells[name] = rate
            self.__dict__["learning_rate"] = tuple(r[1] for r in rows)
        else:
            self.learning_rate = default
        self.parameters = ParameterTuple(r[0] for r in rows)
        self._decays = [r[2] for r in rows]
        self._centralize = [r[3] for r in rows]

    # ---- placement ----------------------------------------------------------------------------------------

    @property
    def target(self) -> str:
        """Where parameters are updated: taken for scripts that ask for the host; it is the CPU anyway."""
        return self.__dict__.get("_target", "CPU")

    @target.setter
    def target(self, value: str) -> None:
        owner = type(self).__name__
        if not isinstance(value, str):
            raise errors.type_error(owner, f"target must be a str, but got {type(value).__name__}")
        if value not in ("CPU", "Ascend", "GPU"):
            raise errors.one_of(value, ["CPU", "Ascend", "GPU"], subject=owner, what="target")
        self.__dict__["_target"] = value

    @property
    def unique(self) -> bool:
        """Whether indices of sparse gradients are made unique: taken and kept, gradients are dense."""
        return self.__dict__.get("_unique", True)

    @unique.setter
    def unique(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise errors.type_error(type(self).__name__, f"unique must be a bool, but got {value!r}")
        self.__dict__["_unique"] = value

    def broadcast_params(self, optim_result):
        """Parameters of other devices: with one device, what came."""
        return optim_result

    # ---- one step ------------------------------------------------------------------------------------------

    def get_lr(self):
        """The learning rate of this step: a 0-d Tensor, or one per parameter with learning rates by group."""
        if self.is_group_lr:
            return tuple(self._current(rate) for rate in self.learning_rate)
        return self._current(self.learning_rate)

    def _current(self, rate):
        if not isinstance(rate, Cell):
            return rate
        from mycelia.engine.ops.arrays.shape import reshape

        return reshape(rate(self.global_step), ())

    def get_lr_parameter(self, param):
        """The learning rate (Parameter or schedule) of a Parameter, or a list for several."""
        if not isinstance(param, Parameter):
            return [self.get_lr_parameter(p) for p in param]
        for i, p in enumerate(self.parameters):
            if p is param:
                return self.learning_rate[i] if self.is_group_lr else self.learning_rate
        raise errors.value_error(type(self).__name__, f"parameter '{param.name}' is not optimized here")

    def get_weight_decay(self):
        """The weight decay of this step per parameter."""
        return tuple(
            d(self.global_step) * self.loss_scale if isinstance(d, Cell) else d for d in self._decays
        )

    def decay_weight(self, gradients):
        """Gradients plus weight decay times the parameters."""
        if not self.exec_weight_decay:
            return gradients
        return tuple(
            g if g is None or (isinstance(d, float) and d == 0) else g + p * d
            for g, p, d in zip(gradients, self._own(), self.get_weight_decay())
        )

    def gradients_centralization(self, gradients):
        """Gradients minus their mean over all axes but the first, where a group asks for it (Yong et al.
        2020) and, as in MindSpore, 16 divides the second axis.
        """
        if not any(self._centralize):
            return gradients
        from mycelia.engine.ops.reductions.reduce import mean

        return tuple(
            g - mean(g, tuple(range(1, g.ndim)), True) if c and g is not None and _is_centered(g) else g
            for g, c in zip(gradients, self._centralize)
        )

    def scale_grad(self, gradients):
        """Gradients divided by the loss scale."""
        if self.loss_scale == 1.0:
            return gradients
        return tuple(None if g is None else g * (1.0 / self.loss_scale) for g in gradients)

    def flatten_gradients(self, gradients):
        """The gradients themselves: parameters are not stored flat."""
        return gradients

    def prepare(self, gradients) -> tuple:
        """Check the gradients and apply decay, centralization and loss scale."""
        gradients = tuple(gradients) if isinstance(gradients, (tuple, list)) else (gradients,)
        if len(gradients) != len(self.parameters):
            raise errors.value_error(
                type(self).__name__,
                f"{len(self.parameters)} gradients are needed, one per parameter, but got {len(gradients)}",
            )
        return self.scale_grad(self.gradients_centralization(self.decay_weight(gradients)))

    def begin_step(self) -> None:
        """What happens once a step before the parameters are updated."""

    def construct(self, gradients):
        mode.require_graph(type(self).__name__)
        gradients = self._own_gradients(gradients)
        if self.shares is not None:
            gradients = sharing.parts(self.shares, gradients)
        if self.owners is not None:
            gradients = tuple(g if self.owners.has(i) else None for i, g in enumerate(gradients))
        gradients = self.prepare(gradients)
        rates = self.get_lr()
        assign_add(self.global_step, 1)
        self.begin_step()
        if not self.is_group_lr:
            rates = (rates,) * len(gradients)
        if self.shares is None:
            for i, (parameter, gradient, rate) in enumerate(zip(self.parameters, gradients, rates)):
                if gradient is not None:
                    self.update(i, parameter, gradient, rate)
            if self.owners is not None:
                self.owners.give(self.parameters)
        else:
            held = [i for i, gradient in enumerate(gradients) if gradient is not None]
            sharing.update(
                tuple(self.shares[i] for i in held), [self.parameters[i] for i in held],
                lambda place, own: self.update(held[place], own, gradients[held[place]], rates[held[place]]),
                sharing.LEAN_BYTES if self.keeps_parts else mode.PART_BYTES,
            )  # fmt: skip
        return True if self._one_result else (True,) * len(gradients)

    def _own(self) -> Iterable:
        """What this process updates: Parameters, or its parts of them, one after the other."""
        if self.shares is None:
            return self.parameters
        return (
            p if s is None or p.elsewhere or p.divided else sharing.part(s, p)
            for s, p in zip(self.shares, self.parameters)
        )  # fmt: skip

    def _own_gradients(self, gradients) -> tuple:
        """The gradients, None for those of Parameters that only other stages of a pipeline have, whose states
        are given up, too.
        """
        gradients = tuple(gradients) if isinstance(gradients, (tuple, list)) else (gradients,)
        if not any(p.elsewhere for p in self.parameters):
            return gradients
        for states in self.__dict__.get("_states", ()):
            for parameter, state in zip(self.parameters, states):
                if parameter.elsewhere and not state.elsewhere:
                    state.elsewhere = True
                    release(state)
        return tuple(None if p.elsewhere else g for p, g in zip(self.parameters, gradients))

    def update(self, index: int, parameter: Parameter, gradient: Tensor, learning_rate: Tensor) -> None:
        """Update one parameter in place."""
        raise errors.error(
            errors.NotSupportedError,
            type(self).__name__,
            "update(index, parameter, gradient, learning_rate) is not defined",
        )

    def state_of(self, prefix: str, init="zeros") -> ParameterTuple:
        """One state Parameter per optimized parameter, named `prefix.<name>`: of its shape, or [length] of
        the own part where states are divided.
        """
        if self.shares is None:
            states = self.parameters.clone(prefix=prefix, init=init)
        else:
            divided = ParameterTuple(sharing.divided(s, p) for s, p in zip(self.shares, self.parameters))
            states = divided.clone(prefix=prefix, init=init)
            for state, share in zip(states, self.shares):
                state.share = share
        self.__dict__.setdefault("_states", []).append(states)
        return states

    def share_states(self) -> None:
        """Divide the states among the processes as the settings of `enable_parallel_optimizer` say now.

        Errors: NotImplementedError if a step needs whole Parameters, or for settings that divide otherwise.
        """
        if self.shares is not None or self.owners is not None:
            return
        self._share(mode.dividing_states(type(self).__name__))
        self._keep_own_states()
        for states in self.__dict__.get("_states", ()) if self.shares is not None else ():
            for state, share in zip(states, self.shares):
                if share is not None:
                    state.set_data(sharing.part(share, state))
                    state.share = share


def _is_centered(gradient) -> bool:
    return gradient.ndim > 1 and gradient.shape[1] % 16 == 0


def check_flags(owner: str, **flags) -> None:
    """Raise TypeError unless each value is a bool."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise errors.type_error(owner, f"{name} must be a bool, but got {value!r}")


def check_number(
    owner: str, *, low: float = 0.0, open_low: bool = False, high: float | None = None,
    integers: bool = True, **values,
) -> None:  # fmt: skip
    """Raise TypeError or ValueError unless each value is a float in [low, high), open at `low` when asked.

    `integers`: whether ints are taken for floats.
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float) if integers else float):
            raise errors.type_error(owner, f"{name} must be a float, but got {value!r}")
        if value < low or (open_low and value == low) or (high is not None and value >= high):
            span = f"{'(' if open_low else '['}{low}, {'inf' if high is None else high})"
            raise errors.value_error(owner, f"{name} must be in {span}, but got {value}")


def check_floats(owner: str, **values) -> None:
    """Raise TypeError unless each value is a float."""
    for name, value in values.items():
        if not isinstance(value, float):
            raise errors.type_error(owner, f"{name} must be a float, but got {value!r}")


def scalar(value: float, name: str) -> Parameter:
    """A number of the state: a float32 Parameter [] without gradient."""
    return Parameter(Tensor(value, dtypes.float32), name=name, requires_grad=False)
