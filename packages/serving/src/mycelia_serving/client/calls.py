"""What both clients share: parameters, values to bytes, replies to results, and which address is next."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mycelia_serving.errors import STOPPING_TEXT, ServingError
from mycelia_serving.request import Instance, Value
from mycelia_serving.wire.predict import Malformed, parse_reply, request_bytes

PREDICT = "/mindspore.serving.proto.MSService/Predict"
OPTIONS = (
    ("grpc.max_send_message_length", 512 << 20),
    ("grpc.max_receive_message_length", 512 << 20),
)
_COOL_DOWN_S = 1.0  # an address that could not be reached is not tried for so long, if there is another
_FIRST_PAUSE_S = 0.1

Outcome = list[dict] | dict[str, str]


class SSLConfig:
    """TLS of a client.

    certificate, private_key: PEM files of this client, both or none.
    custom_ca: PEM file of the authority that the server's certificate comes from; None: those that the system
    knows.
    Errors: RuntimeError that names the parameter.
    """

    def __init__(
        self, certificate: str | None = None, private_key: str | None = None, custom_ca: str | None = None
    ) -> None:
        given = {"certificate": certificate, "private_key": private_key, "custom_ca": custom_ca}
        for name, path in given.items():
            if path is not None:
                check_text(name, path)
                if not Path(path).is_file():
                    raise RuntimeError(f"Parameter '{name}': there is no file {path!r}")
        if (certificate is None) != (private_key is None):
            raise RuntimeError("Parameters 'certificate' and 'private_key' should be given together")
        self.certificate, self.private_key, self.custom_ca = certificate, private_key, custom_ca

    def credentials(self):
        """`grpc.ChannelCredentials`."""
        import grpc

        def read(path: str | None) -> bytes | None:
            return None if path is None else Path(path).read_bytes()

        return grpc.ssl_channel_credentials(
            read(self.custom_ca), read(self.private_key), read(self.certificate)
        )


class Target:
    """A method of a servable and the addresses that serve it, as the parameters of a client name them."""

    def __init__(
        self,
        address: str | Sequence[str],
        servable_name: str,
        method_name: str,
        version_number: int,
        ssl_config: SSLConfig | None,
        old: dict,
        timeout: float | None,
        retry: int,
        token: str | None,
    ) -> None:
        if old or (isinstance(servable_name, int) and not isinstance(servable_name, bool)):
            if not old:  # (ip, port, servable_name, method_name, version_number) of version 1.1
                old = {"ip": address, "port": servable_name}
                servable_name, method_name = method_name, version_number
                version_number, ssl_config = ssl_config or 0, None
            address = _joined(**old)
        self.servable, self.method = servable_name, method_name
        addresses = [address] if isinstance(address, str) else address
        if not isinstance(addresses, (list, tuple)) or not addresses:
            raise RuntimeError(f"Parameter 'address' should be str, but actually {type(address)}")
        for one in addresses:
            check_text("address", one)
        check_text("servable_name", self.servable)
        check_text("method_name", self.method)
        check_count("version_number", version_number)
        check_count("retry", retry)
        if ssl_config is not None and not isinstance(ssl_config, SSLConfig):
            raise RuntimeError(f"Parameter 'ssl_config' should be SSLConfig, but actually {type(ssl_config)}")
        self.addresses = list(addresses)
        self.version = version_number
        self.ssl_config = ssl_config
        self.timeout = check_timeout(timeout)
        self.retry = retry
        self.metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        self._turn = itertools.count()
        self._failed: dict[int, float] = {}  # index of an address -> when it could not be reached

    def body(self, instances) -> bytes:
        """The request. Errors: RuntimeError for what is no list of instances, or a value of no type."""
        return request_bytes(self.servable, self.method, self.version, make_instances(instances))

    def headers(self, priority: int) -> tuple:
        return (*self.metadata, ("mycelia-priority", str(priority))) if priority else self.metadata

    def next_address(self) -> int:
        """Index of the address for the next request: in turn, first of all those that can be reached."""
        count = len(self.addresses)
        start = next(self._turn) % count
        if self._failed:
            now = time.monotonic()
            for step in range(count):
                index = (start + step) % count
                if now - self._failed.get(index, -_COOL_DOWN_S) >= _COOL_DOWN_S:
                    return index
        return start

    def note(self, index: int, error) -> None:
        """Remember whether an address could be reached."""
        if error is not None and unreachable(error):
            self._failed[index] = time.monotonic()
        else:
            self._failed.pop(index, None)

    def pause(self, attempt: int, error) -> float | None:
        """Seconds before a request that failed is sent again; None: it is not.

        Only what no server has started is sent again: to each other address at once, then `retry` times.
        """
        if not (unreachable(error) or refused_by_stopping(error)):
            return None
        others = len(self.addresses) - 1
        if attempt < others:
            return 0.0
        if attempt < others + self.retry:
            return _FIRST_PAUSE_S * 2 ** (attempt - others)
        return None


def _joined(ip: str, port: int) -> str:
    """The address of version 1.1's parameters."""
    check_text("ip", ip)
    check_count("port", port)
    return f"{ip}:{port}"


