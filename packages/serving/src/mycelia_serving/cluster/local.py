"""A worker in this process: the light deployment, without a hop between master and model."""

from __future__ import annotations

import os

from mycelia_serving.cluster.worker_api import Work
from mycelia_serving.engine import Engine

FEWEST_SLOTS = (
    8  # also of a worker whose models take one instance at a time: it has more than one stage to fill
)


def capacity_of(engine: Engine) -> int:
    """How many instances a worker takes at once: two batches."""
    return max(2 * engine.batch_size, FEWEST_SLOTS)


def device_name(device_type: str | None, device_id: int, functions_only: bool) -> str:
    """The device for `status`."""
    if functions_only:
        return ""
    return f"{device_type or 'CPU'}:{device_id}" if device_id else device_type or "CPU"


class LocalWorker:
    """A started engine as a worker."""

    def __init__(self, engine: Engine, device: str = "CPU") -> None:
        self.engine = engine
        self.servable = engine.servable_name
        self.version = engine.version
        self.infos = engine.infos
        self.model_files = engine.model_files
        self.load_seconds = engine.load_seconds
        self.capacity = capacity_of(engine)
        self.address = "local"
        self.pid = os.getpid()
        self.device = device
        self.has_models = True
        self.keeps = False

    def submit(self, work: list[Work]) -> None:
        """Take work; see `Worker`."""
        self._give(work, False)

    def submit_here(self, work: list[Work]) -> None:
        """Take work; models that are quick run in the calling thread, which has time for that."""
        self._give(work, True)
        self.engine.run_inline()

    def _give(self, work: list[Work], more: bool) -> None:
        submit = self.engine.submit
        for one in work:
            submit(
                one.method,
                one.instances,
                one.done,
                deadline=one.deadline,
                priority=one.priority,
                more=more,
            )

    def run_model(self, model_key: str, subgraph: int, inputs: list, done) -> None:
        """Run a model stage for a worker without a device; see `Engine.run_model`."""
        self.engine.run_model(model_key, subgraph, inputs, done)

    def close(self, drain_seconds: float = 0.0) -> None:
        """End the engine."""
        self.engine.close(drain_seconds)
