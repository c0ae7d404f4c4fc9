"""Training in C++: the program's losses, rates and files are those of Python."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest

from mycelia import nn
from mycelia_lite import runtime

from .steps import LeNet, converted, digits, loaded, step_of, take

PROGRAM = r"""
#include <cstring>
#include <fstream>
#include "mycelia/lite/train.h"
using namespace mycelia;

static bool read(const char* path, std::vector<char>* bytes) {
  std::ifstream file(path, std::ios::binary);
  bytes->assign(std::istreambuf_iterator<char>(file), {});
  return !bytes->empty();
}

int main(int, char** argv) {
  std::vector<char> images, labels;
  Graph graph;
  if (!read(argv[2], &images) || !read(argv[3], &labels)) return 2;
  if (!Serialization::Load(std::string(argv[1]), kMindIR_Lite, &graph)) return 3;
  Model model;
  TrainCfg halves;
  halves.optimization_level_ = kO2;
  if (Model().Build(GraphCell(graph), nullptr, halves) != kLiteNotSupport) return 4;
  Status status = model.Build(GraphCell(graph), nullptr, TrainCfg());
  if (!status) return std::puts(status.ToString().c_str()), 5;
  LossMonitor losses;
  LRScheduler rates([](float rate, int) { return rate * 0.5f; });
  CkptSaver saver(2, argv[4]);
  const auto batch = [&](int step, std::vector<MSTensor>& inputs) {
    const size_t size = inputs[0].DataSize(), count = inputs[1].DataSize();
    if ((step + 1) * size > images.size()) return false;
    std::memcpy(inputs[0].MutableData(), images.data() + step * size, size);
    std::memcpy(inputs[1].MutableData(), labels.data() + step * count, count);
    return true;
  };
  status = Train(model, 2, batch, {&losses, &rates, &saver});
  if (!status) return std::puts(status.ToString().c_str()), 6;
  std::printf("rate %g\n", model.GetLearningRate());
  const std::string answers = std::string(argv[4]) + ".ms";
  if (!Serialization::ExportModel(model, kMindIR_Lite, answers)) return 7;
  std::string bytes;
  if (!Serialization::ExportModel(model, kMindIR_Lite, &bytes, kNoQuant, false)) return 8;
  if (bytes.size() != graph.bytes().size()) return 8;
  if (Serialization::ExportModel(model, kMindIR_Lite, answers, kWeightQuant) != kLiteNotSupport) return 9;
  return model.GetFeatureMaps().size() == 9 && model.GetGradients().size() == 9 ? 0 : 10;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    (folder / "train.cc").write_text(PROGRAM)
    library = runtime.folder() / "libmycelia_lite_train.so"
    command = [
        "c++",
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{runtime.folder() / 'include'}",
        "train.cc",
        str(library),
    ]
    command += [f"-Wl,-rpath,{library.parent}", "-o", "train"]
    subprocess.run(command, cwd=folder, check=True)
    return str(folder / "train")


def test_a_program_trains_and_writes_files(program, tmp_path):
    def descent(parameters):
        return nn.SGD(parameters, 0.05)

    batches = digits(5)
    path = converted(step_of(LeNet, descent), batches[0], tmp_path)
    np.concatenate([x for x, _ in batches]).tofile(tmp_path / "images")
    np.concatenate([y for _, y in batches]).tofile(tmp_path / "labels")
    arguments = [program, path, str(tmp_path / "images"), str(tmp_path / "labels"), str(tmp_path / "net")]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    model, expected = loaded(path), []
    for epoch in range(2):
        expected += [float(take(model, batch)) for batch in batches]
        model.set_learning_rate(0.05 * 0.5 ** (epoch + 1))
    losses = [float(found) for found in re.findall(r"loss (\S+)", done.stdout)]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert "rate 0.0125" in done.stdout
    resumed = loaded(str(tmp_path / "net_trained_epoch_1.ms"))
    resumed.set_learning_rate(0.0125)
    assert float(take(resumed, batches[0])) == float(take(model, batches[0]))
    model.set_train_mode(False)


def test_the_library_for_inference_refuses_files_to_train_on(program, tmp_path):
    def descent(parameters):
        return nn.SGD(parameters, 0.05)

    batches = digits(1)
    path = converted(step_of(LeNet, descent), batches[0], tmp_path)
    code = (
        "import ctypes, sys\n"
        "lib = ctypes.CDLL(sys.argv[1])\n"
        "lib.MSModelCreate.restype = ctypes.c_void_p\n"
        "lib.MSGetLastError.restype = ctypes.c_char_p\n"
        "model = ctypes.c_void_p(lib.MSModelCreate())\n"
        "for call in (lambda: lib.MSModelBuildFromFile(model, sys.argv[2].encode(), 4, None),\n"
        "             lambda: lib.MSModelSetTrainMode(model, True)):\n"
        "    print(call(), lib.MSGetLastError().decode())\n"
    )
    library = str(runtime.folder() / "libmycelia_lite.so")
    done = subprocess.run(["python3", "-c", code, library, path], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first.startswith("-7 ") and "libmycelia_lite_train" in first
    assert second.startswith("-7 ") and "inference alone" in second
