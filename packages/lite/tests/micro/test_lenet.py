"""LeNet as C: the quickstart's network gives the runtime's answers in one arena."""

from __future__ import annotations

import ctypes
import errno
import re
import subprocess
import sys

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.micro import generate
from mycelia_lite.micro import project as project_of_c

from .c_projects import CXX, C, compiled, run


@pytest.fixture(scope="module")
def model(lenet, tmp_path_factory):
    path = tmp_path_factory.mktemp("micro") / "lenet"
    mslite.Converter().convert(mslite.FmkType.MINDIR, lenet[0], str(path))
    return f"{path}.ms"


@pytest.fixture(scope="module")
def project(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("micro") / "lenet_c"
    (report,) = generate(model, folder, {"x": [1, 1, 32, 32]})
    return folder, report


@pytest.mark.parametrize("compiler", [C, CXX, ("clang", "-std=c99")], ids=lambda c: c[0])
def test_every_compiler_takes_it_without_a_warning_and_its_self_test_passes(project, compiler):
    folder, _ = project
    (line,) = run(compiled(folder, compiler))
    assert re.fullmatch(r"lenet: \S+ departs by \S+: PASSED", line)


def test_answers_are_the_networks_own(project, lenet):
    folder, report = project
    library = folder / "lenet.so"
    sources = [str(p) for p in (folder / "src").rglob("*.c")]
    flags = ["-std=c99", "-O2", "-shared", "-fPIC", f"-I{folder}/include", f"-I{folder}/src"]
    subprocess.run(["gcc", *flags, *sources, "-lm", "-o", str(library)], check=True, timeout=300)
    head = (folder / "src/model0/net0.h").read_text()
    places = {name: int(n) for name, n in re.findall(r"#define LENET_(\w+) (\d+)", head)}
    assert places["ARENA_BYTES"] == report.arena_bytes
    loaded = ctypes.CDLL(str(library))
    arena = (ctypes.c_uint64 * -(-report.arena_bytes // 8))()
    memory = np.frombuffer(arena, np.uint8)
    _, images, expected = lenet
    for image, answer in zip(images, expected):
        given = memory[places["INPUT_0"] :][: image.nbytes].view(np.float32)
        given[:] = image.ravel()
        loaded.lenet_run(arena)
        found = memory[places["OUTPUT_0"] :][:40].view(np.float32)
        assert np.abs(found - answer).max() <= 1e-6 * np.abs(answer).max() + 1e-7


def test_the_arena_is_smaller_than_what_lives_at_once_in_place_and_weights_stay_in_flash(project):
    folder, report = project
    assert report.arena_bytes <= report.live_bytes
    assert report.arena_bytes <= 1.05 * report.least_bytes
    program = compiled(folder)
    sizes = (
        subprocess.run(["size", str(program)], capture_output=True, text=True).stdout.splitlines()[1].split()
    )
    data, bss = int(sizes[1]), int(sizes[2])
    assert report.weight_bytes > 200_000
    assert data + bss < report.arena_bytes + 8192  # the C library's own, and handles


def test_the_command_prints_the_arena_and_draws_it(model, tmp_path):
    command = [
        sys.executable, "-m", "mycelia_lite", "micro", model, f"--output-path={tmp_path / 'net'}",
        "--inputShape=x:1,1,32,32", "--memory", f"--svg={tmp_path / 'arena.svg'}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "arena" in done.stdout and "Conv2DFusion" in done.stdout
    assert (tmp_path / "arena.svg").read_text().startswith("<svg")
    assert (tmp_path / "net/CMakeLists.txt").exists()


def test_a_project_takes_the_place_of_a_larger_one(model, tmp_path):
    shape = {"x": [1, 1, 32, 32]}
    generate([model, model], tmp_path / "net", shape)
    mine = tmp_path / "net/src/model1/mine.txt"
    mine.write_text("kept")
    generate(model, tmp_path / "net", shape)
    assert [p.name for p in (tmp_path / "net/src/model1").iterdir()] == ["mine.txt"]
    assert len(run(compiled(tmp_path / "net"))) == 1


def test_a_project_that_cannot_be_written_leaves_nothing(model, tmp_path, monkeypatch):
    monkeypatch.setattr(project_of_c, "write_text", _full_after(5))
    with pytest.raises(OSError, match="No space"):
        generate(model, tmp_path / "net", {"x": [1, 1, 32, 32]})
    assert list(tmp_path.iterdir()) == []


def _full_after(count):
    """`write_text` of a disk that has room for so many files."""
    left = iter(range(count))
    real = project_of_c.write_text

    def write_text(path, text):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        real(path, text)

    return write_text


@pytest.mark.parametrize("wrong", ["nan", "far"])
def test_the_self_test_fails_where_an_output_is_wrong(model, tmp_path, wrong):
    generate(model, tmp_path / "net", {"x": [1, 1, 32, 32]})
    data = tmp_path / "net/benchmark/data.c"
    head, begin, rest = data.read_text().partition("outputs0_0[10] = {\n")
    first, comma, others = rest.partition(",")
    changed = "NAN" if wrong == "nan" else f"{float(first.strip().rstrip('f')) + 0.5}f"
    data.write_text(f"{head}{begin}    {changed}{comma}{others}")
    done = subprocess.run([str(compiled(tmp_path / "net"))], capture_output=True, text=True)
    assert done.returncode == 1 and "FAILED" in done.stdout


def test_files_and_folders_that_are_not_there_are_told(model, tmp_path):
    (tmp_path / "file").write_text("")
    for arguments, reason in (
        ([str(tmp_path / "none.ms"), f"--output-path={tmp_path / 'net'}"], "none.ms"),
        ([model, f"--output-path={tmp_path / 'file'}"], "must be a folder"),
        ([model, f"--output-path={tmp_path / 'file/net'}", "--inputShape=x:1,1,32,32"], "file"),
    ):
        command = [sys.executable, "-m", "mycelia_lite", "micro", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 1 and reason in done.stderr and "Traceback" not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_open_sizes_and_wrong_names_are_told(model, tmp_path):
    with pytest.raises(ValueError, match="input 'x' has open sizes"):
        generate(model, tmp_path / "net")
    with pytest.raises(ValueError, match="input_shape names \\['y'\\], but the inputs are \\['x'\\]"):
        generate(model, tmp_path / "net", {"y": [1]})
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
def test_constants_of_16_bits_become_float32(lenet, tmp_path, kind):
    path = mslite.converter.convert(
        mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "half"), **{f"weight_{kind}": True}
    ).path
    generate(path, tmp_path / "net", {"x": [1, 1, 32, 32]})
    assert run(compiled(tmp_path / "net"))[0].endswith("PASSED")
