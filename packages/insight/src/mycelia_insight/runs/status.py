"""Whether a run goes on: what its files say of it, and when they were written to last."""

from __future__ import annotations

from mycelia_insight.runs import alive
from mycelia_insight.runs.kinds import Dialect, Kind
from mycelia_insight.runs.lineages import Lineage
from mycelia_insight.runs.run import Run, Tag

RUNNING, FINISHED, STALLED, FAILED, UNKNOWN = "running", "finished", "stalled", "failed", "unknown"
_LEAST_PATIENCE = 60.0  # seconds without a value until a run that has not ended counts as stalled
_PATIENCE = 10  # the same, in usual times between two values


def status_of(run: Run, tags: list[Tag], lineage: Lineage, now: float) -> str:
    """`now`: seconds since 1970, of the clock that files have their times from.

    finished: the training's lineage is there, which is recorded at its end; or a writer of MindSpore's format
    has closed the files, which leaves them read-only; or TensorBoard's hparams say so. failed: these say
    that, or an error or the end of its process has ended the training. running: its process is there, or
    something was written a short while ago. stalled: nothing was, and nothing has ended it. unknown: the
    same in TensorBoard's files, which have no end.
    """
    if lineage.ending:
        return FAILED if lineage.ending == "failed" else FINISHED
    if any(tag.kind == Kind.TRAIN_LINEAGE for tag in tags):
        return FINISHED
    life = alive.life_of(run.folder)
    if life == alive.BROKEN_OFF:
        return FAILED
    if run.is_closed:
        return FINISHED
    if life is not None:
        return RUNNING if life == alive.ALIVE else FAILED
    if now - run.written < max(_LEAST_PATIENCE, _PATIENCE * _usual_gap(tags)):
        return RUNNING
    return STALLED if Dialect.MINDSPORE in run.dialects() else UNKNOWN


def _usual_gap(tags: list[Tag]) -> float:
    """Seconds between two values of the tag that has most."""
    most = max((tag for tag in tags if tag.kind == Kind.SCALAR), key=lambda tag: tag.count, default=None)
    return (most.last_time - most.first_time) / (most.count - 1) if most and most.count > 1 else 0.0
