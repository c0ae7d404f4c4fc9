"""ONNX-ML: models of scikit-learn answer as in onnxruntime, trees are checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia.io.onnx import onnx_pb2
from mycelia_lite.converter import ConversionError
from mycelia_lite.micro import generate

from ..micro.c_projects import compiled, run
from .onnx_models import converted, model, node, write

ANSWERS = Path(__file__).parents[1] / "fixtures/learned/answers.npz"
NAMES = sorted({key.partition("/")[0] for key in np.load(ANSWERS)})
F32 = np.float32


def loaded(path) -> mslite.Model:
    made = mslite.Model()
    made.build_from_file(path)
    return made


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Converted models by name, with an array and the answers to it."""
    folder, stored, found = tmp_path_factory.mktemp("learned"), np.load(ANSWERS), {}
    for k, name in enumerate(NAMES):
        (folder / "m.onnx").write_bytes(stored[f"{name}/file"].tobytes())
        mslite.Converter().convert(mslite.FmkType.ONNX, str(folder / "m.onnx"), str(folder / f"m{k}"))
        answers = [stored[f"{name}/{i}"] for i in range(2) if f"{name}/{i}" in stored]
        found[name] = str(folder / f"m{k}.ms"), stored[f"{name}/x"], answers
    return found


@pytest.mark.parametrize("name", NAMES)
def test_models_of_scikit_learn_answer_as_in_onnxruntime(files, name):
    path, x, expected = files[name]
    made = loaded(path)
    made.resize(made.get_inputs(), [list(x.shape)])
    made.get_inputs()[0].set_data_from_numpy(x)
    found = [t.get_data_to_numpy() for t in made.predict(made.get_inputs())]
    assert len(found) == len(expected)
    for one, answer in zip(found, expected):
        assert one.dtype == answer.dtype and one.shape == answer.shape
        if answer.dtype == np.int64:
            assert (one == answer).all()
        else:
            assert np.abs(one - answer).max() <= 2e-6 * np.abs(answer).max()


def test_they_are_c_code_as_well(files, tmp_path):
    paths, shapes = [], {}
    for path, x, _ in files.values():
        shapes[path] = {loaded(path).get_inputs()[0].name: [3, x.shape[1]]}
        paths.append(path)
    for k, path in enumerate(paths):
        generate(path, tmp_path / f"c{k}", shapes[path])
    for k in (0, len(paths) // 2, len(paths) - 1):
        assert all(line.endswith("PASSED") for line in run(compiled(tmp_path / f"c{k}")))


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
TWO_LEVELS = dict(  # node 0 of feature 0, node 2 of feature 1 if that holds; leaves 1, 3, 4
    nodes_treeids=[0] * 5, nodes_nodeids=[0, 1, 2, 3, 4], nodes_featureids=[0, 0, 1, 0, 0],
    nodes_values=[0.5, 0.0, 2.0, 0.0, 0.0],
    nodes_truenodeids=[2, 0, 3, 0, 0], nodes_falsenodeids=[1, 0, 4, 0, 0],
    target_treeids=[0, 0, 0], target_nodeids=[1, 3, 4], target_ids=[0, 0, 0],
    target_weights=[1.0, 10.0, 100.0],
)  # fmt: skip


def forest(mode="BRANCH_LEQ", **changed):
    given = TWO_LEVELS | {"nodes_modes": [mode, "LEAF", mode, "LEAF", "LEAF"]} | changed
    nodes = [node("TreeEnsembleRegressor", "x", "y", name="forest", domain="ai.onnx.ml", **given)]
    made = model(nodes, {"x": (F32, (None, 2))}, "y")
    made.opset_import.append(onnx_pb2.OperatorSetIdProto(domain="ai.onnx.ml", version=3))
    return made


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("missing", [0, 1])
def test_each_comparison(tmp_path, mode, missing):
    numbers = [0.0, 0.5, 1.0, 2.0, 3.0, np.nan]
    x = np.array([[a, b] for a in numbers for b in numbers], F32)
    compare = dict(
        zip(MODES, (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal))
    )[mode]
    holds = [
        np.where(np.isnan(v), missing, compare(v, t)).astype(bool) for v, t in ((x[:, 0], 0.5), (x[:, 1], 2))
    ]
    expected = np.where(holds[0], np.where(holds[1], 10, 100), 1)[:, None]
    (found,) = converted(tmp_path, forest(mode, nodes_missing_value_tracks_true=[missing] * 5))(x)
    assert (found == expected).all()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (dict(nodes_truenodeids=[7, 0, 3, 0, 0]), "leads to a node that is not there"),
        (dict(nodes_truenodeids=[2, 0, 0, 0, 0]), "no root, or several"),
        (dict(nodes_falsenodeids=[2, 0, 4, 0, 0]), "reached in two ways"),
        (dict(target_nodeids=[0, 3, 4]), "a weight of node 0"),
        (dict(target_ids=[0, 1, 0]), "target 1"),
        (dict(nodes_values=[0.5]), "several lengths"),
        (dict(nodes_featureids=[0, 0, 9, 0, 0]), "lead out of"),
        (dict(mode="BRANCH_MEMBER"), "the mode 'BRANCH_MEMBER'"),
        (dict(aggregate_function="MEDIAN"), "aggregate_function"),
    ],
)
def test_wrong_trees_are_told(tmp_path, changed, why):
    with pytest.raises((ConversionError, RuntimeError), match=why):
        converted(tmp_path, forest(**changed))(np.zeros((1, 2), F32))


def test_maps_and_text_are_refused(tmp_path):
    nodes = [node("ZipMap", "x", "y", name="zip", domain="ai.onnx.ml", classlabels_int64s=[0, 1])]
    path = write(tmp_path / "m.onnx", model(nodes, {"x": (F32, (1, 2))}, "y"))
    with pytest.raises(ConversionError, match="zipmap=False"):
        mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"))
    labels = dict(classlabels_strings=["a", "b"], coefficients=[1.0, 2.0, 3.0, 4.0])
    nodes = [node("LinearClassifier", "x", "label y", name="linear", domain="ai.onnx.ml", **labels)]
    path = write(tmp_path / "m.onnx", model(nodes, {"x": (F32, (1, 2))}, "label y"))
    with pytest.raises(ConversionError, match="labels that are text"):
        mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"))
