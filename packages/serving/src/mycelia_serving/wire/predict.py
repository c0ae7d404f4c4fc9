"""`PredictRequest` and `PredictReply` as bytes: the server's side, and the client's."""

from __future__ import annotations

import functools

from google.protobuf.message import DecodeError

from mycelia_serving.errors import Code, ServingError, clip
from mycelia_serving.request import MOST_INSTANCES, Instance, Reply, Request, Result
from mycelia_serving.wire.layouts import Layouts
from mycelia_serving.wire.proto import serving_pb2 as pb
from mycelia_serving.wire.tensors import invalid, put_value, read_tensor, varint

_requests = Layouts(instances_field=2)
_replies = Layouts(instances_field=3)
_LARGE = 2 * MOST_INSTANCES  # bytes that so many instances have at least


class Malformed(ValueError):
    """The bytes are not the message."""


class Refused(Exception):
    """A message that was read, and a request that is not served as a whole: `error` for its caller."""

    def __init__(self, servable: str, method: str, version: int, message: str) -> None:
        super().__init__(message)
        self.servable, self.method, self.version = servable, method, version
        self.error = invalid(message)


def parse_request(body: bytes) -> Request:
    """The call in a `PredictRequest`. An instance that breaks a rule is a ServingError in its place.

    Errors: Malformed; Refused.
    """
    layout = _requests.find(body)
    if layout is not None:
        servable, method, version = layout.head
        return Request(servable, method, layout.instances(body), version, protocol="grpc")
    if len(body) > _LARGE and _has_many_fields(body):
        raise Malformed(f"a PredictRequest of over {MOST_INSTANCES} instances")
    try:
        message = pb.PredictRequest.FromString(body)
    except DecodeError as error:
        raise Malformed(f"not a PredictRequest: {error}") from None
    spec = message.servable_spec
    head = servable, method, version = spec.name, spec.method_name, spec.version_number
    sent = message.instances
    if message.instances_of_1_1:
        if sent:
            raise Refused(*head, "instances in field 2 and in field 3 of one request")
        sent = message.instances_of_1_1
    if not sent:
        raise Refused(*head, f"no instances in a request to servable {clip(servable)}, method {clip(method)}")
    instances = [_read_instance(instance, servable, method) for instance in sent]
    if sent is message.instances and not any(type(instance) is ServingError for instance in instances):
        _requests.learn(body, head, instances)
    return Request(servable, method, instances, version, protocol="grpc")


def _has_many_fields(body: bytes) -> bool:
    """Whether a message has more fields than there may be instances, found without making objects of them."""
    at = 0
    for _ in range(MOST_INSTANCES + 2):
        if at >= len(body):
            return False
        if body[at] & 7 != 2:  # all fields of a request have a length; what has none fails where it is read
            return False
        at += 1
        size = shift = 0
        while at < len(body) and shift < 64:
            byte = body[at]
            at += 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        at += size
    return True


def _read_instance(instance: pb.Instance, servable: str, method: str) -> Result:
    values = {}
    items = instance.items
    for name in items:
        try:
            values[name] = read_tensor(items[name])
        except ServingError as error:
            where = f"input {clip(name)} of servable {clip(servable)}, method {clip(method)}"
            return invalid(f"{where}: {error.message}")
    return values


@functools.lru_cache(1024)
def _spec(servable: str, method: str, version: int) -> bytes:
    spec = pb.ServableSpec(name=servable, method_name=method, version_number=version).SerializeToString()
    return b"\x0a" + varint(len(spec)) + spec


def _put_instance(parts: list, tag: bytes, instance: Instance) -> None:
    place = len(parts)
    parts.append(b"")
    length = 0
    for name, value in instance.items():
        length += put_value(parts, name, value)
    parts[place] = tag + varint(length)


def _put_error(parts: list, error: ServingError | None) -> None:
    if error is None:
        parts.append(b"\x22\x00")
        return
    text = error.message.encode(errors="replace")
    parts.append(b"\x22" + _sized(b"\x08" + varint(error.wire_code) + b"\x12" + varint(len(text)) + text))


def _sized(body: bytes) -> bytes:
    return varint(len(body)) + body


def reply_bytes(servable: str, method: str, version: int, reply: Reply) -> bytes:
    """`PredictReply` to a request that named `servable`, `method` and `version`."""
    parts = [_spec(servable, method, version)]
    if reply.error is not None:
        _put_error(parts, reply.error)
        return b"".join(parts)
    results = reply.results
    failed = False
    for position, result in enumerate(results):
        if type(result) is not dict:
            failed = True
            parts.append(b"\x1a\x00")
            continue
        kept = len(parts)
        try:
            _put_instance(parts, b"\x1a", result)
        except TypeError as error:
            if results is reply.results:
                results = list(results)
            results[position] = ServingError(Code.SYSTEM_ERROR, f"output {error}")
            failed = True
            del parts[kept:]
            parts.append(b"\x1a\x00")
    if failed:
        for result in results:
            _put_error(parts, None if type(result) is dict else result)
    return b"".join(parts)


def request_bytes(servable: str, method: str, version: int, instances: list[Instance]) -> bytes:
    """`PredictRequest` as clients of 2.x send it. Errors: TypeError for a value that no message carries."""
    parts = [_spec(servable, method, version)]
    for instance in instances:
        _put_instance(parts, b"\x12", instance)
    return b"".join(parts)


def parse_reply(body: bytes) -> Reply:
    """What a `PredictReply` says. Errors: Malformed, also for a number of errors that fits nothing."""
    layout = _replies.find(body)
    if layout is not None:
        return Reply(layout.instances(body))
    try:
        message = pb.PredictReply.FromString(body)
    except DecodeError as error:
        raise Malformed(f"not a PredictReply: {error}") from None
    sent, errors = message.instances, [_read_error(error) for error in message.error_msg]
    if len(errors) == 1 and errors[0] is not None:
        return Reply(error=errors[0])
    if errors and len(errors) != len(sent):
        raise Malformed(f"{len(errors)} errors for {len(sent)} instances in a reply")
    spec = message.servable_spec
    results = [_read_instance(instance, spec.name, spec.method_name) for instance in sent]
    if not errors:
        if not any(type(result) is ServingError for result in results):
            _replies.learn(body, None, results)
        return Reply(results)
    return Reply([error or result for error, result in zip(errors, results, strict=True)])


_WIRE_CODES = {int(code): code for code in Code if code < 100}


def _read_error(message: pb.ErrorMsg) -> ServingError | None:
    if not message.error_code:
        return None
    code = _WIRE_CODES.get(message.error_code, Code.FAILED)
    return ServingError(code, message.error_msg.decode(errors="replace"))
