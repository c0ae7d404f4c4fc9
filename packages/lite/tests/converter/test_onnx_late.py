"""ONNX nodes whose axes, sizes and places are inputs of the model: the same answers as with constants."""

from __future__ import annotations

import numpy as np
import pytest

from .onnx_files import answers, close
from .onnx_models import places

X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def log_sum_exp(x, **how):
    return np.log(np.exp(x).sum(**how))


REDUCTIONS = {
    "ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min,
    "ReduceProd": np.prod, "ReduceL1": lambda x, **how: np.abs(x).sum(**how),
    "ReduceL2": lambda x, **how: np.sqrt((x**2).sum(**how)),
    "ReduceSumSquare": lambda x, **how: (x**2).sum(**how),
    "ReduceLogSum": lambda x, **how: np.log(x.sum(**how)), "ReduceLogSumExp": log_sum_exp,
}  # fmt: skip


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions_along_axes_that_are_data(tmp_path, kind):
    x = np.abs(X) if kind == "ReduceLogSum" else X
    for axes, keep in (((1,), 1), ((-1, 0), 0), ((), 1)):
        along = tuple(axes) or None
        wanted = REDUCTIONS[kind](x.astype(np.float64), axis=along, keepdims=bool(keep)).astype(np.float32)
        close(answers(tmp_path, kind, [x, ints(*axes)], keepdims=keep)[0], wanted, 1e-4)
    close(answers(tmp_path, kind, [x[:, :0], ints(0)])[0], np.zeros((1, 0, 5), np.float32))


def test_reductions_of_nothing_and_over_nothing(tmp_path):
    empty = X[:, :0]
    for kind, wanted in (("ReduceSum", 0), ("ReduceProd", 1), ("ReduceMax", -np.inf), ("ReduceMin", np.inf)):
        found = answers(tmp_path, kind, [empty, ints(1)], keepdims=0)[0]
        close(found, np.full((3, 5), wanted, np.float32))
    close(answers(tmp_path, "ReduceSum", [X, ints()], noop_with_empty_axes=1)[0], X)
    close(answers(tmp_path, "ReduceL2", [X, ints()], noop_with_empty_axes=1)[0], np.abs(X))
    whole = np.array([[3, -4], [2**31 - 1, 1]], np.int32)
    close(
        answers(tmp_path, "ReduceSum", [whole, ints(0)], keepdims=0)[0],
        np.array([-(2**31) + 2, -3], np.int32),
    )


def test_running_sums_triangles_and_the_largest(tmp_path):
    close(answers(tmp_path, "CumSum", [X, np.array(1)])[0], X.cumsum(1), 1e-5)
    backward = np.flip(np.flip(X, 2).cumsum(2), 2) - X
    close(answers(tmp_path, "CumSum", [X, np.array(-1)], exclusive=1, reverse=1)[0], backward, 1e-5)
    for k in (-2, 0, 3, 9):
        close(answers(tmp_path, "Trilu", [X, np.array(k)])[0], np.triu(X, k))
        close(answers(tmp_path, "Trilu", [X, np.array(k)], upper=0)[0], np.tril(X, k))
    values, places = answers(tmp_path, "TopK", [X, ints(2)], 2, axis=1, largest=0)
    close(values, np.sort(X, 1)[:, :2])
    close(places, np.argsort(X, 1)[:, :2])


def test_shapes_that_are_data(tmp_path):
    close(answers(tmp_path, "Reshape", [X, ints(0, -1, 2)])[0], X.reshape(3, 10, 2))
    close(answers(tmp_path, "Unsqueeze", [X, ints(-1, 0)])[0], X[None, ..., None])
    close(answers(tmp_path, "Squeeze", [X[:1, :, :1].copy(), ints(0, -1)])[0], X[0, :, 0])
    close(
        answers(tmp_path, "Expand", [X[:, :1].copy(), ints(2, 1, 4, 1)])[0],
        np.broadcast_to(X[:, :1], (3, 1, 5))[None].repeat(2, 0).repeat(4, 2),
    )
    close(answers(tmp_path, "Tile", [X, ints(2, 1, 3)])[0], np.tile(X, (2, 1, 3)))
    value = np.array([7], np.int32)
    close(answers(tmp_path, "ConstantOfShape", [ints(2, 3)], value=value)[0], np.full((2, 3), 7, np.int32))
    with pytest.raises(RuntimeError, match="does not hold"):
        answers(tmp_path, "Squeeze", [X, ints(1)])


@pytest.mark.parametrize("seed", range(6))
def test_slices_whose_places_are_data(tmp_path, seed):
    random = np.random.default_rng(seed)
    starts, ends = random.integers(-7, 8, (2, 2))
    steps = random.choice([-3, -2, -1, 1, 2, 3], 2)
    first, last = (places(*limits, n) for limits, n in zip(zip(starts, ends, steps), (3, 5)))
    wanted = X[first][:, :, last]
    close(answers(tmp_path, "Slice", [X, starts, ends, ints(0, -1), steps])[0], wanted)


def test_parts_whose_sizes_are_data(tmp_path):
    found = answers(tmp_path, "Split", [X, ints(1, 0, 3)], 3, axis=1)
    for part, wanted in zip(found, np.split(X, (1, 1), 1)):
        close(part, wanted)
    with pytest.raises(RuntimeError, match="does not hold"):
        answers(tmp_path, "Split", [X, ints(1, 1)], 2, axis=1)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pads_that_are_data(tmp_path, mode):
    more = {} if mode != "constant" else dict(constant_values=-3)
    pads = ints(0, 2, 1, 0, 1, 3)
    given = [X, pads] + ([np.float32(-3)] if mode == "constant" else [])
    wanted = np.pad(X, ((0, 0), (2, 1), (1, 3)), mode, **more)
    close(answers(tmp_path, "Pad", given, opset=19, mode=mode)[0], wanted)
    inner = [X, ints(-1, 2), np.float32(5) if mode == "constant" else None, ints(2)]
    cut = np.pad(X[..., 1:], ((0, 0), (0, 0), (0, 2)), mode, **({"constant_values": 5} if more else {}))
    if mode in ("constant", "edge"):
        close(answers(tmp_path, "Pad", inner, opset=19, mode=mode)[0], cut)


def test_rows_of_one_hot_of_a_depth_that_is_data(tmp_path):
    index, values = np.array([[1, -1], [7, 0]]), np.array([2, 5], np.float32)
    wanted = np.full((2, 2, 4), 2, np.float32)
    wanted[0, 0, 1] = wanted[0, 1, 3] = wanted[1, 1, 0] = 5
    close(answers(tmp_path, "OneHot", [index, np.array(4), values])[0], wanted)
    close(answers(tmp_path, "OneHot", [index, np.float32(4), values], axis=0)[0], wanted.transpose(2, 0, 1))
