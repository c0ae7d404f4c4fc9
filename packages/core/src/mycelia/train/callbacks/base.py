"""`Callback`, what it is told (`RunContext`), and how several run together."""

from __future__ import annotations

import contextlib

from mycelia.engine.base import errors

_EVENTS = ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")


class Callback:
    """Base class: override any of the ``on_train_*`` and ``on_eval_*`` methods.

    Each falls back to the older name without prefix (`begin`, `epoch_begin`, `step_begin`, `step_end`,
    `epoch_end`, `end`).  Works as a context manager that Model enters around a run.
    """

    #: Attributes, numbers and texts, that `TrainFaultTolerance` saves and gives back.
    kept_attributes: tuple[str, ...] = ()

    def __enter__(self):
        return self

    def __exit__(self, *err) -> None:
        """Called at the end of the run, also after an error."""

    def begin(self, run_context) -> None:
        """Before the first epoch."""

    def epoch_begin(self, run_context) -> None:
        """Before each epoch."""

    def epoch_end(self, run_context) -> None:
        """After each epoch."""

    def step_begin(self, run_context) -> None:
        """Before each step."""

    def step_end(self, run_context) -> None:
        """After each step."""

    def end(self, run_context) -> None:
        """After the last epoch."""

    def on_train_begin(self, run_context) -> None:
        """Before the first training epoch."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context) -> None:
        """Before each training epoch."""
        self.epoch_begin(run_context)

    def on_train_epoch_end(self, run_context) -> None:
        """After each training epoch."""
        self.epoch_end(run_context)

    def on_train_step_begin(self, run_context) -> None:
        """Before each training step."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context) -> None:
        """After each training step."""
        self.step_end(run_context)

    def on_train_end(self, run_context) -> None:
        """After the last training epoch."""
        self.end(run_context)

    def on_eval_begin(self, run_context) -> None:
        """Before an evaluation."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context) -> None:
        """Before the pass over the evaluation data."""
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context) -> None:
        """After the pass over the evaluation data."""
        self.epoch_end(run_context)

    def on_eval_step_begin(self, run_context) -> None:
        """Before each evaluation step."""
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context) -> None:
        """After each evaluation step."""
        self.step_end(run_context)

    def on_eval_end(self, run_context) -> None:
        """After an evaluation."""
        self.end(run_context)


class CallbackParam(dict):
    """What callbacks read and write: a dict whose keys are attributes too."""

    def __getattr__(self, name: str):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"there is no '{name}' in the run's parameters; there are {sorted(self)}"
            ) from None

    def __setattr__(self, name: str, value) -> None:
        self[name] = value


class RunContext:
    """Gives callbacks the run's parameters and lets them ask for a stop."""

    def __init__(self, original_args):
        if not isinstance(original_args, dict):
            raise errors.type_error(
                "RunContext", f"original_args must be a dict, but got {type(original_args).__name__}"
            )
        self._original_args = original_args
        self._stop_requested = False

    def original_args(self) -> CallbackParam:
        """The run's parameters: network, optimizer, epoch_num, cur_epoch_num,
        cur_step_num, net_outputs, ...
        """
        return self._original_args

    def request_stop(self) -> None:
        """Ask training to stop after the current step."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Whether a stop was asked for."""
        return self._stop_requested


class CallbackManager(Callback):
    """Runs callbacks in order and enters and leaves them together."""

    def __init__(self, callbacks):
        if callbacks is None:
            callbacks = []
        elif isinstance(callbacks, Callback):
            callbacks = [callbacks]
        self._callbacks = []
        for callback in callbacks:
            if not isinstance(callback, Callback):
                raise errors.type_error(
                    "callbacks", f"every member must be a Callback, but got {type(callback).__name__}"
                )
            self._callbacks.append(callback)
        self._entered = contextlib.ExitStack()

    @property
    def callbacks(self) -> list[Callback]:
        return self._callbacks

    def __enter__(self):
        with contextlib.ExitStack() as entered:
            for callback in self._callbacks:
                entered.enter_context(callback)
            self._entered = entered.pop_all()
        return self

    def __exit__(self, *err):
        return self._entered.__exit__(*err)


def _forward(name: str):
    def run(self, run_context):
        for callback in self._callbacks:
            getattr(callback, name)(run_context)

    run.__name__ = name
    return run


for _mode in ("train", "eval"):
    for _event in _EVENTS:
        setattr(CallbackManager, f"on_{_mode}_{_event}", _forward(f"on_{_mode}_{_event}"))
