"""Cells that join a network with its loss and its optimizer."""

from __future__ import annotations

from mycelia import errors
from mycelia.autodiff.transforms import value_and_grad
from mycelia.nn.cell import Cell
from mycelia.tensor import ParameterTuple, Tensor


class WithLossCell(Cell):
    """``loss_fn(backbone(data), label)`` as one cell."""

    def __init__(self, backbone: Cell, loss_fn):
        super().__init__(auto_prefix=False)
        if not isinstance(backbone, Cell):
            raise errors.type_error(
                "WithLossCell", f"backbone must be a Cell, but got {type(backbone).__name__}"
            )
        self._backbone = backbone
        self._loss_fn = loss_fn

    def construct(self, data, label):
        return self._loss_fn(self._backbone(data), label)

    @property
    def backbone_network(self) -> Cell:
        """The network without the loss."""
        return self._backbone


class WithEvalCell(Cell):
    """``(loss, output, label)`` of a network, for metrics."""

    def __init__(self, network: Cell, loss_fn, add_cast_fp32: bool = False):
        super().__init__(auto_prefix=False)
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32 = bool(add_cast_fp32)

    def construct(self, data, label):
        outputs = self._network(data)
        if self.add_cast_fp32 and isinstance(outputs, Tensor):
            from mycelia.dtypes import float32
            from mycelia.ops.cast import cast

            outputs = cast(outputs, dtype=float32)
        loss = self._loss_fn(outputs, label)
        return loss, outputs, label


class ForwardValueAndGrad(Cell):
    """``(value, gradients)`` of a network.

    `get_all`: of all inputs; `get_by_list`: of `weights`; both: a pair. `sens_param`: the last argument is
    the cotangent of the output.
    """

    def __init__(self, network, weights=None, get_all=False, get_by_list=False, sens_param=False):
        super().__init__(auto_prefix=False)
        self.network = network
        if get_by_list and weights is None:
            raise errors.value_error("ForwardValueAndGrad", "weights must be given when get_by_list is True")
        self.__dict__["weights"] = weights
        self.get_all, self.get_by_list, self.sens_param = bool(get_all), bool(get_by_list), bool(sens_param)

    def construct(self, *inputs):
        from mycelia.autodiff.transforms import vjp

        weights = self.weights if self.get_by_list else None
        if self.sens_param:
            inputs, sens = inputs[:-1], inputs[-1]
            value, pull = vjp(self.network, *inputs, weights=weights)
            found = pull(sens)
            if weights is None:
                return value, (found if self.get_all else found if isinstance(found, Tensor) else found[0])
            return value, (found if self.get_all else found[1])
        position = tuple(range(len(inputs))) if self.get_all else (None if self.get_by_list else 0)
        return value_and_grad(self.network, position, weights)(*inputs)


class WithGradCell(Cell):
    """Gradients of ``loss_fn(network(*data), label)``, or of ``network(*inputs)``, by the network's
    trainable parameters.

    `sens`: the cotangent of the loss, a number or a Tensor. Returns a tuple of gradients in
    the order of the parameters.
    """

    def __init__(self, network: Cell, loss_fn=None, sens=None):
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell):
            raise errors.type_error(
                "WithGradCell", f"network must be a Cell, but got {type(network).__name__}"
            )
        if sens is not None and (isinstance(sens, bool) or not isinstance(sens, (int, float, Tensor, tuple))):
            raise errors.type_error(
                "WithGradCell", f"sens must be None, a number, a Tensor or a tuple, but got {sens!r}"
            )
        self.network = network
        self.loss_fn = loss_fn
        self.sens = sens
        self.__dict__["weights"] = ParameterTuple(network.trainable_params())
        self.__dict__["_target"] = network if loss_fn is None else WithLossCell(network, loss_fn)
        network.set_grad()

    def construct(self, *inputs):
        from mycelia.autodiff.transforms import vjp

        value, pull = vjp(self._target, *inputs, weights=self.weights)
        if self.sens is None or isinstance(self.sens, (int, float)):
            ct = _ones_like(value) * (1.0 if self.sens is None else float(self.sens))
        else:
            ct = self.sens
        return pull(ct)[1]


def _ones_like(value):
    from mycelia.ops.create import ones_like

    return ones_like(value)


class TrainOneStepCell(Cell):
    """One training step: gradients of `network` (which returns the loss),
    then the optimizer. Returns the loss.

    `sens` scales the gradient; with `return_grad` the gradients come back too, by parameter name.
    """

    def __init__(self, network: Cell, optimizer, sens: float | None = None, return_grad: bool = False):
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell):
            raise errors.type_error(
                "TrainOneStepCell", f"network must be a Cell, but got {type(network).__name__}"
            )
        if not hasattr(optimizer, "parameters"):
            raise errors.type_error(
                "TrainOneStepCell", f"optimizer must be an Optimizer, but got {type(optimizer).__name__}"
            )
        self.network = network
        self.optimizer = optimizer
        self.__dict__["weights"] = ParameterTuple(optimizer.parameters)
        self.sens = 1.0 if sens is None else float(sens)
        self.return_grad = bool(return_grad)
        self.__dict__["_forward_backward"] = value_and_grad(
            self._scaled_loss, None, self.weights, has_aux=True
        )

    def _scaled_loss(self, *inputs):
        loss = self.network(*inputs)
        first = loss[0] if isinstance(loss, (tuple, list)) else loss
        return (first if self.sens == 1.0 else first * self.sens), loss

    def construct(self, *inputs):
        (_, loss), grads = self._forward_backward(*inputs)
        self.optimizer(grads)
        if self.return_grad:
            return loss, {w.name: g for w, g in zip(self.weights, grads)}
        return loss


class ParameterUpdate(Cell):
    """Overwrites a Parameter with its input: ``ParameterUpdate(param)(value)``."""

    def __init__(self, param):
        super().__init__(auto_prefix=False)
        self._param = param

    def construct(self, x):
        from mycelia.ops.state import assign

        assign(self._param, x)
        return x
