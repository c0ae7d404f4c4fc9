"""Graphs node by node, and what MindInsight 2.3.1 made of random ones (tools/oracle_insight_graphs.py)."""

from __future__ import annotations

import base64
import gzip
import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE)]
from test_graph import node  # noqa: E402

from mycelia_insight.records import graph_node_files  # noqa: E402
from mycelia_insight.records.graph import Leaf, ScopeGraph  # noqa: E402
from mycelia_insight.records.graph_nodes import NodeGraph, tree  # noqa: E402
from mycelia_insight.records.value_text import value_text  # noqa: E402
from mycelia_insight.records.wire import Broken  # noqa: E402

RECORDED = json.loads(gzip.decompress((HERE.parent / "fixtures" / "mindinsight_graphs.json.gz").read_bytes()))


def graph_of(data: bytes, optimized: bool = False) -> NodeGraph:
    return NodeGraph(*graph_node_files.of_mindspore(data), optimized=optimized)


@pytest.mark.parametrize("kind", ["normal", "optimized"])
def test_random_graphs_are_those_of_mindinsight(kind):
    for number, case in enumerate(RECORDED):
        graph, theirs = graph_of(base64.b64decode(case["graph"]), kind == "optimized"), case[kind]
        assert {"", *graph.nodes} == theirs["below"].keys(), number
        for name, nodes in theirs["below"].items():
            assert [one.told() for one in graph.below(name)] == nodes, (number, name)
        for text, found in theirs["searched"].items():
            assert tree(graph, graph.search(text)) == found, (number, text)


def test_the_random_graphs_have_all_that_there_is():
    told = json.dumps(RECORDED)
    for part in ("Parameter[", "ReLU[", '"control"', "float_val: -inf", '"proxy_input": {"', "DT_TUPLE[",
                 "dtype: DT_STRING", '"is_dynamic_shape_node": true'):  # fmt: skip
        assert part in told or json.dumps(part)[1:-1] in told, part


def test_a_node_that_is_called_like_a_scope_stands_in_brackets():
    data = node("1", "Add", "Default", full="Default/a") + node("2", "Mul", "Default/a", "1")
    graph = graph_of(data)
    assert [one.name for one in graph.below("Default")] == ["Default/(a)", "Default/a"]
    assert graph.nodes["Default/a/Mul-op2"].inputs.keys() == {"Default/(a)"}
    assert graph.nodes["Default/(a)"].outputs.keys() == {"Default/a/Mul-op2"}


def test_what_mindinsight_fails_on_is_read():
    hostile = "<script>alert(1)</script>"
    named = graph_of(node("1", "Add", "Default", full=f"Default/{hostile}"))
    assert f"Default/{hostile}" in named.nodes
    odd = b"".join(node(str(i), "Parameter", "Default", str(i % 7), str(i % 3 + 1)) for i in range(1, 12))
    for optimized in (False, True):
        assert all(one.told() for one in graph_of(odd, optimized).nodes.values())
        alike = node("1", "Add", "A", "2", full="A/b") + node("2", "Add", "A", "1", full="A/b")
        assert list(graph_of(alike, optimized).nodes) in (["A/b", "A"], [])
    for broken in (node("1", "Add", "a")[:-3], b"\xff" * 9, b"\x0a\x02\x08\x01"):
        with pytest.raises(Broken):
            graph_of(broken)


def test_graphs_of_tensorboard_have_the_same_form():
    leaves = [Leaf("w", "Variable", "net", "parameter", type_of=lambda: ("float32", (2, -1)))]
    leaves += [Leaf(f"net/relu{i}", "Relu", "net", "operator", [(0, False)]) for i in range(5)]
    graph = NodeGraph(*graph_node_files.of_scopes(ScopeGraph("", leaves)))
    assert [one.name for one in graph.below("net")] == ["net/w", "net/Relu[5]_0"]
    edge = graph.nodes["net/Relu[5]_0/relu1"].inputs["net/w"]
    assert edge == {"shape": [[2, -1]], "data_type": "DT_TENSOR[DT_FLOAT32]", "edge_type": "data",
                    "independent_layout": False}  # fmt: skip


def test_text_of_values():
    assert value_text(b"") == ""
    assert value_text(b"\x08\x63") == "", "a type that nobody knows"
    packed = b"\x5a\x02\x01\x7f" + b"\x2d\xcd\xcc\xcc\x3d"
    assert value_text(packed) == "float_val: 0.10000000149011612\nint_vals: 1\nint_vals: 127\n"
    deep = b""
    for _ in range(70):
        deep = b"\x92\x01" + bytes([len(deep) % 128 | 0x80, len(deep) // 128]) + deep
    assert value_text(deep).count("values {") == 33
