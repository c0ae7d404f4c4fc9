"""How models are stored: halves, weights in other files, whole files or none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite.converter import ConversionError, convert, storage, trial
from mycelia_lite.enums import DataType
from mycelia_lite.format import Table, data_of, read, write

MINDIR = mslite.FmkType.MINDIR


def answers(path, *arrays):
    model = mslite.Model()
    model.build_from_file(path)
    return trial.answers(model, arrays)


# ---- float16


def test_halves_answer_alike_and_take_half(lenet, tmp_path):
    path, images, expected = lenet
    whole = convert(MINDIR, path, str(tmp_path / "whole")).path
    half = convert(MINDIR, path, str(tmp_path / "half"), weight_fp16=True).path
    assert os.path.getsize(half) < 0.53 * os.path.getsize(whole)
    kinds = {t.dataType.name for t in read(half).allTensors if len(t.data) > 68}
    assert kinds == {"FLOAT16"}
    (found,) = answers(half, images)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() <= 1e-3 * np.abs(expected).max()


class Mixed(nn.Cell):
    """Constants that stand in a gather, a sum, a comparison, and behind a Reshape."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(0)
        self.table = ms.Parameter(ms.Tensor(rng.normal(size=(50, 20)).astype(np.float16).astype(np.float32)))
        self.row = ms.Parameter(ms.Tensor(rng.integers(-4, 4, 20).astype(np.float32)))

    def construct(self, x, i):
        y = ops.gather(self.table, i, 0)
        return y, ops.greater(x, self.row), ops.reshape(self.row, (4, 5)) + y.reshape(-1)[:5], self.row


def test_halves_serve_every_kind_of_operator(tmp_path, write_mindir):
    net = Mixed()
    inputs = [ms.Tensor(shape=[3, 20], dtype=ms.float32), ms.Tensor(shape=[2], dtype=ms.int32)]
    ms.export(net.set_train(False), *inputs, file_name=str(tmp_path / "m"), file_format="MINDIR")
    made = convert(MINDIR, str(tmp_path / "m.mindir"), str(tmp_path / "m"), weight_fp16=True).path
    assert sum(t.dataType.name == "FLOAT16" for t in read(made).allTensors) >= 2
    x = np.random.default_rng(1).integers(-4, 4, (3, 20)).astype(np.float32)
    i = np.array([7, 49], np.int32)
    for found, want in zip(answers(made, x, i), net(ms.Tensor(x), ms.Tensor(i)), strict=True):
        assert np.array_equal(found, want.asnumpy())


@pytest.mark.parametrize(
    ("values", "is_halved"),
    [
        (np.linspace(-3, 3, 40), True),
        (np.linspace(-7e4, 7e4, 40), False),  # beyond the largest
        (np.linspace(1e-9, 4e-8, 40), False),  # all would drown
        (np.r_[np.linspace(1e-9, 4e-8, 40), 1.0], True),
        (np.r_[np.ones(40), np.inf, np.nan], True),
        (np.ones(16), False),  # nothing to gain
        (np.zeros(40), True),
    ],
)
def test_what_float16_cannot_hold_stays(values, is_halved):
    tensor = Table("Tensor", dataType=int(DataType.FLOAT32), dims=[len(values)])
    tensor.data = values.astype(np.float32).tobytes()
    quantized = tensor.copy()
    quantized.quantParams = [Table("QuantParam")]
    whole = Table("Tensor", dataType=int(DataType.INT32), dims=[40], data=bytes(160))
    model = Table("MetaGraph", allTensors=[tensor, quantized, whole])
    assert storage.halve(model) == is_halved
    assert tensor.dataType.name == ("FLOAT16" if is_halved else "FLOAT32")
    assert quantized.dataType.name == "FLOAT32" and whole.dataType.name == "INT32"


