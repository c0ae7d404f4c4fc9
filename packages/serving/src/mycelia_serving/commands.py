"""What the commands of `cli` do."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time

from mycelia_serving.cluster import runtime

_MOST_FILES = 1 << 16
SIGNALS_S = 0.5  # a signal that some other thread got is acted on when the main thread wakes

# ---- servers and workers ---------------------------------------------------------------------------------


def split_name(text: str) -> tuple[str, int]:
    """NAME or NAME:VERSION. Errors: RuntimeError."""
    name, colon, number = text.partition(":")
    if not name or (colon and not number.isdecimal()):
        raise RuntimeError(f"a servable is NAME or NAME:VERSION, got {text!r}")
    return name, int(number or 0)


def split_target(text: str) -> tuple[str, int]:
    """NAME=COUNT. Errors: RuntimeError."""
    name, equals, count = text.partition("=")
    if not name or not equals or not count.isdecimal():
        raise RuntimeError(f"what to scale is NAME=COUNT, got {text!r}")
    return name, int(count)


def _settings(options: dict, name: str, version: int):
    from mycelia_serving.cluster.supervise import Settings
    from mycelia_serving.servable.arguments import check_number
    from mycelia_serving.servable.config import CONFIG_S
    from mycelia_serving.server.start import check_device_type

    return Settings(
        os.path.abspath(options["servable_dir"]),
        name,
        version,
        check_device_type(options["device_type"] or None),
        max_batch_size=options["max_batch_size"],
        max_batch_delay_ms=options["max_batch_delay_ms"],
        config_timeout_s=check_number("config_timeout_s", options.get("config_timeout_s", CONFIG_S), 0.001),
        log_directory=options.get("log_dir", ""),
    )


def _plans(options: dict) -> list:
    """What `start` is to serve. Errors: RuntimeError."""
    from mycelia_serving.cluster.node import Plan
    from mycelia_serving.cluster.scaling import ScalePolicy
    from mycelia_serving.servable.arguments import check_int, check_number
    from mycelia_serving.servable.directory import VersionPolicy

    count = check_int("workers", options["workers"], 0, 64)
    check_int("max_batch_size", options["max_batch_size"], 1)
    for name in ("poll_seconds", "drain_seconds", "worker_timeout_s", "max_batch_delay_ms"):
        check_number(name, options[name], 0)
    devices: list[int | None] = [None] * max(count, 1)
    if options["devices"]:
        parts = options["devices"].split(",")
        if not all(part.isdecimal() for part in parts):
            raise RuntimeError(f"device ids are numbers with commas between, got {options['devices']!r}")
        devices = [int(part) for part in parts]
    scale = ScalePolicy.parse(options["scale"]) if options["scale"] else None
    if scale is not None:
        devices = devices[: scale.most] + [devices[0]] * (scale.least - len(devices))
    policy = VersionPolicy.parse(options["version_policy"]) if options["version_policy"] else None
    if options["poll_seconds"] and policy is None:
        policy = VersionPolicy()
    if not options["servable"] and not options["master"]:
        raise RuntimeError("--servable says what to serve, or --master where workers join that know")
    if options["servable"] and not options["servable_dir"]:
        raise RuntimeError("--servable-dir says where the servables are")
    plans = []
    for text in options["servable"] or ():
        name, version = split_name(text)
        if version and policy is not None:
            raise RuntimeError(f"--version-policy decides which versions run, so {text!r} must not name one")
        settings = _settings(options, name, version)
        plans.append(
            Plan(
                settings,
                devices,
                policy=policy,
                poll_seconds=options["poll_seconds"],
                scale=scale,
                light=count == 0 and not options["devices"],
            )
        )
    return plans


def _ssl_config(options: dict):
    if not (options["tls_cert"] or options["tls_key"]):
        if options["tls_ca"] or options["tls_verify_client"]:
            raise RuntimeError("--tls-ca and --tls-verify-client need --tls-cert and --tls-key")
        return None
    from mycelia_serving.frontend.tls import SSLConfig

    return SSLConfig(
        options["tls_cert"], options["tls_key"], options["tls_ca"] or None, options["tls_verify_client"]
    )


def _secret(name: str, options: dict) -> str | None:
    """A token that was given as it is, or in a file, which other users do not see. Errors: RuntimeError."""
    path = options[f"{name}_file"]
    if not path:
        return options[name] or None
    option = name.replace("_", "-")
    if options[name]:
        raise RuntimeError(f"--{option} and --{option}-file are given both")
    try:
        with open(path, encoding="utf-8") as file:
            found = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RuntimeError(f"--{option}-file {path} cannot be read: {error}") from None
    if not found:
        raise RuntimeError(f"--{option}-file {path} is empty")
    return found


def _allow_files() -> None:
    """As many connections as the system allows: each takes a file descriptor."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def start(options: dict) -> None:
    """Be a server until it is stopped. Errors: RuntimeError; nothing is left running then."""
    from mycelia_serving.cluster import node
    from mycelia_serving.cluster.process import understand_mindspore
    from mycelia_serving.rpc.sockets import bind
    from mycelia_serving.servable.arguments import check_int

    plans = _plans(options)
    ssl_config = _ssl_config(options)
    _allow_files()
    node.set_option(
        "max_enqueued_requests", check_int("max_enqueued_requests", options["max_enqueued_requests"], 1)
    )
    node.set_option("worker_timeout_s", options["worker_timeout_s"])
    for plan in plans:
        if plan.light:
            understand_mindspore(plan.settings.for_worker(None, False))
    server = node.current()
    server.drain_seconds = options["drain_seconds"]
    server.token = _secret("token", options)
    server.allow_admin = options["allow_admin"]
    server.admin_token = _secret("admin_token", options)
    server.spares.wanted = options["spare"]
    try:
        if options["request_log"]:
            from mycelia_serving.frontend.metrics import Metrics
            from mycelia_serving.frontend.request_log import RequestLog

            Metrics.of(server.master).log = RequestLog(options["request_log"])
        for address in (options["grpc"], options["rest"], options["master"]):
            if address and not address.startswith("unix:") and not options["etcd"]:
                bind(address).close()  # a port that is taken shows before models are loaded
        for plan in plans:
            server.serve(plan)
        if options["etcd"]:  # with its workers ready, a standby takes over at once
            from mycelia_serving.cluster.etcd import become_master

            if become_master(server, options["etcd"], options["master"]) is None:
                server.stopped.wait()
                return
        if options["master"]:
            server.listen(options["master"])
        if options["grpc"]:
            server.start_grpc(options["grpc"], options["max_msg_mb"], ssl_config)
        if options["rest"]:
            server.start_rest(options["rest"], options["max_msg_mb"], ssl_config)
    except BaseException:
        server.stop(0.0)
        raise
    while not server.stopped.wait(SIGNALS_S):
        pass
    if server.failed:
        raise RuntimeError(server.failed)


