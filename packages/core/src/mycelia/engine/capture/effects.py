"""What a captured function changed outside of itself: Parameters, generator states, tensors kept in objects.

Inside the graph an update is just a new value. At the end of the capture the last value of each changed
tensor becomes an extra output, written back after every run.
"""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.engine.capture.trace import Trace
from mycelia.engine.ir.graph import Value
from mycelia.engine.ir.walk import all_graphs
from mycelia.engine.tensors.tensor import Tensor


class Effects:
    """`inputs`: tensors whose data the graph's extra parameters take; `targets`: tensors that its extra
    outputs replace."""

    __slots__ = ("inputs", "targets", "results")

    def __init__(self) -> None:
        self.inputs: list[tuple[Tensor, Value]] = []
        self.targets: list[Tensor] = []
        self.results: list[Value] = []


def collect(trace: Trace) -> Effects:
    """Reads the changes from the outermost trace; call before `trace.close()`,
    when the function's locals are gone.
    """
    effects = Effects()
    for entry in trace.lifted.values():
        tensor = entry.reference()
        if tensor is None:  # a Parameter that the function made for itself
            entry.value.constant = entry.original
            trace.graph.parameters.remove(entry.value)
            continue
        effects.inputs.append((tensor, entry.value))
        if tensor.traced is not entry.value:
            _check_type(tensor, entry.value)
            effects.targets.append(tensor)
            effects.results.append(tensor.traced)
    for entry in list(trace.constants.values()):
        tensor = entry.reference()
        if tensor is None or tensor.traced is None:
            continue  # unchanged, or a temporary of the function
        _check_type(tensor, entry.value)
        _require_outermost(trace, entry.value)
        result = tensor.traced
        entry.value.constant = None
        trace.graph.parameters.append(entry.value)
        effects.inputs.append((tensor, entry.value))
        effects.targets.append(tensor)
        effects.results.append(result)
    return effects


def _check_type(tensor: Tensor, value: Value) -> None:
    if tensor.dtype is not value.type.dtype or tensor.shape != value.type.shape:
        name = getattr(tensor, "name", "a tensor kept outside")
        raise errors.error(
            errors.CaptureError,
            "jit",
            f"{name} is {value.type} but the compiled function assigns a {tensor.traced.type} to it",
        )


def _require_outermost(trace: Trace, value: Value) -> None:
    for graph in all_graphs(trace.graph):
        if graph is not trace.graph and any(value in node.inputs for node in graph.nodes):
            raise errors.error(
                errors.CaptureError,
                "jit",
                f"a {value.type} tensor that is no Parameter is changed in place and used under a tensor "
                "condition",
                hint="make it a Parameter (requires_grad=False)",
            )
