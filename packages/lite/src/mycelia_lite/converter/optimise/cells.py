"""Loops whose body is the cell of an LSTM or GRU -> the layer.

The body is read as formulas. Places that a run reads and writes are computed for each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mycelia_lite.converter.optimise.formulas import Apply, Body, Linear, NoCell, Row, State, collected
from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.loops import Loop, read_loop
from mycelia_lite.converter.optimise.registry import node_fusion
from mycelia_lite.converter.rules.customs import custom
from mycelia_lite.enums import FmkType
from mycelia_lite.format import Table

# ---- cells


@dataclass
class Layer:
    """A layer that a loop is: its states by name, matrices [gates, rows, depth] and biases [gates, rows]."""

    kind: str
    sequence: int
    states: dict[str, int]
    input_weights: list[np.ndarray]
    state_weights: list[np.ndarray]
    input_bias: list[np.ndarray]
    state_bias: list[np.ndarray]


def _args(term: object, name: str) -> tuple:
    if not isinstance(term, Apply) or term.name != name:
        raise NoCell
    return term.of


def _either(term: object, name: str, test: Callable[[object], bool]) -> tuple[object, object]:
    """The two operands, the one for which `test` holds first."""
    one, other = _args(term, name)
    if test(one) == test(other):
        raise NoCell
    return (one, other) if test(one) else (other, one)


def _is(name: str) -> Callable[[object], bool]:
    return lambda term: isinstance(term, Apply) and term.name == name


def _gate(term: object, leaves: Sequence[object]) -> list[np.ndarray]:
    """The matrices of the leaves in a sum of products, and its bias."""
    if not isinstance(term, Linear) or set(term.parts) != set(leaves):
        raise NoCell
    return [*(term.parts[leaf] for leaf in leaves), term.bias]


def _lstm(body: Body) -> Layer:
    """h' = o tanh(c'), c' = f c + i tanh(g)"""
    loop = body.loop
    for hidden in loop.states:
        try:
            tanh, out = _either(body.formula(loop.next(hidden)), "mul", _is("tanh"))
        except NoCell:
            continue
        after = _args(tanh, "tanh")[0]
        cells = [s for s in loop.states if body.made.get(loop.next(s)) is after]
        if len(cells) != 1:
            continue
        cell = body.state(cells[0])
        kept, put = _either(after, "add", lambda term, cell=cell: _is("mul")(term) and cell in term.of)
        forget = next(term for term in kept.of if term is not cell)
        new, into = _either(put, "mul", _is("tanh"))
        (row,) = body.rows.values() if len(body.rows) == 1 else [None]
        leaves = (row, body.state(hidden))
        gates = [
            _gate(_args(g, name)[0], leaves)
            for g, name in ((into, "sigmoid"), (out, "sigmoid"), (forget, "sigmoid"), (new, "tanh"))
        ]
        if row is None:
            raise NoCell
        zeros = [np.zeros_like(g[2]) for g in gates]
        matrices = ([g[k] for g in gates] for k in (0, 1, 2))
        return Layer("LSTM", row.sequence, {"h": hidden, "c": cells[0]}, *matrices, zeros)
    raise NoCell


def _gru(body: Body) -> Layer:
    """h' = z h + (1 - z) tanh(n), the reset in front of the product by the state or behind it"""
    loop = body.loop
    for hidden in loop.states:
        h = body.state(hidden)
        try:
            kept, put = _either(
                body.formula(loop.next(hidden)), "add", lambda term, h=h: _is("mul")(term) and h in term.of
            )
        except NoCell:
            continue
        update = next(term for term in kept.of if term is not h)
        new, rest = _either(put, "mul", _is("tanh"))
        if _args(rest, "complement")[0] is not update or len(body.rows) != 1:
            raise NoCell
        (row,) = body.rows.values()
        z = _gate(_args(update, "sigmoid")[0], (row, h))
        inner = _args(new, "tanh")[0]
        if isinstance(inner, Linear):
            return _gru_before(row, h, z, inner)
        product, plain = _either(inner, "add", _is("mul"))
        reset, turned = _either(product, "mul", _is("sigmoid"))
        r = _gate(_args(reset, "sigmoid")[0], (row, h))
        x_part, h_part = _gate(plain, (row,)), _gate(turned, (h,))
        none = np.zeros_like(r[2])
        return Layer(
            "gru_layer", row.sequence, {"h": hidden}, [r[0], z[0], x_part[0]], [r[1], z[1], h_part[0]],
            [r[2], z[2], x_part[1]], [none, none, h_part[1]],
        )  # fmt: skip
    raise NoCell


def _gru_before(row: Row, h: State, z: list[np.ndarray], inner: Linear) -> Layer:
    products = [leaf for leaf in inner.parts if isinstance(leaf, Apply)]
    if len(products) != 1 or set(inner.parts) != {row, products[0]} or h not in _args(products[0], "mul"):
        raise NoCell
    reset = next(term for term in products[0].of if term is not h)
    r = _gate(_args(reset, "sigmoid")[0], (row, h))
    gates = [z, r, [inner.parts[row], inner.parts[products[0]], inner.bias]]
    zeros = [np.zeros_like(g[2]) for g in gates]
    return Layer("GRU", row.sequence, {"h": h.parameter}, *([g[k] for g in gates] for k in (0, 1, 2)), zeros)


# ---- the rules


