"""Adam and AdamW; FusedAdamW is AdamW that also knows its Parameters as contiguous runs."""

from __future__ import annotations

import numpy as np

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.faces.experimental.optim.optimizer import Optimizer, at_least, fractions
from mycelia.nn.optim import rules


class Adam(Optimizer):
    """Adaptive moments (Kingma and Ba 2015): ``p -= lr * m' / (sqrt(v') + eps)``, m' and v' unbiased.

    `weight_decay` is added to the gradient; `amsgrad` divides by the largest v (Reddi et al. 2018);
    `maximize`: ascent.  Errors: TypeError and ValueError name the argument.
    """

    by_parameter = True
    _decoupled = False

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
        owner = type(self).__name__
        for name, value in (("lr", lr), ("eps", eps)):
            if isinstance(value, (bool, int, str)):
                raise errors.type_error(owner, f"{name} must be a float, but got {value!r}")
        if not isinstance(lr, Tensor):
            at_least(owner, 0.0, lr=lr)
        at_least(owner, 0.0, eps=eps, weight_decay=weight_decay)
        fractions(owner, **{"betas[0]": betas[0], "betas[1]": betas[1]})
        super().__init__(
            params,
            dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize),
        )
        self.exp_avg = self.parameters.clone(prefix="exp_avg", init="zeros")
        self.exp_avg_sq = self.parameters.clone(prefix="exp_avg_sq", init="zeros")
        self.max_exp_avg_sq = ()
        if any(group["amsgrad"] for group in self.param_groups):
            self.max_exp_avg_sq = self.parameters.clone(prefix="max_exp_avg_sq", init="zeros")
        self.state_step = Parameter(Tensor(np.zeros(1, np.float32)), "state_step")

    def construct(self, gradients):
        ops.assign_add(self.state_step, 1.0)
        step = ops.reshape(self.state_step, ())
        for group_id, group in enumerate(self.param_groups):
            rate, decay = self._rate_of(group_id), group["weight_decay"]
            start, end = self._span(group_id)
            part = self._gradients(
                gradients, start, end, group["maximize"], 0.0 if self._decoupled else decay
            )
            largest = self.max_exp_avg_sq[start:end] if group["amsgrad"] else [None] * (end - start)
            m, v = self.exp_avg[start:end], self.exp_avg_sq[start:end]
            part = [ops.cast(gradient, state.dtype) for gradient, state in zip(part, m)]
            rows = self._own(start, zip(self.parameters[start:end], m, v, largest, part))
            rules.adam(rows, step, rate, group["betas"], group["eps"], decay if self._decoupled else 0.0)
        return self._given()


class AdamW(Adam):
    """Adam with decay apart from the gradient: ``p *= 1 - lr * weight_decay`` first (Loshchilov and Hutter
    2019)."""

    _decoupled = True

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
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class FusedAdamW(AdamW):
    """AdamW under the name of the kernel that updates all Parameters of a group at once.

    Here compiled steps are fused anyway, and the Parameters stay where they are.
    """

    def contiguous_params(self, start_id, end_id, param_group):
        """The Parameters from `start_id` to `end_id`, one after the other as one vector."""
        del param_group  # the numbers say which
        return ops.concat([ops.reshape(p, (-1,)) for p in self.parameters[start_id:end_id]])

    def set_contiguous_params(self):
        """The vector of each group, in order."""
        return tuple(
            self.contiguous_params(*self._span(i), group) for i, group in enumerate(self.param_groups)
        )

    def inject_group_amsgrad_states(self):
        """The largest second moments, which exist if a group asks for amsgrad."""
        return self.max_exp_avg_sq
