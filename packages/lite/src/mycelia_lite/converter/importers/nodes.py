"""What the importers share: the nodes of a file run one after the other on core's ops, which are captured.

A node that fails is an obstacle: it ends the conversion, or is noted and passed over (see `obstacles`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from mycelia.capture.effects import collect
from mycelia.capture.open_sizes import OpenSizes, forget_sizes
from mycelia.capture.trace import Trace, active, capture_lock
from mycelia.compile.passes import Pass, cse, dce, inline, optimize
from mycelia.ir import Graph
from mycelia_lite.converter import obstacles
from mycelia_lite.converter.errors import Code, ConversionError, Misfit
from mycelia_lite.converter.source import NodePlace

# What core raises for arguments that do not fit, and what attributes of wrong types lead to.
FAILURES = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError, MemoryError)

_LARGEST = 128 << 20  # bytes of a constant that is computed of small ones, such as a mask
_GROWTH = 8  # what was 8 bits in the file may become numbers of 64


class NodeCall:
    """One node of a file. `unit`: what the framework calls one."""

    unit = "node"
    fixed = False  # whether what it became holds for the sizes of its inputs alone
    scales: Sequence[Any] = ()  # by which integers of 8 bits, constants, were multiplied, arrays
    same = False  # whether the pads of its windows follow from a size

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name

    def fail(self, why: str, code: Code = Code.NOT_SUPPORT) -> ConversionError:
        return ConversionError(code, f"{self.unit} '{self.name}' ({self.kind}): {why}")

    def misfit(self, why: str, code: Code = Code.NOT_SUPPORT) -> Misfit:
        return Misfit(code, self.fail(why).args[0])

    def require_room(self, *sizes: int) -> None:
        """Errors: ConversionError if so many numbers of 64 bits are more than a constant may have here."""
        trace = active()
        largest = None if trace is None else trace.root.largest
        if largest is not None and 8 * math.prod(sizes) > largest:
            raise self.fail(f"it makes {math.prod(sizes)} numbers, constants may have {largest} bytes here")

    def unread(self) -> str | None:
        """The name of an attribute that is set and that nothing read; None where none can be overlooked."""
        return None

    def all_read(self) -> None:
        """Errors: ConversionError for an attribute that is set and that nothing read."""
        unread = self.unread()
        if unread is not None:
            raise self.fail(f"its attribute '{unread}' is not imported", Code.INVALID_OP_ATTR)


class OperatorEntry:
    """The function of an operator, ``(call, *inputs)`` -> a value or a tuple of them.

    `sizes`: positions of inputs that may be open sizes; at others these become a Tensor.
    """

    def __init__(self, function: Callable, sizes: Collection[int] = ()) -> None:
        self.function, self.sizes = function, sizes
        parameters = list(inspect.signature(function).parameters.values())[1:]
        self.variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        positional = [p for p in parameters if p.kind is not p.VAR_POSITIONAL]
        self.most = len(positional)
        self.least = sum(p.default is p.empty for p in positional)

    def arguments(self, inputs: Sequence[Any], as_tensor: Callable) -> list[Any]:
        """The inputs, those as tensors that cannot be open sizes."""
        return [v if self.variadic or i in self.sizes else as_tensor(v) for i, v in enumerate(inputs)]


def entry_of(call: NodeCall, inputs: list[Any], operators: Mapping[str, Any]) -> Any:
    """What imports a node with these inputs; None at their end is taken off.

    Errors: ConversionError if the operator or the number of inputs is not known.
    """
    entry = operator_of(call, operators)
    while inputs and inputs[-1] is None:
        inputs.pop()
    if len(inputs) < entry.least or (len(inputs) > entry.most and not entry.variadic):
        raise call.fail(f"it has {len(inputs)} inputs, which is not imported", Code.GRAPH_FILE_ERROR)
    if any(value is None for value in inputs[: entry.least]):
        raise call.fail("an input that must be there is left out", Code.GRAPH_FILE_ERROR)
    return entry


def operator_of(call: NodeCall, operators: Mapping[str, Any]) -> Any:
    """The entry of a node's operator. Errors: ConversionError, with those that are called alike."""
    if call.kind not in operators:
        raise _no_importer(call, obstacles.near(call.kind, operators))
    return operators[call.kind]


