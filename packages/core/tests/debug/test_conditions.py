"""The watch conditions: bounds hit exactly and just missed, ranges, errors instead of hits, defaults."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mycelia.debug.conditions import (
    CATALOGUE,
    IS_INF,
    IS_NAN,
    NO_PREVIOUS,
    NO_VALUE,
    Around,
    check,
    condition,
    error_texts,
    is_activation,
    is_gradient,
    is_weight,
)

X = np.array([-2.0, -1.0, 0.0, 1.0, 4.0], np.float32)  # mean 0.4, mean of absolutes 1.6, a fifth are zeros


def hits(name, array=X, previous=None, step=0, **given):
    around = Around(() if previous is None else (previous,))
    found = check(condition(name), given, array, around, step)
    assert found.error_code == 0
    return found.hit


def above(x):
    return math.nextafter(x, math.inf)


def below(x):
    return math.nextafter(x, -math.inf)


def test_there_are_the_seventeen_of_mindspore():
    ours = [c for c in CATALOGUE.values() if not c.beyond]
    assert len(ours) == 17 and len({c.abbr for c in ours}) == 17


@pytest.mark.parametrize("name", ["tensor_too_large", "weight_too_large", "gradient_too_large"])
@pytest.mark.parametrize(
    ("bound", "value"), [("max_gt", 4.0), ("min_gt", -2.0), ("mean_gt", 0.4), ("abs_mean_gt", 1.6)]
)
def test_large_is_strictly_above(name, bound, value):
    assert not hits(name, **{bound: value})
    assert hits(name, **{bound: below(value)}) and not hits(name, **{bound: above(value)})


@pytest.mark.parametrize("name", ["tensor_too_small", "weight_too_small", "gradient_vanishing"])
@pytest.mark.parametrize(
    ("bound", "value"), [("max_lt", 4.0), ("min_lt", -2.0), ("mean_lt", 0.4), ("abs_mean_lt", 1.6)]
)
def test_small_is_strictly_below(name, bound, value):
    assert not hits(name, **{bound: value})
    assert hits(name, **{bound: above(value)}) and not hits(name, **{bound: below(value)})


def test_several_parameters_are_alternatives_and_only_given_ones_count():
    found = check(condition("tensor_too_large"), {"max_gt": 3.0, "min_gt": 0.0}, X)
    assert found.hit and [(p.name, p.hit, p.actual) for p in found.parameters] == [
        ("max_gt", True, 4.0),
        ("min_gt", False, -2.0),
    ]


def test_zeros_count_from_their_share_on():
    assert hits("tensor_all_zero", zero_percentage_ge=20.0)
    assert not hits("tensor_all_zero", zero_percentage_ge=above(20.0))
    assert hits("tensor_all_zero", np.array([0.0, -0.0], np.float32))  # 100 is the default
    assert not hits("tensor_all_zero", X)


def test_initial_values_are_looked_at_in_the_first_step_alone():
    zeros = np.zeros(3, np.float32)
    assert hits("weight_initialization", zeros) and not hits("weight_initialization", zeros, step=1)
    assert hits("weight_initialization", max_gt=3.9) and not hits("weight_initialization", max_gt=4.0)
    assert hits("weight_initialization", min_lt=-1.9) and not hits("weight_initialization", min_lt=-2.0)


def test_a_weight_is_unchanged_within_a_tolerance_of_the_value_before():
    before = np.array([1.0, 100.0], np.float64)
    inside = before + 1e-8 + 0.999e-5 * before
    outside = before + np.array([0.0, 1e-8 + 1.001e-3])
    assert hits("weight_not_changed", inside, before)
    assert not hits("weight_not_changed", outside, before)
    assert hits("weight_not_changed", outside, before, rtol=1.1e-5)


@pytest.mark.parametrize(
    ("name", "bound", "is_hit"),
    [
        ("weight_change_too_large", "abs_mean_update_ratio_gt", (True, False, False)),
        ("weight_change_too_small", "abs_mean_update_ratio_lt", (False, False, True)),
    ],
)
def test_the_ratio_of_an_update_is_by_means_of_absolutes(name, bound, is_hit):
    before, now = np.array([1.0, -3.0]), np.array([1.5, -3.5])  # 0.5 / (2 + epsilon)
    ratio = 0.5 / (2.0 + 1e-9)
    found = tuple(hits(name, now, before, **{bound: b}) for b in (below(ratio), ratio, above(ratio)))
    assert found == is_hit
    assert hits("weight_change_too_large", now, before, abs_mean_update_ratio_gt=0.2, epsilon=0.4)
    assert not hits("weight_change_too_large", now, before, abs_mean_update_ratio_gt=0.2, epsilon=0.6)


@pytest.mark.parametrize("name", ["tensor_range", "activation_range"])
def test_ranges_have_both_ends(name):
    ends = {"range_start_inclusive": -1.0, "range_end_inclusive": 1.0}  # 60 percent
    assert hits(name, range_percentage_gt=below(60.0), **ends)
    assert hits(name, range_percentage_lt=above(60.0), **ends)
    assert not hits(name, range_percentage_gt=60.0, **ends)
    assert not hits(name, range_percentage_lt=60.0, **ends)
    assert hits(name, max_min_gt=5.9) and not hits(name, max_min_gt=6.0)
    assert hits(name, max_min_lt=6.1) and not hits(name, max_min_lt=6.0)
    with pytest.raises(ValueError, match="range_start_inclusive"):
        hits(name, range_percentage_gt=50.0)


@pytest.mark.parametrize(
    "name", ["tensor_overflow", "weight_overflow", "gradient_exploding", "operator_overflow"]
)
def test_overflow_is_nan_or_infinity(name):
    assert not hits(name)
    for bad in (np.nan, np.inf, -np.inf):
        found = check(condition(name), {}, np.array([1.0, bad], np.float32))
        assert found.hit and found.error_code == 0


def test_other_conditions_tell_an_error_where_values_are_not_finite():
    found = check(condition("tensor_too_large"), {"max_gt": 0.0}, np.array([5.0, np.nan, np.inf]))
    assert not found.hit and found.error_code == IS_NAN | IS_INF
    assert error_texts(found.error_code) == ["the tensor has NaN", "the tensor has infinities"]


def test_what_is_missing_is_told():
    assert check(condition("weight_not_changed"), {}, X).error_code == NO_PREVIOUS
    assert check(condition("tensor_overflow"), {}, None).error_code == NO_VALUE


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("tensor_too_large", {}, "one of abs_mean_gt, max_gt, min_gt, mean_gt must be given"),
        ("tensor_too_large", {"max": 1.0}, "max_gt"),
        ("tensor_too_large", {"abs_mean_gt": -1.0}, "abs_mean_gt"),
        ("tensor_too_large", {"max_gt": math.inf}, "finite"),
        ("tensor_all_zero", {"zero_percentage_ge": 101}, "from 0 to 100"),
        ("tensor_range", {"max_min_lt": 0.0}, "max_min_lt"),
    ],
)
def test_parameters_are_checked(name, given, told):
    with pytest.raises(ValueError, match=told):
        condition(name).values(given)


def test_an_unknown_condition_is_an_error():
    with pytest.raises(ValueError, match="tensor_overflow"):
        condition("tensor_overflows")
    with pytest.raises(TypeError, match="max_gt"):
        condition("tensor_too_large").values({"max_gt": "4"})


def test_integers_and_booleans_are_numbers():
    assert hits("tensor_too_large", np.array([1, 2], np.int32), max_gt=1)
    assert hits("tensor_all_zero", np.array([False, True]), zero_percentage_ge=50)


def test_kinds_of_nodes_are_told_by_type_and_name():
    assert is_weight("Parameter", "conv1.weight") and is_weight("Parameter", "fc.BIAS")
    assert not is_weight("Parameter", "optimizer-Momentum.fc.weight") and not is_weight("Conv2D", "a.weight")
    assert not is_weight("Parameter", "moments.fc.weight") and not is_weight("Parameter", "moment2.a.b.bias")
    states = ("stat", "momentum_buf", "exp_inf", "max_exp_avg_sq", "ax", "ax_")  # of SGD, Adamax, Adam, ASGD
    assert not any(is_weight("Parameter", f"{state}.fc.weight") for state in states)
    assert not is_weight("Parameter", "exp_avg_sq_row_fc.weight")  # AdaFactor's
    of_layers = ("lstm.weight_ih_l0", "cell.bias_hh", "gru.weight_hh_l1_reverse", "a.in_proj_weight")
    assert all(is_weight("Parameter", name) for name in (*of_layers, "embedding.embedding_table"))
    assert not is_weight("Parameter", "moments.lstm.weight_ih_l0") and not is_weight("Parameter", "weight_ih")
    assert not is_weight("Parameter", "norm.moving_mean") and not is_weight("Parameter", "a.weights_of_b")
    assert is_weight("Parameter", "moments.weight") and is_weight("Parameter", "linear.fc.weight")  # layers
    assert is_gradient("MatMul", "Gradients/Default/fc/MatMul-op0")
    assert not is_gradient("Parameter", "gradients/x")
    assert is_activation("ReLU", "Default/relu/ReLU-op0")
    assert not is_activation("ReLU", "Gradients/Default/relu/ReLU-op0") and not is_activation("Add", "x")
