"""LSTM, GRU and RNN of ONNX against cells written in NumPy, one step after the other."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn
from mycelia_lite.converter import ConversionError
from mycelia_lite.converter.importers.onnx import recurrent
from mycelia_lite.format import read

from .onnx_files import answers, close

T, B, I, H = 5, 3, 4, 6  # steps, batch, inputs, hidden
OPEN_SHAPES = {"x0": (None, None, I), "x4": (None,), "x5": (2, None, H)}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, state, w, r, b, p, f=sigmoid, g=np.tanh, clip=None, coupled=False):
    h, c = state
    z = x @ w.T + h @ r.T + b[: 4 * H] + b[4 * H :]
    bound = (lambda v: v) if clip is None else (lambda v: np.clip(v, -clip, clip))
    i, o, forget, cell = np.split(z, 4, -1)
    p_i, p_o, p_f = np.split(p, 3)
    i = f(bound(i + p_i * c))
    forget = 1 - i if coupled else f(bound(forget + p_f * c))
    c = forget * c + i * g(bound(cell))
    return f(bound(o + p_o * c)) * np.tanh(c), c


def gru(x, state, w, r, b, behind):
    (h,) = state
    a, rb = x @ w.T + b[: 3 * H], b[3 * H :]
    z = sigmoid(a[:, :H] + h @ r[:H].T + rb[:H])
    s = sigmoid(a[:, H : 2 * H] + h @ r[H : 2 * H].T + rb[H : 2 * H])
    if behind:
        part = s * (h @ r[2 * H :].T + rb[2 * H :])
    else:
        part = (s * h) @ r[2 * H :].T + rb[2 * H :]
    return ((1 - z) * np.tanh(a[:, 2 * H :] + part) + z * h,)


def rnn(x, state, w, r, b, f):
    return (f(x @ w.T + state[0] @ r.T + b[:H] + b[H:]),)


def sequence(cell, x, states, lengths, backward):
    """All outputs and the last states, each of the batch over its own length."""
    y = np.zeros((T, B, H), np.float32)
    ends = [s.copy() for s in states]
    for k in range(B):
        state = tuple(s[k : k + 1] for s in states)
        times = range(lengths[k])
        for t in reversed(times) if backward else times:
            state = cell(x[t, k : k + 1], state)
            y[t, k] = state[0]
        for end, last in zip(ends, state):
            end[k] = last
    return y, ends


def case(gates, kinds, seed=0, directions=1):
    random = np.random.default_rng(seed)
    draw = lambda *shape: random.normal(size=shape).astype(np.float32)
    return (
        draw(T, B, I), draw(directions, gates * H, I), draw(directions, gates * H, H) * np.float32(0.5),
        draw(directions, 2 * gates * H), [draw(directions, B, H) for _ in range(kinds)],
        draw(directions, 3 * H),
    )  # fmt: skip


def wanted(cell, x, w, r, b, states, lengths, direction, *more):
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    parts = [
        sequence(
            lambda v, s, d=d: cell(v, s, w[d], r[d], b[d], *(m[d] for m in more)), x, [s[d] for s in states],
            lengths, backward,
        )
        for d, backward in enumerate(ways)
    ]  # fmt: skip
    return [np.stack([y for y, _ in parts], 1)] + [
        np.stack([ends[k] for _, ends in parts]) for k in range(len(states))
    ]


@pytest.mark.parametrize("constants", [(1, 2, 3), ()], ids=["weights", "weights as inputs"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_lstm_of_all_directions(tmp_path, direction, constants):
    directions = 1 + (direction == "bidirectional")
    x, w, r, b, (h, c), _ = case(4, 2, directions=directions)
    none = np.zeros((directions, 3 * H), np.float32)
    found = answers(
        tmp_path, "LSTM", [x, w, r, b, None, h, c], 3, constants=constants, hidden_size=H, direction=direction
    )
    for a, e in zip(found, wanted(lstm, x, w, r, b, [h, c], [T] * B, direction, none)):
        close(a, e)


@pytest.mark.parametrize("shapes", [None, OPEN_SHAPES], ids=["fixed", "open"])
def test_lstm_with_peepholes_lengths_and_the_batch_first(tmp_path, shapes):
    x, w, r, b, (h, c), p = case(4, 2, directions=2)
    lengths = np.array([5, 2, 4], np.int32)
    turned = [v.transpose(1, 0, 2) for v in (x, h, c)]
    found = answers(
        tmp_path, "LSTM", [turned[0], w, r, b, lengths, turned[1], turned[2], p], 3, constants=(1, 2, 3, 7),
        hidden_size=H, direction="bidirectional", layout=1,
        shapes=shapes and {**shapes, "x5": (None, 2, H), "x6": (None, 2, H)},
    )  # fmt: skip
    y, *ends = wanted(lstm, x, w, r, b, [h, c], lengths, "bidirectional", p)
    close(found[0], y.transpose(2, 0, 1, 3))
    for a, e in zip(found[1:], ends):
        close(a, e.transpose(1, 0, 2))


def test_lstm_with_other_activations_clip_and_coupled_gates(tmp_path):
    x, w, r, b, (h, c), _ = case(4, 2, seed=1)
    hard = lambda v: np.clip(0.3 * v + 0.4, 0, 1)
    made = lambda v, s, w, r, b: lstm(
        v, s, w, r, b, np.zeros(3 * H), hard, lambda v: np.maximum(v, 0), 0.8, True
    )
    attrs = dict(clip=0.8, input_forget=1, activation_alpha=[0.3], activation_beta=[0.4])
    found = _with_texts(tmp_path, [x, w, r, b, None, h, c], ["HardSigmoid", "Relu", "Tanh"], attrs)
    for a, e in zip(found, wanted(made, x, w, r, b, [h, c], [T] * B, "forward")):
        close(a, e)


def _with_texts(tmp_path, arrays, activations, attrs, kind="LSTM"):
    return answers(
        tmp_path, kind, arrays, 3, constants=(1, 2, 3), hidden_size=H, activations=activations, **attrs
    )


@pytest.mark.parametrize("behind", [0, 1])
@pytest.mark.parametrize("lengths", [None, [3, 5, 1]])
@pytest.mark.parametrize("shapes", [None, OPEN_SHAPES], ids=["fixed", "open"])
def test_gru(tmp_path, behind, lengths, shapes):
    x, w, r, b, (h,), _ = case(3, 1, directions=2)
    cell = lambda v, s, w, r, b: gru(v, s, w, r, b, behind)
    given = None if lengths is None else np.array(lengths, np.int32)
    found = answers(
        tmp_path, "GRU", [x, w, r, b, given, h], 2, constants=(1, 2, 3), hidden_size=H,
        direction="bidirectional", linear_before_reset=behind, shapes=shapes,
    )  # fmt: skip
    for a, e in zip(found, wanted(cell, x, w, r, b, [h], lengths or [T] * B, "bidirectional")):
        close(a, e)


@pytest.mark.parametrize("lengths", [[T] * B, [2, 5, 4]])
@pytest.mark.parametrize("shapes", [None, OPEN_SHAPES], ids=["fixed", "open"])
def test_rnn_backward(tmp_path, lengths, shapes):
    x, w, r, b, (h,), _ = case(1, 1)
    cell = lambda v, s, w, r, b: rnn(v, s, w, r, b, np.tanh)
    found = answers(
        tmp_path, "RNN", [x, w, r, b, np.array(lengths, np.int32), h], 2, constants=(1, 2, 3), hidden_size=H,
        direction="reverse", shapes=shapes and {**shapes, "x5": (1, None, H)},
    )  # fmt: skip
    for a, e in zip(found, wanted(cell, x, w, r, b, [h], lengths, "reverse")):
        close(a, e)


def test_a_long_sequence_of_an_unusual_cell_is_a_loop(tmp_path, monkeypatch):
    monkeypatch.setattr(recurrent, "_MOST_WRITTEN", T - 1)
    x, w, r, b, (h,), _ = case(3, 1)
    cell = lambda v, s, w, r, b: gru(v, s, w, r, b, 0)
    found = answers(tmp_path, "GRU", [x, w, r, b, None, h], 2, constants=(1, 2, 3), hidden_size=H)
    for a, e in zip(found, wanted(cell, x, w, r, b, [h], [T] * B, "forward")):
        close(a, e)
    kinds = [n.primitive.type for n in read(tmp_path / "m.ms").nodes if n.primitive.kind == "Custom"]
    assert kinds == ["Loop"]


def test_an_unknown_activation_is_named(tmp_path):
    x, w, r, b, (h, c), _ = case(4, 2)
    with pytest.raises(ConversionError, match="activations.*'cosine'"):
        _with_texts(tmp_path, [x, w, r, b, None, h, c], ["Cosine", "Tanh", "Tanh"], {})


def test_layers_of_lstm_come_through_mindir(tmp_path):
    net = nn.LSTM(8, 16, num_layers=2, bidirectional=True)
    x = np.random.default_rng(0).normal(size=(5, 3, 8)).astype(np.float32)
    ms.export(net, ms.Tensor(x), file_name=str(tmp_path / "l.mindir"), file_format="MINDIR")
    mslite.Converter().convert(mslite.FmkType.MINDIR, str(tmp_path / "l.mindir"), str(tmp_path / "l"))
    model = mslite.Model()
    model.build_from_file(str(tmp_path / "l.ms"))
    (given,) = model.get_inputs()
    given.set_data_from_numpy(x)
    y, (h, c) = net(ms.Tensor(x))
    found = [t.get_data_to_numpy() for t in model.predict([given])]
    assert len(found) == 3
    for a, e in zip(found, (y, h, c)):
        assert np.allclose(a, e.asnumpy(), atol=1e-5)
