"""Random graphs answer in C as in the runtime."""

from __future__ import annotations

import pytest

from mycelia_lite.converter import optimise
from mycelia_lite.format import write
from mycelia_lite.micro import generate, project

from ..converter.optimise.random_graphs import Graph
from .c_projects import compiled, run

EACH = 8


@pytest.mark.fuzz(2)
def test_random_graphs_answer_as_in_the_runtime(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(project, "_TOLERANCE", 1e-4)  # some subtract what is nearly the same
    paths = []
    for own in range(EACH * seed, EACH * (seed + 1)):
        model = Graph(own).grow(12)
        if own % 2:
            optimise.run(model)
        paths.append(str(tmp_path / f"graph{own}.ms"))
        write(paths[-1], model)
    generate(paths, tmp_path / "all")
    lines = run(compiled(tmp_path / "all", ("gcc", "-std=c99"), "-O0"))
    assert len(lines) >= EACH and all(line.endswith("PASSED") for line in lines)
