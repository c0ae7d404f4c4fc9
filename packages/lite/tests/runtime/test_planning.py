"""Plans of stages: what is asked of views, runs that follow one another, calls in the last place."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mycelia_lite.format import write

from .test_programs import compiled
from .test_stages import File, run

PACKAGES = Path(__file__).resolve().parents[3]


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_no_operator_is_planned_for_ever(tmp_path):
    for kind in ("Abs", "Neg"):
        file = File()
        file.tensor("x", "INT64", [3])
        file.graph(["x"], ["y"], lambda file=file, kind=kind: file.node(kind, ["x"], ["y"]))
        write(tmp_path / f"{kind}.ms", file.root())
    folders = [PACKAGES / "lite/native/src", PACKAGES / "core/native/include"]
    source = Path(__file__).with_name("planned_operators.cc")
    program = compiled(tmp_path, source, "-std=c++17", *(f"-I{folder}" for folder in folders))
    done = subprocess.run(
        [program, tmp_path / "Abs.ms", tmp_path / "Neg.ms"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found, reason = done.stdout.splitlines()
    assert found == "7"
    assert reason == "node 'y' (Neg): it asks for a number in each of 32 stages"


def called_last(rows):
    """f(exp(x)) with f in the last place, with more memory; f may call itself, but does not."""
    file = File()
    file.tensor("x", dims=[-1]), file.tensor("t", dims=[-1]), file.tensor("q")

    def main():
        file.node("ExpFusion", ["x"], ["e"], base=-1.0, scale=1.0)
        file.node("PartialFusion", ["e"], ["part"], sub_graph_index=1)
        file.node("Call", ["part"], ["y"])

    def repeated():
        file.node("TileFusion", ["t", file.constant("rows", np.array([rows], np.int32))], ["all"])
        file.node("Sin", ["all"], ["sines"])
        file.node(
            "ReduceFusion",
            ["sines", file.constant("axis", np.array([0], np.int32))],
            ["sum"],
            mode="ReduceSum",
        )
        file.node("Less", ["sum", file.constant("least", np.float32(-1e30))], [file.tensor("again", "BOOL")])
        file.node("PartialFusion", ["all"], ["self"], sub_graph_index=1)
        file.node("PartialFusion", ["sum"], ["end"], sub_graph_index=2)
        file.node("Switch", ["again", "self", "end"], ["switch"])
        file.node("Call", ["switch"], ["out"])

    file.graph(["x"], ["y"], main)
    file.graph(["t"], ["out"], repeated)
    file.graph(["q"], ["q2"], lambda: file.node("Abs", ["q"], ["q2"]))
    return file


@pytest.mark.parametrize("rows", (1, 400))
def test_a_model_that_ends_in_a_call_runs_again(tmp_path, rows):
    model = called_last(rows).model(tmp_path / "m.ms")
    x = np.linspace(0, 1, 1000, dtype=np.float32)
    expected = rows * np.sin(np.exp(x.astype(np.float64))).sum()
    np.testing.assert_allclose(run(model, x)[0], expected, rtol=1e-5)
    for scale in (1, 0.5, 0.25):
        model.get_inputs()[0].set_data_from_numpy(scale * x)
        expected = rows * np.sin(np.exp(scale * x.astype(np.float64))).sum()
        np.testing.assert_allclose(
            model.predict(model.get_inputs())[0].get_data_to_numpy(), expected, rtol=1e-5
        )
