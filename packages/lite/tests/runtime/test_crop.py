"""The cropped library: programs that link it answer alike, are smaller, and refuse what was cut off."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia as ms
import mycelia_lite as mslite
from mycelia_lite import runtime
from mycelia_lite.cli import app
from mycelia_lite.converter import convert
from mycelia_lite.crop import CropError, crop, probe
from mycelia_lite.format import read, write
from mycelia_lite.obfuscate import obfuscate

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
SHAPE = {"x": [6, 1, 32, 32]}
CONTROL = Path(__file__).parents[1] / "fixtures" / "control"

PROGRAM = """
#include <cstdio>
#include "mycelia/lite/model.h"
using namespace mycelia;
int main(int, char** argv) {
  Model model;
  if (!model.Build(argv[1])) return std::fprintf(stderr, "%s", MSGetLastError()), 1;
  std::vector<MSTensor> inputs = model.GetInputs(), outputs;
  if (std::fread(inputs[0].MutableData(), 1, inputs[0].DataSize(), stdin) != inputs[0].DataSize()) return 2;
  if (!model.Predict(inputs, &outputs)) return std::fprintf(stderr, "%s", MSGetLastError()), 3;
  std::fwrite(outputs[0].Data().get(), 1, outputs[0].DataSize(), stdout);
}
"""

# Two chains of nodes at once, on cores by speed.
PARALLEL = PROGRAM.replace(
    "  if (!model.Build(argv[1]))",
    """
  const auto context = std::make_shared<Context>();
  if (!context->SetThreadNum(2) || !context->SetInterOpParallelNum(2)) return 4;
  if (!context->SetThreadAffinity(1)) return 5;
  if (!model.Build(argv[1], kMindIR_Lite, context))""",
)

THROWING = PROGRAM.replace("&outputs)", "&outputs, [](auto&, auto&, auto&) -> bool { throw 1; })")


def linked(folder, name, library, source=PROGRAM):
    (folder / "program.cc").write_text(source)
    options = ["-std=c++17", "-O1", f"-I{runtime.folder()}/include", "-Wl,--gc-sections", "-s"]
    subprocess.run(
        ["c++", *options, "program.cc", str(library), "-pthread", "-lm", "-o", name], check=True, cwd=folder
    )
    return folder / name


@pytest.fixture(scope="module")
def cropped(lenet, tmp_path_factory):
    """(folder, model, the cropped library)"""
    folder = tmp_path_factory.mktemp("crop")
    model = convert(mslite.FmkType.MINDIR, lenet[0], str(folder / "lenet"), SHAPE).path
    return folder, model, crop([model], str(folder / "small.a"))


def test_the_table_has_what_the_model_needs(cropped):
    _, _, made = cropped
    assert made.operators == ("Conv2DFusion", "MatMulFusion", "MaxPoolFusion", "Reshape", "Transpose")
    assert "conv_last f32" in made.kernels and not any("i8" in k for k in made.kernels)
    assert made.bytes[1] < made.bytes[0]


def test_a_program_that_links_it_answers_alike_and_is_smaller(lenet, cropped):
    folder, model, made = cropped
    small = linked(folder, "small", made.path)
    whole = linked(folder, "whole", runtime.folder() / "libmycelia_lite.a")
    answers = [
        subprocess.run([p, model], input=lenet[1].tobytes(), capture_output=True, check=True).stdout
        for p in (small, whole)
    ]
    assert answers[0] == answers[1]
    expected = lenet[2]
    found = np.frombuffer(answers[0], np.float32).reshape(expected.shape)
    assert np.abs(found - expected).max() <= 2e-6 * np.abs(expected).max()
    assert small.stat().st_size < 0.6 * whole.stat().st_size


class Other(ms.nn.Cell):
    def construct(self, x):
        return ms.ops.softmax(ms.ops.exp(x))


def test_what_was_cut_off_is_told(cropped, write_mindir, tmp_path):
    folder, _, made = cropped
    path = write_mindir(Other(), tmp_path / "o", (2, 3))
    other = convert(mslite.FmkType.MINDIR, path, str(tmp_path / "o")).path
    done = subprocess.run(
        [linked(folder, "again", made.path), other], capture_output=True, text=True, input=""
    )
    assert done.returncode == 1 and "operators without a kernel" in done.stderr
    assert "this library was cropped for other models" in done.stderr


class Depthwise(ms.nn.Cell):
    def __init__(self, size, channels=16, stride=1, padding=None):
        super().__init__()
        padding = size // 2 if padding is None else padding
        self.conv = ms.nn.Conv2d(
            channels, channels, size, stride, "pad", padding, group=channels, has_bias=True
        )

    def construct(self, x):
        return self.conv(x)


class Odd(ms.nn.Cell):
    """Products whose rows, columns and depths fit no tile, with a residual and depths that are cut."""

    def __init__(self):
        super().__init__()
        nn = ms.nn
        self.first = nn.Conv2d(3, 17, 3, pad_mode="pad", padding=1, has_bias=True)
        self.up = nn.Conv2d(17, 1100, 1, has_bias=True)
        self.down = nn.Conv2d(1100, 17, 1, has_bias=True)
        self.wide = nn.Conv2d(17, 41, 3, 2, "pad", 1, has_bias=True)
        self.narrow = nn.Conv2d(41, 24, 1)
        self.dense = nn.SequentialCell(nn.Dense(24, 70), nn.ReLU(), nn.Dense(70, 5))

    def construct(self, x):
        x = ms.ops.relu6(self.first(x))
        x = x + self.down(ms.ops.relu(self.up(x)))
        return self.dense(self.narrow(self.wide(x)).mean((2, 3)))


class Activated(ms.nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = ms.nn.Conv2d(16, 20, 1)

    def construct(self, x):
        return ms.ops.silu(self.conv(x))


class Winograd(ms.nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = ms.nn.Conv2d(64, 64, 3, pad_mode="pad", padding=1)

    def construct(self, x):
        return self.conv(x)


@pytest.fixture(scope="module")
def with_parts(write_mindir, tmp_path_factory):
    """Name -> (model, input, answer): a network that uses no part of a kernel, and others that use one."""
    folder, found = tmp_path_factory.mktemp("parts"), {}
    nets = {
        **{"none": Depthwise(3), "depthwise5": Depthwise(5), "winograd": Winograd()},
        **{"activations": Activated(), "rest": Depthwise(3, 12), "odd": Odd()},
        **{"right": Depthwise(3, 16, 2, 0), "narrow": Depthwise(3, 16, 2, 0)},
        "single": Depthwise(3, 16, 2, 1),
    }
    sizes = {"odd": (13, 11), "right": (62, 62), "single": (61, 62), "narrow": (31, 32)}
    for name, net in nets.items():
        channels = net.conv.in_channels if hasattr(net, "conv") else 3
        shape = (1, channels, *sizes.get(name, (24, 24)))
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        path = write_mindir(net, folder / name, x.shape)
        model = convert(mslite.FmkType.MINDIR, path, str(folder / name)).path
        found[name] = model, x, net(ms.Tensor(x)).asnumpy()
    return found


class Block(ms.nn.Cell):
    """Inverted residual block of MobileNetV2."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        nn, hidden = ms.nn, 6 * inputs
        self.layers = nn.SequentialCell(
            *(nn.Conv2d(inputs, hidden, 1, has_bias=True), nn.ReLU6()),
            nn.Conv2d(hidden, hidden, 3, stride, "pad", 1, group=hidden, has_bias=True),
            *(nn.ReLU6(), nn.Conv2d(hidden, outputs, 1, has_bias=True)),
        )
        self.residual = stride == 1 and inputs == outputs

    def construct(self, x):
        return x + self.layers(x) if self.residual else self.layers(x)