def test_networks_of_float16_stay_what_they_are(tmp_path):
    """A constant of float16 between values of float16 is used as it is."""
    tensors = [Table("Tensor", name=n, dataType="FLOAT16", dims=[2], nodeType=2) for n in "xby"]
    tensors[1].data, tensors[1].nodeType = np.float16([1, 2]).tobytes(), 0
    cast = Table("CNode", name="cast", primitive=Table("Cast"), inputIndex=[1, 3], outputIndex=[2])
    tensors.append(Table("Tensor", name="to", dataType="INT32", dims=[], data=np.int32(43).tobytes()))
    tensors[2].dataType = int(DataType.FLOAT32)
    add = Table("CNode", name="a", primitive=Table("Squeeze"), inputIndex=[2], outputIndex=[4])
    tensors.append(Table("Tensor", name="out", dataType="FLOAT32", dims=[2], nodeType=2))
    model = Table("MetaGraph", nodes=[cast, add], allTensors=tensors, inputIndex=[0], outputIndex=[4])
    write(tmp_path / "h.ms", model)
    (found,) = answers(tmp_path / "h.ms", np.zeros(2, np.float16))
    assert found.dtype == np.float32 and found.tolist() == [1, 2]


# ---- weights in a file of their own


@pytest.fixture
def apart(lenet, tmp_path):
    return Path(convert(MINDIR, lenet[0], str(tmp_path / "n"), weights_apart=1000).path)


def test_weights_in_another_file_answer_alike(lenet, apart):
    (weights,) = apart.parent.glob("n-*.weights")
    assert apart.stat().st_size < 8000 and weights.stat().st_size > 200_000
    model = read(apart)
    places = [t.externalData[0] for t in model.allTensors if t.externalData]
    assert all(p.location == weights.name and p.offset % 64 == 0 for p in places)
    expected = lenet[2]
    assert np.abs(answers(apart, lenet[1])[0] - expected).max() <= 2e-6 * np.abs(expected).max()
    whole = read(convert(MINDIR, lenet[0], str(apart.parent / "whole")).path)
    for ours, others in zip(model.allTensors, whole.allTensors, strict=True):
        assert bytes(data_of(ours, apart.parent)) == bytes(others.data)


def test_weights_of_an_earlier_conversion_are_removed(lenet, apart, write_mindir):
    before = set(apart.parent.glob("n-*.weights"))
    bystander = apart.parent / "n-0123456789abcdef.weights"
    bystander.write_bytes(b"of somebody else")
    convert(MINDIR, lenet[0], str(apart), weights_apart=1000, weight_fp16=True)
    after = set(apart.parent.glob("n-*.weights"))
    assert len(after) == 2 and bystander in after and not before & after
    convert(MINDIR, lenet[0], str(apart))
    assert set(apart.parent.glob("n-*.weights")) == after  # only a conversion that writes weights cleans up


def _place(path, **change):
    model = read(path).copy()
    for tensor in model.allTensors:
        for place in tensor.externalData:
            for name, value in change.items():
                setattr(place, name, value)
    write(path, model)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (dict(location="absent.weights"), "which is not beside the model"),
        (dict(location="../{}/x"), "which is not beside the model|not inside"),
        (dict(location="/etc/passwd"), "no name in the model's folder"),
        (dict(location="link"), "which is not inside of the model's folder"),
        (dict(offset=1 << 40), "in the file"),
        (dict(offset=-64), "in the file"),
        (dict(length=1 << 62), "in the file"),
        (dict(length=4), "do not fit its shape"),
        (dict(checkSum="7000"), "check sum of tensor"),
    ],
)
def test_weights_that_are_not_there_are_told(apart, tmp_path_factory, change, reason):
    other = tmp_path_factory.mktemp("other") / "secret"
    other.write_bytes(bytes(300_000))
    (apart.parent / "link").symlink_to(other)
    _place(apart, **change)
    with pytest.raises(RuntimeError, match=reason):
        answers(apart, np.zeros((1, 1, 32, 32), np.float32))


def test_weights_of_a_cut_off_file_are_told(apart):
    (weights,) = apart.parent.glob("n-*.weights")
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(RuntimeError, match="tensor .* which has 1000"):
        answers(apart, np.zeros((1, 1, 32, 32), np.float32))


def test_weights_apart_are_not_encrypted(lenet, tmp_path):
    with pytest.raises(NotImplementedError, match="encryptKey"):
        convert(MINDIR, lenet[0], str(tmp_path / "n"), weights_apart=10, encrypt_key=bytes(16))
    assert not list(tmp_path.iterdir())


# ---- whole or not at all

