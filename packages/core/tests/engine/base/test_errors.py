"""Errors name what happened, where in the user's code, and how to go on."""

from __future__ import annotations

import pickle

import pytest

from mycelia import errors


def users_function():
    raise errors.shape_error("matmul", "inner sizes differ: x is [2, 3], w is [4, 5]", hint="transpose w")


def test_error_shows_code_subject_message_place_and_hint():
    with pytest.raises(errors.ShapeError) as caught:
        users_function()
    first, place, hint = str(caught.value).splitlines()
    assert first == "MYC-SHAPE matmul: inner sizes differ: x is [2, 3], w is [4, 5]"
    assert place.startswith("  at ") and "test_errors.py:" in place and "in users_function:" in place
    assert 'raise errors.shape_error("matmul"' in place
    assert hint == "  hint: transpose w"


@pytest.mark.parametrize("kind", errors.codes().values(), ids=lambda k: k.__name__)
def test_every_error_prints_and_survives_a_process_border(kind):
    error = kind("went wrong", subject="thing", hint="do this", place=errors.user_place())
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    assert str(error).startswith(f"{kind.code} thing: went wrong\n  at ")


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.ShapeError, ValueError),
        (errors.DTypeError, TypeError),
        (errors.MyceliaIndexError, IndexError),
        (errors.MyceliaKeyError, KeyError),
        (errors.MyceliaRuntimeError, RuntimeError),
        (errors.NotSupportedError, NotImplementedError),
        (errors.FileFormatError, ValueError),
        (errors.MyceliaOSError, OSError),
        (errors.MyceliaZeroDivisionError, ZeroDivisionError),
    ],
)
def test_errors_are_the_builtin_ones_that_scripts_catch(kind, builtin):
    assert issubclass(kind, builtin)


def test_codes_are_unique():
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.MyceliaError)]
    assert len(errors.codes()) == len(kinds)


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (ValueError("axis is 3"), errors.MyceliaValueError),
        (IndexError("axis is 3"), errors.MyceliaIndexError),
        (KeyError("axis is 3"), errors.MyceliaKeyError),
        (TypeError("axis is 3"), errors.MyceliaTypeError),
        (ZeroDivisionError("axis is 3"), errors.MyceliaZeroDivisionError),
    ],
)
def test_about_names_the_op_of_a_plain_error(cause, kind):
    made = errors.about("reduce_sum", cause)
    assert type(made) is kind
    assert str(made).startswith(f"{kind.code} reduce_sum: axis is 3\n")


def test_about_fills_a_missing_subject_and_keeps_a_given_one():
    assert errors.about("softmax", errors.shape_error("rank is 0")).subject == "softmax"
    assert errors.about("softmax", errors.shape_error("pad", "rank is 0")).subject == "pad"


def test_about_leaves_errors_of_other_kinds_alone():
    cause = KeyboardInterrupt()
    assert errors.about("softmax", cause) is cause


def test_one_of_suggests_the_nearest_name():
    error = errors.one_of("constnt", ["constant", "edge"], subject="pad", what="mode")
    assert "mode must be one of ['constant', 'edge'], but got 'constnt'" in str(error)
    assert "did you mean 'constant'?" in str(error)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (errors.ShapeError, "ValueError"),
        (errors.DTypeError, "TypeError"),
        (errors.MyceliaIndexError, "IndexError"),
        (errors.CaptureError, "RuntimeError"),
    ],
)
def test_the_name_of_the_type_is_the_builtin_errors(kind, name):
    assert type(kind("no")).__name__ == name
    assert repr(kind("no")) == f"{name}('no')"
    assert kind.__qualname__ != name
