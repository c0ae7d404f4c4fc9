"""Options of a conversion: on the command line, in configuration files, as properties of the Converter."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia as ms
import mycelia_lite as mslite
from mycelia_lite.cli import app
from mycelia_lite.commands.convert import convert as command
from mycelia_lite.converter import Code, ConversionError, convert, trial
from mycelia_lite.converter.config import MODEL_KEYS
from mycelia_lite.converter.optimise import RULES
from mycelia_lite.converter.options import READERS
from mycelia_lite.format import read

MINDIR = mslite.FmkType.MINDIR


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["convert", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def answer(path, *arrays):
    model = mslite.Model()
    model.build_from_file(path)
    return model, trial.answers(model, arrays)


def test_the_command_has_every_option_in_both_spellings():
    parameters = inspect.signature(command).parameters
    assert set(parameters) == {*MODEL_KEYS, *READERS, "configFile", "explain"}
    shown = CliRunner().invoke(app, ["convert", "--help"], env={"COLUMNS": "200"}).output
    for name in parameters:
        assert re.search(rf"--{name}\b", shown), name
        assert f"--{re.sub('[A-Z]', lambda m: '-' + m[0].lower(), name)}" in shown, name


@pytest.mark.parametrize("switch", [["--infer"], ["--infer=true"], ["--infer", "on"]])
def test_switches_need_no_value(lenet, tmp_path, switch):
    run("--fmk=MINDIR", f"--modelFile={lenet[0]}", *switch, "--output-file", tmp_path / "a")
    assert (tmp_path / "a.ms").exists()


# ---- borders


@pytest.mark.parametrize("dtype", [None, mslite.DataType.FLOAT16])
@pytest.mark.parametrize("layout", [None, mslite.Format.NHWC, mslite.Format.NCHW])
def test_borders_are_changed_on_request(lenet, tmp_path, layout, dtype):
    path, images, expected = lenet
    converter = mslite.Converter()
    converter.input_format, converter.input_data_type, converter.output_data_type = layout, dtype, dtype
    converter.input_shape = {"x": [6, 1, 32, 32]}
    made = converter.convert(MINDIR, path, str(tmp_path / "a")).path
    x = images.transpose(0, 2, 3, 1) if layout is mslite.Format.NHWC else images
    kind = np.float16 if dtype else np.float32
    model, (found,) = answer(made, np.ascontiguousarray(x.astype(kind)))
    (border,) = model.get_inputs()
    assert (border.name, border.shape, border.dtype.numpy) == ("x", list(x.shape), kind)
    (out,) = model.get_outputs()
    assert (out.name, out.shape, out.dtype.numpy) == ("output0", [6, 10], kind)
    assert np.abs(found - expected).max() <= (5e-3 if dtype else 2e-6) * np.abs(expected).max()


class Halves(ms.nn.Cell):
    def construct(self, x):
        return ms.ops.relu(x), ms.ops.sum(x, (2, 3))


def test_outputs_of_rank_4_are_turned(tmp_path, write_mindir):
    path = write_mindir(Halves(), tmp_path / "h", (2, 3, 4, 5))
    x = np.random.default_rng(1).normal(size=(2, 3, 4, 5)).astype(np.float32)
    made = convert(
        MINDIR,
        path,
        str(tmp_path / "h"),
        output_format=mslite.Format.NHWC,
        output_data_type=mslite.DataType.INT32,
    )
    model, (turned, sums) = answer(made.path, x)
    assert [t.name for t in model.get_outputs()] == ["output0", "output1"]
    assert np.array_equal(turned, np.maximum(x, 0).transpose(0, 2, 3, 1).astype(np.int32))
    assert np.array_equal(sums, x.sum((2, 3)).astype(np.int32))


# ---- the configuration file


def test_one_run_converts_several_models(lenet, tmp_path):
    config = tmp_path / "all.cfg"
    block = "[model_param]\nfmk=MINDIR\nmodelFile={}\noutputFile={}\ninputShape=x:{},1,32,32\n"
    config.write_text(
        "# two sizes of one net\n"
        + "".join(block.format(lenet[0], tmp_path / f"n{n}", n) for n in (1, 4))
        + "[registry]\nfusion_blacklists=ConvActivationFusion\n"
    )
    output = run("--configFile", config)
    assert "ConvActivationFusion" not in output and output.splitlines()[-1] == "CONVERT RESULT SUCCESS:0"
    for n in (1, 4):
        assert read(tmp_path / f"n{n}.ms").allTensors[0].dims == [n, 1, 32, 32]


@pytest.mark.parametrize("off", ["disable_fusion=on", f"fusion_blacklists={','.join(RULES)}"])
def test_fusions_are_switched_off_by_the_file(lenet, tmp_path, off):
    (tmp_path / "c.cfg").write_text(f"[registry]\n{off}\n")
    made = mslite.Converter().convert(
        MINDIR, lenet[0], str(tmp_path / "a"), config_file=str(tmp_path / "c.cfg")
    )
    assert not any(made.fusions.values())
    converter = mslite.Converter()
    key, _, value = off.partition("=")
    converter.set_config_info("registry", {key: value})
    assert converter.get_config_info() == {"registry": {key: value}}
    assert not any(converter.convert(MINDIR, lenet[0], str(tmp_path / "b")).fusions.values())


def test_optimize_none_leaves_all_fusions_out(lenet, tmp_path):
    assert "fused nothing" in run(
        "--fmk=MINDIR", f"--modelFile={lenet[0]}", f"--outputFile={tmp_path / 'a'}", "--optimize=none"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[registri]\n", "FAILED:-600 configFile: {}:1: there is no section [registri], expected one of"),
        ("[registry]\nfusions=1\n", "-600 configFile: {}:1: [registry] has no key 'fusions', expected"),
        ("[registry]\ndisable_fusion=perhaps\n", "disable_fusion must be on or off, but got 'perhaps'"),
        ("[registry]\nplugin_path=a.so\n", "FAILED:-7 configFile: {}:1: plugin_path"),
        ("[registry]\n[registry]\n", "FAILED:-600 configFile: {}:2: [registry] comes twice"),
        ("[registry]\nfusion_blacklists=Nothing\n", "FAILED:-600 no fusion is called 'Nothing'"),
        ("[common_quant_param]\nbit_num=8\n", "-600 configFile: [common_quant_param] quant_type is missing"),
        ("[full_quant_param]\ntarget_device=DSP\n", "-7 configFile: {}:1: [full_quant_param] target_device"),
        ("[common_quant_param]\nbits=8\n", "-600 configFile: {}:1: [common_quant_param] has no key 'bits'"),
        ("[micro_param]\nenable_micro=true\n", "FAILED:-7 configFile: {}:1: [micro_param]: C code"),
        ("word\n", "FAILED:-600 configFile: {}:1: expected key=value"),
        ("[model_param]\nfmk=MINDIR\n", "names the models, so no other option may be given"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_told(lenet, tmp_path, text, reason):
    config = tmp_path / "c.cfg"
    config.write_text(text)
    arguments = ("--fmk=MINDIR", f"--modelFile={lenet[0]}", f"--outputFile={tmp_path / 'a'}")
    output = run(*arguments, f"--configFile={config}", code=1)
    assert reason.format(config) in output
    assert [p.name for p in tmp_path.iterdir()] == ["c.cfg"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[model_param]\nfmk=MINDIR\n", ":1: modelFile is missing"),
        ("[model_param]\nfmk=KERAS\nmodelFile=a\noutputFile=b\n", "fmk must be one of TF, CAFFE"),
        ("[model_param]\nmodel=a\n", "[model_param] has no key 'model'"),
        ("[model_param]\nfmk=MINDIR\nmodelFile=a\noutputFile=b\ninfer=1\n", ":1: infer must be on or off"),
        ("# nothing\n", "FAILED:-600 fmk is missing"),
    ],
)
def test_a_wrong_block_is_told(tmp_path, text, reason):
    (tmp_path / "c.cfg").write_text(text)
    assert reason in run(f"--configFile={tmp_path / 'c.cfg'}", code=1)


def test_an_enabled_micro_is_refused_and_a_disabled_one_is_not(lenet, tmp_path):
    (tmp_path / "c.cfg").write_text("[micro_param]\nenable_micro=false\ntarget=x86\n")
    run("--fmk=MINDIR", f"--modelFile={lenet[0]}", f"--outputFile={tmp_path / 'a'}",
        f"--configFile={tmp_path / 'c.cfg'}")  # fmt: skip


# ---- what is refused


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--inputDataFormat=NWC", "-600 inputDataFormat must be NHWC or NCHW, but got 'NWC'"),
        ("--outputDataType=STRING", "-600 outputDataType must be one of FLOAT, DEFAULT"),
        ("--fp16=half", "-600 fp16 must be on or off, but got 'half'"),
        ("--optimize=fast", "-600 optimize must be none, general, gpu_oriented or ascend_oriented"),
        (
            "--optimize=ascend_oriented:Ascend310",
            "-7 optimize=ascend_oriented:Ascend310: there are no passes",
        ),
        ("--device=Ascend", "-7 device=Ascend: there are no passes"),
        ("--trainModel=true", "-7 trainModel: the model has no step of an optimizer"),
        ("--optimizeTransformer=maybe", "-600 optimizeTransformer must be on or off, but got 'maybe'"),
        ("--saveType=ONNX", "-600 saveType must be MINDIR_LITE or MINDIR, but got 'ONNX'"),
        ("--encryptKey=30", "-600 encryptKey must be 32, 48 or 64 hexadecimal digits, but got 2 characters"),
        ("--encryption", "-600 encryption=true needs an encryptKey"),
        ("--decryptMode=SM4", "-600 decryptMode must be AES-GCM or AES-CBC, but got 'SM4'"),
        ("--tolerance=-1", "-600 tolerance must be a number above 0, but got '-1'"),
        ("--weightFile=w", "-600 weightFile is for models of CAFFE, not of MINDIR"),
        ("--signature=run", "-600 signature is for models of TFLITE, not of MINDIR"),
        ("--weightsApart=-1", "-600 weightsApart must be a number of bytes, but got '-1'"),
        ("--configFile=nowhere.cfg", "-600 configFile: the file nowhere.cfg does not exist"),
        ("--inputShape=x:0,1", "-600 inputShape must be like"),
        ("--inputShape=x:99999999999999999999,1", "-600 inputShape must be sizes up to 2147483647"),
        ("--inputShape=x:1;x:2", "-600 inputShape must be like"),
        ("--fmk=OM", "-7 models of OM cannot be imported yet"),
    ],
)
def test_what_cannot_be_is_told_with_the_option_and_a_code(lenet, tmp_path, option, reason):
    options = dict(fmk="MINDIR", modelFile=lenet[0], outputFile=tmp_path / "a")
    name, _, value = option.removeprefix("--").partition("=")
    arguments = [f"--{k}={v}" for k, v in options.items() if k != name] + [option]
    assert f"CONVERT RESULT FAILED:{reason}" in run(*arguments, code=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("input_shape", [1], TypeError), ("input_shape", {"x": 3}, TypeError),
        ("input_shape", {"x": [1.0]}, TypeError), ("input_shape", {"x": [0]}, ValueError),
        ("input_format", 1, TypeError), ("output_format", mslite.Format.NC4, ValueError),
        ("input_data_type", "FLOAT", TypeError), ("output_data_type", mslite.DataType.BOOL, ValueError),
        ("weight_fp16", 1, TypeError), ("infer", "true", TypeError), ("enable_encryption", None, TypeError),
        ("save_type", 4, TypeError), ("save_type", "MINDIR", TypeError),
        ("optimize", True, TypeError), ("optimize", "fast", ValueError),
        ("optimize", "gpu_oriented", NotImplementedError), ("device", "Ascend", NotImplementedError),
        ("encrypt_key", b"12", TypeError), ("encrypt_key", "12", ValueError),
        ("decrypt_key", "xy", ValueError),
        ("decrypt_mode", "SM4-CBC", ValueError), ("decrypt_mode", 1, TypeError),
        ("signature", 1, TypeError),
    ],
)  # fmt: skip
def test_properties_check_what_they_get(name, value, error):
    converter = mslite.Converter()
    before = getattr(converter, name)
    with pytest.raises(error, match=name):
        setattr(converter, name, value)
    assert getattr(converter, name) == before


@pytest.mark.parametrize(
    ("section", "values", "error"),
    [
        ("nothing", {}, ValueError),
        ("registry", {"a": "b"}, ValueError),
        ("registry", {"disable_fusion": True}, TypeError),
        ("registry", "disable_fusion", TypeError),
        (1, {}, TypeError),
        ("common_quant_param", {"bit_num": "17"}, ValueError),
        ("full_quant_param", {"target_device": "DSP"}, NotImplementedError),
        ("mixed_bit_weight_quant_param", {"init_scale": "1"}, ValueError),
        ("mixed_bit_weight_quant_param", {"auto_tune": "true"}, NotImplementedError),
        ("model_param", {}, ValueError),
    ],
)
def test_set_config_info_checks_what_it_gets(section, values, error):
    converter = mslite.Converter()
    with pytest.raises(error):
        converter.set_config_info(section, values)
    assert converter.get_config_info() == {}


@pytest.mark.parametrize("name", ["fmk_type", "model_file", "output_file", "weight_file", "config_file"])
def test_arguments_of_convert_are_named(name):
    arguments = dict(fmk_type=MINDIR, model_file="a", output_file="b") | {name: 7}
    with pytest.raises(TypeError, match=name):
        mslite.Converter().convert(**arguments)


def test_a_model_that_does_not_run_is_not_written(lenet, tmp_path, monkeypatch):
    def broken(*_):
        raise RuntimeError("no kernel")

    monkeypatch.setattr(trial, "answers", broken)
    with pytest.raises(ConversionError, match="infer: the result does not run: no kernel") as caught:
        convert(MINDIR, lenet[0], str(tmp_path / "a"), infer=True)
    assert caught.value.code == Code.ERROR and not list(tmp_path.iterdir())


def test_a_failure_is_told_without_places_in_our_sources(lenet, tmp_path):
    options = [f"--modelFile={lenet[0]}", f"--outputFile={tmp_path / 'a'}", "--inputShape=x:2,1,3,3"]
    output = run("--fmk=MINDIR", *options, code=1)
    assert "window" in output and "  at " not in output
