"""Structured control flow: ops whose regions are Graphs.

`cond` and `while_loop` compute what the captured `if` and `while` compute; `while_history` and `scan` exist
for their gradients (`capture/gradients.py`), which close over these four, so that loops differentiate to any
order. On tensors with data a region is evaluated op by op, so a tape sees the ops inside.
"""

from mycelia.engine import _C
from mycelia.engine.base import errors
from mycelia.engine.ir.graph import Graph
from mycelia.engine.ir.interpret import evaluate
from mycelia.engine.ir.types import UNKNOWN, TensorType, join
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.define import op
from mycelia.engine.ops.late import ops

__all__ = ["stop_gradient"]


def _check_arguments(region: Graph, types, what: str) -> None:
    if len(region.parameters) != len(types):
        raise ValueError(f"{what} takes {len(region.parameters)} tensors, got {len(types)}")
    for index, (value, given) in enumerate(zip(region.parameters, types)):
        if not value.type.accepts(given):
            raise ValueError(f"input {index} of {what} must be {value.type}, got {given}")


def _check_predicate(type_: TensorType, what: str) -> None:
    if type_.size not in (1, UNKNOWN):
        raise ValueError(f"{what} must have one element, got {type_}")


# ---- cond --------------------------------------------------------------------------------------------------


@op(name="cond", outputs=None)
def cond(inputs: "tensors", pred, *, then: "any", otherwise: "any"):
    """``then(*inputs)`` where `pred` is true, else ``otherwise(*inputs)``.

    pred: one element of any dtype.  Both graphs take the same inputs and give results of the same types;
    sizes that differ are unknown in the result.
    """


@cond.infer
def cond(inputs, pred, *, then, otherwise):
    _check_predicate(pred, "pred")
    _check_arguments(then, inputs, "then")
    _check_arguments(otherwise, inputs, "otherwise")
    if len(then.outputs) != len(otherwise.outputs):
        raise ValueError(f"the branches give {len(then.outputs)} and {len(otherwise.outputs)} results")
    joined = []
    for index, (a, b) in enumerate(zip(then.output_types, otherwise.output_types)):
        both = join(a, b)
        if both is None:
            raise ValueError(f"result {index} is {a} in one branch and {b} in the other")
        joined.append(both)
    return tuple(joined)


@cond.on_tensors
def cond(inputs, pred, *, then, otherwise):
    return tuple(evaluate(then if pred else otherwise, inputs))


# ---- while -------------------------------------------------------------------------------------------------


def _infer_while(inputs, test, body, carried):
    _check_arguments(test, inputs, "test")
    _check_arguments(body, inputs, "body")
    if len(test.outputs) != 1:
        raise ValueError(f"test must give one result, got {len(test.outputs)}")
    _check_predicate(test.outputs[0].type, "the result of test")
    if len(body.outputs) != carried:
        raise ValueError(f"body must give the {carried} carried values, got {len(body.outputs)}")
    for index, (before, after) in enumerate(zip(body.parameter_types, body.output_types)):
        if not before.accepts(after):
            raise ValueError(
                f"carried value {index} enters the loop as {before} and leaves its body as {after}"
            )
    return body.parameter_types[:carried]


@op(name="while_loop", outputs=None)
def while_loop(inputs: "tensors", *, test: "any", body: "any", carried: "int"):
    """Runs ``values = body(*values, *rest)`` while ``test(*values, *rest)`` is true; returns the values.

    The first `carried` inputs are the values, the rest stays the same in every round.
    """


@while_loop.infer
def while_loop(inputs, *, test, body, carried):
    return tuple(_infer_while(inputs, test, body, carried))


@while_loop.on_tensors
def while_loop(inputs, *, test, body, carried):
    values, rest = list(inputs[:carried]), list(inputs[carried:])
    while evaluate(test, values + rest)[0]:
        values = evaluate(body, values + rest)
    return tuple(values)


@op(name="while_history", outputs=None)
def while_history(inputs: "tensors", *, test: "any", body: "any", carried: "int"):
    """`while_loop` that also returns what the carried values were at the start of each round.

    Returns: the values after the loop, then their histories [rounds, ...].
    """


@while_history.infer
def while_history(inputs, *, test, body, carried):
    types = _infer_while(inputs, test, body, carried)
    return (*types, *(TensorType(t.dtype, (UNKNOWN, *t.shape)) for t in types))


@while_history.on_tensors
def while_history(inputs, *, test, body, carried):
    return run_while_history(
        inputs, lambda *v: evaluate(test, v), lambda *v: evaluate(body, v), body.parameter_types[:carried]
    )


def run_while_history(inputs, test, body, types):
    """`while_history` of tensors with data, for any way to run the regions; `types` of the carried values."""
    carried = len(types)
    values, rest = list(inputs[:carried]), inputs[carried:]
    rounds = [[] for _ in values]
    while test(*values, *rest)[0]:
        for past, value in zip(rounds, values):
            past.append(value)
        values = body(*values, *rest)
    return (*values, *(_stacked(past, type_) for past, type_ in zip(rounds, types)))


# ---- scan --------------------------------------------------------------------------------------------------


