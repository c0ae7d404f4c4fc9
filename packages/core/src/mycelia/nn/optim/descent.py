"""Gradient descent: SGD, Momentum, and averaged descent."""

from __future__ import annotations

from mycelia.engine import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.nn_ops import optim as _optim
from mycelia.engine.tensors.tensor import Parameter, ParameterTuple, Tensor
from mycelia.nn.optim import rules
from mycelia.nn.optim.optimizer import Optimizer, check_flags, check_floats, check_number


class Momentum(Optimizer):
    """``v = momentum * v + g; p -= lr * v``, with `use_nesterov` ``p -= lr * (g + momentum * v)``."""

    elementwise = True

    def __init__(self, params, learning_rate, momentum, weight_decay=0.0, loss_scale=1.0, use_nesterov=False):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_flags("Momentum", use_nesterov=use_nesterov)
        check_number("Momentum", integers=False, momentum=momentum)
        self.momentum = Parameter(Tensor(momentum, dtypes.float32), name="momentum", requires_grad=False)
        self.use_nesterov = bool(use_nesterov)
        self.moments = self.state_of("moments")
        self.params = self.parameters

    def update(self, index, parameter, gradient, learning_rate):
        _optim._apply_momentum(
            parameter,
            self.moments[index],
            learning_rate,
            gradient,
            self.momentum,
            use_nesterov=self.use_nesterov,
        )


class SGD(Optimizer):
    """Gradient descent with optional momentum, dampening and Nesterov's step."""

    elementwise = True

    def __init__(
        self,
        params,
        learning_rate=0.1,
        momentum=0.0,
        dampening=0.0,
        weight_decay=0.0,
        nesterov=False,
        loss_scale=1.0,
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_flags("SGD", nesterov=nesterov)
        check_number("SGD", momentum=momentum, dampening=dampening)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise errors.value_error(
                "SGD", f"nesterov needs momentum > 0 and dampening 0, but got {momentum} and {dampening}"
            )
        self.dampening, self.nesterov = float(dampening), bool(nesterov)
        self.momentum = Parameter(
            Tensor(float(momentum), dtypes.float32), name="momentum", requires_grad=False
        )
        self.accum = self.state_of("accum")
        self.stat = self.state_of("stat", "ones")

    def update(self, index, parameter, gradient, learning_rate):
        _optim._sgd(
            parameter,
            self.accum[index],
            self.stat[index],
            gradient,
            learning_rate,
            self.momentum,
            dampening=self.dampening,
            nesterov=self.nesterov,
        )


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992); the means are in `ax`."""

    elementwise = True

    _one_result = True

    def __init__(self, params, learning_rate=0.1, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay)
        check_floats("ASGD", lambd=lambd, alpha=alpha, t0=t0)
        self.lambd, self.alpha, self.t0 = lambd, alpha, t0
        self.mu = ParameterTuple(Parameter(Tensor(1.0), f"mu_{p.name}") for p in self.parameters)
        self.eta = ParameterTuple(Parameter(Tensor(0.0), f"eta_{p.name}") for p in self.parameters)
        self.ax = self.state_of("ax_")

    def update(self, index, parameter, gradient, learning_rate):
        row = parameter, self.ax[index], self.mu[index], self.eta[index], gradient
        step = ops.cast(self.global_step, dtypes.float32).reshape(())
        rules.asgd([row], step, learning_rate, self.lambd, self.alpha, self.t0)
