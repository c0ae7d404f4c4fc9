"""Rules of control flow and of sizes: branches and loops become graphs inside of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.engine.base import dtypes
from mycelia.engine.ir import Node, TensorType
from mycelia.engine.ir.graph import group_inputs
from mycelia.engine.ir.sizes import with_symbols
from mycelia.io.compositions import traced
from mycelia.io.onnx.rules.table import find, rule


@rule("call", "subgraph")
def _call(w, node, *inputs):
    return w.inline(node.attrs["graph"], inputs)


@rule("require", "scale_gradient", "stop_gradient", "device_copy", "recomputed", "check_numerics")
def _first(w, node, x, *_):
    return x  # a file carries no assertions and no gradients


def _condition(w: Any, x: Any) -> Any:
    """A condition as bool without axes."""
    x = w.cast(x, dtypes.bool_)
    return x if x.rank == 0 else w.like(w.op("Reshape", x, w.ints(())), ())


def _region_outputs(inner: Any, refs: Sequence[Any], types: Sequence[TensorType]) -> None:
    for ref, type in zip(refs, types, strict=True):
        inner.add_output(ref, tuple(int(n) for n in type.shape))


@rule("cond")
def _cond(w, node, *inputs):
    *values, condition = inputs
    branches = {}
    for name, graph in (("then_branch", node.attrs["then"]), ("else_branch", node.attrs["otherwise"])):
        inner = w.region(name)
        _region_outputs(inner, inner.inline(graph, values), graph.output_types)
        branches[name] = inner.proto
    out = [v.type.dtype for v in node.outputs]
    return w.ops("If", [_condition(w, condition)], out, **branches)


@rule("while_loop", "while_history")
def _while(w, node, *inputs):
    test, body, carried = (node.attrs[n] for n in ("test", "body", "carried"))
    types, rest = body.parameter_types[:carried], inputs[carried:]
    inner = w.region("loop")
    round_, go = w.fresh("round", dtypes.int64, ()), w.fresh("go", dtypes.bool_, ())
    values = [w.fresh("carried", t.dtype, tuple(int(n) for n in t.shape)) for t in types]
    for ref in (round_, go, *values):
        inner.add_input(ref)
    new = [
        inner.like(ref, tuple(int(n) for n in type.shape))
        for ref, type in zip(inner.inline(body, [*values, *rest]), types)
    ]
    again = _condition(inner, inner.inline(test, [*new, *rest])[0])
    inner.add_output(again, ())
    _region_outputs(inner, new, types)
    history = node.op.name == "while_history"
    if history:
        _region_outputs(inner, values, types)
    first = _condition(w, w.inline(test, inputs)[0])
    out = [t.dtype for t in types] * (2 if history else 1)
    return w.ops("Loop", [None, first, *inputs[:carried]], out, body=inner.proto)


@rule("scan")
def _scan(w, node, *inputs):
    body, carried, scanned, backwards = (node.attrs[n] for n in ("body", "carried", "scanned", "reverse"))
    inner = w.region("scan")
    refs = [
        w.fresh("carried" if i < carried else "row", t.dtype, tuple(int(n) for n in t.shape))
        for i, t in enumerate(body.parameter_types[: carried + scanned])
    ]
    for ref in refs:
        inner.add_input(ref)
    found = inner.inline(body, [*refs, *inputs[carried + scanned :]])
    types = [*body.parameter_types[:carried], *body.output_types[carried:]]
    _region_outputs(inner, found, types)
    count = len(found) - carried
    return w.ops(
        "Scan", inputs[: carried + scanned], [v.type.dtype for v in node.outputs], body=inner.proto,
        num_scan_inputs=scanned, scan_input_directions=[int(backwards)] * scanned,
        scan_output_directions=[int(backwards)] * count if count else None,
    )  # fmt: skip


# ---- sizes -----------------------------------------------------------------------------------------


@rule("size_value")
def _size_value(w, node, *inputs):
    with w.sizes_of(inputs, node.attrs["places"]):
        size = w.size(node.attrs["size"])
        return w.cast(w.squeeze(size, [0]), node.outputs[0].type.dtype)


@rule("sized")
def _sized(w, node, *inputs):
    op, attrs, places = (node.attrs[name] for name in ("op", "attrs", "places"))
    count = len(inputs) - len(places)
    inner = Node(op, node.inputs[:count], attrs, [v.type for v in node.outputs], node.location)
    if find(op, w.model.opset) is not None:
        with w.sizes_of(inputs[count:], places):
            return w.applied(inner, inputs[:count])
    if op.definition.decomposition is None:
        return w.composed(inner, inputs[:count])

    def composed(*tensors):
        known = {symbol: x.shape[axis] for x, (symbol, axis) in zip(tensors[count:], places)}
        arguments = group_inputs(op, tensors[:count])
        return op.definition.decomposition(*arguments, **with_symbols(attrs, known))

    return w.inline(traced(op.name, composed, [v and v.type for v in node.inputs]), inputs)
