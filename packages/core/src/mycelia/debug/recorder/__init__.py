"""The running data recorder: what is known of a run, written when it fails.

``{"rdr": {"enable": true, "mode": 1, "path": "/absolute"}}`` in the file of the setting `env_config_path`
switches it on, or the settings `rdr_enable`, `rdr_mode` and `rdr_path` (MS_RDR_ENABLE, ...), which go before
the file. Mode 1 writes at the first error, mode 2 also when the process ends. A folder of MindSpore's form,
``PATH/rank_N/rdr``, takes graphs after each stage, orders of execution, memory plans, the last operators with
what they read and made, the environment, and `first_bad.json`; `README.txt` says what failed first.
"""

from __future__ import annotations

import atexit
import os

from mycelia.debug.recorder import crash, wanted
from mycelia.debug.recorder.last_operators import LastOperators
from mycelia.debug.recorder.records import Records
from mycelia.debug.recorder.wanted import ALSO_AT_END, Wanted
from mycelia.engine import observing
from mycelia.engine.compile import failures

__all__ = ["follow"]


class _State:
    """The recorder that is on, if one is."""

    recorder: Recorder | None = None


class Recorder:
    """Listens to compiled functions, eager calls and the end of the process, and writes once."""

    def __init__(self, found: Wanted) -> None:
        self.wanted = found
        self.records = Records(found.path)
        beside = os.path.dirname(found.path)  # what is there while all goes well
        self.journal = crash.Journal(beside)
        self.last = LastOperators(self.journal.note)
        self.is_written = False
        observing.watch(self.last)
        self.calls = observing.watch_calls(self.last)
        self.calls.__enter__()
        failures.listeners.append(self)
        crash.listen(beside, self.crashed)

    def stop(self) -> None:
        """No record is written any more."""
        failures.listeners.remove(self)
        observing.unwatch(self.last)
        self.calls.__exit__(None, None, None)
        crash.ignore()
        self.journal.close()

    # ---- what compiled functions tell, see `engine.compile.failures`

    def staged(self, stage: str, graph) -> None:
        """A graph after a stage of its compilation."""
        self.records.keep_stage(stage, graph)

    def failed(self, error: BaseException, function=None, tensors=()) -> None:
        """A compiled function, or a compilation, raised."""
        if not self.is_written:
            self.is_written = True
            self.last.repeat(function, tensors)
            self.records.write(self.last, error)

    def crashed(self, error: BaseException | None, reason: str) -> None:
        """The process ends by an exception that nobody caught, or by a signal."""
        if not self.is_written:
            self.is_written = True
            self.records.write(self.last, error, reason)

    def ended(self) -> None:
        """The process ends as it should."""
        if self.wanted.mode == ALSO_AT_END and not self.is_written:
            self.records.write(self.last, None, "The process ended without an error.")
        self.stop()


def follow(path: str) -> None:
    """Switch the recorder on or off as the settings, and the file `path`, say now.

    Errors: ValueError or TypeError for what they cannot mean; then nothing changes.
    """
    found = wanted.read(path)
    if _State.recorder is not None:
        if _State.recorder.wanted == found:
            return
        _State.recorder.stop()
        _State.recorder = None
    if found is not None:
        _State.recorder = Recorder(found)


@atexit.register
def _at_end() -> None:
    if _State.recorder is not None:
        _State.recorder.ended()
