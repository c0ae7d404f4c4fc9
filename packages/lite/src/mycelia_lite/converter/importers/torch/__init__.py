"""PYTORCH: programs of `torch.export`. Their ATen ops run one after the other on core's, which are captured.

The program is first decomposed to the core ATen ops. The package `torch` must be installed. Each result is
held against the shape and data type that the program declares for it. The ops are in files by topic.
"""

from __future__ import annotations

import operator as python
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import mycelia as ms
from mycelia.capture.trace import Trace
from mycelia_lite.converter import obstacles
from mycelia_lite.converter.errors import Code, ConversionError, NotAvailable
from mycelia_lite.converter.importers.inputs import parameter, require_inputs
from mycelia_lite.converter.importers.nodes import Nodes, captured, operator_of
from mycelia_lite.converter.importers.torch import control, layers, math, moves, shared  # noqa: F401
from mycelia_lite.converter.importers.torch.calls import (
    OPERATORS,
    Call,
    as_tensor,
    dtype_of,
    shape_of,
    tensor_of,
)
from mycelia_lite.converter.source import Source
from mycelia_lite.enums import FmkType

_SIZES = {  # arithmetic on open sizes
    python.add: python.add, python.sub: python.sub, python.mul: python.mul, python.floordiv: python.floordiv,
    python.mod: python.mod, python.neg: python.neg,
}  # fmt: skip
_CHECKS = (
    "aten._assert_scalar.default",
    "aten._assert_tensor_metadata.default",
    "aten.sym_constrain_range_for_size.default",
)


def load(path: Any, input_shapes: Mapping[str, Sequence[int]]) -> Source:
    """The graph of a `.pt2` file that `torch.export.save` wrote, or of an ExportedProgram.

    `input_shapes`: must be those of the program, where it fixes them. Errors: ConversionError as of the other
    importers; NotImplementedError if torch is not installed.
    """
    if not isinstance(path, str):
        return source(path, "the program", input_shapes)
    try:
        import torch
    except ImportError:
        raise NotAvailable("models of PYTORCH need the package torch, which is not installed") from None
    try:
        program = torch.export.load(path)
    except Exception as error:  # torch raises what zip, pickle and its own checks raise
        reason = str(error).partition("\n")[0]
        raise ConversionError(
            Code.GRAPH_FILE_ERROR, f"{path} is no program that torch.export.save wrote: {reason}"
        ) from error
    return source(program, os.path.basename(path), input_shapes)


def source(program: Any, name: str, input_shapes: Mapping[str, Sequence[int]]) -> Source:
    """The graph of a `torch.export.ExportedProgram`; `name` is for messages."""
    try:
        program = program.run_decompositions()
    except Exception as error:  # torch computes all shapes anew, and raises what its operators raise
        reason = str(error).partition("\n")[0]
        raise ConversionError(
            Code.GRAPH_FILE_ERROR, f"{name} is no program that torch can run: {reason}"
        ) from error
    return _Program(program, name).source(input_shapes)


