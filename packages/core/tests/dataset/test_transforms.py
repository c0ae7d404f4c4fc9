"""Transforms of any column: results, dtypes and errors as in MindSpore."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds
from mycelia.dataset import transforms as t

R = t.Relational
f32 = np.float32


@pytest.mark.parametrize(
    ("transform", "value", "expected"),
    [
        (t.Concatenate(0, np.array([1.0], f32), np.array([9.0], f32)), np.array([2, 3], f32), [1, 2, 3, 9]),
        (t.Fill(3.7), np.array([1, 2]), [3, 3]),
        (t.Fill(300), np.array([1], np.uint8), [44]),
        (t.Mask(R.EQ, 3), np.array([1, 3, 5]), [False, True, False]),
        (t.Mask(R.LT, "b"), np.array(["a", "b"]), [True, False]),
        (t.Mask(R.GE, 3, ms.uint16), np.array([1.0, 3]), [0, 1]),
        (t.OneHot(3, 0.3), np.array([1], np.int32), [[0.1, 0.8, 0.1]]),
        (t.PadEnd([5], 10), np.array([1, 2, 3]), [1, 2, 3, 10, 10]),
        (t.PadEnd([2]), np.array([1, 2, 3]), [1, 2]),
        (t.PadEnd([3], "p"), np.array(["a"]), ["a", "p", "p"]),
        (t.Slice(0), np.array([3, 4]), [3]),
        (t.Slice(None, [-1]), np.array([[3, 4], [5, 6]]), [[4], [6]]),
        (t.Slice(slice(1, 3)), np.array([3, 4, 5]), [4, 5]),
        (t.TypeCast(ms.int32), np.array([3.7, -4.2]), [3, -4]),
        (t.TypeCast(float), np.array([1]), [1.0]),
        (t.RandomApply([t.Fill(1)], 1.0), np.array([3]), [1]),
        (t.RandomChoice([t.Fill(1)]), np.array([3]), [1]),
        (t.RandomOrder([t.Fill(1), t.Fill(1)]), np.array([3]), [1]),
        (t.Compose([t.Duplicate(), t.Concatenate()]), np.array([3, 4]), [3, 4, 3, 4]),
    ],
)
def test_values(transform, value, expected):
    found = transform(value)
    np.testing.assert_array_equal(found, expected) if found.dtype.kind == "U" else np.testing.assert_allclose(
        found, expected, rtol=1e-6
    )


def test_unique_and_dtypes():
    values, index, count = t.Unique()(np.array([[3, 1], [3, 2]], f32))
    assert values.tolist() == [3, 1, 2] and index.tolist() == [0, 1, 0, 2] and count.tolist() == [2, 1, 1]
    assert values.dtype == f32 and index.dtype == count.dtype == np.int32
    assert t.OneHot(3, 0.1)(np.int32(1)).dtype == np.float64 and t.OneHot(3)(np.int32(1)).dtype == np.int32


def test_random_transforms_follow_the_seed():
    def run():
        data = ds.NumpySlicesDataset(np.arange(40), shuffle=False)
        data = data.map(t.RandomApply([lambda x: x * 0 - 1], 0.5))
        return [int(row[0]) for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]

    ds.config.set_seed(3)
    changed = [i for i, v in enumerate(run()) if v == -1]
    assert 5 < len(changed) < 35


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (ValueError, lambda: t.Concatenate(1)),
        (TypeError, lambda: t.Concatenate(0, [1])),
        (RuntimeError, lambda: t.Concatenate(0, np.array([1.0]))(np.array([1]))),
        (RuntimeError, lambda: t.Duplicate()(np.zeros(1), np.zeros(1))),
        (TypeError, lambda: t.Fill([1])),
        (TypeError, lambda: t.Fill(1)(None)),
        (RuntimeError, lambda: t.Fill("x")(np.zeros(1))),
        (TypeError, lambda: t.Mask(10, 1)),
        (RuntimeError, lambda: t.Mask(R.EQ, 1, ms.string)),
        (TypeError, lambda: t.OneHot(True)),
        (ValueError, lambda: t.PadEnd([0])),
        (TypeError, lambda: t.PadEnd(["a"])),
        (RuntimeError, lambda: t.PadEnd([5, 2])(np.zeros(1))),
        (RuntimeError, lambda: t.Plugin("a.so", "f")(np.zeros(1))),
        (ValueError, lambda: t.RandomApply([t.Fill(1)], 1.5)),
        (ValueError, lambda: t.RandomChoice([])),
        (ValueError, lambda: t.Compose([t.Fill])),
        (TypeError, lambda: t.Compose([1])),
        (TypeError, lambda: t.Slice("a")),
        (RuntimeError, lambda: t.Slice(5)(np.zeros(2))),
        (TypeError, lambda: t.TypeCast("abc")),
        (RuntimeError, lambda: t.TypeCast(ms.int32)(np.array(["3"]))),
        (RuntimeError, lambda: t.Unique()(np.array(["a"]))),
    ],
)
def test_errors(kind, wrong):
    with pytest.raises(kind):
        wrong()
