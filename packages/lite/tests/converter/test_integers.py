"""Weights that are integers of 8 bits in the source are such in the file; answers are those of float32."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite import runtime
from mycelia_lite.converter import integers
from mycelia_lite.enums import DataType
from mycelia_lite.format import Table, read, write

from ..runtime.test_programs import compiled
from .onnx_models import model, node
from .onnx_models import write as write_onnx
from .tflite_models import Builder, answers, of_one, scaled, table

RNG = np.random.default_rng(5)


def made(tmp_path, name, message, **properties):
    """The path of the converted model."""
    path = write_onnx(tmp_path / f"{name}.onnx", message)
    converter = mslite.Converter()
    for key, value in properties.items():
        setattr(converter, key, value)
    converter.convert(mslite.FmkType.ONNX, path, str(tmp_path / name))
    return tmp_path / f"{name}.ms"


def answer(path, x):
    loaded = mslite.Model()
    loaded.build_from_file(str(path))
    loaded.get_inputs()[0].set_data_from_numpy(x)
    return loaded.predict(loaded.get_inputs())[0].get_data_to_numpy()


def stored(path):
    """(dtype, number of scales) of all constants of 64 elements and more."""
    return [
        (t.dataType.name, len(t.quantParams))
        for t in read(str(path)).allTensors
        if len(t.data) and np.prod(t.dims) >= 64
    ]


CASES = {  # operator -> (shape of the weights, axis of scales, shape of x, attributes)
    "Conv": ((16, 8, 3, 3), 0, (1, 8, 6, 6), {}),
    "depthwise": ((64, 1, 3, 3), 0, (1, 64, 6, 6), {"group": 64}),
    "ConvTranspose": ((8, 16, 3, 3), 1, (1, 8, 6, 6), {}),
    "MatMul": ((72, 16), 1, (4, 72), {}),
    "Gemm": ((16, 72), 0, (4, 72), {"transB": 1}),
}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("kind", CASES)
def test_dequantized_weights(tmp_path, kind, many, dtype):
    shape, axis, of_x, attributes = CASES[kind]
    limits = np.iinfo(dtype)
    weight = RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)
    count = (shape[axis],) if many else ()
    scale = np.asarray(RNG.uniform(1e-3, 0.1, count), np.float32)
    zero = np.asarray(RNG.integers(limits.min, limits.max + 1, count)).astype(dtype)
    operator = node({"depthwise": "Conv"}.get(kind, kind), "x w", "y", name="it", **attributes)
    inputs = {"x": ("float32", of_x)}
    widen = node("DequantizeLinear", "q s z", "w", axis=axis)
    small = made(
        tmp_path, "small", model([widen, operator], inputs, "y", {"q": weight, "s": scale, "z": zero})
    )
    spread = [n.reshape([-1 if many and i == axis else 1 for i in range(len(shape))]) for n in (scale, zero)]
    floats = (weight.astype(np.float32) - spread[1].astype(np.float32)) * spread[0]
    large = made(tmp_path, "large", model([operator], inputs, "y", {"w": floats}))
    # 64 scales of 28 bytes for 9 elements each would not make it smaller; see `integers` for the transpose
    wide = many and kind in ("depthwise", "ConvTranspose")
    assert stored(small) == [("FLOAT32", 0) if wide else ("INT8", shape[axis] if many else 1)]
    if not many:
        assert small.stat().st_size < large.stat().st_size - 2 * weight.size
    x = RNG.normal(size=of_x).astype(np.float32)
    np.testing.assert_array_equal(answer(small, x), answer(large, x))
    for option in ("pack_weights", "weight_fp16"):  # integers stay what they are
        message = model([widen, operator], inputs, "y", {"q": weight, "s": scale, "z": zero})
        other = made(tmp_path, option, message, **{option: True})
        assert stored(other)[0][0] in (("INT8",) if not wide else ("FLOAT32", "FLOAT16"))
        np.testing.assert_allclose(answer(other, x), answer(small, x), rtol=2e-3, atol=0.1)


def test_products_of_integers(tmp_path):
    """QLinearMatMul and ConvInteger add up int32 exactly; their weights lie as 8 bits in the file."""
    weight = RNG.integers(-128, 128, (72, 16)).astype(np.int8)
    quantized = node("QLinearMatMul", "x xs xz w ws wz ys yz", "y", name="it")
    weights = {
        "xs": np.float32(0.1), "xz": np.uint8(3), "w": weight, "ws": np.float32(0.02), "wz": np.int8(0),
        "ys": np.float32(2), "yz": np.uint8(100),
    }  # fmt: skip
    path = made(tmp_path, "product", model([quantized], {"x": ("uint8", (4, 72))}, "y", weights))
    assert stored(path) == [("INT8", 0)]
    x = RNG.integers(0, 256, (4, 72)).astype(np.uint8)
    sums = (x.astype(np.int64) - 3) @ weight
    factor = np.float32(0.1) * np.float32(0.02) / np.float32(2)
    exact = np.clip(np.round(sums.astype(np.float32) * factor) + 100, 0, 255)
    np.testing.assert_array_equal(answer(path, x), exact)

    weight = RNG.integers(0, 256, (8, 3, 3, 3)).astype(np.uint8)
    convolution = node("ConvInteger", "x w", "y", name="it")
    path = made(tmp_path, "conv", model([convolution], {"x": ("uint8", (1, 3, 3, 3))}, "y", {"w": weight}))
    assert stored(path) == [("UINT8", 0)]
    x = RNG.integers(0, 256, (1, 3, 3, 3)).astype(np.uint8)
    np.testing.assert_array_equal(
        answer(path, x).ravel(), weight.reshape(8, -1).astype(int) @ x.ravel().astype(int)
    )


@pytest.mark.parametrize("many", [False, True])
def test_layers_of_tensorflow_lite(tmp_path, many):
    scale = RNG.uniform(0.01, 0.02, 24 if many else 1).astype(np.float32)
    built = Builder()
    built.tensor("x", "int8", (2, 40), quantization=scaled(0.05, 3))
    built.constant(
        "w", RNG.integers(-127, 128, (24, 40)).astype(np.int8), scaled(scale, np.zeros(len(scale), int))
    )
    built.tensor("y", "int8", (2, 24), quantization=scaled(0.5, -7))
    built.add("FULLY_CONNECTED", ["x", "w"], ["y"], table("FullyConnectedOptions"))
    built.borders(["x"], ["y"])
    built.write(tmp_path / "m.tflite")
    mslite.Converter().convert(mslite.FmkType.TFLITE, str(tmp_path / "m.tflite"), str(tmp_path / "m"))
    assert stored(tmp_path / "m.ms")[0] == ("INT8", 0)  # scales are those of the sums


def test_a_converted_file_is_a_source_too(tmp_path):
    weight = RNG.integers(-128, 128, (16, 8, 3, 3)).astype(np.int8)
    weights = {"q": weight, "s": RNG.uniform(0.01, 0.02, 16).astype(np.float32), "z": np.zeros(16, np.int8)}
    nodes = [node("DequantizeLinear", "q s z", "w", axis=0), node("Conv", "x w", "y")]
    first = made(tmp_path, "first", model(nodes, {"x": ("float32", (1, 8, 6, 6))}, "y", weights))
    mslite.Converter().convert(mslite.FmkType.MSLITE, str(first), str(tmp_path / "second"))
    second = tmp_path / "second.ms"
    assert stored(second) == stored(first) == [("INT8", 16)]
    x = RNG.normal(size=(1, 8, 6, 6)).astype(np.float32)
    np.testing.assert_array_equal(answer(second, x), answer(first, x))


def product():
    """A file of one product with weights of 8 bits as MindSpore Lite writes them, and their numbers."""
    weight = RNG.integers(-128, 128, (16, 72)).astype(np.int8)
    scale = RNG.uniform(0.01, 0.02, 16)
    params = [
        Table("QuantParam", scale=float(s), zeroPoint=i - 8, varCorr=1.01, meanCorr=0.002)
        for i, s in enumerate(scale)
    ]
    tensors = [
        Table("Tensor", nodeType=2, dataType=43, dims=[4, 72], name="x"),
        Table(
            "Tensor",
            nodeType=0,
            dataType=32,
            dims=[16, 72],
            name="w",
            data=weight.tobytes(),
            quantParams=params,
        ),
        Table("Tensor", nodeType=2, dataType=43, dims=[4, 16], name="y"),
    ]
    layer = Table("CNode", name="it", primitive=Table("MatMulFusion", transpose_b=True), quantType=4)
    layer.inputIndex, layer.outputIndex = [0, 1], [2]
    file = Table("MetaGraph", nodes=[layer], allTensors=tensors, inputIndex=[0], outputIndex=[2])
    file.subGraph = [
        Table(
            "SubGraph",
            name="s",
            inputIndices=[0],
            outputIndices=[2],
            nodeIndices=[0],
            tensorIndices=[0, 1, 2],
        )
    ]
    zero = np.arange(16)[:, None] - 8
    return file, (weight - zero) * scale[:, None] * np.float32(1.01) + np.float32(0.002)


def test_files_with_corrections(tmp_path):
    file, numbers = product()
    write(str(tmp_path / "m.ms"), file)
    x = RNG.normal(size=(4, 72)).astype(np.float32)
    np.testing.assert_allclose(answer(tmp_path / "m.ms", x), x @ numbers.T, rtol=1e-4, atol=1e-4)
    (scales,) = integers.restore(file)
    assert scales.shape == (16,) and file.allTensors[1].dataType == int(DataType.FLOAT32)
    restored = np.frombuffer(file.allTensors[1].data, np.float32).reshape(16, 72)
    np.testing.assert_allclose(restored, numbers, rtol=1e-5, atol=1e-6)


def test_weights_of_8_bits_can_be_exchanged(tmp_path):
    file, _ = product()
    write(str(tmp_path / "m.ms"), file)
    loaded = mslite.Model()
    loaded.build_from_file(str(tmp_path / "m.ms"))
    new = mslite.Tensor(shape=[16, 72], dtype=mslite.DataType.INT8)
    new.name = "w"
    new.set_data_from_numpy(np.zeros((16, 72), np.int8))
    loaded.update_weights([new])
    x = RNG.normal(size=(4, 72)).astype(np.float32)
    loaded.get_inputs()[0].set_data_from_numpy(x)
    found = loaded.predict(loaded.get_inputs())[0].get_data_to_numpy()
    numbers = [
        (0 - (i - 8)) * p.scale * np.float32(1.01) + 0.002
        for i, p in enumerate(file.allTensors[1].quantParams)
    ]
    np.testing.assert_allclose(found, x.sum(1, keepdims=True) * numbers, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: setattr(f.nodes[0], "quantType", 5), "must be constants of int8"),
        (lambda f: setattr(f.nodes[0], "quantType", 0), "does not compute yet"),
        (lambda f: f.allTensors[1].quantParams.pop(), "15 scales do not fit"),
        (lambda f: setattr(f.nodes[0].primitive, "transpose_b", False), "16 scales do not fit"),
        (lambda f: setattr(f.allTensors[1], "weightQuantCompressType", 4), "does not compute yet"),
        (lambda f: setattr(f.allTensors[1], "data", bytes(16 * 72 - 1)), "do not fit its shape"),
    ],
)  # fmt: skip
def test_other_forms_are_refused(tmp_path, change, reason):
    file, _ = product()
    change(file)
    write(str(tmp_path / "m.ms"), file)
    with pytest.raises(RuntimeError, match=reason):
        mslite.Model().build_from_file(str(tmp_path / "m.ms"))


def test_weights_of_float16_can_be_exchanged(tmp_path):
    weights = {"w": RNG.normal(size=(72, 16)).astype(np.float32)}
    message = model([node("MatMul", "x w", "y")], {"x": ("float32", (4, 72))}, "y", weights)
    path = made(tmp_path, "m", message, weight_fp16=True)
    loaded = mslite.Model()
    loaded.build_from_file(str(path))
    (weight,) = [t for t in read(str(path)).allTensors if len(t.data)]
    assert weight.dataType.name == "FLOAT16"
    new = mslite.Tensor(shape=[72, 16], dtype=mslite.DataType.FLOAT16)
    new.name = weight.name
    numbers = RNG.normal(size=(72, 16)).astype(np.float16)
    new.set_data_from_numpy(numbers)
    loaded.update_weights([new])
    x = RNG.normal(size=(4, 72)).astype(np.float32)
    loaded.get_inputs()[0].set_data_from_numpy(x)
    found = loaded.predict(loaded.get_inputs())[0].get_data_to_numpy()
    np.testing.assert_allclose(found, x @ numbers.astype(np.float32), rtol=1e-4, atol=1e-4)


def test_what_integers_at_the_borders_stand_for(tmp_path):
    built = Builder()
    built.tensor("x", "int8", (2, 40), quantization=scaled(0.05, 3))
    built.constant("w", RNG.integers(-127, 128, (24, 40)).astype(np.int8), scaled(0.01, 0))
    built.tensor("y", "int8", (2, 24), quantization=scaled(0.5, -7))
    built.add("FULLY_CONNECTED", ["x", "w"], ["y"], table("FullyConnectedOptions"))
    built.borders(["x"], ["y"])
    built.write(tmp_path / "m.tflite")
    mslite.Converter().convert(mslite.FmkType.TFLITE, str(tmp_path / "m.tflite"), str(tmp_path / "m"))
    mslite.Converter().convert(mslite.FmkType.MSLITE, str(tmp_path / "m.ms"), str(tmp_path / "again"))
    for name in ("m", "again"):
        loaded = mslite.Model()
        loaded.build_from_file(str(tmp_path / f"{name}.ms"))
        (x,), (y,) = loaded.get_inputs(), loaded.get_outputs()
        assert x.quant_params == [(float(np.float32(0.05)), 3)] and y.quant_params == [(0.5, -7)]
    assert mslite.Tensor(shape=[2], dtype=mslite.DataType.INT8).quant_params == []
    converter = mslite.Converter()
    converter.input_data_type = converter.output_data_type = mslite.DataType.FLOAT32
    converter.convert(mslite.FmkType.TFLITE, str(tmp_path / "m.tflite"), str(tmp_path / "cast"))
    loaded = mslite.Model()
    loaded.build_from_file(str(tmp_path / "cast.ms"))
    assert [t.quant_params for t in (*loaded.get_inputs(), *loaded.get_outputs())] == [[], []]


PROGRAM = r"""
#include <cstdio>
#include "mycelia/lite/model.h"
int main(int, char** argv) {
  mycelia::Model model;
  auto context = std::make_shared<mycelia::Context>();
  if (!model.Build(argv[1], mycelia::kMindIR_Lite, context)) return 1;
  for (const mycelia::MSTensor& t : {model.GetInputs()[0], model.GetOutputs()[0]})
    for (const mycelia::QuantParam& p : t.QuantParams())
      std::printf("%d %g %d %g %g\n", p.bit_num, p.scale, p.zero_point, p.min, p.max);
  const auto none = context->SetBuiltInDelegate(mycelia::kNoDelegate);
  std::printf("%d %d\n", model.HasPreprocess(), none.StatusCode());
  for (const mycelia::Status& status : {model.RunStep(), model.PredictWithPreprocess({}, nullptr),
                                        model.BindGLTexture2DMemory({}, nullptr),
                                        context->SetBuiltInDelegate(mycelia::kNNAPI)})
    std::printf("%d %s\n", status.StatusCode(), status.ToString().substr(0, 12).c_str());
  context->MutableDeviceInfo().push_back(std::make_shared<mycelia::AscendDeviceInfo>());
  mycelia::Model other;
  std::printf("%d\n", other.Build(argv[1], mycelia::kMindIR_Lite, context).StatusCode());
}
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_names_of_mindspore_lite_in_cpp(tmp_path):
    file, _ = product()
    file.allTensors[0].quantParams = [Table("QuantParam", scale=0.5, zeroPoint=3)]
    file.allTensors[0].dataType = file.allTensors[2].dataType = int(DataType.UINT8)
    file.allTensors[2].quantParams = [Table("QuantParam", scale=0.25, zeroPoint=0)]
    file.nodes[0] = Table("CNode", name="it", primitive=Table("Abs"), inputIndex=[0], outputIndex=[2])
    file.allTensors[2].dims = [4, 72]
    write(str(tmp_path / "m.ms"), file)
    (tmp_path / "names.cc").write_text(PROGRAM)
    program = compiled(tmp_path, tmp_path / "names.cc", "-std=c++17", f"-I{runtime.folder()}/include")
    done = subprocess.run([program, tmp_path / "m.ms"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "8 0.5 3 -1.5 126", "8 0.25 0 0 63.75", "0 0", "0 ", "-7 PredictWithP",
        "-7 BindGLTextur", "-7 SetBuiltInDe", "-7",
    ]  # fmt: skip


def test_means_of_integers_round_halves_away_from_zero(tmp_path):
    """As LiteRT does, whose answers to these are the same: half of all means of two integers are halves."""
    x = np.random.default_rng(2).integers(-128, 128, (1, 40, 10, 3)).astype(np.int8)
    how = scaled(0.1, 3)
    options = table("Pool2DOptions", padding="VALID", stride_h=2, stride_w=1, filter_height=2, filter_width=1)
    made = of_one("AVERAGE_POOL_2D", [x], [("int8", (1, 20, 10, 3), how)], options, quantizations=[how])
    (found,) = answers(tmp_path, made, x)
    sums = x[:, ::2].astype(int) + x[:, 1::2]
    np.testing.assert_array_equal(found, np.sign(sums) * ((np.abs(sums) + 1) // 2))
