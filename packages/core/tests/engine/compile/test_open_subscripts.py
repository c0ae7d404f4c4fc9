"""Open sizes inside of subscripts and attributes."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops


def rows(n, width=3):
    return Tensor(np.random.default_rng(n).normal(size=(n, width)).astype(np.float32))


# ---- sizes inside of subscripts and attributes

TABLE = rows(128, 3)


def positions(x):
    return ops.arange(x.shape[0]).astype(ms.float32)[:, None]


def scores(x):
    at = ops.arange(len(x))
    return ops.where(at[:, None] >= at[None], x @ x.T, -1e9)


def written(x):
    y = ops.zeros((128, 3), ms.float32)
    y[: len(x)] = x
    y[2 * len(x) - 1] = x[0]
    return y


OPEN = {
    "slice of a table": lambda x: x + TABLE[: x.shape[0]],
    "slice of a table's end": lambda x: x + TABLE[128 - x.shape[0] :],
    "slice from the end": lambda x: x + TABLE[-x.shape[0] :],
    "slice with a step": lambda x: x[::3] * 2,
    "slice with a step of an open part": lambda x: TABLE[1 : x.shape[0] : 2],
    "slice backwards": lambda x: x[::-2] + x[x.shape[0] - 1],
    "slice with two axes": lambda x: x[x.shape[0] // 2 :, :2],
    "rounded slice": lambda x: TABLE[: (x.shape[0] + 7) // 8 * 8],
    "row of an open number": lambda x: TABLE[x.shape[0] - 1] + x[x.shape[0] // 2],
    "arange": lambda x: x + positions(x),
    "linspace": lambda x: x + ops.linspace(0.0, 1.0, x.shape[0])[:, None],
    "full": lambda x: x + ops.full((x.shape[0], 3), 2.0),
    "zeros": lambda x: x + ops.zeros((2, x.shape[0], 3), ms.float32),
    "tile": lambda x: ops.tile(TABLE[:1], (x.shape[0], 1)) + x,
    "broadcast_to": lambda x: ops.broadcast_to(TABLE[:1], (x.shape[0], 3)) + x,
    "reshape": lambda x: x.reshape(3, x.shape[0]).reshape(-1),
    "pad": lambda x: ops.pad(x, (0, 0, 1, 128 - x.shape[0])),
    "split": lambda x: ops.split(ops.concat([x, x * 2]), x.shape[0])[1],
    "split by parts": lambda x: ops.split(ops.concat([x, x * 2]), (x.shape[0], x.shape[0]))[1],
    "narrow": lambda x: ops.narrow(TABLE, 0, 0, x.shape[0]) + x,
    "strided_slice": lambda x: ops.strided_slice(x, (0, 0), (x.shape[0] - 1, 3), (1, 1)),
    "gather": lambda x: ops.gather(TABLE, ops.arange(x.shape[0]), 0) + x,
    "one_hot": lambda x: ops.one_hot(ops.arange(x.shape[0]), x.shape[0], Tensor(1.0), Tensor(0.0)),
    "tril": lambda x: ops.tril(ops.ones((x.shape[0], x.shape[0]), ms.float32)) @ x,
    "triu": lambda x: ops.triu(ops.ones((x.shape[0], x.shape[0]), ms.float32), 1) @ x,
    "causal mask": scores,
    "mask by position": lambda x: x.masked_fill(ops.arange(x.shape[0])[:, None] > 3, 0.0),
    "written slices": written,
}


@pytest.mark.parametrize("name", OPEN)
def test_open_sizes_in_subscripts_and_attributes_are_formulas(name):
    compiled = ms.jit(OPEN[name])
    for n in (*range(4, 64, 3), 17, 60):
        np.testing.assert_allclose(
            compiled(rows(n)).asnumpy(), OPEN[name](rows(n)).asnumpy(), rtol=1e-5, atol=1e-6
        )
    assert compiled.cache_info().captures <= 2


@pytest.mark.parametrize("step", [1, 2, 5, -1, -2, -5])
def test_slices_with_open_limits_are_those_of_python(step):
    limits = (None, 0, 1, 3, -1, -3, 60, -60)

    def parts(x):
        n = x.shape[0]
        found = []
        for start in (*limits, n, n - 2, n + 1, -n, -n - 1):
            for stop in (None, 0, 2, -2, n, n // 2, -n, n + 3):
                found.append(TABLE[start:stop:step].sum() + x[start:stop:step].sum())
        return ops.stack(found)

    compiled = ms.jit(parts)
    for n in (20, 16, 17, 24):
        x = rows(n)
        np.testing.assert_allclose(compiled(x).asnumpy(), parts(x).asnumpy(), rtol=1e-4, atol=1e-4)
    assert compiled.cache_info().captures == 2
