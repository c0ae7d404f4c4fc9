"""Functions with a gradient of their own as classes: `forward` and `backward` that share a context."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from mycelia.engine import _C
from mycelia.engine.autodiff.custom_rule import custom_vjp
from mycelia.engine.autodiff.transforms import no_gradients
from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor


@contextlib.contextmanager
def no_grad() -> Iterator[None]:
    """Nothing that is computed inside has a gradient, and to ask for one is an error."""
    level, before = _C.set_tape_level(0), no_gradients.active
    no_gradients.active = True
    try:
        yield
    finally:
        _C.set_tape_level(level)
        no_gradients.active = before


class Context:
    """What `forward` leaves for `backward`."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: tuple = ()
        self.materialize_grads = True
        self.non_differentiable: tuple = ()
        self.dirty_tensors: tuple = ()

    def save_for_backward(self, *values: Any) -> None:
        """Keep values: `saved_tensors` gives them back."""
        self.saved_tensors = values

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros for outputs to which no gradient came, or None."""
        self.materialize_grads = value

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """No gradient flows back through these outputs."""
        self.non_differentiable = outputs

    def mark_dirty(self, *inputs: Tensor) -> None:
        """These inputs were changed in place."""
        self.dirty_tensors = inputs


class Function:
    """Base of user functions: `forward(ctx, *inputs)`, `backward(ctx, *gradients)`; called by `apply`.

    `backward` gets a gradient for each output and returns one, or None, for each input. With
    `setup_context(ctx, inputs, output)` defined, `forward` takes no context.
    Errors: RuntimeError for a wrong number of gradients and for gradients that are no Tensors.
    """

    @staticmethod
    def forward(ctx: Context, *inputs: Any) -> Any:
        """The computation. Every subclass defines its own."""
        raise NotImplementedError("a Function must define forward()")

    @staticmethod
    def backward(ctx: Context, *gradients: Any) -> Any:
        """The gradients of the inputs. Every subclass defines its own."""
        raise NotImplementedError("a Function must define backward()")

    @classmethod
    def apply(cls, *inputs: Any, **kwargs: Any) -> Any:
        """Call the function."""
        context = Context(tuple(isinstance(v, Tensor) and v._node is not None for v in inputs))

        def run(*values: Any) -> Any:
            setup = getattr(cls, "setup_context", None)
            if setup is None:
                return cls.forward(context, *values, **kwargs)
            output = cls.forward(*values, **kwargs)
            setup(context, values, output)
            return output

        def rule(*values: Any) -> Any:
            gradient = values[-1]
            found = cls.backward(context, *(gradient if isinstance(gradient, tuple) else (gradient,)))
            found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
            if len(found) != len(inputs):
                raise errors.error(
                    errors.MyceliaRuntimeError,
                    cls.__name__,
                    f"Function backward return a wrong number of gradients: there are {len(inputs)} inputs, "
                    f"but {len(found)} came",
                )
            for position, (value, one) in enumerate(zip(inputs, found)):
                if one is None or (isinstance(one, Tensor) and isinstance(value, Tensor)):
                    continue
                text = "Gradient should be none or tensor"
                if not isinstance(value, Tensor):
                    text = "Input is not tensor, but gradient is not none"
                raise errors.error(
                    errors.MyceliaRuntimeError,
                    cls.__name__,
                    f"{text}: that of input {position} is a {type(one).__name__}",
                )
            return found if len(found) > 1 else found[0]

        result = custom_vjp(run, rule, lambda: context.materialize_grads)(*inputs)
        unmoved = {id(t) for t in context.non_differentiable}
        if not unmoved:
            return result
        if isinstance(result, tuple):
            return tuple(r._detach() if id(r) in unmoved else r for r in result)
        return result._detach()
