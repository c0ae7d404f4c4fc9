"""Messages for code that graph mode cannot take, with the user's line and advice."""

from __future__ import annotations

import os
import sys
from typing import Any

from mycelia.engine import _C
from mycelia.engine.base import errors
from mycelia.engine.capture import rewrite, source
from mycelia.engine.capture.names import undefined_name
from mycelia.engine.capture.trace import UnknownValue, capture_lock, traces, type_of
from mycelia.engine.tensors.divided import require_open


def explain(tensor: Any) -> None:
    """Raises: the value of a traced tensor was asked for. Says why it is not known and what can be done."""
    require_open(tensor)
    if not _C.mode() and (traces or tensor._is_parameter):
        with capture_lock:  # another thread has lent the tensor to its graph, and gives it back
            if tensor.traced is None:
                return
    if not traces or not _C.mode():  # no graph is captured, not by this thread
        raise errors.error(
            errors.CaptureError,
            "jit",
            f"a {type_of(tensor)} tensor of a graph capture that has ended is used",
            hint="a tensor made inside a compiled function was kept in an outer object; return it instead",
        )
    reason = _not_rewritten(sys._getframe(1))
    if reason:
        raise errors.error(
            errors.CaptureError,
            "jit",
            f"a {type_of(tensor)} tensor decides here, but {reason}, so its control flow cannot become "
            "part of the graph",
            hint="define the function in a file, or use ops.where",
        )
    raise errors.error(
        UnknownValue,
        "jit",
        f"the value of a {type_of(tensor)} tensor{_name_of(tensor)} is needed as a Python value, but it is "
        "known only when the graph runs",
        hint="x.asnumpy(), x.item(), list indices and sizes must not depend on tensors here; use ops",
    )


def _name_of(tensor: Any) -> str:
    name = getattr(tensor.traced, "name", "")
    return f" ({name})" if name else ""


def _not_rewritten(frame: Any) -> str:
    """Why the user's innermost function was not rewritten, or an empty text."""
    while frame is not None and source.is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    failed = rewrite.failure(frame.f_code)
    return str(failed) if failed is not None else ""


def asked_by_user(error: BaseException) -> bool:
    """Whether the user's own code asked for the value, not a function of ours that takes tensors."""
    asking, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(_BETWEEN):
            asking = name
        trace = trace.tb_next
    return not source.is_library_file(asking)


_BETWEEN = tuple(
    os.path.join(errors.PACKAGE_ROOT, *folder, "") for folder in (("engine", "capture"), ("faces", "compat"))
)


def with_line(error: NameError) -> Exception:
    """What is raised for a name that the user's code uses and nothing has."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or type(error) is not NameError:
        return error
    code = trace.tb_frame.f_code
    if source.is_library_file(code.co_filename):
        return error
    return undefined_name(error.name or "", code.co_filename, trace.tb_lineno, code.co_qualname)


def install() -> None:
    """Makes the native core ask here."""
    _C.set_hook("concretize", explain)