class MobileNet(ms.nn.Cell):
    """MobileNetV2's operators on its sizes of images, with fewer blocks."""

    def __init__(self):
        super().__init__()
        nn = ms.nn
        blocks = [Block(32, 24, 2), Block(24, 24, 1), Block(24, 32, 2), Block(32, 64, 2), Block(64, 160, 2)]
        self.layers = nn.SequentialCell(
            *(nn.Conv2d(3, 32, 3, 2, "pad", 1, has_bias=True), nn.ReLU6(), *blocks),
            *(nn.Conv2d(160, 320, 1, has_bias=True), nn.ReLU6()),
        )
        self.head = nn.Dense(320, 1000)

    def construct(self, x):
        return self.head(self.layers(x).mean((2, 3)))


@pytest.fixture(scope="module")
def mobilenet(write_mindir, tmp_path_factory):
    """(model, input, answer)"""
    folder, net = tmp_path_factory.mktemp("mobilenet"), MobileNet()
    x = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    path = write_mindir(net, folder / "m", x.shape)
    return convert(mslite.FmkType.MINDIR, path, str(folder / "m")).path, x, net(ms.Tensor(x)).asnumpy()


def loaded_bytes(program):
    """Of code and data, as they lie in the program without symbols."""
    done = subprocess.run(["size", program], check=True, capture_output=True, text=True)
    text, data = map(int, done.stdout.splitlines()[1].split()[:2])
    return text + data


