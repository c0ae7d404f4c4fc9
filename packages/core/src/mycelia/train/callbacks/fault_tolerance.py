"""`TrainFaultTolerance`: a training that was killed goes on from its last state."""

from __future__ import annotations

import os
from pathlib import Path

from mycelia.engine.base import errors, log
from mycelia.engine.communication import mode, world
from mycelia.train.callbacks.base import Callback
from mycelia.train.recovery import States

_OWNER = "TrainFaultTolerance"
_log = log.logger(__name__)


class TrainFaultTolerance(Callback):
    """Saves the state of a training every `save_checkpoint_steps` steps, while it goes on, and goes on from
    the newest one when the script is started again, with the same bits as if nothing had happened.

    `ckpt_save_path`: a folder for this training alone; processes of several machines may share one, or have
    one each. A state is weights, optimizer, loss scale, random numbers (of Mycelia, NumPy and Python), the
    place in the data, and what other callbacks name in `kept_attributes` (`EarlyStopping` and
    `ReduceLROnPlateau` do). On another number of processes that train together the steps done are counted
    anew, by the share of the epoch that was seen.

    MindSpore's saves when devices fail. Its `ckpt_save_fn` and `ckpt_load_fn` raise NotSupportedError.
    Errors: ValueError without `ckpt_save_path` or for a number of steps below 1, TypeError. Of a training
    RuntimeError for a state of another network, for states that are all damaged, and, on all ranks, if one
    cannot write its state.
    """

    def __init__(self, ckpt_save_path=None, *, save_checkpoint_steps: int = 100, **kwargs):
        super().__init__()
        own = {"ckpt_save_fn", "ckpt_load_fn"} & kwargs.keys()
        if own:
            raise errors.error(
                errors.NotSupportedError, _OWNER, f"{', '.join(sorted(own))}: functions of the user's own do "
                "not save or load states", hint="give ckpt_save_path",
            )  # fmt: skip
        unknown = kwargs.keys() - {"initial_step"}  # which the states tell
        if unknown:
            raise errors.type_error(_OWNER, f"got unexpected arguments {sorted(unknown)}")
        if ckpt_save_path is None:
            raise errors.value_error(_OWNER, "ckpt_save_path must name a folder, but got None")
        if not isinstance(ckpt_save_path, (str, os.PathLike)):
            kind = type(ckpt_save_path).__name__
            raise errors.type_error(_OWNER, f"ckpt_save_path must be a path, but got {kind}")
        if isinstance(save_checkpoint_steps, bool) or not isinstance(save_checkpoint_steps, int):
            raise errors.type_error(
                _OWNER, f"save_checkpoint_steps must be an int, but got {save_checkpoint_steps!r}"
            )
        if save_checkpoint_steps < 1:
            raise errors.value_error(
                _OWNER, f"save_checkpoint_steps must be positive, but got {save_checkpoint_steps}"
            )
        self._folder, self._every = Path(ckpt_save_path), save_checkpoint_steps
        self._states: States | None = None
        self._callbacks: list | None = None  # what they had kept
        self._saved = 0  # steps that were done when a state was saved or restored last

    @classmethod
    def get_optimizer_wrapper(cls, origin_opt_cls):
        """The optimizer class with fault tolerance: the class itself, states have all of it."""
        return origin_opt_cls

    def on_train_begin(self, run_context):
        params = run_context.original_args()
        rank, size = world.place() or (0, 1)
        together = world.group(_OWNER, world.WORLDS[0]) if mode.trains_together(_OWNER) else None
        self._states = States(self._folder, rank, size, together)
        self._saved = params.cur_step_num
        facts = self._states.restore(params.train_network)
        self._callbacks = None if facts is None else facts["callbacks"]
        if facts is None:
            return
        done = _steps_done(facts, params.batch_num)
        if done < params.cur_step_num:
            raise errors.value_error(
                _OWNER, f"{params.cur_step_num} steps are done by initial_epoch, but the newest state in "
                f"{self._folder} is of step {done}",
                hint="initial_epoch is not needed: the state tells where training goes on",
            )  # fmt: skip
        self._saved = params.cur_step_num = params.last_save_ckpt_step = done
        if facts["stopped"]:
            run_context.request_stop()
        if rank == 0:
            _log.info("%s: training goes on behind step %d", _OWNER, done)

    def on_train_epoch_begin(self, run_context):
        """All callbacks have begun: what they had kept is theirs again."""
        if self._callbacks is not None:
            kept, self._callbacks = self._callbacks, None
            for callback, (kind, values) in zip(_keeping(run_context.original_args()), kept):
                if kind == type(callback).__name__:
                    vars(callback).update(values)

    def on_train_step_begin(self, run_context):
        """What callbacks have changed after the step before belongs to the state."""
        params = run_context.original_args()
        done = params.cur_step_num - 1
        if done >= self._saved + self._every:
            self._save(params, done, False)

    def on_train_end(self, run_context):
        params = run_context.original_args()
        if params.cur_step_num > self._saved:
            self._save(params, params.cur_step_num, run_context.get_stop_requested())
        self._states.finish()

    def _save(self, params, done: int, stopped: bool) -> None:
        kept = [
            (type(callback).__name__, {name: getattr(callback, name) for name in callback.kept_attributes})
            for callback in _keeping(params)
        ]
        facts = {"batches": params.batch_num, "stopped": stopped, "callbacks": kept}
        self._states.save(params.train_network, done, facts)
        self._saved = done


def _keeping(params) -> list[Callback]:
    return [callback for callback in params.list_callback if callback.kept_attributes]


def _steps_done(facts: dict, batches: int) -> int:
    """Steps that this training has done where an epoch has `batches`, by those of the state."""
    epochs, rest = divmod(facts["done"], facts["batches"])
    here, left = divmod(rest * batches, facts["batches"])
    if left:
        _log.warning(
            "%s: an epoch had %d batches and has %d now: some samples of this one come twice", _OWNER,
            facts["batches"], batches,
        )  # fmt: skip
    return epochs * batches + here