@op(name="scan", outputs=None)
def scan(inputs: "tensors", *, body: "any", carried: "int", scanned: "int", reverse: "bool" = False):
    """``values, row = body(*values, *rows of the scanned inputs, *rest)`` for each row;
    returns values and stacked rows.

    The first `carried` inputs are the values, the next `scanned` are cut along their first dimension,
    which is the number of rounds; the rest stays the same. With `reverse` the last row comes first, and
    results are stacked in the order of the rows all the same.
    """


@scan.infer
def scan(inputs, *, body, carried, scanned, reverse):
    if scanned < 1:
        raise ValueError("at least one input must be scanned: it sets the number of rounds")
    rows = inputs[carried : carried + scanned]
    lengths = {t.shape[0] for t in rows} - {UNKNOWN}
    if len(lengths) > 1:
        raise ValueError(f"scanned inputs differ in their first dimension: {sorted(lengths)}")
    seen = [TensorType(t.dtype, t.shape[1:]) for t in rows]
    _check_arguments(body, (*inputs[:carried], *seen, *inputs[carried + scanned :]), "body")
    length = lengths.pop() if lengths else UNKNOWN
    made = body.output_types[carried:]
    return (*body.parameter_types[:carried], *(TensorType(t.dtype, (length, *t.shape)) for t in made))


@scan.on_tensors
def scan(inputs, *, body, carried, scanned, reverse):
    return run_scan(
        inputs, lambda *v: evaluate(body, v), carried, scanned, reverse, body.output_types[carried:]
    )


def run_scan(inputs, body, carried, scanned, reverse, row_types):
    """`scan` of tensors with data, for any way to run its body; `row_types` of what a round makes."""
    values = inputs[:carried]
    columns = inputs[carried : carried + scanned]
    rest = inputs[carried + scanned :]
    length = columns[0].shape[0]
    if any(c.shape[0] != length for c in columns):
        raise errors.shape_error(
            "scan", f"scanned inputs differ in their first dimension: {[c.shape[0] for c in columns]}"
        )
    made = [[] for _ in row_types]
    for index in range(length - 1, -1, -1) if reverse else range(length):
        results = body(*values, *(c[index] for c in columns), *rest)
        values = results[:carried]
        for rows, row in zip(made, results[carried:]):
            rows.append(row)
    if reverse:
        made = [rows[::-1] for rows in made]
    return (*values, *(_stacked(rows, type_) for rows, type_ in zip(made, row_types)))


def _stacked(rows, type_: TensorType):
    """Rows of one type as a tensor [rows, ...]."""
    if not rows:
        if not type_.is_static:
            raise errors.shape_error("while", f"no round was run, so the sizes of {type_} are not known")
        return _C.empty(type_.dtype, (0, *type_.shape))
    if any(r.shape != rows[0].shape for r in rows):
        raise errors.shape_error(
            "while",
            "the gradient of a loop needs values that keep their shape, got "
            f"{sorted({r.shape for r in rows})}",
        )
    return ops.stack(rows, 0)


# ---- gradients by decree -----------------------------------------------------------------------------------


@op(elementwise="same", view=True, nondiff=True, cost=0)
def stop_gradient(x):
    """`x`; no gradient flows through it.

    Shapes: x [...] -> same.  dtypes: any.
    """
    return x


@stop_gradient.infer
def stop_gradient(x):
    return x


@stop_gradient.samples
def stop_gradient(rand):
    yield rand(2, 3)
    yield rand(0)


_stop_gradient = stop_gradient


def stop_gradient(value):
    """`value`; no gradient flows through it. What is no Tensor is returned as it is."""
    return _stop_gradient(value) if isinstance(value, _C.Tensor) else value


@op(name="recomputed", view=True, nondiff=True, layout=_layout.elementwise)
def _recomputed(x, flowing):
    """`x`, where it is used once more after the cotangent `flowing` has arrived: the compiler takes it for a
    value of its own, so that what depends on it is not what was computed from `x` before.

    Shapes: x [...] -> same, flowing any.  dtypes: any.
    """
    return x


@_recomputed.infer
def _recomputed(x, flowing):
    return x


@_recomputed.samples
def _recomputed(rand):
    yield rand(2, 3), rand(4)


@_recomputed.batch
def _recomputed(call):
    return call.run([call.whole(0), call.operands[1]])


@op(name="custom_call", outputs=None)
def custom_call(inputs: "tensors", *, graph: "any", rule: "any"):
    """The results of `graph`; its gradient is ``rule(inputs, results, cotangents)``: what `bprop` means."""


@custom_call.infer
def custom_call(inputs, *, graph, rule):
    _check_arguments(graph, inputs, f"graph {graph.name}")
    return graph.output_types


@custom_call.on_tensors
def custom_call(inputs, *, graph, rule):
    return tuple(evaluate(graph, inputs))


@custom_call.vjp
def custom_call(cts, outs, inputs, rule):
    return rule(inputs, outs, cts)


# ---- assertions --------------------------------------------------------------------------------------------


@op(name="require", effect=True, nondiff=True)
def require(condition, *, error: "any"):
    """Raises `error` (an exception, or a function that makes one) when the graph runs
    and `condition` is false.

    condition: one element.  Returns it.
    """
    if not condition.reshape(-1)[0]:
        raise error() if not isinstance(error, BaseException) else error
    return condition


@require.infer
def require(condition, *, error):
    _check_predicate(condition, "condition")
    return condition