class _Program:
    """A program, and what its nodes share."""

    def __init__(self, program: Any, name: str) -> None:
        self.program, self.name = program, name
        self.nodes = Nodes(name)

    def source(self, input_shapes: Mapping[str, Sequence[int]]) -> Source:
        signature = self.program.graph_signature
        if signature.buffers_to_mutate or signature.user_inputs_to_mutate:
            raise NotAvailable(f"{self.name}: a run changes buffers or inputs, which is not imported")
        nodes = list(self.program.graph.nodes)
        inputs = [n for n in nodes if n.op == "placeholder" and n.name in set(signature.user_inputs)]
        shapes = self._shapes(inputs, input_shapes)
        (results,) = next(n for n in nodes if n.op == "output").args

        def run(trace: Trace) -> list[Any]:
            values = self._weights(nodes, signature)
            symbols: dict[str, Any] = {}
            for node, shape in zip(inputs, shapes, strict=True):
                values[node] = _parameter(trace, node, shape, symbols)
            self._run(self.program.graph_module, values, trace)
            return [as_tensor(values[r] if hasattr(r, "op") else r) for r in results]

        names = [r.name if hasattr(r, "op") else f"output{i}" for i, r in enumerate(results)]
        return Source(captured(run), [n.name for n in inputs], names, FmkType.PYTORCH)

    def _shapes(self, inputs: Sequence[Any], given: Mapping[str, Sequence[int]]) -> list[list[Any]]:
        """Sizes of the inputs: a number, or the symbol of one that is open."""
        require_inputs([n.name for n in inputs], given)
        shapes = []
        for node in inputs:
            declared = node.meta.get("val")
            if not hasattr(declared, "shape"):
                raise NotAvailable(f"{self.name}: the input '{node.name}' is no tensor")
            shape = [n if type(n) is int else str(n) for n in declared.shape]
            wanted = list(given.get(node.name, [-1 if type(n) is str else n for n in shape]))
            if len(wanted) != len(shape) or any(type(n) is int and n != w for n, w in zip(shape, wanted)):
                raise ConversionError(
                    Code.INPUT_PARAM_INVALID,
                    f"inputShape gives '{node.name}' {wanted}, but the program was exported for {shape}",
                )
            shapes.append([w if w >= 0 else n for n, w in zip(shape, wanted)])
        return shapes

    def _weights(self, nodes: Sequence[Any], signature: Any) -> dict[Any, Any]:
        stored = {**self.program.state_dict, **self.program.constants}
        names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        names |= signature.inputs_to_lifted_tensor_constants
        return {
            node: tensor_of(stored[names[node.name]])
            for node in nodes
            if node.op == "placeholder" and node.name in names and node.users
        }

    def _inner(self, module: Any, arguments: Sequence[Any], trace: Trace) -> list[Any]:
        """The results of a module that an op of control flow runs."""
        inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
        values = dict(zip(inputs, arguments, strict=True))
        self._run(module, values, trace)
        (results,) = next(n for n in module.graph.nodes if n.op == "output").args
        return [_filled(r, values) for r in _listed(results)]

    def _run(self, module: Any, values: dict[Any, Any], trace: Trace) -> None:
        """Adds the results of a module's nodes to `values`."""
        for node in module.graph.nodes:
            if node.op == "placeholder" or node.op == "output":
                continue
            if node.op == "get_attr" and hasattr(getattr(module, node.target, None), "graph"):
                values[node] = getattr(module, node.target)
                continue
            kind = str(node.target) if not isinstance(node.target, str) else node.target
            call = Call(kind, node)
            if kind in _CHECKS:  # of sizes: the runtime has its own
                continue
            if node.op != "call_function":
                raise call.fail(f"it is a {node.op}, which is not imported")
            args, kwargs = _filled(node.args, values), _filled(node.kwargs, values)
            (values[node],) = self.nodes.run(
                trace,
                call,
                [args, list(kwargs.values())],
                1,
                partial(self._results, call, args, kwargs, trace),
            )

    def _results(self, call: Call, args: list[Any], kwargs: dict[str, Any], trace: Trace) -> list[Any]:
        """The result of a node, alone in a list: it may be a list itself."""
        target = call.node.target
        if target is python.getitem:
            return [args[0][args[1]]]
        if target in _SIZES:
            return [_SIZES[target](*args)]
        if call.kind in control.CONTROL:
            around = control.Surroundings(trace, self._inner)
            result = control.CONTROL[call.kind](call, around, *args, **kwargs)
            if obstacles.hide(result):
                return [obstacles.UNKNOWN]
        else:
            result = operator_of(call, OPERATORS)(call, *args, **kwargs)
        for value, declared in zip(_listed(result), _listed(call.node.meta.get("val"))):
            self._check(call, value, declared)
        return [result]

    def _check(self, call: Call, value: Any, declared: Any) -> None:
        """Errors: ConversionError unless a result is what the program declares."""
        if value is None or not hasattr(declared, "shape"):
            return
        shape = shape_of(value)
        known = all(type(n) is not int or type(m) is not int or n == m for n, m in zip(shape, declared.shape))
        if len(shape) != len(declared.shape) or not known or value.dtype != dtype_of(call, declared.dtype):
            raise call.fail(
                f"it makes {value.dtype} {list(shape)}, but the program declares {declared.dtype} "
                f"{list(declared.shape)}"
            )


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def _filled(value: Any, values: Mapping[Any, Any]) -> Any:
    """Arguments with the results of the nodes that they name."""
    if isinstance(value, list | tuple):
        return [_filled(v, values) for v in value]
    if isinstance(value, dict):
        return {k: _filled(v, values) for k, v in value.items()}
    return values[value] if hasattr(value, "op") and hasattr(value, "target") else value


def _parameter(trace: Trace, node: Any, shape: Sequence[Any], symbols: dict[str, Any]) -> ms.Tensor:
    """A Tensor for an input; open sizes with the same symbol are the same size."""
    dtype = dtype_of(Call("input", node), node.meta["val"].dtype)
    sizes = [n if type(n) is int else -1 for n in shape]
    return parameter(trace, node.name, dtype, sizes, [n if type(n) is str else "" for n in shape], symbols)
