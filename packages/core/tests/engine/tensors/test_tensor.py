"""Tensor and Parameter: construction, printing, promotion, conversion, as MindSpore 2.10 does."""

import gc
import io
import pickle
import weakref

import numpy as np
import pytest

import mycelia as ms
from mycelia import dtypes


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (True, ms.bool_, ()), (3, ms.int64, ()), (2.5, ms.float32, ()),
        ([1, 2], ms.int64, (2,)), ([1.0, 2], ms.float32, (2,)),
        ([True, False], ms.bool_, (2,)), ([[1, 2], [3, 4.5]], ms.float32, (2, 2)),
        (np.float64(2.0), ms.float64, ()),
        (np.array([1.5]), ms.float64, (1,)), (np.arange(3, dtype=np.int8), ms.int8, (3,)),
        ([], ms.float32, (0,)),
    ],
)  # fmt: skip
def test_default_dtypes(data, dtype, shape):
    made = ms.Tensor(data)
    assert made.dtype is dtype
    assert made.shape == shape


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (3.0, "Tensor(shape=[], dtype=Float32, value= 3)"),
        (1.23456789, "Tensor(shape=[], dtype=Float32, value= 1.23457)"),
        ([1.0, 2.0], "Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])"),
        ([[1, 2], [3, 4]], "Tensor(shape=[2, 2], dtype=Int64, value=\n[[1, 2],\n [3, 4]])"),
        ([True, False], "Tensor(shape=[2], dtype=Bool, value= [ True, False])"),
        (np.zeros((0, 3)), "Tensor(shape=[0, 3], dtype=Float64, value=\n)"),
    ],
)
def test_repr_is_as_mindspore_prints_it(data, text):
    assert repr(ms.Tensor(data)) == text


def test_str_is_as_numpy_prints():
    assert str(ms.Tensor([[1.5, 2.25]])) == "[[1.5  2.25]]"
    assert str(ms.Tensor(3)) == "3"


def test_copy_and_share():
    source = np.arange(4, dtype=np.float32)
    copied, shared = ms.Tensor(source), ms.Tensor.from_numpy(source)
    source[0] = 9
    assert copied.asnumpy()[0] == 0
    assert shared.asnumpy()[0] == 9
    assert shared.asnumpy().ctypes.data == source.ctypes.data


def test_every_dtype_survives_a_round_trip():
    for dtype in dtypes.ALL:
        values = np.array([0, 1, 2])
        made = ms.Tensor(values.astype(np.float32 if dtype is ms.bfloat16 else dtype.np), dtype)
        assert made.dtype is dtype
        np.testing.assert_array_equal(
            made.asnumpy().real.astype(np.float64), np.array([0, 1, 1 if dtype is ms.bool_ else 2])
        )


def test_bfloat16_rounds_to_nearest_even():
    assert ms.Tensor([1.00390625], ms.bfloat16).asnumpy()[0] == 1.0  # halfway: the even neighbour
    assert ms.Tensor([1.01171875], ms.bfloat16).asnumpy()[0] == np.float32(1.015625)


PROMOTIONS = [
    (ms.bool_, ms.int8, ms.int8), (ms.uint8, ms.int8, ms.int16), (ms.uint8, ms.int64, ms.int64),
    (ms.int32, ms.float16, ms.float16),
    (ms.float16, ms.bfloat16, ms.float32), (ms.float32, ms.float64, ms.float64),
    (ms.int64, ms.float32, ms.float32),
    (ms.bool_, ms.uint32, ms.uint32), (ms.float64, ms.complex64, ms.complex128),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "result"), PROMOTIONS)
def test_promotion_of_tensors(a, b, result):
    assert dtypes.promote(a, b) is result
    assert dtypes.promote(b, a) is result


def test_wide_unsigned_integers_do_not_mix():
    with pytest.raises(TypeError, match="Type implicit conversion between UInt16 and Int8 is not supported"):
        ms.Tensor([1], ms.uint16) + ms.Tensor([1], ms.int8)


@pytest.mark.parametrize(
    ("dtype", "number", "result"),
    [
        (ms.bool_, 2, ms.int64), (ms.int8, 2, ms.int8), (ms.int32, 1.5, ms.float32),
        (ms.float16, 1.5, ms.float16),
        (ms.bfloat16, 3, ms.bfloat16), (ms.float64, 1.5, ms.float64), (ms.int32, True, ms.int32),
        (ms.bool_, 0.5, ms.float32),
    ],
)  # fmt: skip
def test_python_numbers_are_weak_on_either_side(dtype, number, result):
    tensor = ms.Tensor([1], dtype)
    assert (tensor + number).dtype is result
    assert (number + tensor).dtype is result


