"""A callback that profiles the steps which a file names while the program runs."""

from __future__ import annotations

import json
from pathlib import Path

from mycelia.engine.base import ignored
from mycelia.io.files import write_text
from mycelia.io.reading import of_file
from mycelia.profiler import Profiler
from mycelia.train.callbacks.base import Callback


class DynamicProfilerMonitor(Callback):
    """Profiles the steps that `cfg_path`/profiler_config.json names while the program runs.

    The file has `start_step` and `stop_step`, counted from 1; it is made with -1, for none, if there is none.
    A report is written below `output_path` after the last of these steps.
    """

    @ignored.arguments(
        poll_interval="the file is read at each step",
        kwargs="DynamicProfilerMonitor has no such option",
    )
    def __init__(
        self, cfg_path=None, output_path: str = "./dyn_profile_data", poll_interval: int = 2, **kwargs
    ) -> None:
        super().__init__()
        if cfg_path is None:
            raise ValueError("DynamicProfilerMonitor: cfg_path must name a folder, but got None")
        self._file = Path(cfg_path) / "profiler_config.json"
        self._output, self._number, self._stop = output_path, 0, 0
        self._profiler: Profiler | None = None
        if not self._file.exists():
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_text(self._file, json.dumps({"start_step": -1, "stop_step": -1}, indent=4))

    def step(self) -> None:
        """Begin the next step."""
        self._number += 1
        if self._profiler is not None and self._number > self._stop:
            self._finish()
        if self._profiler is None:
            with of_file(self._file, "DynamicProfilerMonitor"):
                wanted = json.loads(self._file.read_text(encoding="utf-8"))
                starts = wanted.get("start_step") == self._number <= wanted.get("stop_step", -1)
            if starts:
                self._stop = wanted["stop_step"]
                folder = Path(self._output) / f"step{self._number}_{self._stop}"
                self._profiler = Profiler(output_path=str(folder))

    def step_begin(self, run_context) -> None:
        self.step()

    def end(self, run_context) -> None:
        if self._profiler is not None:
            self._finish()

    def _finish(self) -> None:
        self._profiler.analyse()
        self._profiler = None
