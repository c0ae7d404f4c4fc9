"""Error classes and the helpers that raise them: what happened, where in the user's code, how to go on.

Each error is also the builtin exception that MindSpore raises in its place, so `except ValueError` keeps
working. The codes are stable and explained in docs/errors.md.
"""

from __future__ import annotations

import os
import sys

# Frames of `mycelia` and `mycelia_*` are ours: an error names the first place outside of them.
_OWN = "mycelia"
#: The directory of the package, with a separator at its end: the code in it is ours.
PACKAGE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep

# Errors of functions from here that name no subject are about the function that the user called.
_FUNCTIONS = ("mycelia.engine.ops.", "mycelia.ops.", "mycelia.faces.mint.", "mycelia.faces.numpy.")


class Place:
    """A line of the user's code: file, line number and function; its text is read only when it is shown.

    `called`: the public function of ours that the line calls, if it is one of ops, mint or numpy.
    """

    __slots__ = ("called", "file", "function", "line")

    def __init__(self, file: str, line: int, function: str, called: str = ""):
        self.file, self.line, self.function, self.called = file, line, function, called

    def __str__(self) -> str:
        import linecache

        file = self.file
        if os.path.isabs(file):
            relative = os.path.relpath(file)
            file = file if relative.startswith("..") else relative
        code = linecache.getline(self.file, self.line).strip()
        inside = f" in {self.function}" if self.function not in ("", "<module>") else ""
        return f"{file}:{self.line}{inside}" + (f":  {code}" if code else "")

    def __reduce__(self):
        return Place, (self.file, self.line, self.function, self.called)


def user_place(depth: int = 1) -> Place | None:
    """The innermost frame outside mycelia's own packages; None when all are ours (a console script)."""
    try:
        frame = sys._getframe(depth)
    except ValueError:
        return None
    called = ""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        top = name.partition(".")[0]
        own = top == _OWN or top.startswith(_OWN + "_") or top == "contextlib"  # which calls ours
        if not own and not frame.f_code.co_filename.startswith("<frozen"):
            return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname, called)
        code = frame.f_code
        made = "<" in code.co_qualname  # a lambda, or within another function
        public = name.startswith(_FUNCTIONS) and not made and not code.co_name.startswith("_")
        called = code.co_name if public else ""
        frame = frame.f_back
    return None


class MyceliaError(Exception):
    """Base of all errors that Mycelia raises on purpose.

    `code` is stable; `subject` is the op, argument or file it is about; `place` is the user's line; `hint`
    says how to go on.
    """

    code = "MYC-ERROR"

    def __init__(
        self,
        message: str,
        *,
        subject: str = "",
        hint: str = "",
        code: str | None = None,
        place: Place | str | None = None,
    ):
        super().__init__(message)
        self.message = message
        self.subject = subject
        self.hint = hint
        self.place = place
        if code is not None:
            self.code = code

    def __init_subclass__(cls, **kwargs):
        """Let `type(e).__name__` be what scripts of MindSpore print and compare: the builtin error's name."""
        super().__init_subclass__(**kwargs)
        named = (b.__name__ for b in (*cls.__bases__, *cls.__mro__) if b.__module__ == "builtins")
        cls.__name__ = next(named, cls.__name__)

    def __str__(self) -> str:
        subject = self.subject
        if not subject and isinstance(self.place, Place) and not self.message.startswith("For '"):
            subject = self.place.called
        about = f"{subject}: " if subject else ""
        text = f"{self.code} {about}{self.message}"
        if self.place:
            text += f"\n  at {self.place}"
        if self.hint:
            text += f"\n  hint: {self.hint}"
        return text

    def __reduce__(self):  # errors cross process borders (dataset workers)
        return _rebuild, (type(self), self.message, self.subject, self.hint, self.code, self.place)


def _rebuild(kind, message, subject, hint, code, place):
    return kind(message, subject=subject, hint=hint, code=code, place=place)


class MyceliaValueError(MyceliaError, ValueError):
    """An argument has the right type but a value that does not fit."""

    code = "MYC-VALUE"


class ShapeError(MyceliaValueError):
    """Shapes or ranks do not fit together."""

    code = "MYC-SHAPE"


class MyceliaTypeError(MyceliaError, TypeError):
    """An argument has a type or dtype that is not taken."""

    code = "MYC-TYPE"


class DTypeError(MyceliaTypeError):
    """A tensor's dtype is not taken by this op."""

    code = "MYC-DTYPE"


class MyceliaIndexError(MyceliaError, IndexError, RuntimeError, ValueError):
    """An index is outside its range.

    Python calls that an IndexError; MindSpore's operators raise RuntimeError, those that scatter ValueError.
    """

    code = "MYC-INDEX"


class MyceliaKeyError(MyceliaError, KeyError):
    """A name is not known: a parameter, a setting, an op."""

    code = "MYC-KEY"


class MyceliaAttributeError(MyceliaError, AttributeError):
    """An object has no such attribute."""

    code = "MYC-ATTRIBUTE"


class MyceliaRuntimeError(MyceliaError, RuntimeError):
    """Something failed while running, with arguments that were right."""

    code = "MYC-RUNTIME"


class NotSupportedError(MyceliaError, NotImplementedError):
    """A case that Mycelia does not do."""

    code = "MYC-UNSUPPORTED"


class MyceliaImportError(MyceliaError, ImportError):
    """A package that this feature needs is missing or does not load."""

    code = "MYC-IMPORT"


class FileFormatError(MyceliaValueError):
    """A file is missing parts, corrupted, or of another kind."""

    code = "MYC-FILE"


