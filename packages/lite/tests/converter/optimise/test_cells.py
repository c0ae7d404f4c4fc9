"""Rules of optimise/cells.py: loops with the body of a cell, and loops that must stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import convert, optimise
from mycelia_lite.converter.rules.customs import custom
from mycelia_lite.format import Table, read

from .small_models import Net, agree, answers, kinds, only, values

FIXTURES = Path(__file__).parents[2] / "fixtures"
T, B, I, H = 5, 2, 3, 4
RULES = ("TfLstmCellFusion", "TfliteLstmCellFusion", "TfBidirectionGruFusion")


@pytest.mark.parametrize(
    ("framework", "path", "fired"),
    [("TF", "tensorflow/cells.pb", (1, 0, 2)), ("TFLITE", "tflite/cells.tflite", (0, 3, 1))],
)
def test_layers_of_keras_are_layers_again(framework, path, fired, tmp_path):
    def converted(name, **options):
        source = str(FIXTURES / path)
        report = convert(mslite.FmkType[framework], source, str(tmp_path / name), **options)
        model = mslite.Model()
        model.build_from_file(report.path)
        model.resize(model.get_inputs(), [[2, 5, 3]])
        x = np.random.default_rng(3).normal(size=(2, 5, 3)).astype(np.float32)
        model.get_inputs()[0].set_data_from_numpy(x)
        file = read(report.path)
        return report, file, model.predict(model.get_inputs())[0].get_data_to_numpy()

    report, layers, found = converted("layers")
    assert tuple(report.fusions[name] for name in RULES) == fired
    assert len(layers.subGraph) == 1 and not {"Call", "PartialFusion"} & set(kinds(layers))
    report, loops, expected = converted("loops", without_fusions=RULES)
    assert not any(report.fusions.get(name) for name in RULES) and len(loops.subGraph) == 1 + 2 * sum(fired)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


# ---- loops by hand


class Part(Net):
    """A subgraph of the model that another net is."""

    def __init__(self, net: Net) -> None:
        super().__init__()
        self.tensors, self.random, self.parameters = net.tensors, net.random, []

    def parameter(self, *shape: int, dtype=np.float32) -> int:
        self.parameters.append(self.input(*shape, dtype=dtype))
        return self.parameters[-1]

    def known(self, *results: int) -> None:
        """Gives what the subgraph computes shapes and dtypes; empty where it computes nothing."""
        if self.nodes:
            self.model(*results)


def looped(
    step, states, collects, *, runs=T, start=0, count=T, framework="TF", write=None, sequence=(T, B, I)
):
    """The model of a loop over rows of x.

    `step(body, x_t, states) -> states`; `collects`: which state is collected; `write(body, t, row, value)`.
    """
    net = Net()
    x = net.input(*sequence)
    given = [net.input(*shape) for shape in states]
    test, body = Part(net), Part(net)
    first = [net.constant(start, np.int32), net.constant(np.zeros((count, B, H))), *given]

    def parameters(part):
        made = [part.parameter(dtype=np.int32), part.parameter(count, B, H)]
        made += [part.parameter(*shape) for shape in states]
        return made, part.parameter(*sequence)

    (t, *_), _ = parameters(test)
    going = test("Less", t, test.constant(runs, np.int32))
    test.known(going)
    (
        body.parameter(dtype=np.int64),
        body.parameter(dtype=np.bool_),
    )  # the number of the run, and whether it goes on
    (t, rows, *before), whole = parameters(body)
    x_t = body("Gather", whole, t, body.constant(0, np.int32))
    after = step(body, x_t, before)
    row = body("ExpandDims", after[collects], body.constant(0, np.int32))
    rows = (write or by_choice)(body, t, row, rows)
    t = body("AddFusion", t, body.constant(1, np.int32))
    body.known(t, rows, *after)
    passed = [t, rows, *after, whole]

    def tested(part, inputs):
        part_ = part("PartialFusion", *inputs, sub_graph_index=1)
        call = part("Call", part_, is_tail_call=False)
        part.tensors[call].dataType = int(mslite.DataType.BOOL)
        return call

    results = [tested(body, passed), *passed[:-1]]
    most = net.constant(np.iinfo(np.int64).max, np.int64)
    inputs = [*first, x]
    made = net("Custom", most, tested(net, inputs), *inputs, results=len(first), **custom_fields(len(first)))
    for out, like in zip(made, first):
        net.tensors[out].dims, net.tensors[out].dataType = net.tensors[like].dims, net.tensors[like].dataType
    model = net._root(list(made[1:]))
    model.fmkType = int(mslite.FmkType[framework])
    for part, outputs in ((test, [going]), (body, results)):
        begin = len(model.nodes)
        model.nodes = [*model.nodes, *part.nodes]
        model.subGraph = [
            *model.subGraph,
            Table(
                "SubGraph",
                inputIndices=part.parameters,
                outputIndices=outputs,
                nodeIndices=list(range(begin, begin + len(part.nodes))),
            ),
        ]
    return model


def custom_fields(carried):
    made = custom("Loop", body=2, carried=carried)
    return {"type": made.type, "attr": made.attr}


def by_choice(body, t, row, rows):
    count = body.tensors[rows].dims[0]
    places = body.constant(np.arange(count).reshape(count, 1, 1), np.int32)
    return body("Where", body("Equal", places, t), row, rows)


def between(body, t, row, rows):
    """As the converter writes what TensorFlow Lite's slices do."""
    after = body("AddFusion", t, body.constant(1, np.int32))
    tail, zeros, ones = body.integers(B, H), body.integers(0, 0, 0), body.integers(1, 1, 1)
    one = body.integers(1)
    end = body("Concat", body("Reshape", t, one), tail)
    begin = body("Concat", body("Reshape", after, one), body.integers(0, 0))
    before = body("StridedSlice", rows, zeros, end, ones)
    behind = body("StridedSlice", rows, begin, body.integers(T, B, H), ones)
    return body("Reshape", body("Concat", before, row, behind), body.integers(T, B, H))


