"""Adadelta, Adagrad and RMSprop."""

from __future__ import annotations

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.nn_ops import adaptive_optim as _adaptive_optim
from mycelia.engine.tensors.tensor import Tensor
from mycelia.faces.experimental.optim.optimizer import Optimizer, above, at_least, count_step
from mycelia.nn.optim import rules


class Adadelta(Optimizer):
    """Step sizes from running means of squared gradients and squared steps (Zeiler 2012)."""

    by_parameter = True

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, *, maximize=False):
        above("Adadelta", 0.0, lr=lr, eps=eps)
        at_least("Adadelta", 0.0, weight_decay=weight_decay)
        if not 0.0 <= rho <= 1.0:
            raise errors.value_error("Adadelta", f"rho must be in [0, 1], but got {rho}")
        super().__init__(params, dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize))
        self.accum = self.parameters.clone(prefix="accum", init=0)
        self.accum_update = self.parameters.clone(prefix="accum_update", init=0)

    def implementation(self, lr, rho, eps, maximize, weight_decay, start_id, end_id, gradients) -> bool:
        """One step of one group."""
        numbers = lr, Tensor(rho, dtypes.float32), Tensor(eps, dtypes.float32)
        group = self._gradients(gradients, start_id, end_id, maximize, weight_decay)
        for i, gradient in self._own(start_id, enumerate(group, start_id)):
            _adaptive_optim._apply_adadelta(
                self.parameters[i], self.accum[i], self.accum_update[i], *numbers, gradient
            )
        return True

    def construct(self, gradients):
        for i, group in enumerate(self.param_groups):
            self.implementation(
                self._rate_of(i),
                group["rho"],
                group["eps"],
                group["maximize"],
                group["weight_decay"],
                *self._span(i),
                gradients,
            )
        return self._given()


class Adagrad(Optimizer):
    """Scaling by the root of all past squares (Duchi et al. 2011), with a rate that decays."""

    by_parameter = True

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0.0,
        weight_decay=0.0,
        initial_accumulator_value=0.0,
        eps=1e-10,
        *,
        maximize=False,
    ):
        above("Adagrad", 0.0, lr=lr, eps=eps)
        at_least(
            "Adagrad",
            0.0,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
        )
        defaults = dict(
            lr=lr,
            lr_decay=lr_decay,
            eps=eps,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            maximize=maximize,
        )
        super().__init__(params, defaults)
        self.accum = self.parameters.clone(prefix="accum", init=initial_accumulator_value)
        self.step_t = self._step_counter("step_t")

    def implementation(self, eps, lr, lr_decay, maximize, weight_decay, start_id, end_id, gradients) -> bool:
        """One step of one group."""
        rate = lr / (1 + self.step_t.astype(dtypes.float32) * lr_decay)
        group = self._gradients(gradients, start_id, end_id, maximize, weight_decay)
        for i, gradient in self._own(start_id, enumerate(group, start_id)):
            _adaptive_optim._apply_adagrad_v2(self.parameters[i], self.accum[i], rate, gradient, epsilon=eps)
        return True

    def construct(self, gradients):
        for i, group in enumerate(self.param_groups):
            self.implementation(
                group["eps"],
                self._rate_of(i),
                group["lr_decay"],
                group["maximize"],
                group["weight_decay"],
                *self._span(i),
                gradients,
            )
        count_step(self.step_t)
        return self._given()


class RMSprop(Optimizer):
    """Scaling by the root of a running mean of squares (Tieleman and Hinton 2012); `centered` uses the
    variance.
    """

    by_parameter = True

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0.0,
        momentum=0.0,
        centered=False,
        maximize=False,
    ):
        above("RMSprop", 0.0, lr=lr, eps=eps)
        at_least("RMSprop", 0.0, alpha=alpha, momentum=momentum, weight_decay=weight_decay)
        defaults = dict(
            lr=lr,
            momentum=momentum,
            alpha=alpha,
            eps=eps,
            centered=centered,
            weight_decay=weight_decay,
            maximize=maximize,
        )
        super().__init__(params, defaults)
        self.mean_grad = self.parameters.clone(prefix="mean_grad", init="zeros")
        self.mean_square = self.parameters.clone(prefix="mean_square", init="zeros")
        self.moment = self.parameters.clone(prefix="moment", init="zeros")

    def implementation(
        self, group_id, lr, gradients, maximize, weight_decay, centered, alpha, eps, momentum
    ) -> bool:
        """One step of one group."""
        start, end = self._span(group_id)
        part = self._gradients(gradients, start, end, maximize, weight_decay)
        rows = self._rows(start, end, self.mean_grad, self.mean_square, self.moment, part)
        rules.rms_prop(rows, lr, alpha, eps, momentum, centered)
        return True

    def construct(self, gradients):
        for i, group in enumerate(self.param_groups):
            self.implementation(
                i,
                self._rate_of(i),
                gradients,
                group["maximize"],
                group["weight_decay"],
                group["centered"],
                group["alpha"],
                group["eps"],
                group["momentum"],
            )
        return self._given()