class MyceliaOSError(MyceliaError, OSError):
    """The operating system refused: no such file, no space, no permission."""

    code = "MYC-OS"


class MyceliaMemoryError(MyceliaError, MemoryError):
    """Memory could not be had."""

    code = "MYC-MEMORY"


class MyceliaZeroDivisionError(MyceliaError, ZeroDivisionError):
    """Integer division by zero."""

    code = "MYC-DIVISION"


class NanError(MyceliaRuntimeError):
    """A value that must be finite is NaN or infinite."""

    code = "MYC-NAN"


class PluginError(MyceliaRuntimeError):
    """A plugin could not be loaded or used; the message names its distribution."""

    code = "MYC-PLUGIN"


class FallbackError(MyceliaRuntimeError):
    """An op would have fallen back to another backend while MYCELIA_FALLBACK=error forbids it."""

    code = "MYC-FALLBACK"


class CaptureError(MyceliaRuntimeError):
    """Graph mode met code that it cannot turn into a graph."""

    code = "MYC-CAPTURE"


class InternalError(MyceliaRuntimeError):
    """An invariant of Mycelia itself is broken: please report it."""

    code = "MYC-INTERNAL"


# The Mycelia class for a builtin error; the first that fits is taken: special ones before general ones.
_COUNTERPARTS: tuple[tuple[type[BaseException], type[MyceliaError]], ...] = (
    (IndexError, MyceliaIndexError),
    (KeyError, MyceliaKeyError),
    (ZeroDivisionError, MyceliaZeroDivisionError),
    (NotImplementedError, NotSupportedError),
    (AttributeError, MyceliaAttributeError),
    (TypeError, MyceliaTypeError),
    (ValueError, MyceliaValueError),
    (MemoryError, MyceliaMemoryError),
    (ImportError, MyceliaImportError),
    (OSError, MyceliaOSError),
    (RuntimeError, MyceliaRuntimeError),
)
_LEFT_ALONE = (RecursionError, UnicodeError)  # callers look for these by their own class


def error(kind: type[MyceliaError], subject: str, message: str = "", *, hint: str = "") -> MyceliaError:
    """Make an error of `kind` about `subject` (an op, an argument, a file) that names the user's line.

    With one text only, `error(kind, "axis is 3, ...")`, the subject is left for `about` to fill in.
    """
    if not message:
        subject, message = "", subject
    return kind(message, subject=subject, hint=hint, place=user_place(2))


def shape_error(op: str, message: str = "", *, hint: str = "") -> ShapeError:
    """Shapes do not fit: `raise shape_error("matmul", "inner sizes differ: x is [2, 3], w is [4, 5]")`."""
    return error(ShapeError, op, message, hint=hint)


def value_error(op: str, message: str = "", *, hint: str = "") -> MyceliaValueError:
    """A value does not fit: `raise value_error("pad", "mode is 'x', expected 'constant' or 'edge'")`."""
    return error(MyceliaValueError, op, message, hint=hint)


def type_error(op: str, message: str = "", *, hint: str = "") -> MyceliaTypeError:
    """A Python type does not fit: `raise type_error("stack", "expected a list of Tensors, got int")`."""
    return error(MyceliaTypeError, op, message, hint=hint)


def dtype_error(op: str, message: str = "", *, hint: str = "") -> DTypeError:
    """A dtype does not fit: `raise dtype_error("softmax", "x is bool, expected a floating dtype")`."""
    return error(DTypeError, op, message, hint=hint)


def index_error(op: str, message: str = "", *, hint: str = "") -> MyceliaIndexError:
    """An index is out of range."""
    return error(MyceliaIndexError, op, message, hint=hint)


def runtime_error(op: str, message: str = "", *, hint: str = "") -> MyceliaRuntimeError:
    """Something failed while running."""
    return error(MyceliaRuntimeError, op, message, hint=hint)


def about(subject: str, cause: BaseException) -> BaseException:
    """`cause` with the subject it lacks: `except Exception as e: raise errors.about("matmul", e) from None`.

    Builtin errors turn into their Mycelia counterparts; errors that have a subject, or that no class fits,
    stay as they are.
    """
    if isinstance(cause, MyceliaError):
        if not cause.subject:
            cause.subject = subject
        if cause.place is None:
            cause.place = user_place(2)
        return cause
    if isinstance(cause, _LEFT_ALONE):
        return cause
    for builtin, kind in _COUNTERPARTS:
        if isinstance(cause, builtin):
            message = str(cause.args[0]) if isinstance(cause, KeyError) and cause.args else str(cause)
            message = message.removeprefix(f"{subject}: ")
            made = kind(message, subject=subject, place=user_place(2))
            made.__cause__ = cause.__cause__
            return made
    return cause


def one_of(value: object, names, *, subject: str, what: str) -> MyceliaValueError:
    """An error for a name that is not among `names`, with the nearest ones as a hint."""
    import difflib

    names = [str(n) for n in names]
    near = difflib.get_close_matches(str(value), names, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
    return MyceliaValueError(
        f"{what} must be one of [{', '.join(map(repr, names))}], but got {value!r}",
        subject=subject,
        hint=hint,
        place=user_place(2),
    )


def codes() -> dict[str, type[MyceliaError]]:
    """All stable codes with the class that carries each."""
    found: dict[str, type[MyceliaError]] = {}
    pending: list[type[MyceliaError]] = [MyceliaError]
    while pending:
        kind = pending.pop()
        found[kind.code] = kind
        pending.extend(k for k in kind.__subclasses__() if k.__module__ == MyceliaError.__module__)
    return dict(sorted(found.items()))
