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
from mycelia.ir import TensorType
from mycelia_lite.converter import obstacles
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers import regions
from mycelia_lite.converter.importers.onnx.calls import is_number, known, shape_of
from mycelia_lite.converter.importers.tflite.calls import Call, as_tensor, operator
from mycelia_lite.converter.importers.tflite.file import TensorInfo

#: Operators whose graphs run in place, each node with a place of its own.
CALLS = ("CALL", "CALL_ONCE", "STABLEHLO_COMPOSITE")


@dataclass
class Variable:
    """`first`: what it has before the first run; `value`: what a run has now, None if that was not read."""

    name: str
    first: np.ndarray | None = None
    value: Any = None


@dataclass
class Surroundings:
    """Where a node stands. `run`: ``(number of a graph, arguments, surroundings)`` -> its results.

    `entered`: the variables that enter a run, in the order of their parameters.
    """

    run: Callable[[int, Sequence[Any], Surroundings], list[Any]]
    trace: Trace
    variables: dict[str, Variable] = field(default_factory=dict)
    entered: list[Variable] = field(default_factory=list)
    starts: bool = False  # whether it is the graph that gives variables their first values
    inside: bool = False  # whether it is a branch or the body of a loop

    def within(self, trace: Trace) -> Surroundings:
        return Surroundings(self.run, trace, self.variables, self.entered, inside=True)

    def starting(self) -> Surroundings:
        return Surroundings(self.run, self.trace, self.variables, self.entered, starts=True)

    def tensor_variable(self, info: TensorInfo) -> Variable:
        """A tensor that keeps its value from run to run; at first what stands for zeros."""
        key = f"tensor {id(info.table)}"
        if key not in self.variables:
            zero = info.quantization.zero[0] if info.kind == "INT8" and info.quantization is not None else 0
            self.variables[key] = Variable(info.name, np.full(info.table.shape, zero, info.dtype.np))
        return self.variables[key]

    def variable_results(self) -> tuple[list[np.ndarray], list[Any]]:
        """First values of the variables that enter a run, as their parameters stand; what leaves it."""
        return [v.first for v in self.entered], [v.value for v in self.entered]


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
        variable.value = call.around.trace.parameter(kind, variable.name)
        call.around.entered.append(variable)
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

    def results(number: int) -> Callable:
        return lambda region: _tensors(call.around.run(number, inputs, call.around.within(region)))

    return regions.conditional(call, call.around.trace, condition, *map(results, numbers))


@operator("CALL", raw=True)
def _call(call, *inputs):
    return tuple(call.around.run(call.get("CallOptions", "subgraph"), inputs, call.around))


@operator("WHILE", raw=True)
def _while(call, *inputs):
    """Runs the body as long as the test holds."""
    inputs = _tensors(inputs)

    def test(region: Trace, values: Sequence[Any]) -> list[Any]:
        number = call.get("WhileOptions", "cond_subgraph_index")
        return _tensors(call.around.run(number, values, call.around.within(region)))

    def body(region: Trace, values: Sequence[Any]) -> list[Any]:
        number = call.get("WhileOptions", "body_subgraph_index")
        results = _tensors(call.around.run(number, values, call.around.within(region)))
        if obstacles.hide(results):
            return results
        return [_declared(*each) for each in zip(results, inputs, call.outputs, strict=True)]

    return regions.while_loop(call, call.around.trace, inputs, test, body)


def _tensors(values: Sequence[Any]) -> list[Any]:
    return [v if isinstance(v, Variable) or v is obstacles.UNKNOWN else as_tensor(v) for v in values]


def _declared(result: Any, first: Any, info: TensorInfo) -> Any:
    """What a run leaves, with the sizes that the file declares where these are those of the first run.

    Sizes that a body cuts off and puts together again by numbers of the run are known in no other way.
    """
    if isinstance(result, Variable) or all(map(is_number, shape_of(result))):
        return result
    same = len(shape_of(result)) == len(info.shape) and regions.plain(shape_of(first)) == info.shape
    return ops.reshape(result, info.shape) if same and min(info.shape) >= 0 else result
