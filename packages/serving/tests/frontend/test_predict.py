"""MindSpore's protocol over gRPC, with the bytes that its clients send."""

from __future__ import annotations

import grpc
import numpy as np
import pytest

from mycelia_serving.errors import Code
from mycelia_serving.frontend import start_grpc
from mycelia_serving.wire.proto import serving_pb2 as pb

PREDICT = "/mindspore.serving.proto.MSService/Predict"


def request(servable="add", method="add_common", version=0, field="instances", count=1, **items):
    """A PredictRequest; float32 [2, 2] of ones for x1 and x2 unless `items` are given."""
    message = pb.PredictRequest()
    message.servable_spec.name, message.servable_spec.method_name = servable, method
    message.servable_spec.version_number = version
    for _ in range(count):
        instance = getattr(message, field).add()
        for name, value in (items or {"x1": np.ones((2, 2), "f4"), "x2": np.ones((2, 2), "f4")}).items():
            tensor = instance.items[name]
            if isinstance(value, pb.Tensor):
                tensor.CopyFrom(value)
                continue
            tensor.shape.dims.extend(value.shape)
            tensor.dtype = pb.MS_FLOAT32
            tensor.data = value.tobytes()
    return message


def predict(channel, message, **options) -> pb.PredictReply:
    call = channel.unary_unary(PREDICT)
    body = message if isinstance(message, bytes) else message.SerializeToString()
    return pb.PredictReply.FromString(call(body, timeout=options.pop("timeout", 30), **options))


@pytest.mark.parametrize("field", ["instances", "instances_of_1_1"])
def test_instances_of_both_generations_are_answered(channel, field):
    reply = predict(channel, request(field=field, count=3))
    assert not reply.error_msg and len(reply.instances) == 3
    tensor = reply.instances[2].items["y"]
    assert tensor.dtype == pb.MS_FLOAT32 and list(tensor.shape.dims) == [2, 2]
    assert np.frombuffer(tensor.data, "f4").tolist() == [2, 2, 2, 2]
    assert reply.servable_spec == request().servable_spec


def test_one_bad_instance_fails_alone(channel):
    message = request(count=3)
    message.instances[1].items["x2"].data = b"123"
    reply = predict(channel, message)
    assert [e.error_code for e in reply.error_msg] == [0, 2, 0]
    assert b"x2" in reply.error_msg[1].error_msg and b"16" in reply.error_msg[1].error_msg
    assert len(reply.instances) == 3 and not reply.instances[1].items and reply.instances[2].items


def test_errors_of_a_whole_request(channel):
    def error(message) -> tuple[int, bytes]:
        reply = predict(channel, message)
        assert len(reply.error_msg) == 1 and not reply.instances
        return reply.error_msg[0].error_code, reply.error_msg[0].error_msg

    assert error(request(servable="nobody")) == (2, b"unknown servable nobody")
    assert error(request(method="nothing")) == (2, b"unknown method nothing")
    assert error(request(version=9))[0] == 2
    code, text = error(request(count=0))
    assert code == 2 and b"no instances" in text
    both = request()
    both.instances_of_1_1.add()
    assert error(both)[0] == 2
    code, text = error(request(servable="n" * 1_000_00))
    assert code == 2 and len(text) < 400


def test_a_single_instance_that_fails_is_one_error_and_an_instance(channel):
    reply = predict(channel, request(x1=np.ones((2, 2), "f4")))
    assert [e.error_code for e in reply.error_msg] == [2] and b"x2" in reply.error_msg[0].error_msg


@pytest.mark.parametrize(
    "code, wanted", [(Code.TOO_MANY, 1), (Code.SERVABLE_UNAVAILABLE, 5), (Code.SYSTEM_ERROR, 3)]
)
def test_codes_of_the_wire(channel, echo, code, wanted):
    echo.refusal = code
    assert [e.error_code for e in predict(channel, request()).error_msg] == [wanted]


