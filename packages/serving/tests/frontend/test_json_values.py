"""JSON values to tensors and back, by the rules of the REST interface."""

from __future__ import annotations

import base64
import binascii
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycelia_serving.errors import Code, ServingError
from mycelia_serving.frontend import json_values
from mycelia_serving.frontend.json_values import load, parse_instances, reply_body
from mycelia_serving.frontend.large import LARGE
from mycelia_serving.request import Reply


def b64(data: bytes, **more) -> dict:
    return {"b64": base64.b64encode(data).decode(), **more}


def parse(value):
    """What one input becomes; raises its error."""
    text = value if isinstance(value, str) else json.dumps(value)
    (instance,) = parse_instances(b'{"instances": [{"x": %s}]}' % text.encode())
    if isinstance(instance, ServingError):
        assert "'x'" in instance.message
        raise instance
    return instance["x"]


@pytest.mark.parametrize(
    "text, dtype, shape, values",
    [
        ("3", "int32", (), 3),
        ("-2147483648", "int32", (), -(2**31)),
        ("2147483647", "int32", (), 2**31 - 1),
        ("1.5", "float32", (), 1.5),
        ("1e2", "float32", (), 100.0),
        ("1.0", "float32", (), 1.0),
        ("1e30", "float32", (), float(np.float32(1e30))),
        ("3e38", "float32", (), float(np.float32(3e38))),
        ("true", "bool", (), True),
        ("[1, 2, 3]", "int32", (3,), [1, 2, 3]),
        ("[[1, 2], [3, 4], [5, 6]]", "int32", (3, 2), [[1, 2], [3, 4], [5, 6]]),
        ("[[[0.5]]]", "float32", (1, 1, 1), [[[0.5]]]),
        ("[true, false]", "bool", (2,), [True, False]),
        ("[" * 32 + "1" + "]" * 32, "int32", (1,) * 32, None),
    ],
)
def test_numbers(text, dtype, shape, values):
    found = parse(text)
    assert (found.dtype.name, found.shape) == (dtype, shape)
    assert values is None or found.tolist() == values
    assert not found.flags.writeable and found.flags.c_contiguous


@st.composite
def nested(draw):
    """Arrays, mostly such as clients send."""
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    whole = st.one_of(st.integers(-(2**31) - 2, 2**31 + 1), st.integers(-(2**64) - 2, 2**64 + 1))
    mixed = st.one_of(whole, st.floats(-1e40, 1e40), st.none(), st.text(max_size=2))
    floats = st.floats(allow_nan=False, allow_infinity=False)
    element = draw(st.sampled_from([whole, st.integers(-9, 9), floats, st.booleans(), mixed]))

    def fill(sizes):
        return [fill(sizes[1:]) for _ in range(sizes[0])] if sizes else draw(element)

    value = fill(shape)
    if draw(st.integers(0, 5)) == 0:  # ragged, or mixed
        value.append(draw(st.sampled_from([[], [1], [[1]], 1, "[1, 2]", {"b64": "MQ=="}])))
    return value


def meaning(body: bytes, as_large: bool = False):
    """What a body means, so that it can be compared."""
    with pytest.MonkeyPatch.context() as patch:
        if as_large:
            patch.setattr(json_values, "LARGE", 0)
            patch.setattr(json_values, "_LONG", 1)
        try:
            found = parse_instances(body)
        except ServingError as error:
            return error.code
    return [
        one.code
        if isinstance(one, ServingError)
        else {
            name: (v.dtype.str, v.shape, v.tobytes(), v.flags.writeable) if isinstance(v, np.ndarray) else v
            for name, v in one.items()
        }
        for one in found
    ]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(st.dictionaries(st.text(max_size=2), nested(), max_size=2), min_size=1, max_size=2),
    st.sampled_from(["\n", " ", ""]),
    st.integers(0, 3),
)
def test_large_bodies_mean_what_small_ones_mean(instances, space, damage):
    text = json.dumps({"instances": instances}).replace(",", f"{space},").replace("]", f"]{space}")
    if damage == 1:
        text = text.replace("1", "01", 1)
    elif damage == 2:
        text = text[:-2]
    assert meaning(text.encode()) == meaning(text.encode(), as_large=True)


