"""Recurrent cells of TFLITE files against LiteRT, in three runs of which each goes on with the states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError, convert
from mycelia_lite.converter.importers.tflite import graphs

from .tflite_models import Builder, scaled, table

# Per case and run: the input and what LiteRT (ai-edge-litert 2) answers for the models that `case` builds.
ANSWERS = np.load(Path(__file__).parents[1] / "fixtures" / "tflite_cells.npz")
STEPS, BATCH, INPUTS, HIDDEN, PROJECTED = 5, 2, 3, 4, 6


def case(kind, shape, parts, outputs, options):
    """A model of one cell. `parts`: constants, None for what is left out, shapes of states."""
    made = Builder()
    names = [made.tensor("x", shape=shape)]
    for i, part in enumerate(parts):
        if part is None:
            names.append(None)
        elif isinstance(part, tuple):
            names.append(made.tensor(f"s{i}", shape=part, is_variable=True))
        else:
            names.append(made.constant(f"p{i}", part))
    results = [made.tensor(f"y{i}", shape=s) for i, s in enumerate(outputs)]
    made.add(kind, names, results, options)
    made.borders(["x"], results)
    return made


def cases():
    rng = np.random.default_rng(3)

    def draw(*shape):
        return (rng.normal(size=shape) * 0.5).astype(np.float32)

    def lstm(output=HIDDEN, peepholes=(None,) * 3, projection=(None,) * 2, coupled=False):
        w = [draw(HIDDEN, INPUTS) for _ in range(4)]
        r = [draw(HIDDEN, output) for _ in range(4)]
        b = [draw(HIDDEN) for _ in range(4)]
        if coupled:
            w[0] = r[0] = b[0] = None
        return [*w, *r, *peepholes, *b, *projection]

    def rnn():
        return [draw(HIDDEN, INPUTS), draw(HIDDEN, HIDDEN), draw(HIDDEN), (BATCH, HIDDEN)]

    def options(kind, **more):
        return table(kind, **{"fused_activation_function": "TANH", **more})

    one, states = "UnidirectionalSequenceLSTMOptions", [(BATCH, HIDDEN), (BATCH, HIDDEN)]
    two = "BidirectionalSequenceLSTMOptions"
    rows, steps = (BATCH, STEPS, INPUTS), (STEPS, BATCH, INPUTS)
    kind, both = "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM"
    y, y_steps, y_wide = (BATCH, STEPS, HIDDEN), (STEPS, BATCH, HIDDEN), (BATCH, STEPS, 2 * HIDDEN)
    yield "lstm", case(kind, rows, lstm() + states, [y], options(one))
    yield (
        "lstm_clipped",
        case(kind, steps, lstm() + states, [y_steps], options(one, time_major=True, cell_clip=0.4)),
    )
    peepholes = [None, draw(HIDDEN), draw(HIDDEN)]
    yield (
        "lstm_coupled",
        case(kind, rows, lstm(coupled=True, peepholes=peepholes) + states, [y], options(one)),
    )
    parts = lstm(PROJECTED, [draw(HIDDEN) for _ in range(3)], [draw(PROJECTED, HIDDEN), draw(PROJECTED)])
    parts += [(BATCH, PROJECTED), (BATCH, HIDDEN)]
    yield "lstm_projected", case(kind, rows, parts, [(BATCH, STEPS, PROJECTED)], options(one, proj_clip=0.3))
    parts = lstm() + states + [draw(HIDDEN) for _ in range(4)]
    yield "lstm_normalized", case(kind, rows, parts, [y], options(one))
    yield "lstm_of_one", case("LSTM", rows[::2], lstm() + states, [(BATCH, HIDDEN)], options("LSTMOptions"))
    parts = lstm() + lstm() + 2 * states + [None] * 9
    yield "lstm_both", case(both, rows, parts, [y_wide], options(two, merge_outputs=True, time_major=False))
    parts = lstm() + lstm() + 2 * states + [None] * 9
    yield "lstm_both_apart", case(both, steps, parts, [y_steps] * 2, options(two, time_major=True))
    relu = options("RNNOptions", fused_activation_function="RELU")
    yield "rnn_of_one", case("RNN", rows[::2], rnn(), [(BATCH, HIDDEN)], relu)
    relu6 = options("SequenceRNNOptions", fused_activation_function="RELU6")
    yield "rnn_relu6", case("UNIDIRECTIONAL_SEQUENCE_RNN", rows, rnn(), [y], relu6)
    first = options("SequenceRNNOptions", time_major=True)
    yield "rnn", case("UNIDIRECTIONAL_SEQUENCE_RNN", steps, rnn(), [y_steps], first)
    merged = options("BidirectionalSequenceRNNOptions", merge_outputs=True)
    yield "rnn_both", case("BIDIRECTIONAL_SEQUENCE_RNN", rows, rnn() + rnn() + [None] * 3, [y_wide], merged)
    parts = [draw(2 * HIDDEN, INPUTS), draw(2 * HIDDEN, 6), draw(HIDDEN), (BATCH, 2 * HIDDEN * 6)]
    ranked = options("SVDFOptions", rank=2, fused_activation_function="RELU")
    yield "svdf", case("SVDF", rows[::2], parts, [(BATCH, HIDDEN)], ranked)
    parts = [draw(HIDDEN, INPUTS), draw(HIDDEN, 6), None, (BATCH, HIDDEN * 6)]
    plain = options("SVDFOptions", rank=1, fused_activation_function="NONE")
    yield "svdf_plain", case("SVDF", rows[::2], parts, [(BATCH, HIDDEN)], plain)


CASES = dict(cases())


@pytest.mark.parametrize("name", CASES)
def test_a_cell_answers_as_litert_and_keeps_its_states(name, tmp_path):
    path = CASES[name].write(tmp_path / "m.tflite")
    model = mslite.Model()
    model.build_from_file(convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m")).path)
    (x,) = model.get_inputs()
    for run in range(3):
        x.set_data_from_numpy(ANSWERS[f"{name}.{run}.x"])
        for y in model.predict([x]):
            expected = ANSWERS[f"{name}.{run}.{y.name}"]
            assert y.get_data_to_numpy().shape == expected.shape
            assert np.abs(y.get_data_to_numpy() - expected).max() <= 1e-6


def refused(tmp_path, model, reason):
    with pytest.raises(ConversionError, match=reason):
        convert(mslite.FmkType.TFLITE, model.write(tmp_path / "m.tflite"), str(tmp_path / "m"))


def test_what_a_cell_may_have_and_is_not_imported_is_named(tmp_path):
    weights = [np.ones((4, 3), np.float32), np.ones((4, 4), np.float32), np.ones(4, np.float32), (2, 4)]
    sign = table("RNNOptions", fused_activation_function="SIGN_BIT")
    refused(
        tmp_path, case("RNN", (2, 3), weights, [(2, 4)], sign), "'y0'.*fused_activation_function.*SIGN_BIT"
    )
    basic = table("LSTMOptions", kernel_type="BASIC")
    refused(tmp_path, case("LSTM", (2, 3), weights, [(2, 4)] * 4, basic), "'y0'.*kernel_type.*BASIC")
    integers = case("RNN", (2, 3), weights, [(2, 4)], table("RNNOptions"))
    integers.tensors[0].type, integers.tensors[0].quantization = "INT8", scaled(0.1)
    refused(tmp_path, integers, "'y0'.*a recurrent cell of integers")
    auxiliary = [*weights, *weights, np.ones((2, 5, 3), np.float32), weights[0], weights[0]]
    options = table("BidirectionalSequenceRNNOptions", merge_outputs=True)
    model = case("BIDIRECTIONAL_SEQUENCE_RNN", (2, 5, 3), auxiliary, [(2, 5, 8)], options)
    refused(tmp_path, model, "'y0'.*an auxiliary input")


def test_a_state_without_room_is_refused_by_the_name_of_its_node(tmp_path, monkeypatch):
    weights = [np.zeros(shape, np.float32) for shape in ((HIDDEN, INPUTS), (HIDDEN, HIDDEN), (HIDDEN,))]
    parts, outputs = [*weights, (BATCH, 1 << 20)], [(BATCH, STEPS, HIDDEN)]
    made = case("UNIDIRECTIONAL_SEQUENCE_RNN", (BATCH, STEPS, INPUTS), parts, outputs, None)
    source = made.write(tmp_path / "m.tflite")

    def full(around, info):
        raise MemoryError

    monkeypatch.setattr(graphs.Surroundings, "tensor_variable", full)
    with pytest.raises(ConversionError, match=r"'y0' .*no memory for its state 's3'"):
        convert(mslite.FmkType.TFLITE, str(source), str(tmp_path / "m"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.tflite"]
