"""Conditions beyond MindSpore's: bounds hit exactly and just missed, what is missing, what overflows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mycelia import debug
from mycelia.debug.conditions import (
    CATALOGUE,
    IS_INF,
    IS_NAN,
    NO_INPUTS,
    NO_PREVIOUS,
    NO_RANKS,
    Around,
    Memory,
    check,
    condition,
    error_texts,
    is_loss,
)
from mycelia.debug.conditions.recommended import suits


def found(name, array, *, step=0, given=None, **around):
    return check(condition(name), given or {}, np.asarray(array), Around(**around), step)


def is_hit(name, array, *, given=None, **around):
    hit = found(name, array, given=given, **around)
    assert hit.error_code == 0
    return hit.hit


def above(x):
    return math.nextafter(x, math.inf)


def below(x):
    return math.nextafter(x, -math.inf)


def test_ours_are_marked_and_have_abbreviations_of_their_own():
    assert {c.id for c in CATALOGUE.values() if c.beyond} == {
        "dead_relu", "saturated_activation", "loss_not_decreasing", "gradient_norm", "update_ratio",
        "rank_mismatch", "nan_born", "expression",
    }  # fmt: skip
    assert len({c.abbr for c in CATALOGUE.values()}) == len(CATALOGUE)


# ---- activations

IMAGE = np.ones((2, 4, 3, 3), np.float32)
IMAGE[:, 1] = 0  # one of four channels
IMAGE[0, 2] = 0  # in one image alone


def test_channels_of_a_relu_are_dead_from_a_share_on():
    for share, hits in ((25.0, True), (above(25.0), False)):
        assert is_hit("dead_relu", IMAGE, given={"dead_percentage_ge": share}) is hits
    assert not is_hit("dead_relu", IMAGE)  # 50 is the default


def test_a_channel_is_dead_if_it_was_0_in_all_steps_that_are_looked_at():
    alive = np.ones_like(IMAGE)
    given = {"dead_percentage_ge": 25, "steps": 3}
    assert condition("dead_relu").depth(condition("dead_relu").values(given)) == 2
    assert is_hit("dead_relu", IMAGE, given=given, earlier=(IMAGE, IMAGE))
    assert not is_hit("dead_relu", IMAGE, given=given, earlier=(IMAGE, alive))
    assert is_hit("dead_relu", IMAGE, given=given, earlier=(IMAGE, IMAGE, alive))  # the fourth from here
    assert is_hit("dead_relu", IMAGE, given=given)  # there are no steps before
    assert is_hit("dead_relu", IMAGE, given=given, earlier=(IMAGE[:1],))  # of a smaller batch


def test_channels_of_what_is_no_image_are_the_last_axis():
    x = np.zeros((3, 5, 4), np.float32)
    x[1, 2, 0] = 1
    assert found("dead_relu", x).parameters[0].actual == 75.0
    assert found("dead_relu", x[1]).parameters[0].actual == 75.0
    assert found("dead_relu", x[1, 2]).parameters[0].actual == 75.0
    assert found("dead_relu", x[0, 0, 0]).parameters[0].actual == 100.0


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("Tanh", [-1.0, -0.998, -0.997, 0.0, 0.998]),
        ("Sigmoid", [0.0, 0.001, 0.0011, 0.5, 0.999]),
        ("HSigmoid", [0.0, 1.0, 0.5, 0.5, 1.0]),
        ("ReLU6", [0.0, 5.994, 6.0, 6.0, 5.993]),
    ],
)
def test_three_of_five_elements_are_saturated(kind, values):
    for share, hits in ((60.0, True), (above(60.0), False)):
        given = {"saturated_percentage_ge": share}
        assert is_hit("saturated_activation", np.array(values), given=given, kind=kind) is hits


def test_saturation_is_for_activations_that_have_ends():
    with pytest.raises(ValueError, match="sigmoid"):
        found("saturated_activation", np.ones(3), kind="ReLU")
    suited = [
        k
        for k in ("ReLU", "ReLU6", "Tanh", "Sigmoid", "GeLU")
        if suits(condition("saturated_activation"), k, "x")
    ]
    assert suited == ["ReLU6", "Tanh", "Sigmoid"]
    assert suits(condition("dead_relu"), "ReLU", "x") and not suits(condition("dead_relu"), "Tanh", "x")


# ---- losses


def losses(*values):
    """The last, and those before it, the last first."""
    arrays = [np.array(v, np.float64) for v in values]
    return {"array": arrays[-1], "earlier": tuple(arrays[-2::-1])}


def test_a_loss_must_drop_from_window_to_window():
    given = {"window": 1}
    assert is_hit("loss_not_decreasing", **losses(1.0, above(1.0)), given=given)
    assert not is_hit("loss_not_decreasing", **losses(1.0, 1.0), given=given)
    drop = {"window": 1, "min_rel_drop": 0.25}
    assert not is_hit("loss_not_decreasing", **losses(4.0, 3.0), given=drop)
    assert is_hit("loss_not_decreasing", **losses(4.0, above(3.0)), given=drop)
    assert not is_hit("loss_not_decreasing", **losses(-4.0, -5.0), given=drop)
    assert is_hit("loss_not_decreasing", **losses(-4.0, above(-5.0)), given=drop)


def test_windows_are_moving_averages():
    # of two numbers the weight is 2/3: 3 - 2/3 * 3 = 1, and 0 + 2/3 * 1.5 = 1
    hit = found("loss_not_decreasing", **losses(9.0, 3.0, 0.0, 0.0, 1.5), given={"window": 2})
    assert hit.error_code == 0 and not hit.hit and hit.parameters[0].actual == 0.0
    assert is_hit("loss_not_decreasing", **losses(3.0, 0.0, 0.0, 1.6), given={"window": 2})


def test_losses_need_two_windows():
    given = {"window": 3}
    assert found("loss_not_decreasing", **losses(*range(5)), given=given).error_code == NO_PREVIOUS
    assert is_hit("loss_not_decreasing", **losses(*range(6)), given=given)
    assert found("loss_not_decreasing", **losses(np.nan, 1, 2, 3, 4, 5), given=given).error_code == IS_NAN
    assert not is_hit("loss_not_decreasing", np.ones(2), given=given)  # no loss
    with pytest.raises(ValueError, match="window must be a whole number"):
        condition("loss_not_decreasing").values({"window": 2.5})
    with pytest.raises(ValueError, match="window must be finite and from 1"):
        condition("loss_not_decreasing").values({"window": 0})


def test_what_is_a_loss_is_told_by_its_scope():
    assert is_loss("ReduceMean", "Default/network-WithLossCell/_loss_fn-MSELoss/ReduceMean-op3")
    assert not is_loss("Conv2D", "Default/network-WithLossCell/_backbone-Net/Conv2D-op0")
    assert not is_loss("Mul", "Gradients/Default/_loss_fn-MSELoss/Mul-op9")
    assert not is_loss("Parameter", "loss.weight")


# ---- gradients and weights


def test_the_norm_of_a_gradient():
    x = np.array([[3.0], [4.0]], np.float16)
    assert is_hit("gradient_norm", x, given={"l2norm_gt": below(5.0)})
    assert not is_hit("gradient_norm", x, given={"l2norm_gt": 5.0, "l2norm_lt": 5.0})
    assert is_hit("gradient_norm", x, given={"l2norm_lt": above(5.0)})
    assert is_hit(
        "gradient_norm", np.full(4, 60000.0, np.float16), given={"l2norm_gt": 119999}
    )  # no overflow
    assert found("gradient_norm", [np.inf], given={"l2norm_gt": 1}).error_code == IS_INF
    with pytest.raises(ValueError, match="one of l2norm_gt, l2norm_lt must be given"):
        found("gradient_norm", x)


def test_the_ratio_of_norms_of_an_update():
    before, now = np.array([3.0, 4.0]), np.array([3.0, 4.5])
    ratio = 0.5 / (5.0 + 1e-9)
    for bound, hits in ((below(ratio), True), (ratio, False)):
        assert is_hit("update_ratio", now, given={"update_ratio_gt": bound}, earlier=(before,)) is hits
    for bound, hits in ((above(ratio), True), (ratio, False)):
        assert is_hit("update_ratio", now, given={"update_ratio_lt": bound}, earlier=(before,)) is hits
    assert not is_hit("update_ratio", now, earlier=(before,)) and is_hit(
        "update_ratio", 2 * now, earlier=(before,)
    )
    assert found("update_ratio", now).error_code == NO_PREVIOUS
    assert found("update_ratio", now, earlier=(np.array([np.inf, np.nan]),)).error_code == IS_INF | IS_NAN


def test_a_weight_that_differs_over_ranks():
    x = np.array([1.0, 2.0], np.float32)
    assert not is_hit("rank_mismatch", x, others=(x.copy(), x.copy()))
    apart = np.array([1.0, 2.5], np.float32)
    assert is_hit("rank_mismatch", x, others=(x, apart))
    assert not is_hit("rank_mismatch", x, others=(apart,), given={"max_difference_gt": 0.5})
    assert is_hit("rank_mismatch", x, others=(apart,), given={"max_difference_gt": below(0.5)})
    assert is_hit("rank_mismatch", x, others=(x[:1],))  # of another shape
    assert found("rank_mismatch", x).error_code == NO_RANKS
    assert found("rank_mismatch", x, others=(x * np.nan,)).error_code == IS_NAN


# ---- where values are born


def test_nan_is_born_where_all_inputs_are_finite():
    bad, good = np.array([1.0, np.nan]), np.ones(2)
    assert is_hit("nan_born", bad, inputs=(good, good)) and is_hit("nan_born", [-np.inf], inputs=(good,))
    assert not is_hit("nan_born", bad, inputs=(good, bad)) and not is_hit("nan_born", good, inputs=(bad,))
    assert is_hit("nan_born", bad, inputs=())  # a weight
    missing = found("nan_born", bad)
    assert not missing.hit and missing.error_code == NO_INPUTS
    assert error_texts(NO_INPUTS | NO_RANKS) == [
        "what the operator read is not there",
        "no other rank has a value",
    ]


def reason(kind, output, *inputs):
    hit = found("operator_overflow", output, kind=kind, inputs=inputs)
    assert hit.hit is bool(hit.reason) and hit.error_code == 0
    return hit.reason


INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_that_wrap_around(dtype):
    top, one = np.array([np.iinfo(dtype).max], dtype), np.array([1], dtype)
    with np.errstate(over="ignore"):
        assert reason("Add", top + one, top, one) == "integer overflow"
        assert reason("Mul", top * top, top, top) == "integer overflow"
        assert reason("Square", top * top, top) == "integer overflow"
        assert reason("Sub", ~top - one, ~top, one) == "integer overflow"
    assert reason("Add", top - one + one, top - one, one) == "" and reason("Mul", top * one, top, one) == ""
    assert reason("Sub", top - top, top, top) == ""


def test_the_least_integer_has_no_opposite():
    least = np.array([-128], np.int8)
    assert reason("Neg", -least, least) == "integer overflow"
    assert reason("Abs", np.abs(least), least) == "integer overflow"
    assert reason("Neg", -(least + 1), least + 1) == ""


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_casts_of_what_does_not_fit(dtype):
    with np.errstate(invalid="ignore"):
        for value in (1e20, -1e20, np.nan, np.inf):
            x = np.array([1.0, value], np.float64)
            assert reason("Cast", x.astype(dtype), x) == "integer overflow"
    x = np.array([-3.9, 126.9, 0.0], np.float32)
    assert reason("Cast", x.astype(dtype), x) == ""


def test_halves_that_saturate():
    x = np.array([60000.0], np.float16)
    assert reason("Add", np.array([65504.0], np.float16), x, x) == "float16 saturation"
    assert reason("Add", np.array([-65504.0], np.float16), -x, -x) == "float16 saturation"
    assert reason("Add", np.array([65472.0], np.float16), x, x) == ""  # the number below it
    top = np.array([65504.0], np.float16)
    assert reason("ReLU", top, top) == ""  # it came in so
    assert reason("Add", np.array([65504.0], np.float32), x, x) == ""


def test_divisions_by_zero():
    x, zero = np.array([6, 3], np.int32), np.array([2, 0], np.int32)
    for kind in ("RealDiv", "FloorDiv", "Mod", "FloorMod", "TruncateDiv"):
        assert reason(kind, x, x, zero) == "division by zero" and reason(kind, x, x, x) == ""
    assert reason("Mul", x * zero, x, zero) == ""


def test_without_inputs_only_what_is_not_finite_overflows():
    assert not is_hit("operator_overflow", np.array([65504.0], np.float16), kind="Add")
    assert is_hit("operator_overflow", np.array([np.inf], np.float16), kind="Add")


# ---- values of the steps before


@pytest.mark.parametrize("before", [(2, 3), (1,), (), (4, 0)])
@pytest.mark.parametrize(
    "name", ["weight_not_changed", "weight_change_too_large", "weight_change_too_small", "update_ratio"]
)
def test_a_value_of_another_shape_is_none_to_compare_with(name, before):
    """As of the last batch of an epoch, which is smaller; elements are not stretched over each other."""
    hit = found(name, np.ones((4, 3), np.float32), earlier=(np.ones(before, np.float32),))
    assert not hit.hit and hit.error_code == NO_PREVIOUS


def test_a_memory_has_the_steps_before():
    memory = Memory(condition("dead_relu"), {"steps": 3})
    for step in (0, 1, 2, 3):
        memory.add(("a",), step, np.array([step]))
    assert [int(x[0]) for x in memory.earlier(("a",), 4)] == [3, 2]
    assert [int(x[0]) for x in memory.earlier(("a",), 3)] == [2, 1]  # checked once more
    memory.add(("a",), 7, np.array([7]))  # the steps between were those of other graphs
    memory.add(("a",), 2, np.array([9]))  # checked once more: it is known already, or long gone
    assert [int(x[0]) for x in memory.earlier(("a",), 9)] == [7, 3]
    assert memory.earlier(("b",), 4) == []

    def kept(before):  # what is there of the time before the memory began
        return (np.array([step]) for step in range(before - 1, -1, -1))

    memory.add(("b",), 5, np.array([50]))
    assert [int(x[0]) for x in memory.earlier(("b",), 6, kept)] == [50, 4]
    assert [int(x[0]) for x in memory.earlier(("b",), 5, kept)] == [4, 3]
    assert memory.forget(("a",)) and not memory.forget(("a",)) and memory.earlier(("a",), 9) == []
    memory.clear()
    assert memory.earlier(("b",), 6) == []
    loss = Memory(condition("loss_not_decreasing"), {"window": 2})
    loss.add(("a",), 0, np.ones(2))
    assert loss.earlier(("a",), 1) == []  # of what is no loss nothing is kept


def test_breakpoints_take_what_needs_nothing_else(tmp_path):
    import mycelia as ms

    for name, told in (
        ("update_ratio", "the step before"), ("rank_mismatch", "compares ranks"),
        ("nan_born", "what the operator read"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=told):
            debug.break_if(ms.Tensor([np.nan], ms.float32), name)


def test_ranks_are_compared_in_weights_and_in_what_collectives_give_all_of_them():
    wanted = condition("rank_mismatch")
    assert suits(wanted, "Parameter", "fc.weight") and suits(wanted, "AllReduce", "Default/AllReduce-op0")
    assert not suits(wanted, "ReduceScatter", "Default/ReduceScatter-op0")
    assert not suits(wanted, "Dense", "Default/fc-Dense/Dense-op0")
