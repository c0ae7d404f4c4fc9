"""`save_graphs` writes graphs under the names by which MindSpore's scripts find them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.debug.reading.ir import read_graph
from mycelia.engine.base.wire import fields
from mycelia.engine.communication import world

X = np.ones((2, 4), np.float32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)

    def construct(self, x):
        return ops.relu(self.fc(x) * 1.0)


def compiled(folder, level=1):
    with ms.config.context(mode=ms.GRAPH_MODE, save_graphs=level, save_graphs_path=str(folder)):
        Net()(Tensor(X))
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def operators(path):
    """Types of the operators of a ModelProto, which is of version 1."""
    model = {number: value for number, value in fields(memoryview(path.read_bytes()))}
    assert model[1] == 1
    nodes = [dict(fields(value)) for number, value in fields(model[4]) if number == 1]
    return [bytes(node[3]).decode() for node in nodes]


@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_names_are_mindspores_where_stages_correspond(tmp_path, level):
    names = compiled(tmp_path, level)
    forms = (
        r"ms_output_before_opt_\d+\.pb", r"ms_output_after_opt_\d+\.pb", r"ms_output_optimize\.pb",
        r"trace_code_graph_\d{4}",
    )  # fmt: skip
    for form in forms:
        assert len([n for n in names if re.fullmatch(form, n)]) == 1, (form, names)


def test_files_of_stages_and_passes_have_mindspores_names_and_one_order(tmp_path):
    compiled(tmp_path, 2)
    forms = {
        "type_inference": r"01_type_inference_(\d{4})\.ir",
        "pass": r"opt_pass_\d+_simplify_(\d{4})\.ir",
        "validate": r"21_validate_(\d{4})\.ir",
        "before": r"hwopt_\w+_before_lower_graph_\d+_(\d{4})\.ir",
        "device pass": r"verbose_ir_files/hwopt_lower_pm_\d+_(?:matmul|epilogue)_(\d{4})\.ir",
        "after": r"hwopt_\w+_after_lower_graph_\d+_(\d{4})\.ir",
        "build": r"graph_build_\d+_(\d{4})\.ir",
    }
    names = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.ir")]
    serials = [
        max((int(found[1]) for name in names if (found := re.fullmatch(form, name))), default=-1)
        for form in forms.values()
    ]
    assert -1 not in serials and serials == sorted(serials), dict(zip(forms, serials))
    texts = [path.read_text() for path in tmp_path.rglob("*.ir")]
    assert len(set(texts)) > len(forms)


def test_instructions_are_told_with_what_runs_them_and_where_their_results_lie(tmp_path):
    compiled(tmp_path)
    programs = [path.read_text() for path in (tmp_path / "actor_set").iterdir()]
    numbers = [path.stem.split("_")[-1] for path in (tmp_path / "actor_set").iterdir()]
    built = [
        re.fullmatch(r"graph_build_(\d+)_\d{4}", path.stem)[1] for path in tmp_path.glob("graph_build_*")
    ]
    assert sorted(numbers) == sorted(built)
    (net,) = [text for text in programs if "prologue" not in text]
    assert re.search(r"^program of Net.construct: [1-9]\d* instructions, arena \d+ bytes$", net, re.MULTILINE)
    assert re.search(r"^%\d+ = parameter 0: Tensor\[Float32\]\(2, 4\)$", net, re.MULTILINE)
    assert "# runs: " in net and "# fullname: Default/" in net and "# address: " in net
    assert re.search(r"^return %\d+$", net, re.MULTILINE)


def test_messages_are_the_graph_before_and_after_it_was_optimized(tmp_path):
    compiled(tmp_path)
    (before,) = tmp_path.glob("ms_output_before_opt_*.pb")
    (after,) = tmp_path.glob("ms_output_after_opt_*.pb")
    assert operators(before) == ["dense", "mul", "relu"] and operators(after) == ["dense", "relu"]
    assert after.read_bytes() == (tmp_path / "ms_output_optimize.pb").read_bytes()
    (trace,) = tmp_path.glob("trace_code_graph_*")
    kinds = [node.kind for node in read_graph(trace).values() if node.kind != "Parameter"]
    assert kinds == ["Dense", "ReLU"]
    relu = next(node for node in read_graph(trace).values() if node.kind == "ReLU")
    assert "ops.relu(self.fc(x)" in relu.stack[0].code


def test_nothing_is_written_when_it_is_off_again(tmp_path):
    compiled(tmp_path / "on")
    with ms.config.context(mode=ms.GRAPH_MODE, save_graphs=0, save_graphs_path=str(tmp_path / "off")):
        Net()(Tensor(X))
    assert not (tmp_path / "off").exists()


def test_each_of_several_processes_has_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(world, "place", lambda: (1, 2))
    with ms.config.context(mode=ms.GRAPH_MODE, save_graphs=1, save_graphs_path=str(tmp_path)):
        ms.jit(lambda x: ops.exp(x) + 2.0)(Tensor(X))
    assert [path.name for path in tmp_path.iterdir()] == ["rank_1"]
    assert list((tmp_path / "rank_1").glob("ms_output_*.pb"))
