"""From a Python function and arguments to an optimized graph with all that a call needs: a `Compiled`, or a
`Template` that serves calls with other sizes too.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, ItemsView, KeysView, Sequence, ValuesView
from typing import Any

from mycelia.engine import _C
from mycelia.engine.base import errors
from mycelia.engine.capture import control, unsupported
from mycelia.engine.capture.calls import TensorRange
from mycelia.engine.capture.effects import collect
from mycelia.engine.capture.numbers import is_number
from mycelia.engine.capture.outside import put_back, require_unchanged
from mycelia.engine.capture.text import Text
from mycelia.engine.capture.trace import (
    Trace,
    UnknownSize,
    UnknownValue,
    capture_lock,
    number_tensor,
    type_of,
)
from mycelia.engine.compile import clock, differentiate, disk_cache, divided, executable, failures
from mycelia.engine.compile.compiled import Compiled, arranged
from mycelia.engine.compile.gc_pause import gc_paused
from mycelia.engine.compile.memory import MemoryReport
from mycelia.engine.compile.passes import NOTHING, optimize, with_asked
from mycelia.engine.compile.resizable import OpenDerivative, Resizable
from mycelia.engine.compile.signature import Shape, replaced, signature
from mycelia.engine.ir.graph import Graph, Value
from mycelia.engine.ir.sizes import Numbers, instantiate
from mycelia.engine.ir.symint import SizeTable, SymInt
from mycelia.engine.ir.types import TensorType
from mycelia.engine.observing import observers
from mycelia.engine.ops.control_flow.variable import VARIABLE_LENGTH, plain
from mycelia.engine.tensors.sparse import Sparse
from mycelia.engine.tensors.tensor import Parameter, Tensor

Guard = tuple[dict, str, Any]  # attributes of a Cell, a name among them, the value that the graph is for
Place = tuple[int, int]  # a tensor among the arguments, an axis of it


class Template:
    """A function compiled for all sizes of some axes."""

    def __init__(
        self,
        like: Compiled,
        table: SizeTable,
        places: list[Place],
        shapes: Sequence[Shape],
        numbers: list[tuple[SymInt, Value]],
    ) -> None:
        self.like = like  # its graph has `numbers` as last parameters
        self.table, self.places = table, places
        self.fixed = {  # the sizes of all other axes
            (i, axis): n
            for i, shape in enumerate(shapes)
            for axis, n in enumerate(shape)
            if (i, axis) not in places
        }
        self.numbers = numbers  # parameters of the graph that follow from sizes
        graph = self.graph = Graph(like.graph.name)
        graph.nodes, graph.outputs = like.graph.nodes, like.graph.outputs
        graph.parameters = like.graph.parameters[: len(like.graph.parameters) - len(numbers)]
        self.inputs, self.frozen, self.updates = arranged(graph, like.inputs, like.targets, like.count)
        graph.parameters += [value for _, value in numbers]
        self.resizables: dict[Any, Resizable] = {}
        self.derivatives: dict[Any, OpenDerivative] = {}

    def instance(self, shapes: Sequence[Shape]) -> Compiled | None:
        """The function for these shapes, without another capture; None if the code would go another way."""
        if any(shapes[i][axis] != n for (i, axis), n in self.fixed.items()):
            return None
        sizes = tuple(shapes[i][axis] for i, axis in self.places)
        numbers = self.table.resolve(sizes)
        return None if numbers is None else Resized(self, sizes, numbers)

    def concrete(self, numbers: Sequence[Any]) -> Compiled:
        """The function with its sizes as numbers."""
        constants = {
            value: Value(value.type, constant=number_tensor(numbers[size.index], value.type.dtype))
            for size, value in self.numbers
        }
        graph = instantiate(self.like.graph, numbers, constants)
        return Compiled(graph, self.like.inputs, self.like.targets, self.like.count, self.like.build)

    def program(self, sizes: tuple[int, ...], numbers: list) -> _C.Program | None:
        """The program for these sizes; None if it has to be built for them alone."""
        key = executable.variant_key(self.frozen, self.updates)
        with capture_lock:
            found = self.resizables.get(key)
            if found is None:
                tensors = dict(zip(self.frozen, self.inputs))
                found = Resizable(self.graph, self.table, self.frozen, self.updates, tensors)
                self.resizables[key] = found
            return found.program(sizes, numbers)

    def derivative(
        self, sizes: tuple[int, ...], wanted: tuple[bool, ...], given: tuple[bool, ...]
    ) -> differentiate.Derivative | None:
        """The programs of the function with its gradient for these sizes, likewise."""
        key = (wanted, given, executable.variant_key(self.frozen, self.updates))
        with capture_lock:
            found = self.derivatives.get(key)
            if found is None:
                tensors = dict(zip(self.frozen, self.inputs))
                found = self.derivatives[key] = OpenDerivative(
                    self.graph, self.table, sizes, wanted, given, self.frozen, self.updates, tensors
                )
            return found.programs(sizes, self.table.resolve(sizes))

    def specialized(self) -> list[Place]:
        """Places whose size the captured code looked at, so that they are fixed after all."""
        return [place for place, is_fixed in zip(self.places, self.table.is_specialized()) if is_fixed]


@gc_paused()
def compile_function(
    fn: Callable,
    name: str,
    args: tuple,
    kwargs: dict,
    sizes: dict[Place, int] | None = None,
    entry: disk_cache.Entry | None = None,
) -> tuple[Compiled | Template, list[Guard]]:
    """Captures `fn` for arguments like these and optimizes the graph, which is kept in `entry`.

    `sizes` names axes whose size may change, with a size that stands for all while the code runs. The guards
    name what besides the arguments the graph depends on.
    """
    tensors: list[Tensor] = []
    _, shapes = signature(args, kwargs, tensors, [])
    outside = parameters_of(fn, args, kwargs)
    table = SizeTable() if sizes else None
    arguments_of = divided.Arguments(tensors) if divided.key() is not None else None
    with capture_lock:
        trace = Trace(name, sizes_known=True, sizes=table)
        try:
            with trace:
                argument_types = [type_of(t) for t in tensors] if arguments_of is None else arguments_of.types
                for (index, axis), hint in (sizes or {}).items():
                    argument_types[index] = _with_size(argument_types[index], axis, table.symbol(hint))
                standing = [trace.parameter(t) for t in argument_types]
                arguments = [t.traced for t in standing]
                for parameter in outside.values():
                    if parameter.traced is None and parameter._has_value:
                        trace.lift(parameter, parameter.name)
                stand_ins = iter(standing)
                given, named = replaced(args, stand_ins), replaced(kwargs, stand_ins)
                del standing, stand_ins
                try:
                    result = control.callee(fn)(*given, **named)
                except NameError as error:
                    raise unsupported.with_line(error) from None
                outputs: list[Value] = []
                form = _form(result, trace, outputs)
                del result, given, named
            require_unchanged(trace)
            effects = collect(trace)
        except (UnknownSize, UnknownValue):  # it runs as Python then, from the beginning
            put_back(trace)
            raise
        finally:
            trace.close()
    graph = trace.graph
    numbers = [(size, tensor.traced) for size, tensor in trace.numbers.values()]
    graph.outputs = outputs + effects.results
    graph.parameters = arguments + [v for _, v in effects.inputs] + [v for _, v in numbers]
    optimize(graph)
    read = {v for node in graph.nodes for v in node.inputs} | set(graph.outputs)
    inputs = [(tensor, value) for tensor, value in effects.inputs if value in read]
    _require_unique_names([tensor for tensor, _ in inputs], (*args, *kwargs.values(), *_outer_values(fn)))
    graph.parameters = arguments + [v for _, v in inputs] + [v for _, v in numbers]
    build, tensors_read = _builder(form), [t for t, _ in inputs]
    found: Compiled | Template
    if arguments_of is None:
        found = Compiled(graph, tensors_read, effects.targets, len(outputs), build)
    else:
        graph, sums = divided.divide(graph, arguments_of, inputs, effects.targets, len(outputs))
        optimize(graph)
        tensors_read = [t for t, _ in inputs]
        found = divided.Divided(graph, tensors_read, effects.targets, len(outputs), build, sums)
    if table is not None:
        table.close()
        found = Template(found, table, list(sizes or {}), shapes, numbers)
    cells = {id(inner): inner for cell in trace.cells.values() for inner in _with_parts(cell)}
    if entry is not None:
        entry.save(graph, tensors_read, effects.targets, form, list(cells.values()))
    return found, [guard for cell in cells.values() for guard in cell_guards(cell)]


class Resized(Compiled):
    """A Template's function for some sizes."""

    __slots__ = ("template", "sizes", "values", "derivatives", "_concrete")

    def __init__(self, template: Template, sizes: tuple[int, ...], values: list) -> None:
        like = template.like
        self.template, self.sizes, self.values = template, sizes, values
        self._concrete: Compiled | None = None
        self.derivatives: dict[Any, differentiate.Derivative | None] = {}
        self.targets, self.count, self.build = like.targets, like.count, like.build
        numbers = [number_tensor(values[size.index], value.type.dtype) for size, value in template.numbers]
        self.inputs = template.inputs + numbers
        self.program, self.asked = None, NOTHING

    @property
    def graph(self) -> Graph:
        return self.concrete().graph

    def concrete(self) -> Compiled:
        """The function with a graph and a program of its own: what gradients and readers look at."""
        if self._concrete is None:
            with capture_lock:
                self._concrete = self.template.concrete(self.values)
                self._concrete.asked = self.asked
        return self._concrete

    def __call__(self, tensors: list[Tensor]) -> Any:
        if observers:
            return self.concrete()(tensors)
        try:
            if _C.tape_level():
                with with_asked(self.asked):
                    results = differentiate.run(OpenFunction(self), tensors + self.inputs)
                return self.concrete()(tensors) if results is None else self.build(results)
            if self.program is None and self.prepare() is None:
                return self.concrete()(tensors)
            return self.build(self.program.run(tensors, self.inputs))
        except Exception as error:
            if self.gives_up_folding(error):
                self._concrete = None
                return self(tensors)
            failures.failed(error, self, tensors)
            raise

    def prepare(self) -> _C.Program | None:
        with clock.compiling(), with_asked(self.asked):
            self.program = self.template.program(self.sizes, self.values)
        if self.program is not None:
            self.watch()
        return self.program

    def memory_report(self) -> MemoryReport:
        if self.program is None and self.prepare() is None:
            return self.concrete().memory_report()
        return super().memory_report()

    def keep_nothing(self) -> None:
        self.template.frozen = ()
        self.template.resizables.clear()
        self.prepare()


