"""A loaded MindIR model: its graphs as steps, which `build.py` makes, and the loop that runs them.

The steps call public ops, so whatever holds for ops (eager, traced, differentiated) holds for a loaded model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mycelia.engine.base import errors
from mycelia.engine.capture.trace import active
from mycelia.engine.tensors.tensor import Parameter, Tensor


class Constant:
    """An argument that is known when the model is loaded."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Closure:
    """A graph as a value, with the outer values it uses and the arguments that `Partial` bound."""

    __slots__ = ("bound", "captured", "function")

    def __init__(self, function: Function, captured: Mapping[str, Any], bound: tuple = ()) -> None:
        self.function, self.captured, self.bound = function, captured, bound


class Function:
    """One graph. `free` are the names it uses that belong to graphs around it."""

    __slots__ = ("free", "inputs", "name", "result", "steps")

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[str] = []
        self.steps: list[Step] = []
        self.result: Any = None  # one argument, or a list of them: the graph returns a tuple
        self.free: tuple[str, ...] = ()


class Step:
    """One node: call `target` with the arguments, keep the result under `output`.

    `target` is a Python function (an operator), or an argument that holds a Closure (a call of a graph). An
    argument is a Constant, a Function (a graph as a value), or the name of a value.
    """

    __slots__ = ("arguments", "effect", "keywords", "last", "locate", "name", "operator", "output", "target")

    def __init__(
        self, target: Any, arguments: list, keywords: dict[str, Any], output: str, effect: bool
    ) -> None:
        self.target, self.arguments, self.keywords, self.output = target, arguments, keywords, output
        self.effect = effect  # it runs even when nothing uses its result
        self.last: tuple[str, ...] = ()  # names that nothing needs after this step
        self.name = self.operator = ""  # of the file's node, with its scope, where it is an operator's
        self.locate: Callable[[], errors.Place] | None = None  # the place of nodes that are captured of it

    def used(self) -> Iterable[Any]:
        """Every argument, the called function value included."""
        yield from self.arguments
        yield from self.keywords.values()
        if not callable(self.target):
            yield self.target


class MindIRGraph:
    """A loaded model: call it with Tensors; `parameters` (name -> Parameter) keep their values between calls.

    `inputs` lists (name, dtype, shape) of what it takes; -1 is a size that any input may choose. Inputs of
    other shapes run as well, as far as the ops allow; another dtype is a TypeError. `writes`: a call may
    change parameters.
    """

    def __init__(
        self,
        name: str,
        inputs: list,
        parameters: dict[str, Parameter],
        main: Function,
        branches: bool,
        writes: bool,
        capture: Callable[[Function, tuple], Any],
        path: str = "",
        steps: Sequence[Step] = (),
    ) -> None:
        self.name, self.inputs, self.parameters, self.writes = name, inputs, parameters, writes
        self.path, self.steps = path, steps
        self._main, self._branches, self._capture = main, branches, capture

    def __call__(self, *arguments: Tensor) -> Any:
        if len(arguments) != len(self.inputs):
            names = ", ".join(name for name, *_ in self.inputs)
            raise TypeError(
                f"{self.name} takes {len(self.inputs)} inputs ({names}), but got {len(arguments)}"
            )
        for (name, dtype, _), value in zip(self.inputs, arguments):
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"input '{name}' of {self.name} must be a Tensor, but got {type(value).__name__}"
                )
            if value.dtype != dtype:
                raise TypeError(f"input '{name}' of {self.name} must be {dtype}, but got {value.dtype}")
        try:
            if self._branches and active() is not None:
                return self._capture(self._main, arguments)
            return run(Closure(self._main, {}), arguments)
        except BadStep as e:
            raise errors.error(errors.FileFormatError, self.path or self.name, str(e)) from e.__cause__
        except RecursionError as e:
            message = "its graphs call one another without an end"
            raise errors.error(errors.FileFormatError, self.path or self.name, message) from e

    @property
    def has_branches(self) -> bool:
        """Whether what runs depends on the data."""
        return self._branches

    def __repr__(self) -> str:
        text = ", ".join(f"{name}: {dtype}{list(shape)}" for name, dtype, shape in self.inputs)
        return f"MindIRGraph({self.name}({text}), {len(self.parameters)} parameters)"


# ---- running -----------------------------------------------------------------------------------
def run(closure: Closure, arguments: tuple) -> Any:
    """The result of calling a graph. Calls in tail position (so the rounds of loops) use no stack."""
    while True:
        function = closure.function
        arguments = closure.bound + arguments
        if len(arguments) != len(function.inputs):
            raise BadStep(
                f"graph {function.name} takes {len(function.inputs)} values, but got {len(arguments)}"
            )
        env = {**closure.captured, **dict(zip(function.inputs, arguments))}
        called = None
        for step in function.steps:
            values = tuple([value_of(a, env) for a in step.arguments])
            if callable(step.target):
                keywords = {name: value_of(a, env) for name, a in step.keywords.items()}
                env[step.output] = guarded(step.target, values, keywords, step.output, step.locate)
            else:
                called = value_of(step.target, env)
                if not callable(called) and not isinstance(called, Closure):
                    raise BadStep(
                        f"what a node of graph {function.name} calls is no function: {called!r:.80}"
                    )
                if step.output is None:  # the result of this graph is the result of the call
                    break
                if isinstance(called, Closure):
                    env[step.output] = run(called, values)
                else:
                    env[step.output] = guarded(called, values, {}, step.output)
            for name in step.last:
                del env[name]
        else:
            if isinstance(function.result, list):
                return tuple(value_of(a, env) for a in function.result)
            return value_of(function.result, env)
        if not isinstance(called, Closure):
            return guarded(called, values, {}, function.name)
        closure, arguments = called, values


class BadStep(Exception):
    """A node got what its operator cannot take; not for the reasons that ops tell of."""


def guarded(
    target: Callable,
    values: tuple,
    keywords: dict,
    name: str,
    locate: Callable[[], errors.Place] | None = None,
) -> Any:
    try:
        trace = active() if locate is not None else None
        if trace is None:
            return target(*values, **keywords)
        start = len(trace.graph.nodes)
        result = target(*values, **keywords)
        place = locate()
        for node in trace.graph.nodes[start:]:
            node.location = place
        return result
    except (errors.MyceliaError, BadStep) as e:
        e.add_note(f"in MindIR node {name}")
        raise
    except RecursionError:
        raise
    except Exception as e:
        raise BadStep(
            f"node '{name}' got arguments that its operator does not take: {type(e).__name__}: {e}"
        ) from e


def value_of(argument: Any, env: Mapping[str, Any]) -> Any:
    if type(argument) is str:
        return env[argument]
    if type(argument) is Constant:
        return argument.value
    return Closure(argument, {name: env[name] for name in argument.free})


def partial(function: Any, *arguments: Any) -> Any:
    """A function value with leading arguments bound."""
    if isinstance(function, Closure):
        return Closure(function.function, function.captured, function.bound + arguments)
    return lambda *more: function(*arguments, *more)


def switch(condition: Any, if_true: Any, if_false: Any) -> Any:
    """One of two values by a bool, or a Tensor of one element."""
    return if_true if bool(condition) else if_false


def switch_layer(index: Any, branches: Sequence) -> Any:
    """One of several values by a number or a Tensor of one element."""
    return branches[int(index)]


CONTROL: dict[str, Callable] = {
    "Partial": partial, "Switch": switch, "switch": switch, "SwitchLayer": switch_layer, "switch_layer":
    switch_layer,
}  # fmt: skip
