"""Calling a Cell with hooks on its gradients."""

from __future__ import annotations

from mycelia.tensor import Tensor


def call_with_backward_hooks(cell, args: tuple, kwargs: dict):
    """Run `cell` so that its backward hooks see, and may replace, the gradients of its output and inputs."""
    from mycelia.autodiff.transforms import custom_vjp

    positions = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.dtype.is_floating]
    if not positions:
        return cell._compute(args, kwargs)
    state: dict = {}

    def enter(*tensors):
        return tensors if len(tensors) > 1 else tensors[0]

    def leave_rule(*rest):
        grads = rest[-1]
        given = tuple(grads) if isinstance(grads, tuple) else (grads,)
        for hook in tuple(cell._backward_hooks.values()):
            changed = hook(cell, given, state.get("grad_output"))
            if changed is not None:
                given = tuple(changed) if isinstance(changed, (tuple, list)) else (changed,)
        return given if len(given) > 1 else given[0]

    def exit_(*tensors):
        return tensors if len(tensors) > 1 else tensors[0]

    def enter_rule(*rest):
        grads = rest[-1]
        given = tuple(grads) if isinstance(grads, tuple) else (grads,)
        for hook in tuple(cell._backward_pre_hooks.values()):
            changed = hook(cell, given)
            if changed is not None:
                given = tuple(changed) if isinstance(changed, (tuple, list)) else (changed,)
        state["grad_output"] = given
        return given if len(given) > 1 else given[0]

    inputs = custom_vjp(enter, leave_rule)(*(args[i] for i in positions))
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    full = list(args)
    for i, x in zip(positions, inputs):
        full[i] = x
    output = cell._compute(tuple(full), kwargs)
    if isinstance(output, Tensor):
        return custom_vjp(exit_, enter_rule)(output)
    if isinstance(output, tuple) and all(isinstance(o, Tensor) for o in output):
        return custom_vjp(exit_, enter_rule)(*output)
    return output
