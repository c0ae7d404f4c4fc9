"""TFLITE files to `.ms` files: borders, layout, open sizes, sparse weights, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite import format
from mycelia_lite.converter import Code, ConversionError, convert

from .tflite_models import Builder, answers, of_one, run, scaled, table


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def windows(x, kernel, strides, pads, fill=0.0):
    """Windows [N, H, W, kh, kw, C] of images that are padded (top, bottom), (left, right)."""
    padded = np.pad(x, ((0, 0), *pads, (0, 0)), constant_values=fill)
    found = np.lib.stride_tricks.sliding_window_view(padded, kernel, (1, 2))
    return found[:, :: strides[0], :: strides[1]].transpose(0, 1, 2, 4, 5, 3)


def conv(x, weight, bias, strides=(1, 1), pads=((0, 0), (0, 0))):
    return np.einsum("nhwijc,oijc->nhwo", windows(x, weight.shape[1:3], strides, pads), weight) + bias


def image_network():
    """A network of images with the channels last, and what it computes on images with any batch."""
    w1, b1 = normal(8, 3, 3, 3, seed=1), normal(8, seed=2)
    w2, b2 = normal(1, 3, 3, 8, seed=3), normal(8, seed=4)
    w3, b3 = normal(5, 16 * 4, seed=5), normal(5, seed=6)
    made = Builder()
    made.tensor("x", shape=(1, 9, 9, 3), signature=(-1, 9, 9, 3))
    for name, array in dict(w1=w1, b1=b1, w2=w2, b2=b2, w3=w3, b3=b3).items():
        made.constant(name, array)
    made.constant("shape", np.array([-1, 64], np.int32))
    made.tensor("c1", shape=(1, 5, 5, 8))
    made.tensor("c2", shape=(1, 5, 5, 8))
    made.tensor("sum", shape=(1, 5, 5, 8))
    made.tensor("joined", shape=(1, 5, 5, 16))
    made.tensor("pooled", shape=(1, 2, 2, 16))
    made.tensor("flat", shape=(1, 64))
    made.tensor("y", shape=(1, 5))
    made.add(
        "CONV_2D",
        ["x", "w1", "b1"],
        ["c1"],
        table("Conv2DOptions", padding="SAME", stride_h=2, stride_w=2, fused_activation_function="RELU6"),
    )
    made.add(
        "DEPTHWISE_CONV_2D",
        ["c1", "w2", "b2"],
        ["c2"],
        table("DepthwiseConv2DOptions", padding="SAME", stride_h=1, stride_w=1, depth_multiplier=1),
    )
    made.add("ADD", ["c1", "c2"], ["sum"], table("AddOptions", fused_activation_function="RELU"))
    made.add("CONCATENATION", ["sum", "c1"], ["joined"], table("ConcatenationOptions", axis=-1))
    made.add(
        "MAX_POOL_2D",
        ["joined"],
        ["pooled"],
        table("Pool2DOptions", padding="VALID", stride_h=2, stride_w=2, filter_height=2, filter_width=2),
    )
    made.add("RESHAPE", ["pooled", "shape"], ["flat"])
    made.add("FULLY_CONNECTED", ["flat", "w3", "b3"], ["y"], table("FullyConnectedOptions"))
    made.borders(["x"], ["y", "joined"])

    def expected(x):
        before = x.shape[1] % 2  # SAME padding: one less in front where the stride divides the size
        c1 = np.clip(conv(x, w1, b1, (2, 2), ((before, 1), (before, 1))), 0, 6)
        c2 = np.einsum("nhwijc,ijc->nhwc", windows(c1, (3, 3), (1, 1), ((1, 1), (1, 1))), w2[0]) + b2
        joined = np.concatenate([np.maximum(c1 + c2, 0), c1], 3)
        pooled = windows(joined, (2, 2), (2, 2), ((0, 0), (0, 0))).max((3, 4))
        return pooled.reshape(len(x), -1) @ w3.T + b3, joined

    return made, expected


@pytest.mark.parametrize("batch", [1, 3])
def test_an_image_network_becomes_a_file_that_answers_alike(tmp_path, batch):
    made, expected = image_network()
    report = mslite.Converter().convert(
        mslite.FmkType.TFLITE, made.write(tmp_path / "net.tflite"), str(tmp_path / "net")
    )
    model = mslite.Model()
    model.build_from_file(report.path)
    (given,) = model.get_inputs()
    assert (given.name, given.shape) == ("x", [-1, 9, 9, 3])
    assert [o.name for o in model.get_outputs()] == ["y", "joined"]
    x = normal(batch, 9, 9, 3, seed=9)
    for found, wanted in zip(run(report.path, x), expected(x)):
        assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_same_padding_follows_the_size_that_a_model_is_resized_to(tmp_path):
    made, expected = image_network()
    report = convert(mslite.FmkType.TFLITE, made.write(tmp_path / "net.tflite"), str(tmp_path / "net"))
    x = normal(2, 8, 8, 3, seed=9)
    for found, wanted in zip(run(report.path, x), expected(x), strict=True):
        assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_images_with_the_channels_last_are_never_turned(tmp_path):
    made, _ = image_network()
    report = convert(mslite.FmkType.TFLITE, made.write(tmp_path / "net.tflite"), str(tmp_path / "net"))
    kinds = [node.primitive.kind for node in format.read(report.path).nodes]
    assert kinds.count("Conv2DFusion") == 2 and "Transpose" not in kinds
    assert report.fusions["ConvActivationFusion"] == 1


def test_inputs_get_the_shapes_that_are_asked_for(tmp_path):
    made, _ = image_network()
    path = made.write(tmp_path / "net.tflite")
    converter = mslite.Converter()
    converter.input_shape = {"x": [2, 9, 9, 3]}
    model = mslite.Model()
    model.build_from_file(converter.convert(mslite.FmkType.TFLITE, path, str(tmp_path / "net")).path)
    assert model.get_inputs()[0].shape == [2, 9, 9, 3]
    for shapes in ({"z": [1, 9, 9, 3]}, {"x": [1, 9]}):
        converter.input_shape = shapes
        with pytest.raises(ConversionError, match=next(iter(shapes))) as error:
            converter.convert(mslite.FmkType.TFLITE, path, str(tmp_path / "net"))
        assert error.value.code is Code.INPUT_PARAM_INVALID


def sparse_weights():
    """A matrix [4, 6] of which 2 x 2 blocks are there, in the file's form, and as it is."""
    dense = np.zeros((4, 6), np.float16)
    dense[0:2, 2:4], dense[2:4, 0:2], dense[2:4, 4:6] = (
        [[1, 2], [3, 4]],
        [[5, 6], [7, 8]],
        [[9, 10], [11, 12]],
    )
    levels = [
        table("DimensionMetadata", dense_size=2),
        table(
            "DimensionMetadata", format="SPARSE_CSR",
            array_segments=table("Uint8Vector", values=bytes([0, 1, 3])),
            array_indices=table("Uint16Vector", values=[1, 0, 2]),
        ),
        table("DimensionMetadata", dense_size=2), table("DimensionMetadata", dense_size=2),
    ]  # fmt: skip
    how = table("SparsityParameters", traversal_order=[0, 1, 2, 3], block_map=[0, 1], dim_metadata=levels)
    return how, np.arange(1, 13, dtype=np.float16), dense