def check_text(name: str, value: object) -> None:
    """Errors: RuntimeError for what is not a str, or empty."""
    if not isinstance(value, str):
        raise RuntimeError(f"Parameter '{name}' should be str, but actually {type(value)}")
    if not value:
        raise RuntimeError(f"Parameter '{name}' should not be empty str")


def check_count(name: str, value: object) -> None:
    """Errors: RuntimeError for what is not an int from 0 on."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise RuntimeError(f"Parameter '{name}' should be int, but actually {type(value)}")
    if value < 0:
        raise RuntimeError(f"Parameter '{name}' should be >= 0, but actually {value}")


def check_timeout(timeout: float | None) -> float | None:
    """Errors: RuntimeError for what is not a positive number of seconds."""
    if timeout is None or (isinstance(timeout, (int, float)) and timeout > 0):
        return timeout
    raise RuntimeError(f"Parameter 'timeout' should be a number of seconds > 0, but actually {timeout!r}")


def make_instances(instances) -> list[Instance]:
    """What a caller gave as instances: one dict, or a list or tuple of them."""
    if isinstance(instances, Mapping):
        instances = (instances,)
    if not isinstance(instances, (list, tuple)):
        raise RuntimeError("instances should be a map, or a tuple or list of maps")
    found = []
    for instance in instances:
        if not isinstance(instance, Mapping):
            raise RuntimeError("instance should be a map")
        values = {}
        for name, value in instance.items():
            if not isinstance(name, str):
                raise RuntimeError(f"the name of an input should be str, but actually {type(name)}")
            values[name] = _value(value)
        found.append(values)
    return found


def _value(value) -> Value:
    if type(value) is np.ndarray and value.dtype.kind in "biuf":
        return value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))
    if isinstance(value, (str, bytes)) and not isinstance(value, np.generic):
        return value
    if isinstance(value, bool):
        return np.array([value])
    if isinstance(value, int):
        try:
            return np.array([value], np.int64)
        except OverflowError:
            raise RuntimeError(f"an int should fit into 64 bits, but actually {value}") from None
    if isinstance(value, float) and not isinstance(value, np.generic):
        return np.array([value])
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf":
        return _value(np.asarray(value))
    if isinstance(value, np.str_):
        return str(value)
    if isinstance(value, np.bytes_):
        return bytes(value)
    kind = value.dtype if isinstance(value, np.ndarray) else type(value)
    raise RuntimeError(f"Not support value type {kind}")


def outcome(body: bytes) -> Outcome:
    """What `infer` returns for a reply. Errors: RuntimeError if it is none."""
    try:
        reply = parse_reply(body)
    except Malformed as error:
        raise RuntimeError(str(error)) from None
    if reply.error is not None:
        return {"error": reply.error.message}
    return [
        {"error": result.message} if isinstance(result, ServingError) else result for result in reply.results
    ]


def rpc_error(error) -> dict[str, str]:
    """What `infer` returns for a call that failed."""
    return {"error": f"Grpc Error, {error.code().value}, {error.details()}"}


def unreachable(error) -> bool:
    """Whether the request never left this host."""
    return error.code().name == "UNAVAILABLE" and (error.details() or "").startswith("failed to connect")


def refused_by_stopping(error) -> bool:
    """Whether the server refused the request unread, since it is about to end."""
    return error.code().name == "UNAVAILABLE" and error.details() == STOPPING_TEXT
