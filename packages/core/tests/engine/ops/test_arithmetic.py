"""What the samples of the elementwise ops do not show: promotion, numbers,
limits of integers, clipping, methods.
"""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, dtypes, ops


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("int8", "uint8", "int16"),
        ("int64", "float16", "float16"),
        ("bfloat16", "float16", "float32"),
        ("bool", "int32", "int32"),
        ("float32", "float64", "float64"),
    ],
)
def test_operands_meet_in_mindspores_common_dtype(left, right, result):
    a, b = Tensor([1, 1], dtypes.as_dtype(left)), Tensor([1, 1], dtypes.as_dtype(right))
    assert (a + b).dtype.name == (b + a).dtype.name == result


def test_wide_unsigned_integers_mix_with_nothing_else():
    with pytest.raises(TypeError, match="Type implicit conversion between UInt32 and Int64 is not supported"):
        Tensor([1], ms.uint32) + Tensor([1], ms.int64)


@pytest.mark.parametrize(
    ("dtype", "number", "result"),
    [("int8", 2, "int8"), ("int8", 2.5, "float32"), ("bool", 2, "int64"), ("float16", 2.5, "float16")],
)
def test_numbers_are_weak_on_either_side(dtype, number, result):
    x = Tensor([1, 0], dtypes.as_dtype(dtype))
    assert (x * number).dtype.name == (number * x).dtype.name == result


def test_true_division_of_integers_is_float32():
    assert (Tensor([7, 8], ms.int64) / 2).dtype is ms.float32
    assert (Tensor([True]) / Tensor([True])).dtype is ms.float32


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integer_division_by_zero_saturates_and_does_not_trap(dtype):
    x, zero = Tensor(np.array([5, -5, 0], dtype)), Tensor(np.zeros(3, dtype))
    limits = np.iinfo(dtype)
    assert (x // zero).asnumpy().tolist() == [limits.max, limits.min, 0]
    assert (x % zero).asnumpy().tolist() == [5, -5, 0]
    smallest = Tensor(np.array([limits.min], dtype))
    assert (smallest // -1).asnumpy().tolist() == [limits.min]
    assert (smallest % -1).asnumpy().tolist() == [0]


def test_remainder_takes_the_divisors_sign_and_fmod_the_dividends():
    x, y = Tensor([7.0, -7.0, 7.0, -7.0]), Tensor([3.0, 3.0, -3.0, -3.0])
    assert (x % y).asnumpy().tolist() == [1, 2, -2, -1]
    assert ops.fmod(x, y).asnumpy().tolist() == [1, -1, 1, -1]


def test_float_remainders_are_exact():
    rng = np.random.default_rng(0)
    x = (rng.uniform(-1, 1, 5000) * 10.0 ** rng.integers(-6, 7, 5000)).astype(np.float32)
    y = (rng.uniform(0.1, 1, 5000) * 10.0 ** rng.integers(-2, 3, 5000)).astype(np.float32)
    np.testing.assert_array_equal(ops.fmod(Tensor(x), Tensor(y)).asnumpy(), np.fmod(x, y))
    np.testing.assert_array_equal((Tensor(x) % Tensor(y)).asnumpy(), np.mod(x, y))


def test_division_modes():
    x = Tensor([7.0, -7.0])
    assert ops.div(x, 2, rounding_mode="floor").asnumpy().tolist() == [3, -4]
    assert ops.div(x, 2, rounding_mode="trunc").asnumpy().tolist() == [3, -3]
    with pytest.raises(ValueError, match="rounding_mode"):
        ops.div(x, 2, rounding_mode="round")


def test_clamp_takes_numbers_tensors_and_either_bound():
    x = Tensor([[3.0, 1.0, 2.0], [4.0, 0.0, 5.0]])
    assert ops.clamp(x, 1, 3).asnumpy().tolist() == [[3, 1, 2], [3, 1, 3]]
    assert ops.clamp(x, None, Tensor([2.0])).asnumpy().max() == 2
    assert ops.clip_by_value(x, 3, 1).asnumpy().tolist() == [[1, 1, 1], [1, 1, 1]]
    assert ops.clamp(x.astype(ms.int32), 1.5, 3.5).dtype is ms.float32
    with pytest.raises(ValueError, match="at least one"):
        ops.clamp(x)


def test_bitwise_operators_refuse_floats():
    with pytest.raises(TypeError, match="integer or bool"):
        Tensor([1.0]) & Tensor([1.0])


def test_short_periods_broadcast_like_long_ones():
    rng = np.random.default_rng(1)
    for shape, other in (
        ((2000, 10), (10,)),
        ((128, 512, 2), (512, 1)),
        ((33, 1, 7), (5, 1)),
        ((3, 4), (3, 1)),
    ):
        x, y = rng.normal(size=shape).astype(np.float32), rng.normal(size=other).astype(np.float32)
        np.testing.assert_array_equal((Tensor(x) - Tensor(y)).asnumpy(), x - y)
        np.testing.assert_array_equal((Tensor(y) - Tensor(x)).asnumpy(), y - x)


@pytest.mark.parametrize("name", ["sin", "exp", "log", "erf", "tanh", "lgamma"])
def test_functions_of_integers_are_float32(name):
    assert getattr(ops, name)(Tensor([1, 2, 3])).dtype is ms.float32


def test_methods_that_cast():
    x = Tensor([1.9, -1.9])
    assert x.int().asnumpy().tolist() == x.astype("int32").asnumpy().tolist() == [1, -1]
    assert x.half().dtype is ms.float16 and x.to(ms.float64).dtype is ms.float64
    assert x.type() == "Float32" and x.type(ms.bool_).dtype is ms.bool_
    assert x.astype("float").dtype is ms.float64


def test_in_place_methods_replace_the_value():
    x = Tensor([1.0, 2.0])
    assert x.add_(1, alpha=2) is x
    assert x.mul_(2).asnumpy().tolist() == [6, 8]


@pytest.mark.parametrize("call, expected", [
    (lambda x: ops.reshape(x, Tensor([4])), [1, 2, 3, 4]),
    (lambda x: ops.reshape(x, [Tensor(4), 1]), [[1], [2], [3], [4]]),
    (lambda x: ops.sum(x, Tensor(0)), [4, 6]),
    (lambda x: ops.tile(x, Tensor([1, 2])), [[1, 2, 1, 2], [3, 4, 3, 4]]),
    (lambda x: ops.gather(x, Tensor([1]), Tensor(0)), [[3, 4]]),
    (lambda x: ops.concat((x, x), Tensor(1)), [[1, 2, 1, 2], [3, 4, 3, 4]]),
])  # fmt: skip
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_tensors_stand_for_shapes_and_axes(call, expected, compiled):
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (ms.jit(call) if compiled else call)(x).asnumpy().tolist() == expected


@pytest.mark.parametrize("shapes", [((3, 1, 0), (1, 2, 1)), ((3, 1, 0, 1), (1, 2, 1, 3)), ((2, 0), (1, 1))])
def test_broadcasting_of_nothing_does_not_trap(shapes):
    left, right = (ops.ones(shape, ms.float32) for shape in shapes)
    for made in (left * right, right - left, left > right, ops.maximum(right, left)):
        assert made.shape == np.broadcast_shapes(*shapes) and made.asnumpy().size == 0
