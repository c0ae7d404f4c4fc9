"""A worker in the master's process: the light deployment, without a hop between master and model."""

from __future__ import annotations

import os

from mycelia_serving.cluster.codec import MODEL_STAGE
from mycelia_serving.cluster.intake import Intake
from mycelia_serving.cluster.worker_api import Work
from mycelia_serving.engine import Engine
from mycelia_serving.errors import ServingError

FEWEST_SLOTS = (
    8  # also of a worker whose models take one instance at a time: it has more than one stage to fill
)


def capacity_of(engine: Engine) -> int:
    """How many instances a worker takes at once: a batch that runs, and the next one."""
    return max(2 * engine.batch_size, FEWEST_SLOTS)


def device_name(device_type: str | None, device_id: int, functions_only: bool) -> str:
    """The device for `status`."""
    if functions_only:
        return ""
    return f"{device_type or 'CPU'}:{device_id}" if device_id else device_type or "CPU"


def run_model_stage(engine: Engine, method: str, instances: list[dict], done) -> None:
    """Run a model stage that a worker without a device passes on; see `MODEL_STAGE`."""
    subgraph, key = method.removeprefix(MODEL_STAGE).split(":", 1)
    inputs = [tuple(i[str(at)] for at in range(len(i))) for i in instances]

    def finished(results: list) -> None:
        done(
            [
                result
                if isinstance(result, ServingError)
                else {str(at): value for at, value in enumerate(result)}
                for result in results
            ]
        )

    engine.run_model(key, int(subgraph), inputs, finished)


class LocalWorker:
    """A started engine as a worker, without a queue of its own: the engine takes instances out of that of the
    master at the moment at which it can run them, as many as the next batch takes.
    """

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
        self.deduplicates = False
        self.pulls = engine.staged_methods

    @property
    def is_running(self) -> bool:
        """Whether a model or function runs: what comes now has to wait for it."""
        return self.engine.scheduler.runs > 0

    def take_from(self, intake: Intake) -> None:
        """Take instances from there from now on."""
        self.engine.take_from(intake)

    def wake(self) -> None:
        """There is something to take; another thread does so."""
        self.engine.wake()

    def run_inline(self) -> None:
        """There is something to take, and the calling thread has time to run it, if it is quick."""
        self.engine.run_inline()

    def submit(self, work: list[Work]) -> None:
        """Take work that can run at once, or that the engine does not take by itself; see `Worker`.

        The caller says `wake` or `run_inline` afterwards.
        """
        for one in work:
            if one.method in self.pulls:
                self.engine.begin(one)
            elif one.method.startswith(MODEL_STAGE):
                run_model_stage(self.engine, one.method, one.instances, one.done)
            else:
                self.engine.submit(one.method, one.instances, one.done)

    def close(self, drain_seconds: float = 0.0) -> None:
        """End the engine."""
        self.engine.close(drain_seconds)
