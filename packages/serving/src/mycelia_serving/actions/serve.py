"""To be a server or a worker."""

from __future__ import annotations

import contextlib
import os
import threading

from mycelia_serving.actions.names import secret, split_name

_MOST_FILES = 1 << 16
SIGNALS_S = 0.5  # a signal that some other thread got is acted on when the main thread wakes


def _settings(options: dict, name: str, version: int):
    from mycelia_serving.cluster.child import Settings
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


def _allow_files() -> None:
    """As many connections as the system allows: each takes a file descriptor."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def start(options: dict) -> None:
    """Be a server until it is stopped. Errors: RuntimeError; nothing is left running then."""
    from mycelia_serving.cluster import current
    from mycelia_serving.cluster.process import understand_mindspore
    from mycelia_serving.rpc.sockets import bind
    from mycelia_serving.servable.arguments import check_int

    plans = _plans(options)
    ssl_config = _ssl_config(options)
    _allow_files()
    current.set_option(
        "max_enqueued_requests", check_int("max_enqueued_requests", options["max_enqueued_requests"], 1)
    )
    current.set_option("worker_timeout_s", options["worker_timeout_s"])
    for plan in plans:
        if plan.light:
            understand_mindspore(plan.settings.for_worker(None, False))
    server = current.node()
    server.drain_seconds = options["drain_seconds"]
    server.token = secret("token", options)
    server.allow_admin = options["allow_admin"]
    server.admin_token = secret("admin_token", options)
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
