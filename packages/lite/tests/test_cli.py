"""The command line of Mycelia Lite."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from mycelia_lite.cli import app
from mycelia_lite.commands.conversion import plain
from mycelia_lite.format import Table, read, write

FIXTURES = Path(__file__).parent / "fixtures"


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_version_command_prints_the_installed_version():
    assert run("version").strip() == version("mycelia-lite")


def test_inspect_shows_borders_operators_and_memory():
    lines = [
        line.replace("│", " ").split() for line in run("inspect", FIXTURES / "convnet_w4.ms").splitlines()
    ]
    assert (
        lines[0] == "convnet_w4.ms: 5.9 KB, no name, no version, from ONNX, 11 operators in 1 graph".split()
    )
    assert ["input", "x", "FLOAT32", "[1,", "16,", "16,", "3]", "NHWC"] in lines
    assert ["output", "y", "FLOAT32", "[1,", "10]", "NCHW"] in lines
    assert ["Conv2DFusion", "3", "2"] in lines and ["Softmax", "1", "-"] in lines
    assert ["constants", "INT8", "3", "764", "B", "-"] in lines
    assert ["activations", "FLOAT32", "12", "17.3", "KB", "-"] in lines


def test_inspect_shows_a_model_with_holes(tmp_path):
    tensor = Table("Tensor", name="[red]t", dims=[-1, 3], dataType=99)
    write(
        tmp_path / "odd.ms",
        Table("MetaGraph", inputIndex=[0, 7], nodes=[Table("CNode")], allTensors=[tensor]),
    )
    output = run("inspect", tmp_path / "odd.ms")
    assert "tensor 7, which is not there" in output and "[red]t" in output and "[-1, 3]" in output


@pytest.mark.parametrize("data", ["inline", "hash"])
def test_a_model_goes_through_its_text(data, tmp_path):
    model, text, again = FIXTURES / "convnet.ms", tmp_path / "model.txt", tmp_path / "again.ms"
    run("inspect", model, "--text", text, "--data", data)
    assert run("inspect", model, "--text", "-", "--data", data) == text.read_text()
    from_model = [model] if data == "hash" else []
    run("inspect", *from_model, "--from-text", text, "--output-file", again)
    assert read(again) == read(model)


def test_errors_are_one_message_that_names_the_file(tmp_path):
    (tmp_path / "broken.ms").write_bytes(b"\x10\0\0\0MSL1")
    assert "broken.ms: MetaGraph: the file identifier is b'MSL1'" in run(
        "inspect", tmp_path / "broken.ms", code=1
    )
    (tmp_path / "broken.txt").write_text("MetaGraph {\n  nmae: 1\n}\n")
    out = tmp_path / "out.ms"
    output = run("inspect", "--from-text", tmp_path / "broken.txt", "--output-file", out, code=1)
    assert "broken.txt: line 2: MetaGraph has no field 'nmae'" in output and not out.exists()
    assert "absent.ms" in run("inspect", tmp_path / "absent.ms", code=1)
    assert "'inline' or 'hash'" in run(
        "inspect", FIXTURES / "mixed.ms", "--text", "-", "--data", "all", code=1
    )


@pytest.mark.parametrize("arguments", [[], ["--from-text", "a.txt"], ["a.ms", "--output-file", "b.ms"]])
def test_options_that_do_not_fit_are_refused(arguments):
    assert "--output-file" in run("inspect", *arguments, code=2)


def test_convert_writes_a_model_and_says_so(lenet, tmp_path):
    out = tmp_path / "lenet"
    for names in (
        ("--model-file", "--output-file", "--input-shape"),
        ("--modelFile", "--outputFile", "--inputShape"),
    ):
        arguments = [
            "convert",
            "--fmk=MINDIR",
            f"{names[0]}={lenet[0]}",
            f"{names[1]}={out}",
            f"{names[2]}=x:2,1,32,32",
        ]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        assert result.output.splitlines()[-1] == "CONVERT RESULT SUCCESS:0"
        assert "ConvActivationFusion 2" in result.output
        assert read(f"{out}.ms").allTensors[0].dims == [2, 1, 32, 32]
        (tmp_path / "lenet.ms").unlink()


PROCESS = """
import sys
from mycelia_lite.__main__ import main
try:
    main()
