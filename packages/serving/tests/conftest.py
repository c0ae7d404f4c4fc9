"""A dispatcher in memory, so that the protocols are tested without workers and models."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from mycelia_serving.errors import Code, ServingError, clip
from mycelia_serving.request import MethodInfo, Reply, Request, ServableInfo, TensorInfo

FLOATS = ("float32", (2, 2))


def _add(x1, x2):
    return {"y": x1 + x2}


def _mirror(**values):
    return values


def _fail(x):
    raise ValueError(f"x is {x}")


def _tensors(names: str, dtype: str | None = None, shape=None) -> tuple[TensorInfo, ...]:
    return tuple(TensorInfo(name, dtype, shape) for name in names.split())


METHODS = {  # servable -> method -> what it is, what it does with one instance
    "add": {
        "add_common": (MethodInfo("add_common", _tensors("x1 x2", *FLOATS), _tensors("y", *FLOATS), 2), _add),
        "add_any": (MethodInfo("add_any", _tensors("x1 x2"), _tensors("y"), 0), _add),
    },
    "mirror": {
        "one": (MethodInfo("one", _tensors("x"), _tensors("x"), 0), _mirror),
        "text": (
            MethodInfo("text", _tensors("s", "str", ()) + _tensors("b", "bytes", ()), _tensors("s b"), 2),
            _mirror,
        ),
        "fail": (MethodInfo("fail", _tensors("x"), _tensors("y"), 0), _fail),
        "hang": (MethodInfo("hang", _tensors("x"), _tensors("x"), 0), _mirror),
        "whole": (
            MethodInfo(
                "whole",
                (TensorInfo("x", "int32", (-1,)), TensorInfo("k", "int64", (2,), batched=False)),
                _tensors("x k"),
                4,
            ),
            _mirror,
        ),
    },
    "model": {"version": (MethodInfo("version", _tensors("x"), _tensors("x"), 0), _mirror)},
    "single": {"only": (MethodInfo("only", _tensors("x", "float32", (3,)), _tensors("x"), 8), _mirror)},
}


class Echo:
    """Version 1 of the servables above, and version 2 of `add`; answers from a thread of its own."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.cancelled: list[Request] = []
        self.refusal: Code | None = None  # the error for every request
        self.is_ready = True
        self.loaded: list[tuple[str, str]] = []

    def describe(self) -> list[ServableInfo]:
        worker = {"address": "local", "pid": 1, "device": "CPU", "state": "ready", "outstanding": 0}
        return [
            ServableInfo(name, version, tuple(info for info, _ in methods.values()), "ready", (worker,))
            for name, methods in METHODS.items()
            for version in ((1, 2) if name == "add" else (1,))
        ]

    def ready(self) -> bool:
        return self.is_ready

    def load(self, name: str) -> None:
        if name not in METHODS:
            raise ServingError(Code.NOT_FOUND, f"no servable {name}")
        self.loaded.append(("load", name))

    def unload(self, name: str) -> None:
        self.loaded.append(("unload", name))

    def unloaded(self) -> list[tuple[str, int]]:
        return []

    def submit(self, request: Request, done):
        self.requests.append(request)
        call = _Call(self, request)
        if request.method == "hang" and request.servable == "mirror":
            if request.deadline is not None:
                left = max(0.0, request.deadline - time.monotonic())
                call.timer = threading.Timer(
                    left,
                    done,
                    [Reply(version=1, error=ServingError(Code.DEADLINE, "the deadline has passed"))],
                )
                call.timer.start()
            return call
        threading.Thread(target=lambda: done(self._answer(request)), daemon=True).start()
        return call

    def _answer(self, request: Request) -> Reply:
        version = request.version or (2 if request.servable == "add" else 1)
        if self.refusal is not None:
            return Reply(version=version, error=ServingError(self.refusal, f"refused: {self.refusal.name}"))
        methods = METHODS.get(request.servable)
        if methods is None:
            return _unknown(f"servable {clip(request.servable)}")
        if version > (2 if request.servable == "add" else 1):
            return _unknown(f"version {version}")
        if request.method not in methods:
            return _unknown(f"method {clip(request.method)}")
        info, function = methods[request.method]
        return Reply([self._run(info, function, i) for i in request.instances], version)

    @staticmethod
    def _run(info: MethodInfo, function, instance):
        if isinstance(instance, ServingError):
            return instance
        missing = [i.name for i in info.inputs if i.name not in instance]
        if missing:
            return ServingError(Code.INVALID_INPUTS, f"input {missing[0]} is missing")
        values = {i.name: instance[i.name] for i in info.inputs}
        assert not any(isinstance(v, np.ndarray) and v.flags.writeable for v in values.values())
        try:
            return function(**values)
        except Exception as error:
            return ServingError(Code.INVALID_INPUTS, f"{info.name}: {error}")


class _Call:
    def __init__(self, echo: Echo, request: Request) -> None:
        self.echo, self.request, self.timer = echo, request, None

    def cancel(self) -> None:
        self.echo.cancelled.append(self.request)
        if self.timer is not None:
            self.timer.cancel()


def _unknown(what: str) -> Reply:
    return Reply(error=ServingError(Code.NOT_FOUND, f"unknown {what}"))


@pytest.fixture
def echo() -> Echo:
    return Echo()


def wait_for(fact, seconds: float = 30.0) -> None:
    """Until `fact()` is true."""
    end = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.005)


@pytest.fixture(name="wait_for")
def _wait_for():
    return wait_for


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """Name -> PEM file: an authority ("ca"), what it signed ("server", "client"), a stranger; their keys."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    folder = tmp_path_factory.mktemp("certificates")
    now = datetime.datetime.now(datetime.UTC)
    found, keys = {}, {}

    def sign(name: str, issuer: str) -> None:
        keys[name] = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        by = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)])
        hosts = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(by)
            .public_key(keys[name].public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=name == issuer, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            .sign(keys[issuer], hashes.SHA256())
        )
        found[name], found[name + "_key"] = str(folder / f"{name}.pem"), str(folder / f"{name}.key")
        (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        (folder / f"{name}.key").write_bytes(
            keys[name].private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )

    for name, issuer in (("ca", "ca"), ("server", "ca"), ("client", "ca"), ("stranger", "stranger")):
        sign(name, issuer)
    return found
