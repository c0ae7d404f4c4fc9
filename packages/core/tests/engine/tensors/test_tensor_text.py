"""The text of tensors, as MindSpore writes it."""

import numpy as np
import pytest

import mycelia as ms

SMALL = [
    (ms.Tensor([[1.5, float("nan")]]), "[[ 1.50000000e+00,             nan]]"),
    (ms.Tensor([1.5, -1], ms.float16), "[ 1.5000e+00, -1.0000e+00]"),
    (ms.Tensor([1.5, 1e10], ms.bfloat16), "[        1.5, 9.99922e+09]"),
    (ms.Tensor([7, -200]), "[   7, -200]"),
    (ms.Tensor([True, False]), "[ True, False]"),
    (ms.Tensor([1.5 - 2j]), "[1.5-2j]"),
    (ms.Tensor(123456789.0), "1.23457e+08"),
]


@pytest.mark.parametrize(("tensor", "text"), SMALL)
def test_repr_shows_the_elements(tensor, text):
    assert text in repr(tensor)


def test_axes_are_parted_by_lines_without_blank_ones():
    assert repr(ms.Tensor(np.arange(8).reshape(2, 2, 2))).endswith(
        "[[[0, 1],\n  [2, 3]],\n [[4, 5],\n  [6, 7]]])"
    )


def test_long_axes_are_shortened():
    text = repr(ms.Tensor(np.arange(64).reshape(8, 8)))
    assert "[[ 0,  1,  2 ...  5,  6,  7],\n" in text and "\n ...\n [40," in text


def test_vectors_have_lines_of_equal_length_and_are_shortened_late():
    assert repr(ms.Tensor(np.arange(25))).endswith("22, 23, \n 24])")
    assert repr(ms.Tensor(np.arange(24))).endswith("22, 23\n ])")
    assert "[   0,    1,    2 ...  998,  999, 1000])" in repr(ms.Tensor(np.arange(1001)))


def test_str_is_that_of_numpy():
    assert str(ms.Tensor(16777216.0)) == "16777216.0" and str(ms.Tensor(1e16)) == "1e+16"
    assert str(ms.Tensor([1 / 3, 100], ms.bfloat16)) == "[0.333984 100.000000]"


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ([None], "Tensor(shape=[-1], dtype=Float32, value= )"),
        ([3, None], "Tensor(shape=[3, -1], dtype=Float32, value=\n)"),
    ],
)
def test_open_shapes_have_no_value(shape, text):
    assert repr(ms.Tensor(shape=shape, dtype=ms.float32)) == text
