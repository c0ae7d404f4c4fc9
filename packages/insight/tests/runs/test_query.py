"""Queries over runs: what they mean, what is refused, and that no text does anything else."""

from __future__ import annotations

import random

import pytest

from mycelia_insight.runs.query import QueryError, parse

RUN = {
    "loss": 0.05,
    "optimizer": "Adam",
    "epoch": 3,
    "net.conv/a": 1,
    "x y": 2,
    "done": True,
    "nan": float("nan"),
}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", True),
        ('loss < 0.1 and optimizer == "Adam"', True),
        ("loss < 0.1 and optimizer == 'SGD'", False),
        ("loss < .01 or epoch >= 3", True),
        ("loss < .01 or epoch >= 3 and optimizer == 'SGD'", False),
        ("(loss < .01 or epoch >= 3) and not optimizer == 'SGD'", True),
        ("optimizer in ['SGD', 'Adam'] and epoch not in [1, 2]", True),
        ('optimizer contains "DA"', True),
        ("optimizer not contains 'x'", True),
        ("net.conv/a == 1 and `x y` == 2", True),
        ("missing == none and missing != 1", True),
        ("missing < 1 or missing > 1 or missing == 1", False),
        ("optimizer < 3 or optimizer == 3", False),
        ("done == true and epoch == 3.0 and epoch != -3e0", True),
        ("done == 1", False),
        ("nan < 1 or nan > 1 or nan == 1", False),
        (r"optimizer != 'A\'dam'", True),
    ],
)
def test_what_a_query_means(text, expected):
    assert parse(text)(RUN.get) is expected


@pytest.mark.parametrize(
    "text, at",
    [
        ("loss <", 6), ("loss = 3", 5), ("loss < 0.1 and", 14), ("(loss < 1", 9), ("loss < 1)", 8),
        ("3 < loss", 0),
        ("loss < 1 epoch", 9), ("optimizer in []", 14), ("optimizer == Adam", 13), ("a == 'open", 5),
        ("not", 3), ("__import__('os').system('x')", 16), ("a == 1; b == 2", 6), ("a contains 3", 11),
        ("loss < 1x", 7),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(text, at):
    with pytest.raises(QueryError) as error:
        parse(text)
    assert error.value.at == at
    assert str(error.value).endswith(f"at character {at + 1}")


def test_depth_and_length_have_limits():
    for text in ("(" * 60 + "a == 1" + ")" * 60, "not " * 60 + "a == 1", "a == 1 or " * 1000 + "a == 1"):
        with pytest.raises(QueryError, match="at most"):
            parse(text)
    assert parse("(" * 40 + "epoch == 3" + ")" * 40)(RUN.get)


def _tree(rng, depth=0):
    """A query as text, and what it is of RUN."""
    if depth < 4 and rng.random() < 0.6:
        parts = [_tree(rng, depth + 1) for _ in range(rng.randint(1, 3))]
        word, of = rng.choice([(" and ", all), (" or ", any)])
        found = of(value for _, value in parts)
        text = f"({word.join(text for text, _ in parts)})"
        return (f"not {text}", not found) if rng.random() < 0.3 else (text, found)
    number = rng.choice([0, 3, 0.05, -1.5, 1e9])
    sign, of = rng.choice(
        [
            ("<", float.__lt__),
            (">", float.__gt__),
            ("<=", float.__le__),
            (">=", float.__ge__),
            ("==", float.__eq__),
        ]
    )
    name = rng.choice(["loss", "epoch"])
    return f"{name} {sign} {number}", bool(of(float(RUN[name]), float(number)))


def test_random_queries_mean_what_python_says():
    rng = random.Random(7)
    for _ in range(500):
        text, expected = _tree(rng)
        if len(text) < 4000:
            assert parse(text)(RUN.get) is expected, text


def test_random_texts_are_queries_or_errors():
    rng = random.Random(8)
    pieces = ["loss", "and", "or", "not", "in", "contains", "(", ")", "[", "]", ",", "==", "<", "0.1", '"a"',
              "`", "'", "\\", "none", " ", "\n", "é", "\0", "1e400", "9" * 30, "\ud800"]  # fmt: skip
    understood = 0
    for _ in range(20000):
        text = "".join(rng.choice(pieces) + rng.choice(["", " "]) for _ in range(rng.randint(1, 9)))
        try:
            found = parse(text)
        except QueryError:
            continue
        assert isinstance(found(RUN.get), bool)
        understood += 1
    assert understood > 20
