"""The memory plan as the runtime tells it: as numbers, as a table, as a picture."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from typer.testing import CliRunner

import mycelia_lite as mslite
from mycelia_lite.cli import app
from mycelia_lite.converter import convert
from mycelia_lite.picture import plan_of, svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def lenet_ms(lenet, tmp_path_factory):
    return convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path_factory.mktemp("p") / "lenet")).path


@pytest.fixture(scope="module")
def plan(lenet_ms):
    model = mslite.Model()
    model.build_from_file(lenet_ms)
    model.resize(model.get_inputs(), [[2, 1, 32, 32]])
    return plan_of(model)


def test_values_that_live_together_do_not_overlap(plan):
    for i, a in enumerate(plan.values):
        assert 0 <= a.first <= a.last < len(plan.steps) and a.place + a.bytes <= plan.arena_bytes
        for b in plan.values[:i]:
            apart = a.place + a.bytes <= b.place or b.place + b.bytes <= a.place
            assert apart or a.last < b.first or b.last < a.first, (a, b)
    assert max(plan.live_bytes) <= plan.arena_bytes


def test_the_plan_names_the_nodes(plan):
    kinds = [step.kind for step in plan.steps]
    assert {"Conv2DFusion", "MaxPoolFusion"} <= set(kinds) and kinds.count("MatMulFusion") >= 2
    assert any(v.type == "f32[2, 120]" and v.bytes == 960 for v in plan.values)


def test_the_picture_has_a_box_for_each_value(plan):
    root = ElementTree.fromstring(svg(plan))
    boxes = [r for r in root.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
    assert len(boxes) == len(plan.values)
    heights = sorted(float(box.get("height")) for box in boxes)
    assert heights[-1] / heights[0] > 2
    for box in boxes:
        assert 0 <= float(box.get("y")) and float(box.get("y")) + float(box.get("height")) <= 400.1
        assert float(box.get("x")) + float(box.get("width")) <= 1000.1


def test_the_command_writes_page_picture_and_table(lenet_ms, tmp_path):
    page, picture = tmp_path / "p.html", tmp_path / "p.svg"
    run = [
        "inspect",
        lenet_ms,
        "--memory",
        f"--html={page}",
        f"--svg={picture}",
        "--inputShape=x:3,1,32,32",
        "--loops=1",
    ]
    result = CliRunner().invoke(app, run)
    assert result.exit_code == 0, result.output
    assert "live at once" in result.output and "f32[3, 120]" in result.output
    text = page.read_text()
    assert text.count("<rect") == picture.read_text().count("<rect") and "MatMulFusion" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")  # it loads nothing
    ElementTree.fromstring(picture.read_text())


def test_a_model_that_does_not_run_is_told(tmp_path, lenet_ms):
    result = CliRunner().invoke(app, ["inspect", lenet_ms, "--memory", "--inputShape=x:1,1,2,2"])
    assert result.exit_code == 1 and "node" in result.output
    result = CliRunner().invoke(app, ["inspect", lenet_ms, "--memory", "--inputShape=y:1"])
    assert result.exit_code == 2 and "the inputs are" in result.output
