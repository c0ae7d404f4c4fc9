"""The one exception of serving, its codes, and what they are in HTTP and gRPC."""

from __future__ import annotations

import enum

STOPPING_TEXT = "the server is stopping"  # of requests that were refused unread; clients may send them again
LONGEST_ECHO = 200  # characters of a caller's text that an error repeats


class Code(enum.IntEnum):
    """Error codes of `mindspore.serving.proto.ErrorMsg`; those above 99 are finer and stay on this side."""

    SUCCESS = 0
    FAILED = 1
    INVALID_INPUTS = 2
    SYSTEM_ERROR = 3
    WORKER_UNAVAILABLE = 4
    SERVABLE_UNAVAILABLE = 5
    NOT_FOUND = 102  # unknown servable, method or version
    TOO_MANY = 101  # the queue is full
    DEADLINE = 103
    STOPPING = 105
    DENIED = 106  # a token is missing or wrong
    UNSUPPORTED = 107  # this server does not do that
    WRONG_VERB = 108  # HTTP: GET where it is POST, and the like
    FORBIDDEN = 109  # this caller may not do that


# code -> (code on MindSpore's wire, HTTP status, name of the gRPC status)
_ON_THE_WIRE = {
    Code.SUCCESS: (0, 200, "OK"),
    Code.FAILED: (1, 500, "INTERNAL"),
    Code.INVALID_INPUTS: (2, 400, "INVALID_ARGUMENT"),
    Code.SYSTEM_ERROR: (3, 500, "INTERNAL"),
    Code.WORKER_UNAVAILABLE: (4, 503, "UNAVAILABLE"),
    Code.SERVABLE_UNAVAILABLE: (5, 503, "UNAVAILABLE"),
    Code.TOO_MANY: (1, 429, "RESOURCE_EXHAUSTED"),
    Code.NOT_FOUND: (2, 404, "NOT_FOUND"),
    Code.DEADLINE: (1, 504, "DEADLINE_EXCEEDED"),
    Code.STOPPING: (5, 503, "UNAVAILABLE"),
    Code.DENIED: (1, 401, "UNAUTHENTICATED"),
    Code.UNSUPPORTED: (1, 501, "UNIMPLEMENTED"),
    Code.WRONG_VERB: (1, 405, "UNIMPLEMENTED"),
    Code.FORBIDDEN: (1, 403, "PERMISSION_DENIED"),
}


class ServingError(Exception):
    """Why an instance or a whole request was not answered: a `code` and a text for the caller."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def wire_code(self) -> int:
        """The code in `ErrorMsg.error_code`."""
        return _ON_THE_WIRE[self.code][0]

    @property
    def http_status(self) -> int:
        return _ON_THE_WIRE[self.code][1]

    @property
    def grpc_status(self) -> str:
        """Name of a member of `grpc.StatusCode`."""
        return _ON_THE_WIRE[self.code][2]


def clip(text: object) -> str:
    """`text` for an error message: what a caller sent is repeated up to 200 characters."""
    text = str(text)
    return text if len(text) <= LONGEST_ECHO else text[:LONGEST_ECHO] + f"... ({len(text)} characters)"
