"""Declaring methods: a function runs once, at import, on placeholders, and leaves the list of its stages."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

from mycelia_serving.servable import arguments
from mycelia_serving.servable.declaration import Declaration, Function, Method, Stage, current
from mycelia_serving.servable.functions import named
from mycelia_serving.servable.model import Model
from mycelia_serving.servable.source import result_counts

__all__ = [
    "add_stage",
    "call_postprocess",
    "call_postprocess_pipeline",
    "call_preprocess",
    "call_preprocess_pipeline",
    "call_servable",
    "one_at_a_time",
    "register_method",
]


class Placeholder:
    """A value that instances will have: an input of the method or a result of a stage."""

    __slots__ = ("builder", "index")

    def __init__(self, builder: MethodBuilder, index: int) -> None:
        self.builder = builder
        self.index = index


class MethodBuilder:
    """A method while its function runs."""

    def __init__(
        self, declaration: Declaration, function: Callable, inputs: tuple[str, ...], outputs: tuple[str, ...]
    ) -> None:
        self.declaration = declaration
        self.function = function
        self.name = function.__name__
        self.inputs, self.outputs = inputs, outputs
        self.stages: list[Stage] = []
        self.values = len(inputs)
        self.steps: list[
            str
        ] = []  # of call_preprocess, call_servable, call_postprocess, those that were called
        self._counts: dict[str, int] | None = None

    def placeholders(self, first: int, count: int) -> tuple[Placeholder, ...]:
        return tuple(Placeholder(self, first + i) for i in range(count))

    def index(self, value: Any, what: str) -> int:
        """The number of the value that a placeholder stands for."""
        if not isinstance(value, Placeholder) or value.builder is not self:
            raise RuntimeError(
                f"In method '{self.name}', {what} should be an input of the method or a result of a stage, "
                f"but got {type(value).__name__}"
            )
        return value.index

    def count(self, call: str) -> int:
        """How many results the assignment of `call` takes."""
        if self._counts is None:
            self._counts = result_counts(self.function, len(self.outputs))
        if call not in self._counts:
            raise RuntimeError(
                f"The method '{self.name}' should assign what {call} returns: y = register.{call}(...)"
            )
        return self._counts[call]

    def add(
        self, target: Model | Function, inputs: tuple, outputs: int, batch_size: int | None, tag: str
    ) -> Any:
        """Appends a stage; its results, one or a tuple."""
        number = len(self.stages) + 1
        places = tuple(self.index(v, f"input {i} of stage {number}") for i, v in enumerate(inputs))
        results = self.placeholders(self.values, outputs)
        numbers = tuple(p.index for p in results)
        self.stages.append(Stage(number, target, places, numbers, batch_size, tag))
        self.values += outputs
        return results[0] if outputs == 1 else results


def register_method(
    output_names: str | list[str] | tuple[str, ...], *, retry: bool = True, default: bool = False
) -> Callable:
    """Declares a method: the parameters of the decorated function are its inputs, `output_names` its outputs.

    The function says by `add_stage` which functions and models an instance goes through.
    retry: False if an instance must not run twice, should its worker be lost before it answers.
    default: protocols that name a servable without a method mean this one.
    Errors: RuntimeError.
    """
    outputs = arguments.check_strings("output_names", output_names)
    arguments.check_bool("retry", retry)
    arguments.check_bool("default", default)

    def declare(function: Callable) -> Callable:
        declaration = current("register_method")
        if not inspect.isfunction(function):
            raise RuntimeError(
                f"register_method should decorate a function, but got {type(function).__name__}"
            )
        name = function.__name__
        if name in declaration.methods:
            raise RuntimeError(f"The method '{name}' was registered before")
        if declaration.building is not None:
            raise RuntimeError(f"The method '{name}' is declared inside of '{declaration.building.name}'")
        builder = MethodBuilder(declaration, function, _input_names(function), outputs)
        declaration.building = builder
        try:
            results = function(*builder.placeholders(0, len(builder.inputs)))
        finally:
            declaration.building = None
        results = tuple(results) if isinstance(results, tuple | list) else (results,)
        if len(results) != len(outputs):
            raise RuntimeError(
                f"The method '{name}' returns {len(results)} values, but has {len(outputs)} output_names: "
                f"{', '.join(outputs)}"
            )
        numbers = tuple(builder.index(v, f"the returned value {i}") for i, v in enumerate(results))
        stages = tuple(builder.stages)
        declaration.methods[name] = Method(
            name, builder.inputs, outputs, stages, numbers, builder.values, retry, default
        )
        return function

    return declare


def _input_names(function: Callable) -> tuple[str, ...]:
    refused = {
        inspect.Parameter.VAR_POSITIONAL: "a *args parameter",
        inspect.Parameter.VAR_KEYWORD: "a **kwargs parameter",
        inspect.Parameter.KEYWORD_ONLY: "a keyword-only parameter",
    }
    parameters = inspect.signature(function).parameters
    for name, parameter in parameters.items():
        if parameter.kind in refused:
            raise RuntimeError(
                f"The input '{name}' of method '{function.__name__}' should be a plain parameter, "
                f"but is {refused[parameter.kind]}"
            )
    return tuple(parameters)


def _building(what: str) -> MethodBuilder:
    declaration = current(what)
    if declaration.building is None:
        raise RuntimeError(f"{what} should be called in a function that register_method decorates")
    return declaration.building


def add_stage(
    stage: Model | Callable | str,
    *args: Any,
    outputs_count: int,
    batch_size: int | None = None,
    tag: str | None = None,
) -> Any:
    """Declares the next step of a method: a function, or a model that `declare_model` returned.

    args: inputs of the method or results of earlier stages, one per input of the function or model.
    outputs_count: how many results it has; they come back as placeholders, one or a tuple.
    batch_size: None calls the function with the inputs of one instance; 0 and k >= 1 with a tuple of
    instances, each a tuple of inputs, at most as many as the models take at once, or k; it then yields or
    returns one result per instance.
    Errors: RuntimeError.
    """
    builder = _building("add_stage")
    arguments.check_int("outputs_count", outputs_count, 1)
    if batch_size is not None:
        arguments.check_int("batch_size", batch_size, 0)
    tag = "" if tag is None else arguments.check_str("tag", tag)
    if isinstance(stage, str):
        stage = named(builder.declaration, stage)
    if isinstance(stage, Model):
        _check_model(builder, stage, len(args), outputs_count)
        return builder.add(stage, args, outputs_count, None, tag)
    if not callable(stage) or isinstance(stage, type):
        raise RuntimeError(
            f"In method '{builder.name}', the stage should be a function or a Model from declare_model, "
            f"but got {type(stage).__name__}"
        )
    function = _function(builder, stage, len(args), outputs_count, batch_size is not None)
    return builder.add(function, args, outputs_count, batch_size, tag)


def _check_model(builder: MethodBuilder, model: Model, inputs: int, outputs: int) -> None:
    if not any(model is declared for declared in builder.declaration.models):
        raise RuntimeError(
            f"In method '{builder.name}', the stage should be a Model of this servable, from declare_model"
        )
    counts = builder.declaration.arities.setdefault((model.model_key, 0), (inputs, outputs))
    if counts != (inputs, outputs):
        raise RuntimeError(
            f"In method '{builder.name}', the model '{model.model_key}' has {inputs} inputs and {outputs} "
            f"outputs, but before {counts[0]} inputs and {counts[1]} outputs"
        )


def _function(builder: MethodBuilder, call: Callable, inputs: int, outputs: int, batched: bool) -> Function:
    """The function as a stage: the same whenever it is used."""
    name = getattr(call, "__name__", type(call).__name__)
    where = f"In method '{builder.name}', the function '{name}'"
    known = builder.declaration.functions.get(call)
    if known is None:
        _check_parameters(call, 1 if batched else inputs, where, batched)
        one = getattr(call, "_mycelia_one_at_a_time", False)
        known = builder.declaration.functions[call] = Function(call, name, inputs, outputs, batched, one)
    if known.inputs != inputs:
        raise RuntimeError(f"{where} gets {inputs} inputs, but {known.inputs} in another stage")
    if known.outputs != outputs:
        raise RuntimeError(f"{where} has {outputs} outputs, but {known.outputs} in another stage")
    if known.batched != batched:
        raise RuntimeError(f"{where} is used with 'batch_size' in one stage and without in another")
    return known


def _check_parameters(call: Callable, count: int, where: str, batched: bool) -> None:
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        return  # some built-in functions have none
    try:
        signature.bind(*[None] * count)
    except TypeError:
        given = "the tuple of instances as its one argument" if batched else f"{count} inputs"
        raise RuntimeError(f"{where} should take {given}, but its parameters are {signature}") from None


def one_at_a_time(function: Callable) -> Callable:
    """Marks a function of a stage that must not be called by two threads at once."""
    function._mycelia_one_at_a_time = True
    return function


# ---- the older style ---------------------------------------------------------------------------------------

_ORDER = ("preprocess", "servable", "postprocess")


def _step(call: str, kind: str) -> MethodBuilder:
    """Notes one of the three steps, which come once each and in their order."""
    warnings.warn(f"{call} is deprecated, use register.add_stage", DeprecationWarning, stacklevel=4)
    builder = _building(call)
    if kind in builder.steps:
        raise RuntimeError(f"In method '{builder.name}', call_{kind} should be called once only")
    for step in builder.steps:
        if _ORDER.index(step) > _ORDER.index(kind):
            raise RuntimeError(f"In method '{builder.name}', call_{step} should come after {call}")
    builder.steps.append(kind)
    return builder


def _call_function(
    call: str, kind: str, function: Callable | str, inputs: tuple, batch_size: int | None
) -> Any:
    count = _step(call, kind).count(call)
    return add_stage(function, *inputs, outputs_count=count, batch_size=batch_size, tag=kind.capitalize())


def call_preprocess(preprocess_fun: Callable | str, *args: Any) -> Any:
    """The first step of a method: a function that gets one instance. Older form of `add_stage`."""
    return _call_function("call_preprocess", "preprocess", preprocess_fun, args, None)


def call_preprocess_pipeline(preprocess_fun: Callable | str, *args: Any) -> Any:
    """The first step of a method: a function that gets many instances. Older form of `add_stage`."""
    return _call_function("call_preprocess_pipeline", "preprocess", preprocess_fun, args, 0)


def call_servable(*args: Any) -> Any:
    """The model of the servable as a step of a method. Older form of `add_stage`."""
    builder = _step("call_servable", "servable")
    models = builder.declaration.models
    if not models:
        raise RuntimeError(
            f"The method '{builder.name}' calls the model, but none is declared: use declare_model"
        )
    if len(models) > 1:
        raise RuntimeError(
            f"The method '{builder.name}' uses call_servable, but {len(models)} models are declared: "
            "use add_stage"
        )
    return add_stage(models[0], *args, outputs_count=builder.count("call_servable"))


def call_postprocess(postprocess_fun: Callable | str, *args: Any) -> Any:
    """The last step of a method: a function that gets one instance. Older form of `add_stage`."""
    return _call_function("call_postprocess", "postprocess", postprocess_fun, args, None)


def call_postprocess_pipeline(postprocess_fun: Callable | str, *args: Any) -> Any:
    """The last step of a method: a function that gets many instances. Older form of `add_stage`."""
    return _call_function("call_postprocess_pipeline", "postprocess", postprocess_fun, args, 0)