def last_alone(body, t, row, rows):
    return body("Where", body.constant([[[True]]], np.bool_), row, rows)


def split(body, x, parts):
    return body("Split", x, results=parts, axis=1, output_num=parts, size_splits=[H] * parts)


def lstm(body, x, states, inner="TANH", concat=False, read=None):
    h, c = states
    if concat:
        gates = body("MatMulFusion", body("Concat", x, h, axis=1), body.weights(I + H, 4 * H))
    else:
        gates = body(
            "AddFusion",
            body("MatMulFusion", x, body.weights(4 * H, I), body.weights(4 * H), transpose_b=True),
            body("FullConnection", h, body.weights(4 * H, H)),
        )
    gates = body("BiasAdd", gates, body.weights(4 * H))
    i, f, g, o = split(body, gates, 4)
    sigmoid = [body.activation(v, "SIGMOID") for v in (i, f, o)]
    new = body("MulFusion", sigmoid[0], body.activation(g, inner))
    c = body("AddFusion", new, body("MulFusion", sigmoid[1], c))
    return [body("MulFusion", body.activation(c, "TANH"), sigmoid[2]), read(body, c) if read else c]


def gru(body, x, states, reset="behind", swapped=False):
    (h,) = states
    xs = body("MatMulFusion", x, body.weights(3 * H, I), body.weights(3 * H), transpose_b=True)
    xz, xr, xn = split(body, xs, 3)
    if reset == "behind":
        hs = body("MatMulFusion", h, body.weights(3 * H, H), body.weights(3 * H), transpose_b=True)
        hz, hr, hn = split(body, hs, 3)
    else:
        hs = body("MatMulFusion", h, body.weights(2 * H, H), transpose_b=True)
        hz, hr = split(body, hs, 2)
    z = body.activation(body("AddFusion", xz, hz), "SIGMOID")
    r = body.activation(body("AddFusion", xr, hr), "SIGMOID")
    if reset == "behind":
        n = body("AddFusion", xn, body("MulFusion", r, hn))
    else:
        turned = body("MatMulFusion", body("MulFusion", r, h), body.weights(H, H), transpose_b=True)
        n = body("AddFusion", xn, turned)
    n = body.activation(n, "TANH")
    rest = body("SubFusion", body.constant(1.0), z)
    z, rest = (rest, z) if swapped else (z, rest)
    return [body("AddFusion", body("MulFusion", z, h), body("MulFusion", rest, n))]