@pytest.mark.parametrize(
    "value",
    [
        "[0.0, 1e2501]",
        "[[0.0, 1e400], []]",
        "[[1e309, 2.0]]",
        "[1, -1e999]",
        f"[{'9' * 400}]",
        "[1e30, 1e99]",
    ],
)
def test_numbers_that_no_double_holds_are_no_json_in_large_bodies_too(value):
    text = f'{{"instances": [{{"x": {value}}}]}}'.encode()
    assert meaning(text) == meaning(text, as_large=True)


@pytest.mark.parametrize(
    "text",
    [
        '{"instances": [1, 2, 3]}',
        '{"instances": {"x": [1, 2]}, "instances": {"x": [3, 4]}}',
        '{"instances": {"x": [1, 2]}, "\\u0069nstances": {"x": [3, 4]}}',
        '{"instances": {"x": [1, 2], "y": "\\"instances\\": [1]"}}',
        '{"instances": {"x": [1.0, 2.0, 36893488147419103232]}}',
        '{"instances": {"x": [1, 2], "y": 36893488147419103232}}',
        '{"instances": {"x": [1, 2], "y": 1e20}}',
        '{"instances": {"x": [1, 2], "y": "a\\\\"}}',
        '{"instances": {"x": [-0.0, -0, 1e-400, 1e39]}}',
        '{"instances": {"x": [-0.0, 1e-400, 1e-40]}}',
        '{"instances": {"x": [truE]}}',
        '{"instances": {"x": [1.]}}',
        '{"instances": {"x": [+1]}}',
        '{"instances": {"x": [.5]}}',
        '{"instances": {"x": [1e]}}',
        '{"instances": {"x": [-]}}',
        '{"instances": {"x": [1,]}}',
        '{"instances": {"x": [,1]}}',
        '{"instances": {"x": [1 2]}}',
        '{"instances": {"x": [1}}',
        '{"instances": {"x": [1',
        '{"instances": {"x": [NaN, 1]}}',
        '{"instances": {"x": "' + "[" * 9,
        '{"instances": {"x": ' + "[" * 32 + "1" + "]" * 32 + "}}",
        '{"instances": {"x": ' + "[" * 33 + "1" + "]" * 33 + "}}",
        '{"instances": {"x": [[1, 2], [3, 4], 5]}, "y": [1, [2, 3]]}',
        "",
    ],
)
def test_large_bodies_are_as_strict_as_small_ones(text):
    assert meaning(text.encode()) == meaning(text.encode(), as_large=True)


def test_arrays_of_every_kind_are_taken_out_of_large_bodies():
    values = {"i": [[1, -2]] * 50, "f": [0.5] * 100, "b": [True, False] * 50, "s": "[" * 100}
    body = json.dumps({"instances": [values, {"r": [[1] * 70, [1] * 71]}], "pad": "x" * LARGE}).encode()
    first, second = parse_instances(body)
    assert {name: v.tolist() if name != "s" else v for name, v in first.items()} == values
    assert "ragged" in second.message
    _, arrays = load(body)
    assert b"0.5" not in arrays.text and b"true" not in arrays.text


def test_a_large_body_of_many_values_is_refused():
    body = b'{"instances": [' + b'{"x": 1},' * 99_999 + b'{"x": 1}]}'
    assert len(parse_instances(body)) == 100_000
    with pytest.raises(ServingError, match="the limit is 100000"):
        parse_instances(body[:-2] + b',{"x": 1}]}')
    with pytest.raises(ServingError, match="over 1,000,000 values"):
        parse_instances(b'{"instances": {"x": [' + b'"a",' * 1_000_001 + b'"a"]}}')


def test_nesting_does_not_multiply_the_work():
    body = b'{"instances": {"x": ' + b"[" * 30 + b"1," * 200_000 + b'"a"' + b"]" * 30 + b"}}"
    assert meaning(body) == [Code.INVALID_INPUTS]


