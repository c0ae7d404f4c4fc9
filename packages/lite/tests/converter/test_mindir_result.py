"""saveType=MINDIR: models of other frameworks as MindIR files, which core and MindSpore load."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn
from mycelia_lite.converter import Code, ConversionError, convert

from .onnx_models import model, node, write
from .test_options import run
from .test_tflite_graphs import delay_line

MINDIR = mslite.ModelType.MINDIR


def network(tmp_path):
    """A small ONNX network for any number of images; its path, images, and what they lead to."""
    random = np.random.default_rng(0)
    weights = {"w": random.normal(size=(4, 3, 3, 3)).astype(np.float32), "b": np.zeros(4, np.float32)}
    weights |= {"m": random.normal(size=(4, 5)).astype(np.float32)}
    nodes = [
        node("Conv", "x w b", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"),
        node("GlobalAveragePool", "r", "p"), node("Flatten", "p", "f"), node("MatMul", "f m", "y"),
    ]  # fmt: skip
    path = write(tmp_path / "m.onnx", model(nodes, {"x": ("float32", ("n", 3, 6, 6))}, "y", weights))
    x = random.normal(size=(2, 3, 6, 6)).astype(np.float32)
    report = mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "tables"))
    lite = mslite.Model()
    lite.build_from_file(report.path)
    lite.resize(lite.get_inputs(), [list(x.shape)])
    lite.get_inputs()[0].set_data_from_numpy(x)
    return path, x, lite.predict(lite.get_inputs())[0].get_data_to_numpy()


def loaded(path, x, **how):
    return nn.GraphCell(ms.load(path, **how))(ms.Tensor(x)).asnumpy()


def test_a_network_becomes_a_mindir_that_answers_alike(tmp_path):
    path, x, expected = network(tmp_path)
    run("--fmk=ONNX", f"--modelFile={path}", f"--outputFile={tmp_path}/a", "--saveType=MINDIR")
    np.testing.assert_allclose(loaded(str(tmp_path / "a.mindir"), x), expected, rtol=1e-5, atol=1e-6)
    assert not (tmp_path / "a.ms").exists()
    converter = mslite.Converter()
    converter.save_type = MINDIR
    report = converter.convert(mslite.FmkType.ONNX, path, str(tmp_path / "b.mindir"))
    assert report.path == str(tmp_path / "b.mindir")
    assert (tmp_path / "a.mindir").read_bytes() == (tmp_path / "b.mindir").read_bytes()
    again = convert(mslite.FmkType.MINDIR, report.path, str(tmp_path / "again"))
    lite = mslite.Model()
    lite.build_from_file(again.path)
    lite.resize(lite.get_inputs(), [list(x.shape)])
    lite.get_inputs()[0].set_data_from_numpy(x)
    (y,) = lite.predict(lite.get_inputs())
    np.testing.assert_allclose(y.get_data_to_numpy(), expected, rtol=1e-5, atol=1e-6)


def test_it_may_be_encrypted(tmp_path):
    path, x, expected = network(tmp_path)
    key = "30313233343536373839303132333435"
    report = convert(
        mslite.FmkType.ONNX, path, str(tmp_path / "a"), save_type=MINDIR, encrypt_key=bytes.fromhex(key)
    )
    found = loaded(report.path, x, dec_key=bytes.fromhex(key), dec_mode="AES-GCM")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("option", ["fp16", "packWeights", "check", "infer", "inputDataFormat=NCHW"])
def test_options_of_tables_are_refused(tmp_path, option):
    path, *_ = network(tmp_path)
    output = run(
        "--fmk=ONNX", f"--modelFile={path}", f"--outputFile={tmp_path}/a", "--saveType=MINDIR", f"--{option}",
        code=1,
    )  # fmt: skip
    assert "-7 saveType=MINDIR" in output and not (tmp_path / "a.mindir").exists()


def test_variables_and_tables_are_refused(tmp_path):
    path = delay_line().write(tmp_path / "m.tflite")
    with pytest.raises(NotImplementedError, match="keeps variables"):
        convert(mslite.FmkType.TFLITE, path, str(tmp_path / "a"), save_type=MINDIR)
    source, *_ = network(tmp_path)
    tables = convert(mslite.FmkType.ONNX, source, str(tmp_path / "t")).path
    with pytest.raises(NotImplementedError, match=r"a \.ms file stays tables"):
        convert(mslite.FmkType.MSLITE, tables, str(tmp_path / "a"), save_type=MINDIR)


def test_what_mindir_has_not_is_told_with_its_nodes(tmp_path):
    nodes = [node("NonZero", "x", "y", name="places")]
    path = write(tmp_path / "m.onnx", model(nodes, {"x": ("float32", (3, 4))}, "y"))
    with pytest.raises(ConversionError, match="saveType=MINDIR") as failed:
        convert(mslite.FmkType.ONNX, path, str(tmp_path / "a"), save_type=MINDIR)
    assert failed.value.code is Code.NOT_SUPPORT and "places" in str(failed.value)
    assert not (tmp_path / "a.mindir").exists()