finally:
    print(*({"typer", "pydantic", "rich"} & set(sys.modules)), file=sys.stderr)
"""


def process(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", PROCESS, *arguments], capture_output=True, text=True)


def test_a_conversion_imports_only_what_it_needs(lenet, tmp_path):
    options = f"--modelFile={lenet[0]}", f"--output-file={tmp_path / 'lenet'}"
    done = process("convert", "--fmk=MINDIR", *options)
    assert done.returncode == 0 and done.stderr == "\n"
    assert done.stdout == run("convert", "--fmk", "MINDIR", *options) and (tmp_path / "lenet.ms").is_file()
    failed = process("convert", "--fmk=ONNX", *options)
    assert (
        failed.returncode == 1 and "CONVERT RESULT FAILED:-" in failed.stderr and "typer" not in failed.stderr
    )


def test_other_arguments_are_those_of_the_command():
    assert "--modelFile" in process("convert", "--help").stdout
    assert "--no-such" in process("convert", "--no-such=1").stderr
    assert process("version").stdout == run("version")


def test_plain_options_are_all_options_of_the_command():
    command = get_command(app).commands["convert"]
    options = [option for option in command.params if option.name not in ("explain", "help")]
    for at in (0, -1):
        assert plain([f"{o.opts[at]}=x" for o in options]) == dict.fromkeys((o.name for o in options), "x")
    assert plain(["--explain"]) is plain(["--fmk", "ONNX"]) is plain(["--fp16"]) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("--fmk", "KERAS"), "FAILED:-600 fmk must be one of TF, CAFFE, ONNX"),
        (("--fmk", "OM"), "FAILED:-7 models of OM cannot be imported yet"),
        (("--fmk", "ONNX"), "lenet.mindir is no ONNX model"),
        (("--model-file", "nowhere.mindir"), "FAILED:-600 the model file nowhere.mindir does not exist"),
        (("--input-shape", "x:1,two"), "FAILED:-600 inputShape must be like"),
        (("--without-fusions", "Nothing"), "FAILED:-600 no fusion is called 'Nothing'"),
    ],
)
def test_convert_says_why_it_failed_with_the_code(lenet, tmp_path, change, reason):
    options = {"--fmk": "MINDIR", "--model-file": lenet[0], "--output-file": str(tmp_path / "out")}
    options[change[0]] = change[1]
    result = CliRunner().invoke(app, ["convert", *(f"{k}={v}" for k, v in options.items())])
    assert result.exit_code == 1 and reason in result.output and not list(tmp_path.iterdir())


def test_convert_reads_onnx(tmp_path):
    """The smallest model there is, written out: y = Relu(x) for x of 2 floats, opset 17."""
    border = b"\x0a\x01%b\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x02"
    node = b"\x0a\x01x\x12\x01y\x22\x04Relu"
    graph = b"".join(
        bytes([field << 3 | 2, len(part)]) + part
        for field, part in ((1, node), (11, border % b"x"), (12, border % b"y"))
    )
    model = b"\x08\x08\x3a" + bytes([len(graph)]) + graph + b"\x42\x02\x10\x11"
    (tmp_path / "relu.onnx").write_bytes(model)
    out = tmp_path / "relu"
    output = run("convert", "--fmk=ONNX", f"--modelFile={tmp_path / 'relu.onnx'}", f"--outputFile={out}")
    assert output.splitlines()[-1] == "CONVERT RESULT SUCCESS:0"
    made = read(f"{out}.ms")
    assert [n.primitive.kind for n in made.nodes] == ["Activation"] and made.fmkType.name == "ONNX"
    assert [t.name for t in made.allTensors] == ["x", "y"]


def test_config_names_the_folder_of_the_libraries():
    result = CliRunner().invoke(app, ["config", "--libraries"])
    assert (Path(result.output.strip()) / "libmycelia_lite.a").is_file()
