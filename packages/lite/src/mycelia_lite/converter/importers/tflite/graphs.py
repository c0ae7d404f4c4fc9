"""Operators of TensorFlow Lite that run other graphs of the file, and variables that live from run to run.

A variable is a value that enters a run of the model and one that leaves it; its first value is what the graph
of CALL_ONCE assigns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.capture.trace import Trace
from mycelia.capture.values import close_over
from mycelia.ir import TensorType
from mycelia.ir.types import join
from mycelia.ops.define import find
from mycelia_lite.converter import obstacles
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers.onnx.calls import is_number, known, shape_of
from mycelia_lite.converter.importers.tflite.calls import Call, as_tensor, operator
from mycelia_lite.converter.importers.tflite.file import TensorInfo
from mycelia_lite.converter.runtime_op import OPEN

CALLS = ("CALL", "CALL_ONCE")  # operators whose graphs run in place, each node with a place of its own
_MOST_TRIES = 20  # what changes in a loop, and sizes that turn out to differ, are found one after the other


@dataclass
class Variable:
    """`value`: what a run has now; `entering`: what it had at the beginning, None if that was not read."""

    name: str
    first: np.ndarray | None = None
    entering: Any = None
    value: Any = None


@dataclass
class Surroundings:
    """Where a node stands. `run`: ``(number of a graph, arguments, surroundings)`` -> its results."""

    run: Callable[[int, Sequence[Any], Surroundings], list[Any]]
    trace: Trace
    variables: dict[str, Variable] = field(default_factory=dict)
    starts: bool = False  # whether it is the graph that gives variables their first values
    inside: bool = False  # whether it is a branch or the body of a loop

    def within(self, trace: Trace) -> Surroundings:
        return Surroundings(self.run, trace, self.variables, inside=True)

    def starting(self) -> Surroundings:
        return Surroundings(self.run, self.trace, self.variables, starts=True)

    def tensor_variable(self, info: TensorInfo) -> Variable:
        """A tensor that keeps its value from run to run; zeros at first."""
        key = f"tensor {id(info.table)}"
        if key not in self.variables:
            self.variables[key] = Variable(info.name, np.zeros(info.table.shape, info.dtype.np))
        return self.variables[key]

    def variable_results(self) -> tuple[list[np.ndarray], list[Any]]:
        """First values of the variables that enter a run, as their parameters stand; what leaves it."""
        entered = [v for v in self.variables.values() if v.entering is not None]
        return [v.first for v in entered], [v.value for v in entered]


@operator("CALL_ONCE", raw=True)
def _call_once(call):
    """What it assigns are constants."""
    call.around.run(call.get("CallOnceOptions", "init_subgraph_index"), [], call.around.starting())
    return ()


@operator("VAR_HANDLE", raw=True)
def _var_handle(call):
    """Handles with the same names are of one variable."""
    name = call.get("VarHandleOptions", "container"), call.get("VarHandleOptions", "shared_name")
    return call.around.variables.setdefault("/".join(filter(None, name)), Variable(name[1]))


@operator("READ_VARIABLE", raw=True)
def _read_variable(call, handle):
    return value_of(call, handle)


def value_of(call: Call, handle: Any) -> Any:
    """What a variable holds now."""
    variable = _variable(call, handle)
    if variable.value is None:
        if variable.first is None:
            raise call.fail(f"the variable '{variable.name}' is read before it has a value")
        if call.around.starts:
            return ms.Tensor(variable.first)
        kind = TensorType(ms.Tensor(variable.first).dtype, variable.first.shape)
        variable.entering = variable.value = call.around.trace.parameter(kind, variable.name)
    return variable.value


@operator("ASSIGN_VARIABLE", raw=True)
def _assign_variable(call, handle, value):
    variable, value = _variable(call, handle), as_tensor(value)
    if call.around.starts:
        if known(value) is None:
            raise call.fail(f"the first value of the variable '{variable.name}' is no constant")
        variable.first = known(value)
        return ()
    assign(call, variable, value)
    return ()


def assign(call: Call, handle: Any, value: Any) -> None:
    """Give a variable what it holds from now on."""
    variable = _variable(call, handle)
    if variable.first is None:
        raise call.fail(f"the variable '{variable.name}' has no first value")
    if tuple(shape_of(value)) != variable.first.shape:
        raise call.fail(
            f"the variable '{variable.name}' of shape {list(variable.first.shape)} gets a value of shape "
            f"{list(shape_of(value))}"
        )
    variable.value = value


def _variable(call: Call, handle: Any) -> Variable:
    if not isinstance(handle, Variable):
        raise call.fail("its first input is no variable", Code.GRAPH_FILE_ERROR)
    if call.around.inside:
        raise call.fail("a variable in a branch or a loop")
    return handle


@operator("IF", raw=True)
def _if(call, condition, *inputs):
    """One of two graphs; both become regions, unless the condition is known."""
    numbers = [call.get("IfOptions", f"{name}_subgraph_index") for name in ("then", "else")]
    condition = ops.reshape(as_tensor(condition), ())
    if known(condition) is not None:
        return tuple(call.around.run(numbers[0 if known(condition) else 1], inputs, call.around))
    regions = []
    for name, number in zip(("then", "else"), numbers):
        region = Trace(name, call.around.trace)
        with region:
            outputs = [as_tensor(v) for v in call.around.run(number, inputs, call.around.within(region))]
            if not obstacles.hide(outputs):
                region.graph.outputs = [region.value_of(t) for t in outputs]
                regions.append(region)
    if len(regions) < 2:
        return [obstacles.UNKNOWN] * len(call.outputs)
    types = [region.graph.output_types for region in regions]
    for i, (a, b) in enumerate(zip(*types)):
        if a.dtype != b.dtype or a.rank != b.rank:
            raise call.fail(f"its output {i} is {a} in one branch and {b} in the other")
    given = close_over(regions)
    then, otherwise = (region.graph for region in regions)
    return find("cond")(given, condition, then=then, otherwise=otherwise)


@operator("CALL", raw=True)
def _call(call, *inputs):
    return tuple(call.around.run(call.get("CallOptions", "subgraph"), inputs, call.around))


@operator("WHILE", raw=True)
def _while(call, *inputs):
    """Runs the body as long as the test holds. Only what the body changes is carried from run to run."""
    test, body = (call.get("WhileOptions", f"{name}_subgraph_index") for name in ("cond", "body"))
    inputs = [v if isinstance(v, Variable) else as_tensor(v) for v in inputs]
    types: dict[int, TensorType] = {}  # of what changes, by position
    for _ in range(_MOST_TRIES):
        regions, given, results = [], [], []
        for number in (test, body):
            region = Trace("test" if number == test else "body", call.around.trace)
            with region:
                standing = {i: region.parameter(types[i]) for i in sorted(types)}
                given = [standing.get(i, v) for i, v in enumerate(inputs)]
                results = call.around.run(number, given, call.around.within(region))
                results = [v if isinstance(v, Variable) else as_tensor(v) for v in results]
                if obstacles.hide(results):
                    return results
                if number == body:
                    results = [_declared(*each) for each in zip(results, inputs, call.outputs)]
                kept = (
                    [ops.reshape(results[0], ())] if number == test else [results[i] for i in sorted(types)]
                )
                region.graph.outputs = [region.value_of(t) for t in kept]
            regions.append(region)
        if len(results) != len(inputs):
            raise call.fail(f"its body makes {len(results)} values of {len(inputs)}", Code.GRAPH_FILE_ERROR)
        wider = dict(types)
        for i, (value, result) in enumerate(zip(given, results)):
            if result is value:
                continue
            if isinstance(value, Variable) or isinstance(result, Variable):
                raise call.fail(f"its value {i} is another variable after a run")
            found = TensorType(result.dtype, _plain(shape_of(result)))
            wider[i] = join(types.get(i, TensorType(value.dtype, _plain(shape_of(value)))), found)
            if wider[i] is None:
                before = f"{value.dtype}{list(shape_of(value))}"
                raise call.fail(f"its value {i} enters a run as {before} and leaves it as {found}")
        if wider == types:
            break
        types = wider
    else:
        raise call.fail("the sizes of what it carries could not be found")
    rest = close_over(regions, len(types))
    carried = tuple(inputs[i] for i in sorted(types))
    condition, step = (region.graph for region in regions)
    made = (
        find("while_loop")((*carried, *rest), test=condition, body=step, carried=len(types)) if types else ()
    )
    results = dict(zip(sorted(types), made))
    return [results.get(i, v) for i, v in enumerate(inputs)]


def _declared(result: Any, first: Any, info: TensorInfo) -> Any:
    """What a run leaves, with the sizes that the file declares where these are those of the first run.

    Sizes that a body cuts off and puts together again by numbers of the run are known in no other way.
    """
    if isinstance(result, Variable) or all(map(is_number, shape_of(result))):
        return result
    same = len(shape_of(result)) == len(info.shape) and _plain(shape_of(first)) == info.shape
    return ops.reshape(result, info.shape) if same and min(info.shape) >= 0 else result


def _plain(shape: Sequence[Any]) -> tuple[int, ...]:
    return tuple(n if is_number(n) else OPEN for n in shape)
