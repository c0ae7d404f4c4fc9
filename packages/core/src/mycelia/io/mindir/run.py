"""A loaded MindIR model: its graphs translated into steps, and the loop that runs them.

The steps call public ops, so whatever holds for ops (eager, traced, differentiated) holds for a loaded model.
Nodes run in the order of the file. Monads carry no data and vanish: `Depend` is its first argument,
`UpdateState` is nothing, `Load` is the parameter itself or, when the model writes parameters,
a copy of its present value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mycelia.io.mindir import operators
from mycelia.io.mindir.values import MONAD, dtype_of_data_type, read_tensor, read_value
from mycelia.io.raw import to_parameter
from mycelia.tensor import Parameter, Tensor

_MONAD_INPUTS = ("UMonadType", "IOMonadType", "UMonad", "IOMonad")
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
    ) -> None:
        self.name, self.inputs, self.parameters, self.writes = name, inputs, parameters, writes
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
        return run(Closure(self._main, {}), arguments)

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
            raise TypeError(
                f"graph {function.name} takes {len(function.inputs)} values, but got {len(arguments)}"
            )
        env = {**closure.captured, **dict(zip(function.inputs, arguments))}
        called = None
        for step in function.steps:
            values = tuple([_value(a, env) for a in step.arguments])
            if callable(step.target):
                keywords = {name: _value(a, env) for name, a in step.keywords.items()}
                env[step.output] = _apply(step, values, keywords)
            else:
                called = _value(step.target, env)
                if step.output is None:  # the result of this graph is the result of the call
                    break
                env[step.output] = run(called, values) if isinstance(called, Closure) else called(*values)
            for name in step.last:
                del env[name]
        else:
            if isinstance(function.result, list):
                return tuple(_value(a, env) for a in function.result)
            return _value(function.result, env)
        if not isinstance(called, Closure):
            return called(*values)
        closure, arguments = called, values


def _apply(step: Step, values: tuple, keywords: dict) -> Any:
    try:
        return step.target(*values, **keywords)
    except Exception as e:
        e.add_note(f"in MindIR node {step.output}")
        raise


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
    """The executable form of a ModelProto whose parameters carry their data.

    Errors: ValueError that lists the operators that are not known, or names a node whose links are wrong.
    """
    return _Builder(model).build()


class _Builder:
    def __init__(self, model: Any) -> None:
        self.model = model
        self.graphs = (model.graph, *model.functions)
        self.primitives = {p.name: (p.op_type, _attributes(p.attribute)) for p in model.primitives}
        self.functions = {g.name: Function(g.name) for g in self.graphs}
        if len(self.functions) != len(self.graphs):
            raise ValueError("two graphs have the same name")
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
        return MindIRGraph(public_name(graph.name), inputs, self.parameters, main, branches, self.writes)

    def _translate(self, graph: Any, function: Function) -> None:
        for value in graph.input:
            if value.denotation in _MONAD_INPUTS:
                self.known[value.name] = Constant(MONAD)
            function.inputs.append(value.name)
        for proto in graph.parameter:
            name = proto.ref_key or public_name(proto.name)
            value = to_parameter(read_tensor(proto), name)
            self.parameters[name] = value
            self.known[proto.name] = Constant(value)
        if graph is self.model.graph:  # monads are no arguments of a call from outside
            function.inputs = [v.name for v in graph.input if v.denotation not in _MONAD_INPUTS]
        for node in graph.node:
            self._node(node, function)
        results = [self._argument(value.name) for value in graph.output]
        function.result = results[0] if len(results) == 1 else results

    def _argument(self, name: str) -> Any:
        """What a name stands for: a Constant, a Function, or the name itself."""
        if not isinstance(name, str):  # protobuf hands over what is not UTF-8 as bytes
            raise ValueError(f"the name {name!r} is no text: the file is damaged")
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
            except (ValueError, IndexError) as e:
                raise ValueError(f"constant '{output}': {e}") from None
            return
        operator, attributes = self._operator(node)
        arguments = [self._argument(name) for name in node.input]
        if not operator:
            target = self._argument(node.op_type.removeprefix("REF::"))
            function.steps.append(Step(target, arguments, {}, output, effect=True))
        elif operator == "UpdateState":
            self.known[output] = Constant(MONAD)
        elif operator in _PASS_FIRST or (operator == "Load" and not self.writes):
            self.known[output] = arguments[0]
        elif operator in _CONTROL:
            function.steps.append(Step(_CONTROL[operator], arguments, {}, output, effect=False))
        elif operator == "Load":
            function.steps.append(Step(_load, arguments[:1], {}, output, effect=False))
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
        except TypeError as e:
            raise ValueError(f"node {output}: {operator}: {e}") from None
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


def _load(parameter: Any) -> Any:
    return parameter.value() if isinstance(parameter, Parameter) else parameter


def _attributes(protos: Iterable[Any]) -> dict[str, Any]:
    """Attributes by name; descriptions of results (`shape`) are none."""
    values = {}
    for proto in protos:
        if proto.name and proto.name != "shape" and not proto.ref_attr_name.startswith("shape:"):
            try:
                values[proto.name] = read_value(proto)
            except ValueError:
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
                needed.update((a,) if type(a) is str else a.free if type(a) is Function else ())
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
            names.update((a,) if type(a) is str else a.free if type(a) is Function else ())
        step.last = tuple(names - needed)
        needed |= names
