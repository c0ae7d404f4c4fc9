"""Gradients of graphs and of control flow: trace the reverse driver over the evaluation of a graph.

A branch's gradient is a branch over the gradients of its sides. A loop is run once more, keeping what its
values were in each round (`while_history`), then scanned backwards. The gradients of `while_history` and
`scan` are scans again, over the kept histories, so no order of differentiation needs anything new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.engine.autodiff.reverse import Recording, transpose, zeros_of
from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import DType
from mycelia.engine.capture.calls import callee
from mycelia.engine.capture.trace import Trace, active, traces
from mycelia.engine.capture.values import close_over, flatten
from mycelia.engine.ir.graph import Graph
from mycelia.engine.ir.symint import SizeTable, SymInt
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ir.walk import without_effects
from mycelia.engine.ops.control_flow import control as ops
from mycelia.engine.tensors.tensor import Tensor


def is_differentiable(type_: TensorType) -> bool:
    return type_.dtype.is_floating or type_.dtype.is_complex


def carries_gradient(graph: Graph, wanted: Sequence[bool]) -> list[bool]:
    """For each output of `graph` whether a gradient may flow from it to the wanted parameters.

    Integers and bools carry one, rounded to their type, from casts of what they are made of.
    """
    reached = {value for value, want in zip(graph.parameters, wanted, strict=True) if want}
    for node in graph.nodes:
        if not node.op.definition.nondiff and any(v in reached for v in node.inputs):
            reached.update(node.outputs)
    return [v in reached for v in graph.outputs]


def _outputs_and_gradients(
    trace: Trace,
    graph: Graph,
    arguments: Sequence[Tensor],
    wanted: Sequence[bool],
    cotangents: Sequence[Tensor | None],
) -> tuple[list[Tensor], list[Tensor | None]]:
    """Inside `trace`: the outputs of `graph`, and the gradients of its wanted arguments."""
    with Recording() as tape:
        inputs = list(arguments)
        variables = []
        for index, want in enumerate(wanted):
            if want:
                inputs[index], node = tape.watch(inputs[index])
                variables.append(node)
        outputs = trace.evaluate(graph, inputs)
        pairs = [
            (out, ct)
            for out, ct in zip(outputs, cotangents, strict=True)
            if ct is not None and out._node is not None
        ]
    found = iter(transpose([o for o, _ in pairs], [ct for _, ct in pairs], variables, release=True))
    return [o._detach() for o in outputs], [next(found) if want else None for want in wanted]


class Pull:
    """The gradient of a graph as a graph: parameters are the graph's own,
    then one cotangent per given output.
    """

    def __init__(self, graph: Graph, wanted: Sequence[bool], given: Sequence[bool]) -> None:
        self.graph = graph
        self.trace = Trace(f"{graph.name}.gradient")
        with self.trace as trace:
            arguments = [trace.parameter(v.type, v.name) for v in graph.parameters]
            cts = [
                trace.parameter(v.type, "ct") if g else None
                for v, g in zip(graph.outputs, given, strict=True)
            ]
            _, self.gradients = _outputs_and_gradients(trace, without_effects(graph), arguments, wanted, cts)

    def finish(self, positions: Sequence[int]) -> Graph:
        """The graph that gives the gradients of these arguments; zeros where nothing flows."""
        trace = self.trace
        with trace:
            found = [self.gradients[i] for i in positions]
            types = [self.graph.parameters[i].type for i in positions]
            trace.graph.outputs = [
                trace.value_of(zeros_of(t) if g is None else g) for g, t in zip(found, types)
            ]
        return trace.graph


def gradient_graph(graph: Graph, wanted: tuple[bool, ...], given: tuple[bool, ...]) -> Graph:
    """`Pull` with a gradient for every wanted argument, kept with the graph."""
    key = ("gradient", wanted, given)
    found = graph.cache.get(key)
    if found is None:
        pull = Pull(graph, wanted, given)
        found = graph.cache[key] = pull.finish([i for i, want in enumerate(wanted) if want])
    return found


def _typed(tensor: Tensor) -> TensorType:
    return TensorType(tensor.dtype, tensor.shape)


# ---- cond --------------------------------------------------------------------------------------------------


@ops.cond.vjp
def cond(cts, inputs, pred, needs, then, otherwise):
    wanted = tuple(map(bool, needs[: len(inputs)]))
    given = tuple(ct is not None for ct in cts)
    key = ("cond gradient", otherwise, wanted, given)
    found = then.cache.get(key)
    if found is None:
        sides = [Pull(graph, wanted, given) for graph in (then, otherwise)]
        flowing = [i for i in range(len(inputs)) if any(side.gradients[i] is not None for side in sides)]
        found = then.cache[key] = (flowing, *(side.finish(flowing) for side in sides))
    flowing, first, second = found
    gradients: list[Any] = [None] * (len(inputs) + 1)
    if flowing:
        arguments = (*inputs, *(ct for ct in cts if ct is not None))
        for index, gradient in zip(flowing, ops.cond(arguments, pred, then=first, otherwise=second)):
            gradients[index] = gradient
    return gradients


# ---- loops -------------------------------------------------------------------------------------------------


@ops.while_loop.vjp
def while_loop(cts, inputs, needs, test, body, carried):
    test, body = without_effects(test), without_effects(body)  # the loop has run, this is its repetition
    outs = ops.while_history(inputs, test=test, body=body, carried=carried)
    return _loop_gradient(cts, [None] * carried, inputs, needs, outs[carried:], body, carried)


@ops.while_history.vjp
def while_history(cts, outs, inputs, needs, body, carried):
    return _loop_gradient(cts[:carried], cts[carried:], inputs, needs, outs[carried:], body, carried)


def _loop_gradient(cts, history_cts, inputs, needs, histories, body, carried):
    return _backward_scan(
        body, carried, 0, True, histories, (), inputs[carried:], cts, (), history_cts, inputs, needs
    )


@ops.scan.vjp
def scan(cts, inputs, needs, body, carried, scanned, reverse):
    columns = inputs[carried : carried + scanned]
    rest = inputs[carried + scanned :]
    histories: tuple = ()
    body = without_effects(body)
    if carried:
        keeping = body.cache.get("keeping")
        if keeping is None:
            keeping = Graph(body.name + ".keeping")
            keeping.parameters, keeping.nodes = body.parameters, body.nodes
            keeping.outputs = [*body.outputs, *body.parameters[:carried]]
            body.cache["keeping"] = keeping
        again = ops.scan(inputs, body=keeping, carried=carried, scanned=scanned, reverse=reverse)
        histories = again[len(body.outputs) :]
    return _backward_scan(
        body,
        carried,
        scanned,
        not reverse,
        histories,
        columns,
        rest,
        cts[:carried],
        cts[carried:],
        [None] * carried,
        inputs,
        needs,
    )


def _backward_scan(
    body: Graph,
    carried: int,
    scanned: int,
    reverse: bool,
    histories: Sequence[Tensor],
    columns: Sequence[Tensor],
    rest: Sequence[Tensor],
    cts: Sequence[Tensor | None],
    row_cts: Sequence[Tensor | None],
    history_cts: Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    needs: Sequence[bool],
) -> list[Tensor | None]:
    """Gradients of a loop's inputs (carried, scanned, rest):
    a scan over its rounds from the last to the first.

    `histories`: what the carried values were at the start of each round; `cts`, `row_cts`, `history_cts`:
    cotangents of the final values, of the rows the rounds made, and of the histories.
    """
    first_rest = carried + scanned
    column_wanted = [i for i in range(scanned) if needs[carried + i]]
    rest_wanted = [i for i in range(len(rest)) if needs[first_rest + i]]
    flows = _carried_gradients(body, carried, needs)
    rows_given = tuple(i for i, ct in enumerate(row_cts) if ct is not None)
    histories_given = tuple(i for i, ct in enumerate(history_cts) if ct is not None)
    key = (
        "backward",
        carried,
        scanned,
        tuple(flows),
        tuple(column_wanted),
        tuple(rest_wanted),
        rows_given,
        histories_given,
    )
    found = body.cache.get(key)
    if found is None:
        found = body.cache[key] = _backward_step(
            body, carried, scanned, flows, column_wanted, rest_wanted, rows_given, histories_given
        )
    step, numbers = found
    sizes = [traces[-1].number(value, dtype) for value, dtype in numbers]
    start = [zeros_of(inputs[i]) if cts[i] is None else cts[i] for i in flows] + [
        zeros_of(rest[i]) for i in rest_wanted
    ]
    cut = [
        *histories,
        *columns,
        *(row_cts[i] for i in rows_given),
        *(history_cts[i] for i in histories_given),
    ]
    results = ops.scan(
        (*start, *cut, *rest, *sizes), body=step, carried=len(start), scanned=len(cut), reverse=reverse
    )
    gradients: list[Tensor | None] = [None] * len(inputs)
    positions = flows + [first_rest + i for i in rest_wanted] + [carried + i for i in column_wanted]
    for position, gradient in zip(positions, results, strict=True):
        gradients[position] = gradient
    return gradients


def _carried_gradients(body: Graph, carried: int, needs: Sequence[bool]) -> list[int]:
    """The carried values of a loop that have cotangents: floating ones, and those that a gradient reaches in
    some round.
    """
    wanted = [bool(need) for need in needs]
    for i in range(carried):
        wanted[i] = wanted[i] or is_differentiable(body.parameters[i].type)
    while True:
        found = carries_gradient(body, wanted)[:carried]
        more = [i for i in range(carried) if found[i] and not wanted[i]]
        if not more:
            return [i for i in range(carried) if wanted[i]]
        for i in more:
            wanted[i] = True


def _backward_step(
    body: Graph,
    carried: int,
    scanned: int,
    flows: Sequence[int],
    column_wanted: Sequence[int],
    rest_wanted: Sequence[int],
    rows_given: Sequence[int],
    histories_given: Sequence[int],
) -> tuple[Graph, list[tuple[SymInt, DType]]]:
    """One round backwards: (cotangents, sums for the rest | values, rows, row cotangents, history
    cotangents | rest, numbers that follow from sizes), and those numbers with their dtypes."""
    first_rest = carried + scanned
    trace = Trace(f"{body.name}.backward", sizes=traces[-1].sizes if traces else None)
    with trace:
        types = [v.type for v in body.parameters]
        cts = {i: trace.parameter(types[i], "ct") for i in flows}
        sums = {i: trace.parameter(types[first_rest + i], "sum") for i in rest_wanted}
        values = [trace.parameter(t) for t in types[:first_rest]]
        row_cts = {i: trace.parameter(body.outputs[carried + i].type, "ct") for i in rows_given}
        history_cts = {i: trace.parameter(types[i], "ct") for i in histories_given}
        rest = [trace.parameter(t) for t in types[first_rest:]]
        wanted = [False] * len(types)
        for i in (*flows, *(carried + i for i in column_wanted), *(first_rest + i for i in rest_wanted)):
            wanted[i] = True
        given = [cts.get(i) for i in range(carried)] + [
            row_cts.get(i) for i in range(len(body.outputs) - carried)
        ]
        _, gradients = _outputs_and_gradients(trace, without_effects(body), values + rest, wanted, given)

        def gradient(position: int) -> Tensor:
            found = gradients[position]
            return zeros_of(types[position]) if found is None else found

        before = [gradient(i) + history_cts[i] if i in history_cts else gradient(i) for i in flows]
        totals = [
            sums[i] if gradients[first_rest + i] is None else sums[i] + gradients[first_rest + i]
            for i in rest_wanted
        ]
        rows = [gradient(carried + i) for i in column_wanted]
        trace.graph.outputs = [trace.value_of(t) for t in (*before, *totals, *rows)]
    return trace.graph, [(value, dtype) for (_, dtype), (value, _) in trace.numbers.items()]


# ---- whole graphs ------------------------------------------------------------------------------------------


def joint_graph(
    graph: Graph, wanted: Sequence[bool], given: Sequence[bool], sizes: SizeTable | None = None
) -> Graph:
    """One graph for outputs and gradients: (inputs, a cotangent per given output) -> (outputs,
    gradients of the wanted). `sizes`: of those in `graph` that stay open; numbers that follow from them are
    the last parameters, named by their formulas in `open_numbers`.
    """
    trace = Trace(f"{graph.name}.joint", sizes=sizes)
    with trace:
        arguments = [trace.parameter(v.type, v.name) for v in graph.parameters]
        cts = [
            trace.parameter(v.type, "ct") if g else None for v, g in zip(graph.outputs, given, strict=True)
        ]
        outputs, gradients = _outputs_and_gradients(trace, graph, arguments, wanted, cts)
        found = [
            zeros_of(v.type) if gradient is None else gradient
            for v, want, gradient in zip(graph.parameters, wanted, gradients)
            if want
        ]
        trace.graph.outputs = [trace.value_of(t) for t in (*outputs, *found)]
    if sizes is not None:
        trace.graph.cache["open_numbers"] = [
            (size, tensor.traced.type.dtype) for size, tensor in trace.numbers.values()
        ]
    return trace.graph


# ---- functions with their own gradient ---------------------------------------------------------------------


def custom_call(fn: Any, rule: Any, args: tuple, kwargs: dict) -> Any:
    """`fn(*args)` in the graph being captured; `rule(*args, result, cotangents)` gives the gradients of args.

    Tensors that `fn` reads besides its arguments get no gradient.
    """
    outer = active()
    leaves: list[Any] = []
    build_args = flatten(args, leaves)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    inputs = [leaves[i] for i in places]
    region = Trace(getattr(fn, "__qualname__", "custom"), outer)

    def with_tensors(tensors: Sequence[Any]) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors):
            filled[place] = tensor
        return build_args(filled)

    with region:
        standing = [region.parameter(_typed(t)) for t in inputs]
        results: list[Any] = []
        build_result = flatten(callee(fn)(*with_tensors(standing), **kwargs), results)
        made = [i for i, r in enumerate(results) if isinstance(r, Tensor)]
        changed = region.changed()
        values = [*(results[i] for i in made), *(after for _, _, after in changed)]
        region.graph.outputs = [region.value_of(t) for t in values]
    captured = close_over((region,), len(inputs))

    def results_with(tensors: Sequence[Any]) -> Any:
        filled = list(results)
        for place, tensor in zip(made, tensors):
            filled[place] = tensor
        return build_result(filled)

    def gradients(given: tuple, outs: tuple, cts: tuple) -> list[Tensor | None]:
        full = [zeros_of(out) if ct is None else ct for out, ct in zip(outs, cts)]
        arguments = with_tensors(given[: len(inputs)])
        found = callee(rule)(*arguments, results_with(outs), results_with(full))
        found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        if len(found) != len(args):
            raise errors.error(
                errors.MyceliaRuntimeError,
                "bprop",
                f"{len(args)} gradients are needed, one per input, got {len(found)}",
            )
        flat: list[Tensor | None] = []
        for argument, gradient in zip(args, found):
            members: list[Any] = []
            flatten(argument, members)
            parts: list[Any] = []
            flatten(gradient, parts)
            if len(parts) != len(members):
                parts = [None] * len(members)
            flat += [p for m, p in zip(members, parts) if isinstance(m, Tensor)]
        return [g if isinstance(g, Tensor) else None for g in flat] + [None] * len(captured)

    outputs = ops.custom_call((*inputs, *captured), graph=region.graph, rule=gradients)
    for (tensor, _, _), value in zip(changed, outputs[len(made) :]):
        outer.see(tensor)
        tensor._assign(value)
    return results_with(outputs)


def _custom_rule(trace: Trace, fn: Any, rule: Any, args: tuple, kwargs: dict) -> Any:
    return custom_call(fn, rule, args, kwargs)


Trace.custom_rule = _custom_rule