def _to_layer(read: Callable[[Body], Layer], graph: FileGraph, node: FileNode) -> bool:
    loop = read_loop(graph, node)
    if loop is None:
        return False
    body = Body(loop)
    try:
        layer = read(body)
        lists = _lists(body, layer)
    except NoCell:
        return False
    runs = loop.follow([tensor for tensor, _ in body.claims])
    steps = graph.shape(layer.sequence)[0]
    if not runs or len(runs) != steps or not set(lists.values()) <= {1, steps} or not _fits(loop, layer):
        return False
    for t, values in enumerate(runs):
        if not all(
            np.array_equal(v, np.broadcast_to(np.asarray(claim(t)), v.shape))
            for v, (_, claim) in zip(values, body.claims)
        ):
            return False
    _write(loop, layer, lists)
    return True


def _lists(body: Body, layer: Layer) -> dict[int, int]:
    """What else the loop carries: values that collect the state, with how many rows. Counters are unread."""
    loop = body.loop
    counters, found = set(loop.counters()), {}
    for state in loop.states:
        if state in layer.states.values():
            continue
        if state in counters and not loop.graph.uses(loop.result(state)):
            continue
        found[state] = collected(body, state, loop.next(layer.states["h"]))
    if len(set(found.values())) < len(found):
        raise NoCell
    return found


def _fits(loop: Loop, layer: Layer) -> bool:
    """Whether states and sequence are of one batch, and all weights finite and of one size."""
    graph, hidden = loop.graph, len(layer.input_bias[0])
    batch = graph.shape(layer.sequence)[1]
    arrays = (*layer.input_weights, *layer.state_weights, *layer.input_bias, *layer.state_bias)
    return (
        all(len(a) == hidden and np.isfinite(a).all() for a in arrays)
        and len({a.shape for a in layer.input_weights}) == 1
        and all(a.shape == (hidden, hidden) for a in layer.state_weights)
        and graph.is_float(layer.sequence)
        and all(graph.shape(loop.first(s)) == (batch, hidden) for s in layer.states.values())
    )


def _write(loop: Loop, layer: Layer, lists: dict[int, int]) -> None:
    graph, node = loop.graph, loop.node
    steps, batch = graph.shape(layer.sequence)[:2]
    hidden, plain = len(layer.input_bias[0]), layer.kind == "gru_layer"
    name = node.name

    def constant(parts: Sequence[np.ndarray], suffix: str) -> int:
        joined = np.concatenate(parts).astype(np.float32)
        return graph.add_constant(joined if plain else joined[None], f"{name}/{suffix}")

    w_ih, w_hh = constant(layer.input_weights, "w_ih"), constant(layer.state_weights, "w_hh")
    first = {key: loop.first(s) for key, s in layer.states.items()}
    if plain:
        biases = [constant(layer.input_bias, "b_ih"), constant(layer.state_bias, "b_hh")]
        op, inputs = custom("gru_layer"), [layer.sequence, first["h"], w_ih, w_hh, *biases]
    else:
        bias = constant([*layer.input_bias, *layer.state_bias], "bias")
        axis = graph.add_constant(np.asarray(0, np.int32), f"{name}/axis")
        begins = [
            graph.insert(node, Table("ExpandDims"), [v, axis], (1, batch, hidden)) for v in first.values()
        ]
        op, inputs = Table(layer.kind), [layer.sequence, w_ih, w_hh, bias, *begins]
        if layer.kind == "LSTM":
            op.has_bias, op.num_directions, op.num_layers = True, 1, 1
            op.input_size, op.hidden_size = layer.input_weights[0].shape[1], hidden
    rows = (steps, batch, hidden) if plain else (steps, 1, batch, hidden)
    last = (batch, hidden) if plain else (1, batch, hidden)
    outputs = [graph.add_tensor(f"{name}/rows", layer.sequence, rows)]
    outputs += [graph.add_tensor(f"{name}/{key}", layer.sequence, last) for key in layer.states]
    wanted = []  # (tensor around the loop, result of the layer, what makes the one of the other)
    for state, count in lists.items():
        if count == steps:
            wanted.append((loop.result(state), 0, None if plain else Table("Squeeze", axis=[1])))
        else:
            wanted.append((loop.result(state), 1, Table("Unsqueeze", axis=[0]) if plain else None))
    for k, state in enumerate(layer.states.values()):
        wanted.append((loop.result(state), 1 + k, None if plain else Table("Squeeze", axis=[0])))
    wanted = [w for w in wanted if graph.uses(w[0])]
    for tensor, k, turn in wanted:
        if turn is None:
            outputs[k] = tensor
    graph.rebuild(node, op, inputs, outputs)
    graph.remove(loop.calls[0])
    graph.released |= loop.numbers
    for tensor, k, turn in wanted:
        if turn is not None:
            graph.make(tensor, turn, [outputs[k]], outputs[k])


def _of_framework(wanted: bool, graph: FileGraph, node: FileNode) -> bool:
    return (graph.framework == FmkType.TFLITE) == wanted and _to_layer(_lstm, graph, node)


node_fusion("TfliteLstmCellFusion", "Custom")(partial(_of_framework, True))
node_fusion("TfLstmCellFusion", "Custom")(partial(_of_framework, False))
node_fusion("TfBidirectionGruFusion", "Custom")(partial(_to_layer, _gru))
