"""Weights in an entropy code: shorter files, the same fields, damaged ones refused."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia_lite.format import Table
from mycelia_lite.quant import WeightQuantization, quantize_weights
from mycelia_lite.quant.codes import encoded, entropy
from mycelia_lite.quant.rounding import round_for_code, round_rows
from mycelia_lite.quant.stored import shortened, store_compact
from mycelia_lite.running import answers, loaded

from ..converter.optimise.small_models import Net

RNG = np.random.default_rng(31)
F = np.float32


def product(rows: int, depth: int, columns: int) -> tuple[Table, int]:
    net = Net(depth)
    x = net.input(rows, depth)
    w = net.weights(columns, depth)
    return net.model(net("MatMulFusion", x, w, net.weights(columns), transpose_b=True)), w


def stored(model: Table, weights: int, bits: int, encode: bool) -> Table:
    """The model with weights of few bits, with or without code."""
    made = model.copy()
    tensor = made.allTensors[weights]
    rows = np.frombuffer(tensor.data, F).reshape([int(n) for n in tensor.dims])
    rounded = shortened(round_rows(rows, bits))
    made.nodes[0].quantType = 4  # QUANT_WEIGHT
    node = store_compact(made, weights, rounded.q, bits, 0, rounded, 0, encode)
    made.subGraph[0].nodeIndices = [len(made.nodes), *made.subGraph[0].nodeIndices]
    made.nodes = [*made.nodes, node]
    return made


def code_of(model: Table) -> Table:
    return next(t for t in model.allTensors if t.name.endswith(":fields"))


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("shape", [(5, 64, 33), (2, 700, 300)])
def test_codes_are_the_fields_that_they_stand_for(bits, shape):
    model, weights = product(*shape)
    skewed = np.where(
        RNG.random((shape[2], shape[1])) < 0.8, 0, np.abs(RNG.normal(size=(shape[2], shape[1])))
    )
    model.allTensors[weights].data = skewed.astype(F).tobytes()
    plain, coded = (stored(model, weights, bits, encode) for encode in (False, True))
    assert len(code_of(coded).data) < len(code_of(plain).data)
    x = RNG.normal(size=shape[:2]).astype(F)
    one, two = (answers(loaded(m), [x])[0] for m in (plain, coded))
    assert np.array_equal(one, two)


def test_what_a_code_makes_longer_is_stored_as_it_is():
    assert encoded(RNG.integers(-2, 2, 5000), 2) is None
    code, lanes = encoded(np.where(RNG.random(50_000) < 0.05, 1, 0), 2)
    assert lanes == 8 and len(code) < 1.02 * 50_000 * entropy(np.array([95, 5])) / 8 + 60


def test_one_field_alone_takes_next_to_nothing():
    code, _ = encoded(np.full(10_000, -3), 4)
    assert len(code) < 100
    model, weights = product(3, 100, 50)
    model.allTensors[weights].data = np.full((50, 100), 0.5, F).tobytes()
    x = RNG.normal(size=(3, 100)).astype(F)
    found = answers(loaded(stored(model, weights, 3, True)), [x])[0]
    assert np.abs(found - answers(loaded(model), [x])[0]).max() < 1e-4


@pytest.mark.parametrize("bits", [2, 3, 4])
def test_levels_for_a_code_trade_little_error_for_length(bits):
    rows = RNG.normal(size=(40, 500)).astype(F)

    def figures(rounded):
        counts = np.bincount((rounded.q + (1 << (bits - 1))).ravel(), minlength=1 << bits)
        return entropy(counts), np.linalg.norm(rounded.numbers() - rows) / np.linalg.norm(rows)

    long, near = figures(round_rows(rows, bits))
    for slack, less in ((0.1, 0.05), (0.3, 0.2)):
        short, off = figures(round_for_code(rows, bits, slack=slack))
        assert short < long - less and off < (1.06 + slack) * near


def test_the_shortest_code_within_an_error_is_chosen():
    rows = RNG.normal(size=(40, 500)).astype(F)
    made = round_for_code(rows, 7, most_error=0.02)
    error = np.linalg.norm(made.numbers() - rows) / np.linalg.norm(rows)
    assert 0.017 < error <= 0.0202
    same = round_for_code(np.array([[2, 2, 2], [0, 0, 0]], F), 3)
    assert np.array_equal(same.numbers(), [[2, 2, 2], [0, 0, 0]])


@pytest.mark.parametrize("bits", [0, 2, 4])
def test_files_are_shorter_and_answers_near(bits):
    net = Net(4)
    x = net.input(3, 16, 16, 8)
    y = net.conv(x, 8, 64, 3, bias=True, activation_type="RELU")
    model = net.model(net("MatMulFusion", net.conv(y, 64, 64, 3), net.weights(64, 100)))
    data = RNG.normal(size=(3, 16, 16, 8)).astype(F)
    sizes, errors = [], []
    for encode in (False, True):
        made = model.copy()
        layers = quantize_weights(made, WeightQuantization(bits=bits, compact=True, encode=encode))
        sizes.append(sum(len(t.data) for t in made.allTensors))
        errors.append(np.abs(answers(loaded(made), [data])[0] - answers(loaded(model), [data])[0]).mean())
        if not bits:
            assert all(layer.error <= 0.0202 for layer in layers)
    assert sizes[1] < 0.97 * sizes[0] and errors[1] < 1.5 * errors[0]


def test_damaged_codes_are_refused_or_run_but_never_read_beyond():
    model, weights = product(2, 300, 100)
    coded = stored(model, weights, 3, True)
    good = bytes(code_of(coded).data)
    x = RNG.normal(size=(2, 300)).astype(F)
    wanted, refused = answers(loaded(coded), [x])[0], 0
    cases = [good[:-2], good + bytes(2), good[:10], good[1:], bytes(len(good)), b"\xff" * len(good)]
    for place in RNG.integers(0, len(good), 60):
        cases.append(good[:place] + bytes([good[place] ^ 1 << RNG.integers(8)]) + good[place + 1 :])
    for case in cases:
        code_of(coded).data = case
        code_of(coded).dims = [len(case)]
        try:
            found = answers(loaded(coded), [x])[0]
        except RuntimeError as error:
            assert "damaged" in str(error)
            refused += 1
        else:
            assert found.shape == wanted.shape
    assert refused > 20


def test_wide_integers_have_no_code():
    with pytest.raises(ValueError, match="at most 8 bits"):
        WeightQuantization(bits=12, encode=True)
    model, _ = product(1, 64, 20)
    (layer,) = quantize_weights(model, WeightQuantization(bits=4, encode=True, group=32))
    assert layer.scales == 40
