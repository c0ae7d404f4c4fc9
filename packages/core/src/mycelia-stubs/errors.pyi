# Written by tools/gen_stubs.py.
from mycelia.engine.base.errors import (
    MyceliaError as MyceliaError, MyceliaError as _MyceliaError, Place as Place, about as about,
    codes as codes, dtype_error as dtype_error, error as error, index_error as index_error,
    one_of as one_of, runtime_error as runtime_error, shape_error as shape_error, type_error as type_error,
    user_place as user_place, value_error as value_error,
)

__all__ = [
    "CaptureError", "DTypeError", "FallbackError", "FileFormatError", "InternalError",
    "MyceliaAttributeError", "MyceliaError", "MyceliaImportError", "MyceliaIndexError", "MyceliaKeyError",
    "MyceliaMemoryError", "MyceliaOSError", "MyceliaRuntimeError", "MyceliaTypeError", "MyceliaValueError",
    "MyceliaZeroDivisionError", "NanError", "NotSupportedError", "PACKAGE_ROOT", "Place", "PluginError",
    "ShapeError", "about", "codes", "dtype_error", "error", "index_error", "one_of", "runtime_error",
    "shape_error", "type_error", "user_place", "value_error",
]


class CaptureError(_MyceliaError):
    """Graph mode met code that it cannot turn into a graph."""

class DTypeError(_MyceliaError):
    """A tensor's dtype is not taken by this op."""

class FallbackError(_MyceliaError):
    """An op would have fallen back to another backend while MYCELIA_FALLBACK=error forbids it."""

class FileFormatError(_MyceliaError):
    """A file is missing parts, corrupted, or of another kind."""

class InternalError(_MyceliaError):
    """An invariant of Mycelia itself is broken: please report it."""

class MyceliaAttributeError(_MyceliaError):
    """An object has no such attribute."""

class MyceliaImportError(_MyceliaError):
    """A package that this feature needs is missing or does not load."""

class MyceliaIndexError(_MyceliaError):
    """An index is outside its range."""

class MyceliaKeyError(_MyceliaError):
    """A name is not known: a parameter, a setting, an op."""

class MyceliaMemoryError(_MyceliaError):
    """Memory could not be had."""

class MyceliaOSError(_MyceliaError):
    """The operating system refused: no such file, no space, no permission."""

class MyceliaRuntimeError(_MyceliaError):
    """Something failed while running, with arguments that were right."""

class MyceliaTypeError(_MyceliaError):
    """An argument has a type or dtype that is not taken."""

class MyceliaValueError(_MyceliaError):
    """An argument has the right type but a value that does not fit."""

class MyceliaZeroDivisionError(_MyceliaError):
    """Integer division by zero."""

class NanError(_MyceliaError):
    """A value that must be finite is NaN or infinite."""

class NotSupportedError(_MyceliaError):
    """A case that Mycelia does not do."""
PACKAGE_ROOT: str

class PluginError(_MyceliaError):
    """A plugin could not be loaded or used; the message names its distribution."""

class ShapeError(_MyceliaError):
    """Shapes or ranks do not fit together."""
