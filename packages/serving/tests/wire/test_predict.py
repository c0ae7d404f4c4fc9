"""Requests and replies of MindSpore's protocol as bytes, and that the quick way reads what protobuf reads."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycelia_serving.errors import Code, ServingError
from mycelia_serving.request import Reply
from mycelia_serving.wire import layouts
from mycelia_serving.wire import predict as wire
from mycelia_serving.wire.layouts import Layouts
from mycelia_serving.wire.proto import serving_pb2 as pb

X = np.arange(4, dtype="f4").reshape(2, 2)


@pytest.fixture(autouse=True)
def no_layouts(monkeypatch):
    """Each test starts as a new process does."""
    monkeypatch.setattr(wire, "_requests", Layouts(2))
    monkeypatch.setattr(wire, "_replies", Layouts(3))


def same(one, other) -> bool:
    """Equality of instances, errors by their text."""
    if isinstance(one, ServingError) or isinstance(other, ServingError):
        return str(one) == str(other)
    if one.keys() != other.keys():
        return False
    for name, value in one.items():
        if type(value) is not type(other[name]):
            return False
        if isinstance(value, np.ndarray):
            if value.dtype != other[name].dtype or value.shape != other[name].shape:
                return False
            if value.tobytes() != other[name].tobytes():
                return False
        elif value != other[name]:
            return False
    return True


def test_request_there_and_back():
    instances = [{"x": X, "s": "ä", "b": b"\xff"}, {"n": np.array(3)}, {}]
    for _ in range(2):
        request = wire.parse_request(wire.request_bytes("add", "add_common", 7, instances))
        assert (request.servable, request.method, request.version, request.protocol) == (
            "add",
            "add_common",
            7,
            "grpc",
        )
        assert all(same(a, b) for a, b in zip(request.instances, instances, strict=True))


def test_the_second_request_of_a_kind_is_read_by_its_layout(monkeypatch):
    first = wire.request_bytes("add", "add_common", 0, [{"x1": X, "x2": X}] * 3)
    wire.parse_request(first)
    monkeypatch.setattr(wire.pb, "PredictRequest", None)  # protobuf is not asked any more
    second = wire.request_bytes("add", "add_common", 0, [{"x1": X * 2, "x2": X - 1}] * 3)
    request = wire.parse_request(second)
    assert all(same(i, {"x1": X * 2, "x2": X - 1}) for i in request.instances)
    assert all(v.flags.aligned and not v.flags.writeable for i in request.instances for v in i.values())
    with pytest.raises(AttributeError):  # another method, version, shape or type is another kind
        wire.parse_request(wire.request_bytes("add", "add_commom", 0, [{"x1": X, "x2": X}] * 3))


def test_values_keep_their_types_in_replies():
    results = [{"a": X, "s": "t", "b": b"", "t": np.array([True]), "z": np.zeros((0, 2), "i8")}]
    for _ in range(2):
        (found,) = wire.parse_reply(wire.reply_bytes("add", "add_common", 0, Reply(results, 3))).results
        assert same(found, results[0])


def test_replies_with_errors():
    bad = ServingError(Code.INVALID_INPUTS, "wrong ä")
    message = pb.PredictReply.FromString(wire.reply_bytes("s", "m", 2, Reply([{"y": X}, bad, {"y": X}])))
    assert [(e.error_code, e.error_msg) for e in message.error_msg] == [
        (0, b""),
        (2, "wrong ä".encode()),
        (0, b""),
    ]
    assert [len(i.items) for i in message.instances] == [1, 0, 1]
    assert (message.servable_spec.name, message.servable_spec.method_name) == ("s", "m")
    assert message.servable_spec.version_number == 2
    back = wire.parse_reply(message.SerializeToString())
    assert [isinstance(r, ServingError) for r in back.results] == [False, True, False]
    whole = wire.reply_bytes("s", "m", 0, Reply(error=ServingError(Code.SERVABLE_UNAVAILABLE, "gone")))
    message = pb.PredictReply.FromString(whole)
    assert [(e.error_code, e.error_msg) for e in message.error_msg] == [
        (5, b"gone")
    ] and not message.instances
    assert wire.parse_reply(whole).error.code == Code.SERVABLE_UNAVAILABLE


def test_an_output_that_no_message_carries_fails_its_instance_alone():
    body = wire.reply_bytes("s", "m", 0, Reply([{"y": X}, {"y": X, "z": object()}, {"y": X}]))
    message = pb.PredictReply.FromString(body)
    assert [e.error_code for e in message.error_msg] == [0, 3, 0] and b"z" in message.error_msg[1].error_msg
    assert [len(i.items) for i in message.instances] == [1, 0, 1]


def test_a_reply_whose_errors_fit_nothing():
    message = pb.PredictReply()
    message.instances.add()
    for _ in range(2):
        message.error_msg.add(error_code=2)
    with pytest.raises(wire.Malformed):
        wire.parse_reply(message.SerializeToString())
    with pytest.raises(wire.Malformed):
        wire.parse_reply(b"\xff")


def test_requests_that_are_refused_whole():
    with pytest.raises(wire.Refused, match="no instances"):
        wire.parse_request(wire.request_bytes("s", "m", 0, []))
    with pytest.raises(wire.Refused, match="no instances"):
        wire.parse_request(b"")
    both = pb.PredictRequest()
    both.instances.add()
    both.instances_of_1_1.add()
    with pytest.raises(wire.Refused, match="field 2 and in field 3") as caught:
        wire.parse_request(both.SerializeToString())
    assert caught.value.error.code == Code.INVALID_INPUTS
    for body in (b"\xff", b"\x0a\x05ab", b"\x0a\x03\x0a\x01\xff", b"\x12\x80"):
        with pytest.raises(wire.Malformed):
            wire.parse_request(body)


def test_unusual_forms_are_read_as_protobuf_reads_them():
    """A field twice, unknown fields, another order: what protobuf makes of it, the quick way does too."""

    def entry(*parts: bytes) -> bytes:
        body = b"".join(parts)
        return b"\x0a" + bytes([len(body)]) + body

    key = b"\x0a\x01x"  # and then an int8 of 5 or 7
    forms = [
        entry(key, b"\x12\x05\x10\x02\x1a\x01\x07"),
        entry(b"\x12\x05\x10\x02\x1a\x01\x07", key),
        entry(key, b"\x12\x05\x1a\x01\x07\x10\x02"),
        entry(key, b"\x12\x08\x10\x02\x1a\x01\x05\x1a\x01\x07"),
        entry(key, key, b"\x12\x05\x10\x02\x1a\x01\x07"),
        entry(key, b"\x12\x05\x10\x02\x1a\x01\x05", b"\x12\x05\x10\x02\x1a\x01\x07"),
        entry(key, b"\x12\x05\x10\x02\x1a\x01\x05") + entry(key, b"\x12\x05\x10\x02\x1a\x01\x07"),
        entry(key, b"\x12\x08\x10\x02\x98\x06\x01\x1a\x01\x07"),
        entry(key, b"\x12\x05\x10\x02\x1a\x01\x07", b"\x98\x06\x01"),
        entry(key, b"\x12\x05\x10\x02\x1a\x01\x07") + b"\x98\x06\x01",
    ]
    for form in forms:
        body = b"\x0a\x03\x0a\x01s" + b"\x12" + bytes([len(form)]) + form
        wanted = [tensor.data for tensor in pb.PredictRequest.FromString(body).instances[0].items.values()]
        for _ in range(3):
            request = wire.parse_request(body)
            assert [v.tobytes() for v in request.instances[0].values()] == wanted


def test_layouts_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(layouts, "_BUDGET", 100_000)
    for size in range(600):
        wire.parse_request(
            wire.request_bytes("s", "m", 0, [{"x": np.zeros(size % 300, "i1"), f"y{size}": X}])
        )
    kept = sum(len(v) for v in wire._requests._by_length.values())
    assert 0 < kept and wire._requests._size <= 100_000
    assert all(len(alike) <= 4 for alike in wire._requests._by_length.values())


values = st.one_of(
    st.text(max_size=5),
    st.binary(max_size=5),
    st.builds(
        lambda kind, shape, seed: np.frombuffer(
            random.Random(seed).randbytes(int(np.prod(shape, dtype=int)) * np.dtype(kind).itemsize), kind
        ).reshape(shape),
        st.sampled_from(["i1", "u2", "i4", "f2", "f4", "f8", "u8"]),
        st.lists(st.integers(0, 3), max_size=3),
        st.integers(0, 9),
    ),
)
requests = st.lists(st.dictionaries(st.text(max_size=3), values, max_size=3), min_size=1, max_size=3)


def read_by_protobuf(body: bytes):
    """What `parse_request` finds without layouts."""
    kept, wire._requests = wire._requests, Layouts(2)
    try:
        return read(body)
    finally:
        wire._requests = kept


def read(body: bytes):
    try:
        request = wire.parse_request(body)
    except (wire.Malformed, wire.Refused) as error:
        return type(error).__name__, ()
    return (request.servable, request.method, request.version), request.instances


def agree(body: bytes) -> None:
    (head, instances), (wanted_head, wanted) = read(body), read_by_protobuf(body)
    assert head == wanted_head and len(instances) == len(wanted)
    assert all(same(a, b) for a, b in zip(instances, wanted, strict=True))


@settings(max_examples=40)
@given(requests, st.data())
def test_the_quick_way_agrees_with_protobuf_on_changed_bytes(instances, data):
    body = wire.request_bytes("s", "m", 1, instances)
    read(body)
    agree(body)
    for _ in range(3):
        changed = bytearray(body)
        position = data.draw(st.integers(0, len(body) - 1))
        changed[position] = data.draw(st.integers(0, 255))
        agree(bytes(changed))
        agree(bytes(changed))  # now perhaps by a layout of its own


@given(st.binary(max_size=60))
def test_any_bytes_are_answered(body):
    agree(body)
    agree(body)
