"""Callbacks for numbers that are not finite: stop, skip the step, or leave behind what is known."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mycelia.debug.bundle import write_bundle
from mycelia.debug.dump import DumpObserver
from mycelia.debug.recorder.environment import environment
from mycelia.engine import observing
from mycelia.engine.base import config, errors, log
from mycelia.engine.compile.overflow import Check, Overflow
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.files import write_text
from mycelia.train.callbacks.base import Callback
from mycelia.train.callbacks.monitor import loss_value, place_in_epoch

_CHECKS = ("loss", "grads")
_ACTIONS = ("raise", "stop", "skip", "dump")


class _Watching(Callback):
    """Follows all that runs from the beginning of training to its end."""

    def __init__(self) -> None:
        super().__init__()
        self._found: list[Overflow] = []
        self._check = Check(self._found.extend)

    def begin(self, run_context: Any) -> None:
        self._check.start()

    def step_begin(self, run_context: Any) -> None:
        self._found.clear()

    def end(self, run_context: Any) -> None:
        self._check.stop()

    def __exit__(self, *error: Any) -> None:
        self._check.stop()  # an exception ended the training


class OverflowMonitor(_Watching):
    """Counts steps in which an operator made values that are not finite, and warns of the first one of each.

    `steps`: (step, operator, count) of each such step; `limit`: warnings that are given at most.
    Errors: ValueError for a limit below 0.
    """

    def __init__(self, limit: int = 10) -> None:
        super().__init__()
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise errors.value_error("OverflowMonitor", f"limit must be an int from 0 on, but got {limit!r}")
        self.limit = limit
        self.steps: list[tuple[int, str, int]] = []

    def step_end(self, run_context: Any) -> None:
        if not self._found:
            return
        step, first = run_context.original_args().cur_step_num, self._found[0]
        self.steps.append((step, first.operator.name, sum(f.count for f in self._found)))
        if len(self.steps) <= self.limit:
            log.logger(__name__).warning("step %d is not finite: %s", step, first)


class StopOnNaN(_Watching):
    """Acts as soon as a step has a loss, or makes a gradient, that is not finite.

    `check`: what is looked at, "loss", "grads" or both. `action`: "raise" an error that names the operator,
    "stop" the training after this step, "skip" the step, so that Parameters are as they were before it, or
    "dump": write ``first_bad.json`` with what surrounds it into a folder below `path`, and an archive of all
    that the process left behind (`debug.bundle`), then raise.
    Errors: ValueError for other values; FloatingPointError, an ArithmeticError, where it raises.
    """

    def __init__(
        self,
        check: Sequence[str] = _CHECKS,
        action: str = "raise",
        path: str | os.PathLike = "debug_bundle",
    ) -> None:
        super().__init__()
        chosen = (check,) if isinstance(check, str) else tuple(check)
        for name in chosen:
            if name not in _CHECKS:
                raise errors.one_of(name, _CHECKS, subject="StopOnNaN", what="check")
        if not chosen:
            raise errors.value_error("StopOnNaN", "check must name 'loss', 'grads' or both, but is empty")
        if action not in _ACTIONS:
            raise errors.one_of(action, _ACTIONS, subject="StopOnNaN", what="action")
        self.check, self.action, self.path = chosen, action, Path(path)
        self.skipped: list[int] = []  # steps
        self._before: list[tuple[Tensor, Tensor]] = []

    def step_begin(self, run_context: Any) -> None:
        super().step_begin(run_context)
        if self.action == "skip":
            # Aliases of the memory: a step then writes its results elsewhere.
            network = run_context.original_args().train_network
            self._before = [(p, p._detach()) for p in network.get_parameters()]

    def step_end(self, run_context: Any) -> None:
        params = run_context.original_args()
        reason = self._reason(params)
        if not reason:
            return
        step = params.cur_step_num
        text = f"in epoch {params.cur_epoch_num}, step {place_in_epoch(params)}: {reason}"
        if self.action == "skip":
            for parameter, value in self._before:
                parameter._assign(value)
            self.skipped.append(step)
            log.logger(__name__).warning("StopOnNaN: the step is skipped %s", text)
        elif self.action == "stop":
            log.logger(__name__).warning("StopOnNaN: the training stops %s", text)
            run_context.request_stop()
        else:
            if self.action == "dump":
                text += f"; see {self._write(step, reason, params)}"
            raise NotFinite(f"StopOnNaN: {text}")

    def _reason(self, params: Any) -> str:
        """What is not finite in this step; empty if all is well."""
        gradient = next((f for f in self._found if f.operator.name.startswith("Gradients/")), None)
        loss = loss_value(params.net_outputs) if "loss" in self.check else None
        if "grads" in self.check and gradient is not None:
            return str(self._found[0])
        if loss is not None and not math.isfinite(loss):
            return str(self._found[0]) if self._found else f"the loss is {loss}"
        return ""

    def _write(self, step: int, reason: str, params: Any) -> Path:
        """The folder with what is known of the step."""
        folder = self.path / f"step_{step}"
        folder.mkdir(parents=True, exist_ok=True)
        first = self._found[0] if self._found else None
        content = {
            "step": step,
            "operator": first.operator.name if first else None,
            "slot": first.slot if first else None,
            "reason": reason,
            "source": first.source if first else [],
            "outputs": [str(f) for f in self._found],
        }
        write_text(folder / "first_bad.json", json.dumps(content, indent=2))
        write_text(folder / "environment.json", json.dumps(environment(), indent=2))
        write_bundle(folder, self.path / f"step_{step}.zip", more=_left_behind(params), first_bad=content)
        return folder / "first_bad.json"


def _left_behind(params: Any) -> list[str]:
    """Folders with what the process has written so far: dumps, records, logs, graphs, summaries."""
    found = [config.get(key) for key in ("rdr_path", "log_dir", "save_graphs_path") if key in config.SETTINGS]
    found += [observer.config.path for observer in observing.observers if isinstance(observer, DumpObserver)]
    found += [getattr(c, "_summary_dir", "") for c in params.list_callback]
    return [os.fspath(place) for place in found if place]


class NotFinite(FloatingPointError):
    """A step of training has numbers that are not finite."""