def test_long_base64_is_read_in_pieces():
    data = np.random.default_rng(2).bytes(3_000_001)
    assert parse(b64(data)) == data
    text = binascii.b2a_base64(data, newline=False).decode()
    for wrong in (
        text[:-1],
        text[:1_400_000] + "====" + text[1_400_004:],
        text[:2_000_000] + "\n" + text[2_000_001:],
    ):
        with pytest.raises(ServingError, match="base64"):
            parse({"b64": wrong})


MEMORY = """
import sys
from mycelia_serving.frontend.json_values import parse_instances

def resident(what):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(what))

element, kind = sys.argv[1:]
count = 24_000_000 // (len(element) + 1)
body = b'{"instances": [{"x": [%s%s]}]}' % ((element + ",").encode() * count, element.encode())
parse_instances(b'{"instances": {"x": [[1, 2], [3, 4]]}}')
before = resident("VmRSS")
(instance,) = parse_instances(body)
assert instance["x"].dtype == kind
print((resident("VmHWM") - before) / len(body))
"""


@pytest.mark.parametrize(("element", "kind"), [("1", "i4"), ("0.5", "f4"), ("-1.23456789e-05", "f4")])
def test_a_large_body_takes_less_than_three_times_its_size(element, kind):
    command = [sys.executable, "-c", MEMORY, element, kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 2.2, "beside the body itself"


def test_strings_and_objects():
    assert parse('"text"') == "text" and parse('["text"]') == "text" and parse('"ä\\u00e4"') == "ää"
    assert parse(b64(b"\xff\x00")) == b"\xff\x00" and parse([b64(b"1")]) == b"1"
    assert parse(b64("ä".encode(), type="str")) == "ä" and parse(b64(b"x", type="bytes", shape=[1])) == b"x"
    assert parse(b64(b"", type="str")) == ""


@pytest.mark.parametrize(
    "name",
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 fp16 fp32 fp64 float16 float32 float64 bool".split(),
)
def test_objects_of_every_type(name):
    dtype = np.dtype({"fp16": "float16", "fp32": "float32", "fp64": "float64"}.get(name, name))
    sent = np.array([[1, 0, 1], [1, 1, 0]], dtype)
    found = parse(b64(sent.tobytes(), type=name, shape=[2, 3]))
    assert found.dtype == dtype and np.array_equal(found, sent)
    assert parse(b64(sent[:1, :1].tobytes(), type=name)).shape == ()
    assert parse(b64(b"", type=name, shape=[0, 3])).shape == (0, 3)


@pytest.mark.parametrize(
    "value, text",
    [
        ("2147483648", "int32"),
        ("-2147483649", "int32"),
        ("1099511627776", "int32"),
        ("18446744073709551616", "int32"),
        ("-9223372036854775809", "int32"),
        ("[1, 1180591620717411303424]", "int32"),
        ("[1.5, 1180591620717411303424]", "mixes"),
        ("1e39", "float32"),
        ("[1.0, -4e38]", "float32"),
        ("null", "null"),
        ("[null]", "null"),
        ("[1, null]", "null"),
        ("[]", "empty"),
        ("[[], []]", "empty"),
        ("[[1, 2], [3]]", "ragged"),
        ("[[1, 2], 3]", "mixes"),
        ("[1, [2]]", "mixes"),
        ("[1, 2.0]", "mixes"),
        ("[1.0, 2]", "mixes"),
        ("[true, 1]", "mixes"),
        ('[1, "a"]', "mixes"),
        ('["a", "b"]', "one string"),
        ('[["a"]]', "one string"),
        ("[" * 33 + "1" + "]" * 33, "nested"),
        ({}, "b64"),
        ({"b64": 1}, "b64"),
        ({"b64": "a"}, "base64"),
        ({"b64": "a===="}, "base64"),
        ({"b64": "YQ==\n"}, "base64"),
        ({"b64": "Y Q=="}, "base64"),
        ({"b64": "é==="}, "base64"),
        ({"b64": "_-__"}, "base64"),
        (b64(b"1", kind="bytes"), "unknown key 'kind'"),
        (b64(b"1", type="float8"), "unknown type"),
        (b64(b"1", type=3), "unknown type"),
        (b64(b"123", type="int32"), "takes 4"),
        (b64(b"1234", type="int32", shape=[2]), "takes 8"),
        (b64(b"1234", type="int32", shape=[-1]), "shape"),
        (b64(b"1234", type="int32", shape=[1.0]), "shape"),
        (b64(b"1234", type="int32", shape=[True]), "shape"),
        (b64(b"1234", type="int32", shape="1"), "shape"),
        (b64(b"", type="int32", shape=[2**31 - 1] * 3), "overflows"),
        (b64(b"", type="int8", shape=[2**32, 2**32]), "overflows"),
        (b64(b"", type="int8", shape=[1] * 65), "dimensions"),
        (b64(b"ab", type="str", shape=[2]), "scalar"),
        (b64(b"\xff", type="str"), "UTF-8"),
    ],
)
def test_bad_values(value, text):
    with pytest.raises(ServingError, match=text) as caught:
        parse(value)
    assert caught.value.code == Code.INVALID_INPUTS


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1,]",
        b"\xff",
        b"3",
        b"[]",
        b"null",
        b"{}",
        b'{"instances": []}',
        b'{"instances": 3}',
        b'{"instances": null}',
        b'{"instances": "x"}',
        b'{"instances": [[{"x": 1}]]}',
        b'{"instances": [1]}',
        b'{"instances": [{"x": 1}], "instances": [{"x": 2}]}',
        b'{"instances": [{"x": 1}], "\\u0069nstances": [{"x": 2}]}',
        b'{"instances": [{"x": NaN}]}',
        b'{"instances": [{"x": 1}], "more": ' + b"[" * 65 + b"]" * 65 + b"}",
        b"[" * 5000 + b"]" * 5000,
    ],
)
def test_bodies_that_are_refused_whole(body):
    with pytest.raises(ServingError) as caught:
        parse_instances(body)
    assert caught.value.code == Code.INVALID_INPUTS