class OpenFunction(differentiate.Differentiable):
    """What a `Resized` gives to `differentiate.run`."""

    def __init__(self, function: Resized) -> None:
        self.function, self.template = function, function.template
        self.graph, self.updates = self.template.graph, self.template.updates

    def derivative(
        self, wanted: tuple[bool, ...], given: tuple[bool, ...]
    ) -> differentiate.Derivative | None:
        known = self.function.derivatives
        key = wanted, given, executable.variant_key((), ())
        if key not in known:
            with clock.compiling():
                known[key] = self.template.derivative(self.function.sizes, wanted, given)
        return known[key]

    def output_type(self, position: int) -> TensorType:
        return Numbers(self.function.values).type(self.graph.outputs[position].type)

    def whole_graph(self) -> Graph:
        return self.function.concrete().graph


class SameName(errors.MyceliaValueError, RuntimeError):
    """Two Parameters of one graph have the same name."""


def _require_unique_names(tensors: Sequence[Tensor], given: Sequence[Any]) -> None:
    """Errors: SameName for a Parameter among `given`, arguments and variables from outside, if another that
    takes part has its name. MindSpore does not spare Parameters of Cells either.
    """
    direct = set(map(id, given))
    owners: dict[str, Tensor] = {}
    for tensor in tensors:
        if not isinstance(tensor, Parameter) or tensor._unnamed:
            continue
        other = owners.setdefault(tensor.name, tensor)
        if other is not tensor and (id(tensor) in direct or id(other) in direct):
            raise errors.error(
                SameName,
                "jit",
                f"a Parameter of shape {list(tensor.shape)} takes part, but its name '{tensor.name}' already "
                "exists.",
                hint="every Parameter of a graph needs a name of its own",
            )


