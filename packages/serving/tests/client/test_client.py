"""The Python client against servers on loopback."""

from __future__ import annotations

import asyncio
import socket

import numpy as np
import pytest

from mycelia_serving.client import AsyncClient, Client, SSLConfig
from mycelia_serving.errors import STOPPING_TEXT, Code
from mycelia_serving.frontend import start_grpc

X = np.arange(4, dtype="f4").reshape(2, 2)


@pytest.fixture
def server(echo):
    server = start_grpc(echo, "127.0.0.1:0")
    yield server
    server.stop(0)


@pytest.fixture
def address(server):
    return f"127.0.0.1:{server.port}"


@pytest.fixture
def nobody():
    """An address where nobody listens: the port is taken, but not listened to."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{sock.getsockname()[1]}"


def test_infer_in_both_spellings(address):
    ip, _, port = address.partition(":")
    clients = [
        Client(address, "add", "add_common"),
        Client(address, "add", "add_common", 2, None),
        Client(ip, int(port), "add", "add_common"),
        Client(ip, int(port), "add", "add_common", 2),
        Client(ip=ip, port=int(port), servable_name="add", method_name="add_common", version_number=1),
    ]
    for client in clients:
        with client:
            (result,) = client.infer({"x1": X, "x2": X})
            assert result["y"].dtype == np.float32 and np.array_equal(result["y"], 2 * X)


def test_many_instances_and_one_that_fails(address):
    with Client(address, "add", "add_common") as client:
        results = client.infer(({"x1": X, "x2": X}, {"x1": X}, {"x1": X, "x2": X, "more": 1}))
        assert [set(r) for r in results] == [{"y"}, {"error"}, {"y"}] and "x2" in results[1]["error"]
        assert client.infer([{"x1": X}]) == {"error": "input x2 is missing"}
        assert "no instances" in client.infer([])["error"]


def test_infer_async(address):
    with Client(address, "add", "add_common") as client:
        futures = [client.infer_async({"x1": X + i, "x2": X}) for i in range(20)]
        for i, future in enumerate(futures):
            assert np.array_equal(future.result()[0]["y"], 2 * X + i) and future.done()
            assert future.result() is future.result()


@pytest.mark.parametrize(
    "value, dtype, shape",
    [
        (3, "int64", (1,)),
        (2.5, "float64", (1,)),
        (True, "bool", (1,)),
        (np.int8(-3), "int8", ()),
        (np.float16(1.5), "float16", ()),
        (np.float64(1.5), "float64", ()),
        (np.bool_(True), "bool", ()),
        (np.array(7, "u8"), "uint64", ()),
        (np.zeros((0, 3), "i2"), "int16", (0, 3)),
        (np.arange(6, dtype=">i4").reshape(2, 3).T, "int32", (3, 2)),
        (np.array([[True, False]]), "bool", (1, 2)),
    ],
)
def test_values(address, value, dtype, shape):
    with Client(address, "mirror", "one") as client:
        (result,) = client.infer({"x": value})
        assert (result["x"].dtype.name, result["x"].shape) == (dtype, shape)
        assert np.array_equal(result["x"], np.asarray(value).reshape(shape))


def test_strings_and_bytes(address):
    with Client(address, "mirror", "text") as client:
        assert client.infer({"s": "ä", "b": b"\xff"}) == [{"s": "ä", "b": b"\xff"}]
        assert client.infer({"s": np.str_("x"), "b": np.bytes_(b"")}) == [{"s": "x", "b": b""}]


def test_errors_of_the_call_are_results(address, echo, nobody):
    with Client(nobody, "add", "add_common") as client:
        error = client.infer({"x1": X, "x2": X})["error"]
        assert error.startswith("Grpc Error, (14, 'unavailable'), ")
    with Client(address, "mirror", "hang", timeout=0.2) as client:
        assert client.infer({"x": 1})["error"].startswith("Grpc Error, (4, 'deadline exceeded'), ")
        future = client.infer_async({"x": 1}, timeout=60)
        future.cancel()
        assert "cancelled" in future.result()["error"]
    with Client(address, "nobody", "nothing") as client:
        assert client.infer({"x": 1}) == {"error": "unknown servable nobody"}


def test_wrong_arguments_are_runtime_errors(address, tmp_path):
    for arguments, text in (
        ((1, "s", "m"), "address"),
        (("", "s", "m"), "address"),
        (([], "s", "m"), "address"),
        (([address, 3], "s", "m"), "address"),
        ((address, "", "m"), "servable_name"),
        ((address, None, "m"), "servable_name"),
        ((address, "s", 3), "method_name"),
        ((address, "s", "m", -1), "version_number"),
        ((address, "s", "m", "1"), "version_number"),
        ((address, "s", "m", True), "version_number"),
        ((address, "s", "m", 0, "ssl"), "ssl_config"),
        (("ip", -1, "s", "m"), "port"),
    ):
        with pytest.raises(RuntimeError, match=text):
            Client(*arguments)
    for options, text in (
        ({"timeout": 0}, "timeout"),
        ({"timeout": "1"}, "timeout"),
        ({"retry": -1}, "retry"),
    ):
        with pytest.raises(RuntimeError, match=text):
            Client(address, "s", "m", **options)
    with Client(address, "mirror", "one") as client:
        for bad in ("x", 3, [3], {"x": None}, {"x": [1]}, {"x": 2**70}, {"x": np.array(["a"])}, {1: 2}):
            with pytest.raises(RuntimeError):
                client.infer(bad)
    file = tmp_path / "f"
    file.write_text("")
    for options in (
        {"certificate": str(file)},
        {"private_key": str(file)},
        {"custom_ca": "no"},
        {"custom_ca": 3},
    ):
        with pytest.raises(RuntimeError):
            SSLConfig(**options)


def test_requests_go_to_all_addresses_in_turn_and_around_the_dead(echo, server, address, nobody):
    other_echo = type(echo)()
    other = start_grpc(other_echo, "127.0.0.1:0")
    try:
        with Client([nobody, address, f"127.0.0.1:{other.port}"], "add", "add_common") as client:
            for _ in range(9):
                assert np.array_equal(client.infer({"x1": X, "x2": X})[0]["y"], 2 * X)
        assert len(echo.requests) + len(other_echo.requests) == 9
        assert min(len(echo.requests), len(other_echo.requests)) >= 3
    finally:
        other.stop(0)


def test_only_what_was_not_started_is_sent_again(echo):
    def refusing(code, text):
        def submit(request, done):
            from mycelia_serving.errors import ServingError
            from mycelia_serving.request import Reply

            echo.requests.append(request)
            if len(echo.requests) == 1:
                done(Reply(error=ServingError(code, text)))
            else:
                type(echo).submit(echo, request, done)

        return submit

    for code, text, tries in (
        (Code.STOPPING, STOPPING_TEXT, 2),
        (Code.STOPPING, "the server has stopped", 1),
        (Code.SYSTEM_ERROR, STOPPING_TEXT, 1),
    ):
        echo.requests.clear()
        echo.submit = refusing(code, text)
        server = start_grpc(echo, "127.0.0.1:0")
        try:
            with Client(f"127.0.0.1:{server.port}", "add", "add_common", retry=1) as client:
                reply = client.infer({"x1": X, "x2": X})
        finally:
            server.stop(0)
        assert isinstance(reply, list) == (tries == 2)
        assert (len(echo.requests) > 1) == (tries == 2)


def test_priority_and_token(echo):
    server = start_grpc(echo, "127.0.0.1:0", token="t")
    try:
        address = f"127.0.0.1:{server.port}"
        with Client(address, "add", "add_common") as client:
            assert "unauthenticated" in client.infer({"x1": X, "x2": X})["error"]
        with Client(address, "add", "add_common", token="t") as client:
            assert isinstance(client.infer({"x1": X, "x2": X}, priority=5), list)
        assert echo.requests[-1].priority == 5
    finally:
        server.stop(0)


def test_async_client(address, echo, nobody):
    async def use():
        async with AsyncClient([nobody, address], "add", "add_common", timeout=60) as client:
            replies = await asyncio.gather(*(client.infer({"x1": X + i, "x2": X}) for i in range(20)))
            assert all(np.array_equal(r[0]["y"], 2 * X + i) for i, r in enumerate(replies))
        async with AsyncClient(nobody, "add", "add_common") as client:
            assert "unavailable" in (await client.infer({"x1": X, "x2": X}))["error"]
        async with AsyncClient(address, "mirror", "hang") as client:
            assert "deadline" in (await client.infer({"x": 1}, timeout=0.2))["error"]
            with pytest.raises(RuntimeError, match="instance"):
                await client.infer([1])

    asyncio.run(use())
