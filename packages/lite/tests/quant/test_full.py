"""Full quantization: which nodes compute with integers, what they compute, what is refused."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError
from mycelia_lite.format import Table, read, write
from mycelia_lite.quant import Folders, FullQuantization, quantize_full
from mycelia_lite.quant.ranges import Grid, Range
from mycelia_lite.running import answers, loaded

from ..converter.optimise.small_models import Net
from . import integer_reference

RNG = np.random.default_rng(4)
RUNNER = Path(__file__).parent / "run_model.py"


def images(*shape: int, runs: int = 6) -> list[np.ndarray]:
    return [RNG.normal(size=shape).astype(np.float32) for _ in range(runs)]


def network(batch: int = 2) -> tuple[Net, int, int]:
    """A bit of everything: convolutions, one of each channel, a residual, pools, parts side by side."""
    net = Net(5)
    x = net.input(batch, 11, 9, 3)
    first = net.conv(x, 3, 20, 3, bias=True, pad_list=[1] * 4, activation_type="RELU")
    pooled = net("MaxPoolFusion", first, kernel_size=[3, 3], strides=[2, 2], pad=[1] * 4, pad_mode="PAD")
    deep = net.conv(pooled, 20, 20, 3, bias=True, pad_list=[1] * 4, group=20, activation_type="RELU6")
    narrow = net.conv(deep, 20, 20, 1)
    joined = net("AddFusion", narrow, pooled, activation_type="RELU")
    wide = net.conv(joined, 20, 33, 3, stride=[2, 2], dilation=[1, 1], pad_list=[1, 0, 0, 1])
    gated = net("MulFusion", wide, net.activation(wide, "SIGMOID"))
    less = net("SubFusion", gated, net.constant(RNG.normal(size=33)))
    mean = net("AvgPoolFusion", less, kernel_size=[2, 2], strides=[1, 1], pad=[1, 0, 0, 1], pad_mode="PAD")
    both = net("Concat", less, mean, axis=3)
    return net, net.reshape(net.transpose(both, 0, 3, 1, 2), batch, -1), batch


def finished(net: Net, flat: int, batch: int) -> Table:
    depth = int(np.prod(net.model(flat).allTensors[flat].dims)) // batch
    fc = net("FullConnection", flat, net.weights(30, depth), net.weights(30), has_bias=True, axis=1,
             use_axis=True, activation_type="RELU")  # fmt: skip
    y = net("MatMulFusion", fc, net.weights(30, 10))
    return net.model(net("Softmax", y, axis=[-1]), y)


def kinds_of(model: Table) -> list[str]:
    return [n.primitive.kind for n in model.nodes]


@pytest.fixture(scope="module")
def quantized():
    model = finished(*network())
    numbers, data = model.copy(), images(2, 11, 9, 3)
    result = quantize_full(model, FullQuantization(calibration=data))
    return numbers, model, data, result


def test_integers_flow_from_the_first_cast_to_the_last_layer(quantized):
    numbers, model, _, result = quantized
    assert kinds_of(model).count("QuantDTypeCast") == 1  # the input's; the last layer gives numbers
    assert all(layer.bits == 8 for layer in result.layers) and len(result.layers) == 6
    assert result.casts == 1 and [kind for _, kind in result.floats] == ["Softmax"]
    whole = [n.primitive.kind for n in model.nodes if int(n.quantType) == 5]
    assert len(whole) == len(numbers.nodes)  # all but the softmax, and the cast
    assert [model.allTensors[int(i)].name for i in model.inputIndex] == ["x0"]
    for before, after in zip(numbers.outputIndex, model.outputIndex, strict=True):
        one, two = numbers.allTensors[int(before)], model.allTensors[int(after)]
        assert (one.name, list(one.dims), one.dataType) == (two.name, list(two.dims), two.dataType)


def test_every_tensor_is_what_its_file_says(quantized):
    """The runtime's integers are those of whole sums, rounded once; two operations may differ by a step."""
    _, model, data, _ = quantized
    expected = integer_reference.run(model, data[0])
    seen = model.copy()
    tensors = [int(o) for n in model.nodes for o in n.outputIndex]
    seen.outputIndex = tensors
    seen.subGraph[0].outputIndices = tensors
    found = answers(loaded(seen), [data[0]])
    for tensor, array in zip(tensors, found, strict=True):
        wanted = expected[model.allTensors[tensor].name]
        assert array.dtype == wanted.dtype and array.shape == wanted.shape
        if array.dtype == np.int8:
            off = np.abs(array.astype(int) - wanted)
            assert off.max() <= 1 and np.mean(off) < 2e-3, model.allTensors[tensor].name
        else:
            assert np.abs(array - wanted).max() <= 0.02 * np.abs(wanted).max()


