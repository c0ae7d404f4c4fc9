"""Numbers of gRPC's statuses, and what callers say in headers: shared by the protocols."""

from __future__ import annotations

from collections.abc import Mapping

from mycelia_serving.errors import Code, ServingError, clip
from mycelia_serving.request import Request

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND = 0, 1, 2, 3, 4, 5
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = 8, 9, 12, 13, 14
UNAUTHENTICATED = 16

STATUS = {
    "OK": OK,
    "INVALID_ARGUMENT": INVALID_ARGUMENT,
    "DEADLINE_EXCEEDED": DEADLINE_EXCEEDED,
    "NOT_FOUND": NOT_FOUND,
    "RESOURCE_EXHAUSTED": RESOURCE_EXHAUSTED,
    "FAILED_PRECONDITION": FAILED_PRECONDITION,
    "UNIMPLEMENTED": UNIMPLEMENTED,
    "INTERNAL": INTERNAL,
    "UNAVAILABLE": UNAVAILABLE,
    "UNAUTHENTICATED": UNAUTHENTICATED,
}


def add_headers(request: Request, headers: Mapping[str, str]) -> None:
    """What a caller says beside the message: its trace, and how urgent the request is."""
    request.traceparent = headers.get("traceparent")
    priority = headers.get("mycelia-priority")
    if priority is not None:
        try:
            request.priority = int(priority)
        except ValueError:
            text = f"mycelia-priority is an integer, got {clip(priority)}"
            raise ServingError(Code.INVALID_INPUTS, text) from None
