"""SGD, averaged SGD and resilient propagation."""

from __future__ import annotations

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.nn_ops import optim as _optim
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.faces.experimental.optim.optimizer import Optimizer, above, at_least, count_step
from mycelia.nn.optim import rules


class SGD(Optimizer):
    """Gradient descent with momentum: ``v = momentum * v + (1 - dampening) * g; p -= lr * v``, with
    `nesterov` ``p -= lr * (g + momentum * v)``; the first v is g.  `maximize`: ascent.
    """

    by_parameter = True

    def __init__(
        self,
        params,
        lr,
        momentum=0,
        dampening=0,
        weight_decay=0.0,
        nesterov=False,
        *,
        maximize=False,
    ):
        for name, value, kinds in (
            ("lr", lr, (float, int, Tensor)),
            ("momentum", momentum, (int, float)),
            ("nesterov", nesterov, bool),
            ("maximize", maximize, bool),
        ):
            if not isinstance(value, kinds):
                raise errors.type_error("SGD", f"{name} must not be a {type(value).__name__}")
        at_least("SGD", 0.0, lr=lr, momentum=momentum)
        defaults = dict(
            lr=lr,
            momentum=float(momentum),
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
            grad_centralization=False,
        )
        super().__init__(params, defaults)
        for group in self.param_groups:
            if not isinstance(group["dampening"], (int, float)):
                raise errors.type_error("SGD", f"dampening must be a number, but got {group['dampening']!r}")
            group["dampening"] = float(group["dampening"])
        if nesterov and (momentum <= 0.0 or dampening != 0.0):
            raise errors.value_error(
                "SGD", f"nesterov needs momentum > 0 and dampening 0, but got {momentum} and {dampening}"
            )
        self.accum = self.parameters.clone(prefix="accum", init="zeros")
        self.stat = self.parameters.clone(prefix="stat", init="ones")

    def implementation(
        self, momentum, lr, group_id, gradients, maximize, dampening, weight_decay, nesterov
    ) -> bool:
        """One step of one group."""
        start, end = self._span(group_id)
        momentum = Tensor(momentum, dtypes.float32)
        part = self._gradients(gradients, start, end, maximize, 0.0)
        for i, gradient in self._own(start, enumerate(part, start)):
            _optim._sgd(
                self.parameters[i],
                self.accum[i],
                self.stat[i],
                gradient,
                lr,
                momentum,
                dampening=dampening,
                weight_decay=weight_decay,
                nesterov=nesterov,
            )
        return True

    def construct(self, gradients):
        for i, group in enumerate(self.param_groups):
            self.implementation(
                group["momentum"],
                self._rate_of(i),
                i,
                gradients,
                group["maximize"],
                group["dampening"],
                group["weight_decay"],
                group["nesterov"],
            )
        return self._given()


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992): the means are in `ax`."""

    by_parameter = True

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0, maximize=False):
        above("ASGD", 0.0, lr=lr)
        at_least("ASGD", 0.0, weight_decay=weight_decay)
        for name, value in (("lambd", lambd), ("t0", t0)):
            if not isinstance(value, float):
                raise errors.type_error("ASGD", f"{name} must be a float, but got {value!r}")
        defaults = dict(lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, maximize=maximize)
        super().__init__(params, defaults)
        self.mu = [Parameter(Tensor(1.0), f"mu_{p.name}") for p in self.parameters]
        self.eta = [Parameter(Tensor(0.0), f"eta_{p.name}") for p in self.parameters]
        self.ax = self.parameters.clone(prefix="ax", init="zeros")
        self.step_t = self._step_counter("step_t")

    def implementation(self, lambd, alpha, t0, lr, group_id, maximize, gradients, weight_decay) -> bool:
        """One step of one group."""
        start, end = self._span(group_id)
        part = self._gradients(gradients, start, end, maximize, weight_decay)
        rows = self._rows(start, end, self.ax, self.mu, self.eta, part)
        rules.asgd(rows, self.step_t.astype(dtypes.float32), lr, lambd, alpha, t0)
        return True

    def construct(self, gradients):
        count_step(self.step_t)
        for i, group in enumerate(self.param_groups):
            self.implementation(
                group["lambd"],
                group["alpha"],
                group["t0"],
                self._rate_of(i),
                i,
                group["maximize"],
                gradients,
                group["weight_decay"],
            )
        return self._given()


class Rprop(Optimizer):
    """Step sizes from the signs of successive gradients (Riedmiller and Braun 1993)."""

    by_parameter = True

    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, maximize=False):
        above("Rprop", 0.0, lr=lr)
        above("Rprop", 1.0, **{"etas[1]": etas[1]})
        if not 0.0 < etas[0] < 1.0:
            raise errors.value_error("Rprop", f"etas[0] must be in (0, 1), but got {etas[0]}")
        super().__init__(params, dict(lr=lr, etas=etas, step_sizes=step_sizes, maximize=maximize))
        self.prev = self.parameters.clone(prefix="prev", init="zeros")
        self.step_size = self.parameters.clone(prefix="step_size", init="zeros")
        self.step_t = self._step_counter("step_t")

    def implementation(
        self, etaminus, etaplus, group_id, lr, gradients, maximize, step_size_min, step_size_max
    ) -> bool:
        """One step of one group."""
        start, end = self._span(group_id)
        part = self._gradients(gradients, start, end, maximize, 0.0)
        rows = self._rows(start, end, self.prev, self.step_size, part)
        rules.rprop(rows, self.step_t == 1, lr, (etaminus, etaplus), (step_size_min, step_size_max))
        return True

    def construct(self, gradients):
        count_step(self.step_t)
        for i, group in enumerate(self.param_groups):
            self.implementation(
                *group["etas"], i, self._rate_of(i), gradients, group["maximize"], *group["step_sizes"]
            )
        return self._given()