@pytest.mark.parametrize(
    ("sets", "most"),
    [(["generic"], 250_000), (["avx2"], 290_000), (["avx512"], 300_000), ((), 300_000)],
)
def test_a_program_for_mobilenet_is_small(mobilenet, tmp_path, sets, most):
    if platform.machine() != "x86_64":
        pytest.skip("the bounds are those of x86-64")
    model, x, expected = mobilenet
    try:
        made = crop([model], str(tmp_path / "m.a"), instruction_sets=sets)
    except CropError as error:
        assert "the library has" in str(error)
        pytest.skip(str(error))
    program = linked(tmp_path, "program", made.path)
    assert loaded_bytes(program) < most
    done, _ = answer_of(program, model, x, expected.shape)
    if done.returncode and b"this processor runs none of the library's kernels" in done.stderr:
        pytest.skip(f"the processor has no {sets[0]}")
    whole = linked(tmp_path, "whole", runtime.folder() / "libmycelia_lite.a")
    for isa in sets_here(made):
        done, found = answer_of(program, model, x, expected.shape, isa)
        assert not done.returncode, done.stderr
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
        if sets:  # else plain code sums up means, in its own order
            np.testing.assert_array_equal(found, answer_of(whole, model, x, expected.shape, isa)[1])


def test_a_cropped_program_has_what_it_asks_for_itself(mobilenet, tmp_path):
    model, x, expected = mobilenet
    library = crop([model], str(tmp_path / "m.a")).path
    plain, parallel = (
        answer_of(linked(tmp_path, name, library, source), model, x, expected.shape)[1]
        for name, source in (("plain", PROGRAM), ("parallel", PARALLEL))
    )
    np.testing.assert_allclose(parallel, plain, rtol=1e-4, atol=1e-4 * np.abs(plain).max())