def be_worker(options: dict) -> None:
    """Be a worker of a master elsewhere until it is stopped. Errors: RuntimeError."""
    from mycelia_serving.cluster.process import understand_mindspore
    from mycelia_serving.worker import start as face

    if len(options["servable"] or ()) != 1:
        raise RuntimeError("a worker that joins a master runs one servable")
    name, version = split_name(options["servable"][0])
    masters = [address for address in options["join"].split(",") if address]
    for address in masters:
        if not address.startswith("unix:") and not address.rpartition(":")[2].isdecimal():
            raise RuntimeError(f"the address of a master is ip:port or unix:path, got {address!r}")
    device = options["device"] if "device" in options else int((options["devices"] or "0").split(",")[0])
    probe = None
    if options.get("probe"):
        from mycelia_serving.cluster.probe import Probe

        probe = Probe(options["probe"])
    try:
        if options["etcd"]:
            from mycelia_serving.cluster.etcd import find_masters

            masters = find_masters(options["etcd"])
        settings = _settings(options, name, version)
        understand_mindspore(settings.for_worker(device, False))
        face.serve_master(settings, device, masters, options["drain_seconds"], probe)
    finally:
        if probe is not None:
            probe.close()


def deploy(options: dict) -> None:
    """Run servables on Ray Serve. Errors: RuntimeError."""
    from mycelia_serving.cluster import ray
    from mycelia_serving.cluster.scaling import ScalePolicy
    from mycelia_serving.servable import directory

    if options["engine"] != "ray":
        raise RuntimeError(f"the engine is ray, got {options['engine']!r}; for KServe see its manifests")
    servables = []
    for text in options["servable"]:
        name, version = split_name(text)
        directory.find(options["servable_dir"], name)
        servables.append(_settings(options, name, version))
    mine = ray.deploy(
        servables,
        options["rest"],
        options["route_prefix"],
        options["cluster"],
        count=options["replicas"],
        scale=ScalePolicy.parse(options["scale"]) if options["scale"] else None,
        drain_seconds=options["drain_seconds"],
        max_ongoing_requests=options["max_ongoing_requests"],
        cpus=options["cpus"],
    )
    print(f"Serving RESTful start success, listening on {options['rest']}", flush=True)
    if mine:
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


