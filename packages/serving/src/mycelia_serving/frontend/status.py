"""Numbers of gRPC's statuses, and what callers say in headers: shared by the protocols."""

from __future__ import annotations

import time
from collections.abc import Mapping

from mycelia_serving.errors import Code, ServingError, clip
from mycelia_serving.frontend.shares import PEER
from mycelia_serving.request import Request

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND = 0, 1, 2, 3, 4, 5
PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNIMPLEMENTED, INTERNAL = 7, 8, 9, 12, 13
UNAVAILABLE, UNAUTHENTICATED = 14, 16

STATUS = {
    "OK": OK,
    "INVALID_ARGUMENT": INVALID_ARGUMENT,
    "DEADLINE_EXCEEDED": DEADLINE_EXCEEDED,
    "NOT_FOUND": NOT_FOUND,
    "PERMISSION_DENIED": PERMISSION_DENIED,
    "RESOURCE_EXHAUSTED": RESOURCE_EXHAUSTED,
    "FAILED_PRECONDITION": FAILED_PRECONDITION,
    "UNIMPLEMENTED": UNIMPLEMENTED,
    "INTERNAL": INTERNAL,
    "UNAVAILABLE": UNAVAILABLE,
    "UNAUTHENTICATED": UNAUTHENTICATED,
}


def add_headers(request: Request, headers: Mapping[str, str]) -> None:
    """What a caller says beside the message: its trace, how urgent the request is, how long it waits.

    Errors: ServingError for a header that is no number.
    """
    request.peer = headers.get(PEER, "")
    request.traceparent = headers.get("traceparent")
    priority = headers.get("mycelia-priority")
    if priority is not None:
        request.priority = _number("mycelia-priority", priority)
    timeout = headers.get("mycelia-timeout-ms")
    if timeout is not None:
        deadline = time.monotonic() + _number("mycelia-timeout-ms", timeout) * 1e-3
        request.deadline = deadline if request.deadline is None else min(deadline, request.deadline)


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ServingError(Code.INVALID_INPUTS, f"{name} is an integer, got {clip(text)!r}") from None
