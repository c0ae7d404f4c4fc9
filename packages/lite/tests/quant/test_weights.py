"""Weights of 1 to 16 bits: files, what each instruction set makes of them, what is refused."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError, convert, trial
from mycelia_lite.format import Table, read, write
from mycelia_lite.quant import WeightQuantization, quantize_weights
from mycelia_lite.quant.rounding import round_rows

from ..converter.optimise.small_models import Net
from . import reference

RNG = np.random.default_rng(11)
RUNNER = Path(__file__).parent / "run_model.py"


def few(bits: int) -> WeightQuantization:
    return WeightQuantization(bits=bits)


def product(rows: int, depth: int, columns: int, transposed: bool = True, **attributes):
    """(model, x, weights' tensor, its axis, function of x and the weights)"""
    net = Net(depth + columns)
    w = net.weights(*((columns, depth) if transposed else (depth, columns)))
    b = net.weights(columns)
    x = net.input(rows, depth)
    y = net("MatMulFusion", x, w, b, transpose_b=transposed, **attributes)
    bias = np.frombuffer(net.tensors[b].data, np.float32)

    def answer(data, weights):
        y = data.astype(np.float64) @ (weights.T if transposed else weights) + bias
        return np.maximum(y, 0) if attributes.get("activation_type") == "RELU" else y

    data = RNG.normal(size=(rows, depth)).astype(np.float32)
    return net.model(y), data, w, 0 if transposed else 1, answer


def convolution(size: int, inputs: int, outputs: int, kernel: int, stride=1, pad=0, dilation=1):
    net = Net(inputs + outputs)
    x = net.input(2, size, size, inputs)
    y = net.conv(
        x,
        inputs,
        outputs,
        kernel,
        bias=True,
        stride=[stride] * 2,
        dilation=[dilation] * 2,
        pad_list=[pad] * 4,
    )
    y = net("Activation", net("AddFusion", y, y), activation_type="RELU")
    conv = net.nodes[0].inputIndex
    bias = np.frombuffer(net.tensors[conv[2]].data, np.float32)

    def answer(data, weights):
        return np.maximum(2 * (reference.convolution(data, weights, stride, pad, dilation) + bias), 0)

    data = RNG.normal(size=(2, size, size, inputs)).astype(np.float32)
    return net.model(y), data, conv[1], 0, answer


CASES = {
    "row": lambda: product(1, 200, 70),
    "row-in-out": lambda: product(1, 65, 33, transposed=False, activation_type="RELU"),
    "rows": lambda: product(3, 96, 16),
    "many-rows": lambda: product(29, 131, 50, activation_type="RELU"),
    "many-rows-in-out": lambda: product(17, 64, 40, transposed=False),
    "3x3": lambda: convolution(9, 19, 37, 3, pad=1),
    "1x1": lambda: convolution(5, 64, 48, 1),
    "strided": lambda: convolution(11, 6, 18, 5, stride=2, pad=2),
    "dilated": lambda: convolution(9, 8, 33, 3, dilation=2),
}


# Cases that are also stored with scales of float16, and of groups.
GROUPS = {"groups": 32, "groups-in-out": 64, "groups-rows": 128, "row": 0, "many-rows-in-out": 0, "3x3": 0}
CASES |= {
    "groups": lambda: product(1, 160, 70),
    "groups-in-out": lambda: product(2, 128, 33, transposed=False),
    "groups-rows": lambda: product(21, 256, 48),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a file of each case in each width, inputs beside them, and what is expected of each."""
    folder, expected = tmp_path_factory.mktemp("widths"), {}
    for name, make in CASES.items():
        for bits in range(1, 17):
            model, data, index, axis, answer = make()
            quantize_weights(model, few(bits))
            path = folder / f"{name}-{bits}.ms"
            write(str(path), model)
            np.save(path.with_suffix(".npy"), data)
            expected[path.stem] = answer(data, reference.weights(model.allTensors[index], axis))
    for name, group, bits in [(n, g, b) for n, g in GROUPS.items() for b in (1, 2, 3, 4, 6, 8)]:
        model, data, index, _, answer = CASES[name]()
        quantize_weights(model, WeightQuantization(bits=bits, group=group, compact=True))
        path = folder / f"{name}-compact-{bits}.ms"
        write(str(path), model)
        np.save(path.with_suffix(".npy"), data)
        expected[path.stem] = answer(data, reference.compact(model, index))
    return folder, expected


@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512", "neon"])
def test_every_width_is_the_arithmetic_of_what_it_stands_for(files, isa):
    folder, expected = files
    done = subprocess.run(
        [sys.executable, RUNNER, folder],
        capture_output=True,
        text=True,
        env={**os.environ, "MYCELIA_ISA": isa},
    )
    if "runs none of the library's kernels" in done.stderr:
        pytest.skip(f"this processor has no {isa}")
    assert done.stdout == "done\n", done.stderr[-2000:]
    for name, wanted in expected.items():
        found = np.load(folder / f"{name}.out.npy")
        off = np.abs(found - wanted).max() / np.abs(wanted).max()
        assert off < 2e-6, (name, off)


def test_fewer_bits_are_smaller_files_and_larger_errors(tmp_path):
    sizes, errors = [], []
    for bits in range(16, 0, -1):
        model, *_ = product(1, 512, 128)
        (layer,) = quantize_weights(model, few(bits))
        write(str(tmp_path / "m.ms"), model)
        sizes.append((tmp_path / "m.ms").stat().st_size)
        errors.append(layer.error)
        assert layer.bits == bits and layer.scales == 128
        assert len(next(t for t in model.allTensors if t.name == layer.tensor).data) == 128 * 512 * bits // 8
    assert sizes == sorted(sizes, reverse=True) and errors == sorted(errors)
    assert errors[0] < 3e-5 and errors[8] < 0.01 and errors[12] < 0.11 and errors[15] < 0.65


@pytest.mark.parametrize("bits", range(2, 9))
def test_rows_are_rounded_no_worse_than_by_their_extremes(bits):
    model, _, index, axis, _ = product(1, 300, 20)
    before = np.frombuffer(model.allTensors[index].data, np.float32).reshape(20, 300).astype(float)
    quantize_weights(model, few(bits))
    error = np.square(reference.weights(model.allTensors[index], axis) - before).sum(1)
    low, high = before.min(1, keepdims=True), before.max(1, keepdims=True)
    scale = (high - low) / (2**bits - 1)
    plain = np.square(np.round((before - low) / scale) * scale + low - before).sum(1)
    assert (error <= 1.3 * plain).all() and error.sum() <= 1.02 * plain.sum()
    if bits <= 4:
        assert error.sum() < 0.86 * plain.sum()


def test_means_stay():
    for bits in range(1, 9):
        model, _, index, axis, _ = product(1, 300, 20)
        before = np.frombuffer(model.allTensors[index].data, np.float32).reshape(20, 300)
        quantize_weights(model, few(bits))
        after = reference.weights(model.allTensors[index], axis)
        np.testing.assert_allclose(after.mean(1), before.mean(1), rtol=0, atol=1e-6)
        model, *_ = product(1, 300, 20)
        quantize_weights(model, WeightQuantization(bits=bits, bias_correction=False))
        assert not any(p.meanCorr for p in model.allTensors[index].quantParams)


def test_one_number_is_exact_whatever_the_width():
    for bits in (1, 2, 4, 8, 12):
        for number in (0.0, 0.37, -1e-30, 3e30):
            net = Net()
            w = net.constant(np.full((16, 40), number, np.float32))
            model = net.model(net("MatMulFusion", net.input(1, 40), w, transpose_b=True))
            quantize_weights(model, few(bits))
            found = reference.weights(model.allTensors[w], 0).astype(np.float32)
            assert (found == np.float32(number)).all()


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_rows_far_from_zero_have_zeros_that_a_file_holds_and_integers_less_them_are_exact(bits):
    rows = np.random.default_rng(3).uniform(1e4, 1e4 + 0.01, (3, 64)).astype(np.float32)
    rounded = round_rows(rows, bits, shifts=False)
    assert np.abs(rounded.zero).max() < 2**23
    assert np.abs(rounded.numbers() / rows - 1).max() < 3e-7
    net, _, w, _, _ = product(1, 64, 3)
    net.allTensors[w].data = rows.tobytes()
    quantize_weights(net, WeightQuantization(bits=bits, bias_correction=False))
    assert [p.zeroPoint for p in net.allTensors[w].quantParams] == rounded.zero.tolist()


def test_zeros_stay_zeros():
    """Pruned weights, without bias correction."""
    for bits in (4, 5, 8, 16):
        net = Net()
        array = np.where(RNG.random((32, 64)) < 0.5, 0, RNG.normal(1, 1, (32, 64)))
        w = net.constant(array)
        model = net.model(net("MatMulFusion", net.input(1, 64), w, transpose_b=True))
        quantize_weights(model, WeightQuantization(bits=bits, bias_correction=False))
        assert (reference.weights(model.allTensors[w], 0)[array == 0] == 0).all()


@pytest.mark.parametrize("rows", [1, 2, 20])
def test_what_is_infinite_stays_in_its_row_and_has_its_sign(rows):
    model, data, index, axis, answer = product(rows, 64, 40)
    quantize_weights(model, few(4))
    data[0, 3] = np.inf
    weights = reference.weights(model.allTensors[index], axis)
    (found,) = trial.answers(trial.loaded(model), [data])
    np.testing.assert_array_equal(found[0], np.sign(weights[:, 3]) * np.inf)
    np.testing.assert_allclose(found[1:], answer(data[1:], weights), rtol=1e-5, atol=1e-5)


# ---- which weights


def test_tables_recurrent_layers_and_transposed_convolutions_are_widened():
    net = Net()
    rows = net("Gather", net.weights(50, 16), net.input(3, dtype=np.int32), net.constant(0, np.int32))
    image = net.input(1, 4, 4, 20)
    up = net(
        "Conv2dTransposeFusion", image, net.weights(20, 3, 3, 8), pad_mode="PAD", kernel_size=[3, 3], group=1,
        in_channel=20, out_channel=8, pad_list=[1] * 4, stride=[2, 2], output_paddings=[1, 1],
        dilation=[1, 1],
    )  # fmt: skip
    model = net.model(rows, up)
    floats = model.copy()
    layers = quantize_weights(model, few(5))
    assert [layer.bits for layer in layers] == [5, 5] and [layer.scales for layer in layers] == [50, 1]
    for layer, tensor in zip(layers, (t for t in model.allTensors if len(t.quantParams)), strict=True):
        same = next(t for t in floats.allTensors if t.name == layer.tensor)
        same.data = reference.weights(tensor, 0).astype(np.float32).tobytes()
    arrays = [np.array([3, 49, 0], np.int32), RNG.normal(size=(1, 4, 4, 20)).astype(np.float32)]
    found, wanted = (trial.answers(trial.loaded(m), arrays) for m in (model, floats))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_sizes_channels_and_names_leave_weights_alone():
    def layers(**how):
        net = Net()
        x = net.conv(net.input(1, 6, 6, 8), 8, 16)
        y = net.conv(x, 16, 17)
        z = net("MatMulFusion", net.reshape(y, 1, 17 * 4), net.weights(5, 17 * 4), transpose_b=True)
        return [
            (layer.bits, layer.why) for layer in quantize_weights(net.model(z), WeightQuantization(**how))
        ]

    assert layers() == [(0, "of at most 16 channels"), (8, ""), (8, "")]
    assert layers(min_channels=17) == [(0, "of at most 17 channels")] * 2 + [(8, "")]
    assert layers(min_channels=0, min_size=17 * 4 * 5) == [(8, ""), (8, ""), (0, "of at most 340 elements")]
    assert layers(min_channels=0, skip=("Conv2DFusion_0",))[0] == (0, "'Conv2DFusion_0' is skipped")


def test_one_scale_for_a_tensor():
    model, data, index, axis, answer = product(2, 64, 32)
    quantize_weights(model, WeightQuantization(bits=6, per_channel=False))
    tensor = model.allTensors[index]
    assert len(tensor.quantParams) == 1
    (found,) = trial.answers(trial.loaded(model), [data])
    np.testing.assert_allclose(found, answer(data, reference.weights(tensor, axis)), rtol=1e-5, atol=1e-4)


def test_groups_and_compact_scales_are_widened_for_other_operators():
    """A product that does not read its weights packed: of two axes, by a table of a Gather."""
    for group in (0, 32):
        net = Net()
        w = net.weights(40, 96)
        rows = net("Gather", w, net.input(3, dtype=np.int32), net.constant(0, np.int32))
        model = net.model(rows)
        quantize_weights(model, WeightQuantization(bits=5, group=group, compact=True))
        wanted = reference.compact(model, w)[[3, 39, 0]]
        (found,) = trial.answers(trial.loaded(model), [np.array([3, 39, 0], np.int32)])
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_groups_are_nearer_and_compact_files_smaller(tmp_path):
    sizes, errors = {}, {}
    for name, how in {"plain": {}, "compact": {"compact": True}, "groups": {"group": 32}}.items():
        model, *_ = product(1, 256, 128)
        (layer,) = quantize_weights(model, WeightQuantization(bits=4, **how))
        write(str(tmp_path / name), model)
        sizes[name], errors[name] = (tmp_path / name).stat().st_size, layer.error
    assert sizes["compact"] < sizes["plain"] - 18 * 128 and sizes["groups"] < 1.3 * sizes["plain"]
    assert errors["groups"] < 0.85 * errors["plain"] and errors["compact"] < 1.01 * errors["plain"]


# ---- widths for each layer


def layered():
    """Three products; the weights of the second are easy: two numbers, those of the third have outliers."""
    net, rng = Net(), np.random.default_rng(5)
    x = net("MatMulFusion", net.input(1, 64), net.weights(64, 64), transpose_b=True)
    x = net("MatMulFusion", x, net.constant(np.where(rng.random((64, 64)) < 0.5, 1, -1)), transpose_b=True)
    third = rng.normal(size=(128, 64))
    third[:, 0] *= 50
    return net.model(net("MatMulFusion", x, net.constant(third), transpose_b=True))


@pytest.mark.parametrize("most", [0.3, 0.05, 0.01])
def test_a_bound_of_the_error_decides_widths(most):
    how = WeightQuantization(bits=0, most_error=most)
    layers = quantize_weights(layered(), how)
    assert all(layer.error <= 1.05 * most for layer in layers)
    assert layers[1].bits == 1
    for layer in (layer for layer in layers if layer.bits > 1):
        model = layered()
        fewer = quantize_weights(model, WeightQuantization(bits=layer.bits - 1))
        assert next(x for x in fewer if x.node == layer.node).error > 0.95 * most


def test_a_bound_of_the_size_decides_widths():
    whole = sum(layer.bytes for layer in quantize_weights(layered(), WeightQuantization(bits=8)))
    before = 0.0
    for share in (1.0, 0.6, 0.4, 0.25):
        layers = quantize_weights(layered(), WeightQuantization(bits=0, most_bytes=int(whole * share)))
        assert sum(layer.bytes for layer in layers) <= whole * share
        error = sum(layer.error**2 for layer in layers)
        assert error >= before
        before = error
    assert layers[1].bits == 1 < layers[0].bits
    with pytest.raises(ValueError, match="most_bytes is 100, but 3 weights of 1 bit take 2048"):
        quantize_weights(layered(), WeightQuantization(bits=0, most_bytes=100))


# ---- by the converter


def test_a_configuration_quantizes_and_borders_stay(lenet, tmp_path):
    path, images, expected = lenet
    config = tmp_path / "quant.cfg"
    config.write_text(
        "[common_quant_param]\nquant_type=WEIGHT_QUANT\nbit_num=4\nmin_quant_weight_channel=0\n"
        "[weight_quant_param]\nper_channel=true\n"
    )
    converter = mslite.Converter()
    whole = converter.convert(mslite.FmkType.MINDIR, path, str(tmp_path / "whole"))
    report = converter.convert(mslite.FmkType.MINDIR, path, str(tmp_path / "small"), config_file=str(config))
    assert os.path.getsize(report.path) < 0.2 * os.path.getsize(whole.path)
    assert {layer.bits for layer in report.layers} == {4} and len(report.layers) == 5
    models = []
    for file in (whole.path, report.path):
        model = mslite.Model()
        model.build_from_file(file)
        models.append(model)
    described = [
        [(t.name, t.shape, t.dtype) for t in (*model.get_inputs(), *model.get_outputs())] for model in models
    ]
    assert described[0] == described[1]
    (found,) = trial.answers(models[1], [images])
    cosine = (found * expected).sum() / np.linalg.norm(found) / np.linalg.norm(expected)
    assert found.dtype == np.float32 and cosine > 0.99


def test_a_configuration_chooses_widths(lenet, tmp_path):
    config = tmp_path / "quant.cfg"
    config.write_text(
        "[common_quant_param]\nquant_type=WEIGHT_QUANT\nbit_num=0\nmin_quant_weight_channel=0\n"
        "[weight_quant_param]\ngroup=32\ncompact=true\n[mixed_bit_weight_quant_param]\ninit_scale=0.08\n"
    )
    report = mslite.Converter().convert(
        mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "n"), config_file=str(config)
    )
    assert all(0.03 < layer.error < 0.085 and layer.bits in (3, 4, 5) for layer in report.layers)
    # 400 and 120 weights of a channel are not whole groups of 32; 84 neither
    assert [layer.scales for layer in report.layers] == [6, 16, 120, 84, 10]
    model = mslite.Model()
    model.build_from_file(report.path)
    (found,) = trial.answers(model, [lenet[1]])
    cosine = (found * lenet[2]).sum() / np.linalg.norm(found) / np.linalg.norm(lenet[2])
    assert cosine > 0.98


def test_a_report_tells_each_layer(lenet, tmp_path):
    how = WeightQuantization(bits=4, min_channels=6, report=str(tmp_path / "report"))
    made = convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "n"), quantization=how)
    with open(tmp_path / "report" / "quant_param.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 16 + 120 + 84 + 10  # the first convolution has 6 channels
    tensors = {t.name: t for t in read(made.path).allTensors}
    for layer in made.layers:
        own = [line for line in lines if line["NodeName"] == layer.node]
        assert len(own) == layer.scales
        for line, param in zip(own, tensors[layer.tensor].quantParams, strict=bool(layer.bits)):
            assert np.float32(line["Scale"]) == np.float32(param.scale) and line["Bits"] == "4"
            assert np.float32(line["CorrectionMean"]) == np.float32(param.meanCorr)
            assert int(line["ZeroPoint"]) == param.zeroPoint and line["NodeType"] == layer.kind
    page = (tmp_path / "report" / "quantization.html").read_text()
    assert "4 of 5 weights" in page and "of at most 6 channels" in page and "http" not in page
    for layer in made.layers:
        assert layer.node in page


def test_a_file_of_ours_is_quantized_again(lenet, tmp_path):
    """`.ms` to `.ms`, and other constants as float16."""
    whole = convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "whole")).path
    how = dict(quantization=WeightQuantization(bits=3, min_channels=0), weight_fp16=True)
    small = convert(mslite.FmkType.MSLITE, whole, str(tmp_path / "small"), **how).path
    kinds = {t.dataType.name for t in read(small).allTensors if len(t.data) > 68}
    assert kinds == {"INT8", "FLOAT16"}
    again = convert(mslite.FmkType.MSLITE, small, str(tmp_path / "again")).path
    answers = []
    for file in (small, again):
        model = mslite.Model()
        model.build_from_file(file)
        answers.append(trial.answers(model, [lenet[1]])[0])
    np.testing.assert_array_equal(*answers)


def test_check_says_how_far_answers_depart(lenet, tmp_path):
    how = dict(quantization=WeightQuantization(bits=8, min_channels=0), check=True)
    with pytest.raises(ConversionError, match="give a tolerance"):
        convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "n"), **how)
    report = convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "n"), tolerance=0.05, **how)
    assert 0 < report.departures[0].greatest < 0.05


# ---- what is refused


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"bits": -1}, ValueError, "bits must be from 0 to 16, but got -1"),
        ({"most_error": 0.0}, ValueError, "most_error must be a float between 0 and 1, but got 0.0"),
        ({"bits": 17}, ValueError, "bits must be from 0 to 16, but got 17"),
        ({"bits": 4.0}, TypeError, "bits must be an int, but got float"),
        ({"bits": True}, TypeError, "bits must be an int, but got bool"),
        ({"min_size": -1}, ValueError, "min_size must be from 0 to 65535"),
        ({"per_channel": 1}, TypeError, "per_channel must be a bool"),
        ({"group": 48}, ValueError, "group must be a multiple of 32, but got 48"),
        ({"group": 32, "per_channel": False}, ValueError, "group is for scales of channels"),
        ({"bits": 9, "compact": True}, ValueError, "group, compact and encode are for at most 8 bits"),
        ({"skip": "conv"}, TypeError, "skip must be names of nodes"),
    ],
)
def test_settings_are_checked(fields, error, message):
    with pytest.raises(error, match=message):
        WeightQuantization(**fields)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("quant_type=WEIGHT_QUANT\nbit_num=17", -600, "bit_num must be from 0 to 16, but got '17'"),
        ("quant_type=WEIGHT_QUANT\nbit_num=four", -600, "bit_num must be from 0 to 16, but got 'four'"),
        ("quant_type=WEIGHT_QUANT\nbits=4", -600, "has no key 'bits'"),
        (
            "quant_type=WEIGHT\nbit_num=4",
            -600,
            "quant_type must be one of WEIGHT_QUANT, FULL_QUANT, DYNAMIC_QUANT",
        ),
        ("bit_num=4", -600, "quant_type is missing"),
        ("quant_type=WEIGHT_QUANT\nbit_num=4\nenable_encode=false", -600, "enable_encode must be true"),
        ("quant_type=WEIGHT_QUANT\nskip_quant_node=nobody", -600, "no node is called 'nobody'"),
        ("quant_type=WEIGHT_QUANT\nmin_quant_weight_size=65535", -600, "no weights to quantize: 'Default/"),
        ("quant_type=FULL_QUANT", -600, "data_preprocess_param\\] is missing"),
        ("quant_type=WEIGHT_QUANT\nworkspace=/tmp", -7, "weights are quantized in memory"),
    ],
)
def test_configurations_are_checked(lenet, tmp_path, text, code, message):
    config = tmp_path / "quant.cfg"
    config.write_text(f"[common_quant_param]\n{text}\n")
    with pytest.raises(ConversionError, match=message) as error:
        mslite.Converter().convert(
            mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "n"), config_file=str(config)
        )
    assert error.value.code == code and not (tmp_path / "n.ms").exists()


@pytest.mark.parametrize(("number", "word"), [(np.nan, "NaN"), (np.inf, "infinite")])
def test_weights_that_are_not_finite_are_refused(number, word):
    model, _, index, _, _ = product(1, 40, 20)
    array = np.frombuffer(model.allTensors[index].data, np.float32).copy()
    array[7] = number
    model.allTensors[index].data = array.tobytes()
    with pytest.raises(ValueError, match=f"of node 'MatMulFusion_0' have elements that are {word}"):
        quantize_weights(model, few(4))
    assert model.allTensors[index].dataType.name == "FLOAT32"


def test_a_model_without_weights_is_refused():
    net = Net()
    model = net.model(net("AddFusion", net.input(4, 4), net.weights(4, 4)))
    with pytest.raises(ValueError, match="the model has no weights to quantize$"):
        quantize_weights(model, few(4))


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: setattr(t, "data", bytes(t.data)[:-1]),
        lambda t: setattr(t, "quantParams", [Table("QuantParam", numBits=n) for n in (4, 3) * 10]),
        lambda t: setattr(t, "quantParams", [Table("QuantParam", numBits=9)]),
        lambda t: setattr(t, "quantParams", [Table("QuantParam", numBits=0)]),
        lambda t: setattr(t, "quantParams", [Table("QuantParam", numBits=4)] * 3),
        lambda t: setattr(t, "dataType", int(mslite.DataType.UINT8)),
    ],
)
def test_damaged_fields_are_refused(damage):
    model, _, index, _, _ = product(1, 40, 20)
    quantize_weights(model, few(4))
    damage(model.allTensors[index])
    with pytest.raises(RuntimeError, match="damaged|quantized"):
        trial.loaded(model)


@pytest.mark.parametrize(
    ("attribute", "number"),
    [("bits", 0), ("bits", 9), ("axis", 2), ("axis", -1), ("group", 31), ("group", 96)],
)
def test_damaged_attributes_are_refused(attribute, number):
    model, *_ = product(1, 64, 20)
    quantize_weights(model, WeightQuantization(bits=4, group=32))
    node = next(n for n in model.nodes if n.primitive.kind == "Custom")
    next(a for a in node.primitive.attr if a.name == attribute).data = np.int64(number).tobytes()
    with pytest.raises(RuntimeError, match="damaged"):
        trial.loaded(model)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_damaged_fields_and_scales_are_refused(place):
    model, *_ = product(1, 64, 20)
    quantize_weights(model, WeightQuantization(bits=4, group=32))
    node = next(n for n in model.nodes if n.primitive.kind == "Custom")
    tensor = model.allTensors[node.inputIndex[place]]
    tensor.data, tensor.dims = bytes(tensor.data)[:-2], [int(tensor.dims[0]) - (2 if place == 0 else 1)]
    with pytest.raises(RuntimeError, match="damaged"):
        trial.loaded(model)
