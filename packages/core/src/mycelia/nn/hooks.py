"""Calling a Cell with hooks on its gradients."""

from __future__ import annotations

from mycelia.engine import _C, dispatch
from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Parameter, Tensor


def hook_parameters(cell, hook) -> None:
    """Remember for each cell which of its Parameters `hook` replaces."""
    if callable(hook):
        chosen = {id(p): hook for p in cell.get_parameters()}
    elif isinstance(hook, (list, tuple)):
        chosen = {}
        for entry in hook:
            if not isinstance(entry, dict) or not callable(entry.get("hook")) or "params" not in entry:
                raise errors.type_error(
                    "register_parameter_forward_hook",
                    f"an entry must be {{'params': [...], 'hook': function}}, but got {entry!r:.60}",
                )
            for parameter in entry["params"]:
                if not isinstance(parameter, Parameter):
                    raise errors.type_error(
                        "register_parameter_forward_hook",
                        f"'params' must hold Parameters, but got {type(parameter).__name__}",
                    )
                chosen[id(parameter)] = entry["hook"]
    else:
        raise errors.type_error(
            "register_parameter_forward_hook",
            f"hook must be a function or a list of dicts, but got {type(hook).__name__}",
        )
    for _, owner in cell.cells_and_names():
        own = {name: chosen[id(p)] for name, p in owner._params.items() if id(p) in chosen}
        if own:
            owner.__dict__["_parameter_hooks"] = {**owner.__dict__.get("_parameter_hooks", {}), **own}
            owner._refresh_route()


def with_own_hooks(cell, construct):
    """`construct` with the cell's hooks on Parameters (in graphs only) and on saved tensors around it."""
    parameters = cell.__dict__.get("_parameter_hooks") if _C.mode() & dispatch.TRACING else None
    saving = cell.__dict__.get("_saved_tensors_hooks")

    def run(*args, **kwargs):
        if not parameters:
            return construct(*args, **kwargs)
        kept = {name: cell.__dict__[name] for name in parameters}
        try:
            for name, hook in parameters.items():
                cell.__dict__[name] = hook(kept[name])
            return construct(*args, **kwargs)
        finally:
            cell.__dict__.update(kept)

    def run_saving(*args, **kwargs):
        from mycelia import saved_tensors_hooks

        with saved_tensors_hooks(*saving):
            return run(*args, **kwargs)

    return run if saving is None else run_saving


def call_with_backward_hooks(cell, args: tuple, kwargs: dict):
    """Run `cell` so that its backward hooks see, and may replace, the gradients of its output and inputs."""
    from mycelia.engine.autodiff.custom_rule import custom_vjp

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
        if alone:
            for hook in tuple(cell._backward_hooks.values()):
                hook(cell, (None,) * len(positions), given)
        return given if len(given) > 1 else given[0]

    # No gradient goes on to inputs that need none: then the hooks are called where it comes in.
    alone = not _C.mode() & dispatch.TRACING and all(args[i]._node is None for i in positions)
    inputs = custom_vjp(enter, leave_rule)(*(args[i] for i in positions))
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    full = list(args)
    for i, x in zip(positions, inputs):
        full[i] = x
    output = cell._compute(tuple(full), kwargs)
    if isinstance(output, Tensor):
        return custom_vjp(exit_, enter_rule)(output)
    if isinstance(output, tuple) and all(isinstance(o, Tensor) for o in output):
        made = custom_vjp(exit_, enter_rule)(*output)
        return made if isinstance(made, tuple) else (made,)
    return output
