"""Calls of grpcio, gRPC's own client, to the native front end."""

from __future__ import annotations

import threading
import time

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from mycelia_serving.frontend import native

ECHO, FAIL, HOLD = "/test.Echo/Call", "/test.Echo/Fail", "/test.Echo/Hold"
WAIT = 60  # seconds that something may take on a busy machine


def refused(call, *args, **options) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        call(*args, timeout=options.pop("timeout", WAIT), **options)
    return caught.value


@pytest.mark.parametrize("size", [0, 1, 5, 16383, 16384, 65536, 3_000_000])
def test_message_of_any_size_comes_back(serve, channel, size):
    server, _ = serve()
    body = bytes(i * 31 % 251 for i in range(min(size, 9973))) * (size // 9973 + 1)
    assert channel(server).unary_unary(ECHO)(body[:size], timeout=WAIT) == body[:size]


def test_many_calls_at_once_get_their_own_answers(serve, channel):
    server, _ = serve()
    call = channel(server).unary_unary(ECHO)
    futures = [call.future(b"%d" % i, timeout=WAIT) for i in range(500)]
    assert [f.result() for f in futures] == [b"%d" % i for i in range(500)]
    statistics = server.statistics()
    assert (statistics["calls"], statistics["open_calls"], statistics["errors"]) == (500, 0, 0)


def test_error_has_status_and_text_in_any_language(serve, channel):
    server, _ = serve()
    text = "100 % nötig\n模型"
    error = refused(channel(server).unary_unary(FAIL), text.encode())
    assert (error.code(), error.details()) == (grpc.StatusCode.FAILED_PRECONDITION, text)


def test_long_text_is_cut(serve, channel):
    server, _ = serve()
    error = refused(channel(server).unary_unary(FAIL), b"x" * 100_000)
    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert 1000 < len(error.details()) < 8000


def test_unknown_method_is_unimplemented(serve, channel):
    server, service = serve()
    error = refused(channel(server).unary_unary("/test.Echo/Nothing"), b"")
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "/test.Echo/Nothing" in error.details()
    assert service.calls == 0


def test_message_over_the_limit_is_refused_and_the_connection_goes_on(serve, channel):
    server, service = serve(max_message_bytes=1 << 20)
    call = channel(server).unary_unary(ECHO)
    error = refused(call, b"x" * (1 << 20) + b"y")
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "1048577" in error.details()
    assert "1048576" in error.details()
    assert service.calls == 0
    assert len(call(b"x" * (1 << 20), timeout=WAIT)) == 1 << 20
    assert server.statistics()["accepted"] == 1


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_message_is_unpacked(serve, channel, compression):
    server, _ = serve(max_message_bytes=1 << 20)
    call = channel(server).unary_unary(ECHO)
    body = b"abc" * 10_000
    assert call(body, timeout=WAIT, compression=compression) == body
    error = refused(call, bytes(2 << 20), compression=compression)  # a small message that unpacks to much
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_metadata_and_deadline_reach_the_service(serve, channel):
    server, service = serve()
    call = channel(server).unary_unary(ECHO)
    call(b"", timeout=1000, metadata=[("traceparent", "00-ab-cd-01"), ("priority", "3")])
    (metadata, deadline), *_ = service.seen
    assert metadata == {"traceparent": "00-ab-cd-01", "priority": "3", ":peer": "127.0.0.1"}
    assert 900 < deadline - time.monotonic() < 1100  # clients round it up
    call(b"")
    assert service.seen[-1] == ({":peer": "127.0.0.1"}, None)


def test_cancelled_call_is_cancelled_in_the_service(serve, channel):
    server, service = serve()
    future = channel(server).unary_unary(HOLD).future(b"", timeout=WAIT)
    assert service.arrived.acquire(timeout=WAIT)
    future.cancel()
    assert service.held[0].cancelled.wait(WAIT)
    service.held[0].done(0, b"too late")  # goes nowhere
    assert channel(server).unary_unary(ECHO)(b"next", timeout=WAIT) == b"next"


def test_lost_client_cancels_its_calls(serve, channel):
    server, service = serve()
    connection = channel(server)
    futures = [connection.unary_unary(HOLD).future(b"") for _ in range(3)]
    for _ in futures:
        assert service.arrived.acquire(timeout=WAIT)
    connection.close()
    assert all(call.cancelled.wait(WAIT) for call in service.held)


def test_deadline_is_kept_by_the_server_too(serve, channel):
    server, service = serve()
    error = refused(channel(server).unary_unary(HOLD), b"", timeout=0.2)
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert service.held[0].cancelled.wait(WAIT)


def test_answers_may_come_from_any_thread_in_any_order(serve, channel):
    server, service = serve()
    call = channel(server).unary_unary(HOLD)
    futures = [call.future(b"", timeout=WAIT) for _ in range(40)]
    for _ in futures:
        assert service.arrived.acquire(timeout=WAIT)
    held = service.held[::-1]
    threads = [
        threading.Thread(target=lambda part=part: [call.done(0, b"done") for call in part])
        for part in (held[::2], held[1::2])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {future.result() for future in futures} == {b"done"}


def test_stop_lets_open_calls_end(serve, channel):
    server, service = serve()
    connection = channel(server)
    future = connection.unary_unary(HOLD).future(b"", timeout=WAIT)
    assert service.arrived.acquire(timeout=WAIT)
    stopping = threading.Thread(target=server.stop, args=(WAIT,))
    stopping.start()
    late = refused(channel(server).unary_unary(ECHO), b"")
    assert late.code() is grpc.StatusCode.UNAVAILABLE
    service.held[0].done(0, b"last")
    assert future.result() == b"last"
    stopping.join(WAIT)
    assert not stopping.is_alive()


def test_stop_without_time_ends_open_calls(serve, channel):
    server, service = serve()
    future = channel(server).unary_unary(HOLD).future(b"", timeout=WAIT)
    assert service.arrived.acquire(timeout=WAIT)
    server.stop(0)
    assert future.exception(WAIT).code() is grpc.StatusCode.UNAVAILABLE
    assert service.held[0].cancelled.is_set()


def test_unix_socket(serve, channel, tmp_path):
    path = tmp_path / "grpc.sock"
    server, _ = serve(f"unix:{path}")
    assert channel(server, f"unix:{path}").unary_unary(ECHO)(b"local", timeout=WAIT) == b"local"
    with pytest.raises(RuntimeError, match="grpc.sock"):
        native.listening_socket(f"unix:{path}")
    server.stop()
    assert not path.exists()


def test_socket_file_of_a_dead_server_is_replaced(serve, channel, tmp_path):
    path = tmp_path / "grpc.sock"
    native.listening_socket(f"unix:{path}").close()
    assert path.exists()
    server, _ = serve(f"unix:{path}")
    assert channel(server, f"unix:{path}").unary_unary(ECHO)(b"new", timeout=WAIT) == b"new"


def test_port_in_use_is_an_error(serve):
    server, _ = serve()
    with pytest.raises(RuntimeError, match=rf"127\.0\.0\.1:{server.port}.*[Ii]n use"):
        native.listening_socket(f"127.0.0.1:{server.port}")


@pytest.mark.parametrize(
    "address", ["", "127.0.0.1", "127.0.0.1:", ":80", "127.0.0.1:99999", "127.0.0.1:x", "1.2.3:5"]
)
def test_malformed_address_is_an_error(address):
    with pytest.raises(RuntimeError, match=r"address|listen"):
        native.listening_socket(address)


def test_health_is_watched(serve, channel):
    server, service = serve()
    stub = health_pb2_grpc.HealthStub(channel(server))
    watch = stub.Watch(health_pb2.HealthCheckRequest(service=""), timeout=WAIT)
    assert next(watch).status == 1
    service.state = 2
    assert next(watch).status == 2
    unknown = stub.Watch(health_pb2.HealthCheckRequest(service="nowhere"), timeout=WAIT)
    assert next(unknown).status == 3
    server.stop(WAIT)  # ends the watchers
    assert list(watch) == []


def test_reflection_lists_services_and_finds_their_files(serve, channel):
    server, _ = serve()
    stub = reflection_pb2_grpc.ServerReflectionStub(channel(server))
    ask = reflection_pb2.ServerReflectionRequest
    asked = [
        ask(list_services=""),
        ask(file_containing_symbol="mindspore.serving.proto.MSService"),
        ask(file_by_filename="x"),
    ]
    listed, found, unknown = stub.ServerReflectionInfo(iter(asked), timeout=WAIT)
    names = {service.name for service in listed.list_services_response.service}
    assert {"mindspore.serving.proto.MSService", "inference.GRPCInferenceService"} <= names
    assert found.file_descriptor_response.file_descriptor_proto
    assert unknown.error_response.error_code == 5
