"""Cells that join a network with its loss and its optimizer."""

from __future__ import annotations

import types

from mycelia.engine import _C
from mycelia.engine.autodiff.transforms import value_and_grad, watching
from mycelia.engine.base import errors
from mycelia.engine.base.parallel_settings import get_auto_parallel_context
from mycelia.engine.communication import mode, stages
from mycelia.engine.tensors.tensor import Parameter, ParameterTuple, Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.dense import Identity
from mycelia.nn.pipeline.cells import PipelineCell
from mycelia.nn.wrap.distributed import DistributedGradReducer
from mycelia.nn.wrap.pipeline_reducer import PipelineGradReducer
from mycelia.ops.composite import GradOperation


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
            from mycelia.engine.base.dtypes import float32
            from mycelia.engine.ops.elementwise.cast import cast

            outputs = cast(outputs, dtype=float32)
        loss = self._loss_fn(outputs, label)
        return loss, outputs, label


class ForwardValueAndGrad(Cell):
    """``(value, gradients)`` of a network, by one pass.

    `get_all`: of all inputs; `get_by_list`: of `weights`; both: a pair. `sens_param`: the last argument is
    the cotangent of the output. Errors: TypeError for a network that is neither Cell nor function, for flags
    that are no bool, and for `get_by_list` without weights.
    """

    def __init__(self, network, weights=None, get_all=False, get_by_list=False, sens_param=False):
        super().__init__(auto_prefix=False)
        if not isinstance(network, (Cell, types.FunctionType, types.MethodType)):
            raise errors.type_error(
                "ForwardValueAndGrad",
                f"network must be a Cell, a function or a method, but got {type(network).__name__}",
            )
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list)):
            if not isinstance(value, bool):
                raise errors.type_error(
                    "ForwardValueAndGrad", f"{name} must be a bool, but got {type(value).__name__}"
                )
        if get_by_list and not isinstance(weights, (tuple, list)):
            raise errors.type_error(
                "ForwardValueAndGrad",
                f"with get_by_list=True weights must be Parameters, but got {type(weights).__name__}",
            )
        self.network = network
        self.__dict__["weights"] = weights
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, bool(sens_param)

    def construct(self, *inputs):
        from mycelia.engine.autodiff.transforms import differentiate

        cotangent = None
        if self.sens_param:
            inputs, cotangent = inputs[:-1], inputs[-1]
        positions = [i for i, x in enumerate(inputs) if isinstance(x, Tensor)]
        if not self.get_all:
            positions = [] if self.get_by_list else positions[:1]
        weights = list(self.weights) if self.get_by_list else []
        value, of_inputs, of_weights = differentiate(
            self.network, inputs, positions, weights, False, cotangent
        )
        if self.get_by_list:
            return value, ((tuple(of_inputs), tuple(of_weights)) if self.get_all else tuple(of_weights))
        return value, (tuple(of_inputs) if self.get_all else of_inputs[0])


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
        self.weights = ParameterTuple(network.trainable_params())
        self.grad = GradOperation(get_by_list=True, sens_param=sens is not None)
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)
        self.network_with_loss.set_train()
        network.set_grad()

    def construct(self, *inputs):
        if self.sens is None:
            return self.grad(self.network_with_loss, self.weights)(*inputs)
        return self.grad(self.network_with_loss, self.weights)(*inputs, self.sens)


