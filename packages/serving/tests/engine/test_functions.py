"""Functions of `servable_config.py`: what they get, what they may return, what becomes of their errors."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from mycelia_serving.errors import Code, ServingError


def function(body: str, outputs: str = "y", arguments: str = "x", batch_size: str = "None") -> str:
    """A servable whose method is one function `f`."""
    count = len(outputs.split())
    return f"""
{body}

@register.register_method({outputs!r}.split())
def predict({arguments}):
    return register.add_stage(f, {arguments}, outputs_count={count}, batch_size={batch_size})
"""


RETURNED = {
    "int": ("7", np.int64, 7),
    "float": ("2.5", np.float64, 2.5),
    "bool": ("True", np.bool_, True),
    "numpy number": ("np.float32(1.5)", np.float32, 1.5),
    "list of one": ("[3]", np.int64, 3),
    "columns": ("np.arange(6).reshape(2, 3).T", np.int64, [[0, 3], [1, 4], [2, 5]]),
    "big endian": ("np.array([1, 2], '>i4')", np.int32, [1, 2]),
    "half": ("np.zeros((2, 0), np.float16)", np.float16, np.zeros((2, 0))),
}


@pytest.mark.parametrize("case", RETURNED)
def test_numbers_and_arrays_are_results(serve, infer, case):
    expression, dtype, value = RETURNED[case]
    engine = serve(function(f"def f(x):\n    return {expression}"))
    (result,) = infer(engine, "predict", {"x": "given"})
    assert isinstance(result["y"], np.ndarray) and result["y"].dtype == dtype and result["y"].dtype.isnative
    assert result["y"].flags.c_contiguous and not result["y"].flags.writeable
    np.testing.assert_array_equal(result["y"], value)


def test_text_bytes_and_tensors_are_results(serve, infer):
    body = """
import mycelia as ms

def f(x):
    return x + "!", np.str_("s"), x.encode(), bytearray(b"ab"), ms.Tensor([1.0, 2.0])
"""
    engine = serve(function(body, outputs="a b c d e"))
    (result,) = infer(engine, "predict", {"x": "hello"})
    assert [result[k] for k in "abcd"] == ["hello!", "s", b"hello", b"ab"]
    assert all(type(result[k]) in (str, bytes) for k in "abcd")
    np.testing.assert_array_equal(result["e"], np.array([1, 2], np.float32))


WRONG = {
    "None": ("None", "TypeError: a value is NoneType"),
    "object": ("object()", "a value is object"),
    "dict": ("{1: 2}", "a value is dict"),
    "complex": ("np.zeros(2, complex)", "array of complex128"),
    "objects": ("np.array([None])", "array of object"),
    "too large": ("2 ** 70", "array of object"),
    "too many": ("x, x", "it returned 2 results, but its stage has 1"),
    "none at all": ("()", "it returned 0 results, but its stage has 1"),
    "an error": ("1 // 0", "ZeroDivisionError: integer division or modulo by zero"),
    "an exit": ("exit(3)", "SystemExit: 3"),
    "an error without text": ("[].pop", "builtin_function_or_method"),
}


@pytest.mark.parametrize("case", WRONG)
def test_other_results_and_exceptions_fail_their_instance_only(serve, infer, caplog, case):
    expression, message = WRONG[case]
    engine = serve(function(f"def f(x):\n    return ({expression}) if x == 'bad' else x"))
    with caplog.at_level(logging.ERROR, "mycelia_serving"):
        first, bad, last = infer(engine, "predict", {"x": "a"}, {"x": "bad"}, {"x": "b"})
    assert (first, last) == ({"y": "a"}, {"y": "b"})
    assert isinstance(bad, ServingError) and bad.code == Code.INVALID_INPUTS
    assert bad.message.startswith("The function 'f' of method 'predict', stage 1, failed: ")
    assert message in bad.message
    assert "Traceback" in caplog.text and "function f of method predict, stage 1" in caplog.text


def test_input_arrays_are_read_only(serve, infer):
    engine = serve(function("def f(x):\n    x[0] = 1\n    return x"))
    x = np.zeros(3)
    x.flags.writeable = False
    (error,) = infer(engine, "predict", {"x": x})
    assert "read-only" in error.message


def test_results_of_functions_are_read_only_for_the_next_one(serve, infer):
    config = """
kept = np.zeros(3)

def make(x):
    kept[0] += 1
    return kept

def change(x):
    x[0] = 9
    return x

@register.register_method("y")
def predict(x):
    x = register.add_stage(make, x, outputs_count=1)
    return register.add_stage(change, x, outputs_count=1)

