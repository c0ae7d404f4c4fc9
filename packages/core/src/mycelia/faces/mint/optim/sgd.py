"""Gradient descent with momentum."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor
from mycelia.faces.experimental.optim.optimizer import Optimizer, at_least, count_step
from mycelia.nn.optim import rules


class SGD(Optimizer):
    """``v = momentum * v + (1 - dampening) * g; p -= lr * v``; the first v is g.

    `nesterov`: ``p -= lr * (g + momentum * v)``.  `weight_decay` is added to the gradient, `maximize`
    turns it around.  Errors: TypeError and ValueError name the argument.
    """

    by_parameter = True

    def __init__(
        self, params, lr, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False
    ):
        for name, value, kinds in (
            ("lr", lr, (float, int, Tensor)),
            ("momentum", momentum, (int, float)),
            ("dampening", dampening, (int, float)),
            ("weight_decay", weight_decay, (int, float)),
            ("nesterov", nesterov, bool),
            ("maximize", maximize, bool),
        ):
            if not isinstance(value, kinds):
                raise errors.type_error("SGD", f"{name} must not be a {type(value).__name__}")
        if not isinstance(lr, Tensor):
            at_least("SGD", 0.0, lr=lr)
        at_least("SGD", 0.0, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise errors.value_error(
                "SGD", f"nesterov needs momentum > 0 and dampening 0, but got {momentum} and {dampening}"
            )
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=float(momentum),
                dampening=float(dampening),
                weight_decay=float(weight_decay),
                nesterov=nesterov,
                maximize=maximize,
            ),
        )
        self.momentum_buf = self.parameters.clone(prefix="momentum_buf", init="zeros")
        self.step_t = self._step_counter("step_t")

    def construct(self, gradients):
        first = self.step_t == 0
        count_step(self.step_t)
        for group_id, group in enumerate(self.param_groups):
            rate, momentum = self._rate_of(group_id), group["momentum"]
            start, end = self._span(group_id)
            part = self._gradients(gradients, start, end, group["maximize"], group["weight_decay"])
            velocity = self.momentum_buf[start:end]
            if momentum:
                part = [ops.cast(gradient, state.dtype) for gradient, state in zip(part, velocity)]
            rows = self._own(start, zip(self.parameters[start:end], velocity, part))
            rules.sgd(rows, first, rate, momentum, group["dampening"], group["nesterov"])
        return self._given()