def test_features_of_the_runtime_are_kept_for_models_that_use_them(cropped, tmp_path):
    _, lenet, without = cropped
    answers = np.load(CONTROL / "answers.npz")
    choosing = convert(mslite.FmkType.MINDIR, str(CONTROL / "if.mindir"), str(tmp_path / "if")).path
    inputs = [answers[key] for key in sorted(answers) if key.startswith("if.0.in")]
    expected = answers["if.0.out0"]
    assert "control" not in without.parts
    made = crop([lenet, choosing], str(tmp_path / "both.a"))
    assert "control" in made.parts
    done, found = answer_of(linked(tmp_path, "with", made.path), choosing, inputs[0], expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    done = subprocess.run(
        [linked(tmp_path, "without", without.path), choosing], input=b"", capture_output=True
    )
    assert done.returncode == 1 and b"cropped for models without subgraphs" in done.stderr


def answer_of(program, model, x, shape, isa=""):
    """(the process, what it answered); isa: the instruction set, empty for the best of the processor."""
    done = subprocess.run(
        [program, model], input=x.tobytes(), capture_output=True, env=os.environ | {"MYCELIA_ISA": isa}
    )
    return done, np.frombuffer(done.stdout, np.float32).reshape(shape) if not done.returncode else None


def test_parts_of_kernels_are_kept_for_models_that_use_them(with_parts, tmp_path):
    made = crop([model for model, _, _ in with_parts.values()], str(tmp_path / "parts.a"))
    of_depthwise = ("depthwise5", "depthwise_narrow", "depthwise_rest")
    assert made.parts == ("activations", *of_depthwise, "winograd")
    program = linked(tmp_path, "program", made.path)
    for isa in sets_here(made):
        for model, x, expected in with_parts.values():
            _, found = answer_of(program, model, x, expected.shape, isa)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def sets_here(made):
    """The instruction sets of a cropped library that this processor has."""
    names = {"avx2": "avx2", "avx512": "avx512vl"}
    flags = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else ()
    return [isa for isa in made.instruction_sets if isa not in names or names[isa] in flags]


def test_parts_that_are_left_out_give_an_error_or_the_same_numbers(with_parts, tmp_path):
    assert crop([with_parts["none"][0]], str(tmp_path / "none.a")).parts == ()
    # A second model for the operators and kernels of the others, without their parts.
    made = crop([with_parts[name][0] for name in ("none", "odd")], str(tmp_path / "few.a"))
    assert made.parts == ()
    program = linked(tmp_path, "program", made.path)
    for isa in sets_here(made):
        for name in ("none", "depthwise5", "rest", "right", "single", "narrow", "odd"):
            model, x, expected = with_parts[name]
            done, found = answer_of(program, model, x, expected.shape, isa)
            assert not done.returncode, (name, isa, done.stderr)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    for name, reason in {
        "winograd": b"kernel conv_pack does not take this case",
        "activations": b"operators without a kernel: Activation",
    }.items():
        model, x, expected = with_parts[name]
        done, _ = answer_of(program, model, x, expected.shape)
        assert done.returncode and reason in done.stderr


def test_exceptions_are_caught_where_that_is_asked_for(cropped, tmp_path):
    _, model, without = cropped
    made = crop([model], str(tmp_path / "with.a"), exceptions=True)
    x = np.zeros(SHAPE["x"], np.float32)
    done, _ = answer_of(linked(tmp_path, "with", made.path, THROWING), model, x, [6, 10])
    assert done.returncode == 3 and b"ended the run" in done.stderr
    done, _ = answer_of(linked(tmp_path, "without", without.path, THROWING), model, x, [6, 10])
    assert done.returncode == -signal.SIGABRT  # nothing goes on with what was thrown


def test_one_instruction_set_is_smaller_still(cropped):
    folder, model, made = cropped
    if "generic" not in made.instruction_sets or len(made.instruction_sets) == 1:
        pytest.skip("the library has kernels for one instruction set")
    alone = crop([model], str(folder / "generic.a"), instruction_sets=["generic"])
    sizes = [linked(folder, "one", a.path).stat().st_size for a in (alone, made)]
    assert sizes[0] < sizes[1]


def test_the_command_crops_for_a_folder(cropped, tmp_path):
    folder, _, _ = cropped
    out = tmp_path / "cut.a"
    result = CliRunner().invoke(app, ["crop", f"--modelFolderPath={folder}", f"--outputFile={out}"])
    assert result.exit_code == 0 and "5 operators" in result.output and out.is_file()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (dict(models=[]), "no model is given"),
        (dict(package_file="nowhere.a"), "the library nowhere.a does not exist"),
        (dict(instruction_sets=["sve"]), "instruction set sve: the library has"),
        (dict(compiler="no-such-compiler"), "'no-such-compiler' is not installed"),
        (dict(compiler="false"), "false failed"),
        (dict(input_shapes=[{"x": [1, 1, 2, 2]}]), "window|RuntimeError"),
    ],
)
def test_what_cannot_be_cropped_is_told(cropped, tmp_path, change, reason):
    _, model, _ = cropped
    how = dict(models=[model], output_file=str(tmp_path / "out.a")) | change
    with pytest.raises(CropError, match=reason):
        crop(**how)
    assert not list(tmp_path.iterdir())


class Picked(ms.nn.Cell):
    def construct(self, x, i):
        return ms.ops.gather(ms.ops.exp(x), i, 0)


def test_instruction_sets_that_this_processor_lacks_are_told(cropped, tmp_path, monkeypatch):
    _, model, _ = cropped
    module = importlib.import_module("mycelia_lite.crop")
    real = subprocess.run

    def run(command, env, **more):
        if env["MYCELIA_ISA"] == "other":
            text = "RuntimeError: MYCELIA_ISA=other: this processor runs none of the library's kernels"
            return subprocess.CompletedProcess(command, 1, "", text)
        return real(command, env=env, **more)

    monkeypatch.setattr(module.subprocess, "run", run)
    _, kernels, _, lacking = module._used([str(model)], [], ["generic", "other"])
    assert lacking == {"other"} and kernels
    made = module.Cropped("cut.a", ("a",), ("b",), (), ("generic", "other"), (2, 1), ("other",))
    monkeypatch.setattr(module, "crop", lambda *arguments: made)
    result = CliRunner().invoke(app, ["crop", f"--modelFile={model}", "--outputFile=cut.a"])
    assert result.exit_code == 0 and "other: this processor does not run it" in result.output


