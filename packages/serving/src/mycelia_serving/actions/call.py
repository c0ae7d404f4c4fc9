"""To call a method, and to measure a server by calls."""

from __future__ import annotations

import json
import sys
import threading
import time

from mycelia_serving.actions.names import secret, split_name


def _split_method(text: str) -> tuple[str, int, str]:
    servable, dot, method = text.rpartition(".")
    if not dot or not servable or not method:
        raise RuntimeError(f"what to call is SERVABLE.METHOD or SERVABLE:VERSION.METHOD, got {text!r}")
    name, version = split_name(servable)
    return name, version, method


def _instances(text: str, dtype: str) -> list[dict]:
    import numpy as np

    if text == "-":
        text = sys.stdin.read()
    try:
        data = json.loads(text)
        kind = np.dtype(dtype) if dtype else None
    except (ValueError, TypeError) as e:
        raise RuntimeError(f"the instances cannot be read: {e}") from None
    found = data if isinstance(data, list) else [data]
    if not found or not all(isinstance(i, dict) for i in found):
        raise RuntimeError("the instances are a JSON object, or a list of objects")

    def value(v):
        if isinstance(v, str):
            return v
        array = np.asarray(v)
        if array.dtype == object:
            raise RuntimeError(f"a value is no tensor: {v!r}"[:200])
        if kind is not None:
            return array.astype(kind)
        # as the REST port reads JSON
        return array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))

    return [{name: value(v) for name, v in instance.items()} for instance in found]


def _client(method: str, options: dict):
    """A client for what `call` and `bench` were told. Errors: RuntimeError."""
    from mycelia_serving.client import Client, SSLConfig

    name, version, method = _split_method(method)
    given = {key: options[key] or None for key in ("tls_ca", "tls_cert", "tls_key")}
    ssl_config = None
    if options["tls"] or any(given.values()):
        if (given["tls_cert"] is None) != (given["tls_key"] is None):
            raise RuntimeError("--tls-cert and --tls-key are given together")
        ssl_config = SSLConfig(given["tls_cert"], given["tls_key"], given["tls_ca"])
    return Client(options["address"], name, method, version, ssl_config, token=secret("token", options))


def call(method: str, instances: str, timeout: float, dtype: str, options: dict) -> None:
    """Call a method and print its answer. Errors: RuntimeError, also those of the server."""
    import numpy as np

    data = _instances(instances, dtype)
    with _client(method, options) as client:
        answer = client.infer(data, timeout=timeout)
    if isinstance(answer, dict):
        raise RuntimeError(str(answer["error"]))

    def plain(v):
        if isinstance(v, np.ndarray):
            return v.tolist()
        return v.decode(errors="replace") if isinstance(v, bytes) else v

    print(json.dumps([{name: plain(v) for name, v in instance.items()} for instance in answer]))
    if all("error" in instance for instance in answer):
        raise RuntimeError("every instance failed")


def bench(
    method: str,
    instances: str,
    seconds: float,
    concurrency: int,
    dtype: str,
    as_json: bool,
    options: dict,
) -> None:
    """Measure a running server from this process. Errors: RuntimeError if a request fails."""
    import numpy as np

    data = _instances(instances, dtype)
    times: list[float] = []
    failures: list[str] = []
    concurrency = max(concurrency, 1)
    together = threading.Barrier(concurrency + 1)

    def ask(client) -> None:
        answer = client.infer(data)
        if isinstance(answer, dict) or any("error" in a for a in answer):
            failures.append(str(answer)[:300])

    def work() -> None:
        with _client(method, options) as client:
            try:
                ask(client)  # connects
            finally:
                together.wait()
            end = time.perf_counter() + seconds
            while not failures:
                start = time.perf_counter()
                ask(client)
                now = time.perf_counter()
                times.append(now - start)
                if now >= end:
                    break

    threads = [threading.Thread(target=work) for _ in range(concurrency)]
    for thread in threads:
        thread.start()
    together.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - start
    if failures:
        raise RuntimeError(f"a request failed: {failures[0]}")
    ms = np.asarray(times) * 1e3
    told = {
        "requests": len(times),
        "requests_per_s": round(len(times) / took, 1),
        "p50_ms": round(float(np.percentile(ms, 50)), 3),
        "p99_ms": round(float(np.percentile(ms, 99)), 3),
        "max_ms": round(float(ms.max()), 3),
    }
    if as_json:
        print(json.dumps(told))
    else:
        print(", ".join(f"{name} {value}" for name, value in told.items()))
