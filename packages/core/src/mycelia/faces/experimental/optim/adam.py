"""Adam and its relatives: AdamW, Adamax, NAdam, RAdam."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import dtypes
from mycelia.engine.ops.nn_ops import adaptive_optim as _adaptive_optim
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.faces.experimental.optim.optimizer import Optimizer, above, at_least, count_step, fractions
from mycelia.nn.optim import rules


def _number(value) -> Tensor:
    return Tensor(float(value), dtypes.float32)


def _check(owner: str, lr, betas, eps, weight_decay, strict: bool = True) -> None:
    (above if strict else at_least)(owner, 0.0, lr=lr, eps=eps)
    at_least(owner, 0.0, weight_decay=weight_decay)
    fractions(owner, **{"betas[0]": betas[0], "betas[1]": betas[1]})


def _defaults(lr, betas, eps, weight_decay, **more) -> dict:
    return dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, **more)


class _Moments(Optimizer):
    """Two moments per Parameter and a step counter."""

    _counter = "step_t"
    _names = ("exp_avg", "exp_avg_sq")

    def __init__(self, params, defaults: dict):
        super().__init__(params, defaults)
        if self._counter == "step_t":
            self.step_t = self._step_counter("step_t")
        for name in self._names:
            setattr(self, name, self.parameters.clone(prefix=name, init="zeros"))
        if self._counter == "state_step":  # in the order of MindSpore's checkpoints
            self.state_step = self._step_counter("state_step")


class Adam(_Moments):
    """Adaptive moments (Kingma and Ba 2015).  `amsgrad` is taken; as in MindSpore on the CPU it does not
    change the step.
    """

    by_parameter = True
    _counter = "state_step"
    _names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        amsgrad=False,
        *,
        maximize=False,
    ):
        _check("Adam", lr, betas, eps, weight_decay, strict=False)
        super().__init__(params, _defaults(lr, betas, eps, weight_decay, amsgrad=amsgrad, maximize=maximize))

    def implementation(
        self, beta1, beta2, eps, lr, start_id, end_id, gradients, maximize, weight_decay
    ) -> bool:
        """One step of one group."""
        step = self.state_step.astype(dtypes.float32)
        powers = ops.pow(_number(beta1), step), ops.pow(_number(beta2), step)
        numbers = (*powers, lr, _number(beta1), _number(beta2), _number(eps))
        group = self._gradients(gradients, start_id, end_id, maximize, weight_decay)
        for i, gradient in self._own(start_id, enumerate(group, start_id)):
            _adaptive_optim._adam(self.parameters[i], self.exp_avg[i], self.exp_avg_sq[i], *numbers, gradient)
        return True

    def construct(self, gradients):
        count_step(self.state_step)
        for i, group in enumerate(self.param_groups):
            self.implementation(
                *group["betas"],
                group["eps"],
                self._rate_of(i),
                *self._span(i),
                gradients,
                group["maximize"],
                group["weight_decay"],
            )
        return self._given()


class AdamW(_Moments):
    """Adam with decay apart from the gradient (Loshchilov and Hutter 2019); `amsgrad` keeps the largest
    second moment (Reddi et al. 2018).
    """

    by_parameter = True
    _counter = "state_step"
    _names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
    ):
        _check("AdamW", lr, betas, eps, weight_decay, strict=False)
        super().__init__(params, _defaults(lr, betas, eps, weight_decay, amsgrad=amsgrad, maximize=maximize))

    def implementation(self, lr, weight_decay, beta1, beta2, amsgrad, eps, grads, start_id, end_id) -> bool:
        """One step of one group, whose gradients are `grads`."""
        step = self.state_step.astype(dtypes.float32)
        if amsgrad:
            rows = self._rows(start_id, end_id, self.exp_avg, self.exp_avg_sq, self.max_exp_avg_sq, grads)
            rules.adam(rows, step, lr, (beta1, beta2), eps, weight_decay)
            return True
        numbers = step, lr, _number(beta1), _number(beta2), _number(eps), _number(weight_decay)
        for i, gradient in self._own(start_id, enumerate(grads, start_id)):
            _adaptive_optim._adamw(
                self.parameters[i], self.exp_avg[i], self.exp_avg_sq[i], *numbers, gradient
            )
        return True

    def construct(self, gradients):
        count_step(self.state_step)
        for i, group in enumerate(self.param_groups):
            span = self._span(i)
            self.implementation(
                self._rate_of(i),
                group["weight_decay"],
                *group["betas"],
                group["amsgrad"],
                group["eps"],
                self._gradients(gradients, *span, group["maximize"], 0.0),
                *span,
            )
        return self._given()


class Adamax(_Moments):
    """Adam in the infinity norm (Kingma and Ba 2015, section 7)."""

    by_parameter = True
    _names = ("exp_avg", "exp_inf")

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, *, maximize=False):
        _check("Adamax", lr, betas, eps, weight_decay)
        super().__init__(params, _defaults(lr, betas, eps, weight_decay, maximize=maximize))

    def implementation(self, group_id, lr, gradients, maximize, weight_decay, beta1, beta2, eps) -> bool:
        """One step of one group."""
        start, end = self._span(group_id)
        part = self._gradients(gradients, start, end, maximize, weight_decay)
        rows = self._rows(start, end, self.exp_avg, self.exp_inf, part)
        rules.adamax(rows, self.step_t.astype(dtypes.float32), lr, (beta1, beta2), eps)
        return True

    def construct(self, gradients):
        count_step(self.step_t)
        for i, group in enumerate(self.param_groups):
            self.implementation(
                i,
                self._rate_of(i),
                gradients,
                group["maximize"],
                group["weight_decay"],
                *group["betas"],
                group["eps"],
            )
        return self._given()


class NAdam(_Moments):
    """Adam with Nesterov's momentum (Dozat 2016)."""

    by_parameter = True

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=4e-3):
        _check("NAdam", lr, betas, eps, weight_decay)
        at_least("NAdam", 0.0, momentum_decay=momentum_decay)
        super().__init__(params, _defaults(lr, betas, eps, weight_decay, momentum_decay=momentum_decay))
        self.mu_product = [Parameter(Tensor(1.0), f"mu_product_{p.name}") for p in self.parameters]

    def implementation(
        self, lr, beta1, beta2, weight_decay, momentum_decay, eps, start_id, end_id, gradients
    ) -> bool:
        """One step of one group."""
        part = self._gradients(gradients, start_id, end_id, False, weight_decay)
        rows = self._rows(start_id, end_id, self.exp_avg, self.exp_avg_sq, self.mu_product, part)
        step = self.step_t.astype(dtypes.float32)
        rules.nadam(rows, step, lr, (beta1, beta2), eps, momentum_decay)
        return True

    def construct(self, gradients):
        count_step(self.step_t)
        for i, group in enumerate(self.param_groups):
            self.implementation(
                self._rate_of(i),
                *group["betas"],
                group["weight_decay"],
                group["momentum_decay"],
                group["eps"],
                *self._span(i),
                gradients,
            )
        return self._given()


class RAdam(_Moments):
    """Adam with the variance of its rate rectified (Liu et al. 2020)."""

    by_parameter = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        _check("RAdam", lr, betas, eps, weight_decay)
        super().__init__(params, _defaults(lr, betas, eps, weight_decay))

    def implementation(self, lr, beta1, beta2, weight_decay, eps, start_id, end_id, gradients) -> bool:
        """One step of one group."""
        part = self._gradients(gradients, start_id, end_id, False, weight_decay)
        rows = self._rows(start_id, end_id, self.exp_avg, self.exp_avg_sq, part)
        rules.radam(rows, self.step_t.astype(dtypes.float32), lr, (beta1, beta2), eps)
        return True

    def construct(self, gradients):
        count_step(self.step_t)
        for i, group in enumerate(self.param_groups):
            self.implementation(
                self._rate_of(i),
                *group["betas"],
                group["weight_decay"],
                group["eps"],
                *self._span(i),
                gradients,
            )
        return self._given()
