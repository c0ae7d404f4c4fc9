"""Sequences of variable length in graphs: what code can ask of them."""

import pytest

import mycelia as ms
from mycelia.ops import functional as F


@pytest.mark.parametrize(
    "change", [lambda a: a + [5], lambda a: [5] + a, lambda a: a * 2, lambda a: 2 * a, lambda a: a[1:]]
)
def test_what_is_made_of_it_is_of_variable_length(change):
    @ms.jit
    def ask():
        made = change(ms.mutable([1, 2, 3], True))
        return list(made), F.is_sequence_shape_unknown(made), F.is_sequence_value_unknown(made)

    made, shape, value = ask()
    assert (made, shape, value) == (change([1, 2, 3]), True, True)


def test_what_is_counted_in_it_is_no_constant():
    @ms.jit
    def ask():
        a = ms.mutable((4, 6, 4), True)
        return a.count(4), F.isconstant(a.count(4)), a.index(6), F.isconstant(a.index(6))

    assert ask() == (2, False, 1, False)


def test_others_are_of_known_length():
    @ms.jit
    def ask(x):
        made = [x, x + 1]
        return (
            F.is_sequence_shape_unknown(made),
            F.is_sequence_value_unknown(made),
            F.is_sequence_value_unknown([1, 2]),
            F.is_dynamic_sequence_element_unknown(ms.mutable([], True)),
        )

    assert ask(ms.Tensor(1.0)) == (False, True, False, True)


def test_outside_of_graphs_it_is_a_list():
    assert isinstance(ms.mutable([1, 2], True), list) and ms.mutable([1, 2], True) == [1, 2]
    assert not F.is_sequence_shape_unknown([1])
