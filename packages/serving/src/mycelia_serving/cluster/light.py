"""The light deployment: a version of a servable that runs in the master's process."""

from __future__ import annotations

from mycelia_serving.cluster.child import Settings
from mycelia_serving.cluster.local import LocalWorker, device_name
from mycelia_serving.cluster.master import Master


class LightDeployment:
    """One engine in this process, with the interface of `supervise.Deployment`."""

    def __init__(self, master: Master, settings: Settings) -> None:
        self.master = master
        self.settings = settings
        self.name = settings.servable_name
        self.version = settings.version
        self.published = False
        self.restarts = 0
        self._worker: LocalWorker | None = None

    def start(self, device_ids: list[int | None], extra: int = 0, *, publish: bool = True) -> None:
        """Load it. Errors: RuntimeError with the cause."""
        from mycelia_serving.cluster.process import make_engine

        if len(device_ids) != 1 or extra:
            raise RuntimeError(f"the light deployment of {self.name} has one worker, in this process")
        settings = self.settings.for_worker(device_ids[0], False)
        engine = make_engine(settings)
        engine.start()
        self.version = engine.version
        device = device_name(self.settings.device_type, settings["device_id"], False)
        self._worker = LocalWorker(engine, device)
        self.published = publish
        self.master.add(self._worker, publish=publish)

    def publish(self) -> None:
        """Let this version answer requests for the newest one."""
        self.published = True
        self.master.publish(self.name, self.version)

    def scale(self, count: int, drain_seconds: float) -> None:
        """Errors: RuntimeError, for there is only this process."""
        raise RuntimeError(
            f"{self.name} runs in the server's process and cannot be scaled: start it with workers"
        )

    def stop(self, drain_seconds: float) -> None:
        """Take the version away when its requests are answered, up to so many seconds."""
        for worker in self.master.retire(self.name, self.version, drain_seconds):
            worker.close(0.0)

    def status(self) -> list[dict]:
        """The one worker's state."""
        worker = self._worker
        if worker is None:
            return []
        return [
            {
                "pid": worker.pid,
                "device": self.settings.for_worker(None, False)["device_id"],
                "state": "ready",
                "restarts": 0,
                "reason": "",
                "functions_only": False,
            }
        ]

    def workers(self) -> list:
        """None that could fall silent alone."""
        return []

    def kill(self, worker, reason: str) -> bool:
        """An engine in this process cannot be killed."""
        return False
