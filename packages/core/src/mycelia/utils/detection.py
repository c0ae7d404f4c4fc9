"""Looking for hardware that computes wrongly: only Ascend chips can check themselves."""

from __future__ import annotations

from mycelia import errors

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


def comm_exec_order_check(action: str) -> None:
    """Record the order of collectives, from "start" to "end", to compare it among processes.

    Errors: TypeError, ValueError; RuntimeError otherwise, as there are no collectives between processes.
    """
    if not isinstance(action, str):
        raise errors.type_error(
            "comm_exec_order_check", f"action must be a str, but got {type(action).__name__}"
        )
    if action not in ("start", "end"):
        raise errors.one_of(action, ("start", "end"), subject="comm_exec_order_check", what="action")
    raise _needs_ascend("comm_exec_order_check", "the order of collectives")


def runtime_execution_order_check(folders_, all_rank=None):
    """Compare the recorded orders of collectives of several processes: RuntimeError, none are recorded
    here."""
    raise _needs_ascend("runtime_execution_order_check", "the order of collectives")
