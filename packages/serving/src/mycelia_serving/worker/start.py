"""`worker.start_servable_in_master` and `worker.start_servable`."""

from __future__ import annotations

import os
import signal
import sys
import threading

from mycelia_serving.cluster import current
from mycelia_serving.cluster.child import Settings
from mycelia_serving.cluster.node import DRAIN_SECONDS, Plan
from mycelia_serving.servable.arguments import check_int, check_str
from mycelia_serving.server.start import check_device_type, stop_at_failure

_joined: list = []  # the worker of this process, if it joined a master elsewhere


def _settings(servable_directory, servable_name, version_number, device_type, device_id) -> Settings:
    check_int("device_id", device_id, 0)
    return Settings(
        os.path.abspath(check_str("servable_directory", servable_directory)),
        check_str("servable_name", servable_name),
        check_int("version_number", version_number, 0),
        check_device_type(device_type),
    )


@stop_at_failure
def start_servable_in_master(
    servable_directory: str,
    servable_name: str,
    version_number: int = 0,
    device_type: str | None = None,
    device_id: int = 0,
) -> None:
    """Run a servable in this process, beside the ports that `master` opens: the light deployment.

    Errors: RuntimeError with the cause.
    """
    settings = _settings(servable_directory, servable_name, version_number, device_type, device_id)
    current.node().serve(Plan(settings, [device_id], light=True))


def start_servable(
    servable_directory: str,
    servable_name: str,
    version_number: int = 0,
    device_type: str | None = None,
    device_id: int = 0,
    master_ip: str = "0.0.0.0",
    master_port: int = 6100,
    worker_ip: str = "0.0.0.0",
    worker_port: int = 6200,
) -> None:
    """Run a servable in this process for the master at `master_ip:master_port`, which may come and go.

    The worker connects to the master, so nothing listens at `worker_ip:worker_port`: they are its name there.
    Errors: RuntimeError with the cause if the servable cannot be loaded.
    """
    settings = _settings(servable_directory, servable_name, version_number, device_type, device_id)
    host = check_str("master_ip", master_ip)
    host = "127.0.0.1" if host == "0.0.0.0" else host
    address = f"{host}:{check_int('master_port', master_port, 1, 65535)}"
    name = f"{check_str('worker_ip', worker_ip)}:{check_int('worker_port', worker_port, 0, 65535)}"
    worker = join_master(settings, device_id, [address], name)
    _joined.append(worker)
    _catch_signals()


def join_master(settings: Settings, device_id: int, masters, name: str = "", ready=None):
    """Load a servable and serve it for the first master that can be reached; a thread does so until `stop`.

    masters: addresses, or a function that gives them each time that one is looked for.
    Errors: RuntimeError with the cause.
    """
    from mycelia_serving.cluster.local import capacity_of, device_name
    from mycelia_serving.cluster.process import WorkerProcess, join, make_engine

    engine = make_engine(settings.for_worker(device_id, False))
    engine.start()
    device = device_name(settings.device_type, device_id, False)
    worker = WorkerProcess(engine, capacity_of(engine), device, True, name)
    worker.on_registered = ready
    worker.thread = threading.Thread(target=join, args=(worker, masters), name="serving-worker")
    worker.thread.start()
    return worker


def serve_master(settings: Settings, device_id: int, masters, drain_seconds: float, probe=None) -> None:
    """Be a worker until SIGTERM or Ctrl-C; both end it gracefully. Errors: RuntimeError with the cause."""
    worker = join_master(settings, device_id, masters)
    _joined.append(worker)
    _catch_signals(drain_seconds)
    if probe is not None:
        probe.ready = worker.registered.is_set
    while worker.thread.is_alive():
        worker.thread.join(0.5)  # not for ever: a signal that another thread got needs this one


def stop(drain_seconds: float | None = None) -> None:
    """End the worker of this process when it has answered what it has, or the server with all workers."""
    while _joined:
        worker = _joined.pop()
        worker.leave_master(DRAIN_SECONDS if drain_seconds is None else drain_seconds)
        worker.thread.join()
    current.stop(drain_seconds)


def _catch_signals(drain_seconds: float | None = None) -> None:
    """SIGTERM and Ctrl-C end the worker gracefully; the second signal at once."""
    if threading.current_thread() is not threading.main_thread():
        return
    ended = threading.Event()

    def work() -> None:
        stop(drain_seconds)
        ended.set()
        if threading.main_thread().is_alive():
            signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

    asked = []

    def handler(number: int, frame) -> None:
        if ended.is_set():
            sys.exit(0)
        if asked:
            os._exit(128 + number)
        asked.append(number)
        threading.Thread(target=work, daemon=True).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)