# ---- commands for a running server -----------------------------------------------------------------------


def command(pid: int | None, what: str, **arguments):
    """Give a running server a command. Errors: RuntimeError."""
    return runtime.command(runtime.choose(pid), what, **arguments)


def stop(pid: int | None, now: bool) -> None:
    """Stop a running server and wait for its end. Errors: RuntimeError."""
    number = runtime.choose(pid)
    runtime.command(number, "stop", now=now)
    while number in [server["pid"] for server in runtime.servers()]:
        time.sleep(0.05)


def show_status(pid: int | None, as_json: bool) -> None:
    """Print what a running server tells about itself."""
    told = command(pid, "status")
    if as_json:
        print(json.dumps(told, indent=2))
        return
    from rich.table import Table

    from mycelia.engine.base import terminal

    console = terminal.console()
    state = "stopping" if told["stopping"] else "ready" if told["ready"] else "not ready"
    ports = ", ".join(f"{a['protocol']} {a['address']}" for a in told["addresses"])
    console.print(f"server {told['pid']}: {state}; {ports or 'no ports'}")
    console.print(f"{told['waiting_requests']} requests wait, {told['lost_workers']} workers were lost")
    table = Table()
    for name in ("servable", "version", "state", "worker", "device", "has", "answered", "restarts", "why"):
        table.add_column(name, overflow="fold")
    for servable in told["servables"]:
        rows = _worker_rows(servable) or [("", "", "", "", "", servable["reason"])]
        for at, row in enumerate(rows):
            head = (servable["name"], str(servable["version"]), servable["state"]) if at == 0 else ("",) * 3
            table.add_row(*head, *row)
    console.print(table)


def _worker_rows(servable: dict) -> list[tuple[str, ...]]:
    return [
        (
            f"{worker['address']} {worker['state']}".strip(),
            worker["device"] or "none",
            str(worker["outstanding"]),
            str(worker["answered"]),
            str(worker["restarts"]),
            worker.get("reason", ""),
        )
        for worker in servable["workers"]
    ]


def show_models(pid: int | None, as_json: bool) -> None:
    """Print the signatures of what a running server serves."""
    told = command(pid, "models")
    if as_json:
        print(json.dumps(told, indent=2))
        return

    def tensors(infos: list[dict]) -> str:
        return ", ".join(
            f"{t['name']}: {t['dtype'] or 'any'}{'' if t['shape'] is None else list(t['shape'])}"
            for t in infos
        )

    for model in told:
        print(f"{model['name']} version {model['version']} ({model['state']})")
        for method in model["methods"]:
            batch = f", batches of {method['batch_size']}" if method["batch_size"] else ""
            print(f"  {method['name']}({tensors(method['inputs'])}) -> {tensors(method['outputs'])}{batch}")


# ---- calls -----------------------------------------------------------------------------------------------


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
    return Client(options["address"], name, method, version, ssl_config, token=_secret("token", options))


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
