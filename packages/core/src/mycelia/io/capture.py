"""A net as the graph that is exported: its inputs, open sizes, the structure of its results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mycelia.engine.capture.control import callee
from mycelia.engine.capture.effects import collect
from mycelia.engine.capture.open_sizes import OpenSizes, forget_sizes
from mycelia.engine.capture.trace import Trace, capture_lock, type_of
from mycelia.engine.compile.passes import Pass, cse, dce, inline, optimize
from mycelia.engine.ir import Graph, TensorType, Value
from mycelia.engine.ir.symint import Symbol, SymInt
from mycelia.engine.ir.types import UNKNOWN
from mycelia.engine.tensors.tensor import Tensor


def capture(
    net: Any,
    inputs: Sequence[Any],
    settle: Callable[[Graph], None] = forget_sizes,
    equal: Mapping[tuple[str, int], str] = MappingProxyType({}),
) -> dict[str, Any]:
    """The graph, from running a Cell or a function on tensors without data.

    A name of an input is that of construct's argument. Weights of the net that the run does not use are
    written all the same, in the order of the net's parameters. `output_sizes`: for each output and axis the
    input's value and axis that an open size comes from, or None. `settle` makes open sizes in types -1.
    equal: (input, axis) -> name of its open size; those of one name are one size.
    """
    trace = Trace("construct", sizes=OpenSizes())
    trace.is_for_file = True
    flat: list[str] = []
    sizes: dict[str, Any] = {}
    parameters = list(net.get_parameters()) if hasattr(net, "get_parameters") else []
    taken = {parameter.name for parameter in parameters}
    with capture_lock:
        try:
            with trace:
                arguments = []
                for name, value in zip(_argument_names(net, len(inputs), taken), inputs):
                    if isinstance(value, Tensor):
                        _require_rank(value, name)
                        arguments.append(_parameter(trace, type_of(value), name, equal, sizes))
                        flat.append(name)
                    else:
                        arguments.append(value)
                for parameter in parameters:
                    trace.lift(parameter, parameter.name)
                result = callee(net)(*arguments)
                outputs: list[Value] = []
                structure = _structure(result, trace, outputs)
                del arguments, result
            effects = collect(trace)
        finally:
            trace.close()
    trace.graph.outputs = outputs + effects.results
    sources = [[_source(n) for n in value.type.shape] for value in outputs]
    settle(trace.graph)
    optimize(trace.graph, [Pass("inline", inline.run), Pass("cse", cse.run), Pass("dce", dce.run)])
    names = [getattr(tensor, "name", None) for tensor, _ in effects.inputs]
    title = type(net).__name__ if hasattr(net, "construct") else getattr(net, "__name__", "function")
    if None in names:
        raise ValueError(f"{title} changes a tensor that is no Parameter, which no file can express")
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"parameters of {title} have the same name: {', '.join(twice)}")
    return {
        "graph": trace.graph,
        "input_names": flat,
        "weights": {value: tensor for tensor, value in effects.inputs},
        "updates": list(zip(effects.targets, trace.graph.outputs[len(outputs) :])),
        "name": f"{title}_construct" if hasattr(net, "construct") else title,
        "structure": structure,
        "output_sizes": sources,
    }


def _parameter(trace: Trace, type: TensorType, name: str, equal: Mapping, sizes: dict[str, Any]) -> Tensor:
    """A new input of the graph, with the open sizes that inputs before it have under the same name."""
    names = [equal.get((name, axis)) for axis in range(type.rank)]
    shape = tuple(n if n != UNKNOWN else sizes.get(known, n) for n, known in zip(type.shape, names))
    made = trace.parameter(TensorType(type.dtype, shape), name)
    for axis, (n, known) in enumerate(zip(type.shape, names)):
        if n == UNKNOWN and known is not None:
            sizes.setdefault(known, made.shape[axis])
    return made


def _source(size: Any) -> tuple[Value, int] | None:
    """The value, and the axis of it, whose size a symbol stands for."""
    if type(size) is not SymInt:
        return None
    function, position, *_ = size.made_of()
    return size.table.sources[position] if function is Symbol else None


def _require_rank(value: Tensor, name: str) -> None:
    if -2 in value.shape:
        raise NotImplementedError(
            f"For 'export', the input '{name}' has no known number of axes, which is not supported: give its "
            "shape, with None for each size that is left open"
        )


def _argument_names(net: Any, count: int, taken: set[str]) -> list[str]:
    """Names for `count` inputs: those of construct's arguments, apart from the names that are taken."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [
        p.name
        for p in inspect.signature(getattr(net, "construct", net)).parameters.values()
        if p.kind in kinds
    ][:count]
    names += [f"input{i}" for i in range(len(names), count)]
    return [f"{name}_input" if name in taken else name for name in names]


def _structure(result: Any, trace: Trace, outputs: list[Value]) -> Any:
    """A result as nested tuples of output positions; a dict gives a tuple of its values."""
    if isinstance(result, dict):
        result = tuple(result.values())
    if isinstance(result, (tuple, list)):
        return tuple(_structure(r, trace, outputs) for r in result)
    if type(result) is SymInt:
        result = trace.sizes.number(result, trace)
    outputs.append(trace.value_of(result if isinstance(result, Tensor) else Tensor(result)))
    return len(outputs) - 1