def test_what_is_told_by_the_status_of_the_call(channel, echo):
    def status(**options):
        with pytest.raises(grpc.RpcError) as caught:
            predict(channel, **options)
        return caught.value.code()

    assert status(message=b"\xff\xff\xff\xff") == grpc.StatusCode.INVALID_ARGUMENT
    assert status(message=bytes(2 << 20)) == grpc.StatusCode.RESOURCE_EXHAUSTED
    echo.refusal = Code.STOPPING
    assert status(message=request()) == grpc.StatusCode.UNAVAILABLE
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/mindspore.serving.proto.MSService/Nothing")(b"", timeout=30)
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_deadline_reaches_the_dispatcher(channel, echo):
    with pytest.raises(grpc.RpcError) as caught:
        predict(channel, request("mirror", "hang", x=np.zeros(1, "f4")), timeout=0.3)
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert echo.requests[-1].deadline is not None


def test_cancelled_call_is_cancelled_at_the_dispatcher(channel, echo, wait_for):
    body = request("mirror", "hang", x=np.zeros(1, "f4")).SerializeToString()
    future = channel.unary_unary(PREDICT).future(body, timeout=60)
    wait_for(lambda: echo.requests)
    future.cancel()
    wait_for(lambda: echo.cancelled)


def test_trace_and_priority_reach_the_dispatcher(channel, echo):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    predict(channel, request(), metadata=(("traceparent", trace), ("mycelia-priority", "7")))
    assert (echo.requests[-1].traceparent, echo.requests[-1].priority) == (trace, 7)


def test_many_calls_at_once(channel):
    call = channel.unary_unary(PREDICT)
    futures = [
        call.future(
            request(x1=np.full((2, 2), i, "f4"), x2=np.ones((2, 2), "f4")).SerializeToString(), timeout=60
        )
        for i in range(200)
    ]
    for i, future in enumerate(futures):
        reply = pb.PredictReply.FromString(future.result())
        assert np.frombuffer(reply.instances[0].items["y"].data, "f4")[0] == i + 1


def test_a_port_in_use_and_malformed_addresses_are_start_errors(echo, grpc_server):
    with pytest.raises(RuntimeError, match=str(grpc_server.port)):
        start_grpc(echo, f"127.0.0.1:{grpc_server.port}", native=type(grpc_server).__name__ == "NativeServer")
    for address in (
        "",
        "127.0.0.1",
        "127.0.0.1:",
        ":80",
        "1.2.3.4:port",
        "127.0.0.1:70000",
        "unix:/no/such/s",
    ):
        with pytest.raises(RuntimeError, match="address"):
            start_grpc(echo, address)
    with pytest.raises(RuntimeError, match="address"):
        start_grpc(echo, 5500)
    for size in (0, 513, "1", True, 1.5):
        with pytest.raises(RuntimeError, match="max_msg_mb_size"):
            start_grpc(echo, "127.0.0.1:0", max_msg_mb_size=size)


@pytest.mark.parametrize("native", [False, True])
def test_unix_address(echo, tmp_path, native):
    from mycelia_serving.frontend.native import missing

    if native and missing():
        pytest.skip(missing())
    address = f"unix:{tmp_path}/s"
    server = start_grpc(echo, address, native=native)
    try:
        with grpc.insecure_channel(address) as channel:
            assert len(predict(channel, request()).instances) == 1
        with pytest.raises(RuntimeError, match="in use"):
            start_grpc(echo, address, native=native)
    finally:
        server.stop(0)


def test_stop_with_grace_answers_what_is_there(echo, grpc_server, channel, wait_for):
    body = request("mirror", "hang", x=np.zeros(1, "f4")).SerializeToString()
    late = (("mycelia-timeout-ms", "500"),)  # when the dispatcher gives up
    future = channel.unary_unary(PREDICT).future(body, timeout=60, metadata=late)
    wait_for(lambda: echo.requests)
    grpc_server.stop(30)
    assert future.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_token_guards_all_calls_but_the_health(echo):
    server = start_grpc(echo, "127.0.0.1:0", token="secret")
    try:
        with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            with pytest.raises(grpc.RpcError) as caught:
                predict(channel, request())
            assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
            with pytest.raises(grpc.RpcError):
                predict(channel, request(), metadata=(("authorization", "Bearer wrong"),))
            predict(channel, request(), metadata=(("authorization", "Bearer secret"),))
            assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=30) == b"\x08\x01"
    finally:
        server.stop(0)
