"""LSTM of integers of TFLITE files against LiteRT, in three runs of which each goes on with the states.

``python -m converter.test_tflite_integer_lstm FOLDER`` in `packages/lite/tests` writes the models; what
LiteRT (ai-edge-litert 2) answers to the inputs is in the fixture.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError, convert

from .tflite_models import Builder, scaled, table

FIXTURE = Path(__file__).parents[1] / "fixtures" / "tflite_integer_lstm.npz"
BATCH, STEPS, INPUTS, HIDDEN, RUNS = 2, 7, 3, 5, 3
OF_X, OF_H, OF_C = (0.03, -4), (1 / 128, 3), (2.0**-12, 0)


def lstm(seed=0, time_major=False, clip=0.0, of_h=OF_H, of_c=OF_C, batch=BATCH, steps=STEPS, **other):
    """A model of one layer of int8. `other`: what is not as usual, by name."""
    rng = np.random.default_rng(seed)
    made = Builder()
    shape = (steps, batch, INPUTS) if time_major else (batch, steps, INPUTS)
    if not steps:
        shape = (batch, INPUTS)  # one step without an axis of its own
    names = [made.tensor("x", "int8", shape, None, scaled(*OF_X))]
    steps_of = {}
    for kind, width in (("w", INPUTS), ("r", HIDDEN)):
        for gate in range(4):
            scale = steps_of[kind, gate] = float(rng.uniform(0.004, 0.012))
            array = rng.integers(-127, 128, (HIDDEN, width)).astype(np.int8)
            names.append(made.constant(f"{kind}{gate}", array, scaled(scale, other.get("zero", 0))))
    names += (
        [made.constant("p", np.ones(HIDDEN, np.int16), scaled(2.0**-15))] if "peephole" in other else [None]
    )
    names += [None, None]
    for gate in range(4):
        scale = OF_X[0] * steps_of["w", gate]
        array = np.round(rng.normal(size=HIDDEN) / scale).astype(np.int32)
        names.append(made.constant(f"b{gate}", array, scaled(scale)))
    names += [None, None]
    names.append(made.tensor("h", "int8", (batch, HIDDEN), None, scaled(*of_h), is_variable=True))
    names.append(
        made.tensor("c", other.get("cell", "int16"), (batch, HIDDEN), None, scaled(*of_c), is_variable=True)
    )
    between = [made.tensor(f"m{i}", "int16", (), None, scaled(2.0**-12)) for i in range(4)]
    between.append(made.tensor("m4", "int8", (), None, scaled(*other.get("between", of_h))))
    made.tensor("y", "int8", (*shape[:-1], HIDDEN), None, scaled(*of_h))
    common = {"cell_clip": clip, "fused_activation_function": other.get("activation", "TANH")}
    kind, options = "LSTM", table("LSTMOptions", **common) if not steps else None
    if steps:
        kind = "UNIDIRECTIONAL_SEQUENCE_LSTM"
        options = table("UnidirectionalSequenceLSTMOptions", time_major=time_major, **common)
    made.add(kind, names, ["y"], options, between=between)
    made.borders(["x"], ["y"])
    return made, shape


CASES = {
    "batch first": {},
    "time first": {"seed": 1, "time_major": True},
    "clipped": {"seed": 2, "clip": 0.7},
    "coarse": {"seed": 3, "of_h": (0.02, -20), "of_c": (2.0**-11, 0)},
    "one": {"seed": 4, "batch": 1, "steps": 1},
    "a step": {"seed": 6, "steps": 0},
    "long": {"seed": 5, "batch": 1, "steps": 40},
}


def inputs(name):
    shape = lstm(**CASES[name])[1]
    rng = np.random.default_rng(len(name))
    return [rng.integers(-128, 128, shape).astype(np.int8) for _ in range(RUNS)]


@pytest.mark.parametrize("name", CASES)
def test_a_layer_answers_as_litert_and_keeps_its_states(name, tmp_path):
    answers = np.load(FIXTURE)[name]
    path = lstm(**CASES[name])[0].write(tmp_path / "m.tflite")
    model = mslite.Model()
    model.build_from_file(convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m")).path)
    (x,) = model.get_inputs()
    for array, expected in zip(inputs(name), answers, strict=True):
        x.set_data_from_numpy(array)
        (y,) = (t.get_data_to_numpy() for t in model.predict([x]))
        assert y.dtype == np.int8 and y.shape == expected.shape
        off = np.abs(y.astype(int) - expected)
        assert off.max() <= 1 and (off > 0).mean() < 0.1


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"peephole": True}, "with peepholes"),
        ({"activation": "RELU"}, "'fused_activation_function' is 'RELU', which is not imported for integers"),
        ({"cell": "int8"}, "of other types than int8 with a cell state of int16"),
        ({"between": (0.5, 0)}, "whose hidden state has another scale than its output"),
        ({"zero": 1}, "weights of a cell of integers that are no constants around zero"),
    ],
)
def test_cells_of_other_kinds_are_refused_by_name(other, reason, tmp_path):
    path = lstm(**other)[0].write(tmp_path / "m.tflite")
    with pytest.raises(ConversionError, match=f"'y' .UNIDIRECTIONAL_SEQUENCE_LSTM.: .*{reason}"):
        convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m"))


if __name__ == "__main__":
    for key, how in CASES.items():
        lstm(**how)[0].write(Path(sys.argv[1]) / f"{key}.tflite")
        np.savez(Path(sys.argv[1]) / f"{key}.npz", *inputs(key))