def sparse_model(how, values):
    made = Builder()
    made.tensor("x", shape=(2, 6))
    made.tensor("w", "float16", (4, 6), values.tobytes(), sparsity=how)
    made.tensor("half", "float16", (4, 6))
    made.tensor("wide", shape=(4, 6))
    made.tensor("y", shape=(2, 4))
    made.add("DENSIFY", ["w"], ["half"])
    made.add("DEQUANTIZE", ["half"], ["wide"])
    made.add("FULLY_CONNECTED", ["x", "wide", None], ["y"], table("FullyConnectedOptions"))
    made.borders(["x"], ["y"])
    return made


def test_sparse_weights_of_16_bits(tmp_path):
    how, values, dense = sparse_weights()
    x = normal(2, 6)
    (found,) = answers(tmp_path, sparse_model(how, values), x)
    assert np.allclose(found, x @ dense.T.astype(np.float32), atol=1e-5)


@pytest.mark.parametrize("fault", ["values", "indices", "segments", "order", "block"])
def test_sparse_weights_that_do_not_fit_are_refused(tmp_path, fault):
    how, values, _ = sparse_weights()
    if fault == "values":
        values = values[:8]
    elif fault == "indices":
        how.dim_metadata[1].array_indices = table("Uint16Vector", values=[1, 0, 3])
    elif fault == "segments":
        how.dim_metadata[1].array_segments = table("Uint8Vector", values=bytes([0, 4, 3]))
    elif fault == "order":
        how.traversal_order = [0, 1, 1, 3]
    else:
        how.dim_metadata[3].dense_size = 4
    with pytest.raises(ConversionError, match="sparse tensor 'w'") as error:
        answers(tmp_path, sparse_model(how, values), normal(2, 6))
    assert error.value.code is Code.GRAPH_FILE_ERROR


