"""Groups of Parameters, and optimizers like a given one for other groups."""

from __future__ import annotations

import inspect

from mycelia.engine.base import errors, log
from mycelia.engine.tensors.tensor import Parameter
from mycelia.faces.boost.layers import CommonHeadLastFN
from mycelia.nn.cell import Cell
from mycelia.nn.conv import Conv2d
from mycelia.nn.optim.adaptive import LARS
from mycelia.nn.optim.optimizer import Optimizer


def arguments_of(optimizer: Optimizer) -> dict:
    """What the optimizer was made with, by name."""
    args, kwargs = optimizer.made_with
    bound = inspect.signature(type(optimizer)).bind(*args, **kwargs)
    extra = bound.arguments.pop("kwargs", {})
    return {**bound.arguments, **extra}


def made_again(optimizer: Optimizer, parameters) -> Optimizer:
    """An optimizer like this one for other Parameters."""
    given = arguments_of(optimizer)
    if isinstance(optimizer, LARS):
        return LARS(**{**given, "optimizer": made_again(optimizer.opt, parameters)})
    return type(optimizer)(**{**given, "params": parameters})


def parameters_of(optimizer: Optimizer) -> list:
    """The Parameters or groups that the optimizer was made for."""
    inner = optimizer.opt if isinstance(optimizer, LARS) else optimizer
    return _checked(arguments_of(inner).get("params", inner.parameters))


def _checked(parameters) -> list:
    parameters = list(parameters or ())
    if not parameters:
        raise errors.value_error("boost", "an optimizer needs Parameters, but the list is empty")
    if not isinstance(parameters[0], (dict, Parameter)):
        raise errors.type_error(
            "boost", f"Parameters or dicts are expected, but got {type(parameters[0]).__name__}"
        )
    return parameters


class OptimizerProcess:
    """Makes an optimizer like `opt` whose groups have centered gradients."""

    def __init__(self, opt: Optimizer):
        if not isinstance(opt, Optimizer):
            raise errors.type_error(
                "OptimizerProcess", f"opt must be an Optimizer, but got {type(opt).__name__}"
            )
        self.single_opt = opt
        self.origin_params = parameters_of(opt)

    @staticmethod
    def build_params_dict(network: Cell) -> dict[int, Cell]:
        """The cell of each Parameter, by the Parameter's id."""
        return {id(p): cell for _, cell in network.cells_and_names() for p in cell.get_parameters(False)}

    @staticmethod
    def build_gc_params_group(params_dict: dict[int, Cell], parameters: list[dict]) -> list[dict]:
        """Each group in two: weights, with centered gradients, and the rest.

        The rest are scales, shifts and biases, and weights of convolutions by groups.
        """

        def centered(parameter):
            cell = params_dict[id(parameter)]
            by_groups = isinstance(cell, Conv2d) and cell.group > 1
            named = any(word in parameter.name for word in ("beta", "gamma", "bias"))
            return not (named or by_groups or isinstance(cell, CommonHeadLastFN))

        groups = []
        for group in parameters:
            if "order_params" in group:
                groups.append(group)
                continue
            weights = [p for p in group["params"] if centered(p)]
            rest = [p for p in group["params"] if not centered(p)]
            if weights:
                groups.append({**group, "params": weights, "grad_centralization": True})
            if rest:
                groups.append({**group, "params": rest})
        return groups

    def add_grad_centralization(self, network: Cell) -> None:
        """Center the gradients of weights. Parameters without groups stay as they are, with a warning."""
        if isinstance(self.origin_params[0], Parameter):
            log.logger(__name__).warning("only groups of Parameters can have centered gradients")
            return
        self.origin_params = self.build_gc_params_group(self.build_params_dict(network), self.origin_params)

    def generate_new_optimizer(self) -> Optimizer:
        """An optimizer of the same kind for the groups as they are now."""
        return made_again(self.single_opt, self.origin_params)


class ParameterProcess:
    """Groups of Parameters, and where their gradients may be sent together."""

    def __init__(self):
        self._part = 1

    @staticmethod
    def generate_group_params(parameters: list[Parameter], origin_params: list) -> list[dict]:
        """Groups of `parameters` with the options of `origin_params`.

        Those of no group get the options of the group that has most. Errors: ValueError if `origin_params`
        is empty, TypeError unless it holds Parameters or groups.
        """
        origin = _checked(origin_params)
        if isinstance(origin[0], Parameter):
            return [{"params": parameters}]
        left = {p.name: p for p in parameters}
        groups = []
        for group in origin:
            if "order_params" in group:
                groups.append({**group, "order_params": parameters})
            else:
                taken = [left.pop(p.name) for p in group["params"] if p.name in left]
                groups.append({**group, "params": taken})
        if left:
            richest = max((g for g in origin if "order_params" not in g), key=len, default={})
            groups.append({**richest, "params": list(left.values())})
        return groups

    def assign_parameter_group(self, parameters, split_point: list[int] | None = None):
        """Number the Parameters' `comm_fusion`, one more from each of `split_point` (the half) on."""
        if not isinstance(parameters, (list, tuple)) or not parameters:
            return parameters
        points = split_point or [len(parameters) // 2]
        for i, parameter in enumerate(parameters):
            self._part += i in points
            parameter.comm_fusion = self._part
        return parameters