@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512", "neon"])
def test_all_instruction_sets_give_the_same_integers(quantized, isa, tmp_path):
    _, model, data, _ = quantized
    write(str(tmp_path / "m.ms"), model)
    np.save(tmp_path / "m.npy", data[1])
    done = subprocess.run(
        [sys.executable, RUNNER, tmp_path],
        capture_output=True, text=True, env={**os.environ, "MYCELIA_ISA": isa},
    )  # fmt: skip
    if "runs none of the library's kernels" in done.stderr:
        pytest.skip(f"this processor has no {isa}")
    assert done.stdout == "done\n", done.stderr[-2000:]
    wanted, _ = answers(loaded(model), [data[1]])
    assert np.abs(np.load(tmp_path / "m.out.npy") - wanted).max() < 1e-6


def test_answers_stay_near_and_the_result_tells_how_near(quantized):
    numbers, model, data, result = quantized
    for x in data[:3]:
        for before, after in zip(answers(loaded(numbers), [x]), answers(loaded(model), [x]), strict=True):
            a, b = before.ravel().astype(float), after.ravel().astype(float)
            assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) > 0.99
    assert len(result.outputs) == 2 and all(c > 0.99 for c in result.outputs.values())
    assert all(t.cosine > 0.97 and t.clip_rate == 0 for t in result.tensors)
    assert {t.tensor for t in result.tensors} >= {"x0"}


@pytest.mark.parametrize("method", ["MAX_MIN", "KL", "REMOVAL_OUTLIER"])
def test_ranges_leave_outliers_out_when_asked(method):
    numbers = RNG.normal(size=200_000).astype(np.float32)
    numbers[7] = 400
    seen = Range()
    for part in np.split(numbers, 4):
        seen.see(part)
    for part in np.split(numbers, 4):
        seen.count(part)
    low, high = seen.limits(method)
    if method == "MAX_MIN":
        assert (low, high) == (numbers.min(), 400)
    else:
        assert -5.5 < low < -3 and 3 < high < 30
    nothing = Range()
    assert nothing.limits(method) == (0, 0)


def test_a_background_does_not_narrow_a_range():
    """Numbers that come again and again are held exactly by wide ranges, too."""
    numbers = np.abs(RNG.normal(size=50_000)).astype(np.float32)
    numbers[:30_000] = 0.42
    numbers[30_000:40_000] = 0
    seen = Range()
    seen.see(numbers)
    seen.count(numbers)
    low, high = seen.limits("KL")
    assert low == 0 and high > 2.2


def test_a_grid_has_zero_and_both_ends():
    for low, high in ((-1, 3), (0, 6), (-4, -1), (2, 5), (0, 0), (-1e-45, 1e-45)):
        grid = Grid.of(low, high)
        assert grid.numbers(grid.integers(np.zeros(1)))[0] == 0
        for end in (low, high):
            found = grid.numbers(grid.integers(np.array([end], np.float32)))[0]
            assert abs(found - end) <= grid.scale / 2 * 1.01 or grid.scale == 1


def test_bias_correction_takes_the_mean_error_out():
    net = Net(3)
    x = net.input(64, 40)
    y = net("MatMulFusion", x, net.constant(RNG.normal(size=(40, 12)) + 3), net.constant(RNG.normal(size=12)))
    model = net.model(y)
    data = [np.abs(RNG.normal(size=(64, 40))).astype(np.float32)]
    wanted = answers(loaded(model), data)[0]
    off = {}
    for corrects in (True, False):
        made = model.copy()
        how = FullQuantization(calibration=data, bias_correction=corrects, per_channel=False)
        quantize_full(made, how)
        off[corrects] = np.abs((answers(loaded(made), data)[0] - wanted).mean(0)).max()
    assert off[True] < 0.1 * off[False]


def test_layers_are_left_out_until_a_cosine_holds():
    net = Net(8)
    x = net.input(8, 32)
    wild = net.constant(RNG.normal(size=(32, 32)) * np.exp(3 * RNG.normal(size=(32, 1))))
    y = net("MatMulFusion", x, wild)
    for _ in range(3):
        y = net("MatMulFusion", net.activation(y, "TANH"), net.weights(32, 32))
    model, data = net.model(y), images(8, 32)
    plain = quantize_full(model.copy(), FullQuantization(calibration=data))
    target = 1 - (1 - min(plain.outputs.values())) / 4
    kept = quantize_full(model, FullQuantization(calibration=data, target_cosine=target))
    assert min(kept.outputs.values()) >= target > min(plain.outputs.values())
    left = [layer for layer in kept.layers if not layer.bits]
    assert 0 < len(left) < 4 and all("cosine" in layer.why for layer in left)
    with pytest.raises(ValueError, match="target_cosine"):
        quantize_full(net.model(y), FullQuantization(calibration=data, target_cosine=1 - 1e-12))