@register.register_method("y")
def made(x):
    return register.add_stage(make, x, outputs_count=1)
"""
    engine = serve(config)
    (error,) = infer(engine, "predict", {"x": 1})
    assert "stage 2" in error.message and "read-only" in error.message
    (result,) = infer(engine, "made", {"x": 1})
    assert result["y"][0] == 2


# ---- functions that get many instances ---------------------------------------------------------------------


@pytest.mark.parametrize("form", ["yield x[0] + 1", "out.append(x[0] + 1)"])
def test_a_batch_function_yields_or_returns_one_result_per_instance(serve, infer, form):
    body = f"def f(instances):\n    out = []\n    for x in instances:\n        {form}\n"
    engine = serve(function(body + ("" if "yield" in form else "    return out"), batch_size="3"))
    results = infer(engine, "predict", *({"x": np.float32(k)} for k in range(8)))
    assert [float(r["y"]) for r in results] == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(("batch_size", "largest"), [("1", 1), ("3", 3), ("0", 1)])
def test_a_batch_function_gets_at_most_its_batch_size(serve, infer, batch_size, largest):
    """Without models 0 means one."""
    body = """
def f(instances):
    assert type(instances) is tuple and type(instances[0]) is tuple
    return [len(instances)] * len(instances)
"""
    engine = serve(function(body, batch_size=batch_size))
    sizes = [int(r["y"]) for r in infer(engine, "predict", *[{"x": 0}] * 10)]
    assert len(sizes) == 10 and max(sizes) <= largest


def test_batch_size_0_is_that_of_the_models(serve, infer):
    body = """
model = register.declare_model("add_sub.mindir", "MindIR")

def f(instances):
    return [len(instances)] * len(instances)
"""
    engine = serve(function(body, batch_size="0"), "add_sub")
    sizes = [int(r["y"]) for r in infer(engine, "predict", *[{"x": 0}] * 9)]
    assert max(sizes) == 2


BATCH_WRONG = {
    "raises": ("raise ValueError('early')", "ValueError: early"),
    "too few": ("return [1]", "it returned 1 results for 3 instances"),
    "too many": ("return [1] * 9", "it returned 9 results for 3 instances"),
    "no list": ("return None", "it returned NoneType instead of one result per instance"),
    "text": ("return 'abc'", "it returned str instead of one result per instance"),
    "yields nothing": ("return iter(())", "it gave 0 results for 3 instances"),
}


@pytest.mark.parametrize("case", BATCH_WRONG)
def test_an_error_of_a_batch_function_fails_its_call_and_no_other(serve, infer, case):
    statement, message = BATCH_WRONG[case]
    body = f"""
def f(instances):
    if any(x == "bad" for x, in instances):
        {statement}
    return [x for x, in instances]
"""
    engine = serve(function(body, batch_size="3"))
    results = infer(engine, "predict", *({"x": x} for x in ("bad", "b", "c", "d", "e", "f")))
    assert all(isinstance(r, ServingError) and message in r.message for r in results[:3])
    assert results[3:] == [{"y": "d"}, {"y": "e"}, {"y": "f"}]


def test_a_generator_that_raises_fails_the_instance_that_was_due(serve, infer):
    body = """
def f(instances):
    for x, in instances:
        if x == "bad":
            raise ValueError("not this one")
        yield None if x == "none" else x
"""
    engine = serve(function(body, batch_size="6"))
    names = ("a", "bad", "b", "none", "c", "bad")
    results = infer(engine, "predict", *({"x": x} for x in names))
    assert [r["y"] for r in results if isinstance(r, dict)] == ["a", "b", "c"]
    assert "not this one" in results[1].message and "not this one" in results[5].message
    assert "a value is NoneType" in results[3].message


def test_a_generator_that_ends_early_fails_the_rest(serve, infer):
    body = "def f(instances):\n    yield instances[0][0]\n"
    engine = serve(function(body, batch_size="3"))
    first, second, third = infer(engine, "predict", *({"x": x} for x in "abc"))
    assert first == {"y": "a"}
    assert "gave 1 results for 3 instances" in second.message and isinstance(third, ServingError)


# ---- Model.call --------------------------------------------------------------------------------------------

CALLS = """
model = register.declare_model("add_sub.mindir", "MindIR")

def one(x, y):
    total, difference = model.call(x, y)
    return total * difference

def many(instances):
    for total, difference in model.call([list(i) for i in instances]):
        yield total * difference

def wrong(x, y):
    return {expression}

@register.register_method("z")
def by_one(x, y):
    return register.add_stage(one, x, y, outputs_count=1)