def test_unknown_operators_are_listed_all_at_once(tmp_path):
    made = Builder()
    made.tensor("x", shape=(4,))
    made.tensor("y", shape=(4,))
    made.tensor("z", shape=(4,))
    made.add("SKIP_GRAM", ["x"], ["y"])
    made.add("CUSTOM.Mine", ["y"], ["z"])
    made.borders(["x"], ["z"])
    with pytest.raises(ConversionError, match=r"CUSTOM.Mine \(node 'z'\), SKIP_GRAM \(node 'y'\)") as error:
        answers(tmp_path, made, normal(4))
    assert error.value.code is Code.NOT_FIND_OP


@pytest.mark.parametrize(
    ("kind", "options", "words"), [
        ("ADD", table("AddOptions", fused_activation_function="SIGN_BIT"), "fused_activation_function"),
        ("ADD", table("AddOptions", fused_activation_function=77), "fused_activation_function"),
        ("MAXIMUM", table("AddOptions", pot_scale_int16=False), "pot_scale_int16"),
        ("SUB", table("AddOptions"), "options are AddOptions"),
    ]
)  # fmt: skip
def test_options_that_are_not_handled_are_refused_by_name(tmp_path, kind, options, words):
    x = normal(2, 3)
    made = of_one(kind, [x, x], [("float32", x.shape)], options)
    with pytest.raises(ConversionError, match=rf"node 'y0' \({kind}\).*{words}"):
        answers(tmp_path, made, x, x)


def test_a_graph_that_names_what_is_not_there_is_refused(tmp_path):
    for change in ("tensor", "buffer", "code", "version", "order"):
        made = of_one("ABS", [normal(2)], [("float32", (2,))])
        if change == "tensor":
            made.operators[0].inputs = [7]
        elif change == "buffer":
            made.tensors[0].buffer = 9
            made.graphs[0].inputs = []
        elif change == "code":
            made.operators[0].opcode_index = 3
        elif change == "order":
            made.graphs[0].inputs = []
        model = made.model()
        if change == "version":
            model.version = 1
        path = tmp_path / "m.tflite"
        path.write_bytes(format.encode(model))
        with pytest.raises(ConversionError) as error:
            answers(tmp_path, str(path), normal(2))
        assert error.value.code in (Code.GRAPH_FILE_ERROR, Code.NOT_SUPPORT), change


def test_weights_of_16_bits_stay_so(tmp_path):
    how, values, dense = sparse_weights()
    made = sparse_model(how, values)
    answers(tmp_path, made, normal(2, 6))
    (weight,) = [t for t in format.read(tmp_path / "m.ms").allTensors if len(t.data)]
    assert weight.dataType.name == "FLOAT16" and len(weight.data) == dense.nbytes