# ---- what stays float


def test_layers_may_give_integers_to_all():
    net = Net(1)
    x = net.input(1, 16)
    y = net("MatMulFusion", x, net.weights(16, 16), activation_type="RELU")
    model = net.model(net("Softmax", net("MatMulFusion", y, net.weights(16, 8)), axis=[-1]))
    data = images(1, 16)
    before = answers(loaded(model), data[:1])[0]
    result = quantize_full(model, FullQuantization(calibration=data, integer_results=True))
    assert result.casts == 2 and np.abs(answers(loaded(model), data[:1])[0] - before).max() < 0.1
    layers = [n for n in model.nodes if n.primitive.kind == "MatMulFusion"]
    assert all(model.allTensors[int(n.outputIndex[0])].dataType == 32 for n in layers)


def test_numbers_are_cast_once_for_several_readers_and_borders_stay():
    net = Net(1)
    x = net.input(1, 16)
    y = net("MatMulFusion", x, net.weights(16, 16))
    z = net("MatMulFusion", x, net.weights(16, 16))
    w = net("MatMulFusion", y, net.weights(16, 16))
    model = net.model(y, z, w)
    data = images(1, 16)
    quantize_full(model, FullQuantization(calibration=data))
    # One of x; y is an output and data of a layer: integers, and numbers of them.
    assert kinds_of(model).count("QuantDTypeCast") == 2
    assert [model.allTensors[int(i)].dataType for i in model.outputIndex] == [43, 43, 43]
    integers = [n for n in model.nodes if n.primitive.kind == "MatMulFusion"]
    assert [model.allTensors[int(n.outputIndex[0])].dataType for n in integers].count(32) == 1


def test_a_branch_of_numbers_meets_integers_with_the_fewest_casts():
    net = Net(2)
    x = net.input(1, 8, 8, 16)
    a = net.conv(x, 16, 16, 3, pad_list=[1] * 4)
    b = net("Softmax", x, axis=[-1])
    joined = net("AddFusion", a, b)
    model = net.model(net.conv(joined, 16, 16, 1), net.conv(a, 16, 16, 1))
    quantize_full(model, FullQuantization(calibration=images(1, 8, 8, 16)))
    # Of x, and one more: of b, which is added as integers.
    assert kinds_of(model).count("QuantDTypeCast") == 2
    assert next(n for n in model.nodes if n.primitive.kind == "AddFusion").quantType == 5


def test_what_cannot_be_quantized_says_why():
    net = Net(6)
    x = net.input(1, 6, 6, 8)
    y = net.conv(x, 8, 8, 3, group=2)
    y = net.conv(y, 8, 8, 1)
    model = net.model(net.conv(y, 8, 12, 3))
    names = [n.name for n in model.nodes]
    result = quantize_full(
        model, FullQuantization(calibration=images(1, 6, 6, 8), skip=[names[1]], min_channels=4)
    )
    why = [layer.why for layer in result.layers]
    assert "2 groups" in why[0] and "skipped" in why[1] and why[2] == ""


# ---- data


def model_of_images(shape=(1, 8, 8, 3)) -> Table:
    net = Net(9)
    x = net.input(*shape)
    return net.model(net.conv(x, 3, 8, 3))


@pytest.fixture
def folder(tmp_path):
    for i in range(3):
        RNG.normal(size=(1, 8, 8, 3)).astype(np.float32).tofile(tmp_path / f"{i}.bin")
    return tmp_path


def bins(path, **more) -> FullQuantization:
    return FullQuantization(calibration=Folders(paths={"x0": str(path)}, images=False, **more))


def pictures(path, **more) -> FullQuantization:
    return FullQuantization(calibration=Folders(paths={"x0": str(path)}, **more))


def test_raw_tensors_and_a_single_array_calibrate(folder):
    first = quantize_full(model_of_images(), bins(folder, most=1))
    array = np.fromfile(folder / "0.bin", np.float32).reshape(1, 8, 8, 3)
    second = quantize_full(model_of_images(), FullQuantization(calibration=[{"x0": array}]))
    assert first.outputs == second.outputs
    assert quantize_full(model_of_images(), bins(folder)).outputs != first.outputs


