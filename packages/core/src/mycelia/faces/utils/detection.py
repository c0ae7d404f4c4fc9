"""Looking for hardware that computes wrongly: only Ascend chips can check themselves."""

from __future__ import annotations

from mycelia.engine.base import errors, log

_logger = log.logger("mycelia.utils")
_found = False  # without a chip that checks itself, nothing is ever found


def sdc_detect_start() -> None:
    """Start to look for silent data corruption: there is no hardware here that could."""


def sdc_detect_stop() -> None:
    """Stop looking."""


def get_sdc_detect_result() -> bool:
    """Whether silent data corruption was found."""
    return _found


def _needs_ascend(subject: str, what: str) -> Exception:
    return errors.error(
        errors.MyceliaRuntimeError, subject, f"{what} needs a backend for Ascend",
        hint="the CPU has no such thing",
    )  # fmt: skip


def stress_detect(detect_type: str = "aic"):
    """Test the hardware under load: RuntimeError, only Ascend has the test."""
    raise _needs_ascend("stress_detect", f"the test {detect_type!r} of the hardware")


_collecting = False


def comm_exec_order_check(action: str) -> None:
    """Record the order of collectives, from "start" to "end", to compare it among processes.

    Errors: TypeError, ValueError; RuntimeError at the end, as there are no collectives between processes.
    """
    global _collecting
    if not isinstance(action, str):
        raise errors.type_error(
            "comm_exec_order_check", f"action must be a str, but got {type(action).__name__}"
        )
    if action not in ("start", "end"):
        raise errors.one_of(action, ("start", "end"), subject="comm_exec_order_check", what="action")
    if (action == "start") is _collecting:
        state = "has started already" if _collecting else "has not started"
        _logger.error("comm_exec_order_check(%r): the recording %s", action, state)
        return
    _collecting = not _collecting
    if not _collecting:
        raise _needs_ascend("comm_exec_order_check", "the order of collectives")
