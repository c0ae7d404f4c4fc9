"""Which versions of a servable run: at the start, and when folders come and go."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from mycelia import log
from mycelia_serving.cluster.master import Master
from mycelia_serving.servable import directory
from mycelia_serving.servable.directory import VersionPolicy


class Versions:
    """The deployments of one servable, kept to a policy.

    deploy: makes a deployment for a version, not started.
    device_ids, extra: workers of each version.
    """

    def __init__(
        self,
        master: Master,
        servable_directory: str,
        name: str,
        deploy: Callable[[int], object],
        *,
        policy: VersionPolicy,
        device_ids: list[int | None],
        extra: int,
        drain_seconds: float,
    ) -> None:
        self.master = master
        self.name = name
        self.policy = policy
        self.running: dict[int, object] = {}
        self._folder = directory.find(servable_directory, name)
        self._deploy = deploy
        self._device_ids = device_ids
        self._extra = extra
        self._drain_seconds = drain_seconds
        self._broken: dict[int, tuple[float, str]] = {}  # version -> time of its folder, why it failed
        self._lock = threading.RLock()  # one change at a time
        self._starting: list = []
        self._stopped = False

    def start(self) -> None:
        """Run what the policy says. Errors: RuntimeError if one version fails."""
        with self._lock:
            found = directory.versions(self._folder)
            wanted = self.policy.choose(found)
            missing = [v for v in self.policy.listed if v not in found]
            if missing and (found or missing != [1]):
                raise RuntimeError(f"The version {missing[0]} of the servable is not in {self._folder}")
            for version in wanted or [self.policy.listed[0] if self.policy.listed else 0]:
                self.load(version)

    def load(self, version: int) -> int:
        """Run a version beside the others; it becomes the newest when it is ready. Its number.

        Errors: RuntimeError with the cause; the others go on.
        """
        with self._lock:
            if version in self.running:
                return version
            deployment = self._deploy(version)
            self._start(deployment, self._device_ids, self._extra)
            deployment.publish()
            self.running[deployment.version] = deployment
            self._broken.pop(deployment.version, None)
            return deployment.version

    def add(self, deployment, device_ids: list[int | None], extra: int) -> None:
        """Run a deployment that has workers of its own kind. Errors: RuntimeError with the cause."""
        with self._lock:
            self._start(deployment, device_ids, extra)
            deployment.publish()
            self.running[deployment.version] = deployment

    def _start(self, deployment, device_ids: list[int | None], extra: int) -> None:
        if self._stopped:
            raise RuntimeError("the server is stopping")
        self._starting.append(deployment)
        try:
            deployment.start(list(device_ids), extra, publish=False)
        finally:
            self._starting.remove(deployment)

    def unload(self, version: int) -> None:
        """End a version when its requests are answered. Errors: RuntimeError if it does not run."""
        with self._lock:
            deployment = self.running.pop(version, None)
            if deployment is None:
                raise RuntimeError(f"version {version} of {self.name} does not run here")
            deployment.stop(self._drain_seconds)

    def poll(self) -> None:
        """Follow the folder. A version that fails leaves those that run alone, and is tried again when its
        folder changes.
        """
        with self._lock:
            found = directory.versions(self._folder)
            for gone in [v for v in self._broken if v not in found]:
                del self._broken[gone]
                self.master.retire(self.name, gone, 0.0)
            wanted = self.policy.choose(found)
            for version in wanted:
                if version in self.running:
                    continue
                changed = self._changed(version)
                if self._broken.get(version, (None, ""))[0] == changed:
                    continue
                try:
                    self.load(version)
                    log.logger(__name__).info("%s version %s is served", self.name, version)
                except RuntimeError as e:
                    self._broken[version] = changed, str(e)
                    self.master.fail(self.name, version, str(e))
                    log.logger(__name__).error("%s version %s cannot be loaded: %s", self.name, version, e)
            if all(v in self.running for v in wanted) and wanted:
                for version in [v for v in self.running if v not in wanted]:
                    self.unload(version)
                    log.logger(__name__).info("%s version %s is no more served", self.name, version)

    def _changed(self, version: int) -> float:
        """When something in the folder of a version changed."""
        latest = 0.0
        for folder, _, files in os.walk(os.path.join(self._folder, str(version))):
            for path in (folder, *(os.path.join(folder, f) for f in files)):
                try:
                    latest = max(latest, os.stat(path).st_mtime)
                except OSError:
                    continue
        return latest

    def unloaded(self) -> list[int]:
        """Versions that are there and do not run."""
        running = set(self.running)
        return [number for number in directory.versions(self._folder) if number not in running]

    def newest(self):
        """The deployment of the newest version that runs; None without one."""
        with self._lock:
            return self.running[max(self.running)] if self.running else None

    def stop(self, drain_seconds: float) -> None:
        """End all versions, also those that are being started."""
        self._stopped = True
        for deployment in list(self._starting):
            deployment.stop(0.0)
        with self._lock:
            running, self.running = list(self.running.values()), {}
        threads = [threading.Thread(target=d.stop, args=(drain_seconds,), daemon=True) for d in running]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
