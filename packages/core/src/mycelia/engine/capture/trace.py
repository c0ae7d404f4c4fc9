"""Symbolic execution: runs Python code on tensors without data and writes down every op as a node of a graph.

While a Trace is active all op calls of the thread come to it. A Tensor that stands for a graph value
carries that value (`Tensor.traced`). A Parameter is lifted at its first use: the Parameter object itself
stands for a graph input until the capture ends, so that reads, in-place updates and gradient variables
need no special treatment; then it gets its data back, and what the code had assigned to it is an effect
(`capture/effects.py`). Other tensors with data are constants. A region (branch or loop body) is traced by
a Trace with a parent; values of the parent that it uses become explicit inputs of the region.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mycelia.engine import _C, dispatch
from mycelia.engine.base import dtypes, errors
from mycelia.engine.base.origins import Origin, origin
from mycelia.engine.capture.numbers import gives_number, marked
from mycelia.engine.communication import mode
from mycelia.engine.communication.share import GridShare
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ir.interpret import evaluate
from mycelia.engine.ir.sizes import hint_of, is_symbolic
from mycelia.engine.ir.symint import SizeTable, SymInt
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.control_flow import variable
from mycelia.engine.ops.control_flow.sizes import size_value, sized
from mycelia.engine.ops.define import LIST
from mycelia.engine.ops.type_names import type_name
from mycelia.engine.tensors.divided import require_open
from mycelia.engine.tensors.tensor import Tensor

_TRACING = 1  # mode bit of the native core
_LARGE = 1024  # elements; smaller results of ops without inputs are computed at once and become constants


def type_of(tensor: Tensor) -> TensorType:
    return TensorType(tensor.dtype, tensor.shape)


def whole_type(tensor: Tensor) -> TensorType:
    """The type that a graph knows: of a Parameter of which this rank has a part, that of the whole.

    Errors: RuntimeError for such a one where graphs are not divided.
    """
    share = getattr(tensor, "share", None)
    if not isinstance(share, GridShare):
        return type_of(tensor)
    if mode.dividing("jit") == 1:
        raise errors.runtime_error(
            "jit", f"this rank has a part of {getattr(tensor, 'name', 'a Parameter')} only, of the shape "
            f"{list(tensor.shape)} of {list(share.shape)}, and graphs are not divided",
            hint="the settings of semi_auto_parallel must be those under which it was divided",
        )  # fmt: skip
    return TensorType(tensor.dtype, share.shape)


def snapshot(tensor: Tensor) -> Tensor:
    """Another Tensor object with the same memory or graph value, and the same place on the tape."""
    alias = _C.empty(tensor.dtype, ())
    return alias._assign(tensor)


def number_tensor(value: Any, dtype: dtypes.DType) -> Tensor:
    """A Python number as a 0-d tensor, rounded once."""
    if dtype is dtypes.bfloat16:
        return _C.from_array(dtypes.to_bfloat16_bits(np.array(value, np.float32)), dtype, False)
    with np.errstate(all="ignore"):
        return _C.from_array(np.array(value).astype(dtype.np), dtype, False)


class Lifted:
    """A tensor from outside that stands for a graph input during the capture."""

    __slots__ = ("original", "reference", "value")

    def __init__(self, tensor: Tensor, value: Value) -> None:
        self.reference = weakref.ref(tensor)
        self.original = snapshot(tensor)
        self.value = value


class UnknownSize(errors.CaptureError):
    """A size shows only when the program runs, where it has to be known while capturing."""


class UnknownValue(errors.CaptureError):
    """Python code asks for the value of a tensor, which shows only when the program runs."""


class Trace:
    """One graph under construction. `with trace:` makes it receive the thread's op calls."""

    def __init__(
        self,
        name: str,
        parent: Trace | None = None,
        sizes_known: bool = False,
        sizes: SizeTable | None = None,
    ) -> None:
        self.graph = Graph(name)
        self.parent = parent
        # True: raise UnknownSize where a size depends on data. Python code that computes with it, such as a
        # gradient rule, would compute with -1.
        self.sizes_known = sizes_known if parent is None else parent.sizes_known
        self.root: Trace = self if parent is None else parent.root
        self.sizes = sizes if parent is None else parent.sizes  # None: every size is what it is now
        self.owned: set[Value] = set()
        self.captured: dict[
            Value, tuple[Tensor, Value]
        ] = {}  # value of an outer trace -> (its tensor, our parameter)
        self.seen: dict[
            int, tuple[Tensor, Tensor]
        ] = {}  # outer tensor objects used here -> (object, what it was)
        if parent is not None:  # Parameters may be overwritten without being read
            for entry in self.root.lifted.values():
                tensor = entry.reference()
                if tensor is not None:
                    self.seen[id(tensor)] = (tensor, snapshot(tensor))
        self.lifted: dict[int, Lifted] = {}  # root only
        self.constants: dict[int, Lifted] = {}  # root only
        self.numbers: dict[
            tuple[int, Any], tuple[SymInt, Tensor]
        ] = {}  # root only: numbers that follow from sizes
        self.cells: dict[int, Any] = {}  # root only: the Cells whose construct took part
        self.again: Node | None = None  # the node that is evaluated again: its place and types are known
        self.hooked: dict[Value, Any] = {}  # root only: values with a hook on their gradient -> whose code
        self.outside: dict[tuple[int, str], Any] = {}  # root only: what `capture/outside.py` notes
        self.largest: int | None = None  # root only: bytes of a result that is computed at once; None: any
        self.guards: list[Any] = []  # root only: the `try` and `with` statements around the code that runs
        self.is_for_file = False  # root only: what runs the graph may lack ops that only the compiler needs
        self.afterwards: list[Callable[[], None]] = []  # root only: what is due when it is closed
        self.ended = False  # this path surely raises: its results do not count
        self.forward_passes: list[Any] = []  # calls of Cells here that wait for their gradient

    # -- activity

    def __enter__(self) -> Trace:
        self._mode = dispatch.push_interceptor(self.intercept, _TRACING)
        traces.append(self)
        dispatch.custom_rule, dispatch.tensor_hook = self.custom_rule, self.tensor_hook
        dispatch.forward_passes = self.forward_passes
        # A region is one op for the tape of its surroundings; inside, only transforms that start inside
        # record.
        self._tape_level = _C.set_tape_level(0)
        return self

    def __exit__(self, *exc: object) -> None:
        _C.set_tape_level(self._tape_level)
        traces.pop()
        outer = traces[-1] if traces else None
        dispatch.custom_rule = outer and outer.custom_rule
        dispatch.tensor_hook = outer and outer.tensor_hook
        dispatch.forward_passes = [] if outer is None else outer.forward_passes
        if outer is None:
            variable.forget()
        dispatch.pop_interceptor(self._mode)

    # -- values

    def tensor(self, value: Value) -> Tensor:
        """A Tensor that stands for `value`."""
        shape = value.type.shape
        if self.sizes is not None:
            shape = tuple(map(hint_of, shape))
        return _C.make_traced(value, value.type.dtype, shape)

    def number(self, value: Any, dtype: dtypes.DType) -> Tensor:
        """A Python number as a 0-d tensor; one that follows from sizes is a graph input of its own."""
        if type(value) is not SymInt or self.sizes is None:
            return number_tensor(value, dtype)
        if self.sizes.open:
            return _cast(self.sizes.number(value, self), dtype)
        root = self.root
        found = root.numbers.get((value.index, dtype))
        if found is None:
            found = root.numbers[value.index, dtype] = value, root.parameter(TensorType(dtype, ()), "size")
        return found[1]

    def parameter(self, type: TensorType, name: str = "") -> Tensor:
        """A Tensor for a new parameter of the graph."""
        value = self.graph.add_parameter(type, name)
        self.owned.add(value)
        return self.tensor(self.opened(value))

    def opened(self, value: Value) -> Value:
        """`value`; where sizes are left open, each that its type does not tell has a name from now on."""
        return self.sizes.opened(value) if self.sizes is not None and self.sizes.open else value

    def lift(self, tensor: Tensor, name: str = "") -> None:
        """Makes a tensor with data stand for a new graph input (of the outermost trace)."""
        root = self.root
        value = root.graph.add_parameter(whole_type(tensor), name)
        root.owned.add(value)
        root.lifted[id(tensor)] = Lifted(tensor, value)
        standing = root.tensor(value)
        place = tensor._tape_place
        tensor._assign(standing)
        tensor._tape_place = place

    def value_of(self, tensor: Tensor) -> Value:
        """The graph value that `tensor` stands for here."""
        if tensor.traced is None:
            if not tensor._has_value:
                raise errors.error(
                    errors.CaptureError, "jit", "a tensor without data is used: call init_data() on it first"
                )
            if not tensor._is_parameter:
                return self.constant(tensor)
            self.lift(tensor, getattr(tensor, "name", ""))
        value = tensor.traced
        if value in self.owned:
            return value
        if value.is_constant:
            return value
        if not self.can_see(value):
            raise errors.error(
                errors.CaptureError,
                "jit",
                f"a tensor of type {value.type} that belongs to another graph capture is used",
                hint="a tensor made in a compiled function or branch was kept in an outer object: return it",
            )
        self.see(tensor)
        found = self.captured.get(value)
        if found is None:
            inner = self.graph.add_parameter(value.type, value.name)
            self.owned.add(inner)
            found = self.captured[value] = (snapshot(tensor), inner)
        return found[1]

    def see(self, tensor: Tensor) -> None:
        """Remembers what an outer tensor object is before this trace may change it."""
        if tensor.traced is not None and tensor.traced not in self.owned:
            self.seen.setdefault(id(tensor), (tensor, snapshot(tensor)))

    def is_outside(self, tensor: Tensor) -> bool:
        """Whether the object is older than the capture."""
        root = self.root
        known = root.lifted.get(id(tensor)) or root.constants.get(id(tensor))
        return tensor.traced is None or (known is not None and known.reference() is tensor)

    def can_see(self, value: Value) -> bool:
        trace = self.parent
        while trace is not None:
            if value in trace.owned:
                return True
            trace = trace.parent
        return False

    def constant(self, tensor: Tensor) -> Value:
        """`tensor`'s present value as a constant. Only a weak reference to the object is kept: if it turns
        out to have been changed in place and to live on, it is an input and an effect instead."""
        known = self.root.constants.get(id(tensor))
        if known is not None and known.reference() is tensor:
            return known.value
        value = Value(type_of(tensor))
        known = Lifted(tensor, value)
        known.original._node = None
        value.constant = known.original
        self.root.constants[id(tensor)] = known
        return value

    # -- ops

    def intercept(self, op: Any, inputs: tuple, attrs: tuple) -> Any:
        """One op call while this trace is active."""
        definition = op.definition
        flat, counts = flatten_inputs(op, inputs)
        symbolic = definition.effect or any(
            isinstance(t, Tensor) and (t.traced is not None or t._is_parameter) for t in flat
        )
        try:
            if symbolic:
                return self.bind(op, flat, counts, definition.canonical_attrs(attrs))
            if self.sizes is not None and (is_symbolic(attrs) or is_symbolic(flat)):
                return self.bind(op, flat, counts, definition.canonical_attrs(attrs))
            if not definition.params:  # zeros, ones: a large constant would fill memory
                canonical = definition.canonical_attrs(attrs)
                if sum(t.size for t in definition.infer_types((), canonical)) > _LARGE:
                    return self.bind(op, flat, counts, canonical)
            if self.root.largest is not None:
                self._require_room(definition, flat, counts, attrs, self.root.largest)
            return op._execute(inputs, attrs)
        except errors.MyceliaError as error:
            raise errors.about(op.name, error) from None
        except Exception as error:
            raise errors.about(op.name, error) from error.__cause__

    @staticmethod
    def _require_room(definition: Any, flat: list, counts: tuple, attrs: tuple, largest: int) -> None:
        """Errors: MemoryError, before the op runs, if one of its results has more bytes than `largest`."""
        types = tuple(t if t is None else type_of(t) if isinstance(t, Tensor) else type(t) for t in flat)
        made = dispatch.Typing(definition, types, counts, definition.canonical_attrs(attrs)).out_types
        for type_ in made:
            if type_.nbytes > largest:
                raise MemoryError(
                    f"its result of type {type_} has {type_.nbytes} bytes, constants may have {largest} here"
                )

    def bind(self, op: Any, flat: list, counts: tuple[int, ...], attrs: dict[str, Any]) -> Any:
        """Appends a node and returns tensors for its outputs."""
        definition = op.definition
        for t in flat:
            if isinstance(t, Tensor):
                require_open(t)
        if definition.dynamic and self.sizes_known:
            raise errors.error(UnknownSize, op.name, "the size of the result depends on the data")
        recording = _C.tape_level() > 0 and not definition.nondiff
        number = gives_number(op, flat)
        if recording and definition.vjp_function is None and definition.decomposition is not None:
            return definition.decomposition(*definition.group(tuple(flat), counts), **attrs)
        types = tuple(
            None if t is None else type_of(t) if isinstance(t, Tensor) else type(hint_of(t)) for t in flat
        )
        sizes_open = self.sizes is not None and self.sizes.open
        if sizes_open and definition is sized.definition:  # a region that is captured anew
            return definition.decomposition(*definition.group(tuple(flat), counts), **attrs)
        if sizes_open:
            typing = self.sizes.typing(definition, types, counts, attrs)
        else:
            typing = dispatch.Typing(definition, types, counts, attrs, self.known_types(op, types, attrs))
        for index, dtype in typing.casts.items():
            flat[index] = _cast(flat[index], dtype)
        for index, value in enumerate(flat):
            if value is not None and not isinstance(value, Tensor):
                # A cast rounds the number once: to float64 it does not go through float32.
                kept = attrs["dtype"] if definition.name == "cast" else typing.in_types[index].dtype
                flat[index] = self.number(value, kept)
        values = [None if t is None else self.value_of(t) for t in flat]
        place = (self.again and self.again.location) or _C.gradient_origin() or origin(2)
        if sizes_open and op is not size_value and is_symbolic(attrs):
            node = self._sized(op, values, attrs, typing.out_types, place)
        else:
            node = self.graph.append(op, values, attrs, typing.out_types, place)
        self.owned.update(node.outputs)
        outputs = [self.tensor(self.opened(v)) for v in node.outputs]
        if number:
            marked(outputs[0])
        if recording and any(t is not None and t._node is not None for t in flat):
            _C.record(op, attrs, typing.in_types, counts, tuple(flat), tuple(outputs))
            taped = next((t._node for t in outputs if t._node is not None), None)
            if taped is not None and isinstance(place, Origin):
                rank = flat[0].ndim if isinstance(flat[0], Tensor) else 0
                taped.origin = place.of_gradient(type_name(op, rank))
        targets = [flat[definition.param_names.index(name)] for name in definition.updates]
        for target, output in zip(targets, outputs):
            if target is not None:
                # What an assignment overwrites keeps its gradient.
                place = (target if definition.nondiff else output)._tape_place
                target._assign(output)
                target._tape_place = place
        rest = outputs[len(targets) :]
        if targets and not rest:
            return targets[0]
        if len(rest) == 1 and definition.outputs is not None:
            return rest[0]
        return tuple(rest)

    def known_types(self, op: Any, types: tuple, attrs: dict[str, Any]) -> tuple | None:
        """The types of the results, if this is the node that is evaluated again."""
        node = self.again
        if node is None or node.op is not op or self.sizes is not None or op.definition.any_attrs:
            return None
        same = types == tuple(v and v.type for v in node.inputs) and attrs == node.attrs
        return tuple(v.type for v in node.outputs) if same else None

    def _sized(self, op: Any, values: list, attrs: dict[str, Any], types: tuple, place: Any) -> Any:
        """A node whose attributes are made from open sizes: the tensors that have them are inputs too."""
        tensors, places = self.sizes.sources_of(attrs, self)
        inputs = values + [self.value_of(t) for t in tensors]
        return self.graph.append(sized, inputs, {"op": op, "attrs": attrs, "places": places}, types, place)

    def evaluate(self, graph: Graph, arguments: Iterable[Tensor]) -> list[Tensor]:
        """The outputs of `graph`, its nodes written into this trace with the places they had."""

        def keep(node: Node) -> None:
            self.again = node

        try:
            return evaluate(graph, list(arguments), keep)
        finally:
            self.again = None

    # What stands on traces: a function with its own gradient as one node, given by `gradients`, and a hook on
    # the gradient of a tensor as a part of the graph, given by `hooks`.
    custom_rule: Callable[[Trace, Any, Any, tuple, dict], Any]
    tensor_hook: Callable[[Trace, Tensor, dict], None]

    # -- ends of a capture

    def changed(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Tensors of the surroundings that were changed in place here: (object, before,
        after); all are set back.
        """
        found = []
        for tensor, before in list(self.seen.values()):
            if tensor.traced is not before.traced:
                after = snapshot(tensor)
                tensor._assign(before)
                found.append((tensor, before, after))
        return found

    def close(self) -> None:
        """Gives every lifted tensor its data back, also after an error, and keeps none of it: a Parameter
        whose memory another Tensor shows cannot be updated in place.
        """
        for entry in (*self.lifted.values(), *self.constants.values()):
            tensor = entry.reference()
            if tensor is not None and tensor.traced is not None:
                tensor._assign(entry.original)
                if not tensor._is_parameter:
                    tensor._node = None
        self.lifted.clear()
        self.constants.clear()
        due, self.afterwards = self.afterwards, []
        for action in due:
            action()


# Held during a capture, which lends Parameters to the graph: one at a time.
capture_lock = threading.RLock()

# The traces in progress, innermost last; read by every call of a Cell. A capture runs on one thread
# (`compile.jit`).
traces: list[Trace] = []


def active() -> Trace | None:
    """The innermost trace, or None outside of a capture."""
    return traces[-1] if traces else None


def of_this_thread() -> Trace | None:
    """The innermost trace, if it is this thread that captures."""
    return active() if _C.mode() & _TRACING else None


def is_traced(value: Any) -> bool:
    """True for a Tensor whose value is known only when the graph runs; a Parameter is one as soon as a
    graph is captured."""
    if not isinstance(value, Tensor):
        return False
    traced = value.traced
    return isinstance(traced, Value) if traced is not None else bool(traces) and value._is_parameter


def flatten_inputs(op: Any, inputs: Iterable[Any]) -> tuple[list, tuple[int, ...]]:
    """Flat inputs and the number of members of each parameter, as `definition.group` takes them back."""
    params = op.definition.params
    flat: list = []
    counts = []
    for (name, kind), value in zip(params, inputs):
        if kind == LIST:
            if not isinstance(value, (tuple, list)):
                raise errors.type_error(
                    op.name,
                    f"argument '{name}' must be a list or tuple of Tensors, got {type(value).__name__}",
                )
            flat += value
            counts.append(len(value))
        else:
            flat.append(value)
            counts.append(1)
    for index, value in enumerate(flat):
        if value is None or isinstance(value, Tensor):
            continue
        if type(value) not in (bool, int, float, complex, SymInt):
            if not hasattr(value, "__array__"):
                raise errors.type_error(
                    op.name, f"a tensor argument must be a Tensor or a number, got {type(value).__name__}"
                )
            flat[index] = Tensor(value)
    return flat, tuple(counts)


def _cast(value: Any, dtype: Any) -> Tensor:
    from mycelia.engine.ops.elementwise.cast import cast

    return cast(value, dtype=dtype)