@register.register_method("z")
def by_many(x, y):
    return register.add_stage(many, x, y, outputs_count=1, batch_size=5)

@register.register_method("z")
def by_wrong(x, y):
    return register.add_stage(wrong, x, y, outputs_count=1)
"""


@pytest.mark.parametrize("method", ["by_one", "by_many"])
def test_functions_may_call_models(serve, infer, method):
    engine = serve(CALLS.format(expression="0"), "add_sub")
    rows = np.arange(42, dtype=np.float32).reshape(7, 2, 3)
    results = infer(engine, method, *({"x": x, "y": y} for x, y in rows))
    for (x, y), result in zip(rows, results):
        np.testing.assert_array_equal(result["z"], (x + y) * (x - y))


CALL_WRONG = {
    "no inputs": ("model.call()", "call() failed: no inputs provided"),
    "no instances": ("model.call([])", "the instances count is 0"),
    "no list of lists": ("model.call([x, y])", "inputs format invalid"),
    "too few": ("model.call(x)", "instance 0 has 1 inputs, but the model has 2"),
    "too many": ("model.call([[x, y], [x, y, x]])", "instance 1 has 3 inputs, but the model has 2"),
    "dtype": ("model.call(x, y.astype(np.int32))", "instance 0: Input 1 'y'"),
    "shape": ("model.call([[x, y], [x, y[:2]]])", "instance 1: Input 1 'y'"),
    "sub-graph": ("model.call(x, y, subgraph=1)", "the model has no sub-graph 1, it has 1"),
    "negative": ("model.call(x, y, subgraph=-1)", "'subgraph' should be >= 0"),
    "foreign": (
        "register.Model('b.mindir').call(x, y)",
        "Model(b.mindir).call() failed: the model is not declared",
    ),
}


@pytest.mark.parametrize("case", CALL_WRONG)
def test_a_wrong_call_of_a_model_says_what_is_wrong(serve, infer, case):
    expression, message = CALL_WRONG[case]
    engine = serve(CALLS.format(expression=expression), "add_sub")
    x = np.zeros(3, np.float32)
    (error,) = infer(engine, "by_wrong", {"x": x, "y": x})
    assert isinstance(error, ServingError) and message in error.message
    assert "RuntimeError: Model(" in error.message


def test_sub_graphs_are_files_of_one_model(serve, infer):
    config = """
model = register.declare_model(["add.mindir", "add_int.mindir"], "MindIR", with_batch_dim=False)

def both(x, k):
    return model.call(x, x), model.call(k, k, subgraph=1)

@register.register_method(["a", "b"])
def predict(x, k):
    return register.add_stage(both, x, k, outputs_count=2)
"""
    engine = serve(config, "add", "add_int")
    x, k = np.ones((2, 2), np.float32), np.array([3, 4], np.int32)
    (result,) = infer(engine, "predict", {"x": x, "k": k})
    np.testing.assert_array_equal(result["a"], x * 2)
    np.testing.assert_array_equal(result["b"], k * 2)


def test_functions_get_bytes_as_an_array_as_in_mindspore(serve, infer):
    body = """
def f(x):
    assert x.dtype == np.uint8 and x.ndim == 1 and not x.flags.writeable
    return x.tobytes().decode(), x
"""
    engine = serve(function(body, outputs="text array"))
    full, empty = infer(engine, "predict", {"x": b"abc"}, {"x": b""})
    assert full["text"] == "abc" and empty["text"] == ""
    np.testing.assert_array_equal(full["array"], np.frombuffer(b"abc", np.uint8))


def test_bytes_that_no_function_sees_stay_bytes(serve, infer):
    engine = serve('@register.register_method("y")\ndef predict(x):\n    return x\n')
    assert infer(engine, "predict", {"x": b"abc"}) == [{"y": b"abc"}]


def test_functions_may_leave_out_dimensions_of_size_1(serve, infer):
    config = """
model = register.declare_model("add_sub.mindir", "MindIR")

def shape(x, y):
    return x.reshape(1, 3), y

@register.register_method(["a", "b"])
def predict(x, y):
    x, y = register.add_stage(shape, x, y, outputs_count=2)
    return register.add_stage(model, x, y, outputs_count=2)

@register.register_method("a")
def called(x, y):
    def call(x, y):
        return model.call(x.reshape(3, 1), y)[0]
    return register.add_stage(call, x, y, outputs_count=1)
"""
    engine = serve(config, "add_sub")
    x = np.arange(3, dtype=np.float32)
    for method in ("predict", "called"):
        np.testing.assert_array_equal(infer(engine, method, {"x": x, "y": x})[0]["a"], x + x)