class TrainOneStepCell(Cell):
    """One training step: gradients of `network` (which returns the loss),
    then the optimizer. Returns the loss.

    `sens` scales the gradient; with `return_grad` the gradients come back too, by parameter name.
    For derived cells: `grad(network, weights)(*inputs, sens)` gives the gradients, `grad_no_sens` those of
    the plain loss, and `grad_reducer` joins them over the processes that train together.
    Errors: ValueError if `sens` is 0.
    """

    def __init__(self, network: Cell, optimizer, sens: float | None = None, return_grad: bool = False):
        super().__init__(auto_prefix=False)
        self.in_stages = stages.current(type(self).__name__) is not None
        together = self.in_stages or mode.degree(type(self).__name__) > 1
        if not isinstance(network, Cell):
            raise errors.type_error(
                "TrainOneStepCell", f"network must be a Cell, but got {type(network).__name__}"
            )
        if not hasattr(optimizer, "parameters"):
            raise errors.type_error(
                "TrainOneStepCell", f"optimizer must be an Optimizer, but got {type(optimizer).__name__}"
            )
        if sens is not None and not isinstance(sens, Tensor) and sens == 0:
            raise errors.value_error("TrainOneStepCell", "sens must not be 0")
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = ParameterTuple(optimizer.parameters)
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        self.grad_no_sens = GradOperation(get_by_list=True)
        self.sense_flag = sens is not None
        self.sens = 1.0 if sens is None else sens
        self.return_grad = bool(return_grad)
        self.reducer_flag = together
        reducer = PipelineGradReducer if self.in_stages else DistributedGradReducer
        self.grad_reducer = reducer(self.weights) if together else Identity()
        self.parallel_mode = get_auto_parallel_context("parallel_mode")
        self.__dict__["_forward_backward"] = value_and_grad(
            self._scaled_loss, None, self.weights, has_aux=True
        )

    def _scaled_loss(self, *inputs):
        if not self.sense_flag:
            loss = self.network(*inputs)
            return (loss[0] if isinstance(loss, (tuple, list)) else loss), loss
        loss = self._loss(self.sens, *inputs)
        first = loss[0] if isinstance(loss, (tuple, list)) else loss
        return first * self.sens, loss

    def _loss(self, scale, *inputs):
        """What the network returns; its gradient will be that of the loss times `scale`."""
        if self.in_stages and isinstance(self.network, PipelineCell):
            return self.network.scaled(scale, *inputs)
        return self.network(*inputs)

    @property
    def _scatters(self) -> bool:
        """Whether the optimizer needs but its parts of the sums."""
        shares = getattr(self.optimizer, "shares", None)
        return shares is not None and isinstance(self.grad_reducer, DistributedGradReducer)

    def _reduced(self, grads, whole: bool = False):
        """Gradients of all processes; parts of them where more is not needed."""
        if self._scatters and not whole:
            return self.grad_reducer.scattered(grads, self.optimizer.shares, self.optimizer.keeps_parts)
        return self.grad_reducer(grads)

    def _loss_and_gradients(self, inputs, prepare=None, whole: bool = False):
        """What the network gives, and the gradients of all processes (as `_reduced`), which are added while
        others are still computed; `prepare` makes of each what is added.
        """
        sums = self._sums(whole)
        if sums is None:
            (_, loss), grads = self._forward_backward(*inputs)
            if prepare is not None:  # None: another stage of a pipeline has it
                grads = tuple(None if g is None else prepare(g) for g in grads)
            return loss, self._reduced(grads, whole)
        prepared = {}

        def ready(i, gradient):
            gradient = gradient if prepare is None else prepare(gradient)
            is_taken = sums.ready(i, gradient)
            prepared[i] = None if is_taken else gradient
            return is_taken

        with watching(self.weights, ready):
            (_, loss), grads = self._forward_backward(*inputs)
        for i, gradient in enumerate(grads):
            if i not in prepared:
                prepared[i] = gradient if prepare is None else prepare(gradient)
        return loss, tuple(sums.finish([prepared[i] for i in range(len(grads))]))

    def _sums(self, whole: bool):
        """The sums of a step's gradients; None where these come at once: in a graph, whose operators show
        what is ready when, and for a reducer of one's own.
        """
        reducer = self.grad_reducer
        if type(reducer) is not DistributedGradReducer or not reducer.reduces or _C.mode() or _C.tape_level():
            return None
        if not all(w.dtype.is_floating for w in self.weights):
            return None
        if whole or not self._scatters:
            return reducer.sums(self.weights)
        return reducer.sums(self.weights, self.optimizer.shares, self.optimizer.keeps_parts)

    def construct(self, *inputs):
        loss, grads = self._loss_and_gradients(inputs, None, self.return_grad)
        self.optimizer(grads)
        if self.return_grad:
            return loss, {w.name: g for w, g in zip(self.weights, grads) if g is not None}
        return loss


class GradAccumulationCell(Cell):
    """`network` applied to `micro_size` equal parts of a batch one after the other; returns the sum of
    the outputs.

    Inputs: Tensors whose first dimension `micro_size` divides, else ValueError.
    """

    def __init__(self, network: Cell, micro_size: int):
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell):
            raise errors.type_error(
                "GradAccumulationCell", f"network must be a Cell, but got {type(network).__name__}"
            )
        if isinstance(micro_size, bool) or not isinstance(micro_size, int):
            raise errors.type_error(
                "GradAccumulationCell", f"micro_size must be an int, but got {type(micro_size).__name__}"
            )
        if micro_size <= 0:
            raise errors.value_error(
                "GradAccumulationCell", f"micro_size must be positive, but got {micro_size}"
            )
        self.network = network
        self.micro_size = micro_size

    def construct(self, *inputs):
        for x in inputs:
            if x.shape[0] % self.micro_size:
                raise errors.value_error(
                    "GradAccumulationCell",
                    f"micro_size {self.micro_size} does not divide the first dimension of {list(x.shape)}",
                )
        total = None
        for i in range(self.micro_size):
            parts = []
            for x in inputs:
                rows = x.shape[0] // self.micro_size
                parts.append(x[i * rows : (i + 1) * rows])
            output = self.network(*parts)
            total = output if total is None else total + output
        return total


class MicroBatchInterleaved(Cell):
    """`network` applied to `interleave_num` equal parts of a batch; returns the sum of the outputs.

    On one device nothing overlaps: the result is what counts. Inputs: as `GradAccumulationCell`.
    """

    def __init__(self, network: Cell, interleave_num: int = 2):
        super().__init__(auto_prefix=False)
        if isinstance(interleave_num, bool) or not isinstance(interleave_num, int):
            raise errors.type_error(
                "MicroBatchInterleaved",
                f"interleave_num must be an int, but got {type(interleave_num).__name__}",
            )
        if interleave_num <= 0:
            raise errors.value_error(
                "MicroBatchInterleaved", f"interleave_num must be positive, but got {interleave_num}"
            )
        self.network = network
        self.interleave_num = interleave_num
        self.__dict__["_parts"] = GradAccumulationCell(network, interleave_num)

    def construct(self, *inputs):
        return self._parts(*inputs)


class ParameterUpdate(Cell):
    """Overwrites a Parameter with its input: ``ParameterUpdate(param)(value)``.

    Errors: TypeError for what is no Parameter.
    """

    def __init__(self, param):
        super().__init__(auto_prefix=False)
        if not isinstance(param, Parameter):
            raise errors.type_error(
                "ParameterUpdate", f"param must be a Parameter, but got {type(param).__name__}"
            )
        self._param = param

    def construct(self, x):
        from mycelia.engine.ops.control_flow.state import assign

        assign(self._param, x)
        return x
