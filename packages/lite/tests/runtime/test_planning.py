"""Plans of stages: what is asked of views, runs that follow one another, calls in the last place."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.format import write

from ..converter.optimise.random_graphs import Graph
from ..converter.optimise.small_models import agree, values
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


def on_threads(path, threads, lanes, arrays, watched=False):
    context = mslite.Context()
    context.cpu.thread_num, context.cpu.inter_op_parallel_num = threads, lanes
    model = mslite.Model()
    model.build_from_file(path, context=context)
    found = []
    for given in arrays:
        for tensor, array in zip(model.get_inputs(), given):
            tensor.set_data_from_numpy(array)
        before = (
            (lambda *node: True) if watched else None
        )  # who watches sees each node, so that none are joined
        found.append([t.get_data_to_numpy() for t in model.predict(model.get_inputs(), before=before)])
    return found


@pytest.mark.fuzz(30)
def test_random_graphs_run_alike_however_they_run(seed, tmp_path):
    model = Graph(seed).grow(14)
    first = values(model, seed)
    if seed % 3 == 0:
        for array in first:
            array.reshape(-1)[:: max(array.size // 4, 1)] = np.nan
    arrays = [first, [0.5 * a for a in first], first]
    write(tmp_path / "m.ms", model)
    expected = on_threads(tmp_path / "m.ms", 1, 1, arrays, watched=True)
    for threads, lanes in ((1, 1), (3, 2)):
        for one, other in zip(expected, on_threads(tmp_path / "m.ms", threads, lanes, arrays)):
            agree(one, other, 1e-4)