STATES = [(B, H), (B, H)]


def fuses(model, rule, fires):
    """The model after a rule alone, which fired so often; its answers are the same."""
    arrays = values(model)
    expected = answers(model, *arrays)
    after = model.copy()
    done = optimise.run(after, only(rule))
    assert done.fired[rule] == fires and sum(done.fired.values()) == fires
    agree(expected, answers(after, *arrays), 1e-5)
    everything = model.copy()
    optimise.run(everything)
    agree(expected, answers(everything, *arrays), 1e-5)
    return after


LSTMS = {
    "two products": {},
    "of x and h side by side": {"concat": True},
}


@pytest.mark.parametrize("framework", ["TF", "TFLITE"])
@pytest.mark.parametrize("write", [by_choice, between])
@pytest.mark.parametrize("spelling", LSTMS)
def test_an_lstm(spelling, write, framework):
    def step(body, x, states):
        return lstm(body, x, states, **LSTMS[spelling])

    rule = "TfliteLstmCellFusion" if framework == "TFLITE" else "TfLstmCellFusion"
    model = fuses(looped(step, STATES, 0, write=write, framework=framework), rule, 1)
    assert "LSTM" in kinds(model) and "Call" not in kinds(model) and len(model.subGraph) == 1


def test_the_last_state_alone_may_be_collected():
    model = fuses(looped(lstm, STATES, 0, count=1, write=last_alone), "TfLstmCellFusion", 1)
    assert "LSTM" in kinds(model)


@pytest.mark.parametrize(("reset", "kind"), [("behind", "Custom"), ("in front", "GRU")])
def test_a_gru(reset, kind):
    def step(body, x, states):
        return gru(body, x, states, reset)

    model = fuses(looped(step, STATES[:1], 0), "TfBidirectionGruFusion", 1)
    assert kind in kinds(model) and "Call" not in kinds(model) and len(model.subGraph) == 1


def shifted(body, t, row, rows):
    return by_choice(
        body,
        body("FloorMod", body("AddFusion", t, body.constant(1, np.int32)), body.constant(T, np.int32)),
        row,
        rows,
    )


NO_LAYERS = {
    "another function inside": (dict(step=lambda *a: lstm(*a, inner="RELU")), STATES),
    "fewer runs than rows": (dict(step=lstm, runs=T - 1), STATES),
    "counts from 1": (dict(step=lstm, start=1), STATES),
    "rows are written elsewhere": (dict(step=lstm, write=shifted), STATES),
    "the cell's value is scaled for the next run": (
        dict(step=lambda *a: lstm(*a, read=lambda body, c: body("MulFusion", c, body.constant(0.5)))),
        STATES,
    ),
    "the cell is collected": (dict(step=lstm, collects=1), STATES),
    "the first row is kept": (dict(step=lambda b, x, s: [lstm(b, x, s)[0], s[1]]), STATES),
}


@pytest.mark.parametrize("neighbour", NO_LAYERS)
def test_loops_that_are_no_layer_stay(neighbour):
    given, states = NO_LAYERS[neighbour]
    given = {"collects": 0, **given}
    model = fuses(looped(states=states, **given), "TfLstmCellFusion", 0)
    assert len(model.subGraph) == 3


def test_a_gru_whose_gate_is_the_other_way_round_stays():
    model = looped(lambda *a: gru(*a, swapped=True), STATES[:1], 0)
    assert len(fuses(model, "TfBidirectionGruFusion", 0).subGraph) == 3