@pytest.mark.parametrize("colour", ["RGB", "BGR", "GRAY"])
def test_images_are_resized_cropped_and_normalized(colour, tmp_path):
    from PIL import Image

    pixels = RNG.integers(0, 256, (31, 17, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "odd.png")
    channels = 1 if colour == "GRAY" else 3
    net = Net(9)
    x = net.input(1, 8, 8, channels)
    model = net.model(net.conv(x, channels, 8, 3))
    mean, std = [120.0] * channels, [60.0] * channels
    how = pictures(tmp_path, colour=colour, resize=(12, 10), crop=(8, 8), mean=mean, std=std)
    result = quantize_full(model, how)
    (grid,) = [g for t, g in result.grids.items() if result.numbers.allTensors[t].name == "x0"]
    assert 1 < 255 * grid.scale < 5 and all(c > 0.99 for c in result.outputs.values())


def test_what_is_wrong_with_data_is_told(folder, tmp_path_factory):
    def refused(how, *words, model=None):
        made = model if model is not None else model_of_images()
        before = made.copy()
        with pytest.raises(ValueError) as error:
            quantize_full(made, how)
        assert all(w in str(error.value) for w in words), str(error.value)
        assert made == before

    empty = tmp_path_factory.mktemp("empty")
    refused(bins(empty), "empty", str(empty), "x0")
    refused(bins(empty / "none"), "cannot be read")
    refused(FullQuantization(calibration=Folders(paths={"y": str(folder)})), "no input is called 'y'", "x0")
    (folder / "short.bin").write_bytes(bytes(100))
    refused(bins(folder), "short.bin", "100 bytes", "768")
    (folder / "short.bin").unlink()
    np.full((1, 8, 8, 3), np.nan, np.float32).tofile(folder / "nan.bin")
    refused(bins(folder), "nan.bin", "NaN")
    (folder / "nan.bin").unlink()
    (folder / "more").mkdir()
    refused(bins(folder), "'more', which is no file")
    (folder / "more").rmdir()
    refused(pictures(folder), "0.bin", "no image")
    refused(FullQuantization(calibration=[np.zeros((1, 8, 8, 3))]), "float32", "float64")
    refused(FullQuantization(calibration=[np.zeros((1, 9, 8, 3), np.float32)]), "[1, 9, 8, 3]")
    refused(FullQuantization(calibration=[{"z": np.zeros((1, 8, 8, 3), np.float32)}]), "x0", "z")
    huge = [np.full((1, 8, 8, 3), 3e38, np.float32)]
    refused(FullQuantization(calibration=huge), "Conv2DFusion_0:0", "infinite")


def test_images_of_several_sizes_do_not_go_together(tmp_path):
    from PIL import Image

    for i, size in enumerate(((8, 8), (9, 8))):
        Image.fromarray(np.zeros((*size, 3), np.uint8)).save(tmp_path / f"{i}.png")
    with pytest.raises(ValueError, match="1.png .* 8 x 9 .*resize_width"):
        quantize_full(model_of_images(), pictures(tmp_path))
    with pytest.raises(ValueError, match="0.png and .*1.png go together"):
        quantize_full(model_of_images((2, 8, 8, 3)), pictures(tmp_path))
    quantize_full(model_of_images((2, 8, 8, 3)), pictures(tmp_path, resize=(8, 8)))


def test_what_is_wrong_with_the_model_is_told():
    data = images(1, 8, 8, 3)
    with pytest.raises(ValueError, match="no node is called 'nobody'"):
        quantize_full(model_of_images(), FullQuantization(calibration=data, skip=["nobody"]))
    with pytest.raises(ValueError, match="no layers to quantize.*of at most 8 channels"):
        quantize_full(model_of_images(), FullQuantization(calibration=data, min_channels=8))
    net = Net(1)
    x = net.input(1, 8)
    with pytest.raises(ValueError, match="no layers to quantize$"):
        quantize_full(net.model(net.activation(x, "RELU")), FullQuantization(calibration=images(1, 8)))
    model = model_of_images()
    weights = next(t for t in model.allTensors if len(t.data))
    array = np.frombuffer(weights.data, np.float32).copy()
    array[3] = np.nan
    weights.data = array.tobytes()
    with pytest.raises(ValueError, match="elements that are NaN"):
        quantize_full(model, FullQuantization(calibration=data))


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"calibration": []}, ValueError, "no data"),
        ({"calibration": "folder"}, TypeError, "calibration must be"),
        ({"calibration": [3]}, TypeError, r"calibration\[0\]"),
        ({"method": "MEAN"}, ValueError, "MAX_MIN, KL"),
        ({"target_cosine": 1.5}, ValueError, "target_cosine"),
        ({"per_channel": 1}, TypeError, "per_channel"),
        ({"min_size": -1}, ValueError, "min_size"),
        ({"skip": "conv"}, TypeError, "skip"),
    ],
)
def test_fields_are_checked(fields, error, words):
    with pytest.raises(error, match=words):
        FullQuantization(**{"calibration": [np.zeros(1, np.float32)], **fields})