def test_division_of_integers_is_float32():
    assert (ms.Tensor([7]) / ms.Tensor([2])).dtype is ms.float32
    assert float(ms.Tensor(7) / 2) == 3.5


def test_integer_division_by_zero_does_not_crash():
    np.testing.assert_array_equal((ms.Tensor([5, -5, 0], ms.int32) // 0).asnumpy(), [2**31 - 1, -(2**31), 0])


def test_value_conversions():
    assert int(ms.Tensor(3)) == 3 and float(ms.Tensor(2.5)) == 2.5 and bool(ms.Tensor([1])) is True
    assert [10, 20, 30][ms.Tensor(1)] == 20
    with pytest.raises(ValueError, match="more than one element is ambiguous"):
        bool(ms.Tensor([1, 2]))
    with pytest.raises(ValueError, match=r"one element, but the shape is \(2,\)"):
        ms.Tensor([1, 2]).item()
    with pytest.raises(ValueError, match="only an integer or bool tensor"):
        [1, 2][ms.Tensor(1.0)]
    with pytest.raises(TypeError, match="0-d"):
        len(ms.Tensor(1.0))


def test_numpy_sees_and_changes_the_memory():
    tensor = ms.Tensor([1.0, 2.0])
    view = tensor.asnumpy()
    view[0] = 7
    assert float(tensor[0]) == 7
    tensor[1] = 9.0
    assert view[1] == 9
    np.testing.assert_array_equal(np.asarray(memoryview(tensor)), [7, 9])


def test_dlpack_shares_memory_both_ways():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = ms.Tensor._from_dlpack(array.__dlpack__())
    assert tensor.shape == (2, 3) and tensor._data_ptr == array.ctypes.data
    back = np.from_dlpack(tensor)
    np.testing.assert_array_equal(back, array)
    assert back.ctypes.data == array.ctypes.data


def test_in_place_update_of_one_tensor_leaves_others_alone():
    x = ms.Tensor([1.0, 2.0])
    y = x.reshape((2, 1))
    x[0] = 5.0
    assert float(y[0, 0]) == 1.0


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@pytest.mark.parametrize("values", [1, [], [[1, 0], [1, 1]]], ids=str)
def test_numpy_sees_values_and_never_bits(dtype, values):
    tensor = ms.Tensor(values, dtype)
    seen = tensor.asnumpy()
    assert seen.dtype == (np.float32 if dtype is ms.bfloat16 else dtype.np)
    for made in (
        np.asarray(tensor), np.array(tensor), np.array(tensor, copy=True), tensor.__array__(), tensor.numpy(),
        np.concatenate([np.atleast_1d(tensor)]).reshape(tensor.shape), np.stack([tensor])[0],
    ):  # fmt: skip
        assert made.dtype == seen.dtype and made.shape == tensor.shape
        np.testing.assert_array_equal(made, values)
    for other in (np.complex64, np.complex128):
        for made in (np.asarray(tensor, dtype=other), tensor.__array__(other), tensor.__array__(dtype=other)):
            assert made.dtype == other
            np.testing.assert_array_equal(made, values)
    assert tensor.tolist() == values
    again = ms.Tensor(np.asarray(tensor), dtype)
    np.testing.assert_array_equal(again.asnumpy(), seen)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_the_copy_argument_of_numpy_is_obeyed(dtype):
    tensor = ms.Tensor([1, 0], dtype)
    assert not np.shares_memory(tensor.__array__(copy=True), np.asarray(tensor))
    assert not np.shares_memory(tensor.__array__(tensor.asnumpy().dtype, True), np.asarray(tensor))
    if dtype is ms.bfloat16:
        with pytest.raises(ValueError, match="copy must not be False"):
            tensor.__array__(copy=False)
        with pytest.raises(BufferError, match="asnumpy"):
            memoryview(tensor)
        file = io.BytesIO()
        file.write(tensor)  # plain bytes are no numbers
        assert file.getvalue() == b"\x80\x3f\x00\x00"
    else:
        assert np.shares_memory(tensor.__array__(copy=False), np.asarray(tensor))
    other = np.complex64 if dtype is ms.complex128 else np.complex128
    with pytest.raises(ValueError, match="copy must not be False"):
        tensor.__array__(other, copy=False)
    with pytest.raises(TypeError, match="kind"):
        tensor.__array__(kind=1)


def test_a_list_of_bfloat16_tensors_is_bfloat16():
    tensor = ms.Tensor([1.5, -2.0], ms.bfloat16)
    made = ms.Tensor([[tensor, tensor]])
    assert made.dtype is ms.bfloat16 and made.asnumpy().tolist() == [[[1.5, -2.0]] * 2]
    assert ms.Tensor([tensor[0], ms.Tensor(2.0)]).dtype is ms.float32


def test_pickle():
    for tensor in (
        ms.Tensor([[1, 2]]),
        ms.Tensor([1.5], ms.bfloat16),
        ms.Parameter(ms.Tensor([2.0]), name="w", requires_grad=False),
    ):
        again = pickle.loads(pickle.dumps(tensor))
        assert again.dtype is tensor.dtype
        np.testing.assert_array_equal(again.asnumpy(), tensor.asnumpy())
    assert again.name == "w" and again.requires_grad is False


def test_parameter_is_as_mindspore_prints_it():
    p = ms.Parameter(ms.Tensor(np.ones((2, 3), np.float32)), name="fc.weight")
    assert repr(p) == "Parameter (name=fc.weight, shape=(2, 3), dtype=Float32, requires_grad=True)"


def test_set_data_takes_shape_but_keeps_the_dtype():
    p = ms.Parameter(ms.Tensor([1, 2]), name="n")
    p.set_data(ms.Tensor([1.5, 2.5, 3.5]))
    assert p.dtype is ms.int64 and p.asnumpy().tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="'n' takes a Tensor, an int or a float, but got ndarray"):
        p.set_data(p.asnumpy())


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ms.Tensor("text"), TypeError, "input_data must be a Tensor, a number"),
        (lambda: ms.Tensor([[1, 2], [3]]), TypeError, "regular nested list"),
        (lambda: ms.Tensor(["a"]), TypeError, "must hold numbers"),
        (lambda: ms.Tensor(np.zeros((1,) * 9)), ValueError, "at most 8 dimensions"),
        (lambda: ms.Tensor([1], "float33"), TypeError, "dtype must be a mycelia dtype"),
        (lambda: ms.Tensor(2**70), RuntimeError, "does not fit into int64"),
        (lambda: ms.Tensor([1], np.float32), TypeError, "dtype must be a mycelia dtype"),
        (lambda: ms.Tensor([1], int), TypeError, "dtype must be a mycelia dtype"),
        (lambda: ms.Tensor(np.array([{}])), TypeError, "initializing tensor by numpy array failed"),
        (lambda: ms.Tensor(), TypeError, "dtype must be given"),
        (lambda: ms.Parameter(None), TypeError, "default_input must be"),
        (lambda: ms.Parameter(1.0, name=3), ValueError, "name must be a str"),
        (lambda: ms.ParameterTuple([1]), TypeError, "every member must be a Parameter"),
        (lambda: ms.Tensor([1.0]).nothing, AttributeError, "nothing"),
    ],
)
def test_bad_arguments_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_tensor_keeps_attributes_and_cycles_through_them_are_collected():
    class Owner:
        pass

    owner, x = Owner(), ms.Tensor([1.0])
    x.owner, x.note, owner.x = owner, "scale", x
    assert x.note == "scale" and vars(x)["owner"] is owner
    del x.note
    assert not hasattr(x, "note") and not hasattr(ms.Tensor([1.0]), "owner")
    alive = weakref.ref(owner)
    del owner, x
    gc.collect()
    assert alive() is None


def test_numpy_takes_sizes_from_tensors():
    assert np.ones(ms.Tensor([3, 2])).shape == (3, 2)
    assert np.zeros(ms.Tensor(4)).shape == (4,)
    assert np.zeros((ms.Tensor(2), ms.Tensor([5]))).shape == (2, 5)


def test_integer_and_bool_tensors_of_one_element_are_indices():
    words = ["no", "yes"]
    assert words[ms.Tensor(True)] == "yes" and words[ms.Tensor([0])] == "no"
    with pytest.raises(ValueError, match="Float32"):
        words[ms.Tensor(1.0)]


def test_missing_attribute_names_the_type():
    with pytest.raises(AttributeError, match="^'Tensor' object has no attribute 'nothing_like_it'"):
        getattr(ms.Tensor([1]), "nothing_like_it")  # noqa: B009