FULL = """
import resource, sys
import mycelia_lite as mslite
from mycelia_lite.cli import app
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
app(["convert", "--fmk=MINDIR", f"--modelFile={sys.argv[1]}", f"--outputFile={sys.argv[2]}", *sys.argv[3:]])
"""


@pytest.mark.parametrize("options", [[], ["--weightsApart=1000"], ["--encryptKey=" + "ab" * 16]])
def test_a_full_disk_leaves_what_was_there(lenet, tmp_path, options):
    old = tmp_path / "n.ms"
    old.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", FULL, lenet[0], str(tmp_path / "n"), *options], capture_output=True, text=True
    )
    assert done.returncode == 1 and "CONVERT RESULT FAILED:-1" in done.stderr, done.stderr
    assert str(tmp_path) in done.stderr
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("n.ms", b"old")]


KILLED = """
import os, signal, sys
import mycelia_lite as mslite
from mycelia_lite.converter import convert, storage
def parts(model, made=storage.encode_parts):
    for i, part in enumerate(made(model)):
        if i == 3: os.kill(os.getpid(), signal.SIGKILL)
        yield part
storage.encode_parts = parts
convert(mslite.FmkType.MINDIR, sys.argv[1], sys.argv[2])
"""


def test_a_killed_converter_leaves_no_half_file(lenet, tmp_path):
    old = tmp_path / "n.ms"
    old.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", KILLED, lenet[0], str(tmp_path / "n")])
    assert done.returncode == -signal.SIGKILL
    assert old.read_bytes() == b"old"
    convert(MINDIR, lenet[0], str(tmp_path / "n"))
    assert [p.name for p in tmp_path.iterdir()] == ["n.ms"]  # the rest of the killed one is gone


def test_a_folder_that_is_not_there_is_told(lenet, tmp_path):
    with pytest.raises((ConversionError, OSError), match="nowhere"):
        convert(MINDIR, lenet[0], str(tmp_path / "nowhere" / "n"))


# ---- bfloat16


def test_brain_floats_answer_alike_and_take_half(lenet, tmp_path):
    path, images, expected = lenet
    whole = convert(MINDIR, path, str(tmp_path / "whole")).path
    half = convert(MINDIR, path, str(tmp_path / "half"), weight_bf16=True).path
    assert os.path.getsize(half) < 0.53 * os.path.getsize(whole)
    assert {t.dataType.name for t in read(half).allTensors if len(t.data) > 68} == {"BFLOAT16"}
    (found,) = answers(half, images)
    assert found.dtype == np.float32
    assert 0 < np.abs(found - expected).max() <= 1e-2 * np.abs(expected).max()


def test_brain_floats_are_the_nearest_and_serve_every_kind_of_operator(tmp_path, write_mindir):
    net = Mixed()
    wide = np.random.default_rng(1).normal(size=(50, 20)).astype(np.float32)
    net.table.set_data(ms.Tensor(wide))
    path = tmp_path / "mixed.mindir"
    x, i = np.ones((3, 20), np.float32), np.array([4, 2, 40], np.int32)
    ms.export(net.set_train(False), ms.Tensor(x), ms.Tensor(i), file_name=str(path), file_format="MINDIR")
    made = convert(MINDIR, str(path), str(tmp_path / "mixed"), weight_bf16=True).path
    rows, *others = answers(made, x, i)
    nearest = np.abs(rows - wide[i]) / 2.0 ** np.floor(np.log2(np.abs(wide[i])))
    assert nearest.max() <= 2.0**-8 and np.array_equal(
        rows.view(np.uint32) & 0xFFFF, 0 * rows.view(np.uint32)
    )
    expected = [y.asnumpy() for y in net(ms.Tensor(x), ms.Tensor(i))][1:]
    for found, wanted in zip(others, expected, strict=True):
        assert np.abs(found.astype(float) - wanted).max() <= 2.0**-7 * np.abs(wanted.astype(float)).max()


def test_constants_are_stored_in_one_way(lenet, tmp_path):
    with pytest.raises(ConversionError, match="fp16 and bf16 are both on"):
        convert(MINDIR, lenet[0], str(tmp_path / "both"), weight_fp16=True, weight_bf16=True)
