"""Files that the converter writes load in MindSpore Lite 2.0.0 and answer alike there.

MYCELIA_BENCH_MSLITE names a Python 3.7 with the package mindspore-lite 2.0.0; without it these are skipped.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import Tensor, nn, ops
from mycelia_lite.quant import FullQuantization

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "zoo"))
from zoo import ZOO

PYTHON = os.environ.get("MYCELIA_BENCH_MSLITE", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="MYCELIA_BENCH_MSLITE names no Python with mindspore-lite")
ORIGINAL = """
import sys
import mindspore_lite as mslite, numpy as np
path, given, answer = sys.argv[1:]
context = mslite.Context()
context.target = ["cpu"]
context.cpu.thread_num = 1
model = mslite.Model()
model.build_from_file(path, mslite.ModelType.MINDIR_LITE, context)
arrays = np.load(given)
inputs = model.get_inputs()
assert sorted(t.name for t in inputs) == sorted(arrays.files)
for t in inputs:
    x = arrays[t.name]
    assert list(x.shape) == list(t.shape)
    t.set_data_from_numpy(x)
np.savez(answer, **{t.name: t.get_data_to_numpy() for t in model.predict(inputs)})
"""


class TextCNN(nn.Cell):
    """Kim 2014: windows of words, the largest answer of each filter, a classifier."""

    def __init__(self, words=200, width=24, filters=16, classes=4):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.windows = nn.CellList(
            [nn.Conv2d(1, filters, (n, width), pad_mode="valid", has_bias=True) for n in (3, 4, 5)]
        )
        self.classifier = nn.Dense(3 * filters, classes)

    def construct(self, tokens):
        x = ops.expand_dims(self.embedding(tokens), 1)
        found = [ops.amax(ops.relu(window(x)), (2, 3)) for window in self.windows]
        return ops.softmax(self.classifier(ops.concat(found, 1)), -1)


def of_text():
    return TextCNN(), (np.random.default_rng(0).integers(0, 200, (2, 30)).astype(np.int32),)


def of_zoo(name):
    entry = ZOO[name]
    return entry.make(), entry.inputs(np.random.default_rng(0))


NETWORKS = {
    name: lambda name=name: of_zoo(name)
    for name in (
        "lenet", "alexnet", "vgg16", "resnet18", "resnet50", "mobilenet_v1", "mobilenet_v2", "mobilenet_v3",
        "efficientnet_b0", "googlenet", "densenet", "unet", "vit",
    )
    if name in ZOO
} | {"text": of_text}  # fmt: skip


def in_the_original(path, arrays, folder):
    np.savez(folder / "given.npz", **arrays)
    command = [PYTHON, "-c", ORIGINAL, path, folder / "given.npz", folder / "answer.npz"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return np.load(folder / "answer.npz")


@pytest.mark.parametrize("fp16", [False, True], ids=["float32", "float16"])
@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_a_network_answers_as_in_mindspore_lite(tmp_path, name, fp16):
    ms.set_seed(3)
    net, arrays = NETWORKS[name]()
    net.set_train(False)
    ms.export(net, *map(Tensor, arrays), file_name=str(tmp_path / "net"), file_format="MINDIR")
    converter = mslite.Converter()
    converter.weight_fp16 = fp16
    path = converter.convert(mslite.FmkType.MINDIR, str(tmp_path / "net.mindir"), str(tmp_path / "net")).path
    model = mslite.Model()
    model.build_from_file(path)
    inputs = model.get_inputs()
    for tensor, x in zip(inputs, arrays, strict=True):
        tensor.set_data_from_numpy(x)
    ours = {t.name: t.get_data_to_numpy() for t in model.predict(inputs)}
    theirs = in_the_original(path, dict(zip((t.name for t in inputs), arrays)), tmp_path)
    assert sorted(ours) == sorted(theirs.files)
    for key, y in ours.items():
        largest = np.abs(y).max()
        assert theirs[key].shape == y.shape
        np.testing.assert_allclose(theirs[key], y, rtol=0, atol=1e-4 * largest)
        assert fp16 or np.abs(y - net(*map(Tensor, arrays)).asnumpy()).max() <= 1e-4 * largest


def test_integers_answer_as_in_mindspore_lite(tmp_path):
    """Full quantization writes what its kernels of int8 read."""
    ms.set_seed(3)
    net, (images,) = NETWORKS["lenet"]()
    net.set_train(False)
    ms.export(net, Tensor(images), file_name=str(tmp_path / "net"), file_format="MINDIR")
    converter = mslite.Converter()
    converter.quantization = FullQuantization(calibration=[images], integer_results=True)
    path = converter.convert(mslite.FmkType.MINDIR, str(tmp_path / "net.mindir"), str(tmp_path / "net")).path
    model = mslite.Model()
    model.build_from_file(path)
    inputs = model.get_inputs()
    inputs[0].set_data_from_numpy(images)
    ours = {t.name: t.get_data_to_numpy() for t in model.predict(inputs)}
    theirs = in_the_original(path, {inputs[0].name: images}, tmp_path)
    for key, y in ours.items():
        steps = np.unique(np.abs(np.diff(np.unique(y))).round(6)).min()  # of the last layer's integers
        assert np.abs(theirs[key] - y).max() <= 2.01 * steps
