"""A model's message translated into the steps that `run.py` runs.

Nodes keep the order of the file. Monads carry no data and vanish: `Depend` is its first argument,
`UpdateState` is nothing, `Load` is the parameter itself or, when the model writes parameters,
a copy of its present value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mycelia.engine.tensors.tensor import Parameter
from mycelia.io.mindir import operators
from mycelia.io.mindir.check import MONAD_INPUTS, check
from mycelia.io.mindir.run import CONTROL, Constant, Function, MindIRGraph, Step, switch, switch_layer
from mycelia.io.mindir.structured import captured
from mycelia.io.mindir.values import MONAD, dtype_of_data_type, read_tensor, read_value
from mycelia.io.raw import to_parameter

_PASS_FIRST = frozenset(("Depend", "Return", "return", "stop_gradient", "StopGradient", "identity"))


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
        path = self.file.path
        return MindIRGraph(name, inputs, parameters, main, branches, self.writes, captured, path, steps)

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
        elif operator in CONTROL:
            least = 1 if operator == "Partial" else 2 if "ayer" in operator else 3
            if len(arguments) < least or (operator != "Partial" and len(arguments) != least):
                raise ValueError(f"node '{output}': {operator} takes {least} inputs, got {len(arguments)}")
            function.steps.append(Step(CONTROL[operator], arguments, {}, output, effect=False))
        elif operator == "Load":
            function.steps.append(Step(_load, [_first(arguments, node)], {}, output, effect=False))
        else:
            self._operator_step(operator, attributes, arguments, output, function)
        if operator and function.steps and function.steps[-1].output == output:
            function.steps[-1].name, function.steps[-1].operator = node.domain, operator

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