def _no_importer(call: NodeCall, near: str = "") -> ConversionError:
    return call.fail(f"there is no importer for this operator{near}", Code.NOT_FIND_OP)


def _passed_over(call: NodeCall, inputs: Sequence[Any]) -> bool:
    """Whether a node reads what another would have made; noted if its own operator is not known, either."""
    if not obstacles.hide(inputs):
        return False
    if obstacles.is_unknown(call.kind):
        obstacles.note(_no_importer(call))
    return True


class Nodes:
    """The nodes of a file as they are imported. `file`: its name, for messages."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.count = 0  # so far, those of functions and branches included
        self.scales: list[Any] = []  # by which weights of 8 bits were multiplied
        self.fixed = ""  # the first node that holds for the sizes of its inputs alone

    def run(
        self, trace: Trace, call: NodeCall, inputs: Sequence[Any], results: int, compute: Callable
    ) -> Sequence[Any]:
        """What `compute` gives, so many results; `UNKNOWN` each where the node is passed over.

        The nodes of the graph that it adds get the place of this node.
        """
        if _passed_over(call, inputs):
            return [obstacles.UNKNOWN] * results
        start = len(trace.graph.nodes)
        found = self.call(trace, call, inputs, results, compute)
        self.count += 1
        place = NodePlace(f"{self.file} {call.unit}", self.count, call.name, call.kind, call.same)
        for made in trace.graph.nodes[start:]:
            made.location = place
        return found

    def call(
        self, trace: Trace, call: NodeCall, inputs: Sequence[Any], results: int, compute: Callable
    ) -> Sequence[Any]:
        """The same of a node that calls nodes of the file, each with its own place."""
        if _passed_over(call, inputs):
            return [obstacles.UNKNOWN] * results
        try:
            found = compute()
            self.scales.extend(call.scales)
            if call.fixed and not self.fixed:
                self.fixed = f"{call.unit} '{call.name}' ({call.kind})"
            return found
        except ConversionError as error:
            if not obstacles.note(error):
                raise
        except FAILURES as error:
            failure = call.fail(f"{error}")
            if not obstacles.note(failure):
                raise failure from error
        return [obstacles.UNKNOWN] * results


def captured(run: Callable[[Trace], Sequence[Any]], weights: int | None = None) -> Graph:
    """The graph whose outputs are the Tensors that `run` gives; those it passed over are left out.

    `weights`: bytes of the model's constants, which bounds what is computed of them; None for no bound.
    """
    trace = Trace("main", sizes=OpenSizes())
    trace.largest = None if weights is None else _LARGEST + _GROWTH * weights
    with capture_lock:
        try:
            with trace:
                known = [trace.value_of(t) for t in run(trace) if t is not obstacles.UNKNOWN]
                trace.graph.outputs = obstacles.outputs(trace.graph, known)
            collect(trace)
        finally:
            trace.close()
    forget_sizes(trace.graph)
    optimize(trace.graph, [Pass("inline", inline.run), Pass("cse", cse.run), Pass("dce", dce.run)])
    return trace.graph


def require_none(path: str, what: str, missing: Mapping[str, str], unit: str = "node") -> None:
    """Errors: ConversionError with all operators that are missing, each with the name of a node that has it.

    `what`: they are, in words. While obstacles are collected each node tells by itself.
    """
    if obstacles.are_collected():
        obstacles.expect(missing)
    elif missing:
        listed = ", ".join(f"{kind} ({unit} '{name}')" for kind, name in sorted(missing.items()))
        raise ConversionError(Code.NOT_FIND_OP, f"{path}: {what} that cannot be imported: {listed}")
