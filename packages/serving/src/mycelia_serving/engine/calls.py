"""Calls functions of servables: what they get, what they may return, what becomes of their exceptions."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sized
from typing import Any

import numpy as np

from mycelia_serving.errors import Code, ServingError
from mycelia_serving.request import Value
from mycelia_serving.servable.declaration import Function

log = logging.getLogger("mycelia_serving")

NUMBERS = frozenset(
    np.dtype(t)
    for t in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
    + ("float16", "float32", "float64")
)
_LONGEST_MESSAGE = 2000  # characters of an exception's text that go to the client


def to_arguments(values: tuple[Value, ...]) -> tuple:
    """Values as functions get them: bytes are an array of uint8, as in MindSpore Serving."""
    if bytes in map(type, values):
        return tuple([np.frombuffer(v, np.uint8) if type(v) is bytes else v for v in values])
    return values


def to_value(value: Any) -> Value:
    """What a function returned, as a value of an instance. Errors: TypeError if it can be none."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    if isinstance(value, bool | int | float | np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a value is {type(value).__name__}, which is no array, number, bool, str or bytes")
    if value.dtype not in NUMBERS:
        native = value.dtype.newbyteorder("=")
        if native not in NUMBERS:
            raise TypeError(f"a value is an array of {value.dtype}, which is no type of tensors")
        value = value.astype(native)
    if not value.flags.c_contiguous:
        value = value.copy("C")
    value = value.view(np.ndarray)
    value.flags.writeable = False
    return value


def to_values(result: Any, count: int) -> tuple[Value, ...]:
    """The results of one instance. Errors: TypeError, ValueError."""
    results = result if isinstance(result, tuple | list) else (result,)
    if len(results) != count:
        raise ValueError(f"it returned {len(results)} results, but its stage has {count}")
    return tuple([to_value(r) for r in results])


def failure(function: Function, error: BaseException, method: str, stage: int) -> ServingError:
    """The answer to an instance whose function raised `error`; the traceback goes to the log."""
    log.error("function %s of method %s, stage %d, failed", function.name, method, stage, exc_info=error)
    text = str(error)[:_LONGEST_MESSAGE]
    cause = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return ServingError(
        Code.INVALID_INPUTS,
        f"The function '{function.name}' of method '{method}', stage {stage}, failed: {cause}",
    )


def call_one(function: Function, values: tuple, method: str, stage: int) -> tuple[Value, ...] | ServingError:
    """A function with the inputs of one instance."""
    try:
        return to_values(function.call(*values), function.outputs)
    except BaseException as error:  # sys.exit() of a function is an error of its instance
        return failure(function, error, method, stage)


def call_batch(function: Function, instances: list[tuple], method: str, stage: int) -> list:
    """A function with a tuple of instances; it returns or yields one result for each.

    What it raises before its first result, or instead of returning a list, fails all instances. What it
    raises while it yields fails the one that was due, and it is called again with those after it.
    """
    done: list = []
    while len(done) < len(instances):
        rest = tuple(instances[len(done) :])
        try:
            answer = function.call(rest)
            if not isinstance(answer, Iterable) or isinstance(answer, str | bytes | dict):
                raise TypeError(f"it returned {type(answer).__name__} instead of one result per instance")
            if isinstance(answer, Sized) and len(answer) != len(rest):
                raise ValueError(f"it returned {len(answer)} results for {len(rest)} instances")
            results = iter(answer)
        except BaseException as error:
            return done + [failure(function, error, method, stage)] * len(rest)
        before = len(done)
        for _ in rest:
            try:
                result = next(results)
            except StopIteration:
                given = len(done) - before
                error = ValueError(f"it gave {given} results for {len(rest)} instances")
                return done + [failure(function, error, method, stage)] * (len(rest) - given)
            except BaseException as error:
                done.append(failure(function, error, method, stage))
                break
            try:
                done.append(to_values(result, function.outputs))
            except BaseException as error:
                done.append(failure(function, error, method, stage))
    return done