def test_one_object_instead_of_a_list_and_an_instance_that_fails_alone():
    assert len(parse_instances(b'{"instances": {"x": 1}, "other": [1]}')) == 1
    good, bad, last = parse_instances(b'{"instances": [{"x": 1}, {"x": null}, {"x": 2}]}')
    assert good["x"] == 1 and isinstance(bad, ServingError) and last["x"] == 2


def test_replies():
    results = [
        {
            "f": np.array([0.1, np.nan, np.inf], "f4"),
            "h": np.array([1.5], "f2"),
            "i": np.array(3, "i8"),
            "b": np.array(True),
            "s": "ä",
            "y": b"\xff",
            "e": np.zeros((2, 0)),
            "t": np.arange(6, dtype="u1").reshape(2, 3).T,
            "u": np.array([2**64 - 1], "u8"),
        }
    ]
    status, body = reply_body(Reply(results, 1))
    assert status == 200 and json.loads(body)["instances"] == [
        {
            "f": [0.1, None, None],
            "h": [1.5],
            "i": 3,
            "b": True,
            "s": "ä",
            "y": {"b64": "/w=="},
            "e": [[], []],
            "t": [[0, 3], [1, 4], [2, 5]],
            "u": [2**64 - 1],
        }
    ]
    literal = json.loads(reply_body(Reply(results, 1), nan_literal=True)[1])["instances"][0]["f"]
    assert literal[0] == 0.1 and np.isnan(literal[1]) and literal[2] == np.inf


def test_replies_with_errors():
    error = ServingError(Code.INVALID_INPUTS, "wrong")
    assert reply_body(Reply([{"y": "1"}, error], 1)) == (
        200,
        b'{"instances":[{"y":"1"},{"error_msg":"wrong"}]}',
    )
    assert reply_body(Reply([error, error], 1)) == (400, b'{"error_msg":"wrong"}')
    for code, status in (
        (Code.NOT_FOUND, 404),
        (Code.TOO_MANY, 429),
        (Code.STOPPING, 503),
        (Code.SERVABLE_UNAVAILABLE, 503),
        (Code.DEADLINE, 504),
        (Code.SYSTEM_ERROR, 500),
    ):
        assert reply_body(Reply(error=ServingError(code, "w"))) == (status, b'{"error_msg":"w"}')