def on_disk(fn: Callable, name: str, args: tuple, kwargs: dict) -> disk_cache.Entry | None:
    """The place of `fn` in the cache on disk; None if that is off or the function cannot have one."""
    if not disk_cache.is_on() or divided.key() is not None:
        return None
    return disk_cache.entry(fn, name, args, kwargs, list(parameters_of(fn, args, kwargs)))


def loaded(entry: disk_cache.Entry) -> tuple[Compiled, list[Guard]] | None:
    """What an earlier process left in `entry`, as `compile_function` would give it."""
    found = entry.load()
    if found is None:
        return None
    graph, inputs, targets, form, cells = found
    run = Compiled(graph, inputs, targets, len(graph.outputs) - len(targets), _builder(form))
    return run, [guard for cell in cells for guard in cell_guards(cell)]


def _with_parts(cell: Any) -> list[Any]:
    """The cell and the cells it holds: a list of layers is read without being called."""
    return [cell, *(part for part in getattr(cell, "_cells", {}).values() if part is not None)]


def cell_guards(cell: Any) -> list[Guard]:
    """What a graph in which `cell` takes part depends on."""
    state = cell.__dict__
    return [(state, name, state.get(name)) for name in ("training", "_version")]


def holds(guards: Sequence[Guard]) -> bool:
    """False if a Cell that took part has changed, between training and inference, say."""
    return all(state.get(name) == value for state, name, value in guards)


