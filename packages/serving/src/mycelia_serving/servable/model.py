"""Declaring models."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from mycelia_serving.servable import arguments
from mycelia_serving.servable.contexts import AclOptions, Context, GpuOptions
from mycelia_serving.servable.declaration import ModelDeclaration, current

__all__ = ["Model", "append_model", "declare_model", "declare_servable"]

FORMATS = ("mindir", "mindir_lite", "mindir_opt", "om")


class Model:
    """A declared model: a stage for `add_stage`, or called by functions. `declare_model` makes them."""

    __slots__ = ("__weakref__", "declared", "model_key", "run")

    def __init__(self, model_key: str) -> None:
        self.model_key = model_key
        self.declared: ModelDeclaration | None = None
        self.run: Callable | None = None  # (instances, subgraph) -> their results; set when it is loaded

    def call(self, *args: Any, subgraph: int = 0) -> Any:
        """Runs the model inside a function of a method.

        `call(x1, x2)`: one instance, the result is its output or a tuple of its outputs.
        `call([[x1, x2], ...])`: many instances, the result is a tuple with a tuple of outputs for each.
        Errors: RuntimeError if an input does not fit the model.
        """
        which = f", subgraph={subgraph}" if subgraph else ""
        try:
            arguments.check_int("subgraph", subgraph, 0)
            instances, many = _instances(args)
            if self.run is None:
                raise RuntimeError("the model is not declared, or not loaded yet")
            results = self.run(instances, subgraph)
        except RuntimeError as error:
            raise RuntimeError(f"Model({self.model_key}{which}).call() failed: {error}") from error
        if many:
            return tuple(results)
        return results[0][0] if len(results[0]) == 1 else results[0]

    def __repr__(self) -> str:
        return f"Model({self.model_key})"


def _instances(args: tuple) -> tuple[list[tuple], bool]:
    """Inputs of the instances, and whether they came as a list."""
    forms = "call(x1, x2) is one instance, call([[x1, x2], [x1, x2]]) are many"
    if not args:
        raise RuntimeError(f"no inputs provided: {forms}")
    if len(args) > 1 or not isinstance(args[0], tuple | list):
        return [args], False
    if not args[0]:
        raise RuntimeError("the instances count is 0")
    if not all(isinstance(instance, tuple | list) for instance in args[0]):
        raise RuntimeError(f"inputs format invalid: {forms}")
    return [tuple(instance) for instance in args[0]], True


def declare_model(
    model_file: str | list[str] | tuple[str, ...],
    model_format: str,
    with_batch_dim: bool = True,
    options: AclOptions | GpuOptions | None = None,
    without_batch_dim_inputs: int | list[int] | tuple[int, ...] | None = None,
    context: Context | None = None,
    config_file: str | None = None,
    *,
    allow_reshape: bool = False,
    max_batch_delay_ms: float | None = None,
) -> Model:
    """Declares a model of the servable.

    model_file: name of a file in the folders of versions; a list of them are sub-graphs of one model.
    model_format: "MindIR", "MindIR_Lite", "MindIR_Opt" or "OM", case ignored, or one that a plugin loads.
    with_batch_dim: the first dimension of all inputs and outputs is the batch, which clients do not see.
    without_batch_dim_inputs: indexes of inputs that are given whole all the same.
    context: options per device; `options` is its older spelling. config_file: a file beside
    `servable_config.py` for the loader.
    allow_reshape: take values of another shape that have as many elements.
    max_batch_delay_ms: how long a batch that is not full waits for more; by default what the server says.
    Errors: RuntimeError.
    """
    declaration = current("declare_model")
    files = arguments.check_strings("model_file", model_file)
    arguments.check_str("model_format", model_format)
    arguments.check_bool("with_batch_dim", with_batch_dim)
    arguments.check_bool("allow_reshape", allow_reshape)
    if max_batch_delay_ms is not None:
        arguments.check_number("max_batch_delay_ms", max_batch_delay_ms, 0)
    unbatched: tuple[int, ...] = ()
    if without_batch_dim_inputs is not None:
        unbatched = arguments.check_ints("without_batch_dim_inputs", without_batch_dim_inputs, 0)
    if unbatched and not with_batch_dim:
        raise RuntimeError("Parameter 'without_batch_dim_inputs' is only for models with 'with_batch_dim'")
    if config_file is not None:
        arguments.check_str("config_file", config_file)
    declared = ModelDeclaration(
        key=";".join(files),
        files=files,
        format=_known_format(model_format),
        with_batch_dim=with_batch_dim,
        unbatched=unbatched,
        context=_context(context, options),
        config_file=config_file,
        allow_reshape=allow_reshape,
        max_batch_delay_ms=max_batch_delay_ms,
    )
    return add_model(declaration, declared)


def add_model(declaration: Any, declared: ModelDeclaration) -> Model:
    """Puts a model on the list of a servable."""
    if any(model.declared.ranks for model in declaration.models):
        raise RuntimeError("A distributed model is the only one of its servable")
    taken = {file for model in declaration.models for file in model.declared.files}
    for file in declared.files:
        if file in taken:
            raise RuntimeError(
                f"The model file '{file}' was declared before: use the Model that came back then"
            )
    model = Model(declared.key)
    model.declared = declared
    declaration.models.append(model)
    return model


append_model = declare_model  # a further model is declared like the first


def _known_format(name: str) -> str:
    if name.lower() in FORMATS:
        return name.lower()
    from mycelia_serving.engine.loaders import formats

    known = formats()
    if name.lower() not in known:
        offered = ", ".join(sorted({*FORMATS, *known}))
        raise RuntimeError(
            f"Parameter 'model_format' should be one of {offered} (case ignored), but got '{name}'"
        )
    return name.lower()


def _context(context: Any, options: Any) -> Context | None:
    if context is not None:
        if not isinstance(context, Context):
            raise RuntimeError(f"Parameter 'context' should be Context, but got {type(context).__name__}")
        return context
    if options is None:
        return None
    if not isinstance(options, AclOptions | GpuOptions):
        raise RuntimeError(
            f"Parameter 'options' should be AclOptions or GpuOptions, but got {type(options).__name__}"
        )
    return options.context


def declare_servable(
    servable_file: str | list[str] | tuple[str, ...],
    model_format: str,
    with_batch_dim: bool = True,
    options: AclOptions | GpuOptions | None = None,
    without_batch_dim_inputs: int | list[int] | tuple[int, ...] | None = None,
) -> Model:
    """Declares the one model of a servable; the older name of `declare_model`."""
    warnings.warn(
        "declare_servable is deprecated, use register.declare_model", DeprecationWarning, stacklevel=2
    )
    return declare_model(servable_file, model_format, with_batch_dim, options, without_batch_dim_inputs)
