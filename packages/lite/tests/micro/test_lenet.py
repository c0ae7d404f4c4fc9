"""LeNet as C: the quickstart's network gives the runtime's answers in one arena."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.micro import generate

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


def test_open_sizes_and_wrong_names_are_told(model, tmp_path):
    with pytest.raises(ValueError, match="input 'x' has open sizes"):
        generate(model, tmp_path / "net")
    with pytest.raises(ValueError, match="input_shape names \\['y'\\], but the inputs are \\['x'\\]"):
        generate(model, tmp_path / "net", {"y": [1]})
    assert not (tmp_path / "net").exists()
