"""Programs in C and C++ that link the runtime, one static library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite import runtime
from mycelia_lite.converter import convert

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "lite_cpp" / "classify.cc"
pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")


def compiled(folder: Path, source: Path, *options: str) -> Path:
    program = folder / source.stem
    home = runtime.folder()
    command = [
        "c++",
        "-O1",
        f"-I{home}/include",
        *options,
        str(source),
        f"{home}/libmycelia_lite.a",
        "-pthread",
        "-lm",
    ]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program


def test_the_example_answers_as_python_does(lenet, tmp_path):
    path, images, expected = lenet
    made = convert(mslite.FmkType.MINDIR, path, str(tmp_path / "lenet")).path
    images.tofile(tmp_path / "images.f32")
    program = compiled(tmp_path, EXAMPLE, "-std=c++17", "-Wall", "-Wextra", "-Werror")
    done = subprocess.run([program, made, tmp_path / "images.f32"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [int(line) for line in done.stdout.split()] == list(expected.argmax(1))
    missing = subprocess.run([program, "nowhere.ms", tmp_path / "images.f32"], capture_output=True, text=True)
    assert missing.returncode == 1 and "cannot open 'nowhere.ms'" in missing.stderr


C_PROGRAM = """
#include <stdio.h>
#include <string.h>
#include "mycelia/lite/c_api.h"

int main(int argc, char** argv) {
  (void)argc;
  MSModelHandle model = MSModelCreate();
  if (MSModelPredict(model, MSModelGetInputs(model), NULL, NULL, NULL) == kMSStatusSuccess) return 1;
  printf("%s\\n", MSGetLastError());
  if (MSModelBuildFromFile(NULL, argv[1], kMSModelTypeMindIRLite, NULL) != kMSStatusLiteNullptr) return 2;
  if (MSModelBuildFromFile(model, argv[1], kMSModelTypeMindIRLite, NULL) != kMSStatusSuccess) return 3;
  MSTensorHandleArray inputs = MSModelGetInputs(model), outputs;
  MSShapeInfo shape = {4, {1, 1, 32, 32}};
  if (MSModelResize(model, inputs, &shape, 1) != kMSStatusSuccess) return 4;
  float* x = MSTensorGetMutableData(inputs.handle_list[0]);
  for (int64_t i = 0; i < MSTensorGetElementNum(inputs.handle_list[0]); ++i) x[i] = 0.5f;
  if (MSModelPredict(model, inputs, &outputs, NULL, NULL) != kMSStatusSuccess) return 5;
  const float* y = MSTensorGetData(outputs.handle_list[0]);
  for (int i = 0; i < 10; ++i) printf("%.9g ", y[i]);
  if (MSModelGetInputByTensorName(model, "nobody") || !MSModelGetInputByTensorName(model, "x")) return 6;
  MSModelDestroy(&model);
  MSModelDestroy(&model);
  return model != NULL;
}
"""


def test_a_program_in_c(lenet, tmp_path):
    made = convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "lenet")).path
    (tmp_path / "program.c").write_text(C_PROGRAM)
    subprocess.run(
        ["cc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{runtime.folder()}/include", "-c",
         "program.c"],
        check=True, cwd=tmp_path,
    )  # fmt: skip
    (tmp_path / "program.o").rename(tmp_path / "linked.o")
    program = compiled(tmp_path, tmp_path / "linked.o")
    done = subprocess.run([program, made], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
    reason, numbers = done.stdout.split("\n")
    assert reason == "the model is not built"
    model = mslite.Model()
    model.build_from_file(made)
    model.resize(model.get_inputs(), [[1, 1, 32, 32]])
    model.get_inputs()[0].set_data_from_numpy(np.full((1, 1, 32, 32), 0.5, np.float32))
    expected = model.predict(model.get_inputs())[0].get_data_to_numpy()
    assert np.allclose(np.array(numbers.split(), np.float32), expected[0], rtol=1e-6)


def test_the_shared_library_is_small(tmp_path):
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", "-o", stripped, runtime.folder() / "libmycelia_lite.so"], check=True)
    assert stripped.stat().st_size < 3_000_000


ANSWERS = """
import sys, numpy, mycelia_lite
model = mycelia_lite.Model()
try:
    model.build_from_file(sys.argv[1])
except RuntimeError as error:
    sys.exit(str(error))
images = numpy.load(sys.argv[2])
model.resize(model.get_inputs(), [images.shape])
model.get_inputs()[0].set_data_from_numpy(images)
numpy.save(sys.argv[3], model.predict(model.get_inputs())[0].get_data_to_numpy())
"""


@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512", "neon", "vax"])
def test_every_variant_of_the_kernels_that_runs_here_answers_alike(lenet, tmp_path, isa):
    path, images, expected = lenet
    made = convert(mslite.FmkType.MINDIR, path, str(tmp_path / "lenet")).path
    np.save(tmp_path / "images.npy", images)
    command = [sys.executable, "-c", ANSWERS, made, tmp_path / "images.npy", tmp_path / "answer.npy"]
    done = subprocess.run(
        command, env={**os.environ, "MYCELIA_ISA": isa}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        assert isa != "generic" and "MYCELIA_ISA" in done.stderr
    else:
        assert isa != "vax"
        assert np.allclose(np.load(tmp_path / "answer.npy"), expected, rtol=1e-5, atol=1e-5)


def test_the_shared_library_exports_the_c_interface_alone():
    header = (runtime.folder() / "include" / "mycelia" / "lite" / "c_api.h").read_text()
    library = runtime.folder() / "libmycelia_lite.so"
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
    )
    exported = {line.split()[2] for line in listing.stdout.splitlines()}
    assert exported == set(re.findall(r"(?m)^MS_API [^;(]*?\b(MS\w+)\(", header))


def test_the_libraries_need_nothing_but_the_system():
    if shutil.which("ldd") is None:
        pytest.skip("there is no ldd")
    listed = subprocess.run(
        ["ldd", runtime.folder() / "libmycelia_lite.so"], capture_output=True, text=True
    ).stdout
    names = {os.path.basename(line.split()[0]) for line in listed.splitlines()}
    assert not [
        n for n in names if not n.startswith(("linux-vdso", "libm.", "libc.", "ld-linux", "libpthread."))
    ]
