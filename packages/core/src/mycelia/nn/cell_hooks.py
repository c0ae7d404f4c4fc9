"""Hooks of a Cell: functions around `construct`, and on the gradients of its inputs and outputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from mycelia.engine.base import errors

hook_keys = itertools.count(1)  # of all hooks of all Cells
# Keys of the hooks that take keyword arguments, and of those that run although `construct` failed.
NO_OPTIONS: dict[str, frozenset] = {"with_kwargs": frozenset(), "always_call": frozenset()}


class HookHandle:
    """What `register_*_hook` returns: `remove()` takes the hook away again."""

    def __init__(self, cell: CellHooks, table: dict, key: int):
        self._cell, self._table, self._key = cell, table, key

    def remove(self) -> None:
        self._table.pop(self._key, None)
        self._cell._refresh_route()


class CellHooks:
    """The part of `Cell` that registers hooks and calls them."""

    def _add_hook(
        self, table: dict, hook: Callable, where: str, prepend: bool = False, **options: bool
    ) -> HookHandle:
        if not callable(hook):
            raise errors.type_error(where, f"hook_fn must be callable, but got {type(hook).__name__}")
        if hasattr(hook, "memory_report"):
            raise errors.type_error(where, f"the hook function {hook.__name__} must not be compiled by jit")
        key = next(hook_keys)
        table[key] = hook
        if prepend:
            table.move_to_end(key, last=False)
        for option, wanted in options.items():
            if wanted:
                keys = self._hook_options[option] | {key}
                self.__dict__["_hook_options"] = {**self._hook_options, option: keys}
        self._refresh_route()
        return HookHandle(self, table, key)

    def register_forward_pre_hook(
        self, hook_fn: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call ``hook_fn(cell, inputs)``, or with keyword arguments ``hook_fn(cell, args, kwargs)``, before
        `construct`; what it returns replaces them.
        """
        return self._add_hook(
            self._pre_hooks, hook_fn, "register_forward_pre_hook", prepend, with_kwargs=with_kwargs
        )

    def register_forward_hook(
        self,
        hook_fn: Callable,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:
        """Call ``hook_fn(cell, inputs, output)``, or ``hook_fn(cell, args, kwargs, output)``, after
        `construct`, with `always_call` also when it raised; what it returns replaces the output.
        """
        return self._add_hook(
            self._forward_hooks,
            hook_fn,
            "register_forward_hook",
            prepend,
            with_kwargs=with_kwargs,
            always_call=always_call,
        )

    def register_parameter_forward_hook(self, hook) -> None:
        """Let graphs compute with ``hook(parameter)`` in place of a Parameter.

        `hook`: a function for all Parameters, or a list of ``{"params": [...], "hook": function}``.
        """
        from mycelia.nn.hooks import hook_parameters

        hook_parameters(self, hook)

    def register_saved_tensors_hooks(self, pack_hook: Callable, unpack_hook: Callable) -> None:
        """Run `construct` within ``saved_tensors_hooks(pack_hook, unpack_hook)``."""
        self.__dict__["_saved_tensors_hooks"] = (pack_hook, unpack_hook)
        self._refresh_route()

    def register_backward_pre_hook(self, hook_fn: Callable) -> HookHandle:
        """Call ``hook_fn(cell, grad_output)`` when the gradient reaches the output;
        a return value replaces it.
        """
        return self._add_hook(self._backward_pre_hooks, hook_fn, "register_backward_pre_hook")

    def register_backward_hook(self, hook_fn: Callable) -> HookHandle:
        """Call ``hook_fn(cell, grad_input, grad_output)`` when the input gradients are known; a return
        value replaces them."""
        return self._add_hook(self._backward_hooks, hook_fn, "register_backward_hook")

    def _run(self, args: tuple, kwargs: dict):
        """One eager or traced call with everything around `construct`."""
        always = [key for key in self._forward_hooks if key in self._hook_options["always_call"]]
        if not always:
            return self._run_hooked(args, kwargs, [])
        called: list[int] = []
        try:
            return self._run_hooked(args, kwargs, called)
        except Exception:
            for key in always:
                if key not in called:
                    self._call_forward_hook(key, self._forward_hooks[key], args, kwargs, None)
            raise

    def _call_forward_hook(self, key: int, hook: Callable, args: tuple, kwargs: dict, output):
        if key in self._hook_options["with_kwargs"]:
            return hook(self, args, kwargs, output)
        return hook(self, args, output)

    def _run_hooked(self, args: tuple, kwargs: dict, called: list[int]):
        for key, hook in tuple(self._pre_hooks.items()):
            if key in self._hook_options["with_kwargs"]:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise errors.error(
                            errors.MyceliaRuntimeError,
                            type(self).__name__,
                            "a forward pre hook with kwargs must return None or (args, kwargs), but gave "
                            f"{changed!r:.60}",
                        )
                    args, kwargs = changed
                continue
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        if self._backward_hooks or self._backward_pre_hooks:
            from mycelia.nn.hooks import call_with_backward_hooks

            output = call_with_backward_hooks(self, args, kwargs)
        else:
            output = self._compute(args, kwargs)
        for key, hook in tuple(self._forward_hooks.items()):
            called.append(key)
            changed = self._call_forward_hook(key, hook, args, kwargs, output)
            if changed is not None:
                output = changed
        return output