# ---- by the converter


CONFIG = """
[common_quant_param]
quant_type=FULL_QUANT
min_quant_weight_channel=0
debug_info_save_path={report}
[full_quant_param]
activation_quant_method=KL
[data_preprocess_param]
calibrate_path=x:{data}
calibrate_size=5
input_type=BIN
"""


@pytest.fixture
def data_of_lenet(lenet, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for i, image in enumerate(lenet[1]):
        image[None].tofile(folder / f"{i}.bin")
    return folder


def test_a_configuration_quantizes_with_all_reports(lenet, data_of_lenet, tmp_path):
    config = tmp_path / "full.cfg"
    config.write_text(CONFIG.format(report=tmp_path / "report", data=data_of_lenet))
    report = mslite.Converter().convert(
        mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "lenet"), config_file=str(config)
    )
    model = read(report.path)
    assert kinds_of(model).count("QuantDTypeCast") == 2 and report.quantized.outputs["output0"] > 0.99
    found = answers(loaded(model), [lenet[1]])[0]  # the batch is as open as it was
    assert np.abs(found - lenet[2]).max() < 0.2 * np.abs(lenet[2]).max()
    lines = {
        name: list(csv.DictReader(open(tmp_path / "report" / name)))
        for name in ("quant_param.csv", "output_summary.csv", "round_1.csv", "round_5.csv")
    }
    assert [line["Round"] for line in lines["output_summary.csv"]] == list("12345")
    assert all(float(line["CosineSimilarity"]) > 0.98 for line in lines["output_summary.csv"])
    first = lines["round_1.csv"]
    assert {line["TensorTypeFlag"] for line in first} == {"Activation", "Weight"}
    assert {line["InOutFlag"] for line in first} == {"Input", "Output"}
    for before, after in zip(first[::2], first[1::2], strict=True):
        assert (before["DataTypeFlag"], after["DataTypeFlag"]) == ("Origin", "Dequant")
        assert abs(float(before["Mean"]) - float(after["Mean"])) < 0.05 * (float(before["Max"]) + 0.1)
    assert len(lines["quant_param.csv"]) > 6 + 16 + 120 + 84 + 10
    page = (tmp_path / "report" / "quantization.html").read_text()
    assert "<h1>Outputs</h1>" in page and "output0" in page


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("quant_type=FULL_QUANT", "quant_type=FULL_QUANT\nbit_num=7"), "bit_num must be 8 for FULL_QUANT"),
        (("KL", "MEDIAN"), "activation_quant_method must be one of"),
        (("calibrate_path=x:", "calibrate_path="), "calibrate_path must be like input:folder"),
        (("calibrate_size=5", "calibrate_size=0"), "calibrate_size must be from 1 to 65535"),
        (("input_type=BIN", "input_type=TEXT"), "input_type must be one of"),
        (("input_type=BIN", "input_type=BIN\nsize=3"), "no key 'size'"),
        (("input_type=BIN", "input_type=IMAGE\nresize_width=3"), "resize_width alone"),
        (("input_type=BIN", "input_type=IMAGE\nnormalize_mean=[a]"), "normalize_mean must be numbers"),
        (("input_type=BIN", "input_type=IMAGE\nnormalize_std=[1,0,1]"), "std must not be 0"),
        (("[full_quant_param]", "[weight_quant_param]\nper_channel=true\n[full_quant_param]"),
         r"\[weight_quant_param\] is for quant_type WEIGHT_QUANT"),
        (("calibrate_path=x:", "calibrate_path=q:"), "no input is called 'q'"),
        (("activation_quant_method=KL", "target_device=DSP"), "target_device"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_told(change, words, lenet, data_of_lenet, tmp_path):
    config = tmp_path / "full.cfg"
    config.write_text(CONFIG.format(report="", data=data_of_lenet).replace(*change))
    with pytest.raises((ConversionError, NotImplementedError), match=words):
        mslite.Converter().convert(
            mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "out"), config_file=str(config)
        )
    assert not (tmp_path / "out.ms").exists()
