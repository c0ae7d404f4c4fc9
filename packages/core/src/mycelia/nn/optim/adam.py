"""Adam and its relatives: two moments per Parameter."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import dtypes, errors, ignored
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.nn_ops import adaptive_optim as _adaptive_optim
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.nn.optim.optimizer import Optimizer, check_flags, check_number, scalar


class _Moments(Optimizer):
    """Two moments per parameter and the betas that average them."""

    def __init__(self, params, learning_rate, beta1, beta2, eps, weight_decay, loss_scale, names):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        owner = type(self).__name__
        check_number(owner, open_low=True, high=1.0, integers=False, beta1=beta1, beta2=beta2)
        check_number(owner, open_low=True, integers=False, eps=eps)
        self.beta1, self.beta2, self.eps = float(beta1), float(beta2), float(eps)
        self._moment_names = names

    def _init_moments(self) -> None:
        self.moment1 = self.state_of(self._moment_names[0])
        self.moment2 = self.state_of(self._moment_names[1])


class Adam(_Moments):
    """Adaptive moments (Kingma and Ba 2015); `use_amsgrad` keeps the largest second moment,
    `use_nesterov` looks ahead.
    """

    elementwise = True

    def __init__(
        self,
        params,
        learning_rate=1e-3,
        beta1=0.9,
        beta2=0.999,
        eps=1e-8,
        use_locking=False,
        use_nesterov=False,
        weight_decay=0.0,
        loss_scale=1.0,
        use_amsgrad=False,
        **kwargs,
    ):
        super().__init__(
            params, learning_rate, beta1, beta2, eps, weight_decay, loss_scale, ("moment1", "moment2")
        )
        unknown = set(kwargs) - {"use_lazy", "use_offload"}
        if unknown:
            raise errors.error(errors.MyceliaKeyError, "Adam", f"got unexpected arguments {sorted(unknown)}")
        flags = dict(use_locking=use_locking, use_nesterov=use_nesterov, use_amsgrad=use_amsgrad)
        check_flags(type(self).__name__, **flags, **kwargs)
        for name, missing in (
            ("use_lazy", "gradients are dense, so all rows are updated"),
            ("use_offload", "the step runs where the network does"),
        ):
            if kwargs.get(name):
                ignored.tell("Adam", name, True, missing)
        if kwargs.get("use_lazy") and kwargs.get("use_offload"):
            raise errors.value_error("For 'Adam', 'use_lazy' and 'use_offload' can not both be True")
        if use_amsgrad and any(kwargs.values()):
            raise errors.value_error(
                "For lazy Adam and Adam with offload, there is no parameter named 'use_amsgrad'."
            )
        # They say where and for which rows the step is computed: the same for dense gradients on the host.
        self.use_nesterov, self.use_amsgrad = bool(use_nesterov), bool(use_amsgrad)
        self.beta1_power = scalar(1.0, "beta1_power")
        self.beta2_power = scalar(1.0, "beta2_power")
        self._init_moments()
        if self.use_amsgrad:
            self.vhat = self.state_of("vhat")

    def begin_step(self):
        assign(self.beta1_power, _math.mul(self.beta1_power, self.beta1))
        assign(self.beta2_power, _math.mul(self.beta2_power, self.beta2))

    def update(self, index, parameter, gradient, learning_rate):
        numbers = (self.beta1_power, self.beta2_power, learning_rate, self.beta1, self.beta2, self.eps)
        m, v = self.moment1[index], self.moment2[index]
        if self.use_amsgrad:
            _adaptive_optim._adam_amsgrad(parameter, m, v, self.vhat[index], *numbers, gradient)
        else:
            _adaptive_optim._adam(parameter, m, v, *numbers, gradient, use_nesterov=self.use_nesterov)


class AdamWeightDecay(_Moments):
    """Adam without bias correction, with decay apart from the gradient (Loshchilov and Hutter 2019)."""

    elementwise = True

    def __init__(self, params, learning_rate=0.001, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0):
        super().__init__(params, learning_rate, beta1, beta2, eps, weight_decay, 1.0, ("adam_m", "adam_v"))
        self._init_moments()

    def decay_weight(self, gradients):
        self.__dict__["_now"] = self.get_weight_decay()  # the update itself decays
        return gradients

    def update(self, index, parameter, gradient, learning_rate):
        _adaptive_optim._adam_weight_decay(
            parameter,
            self.moment1[index],
            self.moment2[index],
            learning_rate,
            self.beta1,
            self.beta2,
            self.eps,
            self._now[index],
            gradient,
        )


class AdaMax(_Moments):
    """Adam in the infinity norm (Kingma and Ba 2015, section 7)."""

    elementwise = True

    def __init__(
        self, params, learning_rate=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, loss_scale=1.0
    ):
        super().__init__(
            params, learning_rate, beta1, beta2, eps, weight_decay, loss_scale, ("moment1", "moment2")
        )
        self.beta1_power = Parameter(Tensor(np.ones(1, np.float32)), name="beta1_power", requires_grad=False)
        self._init_moments()

    def begin_step(self):
        assign(self.beta1_power, _math.mul(self.beta1_power, self.beta1))

    def update(self, index, parameter, gradient, learning_rate):
        _adaptive_optim._apply_ada_max(
            parameter,
            self.moment1[index],
            self.moment2[index],
            self.beta1_power,
            learning_rate,
            self.beta1,
            self.beta2,
            self.eps,
            gradient,
        )


class Lamb(_Moments):
    """Adam with a trust ratio per parameter (You et al. 2020)."""

    by_parameter = True

    def __init__(self, params, learning_rate, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0):
        super().__init__(params, learning_rate, beta1, beta2, eps, weight_decay, 1.0, ("lamb_m", "lamb_v"))
        self._init_moments()

    def decay_weight(self, gradients):
        return gradients  # the update itself decays

    def begin_step(self):
        from mycelia.engine.ops.arrays.shape import reshape

        self.__dict__["_now"] = self.get_weight_decay()
        self.__dict__["_step"] = reshape(cast(self.global_step, dtype=dtypes.float32), ())

    def update(self, index, parameter, gradient, learning_rate):
        _adaptive_optim._lamb(
            parameter,
            self.moment1[index],
            self.moment2[index],
            learning_rate,
            self.beta1,
            self.beta2,
            self.eps,
            self._now[index],
            self._step,
            gradient,
        )


class LazyAdam(Adam):
    """Adam whose sparse gradients move only the rows they name: gradients are dense here, so it is Adam."""

    def __init__(
        self,
        params,
        learning_rate=1e-3,
        beta1=0.9,
        beta2=0.999,
        eps=1e-8,
        use_locking=False,
        use_nesterov=False,
        weight_decay=0.0,
        loss_scale=1.0,
    ):
        super().__init__(
            params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale
        )
        for name in ("beta1_power", "beta2_power"):  # checkpoints have them as vectors of one element
            one = Parameter(Tensor(np.ones(1, np.float32)), name=name, requires_grad=False)
            setattr(self, name, one)


class AdamOffload(LazyAdam):
    """Adam whose state is in the memory of the host: that is where all state is here, so it is Adam."""
