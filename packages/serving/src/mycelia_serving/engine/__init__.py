"""Runs one version of one servable in this process: models, functions, batches.

    engine = Engine("servables", "add", 1)
    engine.start()
    engine.submit("add_common", [{"x1": a, "x2": b}], print)
    engine.close()
"""

from __future__ import annotations

from collections.abc import Callable

from mycelia_serving.request import Instance, MethodInfo, Result

__all__ = ["Engine"]


class Engine:
    """One version of a servable, loaded.

    servable_directory, servable_name: the folder DIRECTORY/NAME holds `servable_config.py` and the versions.
    version: number of a version, 0 for the newest.
    device_type: "CPU" or None (the best that is there); others name the backend that is missing.
    dec_key, dec_mode: of encrypted models.
    max_batch_size: largest batch of a model whose first dimension is open, and of its stages.
    max_batch_delay_ms: how long a batch that is not full waits for more instances; what `servable_config.py`
    declares goes first.
    functions_only: models are not loaded, their stages go to `call_model(model_key, subgraph, inputs, done)`
    with one tuple of arrays per instance; `done` takes a list with a tuple of arrays or a ServingError each.
    Errors: `start` raises RuntimeError that names file and cause.
    """

    def __init__(
        self,
        servable_directory: str,
        servable_name: str,
        version: int = 0,
        *,
        device_type: str | None = None,
        device_id: int = 0,
        dec_key: bytes | None = None,
        dec_mode: str = "AES-GCM",
        max_batch_size: int = 32,
        max_batch_delay_ms: float = 0,
        functions_only: bool = False,
        call_model: Callable | None = None,
    ) -> None:
        self.servable_name = servable_name
        self.version = version  # after `start` the number that was found
        self.infos: tuple[MethodInfo, ...] = ()  # after `start`
        self.batch_size = 0  # largest batch of its models, 1 without models
        self.model_files: tuple[str, ...] = ()
        self.load_seconds = 0.0

    def start(self) -> None:
        """Imports the config, loads the models and runs each once."""
        raise NotImplementedError

    def submit(
        self,
        method: str,
        instances: list[Instance],
        done: Callable[[list[Result]], None],
        *,
        deadline: float | None = None,
        priority: int = 0,
    ) -> None:
        """Answers by calling `done` once, with one result per instance in order; never blocks, never raises.

        `done` runs in a thread of the engine (or in the caller's, if nothing could be started) and must be short.
        deadline: `time.monotonic()` after which what has not started is answered with `Code.DEADLINE`.
        """
        raise NotImplementedError

    def run_model(self, model_key: str, subgraph: int, inputs: list[tuple], done: Callable[[list], None]) -> None:
        """The other end of another engine's `call_model`: runs a model stage for its instances."""
        raise NotImplementedError

    def pending(self) -> int:
        """Instances that are not answered yet."""
        raise NotImplementedError

    def close(self, drain_seconds: float = 0) -> None:
        """Answers what is there for up to `drain_seconds`, the rest with `Code.STOPPING`; ends its threads."""
        raise NotImplementedError
