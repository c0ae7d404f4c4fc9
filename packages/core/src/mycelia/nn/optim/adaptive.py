"""Rates per element or layer from past gradients: RMSProp, Adagrad, Adadelta, Ftrl, Rprop, LARS."""

from __future__ import annotations

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.elementwise.comparison import equal
from mycelia.engine.ops.nn_ops import adaptive_optim as _adaptive_optim
from mycelia.engine.ops.nn_ops import optim as _optim
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.optim import rules
from mycelia.nn.optim.optimizer import Optimizer, check_flags, check_number, scalar


class RMSProp(Optimizer):
    """Scaling by the root of a running mean of squares (Tieleman and Hinton 2012);
    `centered` uses the variance.
    """

    elementwise = True

    def __init__(
        self,
        params,
        learning_rate=0.1,
        decay=0.9,
        momentum=0.0,
        epsilon=1e-10,
        use_locking=False,
        centered=False,
        loss_scale=1.0,
        weight_decay=0.0,
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_flags("RMSProp", use_locking=use_locking, centered=centered)
        check_number("RMSProp", integers=False, decay=decay, momentum=momentum)
        check_number("RMSProp", open_low=True, integers=False, epsilon=epsilon)
        self.decay, self.momentum, self.epsilon, self.centered = (
            float(decay),
            float(momentum),
            float(epsilon),
            bool(centered),
        )
        if self.centered:
            self.mg = self.state_of("mean_grad")
        self.ms = self.state_of("mean_square", "ones")
        self.moment = self.state_of("moment")

    def update(self, index, parameter, gradient, learning_rate):
        numbers = (self.decay, self.momentum, self.epsilon)
        if self.centered:
            _adaptive_optim._apply_centered_rms_prop(
                parameter,
                self.mg[index],
                self.ms[index],
                self.moment[index],
                gradient,
                learning_rate,
                *numbers,
            )
        else:
            _adaptive_optim._apply_rms_prop(
                parameter, self.ms[index], self.moment[index], learning_rate, gradient, *numbers
            )


class Adagrad(Optimizer):
    """Scaling by the root of all past squares (Duchi et al. 2011)."""

    elementwise = True

    def __init__(
        self, params, accum=0.1, learning_rate=0.001, update_slots=True, loss_scale=1.0, weight_decay=0.0
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_flags("Adagrad", update_slots=update_slots)
        check_number("Adagrad", accum=accum)
        self.update_slots = bool(update_slots)
        self.accum = self.state_of("accum", float(accum))

    def update(self, index, parameter, gradient, learning_rate):
        _adaptive_optim._apply_adagrad(
            parameter, self.accum[index], learning_rate, gradient, update_slots=self.update_slots
        )


class ProximalAdagrad(Optimizer):
    """Adagrad with l1 and l2 regularization by proximal steps (Duchi and Singer 2009)."""

    elementwise = True

    def __init__(
        self,
        params,
        accum=0.1,
        learning_rate=0.001,
        l1=0.0,
        l2=0.0,
        use_locking=False,
        loss_scale=1.0,
        weight_decay=0.0,
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_number("ProximalAdagrad", accum=accum, l1=l1, l2=l2)
        check_flags("ProximalAdagrad", use_locking=use_locking)
        self.l1, self.l2 = Tensor(l1, dtypes.float32), Tensor(l2, dtypes.float32)
        self.accum = self.state_of("accum", float(accum))

    def update(self, index, parameter, gradient, learning_rate):
        _optim._apply_proximal_adagrad(
            parameter, self.accum[index], learning_rate, self.l1, self.l2, gradient
        )


class Adadelta(Optimizer):
    """Step sizes from running means of squared gradients and squared steps (Zeiler 2012)."""

    elementwise = True

    def __init__(self, params, learning_rate=1.0, rho=0.9, epsilon=1e-6, loss_scale=1.0, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_number("Adadelta", rho=rho, high=1.0 + 1e-12)
        check_number("Adadelta", epsilon=epsilon)
        self.rho, self.epsilon = float(rho), float(epsilon)
        self.accum = self.state_of("accum")
        self.accum_update = self.state_of("accum_update")

    def update(self, index, parameter, gradient, learning_rate):
        _adaptive_optim._apply_adadelta(
            parameter,
            self.accum[index],
            self.accum_update[index],
            learning_rate,
            self.rho,
            self.epsilon,
            gradient,
        )


class FTRL(Optimizer):
    """Follow the regularized leader (McMahan et al. 2013)."""

    elementwise = True

    _spares_norms = False

    def __init__(
        self,
        params,
        initial_accum=0.1,
        learning_rate=0.001,
        lr_power=-0.5,
        l1=0.0,
        l2=0.0,
        use_locking=False,
        loss_scale=1.0,
        weight_decay=0.0,
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if self.dynamic_lr or self.is_group_lr:
            raise errors.value_error("FTRL", "a dynamic or grouped learning rate is not taken")
        check_flags("FTRL", use_locking=use_locking)
        check_number("FTRL", initial_accum=initial_accum, l1=l1, l2=l2)
        if lr_power > 0:
            raise errors.value_error("FTRL", f"lr_power must be at most 0, but got {lr_power}")
        self.lr_power, self.l1, self.l2 = float(lr_power), float(l1), float(l2)
        self.moments = self.state_of("moments", float(initial_accum))
        self.linear = self.state_of("linear")

    def update(self, index, parameter, gradient, learning_rate):
        _optim._apply_ftrl(
            parameter,
            self.moments[index],
            self.linear[index],
            gradient,
            learning_rate,
            self.l1,
            self.l2,
            self.lr_power,
        )


class Rprop(Optimizer):
    """Step sizes from the signs of successive gradients (Riedmiller and Braun 1993)."""

    elementwise = True

    _one_result = True

    def __init__(self, params, learning_rate=0.1, etas=(0.5, 1.2), step_sizes=(1e-6, 50.0), weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay)
        for name, pair in (("etas", etas), ("step_sizes", step_sizes)):
            if not isinstance(pair, tuple):
                raise errors.type_error("Rprop", f"{name} must be a tuple, but got {type(pair).__name__}")
        if len(etas) != 2 or not 0 < etas[0] < 1 < etas[1]:
            raise errors.value_error("Rprop", f"etas must be (a, b) with 0 < a < 1 < b, but got {etas}")
        if len(step_sizes) != 2 or not 0 <= step_sizes[0] <= step_sizes[1]:
            raise errors.value_error("Rprop", f"step_sizes must be (least, most), but got {step_sizes}")
        self.etas, self.step_sizes = tuple(map(float, etas)), tuple(map(float, step_sizes))
        self.prev = self.state_of("prev")
        self.step_size = self.state_of("step_size")

    def update(self, index, parameter, gradient, learning_rate):
        row = parameter, self.prev[index], self.step_size[index], gradient
        rules.rprop([row], equal(self.global_step, 1), learning_rate, self.etas, self.step_sizes)


class LARS(Optimizer):
    """Layer-wise rates around another optimizer (You et al. 2017).

    `lars_filter(parameter)`: which parameters are scaled; the others are updated plainly.
    """

    elementwise = True  # what is not goes to the optimizer as whole gradients

    def __init__(
        self,
        optimizer,
        epsilon=1e-05,
        coefficient=0.001,
        use_clip=False,
        lars_filter=lambda x: "LayerNorm" not in x.name and "bias" not in x.name,
    ):
        if not isinstance(optimizer, Optimizer):
            raise errors.type_error(
                "LARS", f"optimizer must be an Optimizer, but got {type(optimizer).__name__}"
            )
        super().__init__(0.0, optimizer.parameters)
        self.learning_rate.name = "fake_lr"  # the rate is the inner optimizer's; names as in checkpoints
        self.fake_param = scalar(0.0, "fake_param")
        check_number("LARS", open_low=True, epsilon=epsilon, coefficient=coefficient)
        self.opt = optimizer
        self.epsilon, self.coefficient, self.use_clip = float(epsilon), float(coefficient), bool(use_clip)
        self.lars_flag = tuple(bool(lars_filter(p)) for p in optimizer.parameters)
        # The inner optimizer's decay becomes part of the trust ratio, so it must not act again.
        self.__dict__["_inner_decays"] = list(optimizer._decays)
        optimizer._decays = [0.0] * len(optimizer._decays)
        optimizer.exec_weight_decay = False

    def construct(self, gradients):
        from mycelia.engine.ops.reductions.reduce import l2_norm

        gradients = tuple(gradients)
        rates = self.opt.get_lr()
        scaled = []
        for i, (p, g, use) in enumerate(zip(self.opt.parameters, gradients, self.lars_flag)):
            if use and g is not None:  # None: another stage of a pipeline has it
                rate = rates[i] if self.opt.is_group_lr else rates
                g = _optim._lars_update(
                    p,
                    g,
                    l2_norm(p),
                    l2_norm(g),
                    self._inner_decays[i],
                    rate,
                    epsilon=self.epsilon,
                    hyperpara=self.coefficient,
                    use_clip=self.use_clip,
                )
            scaled.append(g)
        return self.opt(tuple(scaled))
