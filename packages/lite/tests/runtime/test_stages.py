"""What is known only when the model runs: shapes as data and subgraphs, in files made by hand."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.format import Table, write


class File:
    """A `.ms` file under construction: tensors by name, nodes by subgraph."""

    def __init__(self):
        self.tensors, self.places, self.nodes, self.graphs = [], {}, [], []

    def tensor(self, name, dtype="FLOAT32", dims=(), array=None):
        table = Table(
            "Tensor", name=name, dataType=dtype, dims=list(dims), nodeType=0 if array is not None else 2
        )
        if array is not None:
            table.data = array.tobytes()
        self.places[name] = len(self.tensors)
        self.tensors.append(table)
        return name

    def constant(self, name, array):
        kinds = {"i4": "INT32", "i8": "INT64", "f4": "FLOAT32", "b1": "BOOL"}
        return self.tensor(name, kinds[array.dtype.str[1:]], array.shape, array)

    def node(self, kind, inputs, outputs, **attributes):
        node = Table("CNode", name=outputs[0], primitive=Table(kind, **attributes))
        node.inputIndex = [self.places[n] for n in inputs]
        node.outputIndex = [
            self.places.get(n) if n in self.places else self.places[self.tensor(n)] for n in outputs
        ]
        self.nodes.append(node)

    def graph(self, inputs, outputs, make):
        """A subgraph; `make` adds its nodes."""
        first = len(self.nodes)
        make()
        self.graphs.append(
            Table(
                "SubGraph",
                name=f"subgraph_{len(self.graphs)}",
                inputIndices=[self.places[n] for n in inputs],
                outputIndices=[self.places[n] for n in outputs],
                nodeIndices=list(range(first, len(self.nodes))),
            )
        )

    def root(self):
        main = self.graphs[0]
        tables = {"nodes": self.nodes, "allTensors": self.tensors, "subGraph": self.graphs}
        return Table("MetaGraph", inputIndex=main.inputIndices, outputIndex=main.outputIndices, **tables)

    def model(self, path):
        write(path, self.root())
        model = mslite.Model()
        model.build_from_file(path)
        return model


def run(model, *arrays):
    model.resize(model.get_inputs(), [list(a.shape) for a in arrays])
    for tensor, array in zip(model.get_inputs(), arrays):
        tensor.set_data_from_numpy(array)
    return [t.get_data_to_numpy() for t in model.predict(model.get_inputs())]


def reshaper():
    file = File()
    file.tensor("x", dims=[-1])
    file.tensor("shape", "INT64", [2])

    def make():
        file.node("ExpFusion", ["x"], ["e"], base=-1.0, scale=1.0)
        file.node("Reshape", ["e", "shape"], ["y"])
        file.node(
            "ReduceFusion", ["y", file.constant("axis", np.array([0], np.int32))], ["z"], mode="ReduceSum"
        )
        file.node("AddFusion", ["z", "z"], ["twice"])

    file.graph(["x", "shape"], ["y", "twice"], make)
    return file


def test_a_shape_may_be_data(tmp_path):
    model = reshaper().model(tmp_path / "m.ms")
    x = np.linspace(0, 1, 12, dtype=np.float32)
    for shape in ((3, 4), (4, 3), (1, -1), (12, 1), (3, 4)):
        y, twice = run(model, x, np.array(shape, np.int64))
        np.testing.assert_allclose(y, np.exp(x).reshape(shape), rtol=1e-6)
        np.testing.assert_allclose(twice, 2 * np.exp(x).reshape(shape).sum(0), rtol=1e-6)
        assert [t.shape for t in model.get_outputs()] == [list(y.shape), list(twice.shape)]


def test_a_shape_that_does_not_fit_is_told_when_it_is_known(tmp_path):
    model = reshaper().model(tmp_path / "m.ms")
    with pytest.raises(RuntimeError, match=r"node 'y' \(Reshape\)"):
        run(model, np.zeros(12, np.float32), np.array((5, 5), np.int64))
    y, _ = run(model, np.zeros(12, np.float32), np.array((2, 6), np.int64))
    assert y.shape == (2, 6)


def chooser(file, condition, inputs, output, graphs):
    """Call(Switch(condition, PartialFusion, PartialFusion)), as MindSpore Lite writes an If."""
    for i, graph in enumerate(graphs):
        file.node("PartialFusion", inputs, [f"{output}_part{i}"], sub_graph_index=graph)
    file.node("Switch", [condition, f"{output}_part0", f"{output}_part1"], [f"{output}_switch"])
    file.node("Call", [f"{output}_switch"], [output])


def test_a_condition_chooses_a_subgraph(tmp_path):
    file = File()
    file.tensor("c", "BOOL")
    for name in ("x", "a", "b"):
        file.tensor(name, dims=[-1])
    file.graph(
        ["c", "x"], ["z"], lambda: (chooser(file, "c", ["x"], "y", [1, 2]), file.node("Abs", ["y"], ["z"]))
    )
    file.graph(["a"], ["a2"], lambda: file.node("AddFusion", ["a", "a"], ["a2"]))
    file.graph(["b"], ["b0"], lambda: file.node("ReduceFusion", ["b"], ["b0"], mode="ReduceSum"))
    model = file.model(tmp_path / "m.ms")
    x = np.array([1, -2, -3], np.float32)
    for _ in range(2):
        assert run(model, np.array(True), x)[0].tolist() == [2, 4, 6]
        assert run(model, np.array(False), x)[0].tolist() == 4


def by_number(file, count=3, extra=()):
    """Call(SwitchLayer(number, PartialFusion, ...)) of x * (1 + the number)."""
    file.tensor("n", "INT32")
    for name in ("x", *(f"x{i}" for i in range(count))):
        file.tensor(name, dims=[-1])

    def main():
        for i in range(count):
            file.node("PartialFusion", ["x"], [f"part{i}"], sub_graph_index=i + 1)
        file.node("SwitchLayer", ["n", *(f"part{i}" for i in range(count)), *extra], ["chosen"])
        file.node("Call", ["chosen"], ["y"])
        file.node("Abs", ["y"], ["z"])

    file.graph(["n", "x"], ["z"], main)
    for i in range(count):
        factor = file.constant(f"factor{i}", np.float32(1 + i))
        file.graph(
            [f"x{i}"], [f"y{i}"], lambda i=i, f=factor: file.node("MulFusion", [f"x{i}", f], [f"y{i}"])
        )
    return file


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_number_chooses_a_subgraph(count, tmp_path):
    model = by_number(File(), count).model(tmp_path / "m.ms")
    x = np.array([1, -2, -3], np.float32)
    for number in (0, count - 1, -1, -count, 0):
        expected = np.abs(x) * (1 + number % count)
        assert run(model, np.array(number, np.int32), x)[0].tolist() == expected.tolist()
    for number in (count, -count - 1):
        with pytest.raises(RuntimeError, match=rf"node 'y' \(Call\): branch {number} of {count}"):
            run(model, np.array(number, np.int32), x)


def test_a_number_chooses_among_subgraphs_alone(tmp_path):
    with pytest.raises(
        RuntimeError, match=r"\(SwitchLayer\): expected a number and the subgraphs of PartialFusions"
    ):
        by_number(File(), extra=["x"]).model(tmp_path / "m.ms")


def test_a_loop_of_tail_calls_does_not_grow(tmp_path):
    """while x[0] < limit: x = x + 1, as subgraphs that call on: test, then body, which calls test again."""
    file = File()
    for name in ("x", "t", "b", "e"):
        file.tensor(name, dims=[2])
        file.tensor(f"{name}_limit", dims=[])
    one, zero = file.constant("one", np.float32(1)), file.constant("zero", np.array(0, np.int32))

    def call(name, inputs, graph):
        file.node("PartialFusion", inputs, [f"{name}_part"], sub_graph_index=graph)
        file.node("Call", [f"{name}_part"], [name])

    def test():
        file.node("Gather", ["t", zero, zero], ["first"])
        file.node("Less", ["first", "t_limit"], [file.tensor("goes_on", "BOOL")])
        chooser(file, "goes_on", ["t", "t_limit"], "t_out", [2, 3])

    def body():
        file.node("AddFusion", ["b", one], ["b2"])
        call("b_out", ["b2", "b_limit"], 1)

    file.graph(
        ["x", "x_limit"],
        ["y"],
        lambda: (call("out", ["x", "x_limit"], 1), file.node("AddFusion", ["out", one], ["y"])),
    )
    file.graph(["t", "t_limit"], ["t_out"], test)
    file.graph(["b", "b_limit"], ["b_out"], body)
    file.graph(["e", "e_limit"], ["e2"], lambda: file.node("Abs", ["e"], ["e2"]))
    model = file.model(tmp_path / "m.ms")
    x = np.array([0, -5], np.float32)
    for limit in (0, 1, 3000):
        assert run(model, x, np.array(limit, np.float32))[0].tolist() == [
            limit + 1,
            abs(limit - 5) + 1,
        ]


def recursion(file):
    """f(n) = 0 if n < 1 else f(n - 1) + n: not a tail call."""
    for name in ("n", "f", "p", "q"):
        file.tensor(name)
    one, two = file.constant("one", np.float32(1)), file.constant("two", np.float32(2))

    def deeper():
        file.node("SubFusion", ["p", one], ["p1"])
        file.node("PartialFusion", ["p1"], ["p_part"], sub_graph_index=1)
        file.node("Call", ["p_part"], ["p_sum"])
        file.node("AddFusion", ["p_sum", "p"], ["p_out"])

    def test():
        file.node("Less", ["f", one], [file.tensor("ends", "BOOL")])
        chooser(file, "ends", ["f"], "f_out", [3, 2])

    file.node_of_main = lambda: (
        file.node("PartialFusion", ["n"], ["part"], sub_graph_index=1),
        file.node("Call", ["part"], ["sum"]),
        file.node("MulFusion", ["sum", two], ["y"]),
    )
    file.graph(["n"], ["y"], file.node_of_main)
    file.graph(["f"], ["f_out"], test)
    file.graph(["p"], ["p_out"], deeper)
    file.graph(["q"], ["q_out"], lambda: file.node("SubFusion", ["q", "q"], ["q_out"]))
    return file


def test_a_subgraph_may_call_itself_but_not_for_ever(tmp_path):
    model = recursion(File()).model(tmp_path / "m.ms")
    assert run(model, np.array(10, np.float32))[0] == 110
    with pytest.raises(RuntimeError, match="deep"):
        run(model, np.array(500, np.float32))
    assert run(model, np.array(3, np.float32))[0] == 12


def looper():
    """A Loop that carries `v`, adds `x` and stacks what it has."""
    file = File()
    file.tensor("m", "INT64"), file.tensor("c", "BOOL"), file.tensor("x", dims=[-1])
    (
        file.tensor("i", "INT64"),
        file.tensor("going", "BOOL"),
        file.tensor("v", dims=[-1]),
        file.tensor("w", dims=[-1]),
    )
    one = np.int64(1).tobytes()
    attributes = [Table("Attribute", name=name, data=one) for name in ("body", "carried")]

    def body():
        file.node("AddFusion", ["v", "w"], ["v2"])
        file.node(
            "Reshape",
            ["going", file.constant("none", np.array([1], np.int32))],
            [file.tensor("going2", "BOOL")],
        )
        file.node("Abs", ["v2"], [file.tensor("slice", dims=[3])])

    file.graph(
        ["m", "c", "x"],
        ["last", "all"],
        lambda: file.node("Custom", ["m", "c", "x", "x"], ["last", "all"], type="Loop", attr=attributes),
    )
    file.graph(["i", "going", "v", "w"], ["going2", "v2", "slice"], body)
    return file


def test_a_loop_carries_values_and_stacks_results(tmp_path):
    model = looper().model(tmp_path / "m.ms")
    x = np.array([1, -2, 3], np.float32)
    for times in (1, 5, 300):
        last, stacked = run(model, np.array(times), np.array(True), x)
        np.testing.assert_array_equal(last, x * (times + 1))
        np.testing.assert_array_equal(stacked, np.abs(x * np.arange(2, times + 2)[:, None]))
    for times, goes_on in ((0, True), (5, False)):
        last, stacked = run(model, np.array(times), np.array(goes_on), x)
        np.testing.assert_array_equal(last, x)
        assert stacked.shape == (0, 3)


def wrong_index(file):
    next(n for n in file.nodes if n.primitive.kind == "PartialFusion").primitive.sub_graph_index = 9


def wrong_count(file):
    next(n for n in file.nodes if n.primitive.kind == "PartialFusion").inputIndex.append(0)


def no_function(file):
    next(n for n in file.nodes if n.primitive.kind == "Call").inputIndex = [0]


@pytest.mark.parametrize("damage", [wrong_index, wrong_count, no_function])
def test_calls_that_do_not_fit_are_refused_when_the_file_is_loaded(tmp_path, damage):
    file = recursion(File())
    damage(file)
    with pytest.raises(RuntimeError, match="node '"):
        file.model(tmp_path / "m.ms")


def test_subgraphs_that_double_at_every_call_are_refused(tmp_path):
    file = File()
    for i in range(40):
        file.tensor(f"x{i}")

        def make(i=i):
            for side in "ab":
                file.node("PartialFusion", [f"x{i}"], [f"p{i}{side}"], sub_graph_index=i + 1)
                file.node("Call", [f"p{i}{side}"], [f"{side}{i}"])
            file.node("AddFusion", [f"a{i}", f"b{i}"], [f"y{i}"])

        file.graph([f"x{i}"], [f"y{i}"], make)
    file.tensor("end")
    file.graph(["end"], ["end2"], lambda: file.node("Abs", ["end"], ["end2"]))
    with pytest.raises(RuntimeError, match="more than"):
        file.model(tmp_path / "m.ms")
