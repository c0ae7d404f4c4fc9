"""TFLITE files whose operators run other graphs, and variables that a model keeps from run to run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import Code, ConversionError, convert, explain
from mycelia_lite.converter.convert import Job

from .test_tflite import normal
from .tflite_models import Builder, answers, scaled, table


def delay_line(dtype="float32", **quantization):
    """A model that keeps the last three rows it got: their sum, and the rows themselves."""
    made = Builder()
    kind = np.dtype(dtype)
    made.tensor("x", dtype, (1, 2), **quantization)
    made.tensor("handle", "RESOURCE", ())
    made.tensor("rows", dtype, (3, 2), **quantization)
    made.tensor("kept", dtype, (2, 2), **quantization)
    made.tensor("next", dtype, (3, 2), **quantization)
    made.constant("begin", np.array([1, 0], np.int32))
    made.constant("size", np.array([2, 2], np.int32))
    made.add("CALL_ONCE", [], [], table("CallOnceOptions", init_subgraph_index=1))
    made.add("VAR_HANDLE", [], ["handle"], table("VarHandleOptions", shared_name="line"))
    made.add("READ_VARIABLE", ["handle"], ["rows"])
    made.add("SLICE", ["rows", "begin", "size"], ["kept"])
    made.add("CONCATENATION", ["kept", "x"], ["next"], table("ConcatenationOptions", axis=0))
    made.add("ASSIGN_VARIABLE", ["handle", "next"], [])
    made.borders(["x"], ["next", "rows"])
    made.begin("start")
    made.tensor("handle", "RESOURCE", ())
    made.constant("first", np.array([[1, 2], [3, 4], [5, 6]], kind), **quantization)
    made.add("VAR_HANDLE", [], ["handle"], table("VarHandleOptions", shared_name="line"))
    made.add("ASSIGN_VARIABLE", ["handle", "first"], [])
    return made


def opened(path):
    model = mslite.Model()
    model.build_from_file(path)
    return model


def step(model, x):
    (given,) = model.get_inputs()
    given.set_data_from_numpy(x)
    return [t.get_data_to_numpy() for t in model.predict([given])]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_model_keeps_its_variables_and_a_new_one_starts_clean(tmp_path, dtype):
    how = dict(quantization=scaled(0.5, 3)) if dtype == "int8" else {}
    path = delay_line(dtype, **how).write(tmp_path / "m.tflite")
    report = convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m"))
    first, second = opened(report.path), opened(report.path)
    assert [t.name for t in first.get_inputs()] == ["x"]
    assert [t.name for t in first.get_outputs()] == ["next", "rows"]
    rows = np.array([[1, 2], [3, 4], [5, 6]], dtype)
    for i in range(5):
        x = np.array([[10 * i, -i]], dtype)
        joined = np.concatenate([rows[1:], x])
        found = step(first, x)
        assert np.array_equal(found[0], joined) and np.array_equal(found[1], rows)
        rows = joined
        if i == 2:  # other shapes of inputs leave variables alone
            first.resize(first.get_inputs(), [[1, 2]])
    assert np.array_equal(step(second, np.zeros((1, 2), dtype))[1], [[1, 2], [3, 4], [5, 6]])


def test_variables_without_a_first_value_or_of_another_shape_are_refused(tmp_path):
    made = delay_line()
    made.graphs[0].operators.pop(0)
    with pytest.raises(ConversionError, match="'line' is read before it has a value"):
        answers(tmp_path, made, normal(1, 2))
    made = delay_line()
    made.graphs[0].operators[-1].inputs = [made.graphs[0].operators[-1].inputs[0], 3]
    with pytest.raises(ConversionError, match=r"'line' of shape \[3, 2\] gets a value of shape \[2, 2\]"):
        answers(tmp_path, made, normal(1, 2))


def three_counters(reads):
    """Variables a, b and c that grow by x, 2 x and 3 x; their values, read in the order `reads`."""
    made = Builder()
    start = {"a": [1, 2], "b": [30, 40], "c": [500, 600]}
    made.tensor("x", shape=(2,))
    made.add("CALL_ONCE", [], [], table("CallOnceOptions", init_subgraph_index=1))
    for name in "bca":
        made.tensor(f"handle_{name}", "RESOURCE", ())
        made.add("VAR_HANDLE", [], [f"handle_{name}"], table("VarHandleOptions", shared_name=name))
    for name in reads:
        made.tensor(name, shape=(2,))
        made.add("READ_VARIABLE", [f"handle_{name}"], [name])
    for step, name in enumerate("abc", 1):
        made.constant(f"step_{name}", np.full((2,), step, np.float32))
        made.tensor(f"grown_{name}", shape=(2,))
        made.tensor(f"next_{name}", shape=(2,))
        made.add("MUL", ["x", f"step_{name}"], [f"grown_{name}"])
        made.add("ADD", [name, f"grown_{name}"], [f"next_{name}"])
        made.add("ASSIGN_VARIABLE", [f"handle_{name}", f"next_{name}"], [])
    made.borders(["x"], list("abc"))
    made.begin("start")
    for name in "cab":
        made.tensor(f"handle_{name}", "RESOURCE", ())
        made.constant(f"first_{name}", np.array(start[name], np.float32))
        made.add("VAR_HANDLE", [], [f"handle_{name}"], table("VarHandleOptions", shared_name=name))
        made.add("ASSIGN_VARIABLE", [f"handle_{name}", f"first_{name}"], [])
    return made


@pytest.mark.parametrize("reads", ["abc", "acb", "cba", "bca"])
def test_variables_keep_their_own_values_in_whatever_order_a_file_has_them(tmp_path, reads):
    report = convert(
        mslite.FmkType.TFLITE, three_counters(reads).write(tmp_path / "m.tflite"), str(tmp_path / "m")
    )
    model, x = opened(report.path), np.array([1, 10], np.float32)
    for run in range(3):
        found = np.stack(step(model, x))
        grown = np.outer([1, 2, 3], run * x)
        assert np.array_equal(found, np.array([[1, 2], [30, 40], [500, 600]]) + grown)


def branches():
    """x + 1 if it is positive, else x times 2."""
    made = Builder()
    for name in ("x", "y"):
        made.tensor(name, shape=(1,))
    made.tensor("positive", "bool", (1,))
    made.tensor("condition", "bool", ())
    made.constant("zero", np.zeros((), np.float32))
    made.constant("two", np.full((1,), 2, np.float32))
    made.constant("no_sizes", np.zeros((0,), np.int32))
    made.add("GREATER", ["x", "zero"], ["positive"])
    made.add("SQUEEZE", ["positive"], ["condition"], table("SqueezeOptions", squeeze_dims=[0]))
    made.add(
        "IF",
        ["condition", "x", "two"],
        ["y"],
        table("IfOptions", then_subgraph_index=1, else_subgraph_index=2),
    )
    made.borders(["x"], ["y"])
    for number, kind in enumerate(("ADD", "MUL"), 1):
        made.begin(f"branch{number}")
        for name in ("a", "b", "c"):
            made.tensor(name, shape=(1,))
        made.constant("one", np.ones((1,), np.float32))
        made.add(kind, ["a", "one" if kind == "ADD" else "b"], ["c"], table(f"{kind.capitalize()}Options"))
        made.borders(["a", "b"], ["c"])
    return made


def test_a_branch_that_is_no_graph_or_runs_itself_is_refused(tmp_path):
    for number in (7, 0):
        made = branches()
        made.graphs[0].operators[-1].builtin_options.then_subgraph_index = number
        with pytest.raises(ConversionError) as error:
            answers(tmp_path, made, normal(1))
        assert error.value.code is Code.GRAPH_FILE_ERROR


def test_the_branch_is_chosen_by_the_data(tmp_path):
    path = branches().write(tmp_path / "m.tflite")
    report = convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m"))
    model = opened(report.path)
    for x in (3.0, -3.0, 0.5):
        assert step(model, np.array([x], np.float32))[0] == [x + 1 if x > 0 else 2 * x]


def counting():
    """n times x * k - k; the loop carries n and k, which it does not change."""
    made = Builder()
    made.tensor("n", "int32", ())
    made.tensor("x", shape=(2, 3))
    made.constant("zero", np.array(0, np.int32))
    made.constant("k", np.array([[2, 2, 1]], np.float32))
    carried = {"i": "int32", "m": "int32", "a": "float32", "b": "float32"}
    shapes = {"i": (), "m": (), "a": (2, 3), "b": (1, 3)}
    for name, dtype in carried.items():
        made.tensor(f"{name}1", dtype, shapes[name])
    options = table("WhileOptions", cond_subgraph_index=1, body_subgraph_index=2)
    made.add("WHILE", ["zero", "n", "x", "k"], ["i1", "m1", "a1", "b1"], options)
    made.borders(["n", "x"], ["a1", "i1", "b1"])
    made.begin("test")
    for name, dtype in carried.items():
        made.tensor(name, dtype, shapes[name])
    made.tensor("going", "bool", ())
    made.add("LESS", ["i", "m"], ["going"])
    made.borders([*carried], ["going"])
    made.begin("body")
    for name, dtype in carried.items():
        made.tensor(name, dtype, shapes[name])
    made.tensor("next", "int32", ())
    made.tensor("scaled", shape=(2, 3))
    made.tensor("moved", shape=(2, 3))
    made.constant("one", np.array(1, np.int32))
    made.add("ADD", ["i", "one"], ["next"], table("AddOptions"))
    made.add("CALL", ["a", "b"], ["scaled"], table("CallOptions", subgraph=3))
    made.add("SUB", ["scaled", "b"], ["moved"], table("SubOptions"))
    made.borders([*carried], ["next", "m", "moved", "b"])
    made.begin("product")
    made.tensor("a", shape=(2, 3))
    made.tensor("b", shape=(1, 3))
    made.tensor("c", shape=(2, 3))
    made.add("MUL", ["a", "b"], ["c"], table("MulOptions"))
    made.borders(["a", "b"], ["c"])
    return made


def test_a_loop_runs_as_long_as_its_test_holds(tmp_path):
    path = counting().write(tmp_path / "m.tflite")
    model = opened(convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m")).path)
    k = np.array([[2, 2, 1]], np.float32)
    for n in (0, 1, 6):
        x = expected = normal(2, 3)
        for _ in range(n):
            expected = expected * k - k
        inputs = model.get_inputs()
        inputs[0].set_data_from_numpy(np.array(n, np.int32))
        inputs[1].set_data_from_numpy(x)
        found = [t.get_data_to_numpy() for t in model.predict(inputs)]
        assert np.allclose(found[0], expected, atol=1e-5) and found[1] == n and np.array_equal(found[2], k)


def test_what_a_loop_hides_is_listed(tmp_path):
    made = counting()
    made.operators, made.tensors = made.graphs[2].operators, made.graphs[2].tensors
    made.operators[0].builtin_options.fused_activation_function = "SIGN_BIT"
    made.operators[2].builtin_options.fused_activation_function = "SIGN_BIT"
    job = Job(mslite.FmkType.TFLITE, made.write(tmp_path / "m.tflite"), str(tmp_path / "m"))
    assert [str(error).partition(":")[0] for error in explain(job)] == [
        "node 'next' (ADD)",
        "node 'moved' (SUB)",
    ]


def test_a_loop_that_changes_the_rank_of_a_value_is_refused(tmp_path):
    made = counting()
    body = made.graphs[2]
    body.outputs = [body.outputs[0], body.outputs[1], body.outputs[0], body.outputs[3]]
    with pytest.raises(ConversionError, match=r"'i1' \(WHILE\): its value 2 enters a run as"):
        answers(tmp_path, made, np.array(1, np.int32), normal(2, 3))


FILES = Path(__file__).parents[1] / "fixtures" / "tflite"
ANSWERS = np.load(FILES / "answers.npz")


def by_signature(tmp_path, name):
    converter = mslite.Converter()
    converter.signature = name
    source = str(FILES / "entries.tflite")
    return opened(converter.convert(mslite.FmkType.TFLITE, source, str(tmp_path / name)).path)


@pytest.mark.parametrize("name, runs", [("halve", 3), ("score", 1)])
def test_a_signature_is_an_entry_point_with_its_names(name, runs, tmp_path):
    model = by_signature(tmp_path, name)
    for run in range(runs):
        for tensor in model.get_inputs():
            tensor.set_data_from_numpy(ANSWERS[f"{name}.{run}.{tensor.name}"])
        results = model.predict(model.get_inputs())
        assert len(results) == (2 if name == "halve" else 1)
        for tensor in results:
            expected = ANSWERS[f"{name}.{run}.{tensor.name}"]
            assert np.allclose(tensor.get_data_to_numpy(), expected, rtol=1e-6, atol=1e-7)
            assert tensor.get_data_to_numpy().dtype == expected.dtype


def test_a_signature_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConversionError, match=r"'train', but the file has \['halve', 'score'\]"):
        by_signature(tmp_path, "train")
    with pytest.raises(ConversionError, match="signature is for models of TFLITE, not of ONNX"):
        convert(mslite.FmkType.ONNX, str(FILES / "entries.tflite"), str(tmp_path / "m"), signature="halve")


def test_layers_of_cells_that_tensorflow_wrote_answer_as_litert(tmp_path):
    source = str(FILES / "cells.tflite")
    model = opened(convert(mslite.FmkType.TFLITE, source, str(tmp_path / "m")).path)
    for _ in range(2):  # what the cells keep begins anew in each run
        assert np.abs(step(model, ANSWERS["cells.x"])[0] - ANSWERS["cells.y"]).max() < 1e-6