# ---- integers that stand for numbers


def quantized_conv(dtype, padding):
    """A convolution of integers, and what it computes in exact integers."""
    rng = np.random.default_rng(3)
    limits = np.iinfo(dtype)
    zero, out_zero = (5, -7) if dtype == "int8" else (131, 120)
    x = rng.integers(limits.min, limits.max + 1, (2, 7, 6, 3)).astype(dtype)
    weight = rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    bias = rng.integers(-3000, 3000, 4).astype(np.int32)
    scales = np.array([0.011, 0.007, 0.02, 0.005], np.float32)
    made = Builder()
    made.tensor("x", dtype, x.shape, quantization=scaled(0.05, zero))
    made.constant("w", weight, scaled(scales, [0] * 4))
    made.constant("b", bias, scaled(scales * np.float32(0.05), [0] * 4))
    pads = ((1, 1), (0, 1)) if padding == "SAME" else ((0, 0), (0, 0))
    wide = conv(x.astype(np.int64) - zero, weight.astype(np.int64), bias, (2, 2), pads)
    factor = np.float64(np.float32(0.05)) * scales / np.float64(np.float32(0.7))
    wanted = np.clip(np.round(wide * factor) + out_zero, max(out_zero, limits.min), limits.max)
    made.tensor("y", dtype, wanted.shape, quantization=scaled(0.7, out_zero))
    made.add(
        "CONV_2D",
        ["x", "w", "b"],
        ["y"],
        table("Conv2DOptions", padding=padding, stride_h=2, stride_w=2, fused_activation_function="RELU"),
    )
    made.borders(["x"], ["y"])
    return made, x, wanted.astype(dtype)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_convolution_of_integers_is_exact(tmp_path, dtype, padding):
    made, x, wanted = quantized_conv(dtype, padding)
    (found,) = answers(tmp_path, made, x)
    assert found.dtype == x.dtype and np.array_equal(found, wanted)
    assert len(np.unique(wanted)) > 20


def test_sums_of_integers_with_three_scales_are_at_most_one_step_off(tmp_path):
    a, b = (np.random.default_rng(s).integers(-128, 128, (3, 40)).astype(np.int8) for s in (1, 2))
    how = scaled(0.1, 4), scaled(0.07, -9)
    made = of_one("ADD", [a, b], [("int8", a.shape, scaled(0.15, 1))], table("AddOptions"), quantizations=how)
    (found,) = answers(tmp_path, made, a, b)
    exact = ((a - 4.0) * np.float32(0.1) + (b + 9.0) * np.float32(0.07)) / np.float32(0.15) + 1
    assert found.dtype == np.int8
    assert np.abs(found - np.clip(exact, -128, 127)).max() <= 0.5 + 1e-4


def test_what_moves_integers_keeps_them(tmp_path):
    x = np.arange(-12, 12, dtype=np.int8).reshape(2, 3, 4)
    order = np.array([2, 0, 1], np.int32)
    how = scaled(0.3, 2)
    made = of_one("TRANSPOSE", [x, order], [("int8", (4, 2, 3), how)], constants=(1,), quantizations=[how])
    (found,) = answers(tmp_path, made, x)
    assert np.array_equal(found, x.transpose(2, 0, 1))
    assert [n.primitive.kind for n in format.read(tmp_path / "m.ms").nodes] == ["Transpose"]


def test_numbers_and_integers_turn_into_each_other(tmp_path):
    x = np.array([-9, -1.26, -0.3, 0, 0.74, 1.0, 99], np.float32)
    made = of_one("QUANTIZE", [x], [("uint8", x.shape, scaled(0.5, 3))])
    assert answers(tmp_path, made, x)[0].tolist() == [0, 0, 2, 3, 4, 5, 201]
    q = np.array([0, 3, 255], np.uint8)
    made = of_one("DEQUANTIZE", [q], [("float32", q.shape)], quantizations=[scaled(0.5, 3)])
    assert answers(tmp_path, made, q)[0].tolist() == [-1.5, 0, 126]
