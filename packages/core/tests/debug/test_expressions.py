"""Conditions that users write: what they mean, and what is told of those that are wrong."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia.debug.conditions import IS_INF, IS_NAN, NO_PREVIOUS, Around, check, condition

X = np.array(
    [-2.0, -1.0, 0.0, 1.0, 4.0], np.float32
)  # mean 0.4, of absolutes 1.6, norm sqrt(22), a fifth are 0
OF = condition("expression")


def found(text, array=X, *earlier):
    return check(OF, {"expression": text}, array, Around(earlier))


def holds(text, array=X, *earlier):
    hit = found(text, array, *earlier)
    assert hit.error_code == 0
    return hit.hit


@pytest.mark.parametrize(
    "text",
    [
        "max == 4",
        "min == -2",
        "mean > 0.399 and mean < .401",
        "abs_mean >= 1.6 - 1e-7",
        "l2norm * l2norm > 21.99 and l2norm * l2norm < 22.01",
        "std > 2.05 and std < 2.06",
        "zero_percentage == 20 and count == 5",
        "nan == 0 and inf == 0",
        "1 + 2 * 3 == 7 and (1 + 2) * 3 == 9",
        "8 / 4 / 2 == 1 and 8 - 4 - 2 == 2",
        "--max == 4 and -max != 4",
        "not max < 4 and not not max >= 4",
        "max > 9 and max > 9 or max > 1",  # `and` binds more tightly
        "not (max > 1 and min > 1)",
        "1e3 == 1000. and .5 == 5E-1",
        "max>3and min< 0",
        "max > 3\n  or\tmin > 0",
        "1 / 0 > 1e308 and not (0 / 0 == 0 / 0) and 0 / 0 != 0",
    ],
)
def test_they_hold(text):
    assert holds(text)


@pytest.mark.parametrize(
    ("sign", "truths"),
    [
        (">", (1, 0, 0)), (">=", (1, 1, 0)), ("<", (0, 0, 1)), ("<=", (0, 1, 1)), ("==", (0, 1, 0)),
        ("!=", (1, 0, 1)),
    ],
)  # fmt: skip
def test_a_bound_is_missed_hit_or_passed(sign, truths):
    assert [holds(f"max {sign} {bound}") for bound in (3, 4, 5)] == list(map(bool, truths))


def test_what_it_measured_is_told():
    hit = found("max > 3 * previous.max or min > max", X, X / 4)
    assert hit.hit and hit.reason == "max = 4, previous.max = 1, min = -2"
    (parameter,) = hit.parameters
    assert (parameter.name, parameter.value, parameter.hit) == (
        "expression",
        "max > 3 * previous.max or min > max",
        True,
    )


def test_the_step_before_is_asked_for_only_where_it_is_named():
    assert OF.depth({"expression": "max > previous.max"}) == 1 and OF.depth({"expression": "max > 1"}) == 0
    assert found("max > previous.max").error_code == NO_PREVIOUS
    assert holds("max > previous.max", X, X - 1) and not holds("max > previous.max", X, X)
    assert found("max > previous.max", X, np.array([np.nan])).error_code == IS_NAN


def test_tensors_that_are_not_finite_are_an_error_unless_they_are_asked_for():
    bad = np.array([1.0, np.nan, np.inf, -np.inf, np.nan])
    assert found("max > 0", bad).error_code == IS_NAN | IS_INF
    assert holds("nan == 2 and inf == 2 and max == 1 and count == 5", bad)
    assert holds("nan > previous.nan", bad, X) and not holds("nan > previous.nan", bad, bad)
    assert holds("nan == 1 and not max >= 0 and not max < 0", np.array([np.nan]))  # no finite element


def test_other_numbers_than_floats():
    assert holds("max == 3 and nan == 0", np.array([1, 3], np.int64))
    assert holds("mean == 0.5 and zero_percentage == 50", np.array([True, False]))
    assert holds("max == 5 and nan == 0", np.array([3 + 4j]))
    assert not holds("max == max", np.zeros((0, 3)))  # no element


@pytest.mark.parametrize(
    ("text", "position", "expected", "but"),
    [
        ("", 1, "a number, a name or '('", "the end"),
        ("max", 1, "a comparison", "'max'"),
        ("max > 1 and 3", 13, "a comparison", "'3'"),
        ("not 3 == 3 + (max > 1)", 14, "a number", "'(max'"),
        ("max > ", 7, "a number, a name or '('", "the end"),
        ("max > * 2", 7, "a number, a name or '('", "'*'"),
        ("maxi > 1", 1, "one of the names max, min", "'maxi'"),
        ("previous.maxi > 1", 1, "one of the names", "'previous.maxi'"),
        ("previous > 1", 1, "one of the names", "'previous'"),
        ("previous.previous.max > 1", 1, "one of the names", "'previous.previous'"),
        ("max.real > 1", 1, "one of the names", "'max.real'"),
        ("(max > 1", 9, "')'", "the end"),
        ("max > 1)", 8, "an operator or the end", "')'"),
        ("0 < max < 1", 9, "'and', 'or' or the end", "'<'"),
        ("max > 1 min < 1", 9, "an operator or the end", "'min'"),
        ("max = 1", 5, "an operator or the end", "'='"),
        ("max > 1; import os", 8, "an operator or the end", "';'"),
        ("abs(max) > 1", 1, "one of the names", "'abs'"),
        ("max(1) > 1", 4, "an operator or the end", "'('"),
        ("max ** 2 > 1", 6, "a number, a name or '('", "'*'"),
        ("__import__ > 1", 1, "one of the names", "'__import__'"),
        ("max > 1 and", 12, "a number, a name or '('", "the end"),
        ("and > 1", 1, "a number, a name or '('", "'and'"),
        ("max > 1.2.3", 10, "an operator or the end", "'.3'"),
        ("max > ٣", 7, "a number, a name or '('", "'٣'"),
        ("(" * 51 + "max > 1" + ")" * 51, 52, "at most 50 levels", "'max'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(text, position, expected, but):
    with pytest.raises(ValueError) as told:
        OF.values({"expression": text})
    message = str(told.value)
    assert f"expected {expected}" in message and f"at position {position} of" in message
    assert f"but found {but}" in message


def test_what_is_no_text_or_too_long_is_refused():
    with pytest.raises(TypeError, match="expression must be a text"):
        OF.values({"expression": 3})
    with pytest.raises(ValueError, match="expression must be given"):
        OF.values({})
    with pytest.raises(ValueError, match="at most 1000 characters, but has 1001"):
        OF.values({"expression": "max > 1" + " " * 994})
    assert holds("-" * 50 + "max == 4") and holds("(" * 50 + "max == 4" + ")" * 50)
    with pytest.raises(ValueError, match="at most 50 levels"):
        OF.values({"expression": "-" * 51 + "max == 4"})
