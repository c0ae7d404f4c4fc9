"""Rounding that knows data: error feedback, factors of channels, ranges that are equal or shared."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.format import Table
from mycelia_lite.quant import FullQuantization, WeightQuantization, quantize_full, quantize_weights
from mycelia_lite.quant.channels import equalize, joints, smooth
from mycelia_lite.quant.feedback import lost, products, round_fed_back
from mycelia_lite.quant.roles import Graph, Limits, find
from mycelia_lite.quant.rounding import round_rows
from mycelia_lite.running import answers, loaded

from ..converter.optimise.small_models import Net

RNG = np.random.default_rng(21)
F = np.float32


def correlated(rows: int, depth: int, runs: int = 4) -> list[np.ndarray]:
    """Data as layers have them: few directions, channels of different sizes."""
    mix = RNG.normal(size=(depth // 4, depth)) * np.exp(RNG.normal(size=depth))
    return [
        (RNG.normal(size=(rows, depth // 4)) @ mix + 0.1 * RNG.normal(size=(rows, depth))).astype(F)
        for _ in range(runs)
    ]


def layers_of(model: Table):
    graph = Graph(model)
    return graph, [r for r in find(graph, Limits())[0] if r.is_layer]


def error(model: Table, made: Table, data: list[np.ndarray]) -> float:
    one = np.concatenate([answers(loaded(model), [x])[0].ravel() for x in data]).astype(float)
    two = np.concatenate([answers(loaded(made), [x])[0].ravel() for x in data])
    return float(np.linalg.norm(one - two) / np.linalg.norm(one))


# ---- error feedback


@pytest.mark.parametrize("bits", [2, 3, 4])
@pytest.mark.parametrize("group", [0, 32])
def test_feedback_changes_results_less_than_the_nearest_integers(bits, group):
    rows, (data,) = RNG.normal(size=(24, 128)).astype(F), correlated(600, 128, 1)
    sums = data.astype(float).T @ data
    fed = round_fed_back(rows, sums, bits, True, group)
    near = round_rows(rows.reshape(-1, group or 128), bits, True)
    assert fed.q.min() >= -(2 ** (bits - 1)) and fed.q.max() < 2 ** (bits - 1)
    assert len(fed.scale) == len(near.scale) == (24 * 4 if group else 24)
    one, two = (lost(rows, r.numbers().reshape(rows.shape), sums) for r in (fed, near))
    assert one < 0.5 * two


def test_without_correlation_feedback_is_the_nearest_integer():
    rows = RNG.normal(size=(6, 32)).astype(F)
    fed, near = round_fed_back(rows, np.eye(32), 4, False, 0), round_rows(rows, 4, False)
    assert np.array_equal(fed.q, near.q)


@pytest.mark.parametrize("kind", ["transposed", "in-out", "connection", "convolution", "same"])
def test_products_are_those_of_what_weights_multiply(kind):
    net = Net(3)
    if kind in ("convolution", "same"):
        x = net.input(2, 7, 6, 5)
        more = {"pad_mode": "SAME"} if kind == "same" else {"pad_list": [1, 0, 2, 1], "stride": [2, 1]}
        model = net.model(net.conv(x, 5, 9, 3, **more))
        data = [RNG.normal(size=(2, 7, 6, 5)).astype(F)]
    else:
        x = net.input(3, 4, 10)
        if kind == "connection":
            y = net("FullConnection", x, net.weights(9, 40), axis=1, use_axis=True)
        elif kind == "transposed":
            y = net("MatMulFusion", x, net.weights(9, 10), transpose_b=True)
        else:
            y = net("MatMulFusion", x, net.weights(10, 9))
        model = net.model(y)
        data = [RNG.normal(size=(3, 4, 10)).astype(F)]
    graph, layers = layers_of(model)
    ((tensor, sums),) = products(graph, layers, data).items()
    rows = np.moveaxis(graph.floats(tensor), layers[0].axis, 0).reshape(9, -1).astype(float)
    y = answers(loaded(model), data)[0].astype(float)
    # The sum of squares of all results is what weights make of the products.
    assert np.isclose(((rows @ sums) * rows).sum(), np.square(y).sum(), rtol=1e-5)


@pytest.mark.parametrize("bits", [3, 4])
def test_a_model_of_few_bits_answers_nearer_with_feedback_and_search(bits):
    net = Net(12)
    x = net.input(64, 64)
    y = net("LayerNormFusion", x, net.constant(np.exp(RNG.normal(size=64))), net.weights(64),
            begin_norm_axis=1, begin_params_axis=1, elementwise_affine=True)  # fmt: skip
    y = net("MatMulFusion", y, net.weights(64, 96), net.weights(96), activation_type="RELU")
    y = net("MatMulFusion", y, net.weights(96, 64))
    model, data = net.model(y), correlated(64, 64, 8)
    found = {}
    for name, how in (
        ("plain", {}), ("feedback", {"error_feedback": True}), ("search", {"scale_search": True}),
        ("both", {"error_feedback": True, "scale_search": True}),
    ):  # fmt: skip
        made = model.copy()
        given = {"calibration": data[:6], **how} if how else {}
        layers = quantize_weights(made, WeightQuantization(bits=bits, group=32, **given))
        assert all(layer.bits == bits and (layer.of_results is not None) == bool(how) for layer in layers)
        found[name] = error(model, made, data[6:])
    assert found["feedback"] < 0.8 * found["plain"] and found["search"] < 0.98 * found["plain"]
    assert found["both"] < 0.8 * found["plain"]


def test_convolutions_are_fed_back_too():
    net = Net(5)
    x = net.input(4, 9, 9, 8)
    y = net.conv(x, 8, 24, 3, pad_list=[1] * 4, activation_type="RELU")
    model = net.model(net.conv(y, 24, 20, 3))
    smooth_ones = [np.cumsum(np.cumsum(RNG.normal(size=(4, 9, 9, 8)), 1), 2).astype(F) for _ in range(6)]
    off = []
    for given in ({}, {"error_feedback": True, "calibration": smooth_ones[:4]}):
        made = model.copy()
        quantize_weights(made, WeightQuantization(bits=3, **given))
        off.append(error(model, made, smooth_ones[4:]))
    assert off[1] < 0.75 * off[0]


@pytest.mark.parametrize("name", ["error_feedback", "scale_search"])
def test_data_are_needed(name):
    with pytest.raises(ValueError, match=f"{name} needs calibration"):
        WeightQuantization(**{name: True})
    with pytest.raises(ValueError, match="at most 8 bits"):
        WeightQuantization(**{name: True}, bits=9, calibration=[np.zeros(1, F)])


def test_a_failure_leaves_the_model_as_it_was():
    net = Net(1)
    x = net.input(2, 32)
    model = net.model(net("MatMulFusion", net("MatMulFusion", x, net.weights(32, 32)), net.weights(32, 32)))
    before = model.copy()
    for how in ({"error_feedback": True}, {"scale_search": True}):
        with pytest.raises(ValueError, match="shape"):
            given = {"calibration": [np.zeros((2, 31), F)], **how}
            quantize_weights(model, WeightQuantization(bits=4, **given))
        assert model == before


# ---- channels


def chain():
    """Convolutions with wild ranges, one of each channel, a pool, dense layers."""
    net = Net(7)
    x = net.input(2, 8, 8, 3)
    wild = np.exp(1.5 * RNG.normal(size=16))
    first = net.constant(RNG.normal(size=(16, 3, 3, 3)) * wild[:, None, None, None])
    y = net("Conv2DFusion", x, first, net.constant(RNG.normal(size=16) * wild), kernel_size=[3, 3], group=1,
            in_channel=3, out_channel=16, pad_list=[1] * 4, activation_type="RELU")  # fmt: skip
    y = net.conv(y, 16, 16, 3, bias=True, group=16, pad_list=[1] * 4, activation_type="RELU")
    y = net("MaxPoolFusion", y, kernel_size=[2, 2], strides=[2, 2], pad_mode="PAD")
    last = RNG.normal(size=(12, 1, 1, 16)) / wild
    y = net("Conv2DFusion", y, net.constant(last), kernel_size=[1, 1], group=1, in_channel=16, out_channel=12)
    return net.model(net("Softmax", y, axis=[-1]), y), [
        RNG.normal(size=(2, 8, 8, 3)).astype(F) for _ in range(4)
    ]


def test_equal_ranges_change_nothing_but_the_integers():
    model, data = chain()
    before = answers(loaded(model), data[:1])
    made = model.copy()
    graph, layers = layers_of(made)
    assert equalize(graph, layers) == 2
    for a, b in zip(before, answers(loaded(made), data[:1]), strict=True):
        assert np.abs(a - b).max() <= 2e-5 * np.abs(a).max()
    off = []
    for equal in (False, True):
        small = model.copy()
        quantize_full(small, FullQuantization(calibration=data, per_channel=False, equalize=equal))
        off.append(error(model, small, data))
    assert off[1] < 0.7 * off[0]


def test_what_others_read_is_not_scaled():
    net = Net(4)
    x = net.input(2, 16)
    a = net("MatMulFusion", x, net.weights(16, 16), activation_type="RELU")
    b = net("MatMulFusion", a, net.weights(16, 16), activation_type="SIGMOID")
    c = net("MatMulFusion", b, net.weights(16, 16))
    d = net("MatMulFusion", c, net.weights(16, 16))
    model = net.model(d, net("AddFusion", a, a))
    graph, layers = layers_of(model)
    (only,) = joints(graph, layers)  # a is read by a sum, b has an activation that is no line
    assert [r.node.name for r in only.readers] == [graph.nodes[3].name]


def test_weights_take_ranges_over_from_data():
    net = Net(6)
    x = net.input(4, 9, 32)
    wild = np.exp(2 * RNG.normal(size=32))
    norm = net("LayerNormFusion", x, net.constant(wild), net.constant(RNG.normal(size=32)),
               begin_norm_axis=2, begin_params_axis=2, elementwise_affine=True)  # fmt: skip
    q, k = (
        net("MatMulFusion", norm, net.constant(RNG.normal(size=(32, 24)) / wild[:, None])) for _ in range(2)
    )
    model = net.model(net("AddFusion", q, k))
    data = [RNG.normal(size=(4, 9, 32)).astype(F) for _ in range(5)]
    same = model.copy()
    graph, layers = layers_of(same)
    assert smooth(graph, layers, 0.5, data) == 1
    assert error(model, same, data[:2]) < 1e-5
    off = []
    for share in (0.0, 0.5):
        made = model.copy()
        quantize_full(made, FullQuantization(calibration=data[:3], smooth=share))
        off.append(error(model, made, data[3:]))
    assert off[1] < 0.6 * off[0]


def test_a_configuration_asks_for_all_of_it(lenet, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for i, image in enumerate(lenet[1]):
        image[None].tofile(folder / f"{i}.bin")
    common = "[common_quant_param]\nquant_type={}\nmin_quant_weight_channel=0\nbit_num={}\n"
    data = f"[data_preprocess_param]\ncalibrate_path=x:{folder}\ninput_type=BIN\n"
    for text in (
        common.format("WEIGHT_QUANT", 4) + "[weight_quant_param]\nerror_feedback=true\nscale_search=true\n",
        common.format("FULL_QUANT", 8) + "[full_quant_param]\nequalize=true\nsmooth_alpha=0.5\n",
    ):
        config = tmp_path / "q.cfg"
        config.write_text(text + data)
        report = mslite.Converter().convert(
            mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "lenet"), config_file=str(config)
        )
        assert all(layer.bits in (4, 8) for layer in report.layers)
        model = mslite.Model()
        model.build_from_file(report.path)
        found = answers(model, [lenet[1]])[0]
        assert (found * lenet[2]).sum() / np.linalg.norm(found) / np.linalg.norm(lenet[2]) > 0.98
