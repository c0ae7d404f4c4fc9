"""The calls between leader and agents: services of `mindspore.serving.proto`, tensors in messages."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent import futures

import grpc
import numpy as np

from mycelia_serving.engine.loaders import ModelInput
from mycelia_serving.wire.proto import serving_pb2 as pb
from mycelia_serving.wire.tensors import number_type, read_tensor, wire_type

PING_S = 1.0
MISSED = 5  # so many pings without an answer and an agent is dead
SILENCE_S = 20.0  # an agent that hears nothing of its leader for so long ends
_LARGEST = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_PACKAGE = "mindspore.serving.proto."
_FILE = pb.Tensor.DESCRIPTOR.file


def channel(address: str) -> grpc.Channel:
    """A connection; messages may be of any size."""
    return grpc.insecure_channel(address, options=_LARGEST)


def method(service: str, name: str) -> tuple[type, type]:
    """The messages of a method."""
    described = _FILE.services_by_name[service].methods_by_name[name]
    return getattr(pb, described.input_type.name), getattr(pb, described.output_type.name)


def caller(connection: grpc.Channel, service: str, name: str) -> Callable:
    """A method at the other end."""
    request, reply = method(service, name)
    path = f"/{_PACKAGE}{service}/{name}"
    return connection.unary_unary(path, request.SerializeToString, reply.FromString)


def serve(server: grpc.Server, service: str, methods: dict[str, Callable]) -> None:
    """Lets a server answer these methods: functions from a message to a message."""
    handlers = {}
    for name, function in methods.items():
        request, reply = method(service, name)
        handlers[name] = grpc.unary_unary_rpc_method_handler(
            lambda message, context, function=function: function(message),
            request.FromString,
            reply.SerializeToString,
        )
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(_PACKAGE + service, handlers)])


class Threads(futures.Executor):
    """Threads for a server. Unlike those of the standard library they go on when the main thread has ended,
    which it does in scripts that only start a server.
    """

    def __init__(self, count: int) -> None:
        self._work: queue.SimpleQueue = queue.SimpleQueue()
        self._count = count
        for _ in range(count):
            threading.Thread(target=self._run, name="serving-rpc", daemon=True).start()

    def submit(self, fn: Callable, /, *args: object, **kwargs: object) -> futures.Future:
        future: futures.Future = futures.Future()
        self._work.put((future, fn, args, kwargs))
        return future

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            future, function, args, kwargs = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for _ in range(self._count):
            self._work.put(None)


def new_server(threads: int) -> tuple[grpc.Server, Threads]:
    """A server to which `serve` and `listen` give methods and a port; no two servers share one."""
    pool = Threads(threads)
    return grpc.server(pool, options=[*_LARGEST, ("grpc.so_reuseport", 0)]), pool


def listen(server: grpc.Server, address: str) -> int:
    """Opens the port and returns its number. Errors: RuntimeError."""
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        port = 0
    if not port:
        raise RuntimeError(
            f"The address {address} cannot be listened at: it is in use, or no address of this host"
        )
    return port


def to_tensor(array: np.ndarray) -> pb.Tensor:
    """An array as a message."""
    message = pb.Tensor(dtype=wire_type(array.dtype), data=array.tobytes())
    message.shape.dims.extend(array.shape)
    return message


def to_array(message: pb.Tensor) -> np.ndarray:
    """The array in a message. Errors: RuntimeError if it is none."""
    value = read_tensor(message)
    if not isinstance(value, np.ndarray):
        raise RuntimeError("agents exchange numbers only")
    return value


def to_info(dtype: np.dtype, shape: tuple[int, ...]) -> pb.TensorInfo:
    """An input or output of a part of the model."""
    info = pb.TensorInfo(dtype=wire_type(dtype))
    info.shape.dims.extend(shape)
    return info


def to_input(number: int, info: pb.TensorInfo) -> ModelInput:
    """An input that an agent told of."""
    return ModelInput(f"input_{number}", number_type(info.dtype), tuple(info.shape.dims))


def failed(code: int, text: object) -> pb.ErrorMsg:
    """An error in a reply."""
    return pb.ErrorMsg(error_code=code, error_msg=str(text).encode())
