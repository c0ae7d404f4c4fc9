"""Tensors of MindSpore's protocol: what a client may send, and what everything else gets."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia_serving.errors import Code, ServingError
from mycelia_serving.wire.proto import serving_pb2 as pb
from mycelia_serving.wire.tensors import put_value, read_tensor, varint


def tensor(dims=None, dtype=pb.MS_FLOAT32, **fields) -> pb.Tensor:
    message = pb.Tensor(dtype=dtype, **fields)
    if dims is not None:
        message.shape.dims.extend(dims)
    return message


NUMBERS = {
    pb.MS_BOOL: "?",
    pb.MS_INT8: "i1",
    pb.MS_UINT8: "u1",
    pb.MS_INT16: "i2",
    pb.MS_UINT16: "u2",
    pb.MS_INT32: "i4",
    pb.MS_UINT32: "u4",
    pb.MS_INT64: "i8",
    pb.MS_UINT64: "u8",
    pb.MS_FLOAT16: "f2",
    pb.MS_FLOAT32: "f4",
    pb.MS_FLOAT64: "f8",
}


@pytest.mark.parametrize("kind, dtype", NUMBERS.items())
def test_numbers_of_every_type_and_shape(kind, dtype):
    assert kind == list(NUMBERS).index(kind) + 1
    for shape in ((), (1,), (3,), (2, 3), (0, 3), (3, 0), (1,) * 32):
        sent = np.arange(max(1, np.prod(shape, dtype=int))).astype(dtype)[: np.prod(shape, dtype=int)]
        found = read_tensor(tensor(shape, kind, data=sent.tobytes()))
        assert found.dtype == dtype and found.shape == shape and np.array_equal(found, sent.reshape(shape))
        assert not found.flags.writeable and found.flags.aligned and found.flags.c_contiguous
        parts = []
        put_value(parts, "x", found)
        again = pb.Instance.FromString(b"".join(parts)).items["x"]
        assert np.array_equal(read_tensor(again), found) and again.dtype == kind


def test_odd_bytes_of_booleans_are_true():
    assert read_tensor(tensor([3], pb.MS_BOOL, data=b"\x00\x02\xff")).view(np.uint8).tolist() == [0, 1, 1]


def test_a_tensor_without_shape_is_a_scalar():
    assert read_tensor(tensor(None, pb.MS_INT8, data=b"\x05")) == 5


@pytest.mark.parametrize("dims", [None, [], [1]])
def test_strings_and_bytes(dims):
    assert read_tensor(tensor(dims, pb.MS_STRING, bytes_val=["ä".encode()])) == "ä"
    assert read_tensor(tensor(dims, pb.MS_BYTES, bytes_val=[b"\xff"])) == b"\xff"
    assert read_tensor(tensor(dims, pb.MS_STRING, bytes_val=[b""])) == ""


@pytest.mark.parametrize(
    "message, text",
    [
        (tensor([2], data=b"1234567"), "7 bytes"),
        (tensor([2], data=b"123456789"), "takes 8"),
        (tensor([2]), "0 bytes"),
        (tensor([], data=b""), "takes 4"),
        (tensor([2], bytes_val=[b"12345678"]), "bytes_val"),
        (tensor([1], data=b"1234", bytes_val=[b"1"]), "bytes_val"),
        (tensor([-1], data=b"1234"), "negative"),
        (tensor([-1, -1], data=b"1234"), "negative"),
        (tensor([2**62, 4], data=b""), "overflows"),
        (tensor([2**32, 2**32], data=b""), "overflows"),
        (tensor([2**62, 4, 0], data=b""), "overflows"),
        (tensor([2**63 - 1], pb.MS_FLOAT64, data=b""), "overflows"),
        (tensor([1] * 33, data=b"1234"), "32 dimensions"),
        (tensor([1] * 65, data=b"1234"), "32 dimensions"),
        (tensor([1] * 100_000, data=b"1234"), "100000 dimensions"),
        (tensor([1], pb.MS_UNKNOWN, data=b"1234"), "unknown data type 0"),
        (tensor([1], 99, data=b"1234"), "unknown data type 99"),
        (tensor([1], -1, data=b"1234"), "unknown data type -1"),
        (tensor([1], pb.MS_STRING), "exactly one"),
        (tensor([1], pb.MS_STRING, bytes_val=[b"a", b"b"]), "exactly one"),
        (tensor([2], pb.MS_STRING, bytes_val=[b"a", b"b"]), "shape"),
        (tensor([1, 1], pb.MS_BYTES, bytes_val=[b"a"]), "shape"),
        (tensor([0], pb.MS_BYTES, bytes_val=[b"a"]), "shape"),
        (tensor([1], pb.MS_BYTES, data=b"a"), "exactly one"),
        (tensor([1], pb.MS_STRING, bytes_val=[b"\xff\xfe"]), "UTF-8"),
        (tensor([1], pb.MS_STRING, bytes_val=[b"\xed\xa0\x80"]), "UTF-8"),
        (
            tensor([1], shm_data=pb.ShmTensorData(memory_key="psm_1", bytes_size=4, data_size=4)),
            "shared memory",
        ),
    ],
)
def test_what_no_client_may_send(message, text):
    with pytest.raises(ServingError, match=text) as caught:
        read_tensor(message)
    assert caught.value.code == Code.INVALID_INPUTS and len(caught.value.message) < 400


def test_values_that_no_message_carries():
    for value in (None, 3, [1], np.array(["a"]), np.array([1 + 2j]), np.array([1], ">i4"), object()):
        with pytest.raises(TypeError, match="x"):
            put_value([], "x", value)


def test_arrays_that_are_not_contiguous_are_copied():
    parts = []
    put_value(parts, "x", np.arange(6, dtype="i4").reshape(2, 3).T)
    found = read_tensor(pb.Instance.FromString(b"".join(parts)).items["x"])
    assert found.tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**31, 2**63, 2**64 - 1])
def test_varint(number):
    assert pb.ServableSpec.FromString(b"\x18" + varint(number)).version_number == number