def test_indices_are_drawn_that_are_in_range(tmp_path):
    """An axis of one element has the index 0 alone."""
    path = str(tmp_path / "picked.mindir")
    x, i = ms.Tensor(np.zeros((1, 4), np.float32)), ms.Tensor(np.zeros(9, np.int32))
    ms.export(Picked(), x, i, file_name=path, file_format="MINDIR")
    model = convert(mslite.FmkType.MINDIR, path, str(tmp_path / "picked")).path
    made = crop([model], str(tmp_path / "picked.a"), instruction_sets=["generic"])
    assert any(kernel.startswith("gather ") for kernel in made.kernels)


def test_a_model_that_is_none_is_told(tmp_path):
    (tmp_path / "no.ms").write_bytes(b"no model")
    with pytest.raises(CropError, match="no.ms"):
        crop([str(tmp_path / "no.ms")], str(tmp_path / "out.a"))


def test_an_obfuscated_model_has_the_operators_that_it_hides(lenet, cropped, tmp_path):
    _, plain, without = cropped
    hidden = str(tmp_path / "o.ms")
    write(hidden, obfuscate(read(plain), 1.0))
    made = crop([hidden], str(tmp_path / "o.a"))
    assert made.operators == without.operators and made.parts == ("obfuscation", *without.parts)
    program = linked(tmp_path, "with", made.path)
    answers = [answer_of(program, model, lenet[1], lenet[2].shape)[1] for model in (plain, hidden)]
    np.testing.assert_array_equal(*answers)
    done, _ = answer_of(linked(tmp_path, "without", without.path), hidden, lenet[1], lenet[2].shape)
    assert done.returncode == 1 and b"cropped for models without obfuscation" in done.stderr


def test_an_obfuscation_that_is_not_known_is_refused(cropped, tmp_path):
    model = obfuscate(read(cropped[1]))
    model.obfMetaData = b"OTHER" + bytes(model.obfMetaData)[5:]
    write(tmp_path / "o.ms", model)
    with pytest.raises(CropError, match=r"o\.ms.*obfuscated in a way that is not known"):
        crop([str(tmp_path / "o.ms")], str(tmp_path / "out.a"))


def test_a_model_that_no_size_of_1_fits_is_cropped_for_the_sizes_given(write_mindir, tmp_path):
    net = ms.nn.Conv2d(1, 2, 3, pad_mode="valid")
    path = write_mindir(net, tmp_path / "net", (1, 1, None, None))
    model = convert(mslite.FmkType.MINDIR, path, str(tmp_path / "net")).path
    name = read(model).allTensors[read(model).inputIndex[0]].name
    for others in ([], [{"another": [1, 1, 5, 5]}]):
        with pytest.raises(
            RuntimeError, match=r"net\.ms does not run with open sizes of 1 \(give inputShape\)"
        ):
            probe([model], others)
    with pytest.raises(RuntimeError, match=r"net\.ms: .* window"):
        probe([model], [{name: [1, 1, 2, 2]}])
    shapes = [{name: [1, 1, 5, 5]}]
    made = crop([model], str(tmp_path / "out.a"), input_shapes=shapes, instruction_sets=["generic"])
    program = linked(
        tmp_path,
        "program",
        made.path,
        PROGRAM.replace(
            "  if (std::fread",
            """
  if (!model.Resize(inputs, {{1, 1, 5, 5}})) return std::fprintf(stderr, "%s", MSGetLastError()), 4;
  inputs = model.GetInputs();
  if (std::fread""",
        ),
    )
    x = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    done = subprocess.run([program, model], input=x.tobytes(), capture_output=True)
    assert done.returncode == 0, done.stderr
    found = np.frombuffer(done.stdout, np.float32).reshape(1, 2, 3, 3)
    assert np.allclose(found, net(ms.Tensor(x)).asnumpy(), rtol=1e-4, atol=1e-4)