def _with_size(type_: TensorType, axis: int, size: SymInt) -> TensorType:
    return TensorType(type_.dtype, (*type_.shape[:axis], size, *type_.shape[axis + 1 :]))


def _form(value: Any, trace: Trace, outputs: list[Value]) -> tuple[str, Any]:
    """Collects the tensors of a returned structure as outputs; the result says how to put it together."""
    if isinstance(value, Tensor):
        outputs.append(trace.value_of(value))
        return "number" if is_number(value) else "tensor", len(outputs) - 1
    value = value.fixed() if type(value) is SymInt else plain(value)
    if isinstance(value, (tuple, list)):
        kind = next((k for k, v in VARIABLE_LENGTH.items() if type(value) is v), type(value))
        return "sequence", (kind, [_form(v, trace, outputs) for v in value])
    if isinstance(value, dict):
        return "dict", {k: _form(v, trace, outputs) for k, v in value.items()}
    if isinstance(value, Sparse):
        return "sparse", (type(value), [_form(v, trace, outputs) for v in value.parts()], value.shape)
    if isinstance(value, (range, KeysView, ValuesView, zip, map, enumerate)):
        return _form(tuple(value), trace, outputs)
    if isinstance(value, (ItemsView, filter)):
        return _form(list(value), trace, outputs)
    if isinstance(value, (types.GeneratorType, types.CoroutineType)):
        raise errors.error(
            errors.CaptureError,
            "jit",
            f"{value.__qualname__} is a generator or coroutine: its code would run after the capture",
            hint="return a list",
        )
    if type(value) is TensorRange:
        value.complain()
    if type(value) is Text:
        str(value)  # says that it is not known
    return "value", value


def _builder(form: tuple[str, Any]) -> Callable[[Sequence[Tensor]], Any]:
    """Builds the structure of `_form` from a run's results."""
    sort, content = form
    if sort == "tensor":
        return lambda results: results[content]
    if sort == "number":
        return lambda results: results[content].item()
    if sort == "sequence":
        kind, parts = content[0], [_builder(part) for part in content[1]]
        if hasattr(kind, "_fields"):
            return lambda results: kind(*(p(results) for p in parts))
        return lambda results: kind([p(results) for p in parts])
    if sort == "sparse":
        kind, parts, shape = content[0], [_builder(part) for part in content[1]], content[2]
        return lambda results: kind(*(p(results) for p in parts), shape)
    if sort == "dict":
        named = {k: _builder(part) for k, part in content.items()}
        return lambda results: {k: p(results) for k, p in named.items()}
    return lambda results: content


def parameters_of(*values: Any) -> dict[int, Parameter]:
    """The Parameters that a function and its arguments lead to, by id: inputs whatever they hold."""
    found: dict[int, Parameter] = {}
    _reachable(values, found, set())
    return found


def _reachable(values: Sequence[Any], found: dict[int, Parameter], seen: set[int]) -> None:
    """Collects the Parameters that arguments, closures and globals of functions lead to."""
    for value in values:
        if id(value) in seen:
            continue
        if isinstance(value, Tensor):
            if value._is_parameter:
                found[id(value)] = value
            continue
        if not isinstance(
            value, (tuple, list, dict, types.FunctionType, types.MethodType, functools.partial)
        ):
            parameters = getattr(value, "get_parameters", None)
            if parameters is not None and not isinstance(value, (type, types.ModuleType)):
                seen.add(id(value))
                found.update((id(p), p) for p in parameters())
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            _reachable(list(value.values()), found, seen)
        elif isinstance(value, types.MethodType):
            _reachable((value.__self__, value.__func__), found, seen)
        elif isinstance(value, functools.partial):
            _reachable((value.func, *value.args, *value.keywords.values()), found, seen)
        elif isinstance(value, types.FunctionType):
            _reachable(_outer_values(value), found, seen)
        else:
            _reachable(value, found, seen)


def _outer_values(function: Any) -> list[Any]:
    """What the variables of the surroundings hold that a function reads."""
    found: list[Any] = []
    if not isinstance(function, types.FunctionType):
        return found
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            continue
    names = function.__code__.co_names
    return found + [function.__globals__[n] for n in names if n in function.__globals__]
