"""AdaFactor: Adam in little memory."""

from __future__ import annotations

from mycelia.engine import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.tensors.tensor import Parameter, ParameterTuple, Tensor
from mycelia.nn.optim.optimizer import Optimizer, check_floats, check_number


class AdaFactor(Optimizer):
    """Adam with the second moment of matrices kept as one row and one column (Shazeer and Stern 2018).

    `learning_rate`: None with `relative_step`, which takes it from the step; `eps`: added to squared
    gradients, and least scale of a parameter; `clip_threshold`: largest root mean square of an update;
    `decay_rate`, `beta1`: of the moments, beta1 0 or None for no first one; `scale_parameter`: steps in units
    of the parameter; `warmup_init`: a slow start; `compression`: first moments in float16.
    Errors: ValueError for options that contradict one another, TypeError, ValueError.
    """

    by_parameter = True

    def __init__(
        self,
        params,
        learning_rate=None,
        eps=(1e-30, 1e-3),
        clip_threshold=1.0,
        decay_rate=0.8,
        beta1=0.9,
        weight_decay=0.0,
        scale_parameter=True,
        relative_step=True,
        warmup_init=False,
        compression=False,
        loss_scale=1.0,
    ):
        owner = "AdaFactor"
        if (learning_rate is None) != bool(relative_step):
            raise errors.value_error(
                owner, "either learning_rate or relative_step=True gives the rate, and not both"
            )
        if warmup_init and not relative_step:
            raise errors.value_error(owner, "warmup_init needs relative_step=True")
        super().__init__(0.0 if learning_rate is None else learning_rate, params, weight_decay, loss_scale)
        if not isinstance(eps, (list, tuple)):
            raise errors.type_error(owner, f"eps must be a tuple of two floats, but got {eps!r}")
        if len(eps) != 2:
            raise errors.value_error(owner, f"eps must have two members, but got {eps}")
        check_floats(
            owner,
            clip_threshold=clip_threshold,
            decay_rate=decay_rate,
            **{"eps[0]": eps[0], "eps[1]": eps[1]},
        )
        if not 0 < decay_rate < 1 or min(*eps, clip_threshold) < 0 or not 0 <= weight_decay < 1:
            raise errors.value_error(owner, "decay_rate must be in (0, 1), weight_decay in [0, 1)")
        for name, value in (
            ("scale_parameter", scale_parameter),
            ("relative_step", relative_step),
            ("compression", compression),
        ):
            if not isinstance(value, bool):
                raise errors.type_error(owner, f"{name} must be a bool, but got {value!r}")
        check_number(owner, beta1=float(beta1 or 0.0))
        self.eps, self.clip_threshold, self.decay_rate = tuple(eps), clip_threshold, decay_rate
        self.weight_decay, self.compression = float(weight_decay), compression
        fixed = learning_rate is None or isinstance(learning_rate, (int, float))
        self.scale_parameter = scale_parameter and fixed
        self.relative_step, self.warmup_init = relative_step and fixed, warmup_init
        self.init_ada_factor_state(float(beta1 or 0.0))
        self.step = Parameter(Tensor([0.0], dtypes.float32), name="afactor_step")

    @property
    def supports_memory_efficient_fp16(self) -> bool:
        """Whether it works on float16 parameters: yes."""
        return True

    @property
    def supports_flat_params(self) -> bool:
        """Whether it works on parameters joined to one vector: no."""
        return False

    def init_ada_factor_state(self, beta1: float) -> None:
        """Make the moments; none of the first order when `beta1` is 0."""
        self.beta1 = beta1
        if beta1 > 0:
            self.exp_avg = self.state_of("exp_avg")
        rows, columns, full = [], [], []
        for p in self.parameters:
            matrix = p.ndim > 1
            shapes = (p.shape[:-1], (*p.shape[:-2], p.shape[-1]), (1,)) if matrix else ((1,), (1,), p.shape)
            for shape, kind, kept in zip(shapes, ("_row", "_col", ""), (rows, columns, full)):
                small = self.compression and not matrix and not kind
                zeros = ops.zeros(shape, dtypes.float16 if small else p.dtype)
                kept.append(Parameter(zeros, name=f"exp_avg_sq{kind}_{p.name}"))
        self.exp_avg_sq_row, self.exp_avg_sq_col = ParameterTuple(rows), ParameterTuple(columns)
        self.exp_avg_sq = ParameterTuple(full)

    def prepare(self, gradients) -> tuple:
        return tuple(gradients)  # decay is part of the update

    def begin_step(self):
        from mycelia.engine.ops.control_flow.state import assign_add

        assign_add(self.step, 1.0)
        step = self.step.reshape(())
        self.__dict__["_beta2"] = 1.0 - ops.pow(step, -self.decay_rate)
        self.__dict__["_rate"] = None
        if self.relative_step:
            most = 1e-6 * step if self.warmup_init else Tensor(1e-2, dtypes.float32)
            self.__dict__["_rate"] = ops.minimum(most, 1.0 / ops.sqrt(step))

    def update(self, index, parameter, gradient, learning_rate):
        g, p = (ops.cast(x, dtypes.float32) for x in (gradient, parameter))
        rate = learning_rate if self._rate is None else self._rate
        if self.scale_parameter:
            rate = rate * ops.maximum(_rms(p), self.eps[1])
        square = ops.square(g) + self.eps[0]
        if p.ndim > 1:
            row = self._average(self.exp_avg_sq_row[index], ops.mean(square, -1))
            column = self._average(self.exp_avg_sq_col[index], ops.mean(square, -2))
            factor = ops.rsqrt(row / ops.mean(row, -1, True))
            step = g * ops.expand_dims(factor, -1) * ops.expand_dims(ops.rsqrt(column), -2)
        else:
            step = g * ops.rsqrt(self._average(self.exp_avg_sq[index], square))
        step = step / ops.maximum(_rms(step) / self.clip_threshold, 1.0) * rate
        if self.beta1 > 0:
            moment = self.exp_avg[index]
            step = ops.cast(moment, dtypes.float32) * self.beta1 + step * (1 - self.beta1)
            assign(moment, ops.cast(step, moment.dtype))
        if self.weight_decay:
            p = p - p * self.weight_decay * rate
        assign(parameter, ops.cast(p - step, parameter.dtype))

    def _average(self, state, new):
        value = ops.cast(state, dtypes.float32) * self._beta2 + new * (1.0 - self._beta2)
        assign(state, ops.cast(value, state.dtype))
        return value


def _rms(x):
    return ops.sqrt(ops.mean(ops.square(x)))
