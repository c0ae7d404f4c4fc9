"""A loaded MindIR model: its graphs translated into steps, and the loop that runs them.

The steps call public ops, so whatever holds for ops (eager, traced, differentiated) holds for a loaded model.
Nodes run in the order of the file. Monads carry no data and vanish: `Depend` is its first argument,
`UpdateState` is nothing, `Load` is the parameter itself or, when the model writes parameters,
a copy of its present value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.io.mindir import operators
from mycelia.io.mindir.check import MONAD_INPUTS, check
from mycelia.io.mindir.values import MONAD, dtype_of_data_type, read_tensor, read_value
from mycelia.io.raw import to_parameter

_PASS_FIRST = frozenset(("Depend", "Return", "return", "stop_gradient", "StopGradient", "identity"))


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

    __slots__ = ("arguments", "effect", "keywords", "last", "output", "target")

    def __init__(
        self, target: Any, arguments: list, keywords: dict[str, Any], output: str, effect: bool
    ) -> None:
        self.target, self.arguments, self.keywords, self.output = target, arguments, keywords, output
        self.effect = effect  # it runs even when nothing uses its result
        self.last: tuple[str, ...] = ()  # names that nothing needs after this step

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
        path: str = "",
    ) -> None:
        self.name, self.inputs, self.parameters, self.writes = name, inputs, parameters, writes
        self.path = path
        self._main, self._branches = main, branches

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
            return run(Closure(self._main, {}), arguments)
        except BadStep as e:
            raise errors.error(errors.FileFormatError, self.path or self.name, str(e)) from e.__cause__
        except RecursionError as e:
            message = "its graphs call one another without an end"
            raise errors.error(errors.FileFormatError, self.path or self.name, message) from e

    @property
    def has_branches(self) -> bool:
        """Whether what runs depends on the data: such a model cannot be captured into one graph."""
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
            values = tuple([_value(a, env) for a in step.arguments])
            if callable(step.target):
                keywords = {name: _value(a, env) for name, a in step.keywords.items()}
                env[step.output] = _guarded(step.target, values, keywords, step.output)
            else:
                called = _value(step.target, env)
                if not callable(called) and not isinstance(called, Closure):
                    raise BadStep(
                        f"what a node of graph {function.name} calls is no function: {called!r:.80}"
                    )
                if step.output is None:  # the result of this graph is the result of the call
                    break
                if isinstance(called, Closure):
                    env[step.output] = run(called, values)
                else:
                    env[step.output] = _guarded(called, values, {}, step.output)
            for name in step.last:
                del env[name]
        else:
            if isinstance(function.result, list):
                return tuple(_value(a, env) for a in function.result)
            return _value(function.result, env)
        if not isinstance(called, Closure):
            return _guarded(called, values, {}, function.name)
        closure, arguments = called, values


class BadStep(Exception):
    """A node got what its operator cannot take; not for the reasons that ops tell of."""


def _guarded(target: Callable, values: tuple, keywords: dict, name: str) -> Any:
    try:
        return target(*values, **keywords)
    except (errors.MyceliaError, BadStep) as e:
        e.add_note(f"in MindIR node {name}")
        raise
    except RecursionError:
        raise
    except Exception as e:
        raise BadStep(
            f"node '{name}' got arguments that its operator does not take: {type(e).__name__}: {e}"
        ) from e


def _value(argument: Any, env: Mapping[str, Any]) -> Any:
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


_CONTROL: dict[str, Callable] = {
    "Partial": partial, "Switch": switch, "switch": switch, "SwitchLayer": switch_layer, "switch_layer":
    switch_layer,
}  # fmt: skip


# ---- loading -----------------------------------------------------------------------------------
def build(model: Any) -> MindIRGraph:
    """The executable form of a file that is open (`read.Model`).

    Errors: ValueError that lists the operators that are not known, or names what is wrong in the model and
    where.
    """
    check(model.proto)
    return _Builder(model).build()


class _Builder:
    def __init__(self, file: Any) -> None:
        self.file, self.model = file, file.proto
        model = self.model
        self.graphs = (model.graph, *model.functions)
        self.primitives = {p.name: (p.op_type, _attributes(p.attribute)) for p in model.primitives}
        self.functions = {g.name: Function(g.name) for g in self.graphs}
        self.parameters: dict[str, Parameter] = {}
        self.known: dict[str, Any] = dict(self.functions)  # name -> what an argument of that name stands for
        self.unknown: set[str] = set()  # operators that are not supported
        self.writes = any(operators.has_effect(*self._operator(node)) for g in self.graphs for node in g.node)

    def build(self) -> MindIRGraph:
        for graph in self.graphs:
            self._translate(graph, self.functions[graph.name])
        if self.unknown:
            raise ValueError(
                f"these operators of the model are not supported: {', '.join(sorted(self.unknown))}"
            )
        self._find_free()
        for function in self.functions.values():
            self._check_order(function)
        self._check_ends()
        used_elsewhere = {name for function in self.functions.values() for name in function.free}
        for function in self.functions.values():
            _drop_unused(function, used_elsewhere)
            _mark_tail_call(function)
            _mark_last_uses(function)
        graph = self.model.graph
        inputs = []
        for value in graph.input:
            if value.tensor:
                tensor = value.tensor[0]
                inputs.append(
                    (public_name(value.name), dtype_of_data_type(tensor.data_type), tuple(tensor.dims))
                )
        steps = [step for function in self.functions.values() for step in function.steps]
        branches = any(step.target in (switch, switch_layer) for step in steps if callable(step.target))
        main = self.functions[graph.name]
        name, parameters = public_name(graph.name), self.parameters
        return MindIRGraph(name, inputs, parameters, main, branches, self.writes, self.file.path)

    def _translate(self, graph: Any, function: Function) -> None:
        for value in graph.input:
            if value.denotation in MONAD_INPUTS:
                self.known[value.name] = Constant(MONAD)
            function.inputs.append(value.name)
        for index, proto in enumerate(graph.parameter):
            name = proto.ref_key or public_name(proto.name)
            if not isinstance(name, str):
                raise ValueError(f"the name {name!r} of a parameter is no text")
            if name in self.parameters:
                raise ValueError(f"two parameters have the name '{name}'")
            try:
                raw = self.file.weight(index) if graph is self.model.graph else read_tensor(proto)
            except ValueError as e:
                raise ValueError(f"parameter '{name}': {e}") from None
            value = to_parameter(raw, name)
            self.parameters[name] = value
            self.known[proto.name] = Constant(value)
        if graph is self.model.graph:  # monads are no arguments of a call from outside
            function.inputs = [v.name for v in graph.input if v.denotation not in MONAD_INPUTS]
        for node in graph.node:
            self._node(node, function)
        results = [self._argument(value.name) for value in graph.output]
        function.result = results[0] if len(results) == 1 else results

    def _argument(self, name: str) -> Any:
        """What a name stands for: a Constant, a Function, or the name itself."""
        if name in self.known:
            return self.known[name]
        if name in self.primitives:
            op_type, attributes = self.primitives[name]
            bind = self._bind(op_type, attributes)
            return Constant(bind) if bind else name
        return name

    def _operator(self, node: Any) -> tuple[str, dict[str, Any]]:
        """Operator and attributes of a node; the operator is '' for constants and calls."""
        op_type = node.op_type
        if op_type.startswith("REF::"):
            return self.primitives.get(op_type[5:], ("", {}))
        if op_type == "Constant":
            return "", {}
        return op_type.removeprefix("S-Prim-"), _attributes(node.attribute)

    def _node(self, node: Any, function: Function) -> None:
        output = node.output[0]
        if node.op_type == "Constant":
            try:
                self.known[output] = Constant(read_value(node.attribute[0]))
            except (ValueError, LookupError, StopIteration) as e:  # fewer elements than its form says
                raise ValueError(f"constant '{output}': {e or type(e).__name__}") from None
            return
        operator, attributes = self._operator(node)
        arguments = [self._argument(name) for name in node.input]
        if not operator:
            target = self._argument(node.op_type.removeprefix("REF::"))
            function.steps.append(Step(target, arguments, {}, output, effect=True))
        elif operator == "UpdateState":
            self.known[output] = Constant(MONAD)
        elif operator in _PASS_FIRST or (operator == "Load" and not self.writes):
            self.known[output] = _first(arguments, node)
        elif operator in _CONTROL:
            least = 1 if operator == "Partial" else 2 if "ayer" in operator else 3
            if len(arguments) < least or (operator != "Partial" and len(arguments) != least):
                raise ValueError(f"node '{output}': {operator} takes {least} inputs, got {len(arguments)}")
            function.steps.append(Step(_CONTROL[operator], arguments, {}, output, effect=False))
        elif operator == "Load":
            function.steps.append(Step(_load, [_first(arguments, node)], {}, output, effect=False))
        else:
            self._operator_step(operator, attributes, arguments, output, function)

    def _operator_step(
        self, operator: str, attributes: dict, arguments: list, output: str, function: Function
    ) -> None:
        found = operators.find(operator)
        if found is None:
            self.unknown.add(operator)
            return
        data = [a for a in arguments if not (type(a) is Constant and a.value is MONAD)]
        try:
            positional, keywords = found.bind(data, {name: Constant(v) for name, v in attributes.items()})
            found.check(positional, keywords)
        except TypeError as e:
            raise ValueError(f"node '{output}': {operator}: {e}") from None
        effect = operators.has_effect(operator, attributes)
        function.steps.append(Step(found.function, positional, keywords, output, effect))

    def _bind(self, operator: str, attributes: dict) -> Callable | None:
        found = operators.find(operator)
        if found is None:
            self.unknown.add(operator)
            return None

        def call(*arguments: Any) -> Any:
            positional, keywords = found.bind([a for a in arguments if a is not MONAD], attributes)
            return found.function(*positional, **keywords)

        return call

    def _find_free(self) -> None:
        """Fills `free` of every function: its own and that of the functions it mentions, to a fixed point."""
        own, mentions = {}, {}
        for name, function in self.functions.items():
            defined = {*function.inputs, *(step.output for step in function.steps)}
            results = function.result if isinstance(function.result, list) else [function.result]
            used = [a for step in function.steps for a in step.used()] + results
            own[name] = {a for a in used if type(a) is str} - defined
            mentions[name] = ({a.name for a in used if type(a) is Function}, defined)
        free = dict(own)
        changed = True
        while changed:
            changed = False
            for name, (others, defined) in mentions.items():
                more = set().union(*(free[o] for o in others)) - defined - free[name]
                if more:
                    free[name] = free[name] | more
                    changed = True
        missing = free[self.model.graph.name]
        if missing:
            raise ValueError(f"names that no node defines: {', '.join(sorted(missing))}")
        for name, function in self.functions.items():
            function.free = tuple(sorted(free[name]))

    def _check_order(self, function: Function) -> None:
        """Every value is defined before a step of its graph uses it."""
        defined = {*function.inputs, *function.free}

        def check_use(argument: Any, where: str) -> None:
            for name in _names_in(argument):
                if name not in defined:
                    raise ValueError(f"graph '{function.name}': {where} uses '{name}' before it is defined")

        for step in function.steps:
            for argument in step.used():
                check_use(argument, f"node '{step.output}'")
            target, count = step.target, len(step.arguments)
            if type(target) is Function and count != len(target.inputs):
                takes = f"takes {len(target.inputs)} values, but gets {count}"
                raise ValueError(f"node '{step.output}': graph '{target.name}' {takes}")
            defined.add(step.output)
        for result in function.result if isinstance(function.result, list) else [function.result]:
            check_use(result, "its output")

    def _check_ends(self) -> None:
        """No graph calls itself whatever the data are: loops go through a Switch."""
        calls = {
            name: {step.target.name for step in function.steps if type(step.target) is Function}
            for name, function in self.functions.items()
        }
        while leaves := [name for name, called in calls.items() if not called & calls.keys()]:
            for name in leaves:
                del calls[name]
        if calls:
            raise ValueError(f"graph '{min(calls)}' calls itself without an end")


def _names_in(argument: Any) -> tuple[str, ...]:
    """The values that an argument needs."""
    return (argument,) if type(argument) is str else argument.free if type(argument) is Function else ()


def _first(arguments: list, node: Any) -> Any:
    if not arguments:
        raise ValueError(f"node '{node.output[0]}': {node.op_type} has no input, one or more are expected")
    return arguments[0]


def _load(parameter: Any) -> Any:
    return parameter.value() if isinstance(parameter, Parameter) else parameter


def _attributes(protos: Iterable[Any]) -> dict[str, Any]:
    """Attributes by name; descriptions of results (`shape`) are none."""
    values = {}
    for proto in protos:
        if proto.name and proto.name != "shape" and not proto.ref_attr_name.startswith("shape:"):
            try:
                values[proto.name] = read_value(proto)
            except (ValueError, LookupError, StopIteration):
                continue  # of a kind that no operator here uses
    return values


def public_name(name: str) -> str:
    """What follows the first colon: the name that users know."""
    return name.partition(":")[2] or name


def _drop_unused(function: Function, used_elsewhere: set[str]) -> None:
    results = function.result if isinstance(function.result, list) else [function.result]
    needed = {a for a in results if type(a) is str} | used_elsewhere
    needed.update(name for a in results if type(a) is Function for name in a.free)
    kept = []
    for step in reversed(function.steps):
        if step.effect or step.output in needed:
            kept.append(step)
            for a in step.used():
                needed.update(_names_in(a))
    function.steps = kept[::-1]


def _mark_tail_call(function: Function) -> None:
    if function.steps:
        last = function.steps[-1]
        if not callable(last.target) and function.result == last.output:
            last.output = None


def _mark_last_uses(function: Function) -> None:
    results = function.result if isinstance(function.result, list) else [function.result]
    needed = {a for a in results if type(a) is str}
    needed.update(name for a in results if type(a) is Function for name in a.free)
    for step in reversed(function.steps):
        names = {step.output} if step.output is not None else set()
        for a in step.used():
            names.update(_names_in(a))
        step.last = tuple(names - needed)
        needed |= names
