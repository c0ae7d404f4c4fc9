"""The tools that compare Mycelia with MindSpore, on inputs of our own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"
sys.path.insert(0, str(TOOLS))

import api_coverage  # noqa: E402
import oracle  # noqa: E402


@pytest.mark.parametrize(
    "theirs, ours, fits",
    [
        ("(x, axis=0)", [("x", None), ("axis", "0")], True),
        ("(x, axis=0)", [("x", None), ("axis", "0"), ("more", "None")], True),
        ("(x, axis=0)", [("x", None), ("axis", "0"), ("more", None)], False),
        ("(x, axis=0)", [("x", None), ("axis", "1")], False),
        ("(x, axis=0)", [("x", None), ("dim", "0")], False),
        ("(x, axis=0)", [("*args", None), ("**kwargs", None)], True),
        ("(x, mode='sum')", [("x", None), ("mode", "sum")], True),
        ("(x, dtype=mindspore.float32)", [("x", None), ("dtype", "Float32")], True),
        ("(x, fn=<function f at 0x1>)", [("x", None), ("fn", "<function g>")], True),
        ("(*args)", [("x", None)], True),
    ],
)
def test_signatures_fit_if_all_their_calls_are_understood(theirs, ours, fits):
    assert api_coverage.compatible(api_coverage.parameters(theirs), ours) is fits


def test_coverage_counts_names_of_the_live_package():
    entries = [
        api_coverage.Entry("mindspore.ops.add", "function", "T0", ["(input, other)"]),
        api_coverage.Entry("mindspore.ops.not_there", "function", "T0", ["()"]),
        api_coverage.Entry("mindspore.Tensor.mean", "method", "T1", ["(axis=None, keep_dims=False)"]),
    ]
    api_coverage.judge(entries)
    assert [e.present for e in entries] == [True, False, True]
    assert [e.module for e in entries] == ["mindspore.ops", "mindspore.ops", "mindspore"]
    page = api_coverage.page(entries)
    assert "| T0 | 2 | 50.0 |" in page and "* mindspore.ops: `not_there`" in page


def test_names_are_kept_in_the_repository():
    assert len(api_coverage.read(api_coverage.SURFACE)) > 4000


def test_texts_agree_up_to_rounding_and_space():
    assert oracle.same_text("[1.00001  2.]", "[1.00002 2.]")
    assert not oracle.same_text("[1. 2.]", "[1. 3.]")
    assert not oracle.same_text("Float32", "Float16")


def test_values_agree_in_type_dtype_and_shape():
    tensor = ["Tensor", "Float32", [2], "float32", [[1.0, 2.0]]]
    assert oracle.same_value(tensor, ["Tensor", "Float32", [2], "float32", [[1.0, 2.00001]]])
    assert not oracle.same_value(tensor, ["Tensor", "Float16", [2], "float16", [[1.0, 2.0]]])
    assert not oracle.same_value(tensor, ["Tensor", "Float32", [2, 1], "float32", [[1.0, 2.0]]])


def test_oracle_tells_how_code_ends_and_what_it_leaves(tmp_path):
    judge = oracle.Oracle(python="")
    code = oracle.HEAD + "x = ops.exp(Tensor([0.0]))\nprint(x)\n"
    outcome = judge.run("Mycelia", code, str(tmp_path))
    assert outcome.error is None and outcome.text == "[1.]", outcome.stderr
    assert outcome.values["x"] == ["Tensor", "Float32", [1], "float32", [[1.0]]]
    assert judge.run("Mycelia", "{}['key']", str(tmp_path)).error == "KeyError"
