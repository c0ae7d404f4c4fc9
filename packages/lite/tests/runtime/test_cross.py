"""The runtime cross-compiled for 64-bit and 32-bit ARM, in an emulator.

Compiling takes minutes, so this runs only when asked for: ``MYCELIA_CROSS=1 pytest
packages/lite/tests/runtime/test_cross.py``. Builds are kept under packages/lite/build/cross-*.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia_lite.quant import DynamicQuantization, FullQuantization, WeightQuantization

PACKAGE = Path(__file__).resolve().parents[2]
ZOO = PACKAGE.parents[1] / "examples" / "zoo"
PROGRAM = Path(__file__).with_name("replay.c")

pytestmark = pytest.mark.skipif(
    not os.environ.get("MYCELIA_CROSS"), reason="compiles for minutes: set MYCELIA_CROSS=1"
)


@dataclass(frozen=True)
class Machine:
    """A processor: its compilers, its emulator, and the kernels that it is to use."""

    processor: str
    compiler: str
    emulator: str
    isa: str


MACHINES = [
    Machine("aarch64", "aarch64-linux-gnu", "qemu-aarch64", "neon"),
    Machine("armv7l", "arm-linux-gnueabihf", "qemu-arm", "generic"),
]


@pytest.fixture(scope="module", params=MACHINES, ids=lambda machine: machine.processor)
def replay(request, tmp_path_factory):
    """``(model, inputs, outputs) -> instruction set`` of a program that the emulator runs."""
    machine = request.param
    emulator = shutil.which(machine.emulator) or shutil.which(f"{machine.emulator}-static")
    if not emulator or not shutil.which(f"{machine.compiler}-g++"):
        pytest.skip(f"needs {machine.compiler}-g++ and {machine.emulator}")
    build = PACKAGE / "build" / f"cross-{machine.processor}"
    program = tmp_path_factory.mktemp("cross") / "replay"
    for command in (
        ["cmake", "-S", PACKAGE / "native", "-B", build, "-DCMAKE_SYSTEM_NAME=Linux",
         f"-DCMAKE_SYSTEM_PROCESSOR={machine.processor}", f"-DCMAKE_CXX_COMPILER={machine.compiler}-g++"],
        ["cmake", "--build", build, "--parallel", "2"],
        [f"{machine.compiler}-gcc", "-c", PROGRAM, f"-I{PACKAGE}/native/include", "-o", f"{program}.o"],
        [f"{machine.compiler}-g++", "-static", f"{program}.o", build / "libmycelia_lite.a", "-pthread",
         "-o", program],
    ):  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def run(*files) -> str:
        done = subprocess.run([emulator, program, *files], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run, machine


def _answers_as_here(replay, name, folder, monkeypatch, quantization=None):
    """A network of the zoo, exported and converted, on the other machine and on this one."""
    run, machine = replay
    monkeypatch.syspath_prepend(str(ZOO))
    from zoo import ZOO as networks

    ms.set_seed(5)
    network = networks[name].make().set_train(False)
    inputs = networks[name].inputs(np.random.default_rng(7))
    tensors = [ms.Tensor(x) for x in inputs]
    ms.export(network, *tensors, file_name=str(folder / "net"), file_format="MINDIR")
    converter = mslite.Converter()
    if quantization is not None:
        converter.quantization = quantization(inputs)
    made = str(folder / "net.ms")
    converter.convert(mslite.FmkType.MINDIR, str(folder / "net.mindir"), made)
    (folder / "inputs").write_bytes(b"".join(x.tobytes() for x in inputs))
    assert run(made, folder / "inputs", folder / "outputs") == machine.isa
    model = mslite.Model()
    model.build_from_file(made)
    for tensor, x in zip(model.get_inputs(), inputs, strict=True):
        tensor.set_data_from_numpy(x)
    expected = np.concatenate([y.get_data_to_numpy().ravel() for y in model.predict(model.get_inputs())])
    return np.fromfile(folder / "outputs", expected.dtype), expected


@pytest.mark.parametrize("name", ["lenet", "mobilenet_v2", "resnet18", "unet", "bert", "vit", "autoencoder"])
def test_networks_answer_as_on_this_processor(replay, name, tmp_path, monkeypatch):
    found, expected = _answers_as_here(replay, name, tmp_path, monkeypatch)
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("bits", range(1, 9))
def test_packed_weights_are_decoded_as_on_this_processor(replay, bits, tmp_path, monkeypatch):
    how = WeightQuantization(bits=bits, compact=bits < 8)
    for name in ("lenet", "vit"):
        found, expected = _answers_as_here(replay, name, tmp_path, monkeypatch, lambda _: how)
        assert np.allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("group", [32, 128])
def test_groups_of_packed_weights_are_decoded_as_on_this_processor(replay, group, tmp_path, monkeypatch):
    how = WeightQuantization(bits=4, group=group)
    found, expected = _answers_as_here(replay, "bert", tmp_path, monkeypatch, lambda _: how)
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_integers_are_those_of_this_processor(replay, tmp_path, monkeypatch):
    """To the step of a result: sums are the same integers, products of scales may round another way."""
    found, expected = _answers_as_here(
        replay, "lenet", tmp_path, monkeypatch, lambda inputs: FullQuantization(calibration=list(inputs))
    )
    assert np.abs(found - expected).max() <= 0.02 * np.abs(expected).max()


def test_data_become_integers_as_on_this_processor(replay, tmp_path, monkeypatch):
    found, expected = _answers_as_here(replay, "vit", tmp_path, monkeypatch, lambda _: DynamicQuantization())
    assert np.abs(found - expected).max() <= 0.02 * np.abs(expected).max()
