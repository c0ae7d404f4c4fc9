"""The server in this process: the master with its ports, its workers, and what is done at regular times."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from mycelia import log
from mycelia_serving.clock import CLOCK, NEVER, Alarm
from mycelia_serving.cluster import runtime
from mycelia_serving.cluster.child import Settings, Spares
from mycelia_serving.cluster.light import LightDeployment
from mycelia_serving.cluster.master import Master
from mycelia_serving.cluster.remote import RemoteWorker
from mycelia_serving.cluster.scaling import ScalePolicy, Scaler
from mycelia_serving.cluster.supervise import Deployment
from mycelia_serving.cluster.versions import Versions
from mycelia_serving.cluster.worker_registry import WorkerRegistry
from mycelia_serving.servable.directory import VersionPolicy

DRAIN_SECONDS = 30.0
PING_S = 1.0  # workers ping so often
MISSED = 5  # so many times without a sign of life and a worker is dead


@dataclass
class Plan:
    """What is to be served, and by which workers.

    device_ids: one worker per device. extra: workers without a device. light: in this process.
    """

    settings: Settings
    device_ids: list[int | None]
    extra: int = 0
    policy: VersionPolicy | None = None  # None: the version in the settings
    poll_seconds: float = 0.0
    scale: ScalePolicy | None = None
    light: bool = False


class Node:
    """One server. All of it is made at need: ports, listeners, threads."""

    def __init__(self, **master_options) -> None:
        self.master = Master(kill=self._kill, **master_options)
        self.drain_seconds = DRAIN_SECONDS
        self.token: str | None = None
        self.allow_admin = False  # callers of the ports may load and unload
        self.admin_token: str | None = None  # those who have this may
        self.ping_s = PING_S
        self.stopped = threading.Event()
        self.failed = ""  # why it stopped by itself
        self.at_stop: list[Callable[[], None]] = []  # called when all is answered
        self.spares = Spares()
        self._served: dict[str, Versions] = {}
        self._plans: dict[str, Plan] = {}
        self._ports: list[tuple[str, str, object]] = []  # protocol, address, handle
        self._registries: list[WorkerRegistry] = []
        self._directory = None
        self._started = time.time()
        self._lock = threading.RLock()
        self.stop_asked = threading.Event()
        self._stop_lock = threading.Lock()
        self._looks: Alarm | None = None  # at the workers

    # ---- servables -----------------------------------------------------------------------------------------

    def serve(self, plan: Plan) -> None:
        """Start the workers of a servable and wait until they are ready.

        Errors: RuntimeError with the cause; none of its workers is left running then.
        """
        self._begin()
        settings = plan.settings
        name = settings.servable_name
        with self._lock:
            versions = self._served.get(name)
            known = self._plans.get(name)
            if known is not None and known.settings.servable_directory != settings.servable_directory:
                raise RuntimeError(
                    f"servable {name!r} is served from {known.settings.servable_directory} already, "
                    f"not from {settings.servable_directory}"
                )
            if versions is None:
                versions = Versions(
                    self.master,
                    settings.servable_directory,
                    name,
                    lambda version: self._deployment(plan, version),
                    policy=plan.policy
                    or VersionPolicy(listed=(settings.version,) if settings.version else ()),
                    device_ids=plan.device_ids,
                    extra=plan.extra,
                    drain_seconds=self.drain_seconds,
                )
                self._served[name] = versions
                self._plans[name] = plan
                fresh = True
            else:
                fresh = False
        if not fresh:  # another version beside those that run
            versions.add(self._deployment(plan, settings.version), plan.device_ids, plan.extra)
            return
        try:
            versions.start()
        except BaseException:
            with self._lock:
                del self._served[name], self._plans[name]
            versions.stop(0.0)
            raise
        if plan.poll_seconds > 0:
            threading.Thread(
                target=self._poll, args=(versions, plan.poll_seconds), name="serving-poll", daemon=True
            ).start()
        if plan.scale is not None:
            threading.Thread(
                target=self._scale, args=(name, plan.scale), name="serving-scale", daemon=True
            ).start()
        self._describe()

    def _deployment(self, plan: Plan, version: int):
        settings = replace(plan.settings, version=version)
        if plan.light:
            return LightDeployment(self.master, settings)
        return Deployment(self.master, settings, spares=self.spares)

    def _poll(self, versions: Versions, seconds: float) -> None:
        while not self.stop_asked.wait(seconds):
            try:
                versions.poll()
            except Exception:
                log.logger(__name__).exception("the versions of %s cannot be looked at", versions.name)

    def _scale(self, name: str, policy: ScalePolicy) -> None:
        scaler = Scaler(policy)
        while not self.stop_asked.wait(1.0):
            deployment = self._served[name].newest() if name in self._served else None
            if deployment is None:
                continue
            count = sum(not s["functions_only"] for s in deployment.status())
            wish = scaler.wish(self.master, name, deployment.version, count)
            if wish == count:
                continue
            log.logger(__name__).warning("%s gets %d workers instead of %d", name, wish, count)
            try:
                deployment.scale(wish, self.drain_seconds)
            except RuntimeError as e:
                log.logger(__name__).error("%s cannot have %d workers: %s", name, wish, e)

    # ---- ports ---------------------------------------------------------------------------------------------

    def start_grpc(self, address: str, max_msg_mb_size: int = 100, ssl_config=None):
        """Open the gRPC port; its handle, with `port`. Errors: RuntimeError."""
        from mycelia_serving import frontend

        self._begin()
        handle = frontend.start_grpc(self.master, address, max_msg_mb_size, ssl_config, **self._access())
        self._opened("gRPC", address, handle)
        return handle

    def start_rest(self, address: str, max_msg_mb_size: int = 100, ssl_config=None):
        """Open the REST port; its handle, with `port`. Errors: RuntimeError."""
        from mycelia_serving import frontend

        self._begin()
        handle = frontend.start_rest(self.master, address, max_msg_mb_size, ssl_config, **self._access())
        self._opened("RESTful", address, handle)
        return handle

    def _access(self) -> dict:
        """Who may do what at a port."""
        may_change = self.allow_admin or self.admin_token is not None
        return {
            "token": self.token,
            "repository": self if may_change else None,
            "admin_token": None if self.allow_admin else self.admin_token,
        }

    def _opened(self, protocol: str, address: str, handle) -> None:
        if not address.startswith("unix:"):
            address = f"{address.rpartition(':')[0]}:{handle.port}"
        self._ports.append((protocol, address, handle))
        self._describe()
        print(f"Serving {protocol} start success, listening on {address}", flush=True)

    def listen(self, address: str) -> WorkerRegistry:
        """Let workers of other processes and hosts join at an address. Errors: RuntimeError."""
        self._begin()
        registry = WorkerRegistry(self.master, address)
        self._registries.append(registry)
        if not address.startswith("unix:"):
            address = f"{address.rpartition(':')[0]}:{registry.port}"
        registry.address = address
        self._describe()
        print(f"Serving master start success, listening on {address}", flush=True)
        return registry

    # ---- commands ------------------------------------------------------------------------------------------

    def load(self, name: str, version: int = 0) -> None:
        """Run a version of a servable that is served, or its newest. Errors: RuntimeError."""
        name, _, _ = name.partition(".")  # KServe's model names end in the method
        versions = self._versions(name)
        if version or not versions.running:
            versions.load(version)
        else:
            versions.poll()

    def unload(self, name: str, version: int = 0) -> None:
        """End a version, or all of them. Errors: RuntimeError."""
        name, _, _ = name.partition(".")
        versions = self._versions(name)
        for number in [version] if version else list(versions.running):
            versions.unload(number)

    def unloaded(self) -> list[tuple[str, int]]:
        """Servables and versions that could be loaded."""
        with self._lock:
            served = list(self._served.values())
        return [(versions.name, number) for versions in served for number in versions.unloaded()]

    def scale(self, name: str, count: int, version: int = 0) -> None:
        """Have so many workers of a version, or of the newest. Errors: RuntimeError."""
        if not 0 <= count <= 64:
            raise RuntimeError(f"the number of workers is 0 to 64, got {count}")
        versions = self._versions(name)
        deployment = versions.running.get(version) if version else versions.newest()
        if deployment is None:
            raise RuntimeError(f"version {version} of {name} does not run here")
        deployment.scale(count, self.drain_seconds)

    def _versions(self, name: str) -> Versions:
        with self._lock:
            versions = self._served.get(name)
        if versions is None:
            raise RuntimeError(f"servable {name!r} was not started by this server")
        return versions

    def status(self) -> dict:
        """All there is to tell about the server."""
        servables = []
        for info in self.master.describe():
            servables.append(
                {
                    "name": info.name,
                    "version": info.version,
                    "state": info.state,
                    "reason": info.reason,
                    "methods": [m.name for m in info.methods],
                    "workers": list(info.workers),
                }
            )
        return {
            "pid": os.getpid(),
            "ready": self.master.ready(),
            "stopping": self.master.stopping,
            "addresses": self._addresses(),
            "waiting_requests": self.master.waiting,
            "lost_workers": self.master.lost_workers,
            "servables": servables,
        }

    def models(self) -> list[dict]:
        """Signatures of what is served."""
        from mycelia_serving.cluster.codec import infos_to_json

        return [
            {"name": i.name, "version": i.version, "state": i.state, "methods": infos_to_json(i.methods)}
            for i in self.master.describe()
        ]

    def _command(self, message: dict):
        what = message.pop("command", None)
        if what == "stop":
            if message.get("now"):
                self.drain_seconds = 0.0
            threading.Thread(target=self.stop, daemon=True).start()
            return None
        if what == "drain":
            self.master.stop_taking()
            return self.master.drain(message.get("seconds", self.drain_seconds))
        commands = {
            "status": self.status,
            "models": self.models,
            "load": self.load,
            "unload": self.unload,
            "scale": self.scale,
        }
        if what not in commands:
            raise RuntimeError(f"unknown command {what!r}")
        return commands[what](**message)

    # ---- start, watch, stop --------------------------------------------------------------------------------

    def _begin(self) -> None:
        """What every server has: a place where commands come in, and a look at its workers each second."""
        with self._lock:
            if self.stop_asked.is_set():
                raise RuntimeError("the server is stopping")
            if self._looks is not None:
                return
            self._directory = runtime.own_directory()
            admin = WorkerRegistry(self.master, f"unix:{self._directory / 'socket'}", command=self._command)
            self._registries.append(admin)
            self._looks = CLOCK.alarm(self._look)
            self._looks.by(time.monotonic() + self.ping_s)
            self._describe()

    def _addresses(self) -> list[dict]:
        found = [{"protocol": protocol, "address": address} for protocol, address, _ in self._ports]
        joined = [{"protocol": "master", "address": registry.address} for registry in self._registries[1:]]
        return found + joined

    def _describe(self) -> None:
        told = {"pid": os.getpid(), "started": self._started, "addresses": self._addresses()}
        if self._directory is not None:
            (self._directory / "server.json").write_text(json.dumps(told))

    def _look(self, now: float) -> float:
        """Find workers that are silent. Each look counts, not the time: a server that was stopped for a while
        finds its workers alive.
        """
        if self.stop_asked.is_set():
            return NEVER
        with self._lock:
            deployments = [d for v in self._served.values() for d in list(v.running.values())]
        workers = [w for d in deployments for w in d.workers()]
        workers += [w for registry in self._registries for w in registry.workers()]
        for worker in workers:
            worker.missed = 0 if worker.seen else worker.missed + 1
            worker.seen = False
            if worker.missed >= MISSED:
                self._kill(worker, f"no sign of life for {MISSED} s")
        return now + self.ping_s

    def _kill(self, worker: RemoteWorker, reason: str) -> None:
        """End a worker that hangs."""
        with self._lock:
            deployments = [d for v in self._served.values() for d in list(v.running.values())]
        if not any(d.kill(worker, reason) for d in deployments):
            any(registry.drop(worker) for registry in self._registries)
        self.master.lose(worker, reason)

    def stop(self, drain_seconds: float | None = None) -> None:
        """Refuse what is new, answer what is there for up to so many seconds, end ports and workers."""
        seconds = self.drain_seconds if drain_seconds is None else drain_seconds
        self.master.stop_taking()
        self.stop_asked.set()
        with self._stop_lock:
            if self.stopped.is_set():
                return
            end = time.monotonic() + seconds
            self.spares.close()
            self.master.drain(seconds)
            self.master.close()
            for function in self.at_stop:
                function()
            ports, self._ports = self._ports, []
            for _, _, handle in ports:
                handle.stop(min(1.0, max(end - time.monotonic(), 0.0) + 0.2))
            for registry in self._registries:
                registry.stop_listening()
            threads = [
                threading.Thread(target=v.stop, args=(0.0,), daemon=True) for v in self._served.values()
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for registry in self._registries:
                registry.close()
            if self._directory is not None:
                shutil.rmtree(self._directory, ignore_errors=True)
            self.stopped.set()


def _only(version: int) -> VersionPolicy:
    return VersionPolicy(listed=(version,)) if version else VersionPolicy()
