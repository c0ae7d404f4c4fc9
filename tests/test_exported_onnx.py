"""ONNX files that core writes are read by Lite's importer and give the same numbers."""

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor
from mycelia.ir import evaluate
from mycelia_lite.converter.importers import onnx

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "zoo"))
from zoo import ZOO

NOT_READ: set[str] = set()
ONE_SIZE = {"gan", "translator"}  # they compare open sizes


def read_back(path, arrays):
    source = onnx.load(str(path), {})
    return [t.asnumpy() for t in evaluate(source.graph, [Tensor(a) for a in arrays])]


@pytest.mark.parametrize("name", sorted(ZOO.keys() - NOT_READ))
def test_networks_of_the_zoo_come_back(tmp_path, name):
    entry = ZOO[name]
    ms.set_seed(1)
    net = entry.make().set_train(False)
    arrays = entry.inputs(np.random.default_rng(0))
    ms.export(net, *map(Tensor, arrays), file_name=str(tmp_path / "net"), file_format="ONNX")
    (found,) = read_back(tmp_path / "net.onnx", arrays)
    np.testing.assert_allclose(found, net(*map(Tensor, arrays)).asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["lenet", "resnet18", "mobilenet_v3", "unet", "bert"])
def test_one_file_takes_any_batch(tmp_path, name):
    entry = ZOO[name]
    ms.set_seed(1)
    net = entry.make().set_train(False)
    arrays = entry.inputs(np.random.default_rng(0))
    inputs = [Tensor(shape=[None, *a.shape[1:]], dtype=Tensor(a).dtype) for a in arrays]
    ms.export(net, *inputs, file_name=str(tmp_path / "net"), file_format="ONNX")
    for batch in (1, 3):
        given = [np.concatenate([a] * 3)[:batch] for a in arrays]
        (found,) = read_back(tmp_path / "net.onnx", given)
        np.testing.assert_allclose(found, net(*map(Tensor, given)).asnumpy(), rtol=1e-4, atol=1e-5)
