"""Random graphs of core's ops as `.ms` files answer as core's eager run: dtypes, sizes 0 and 1, huge and tiny
numbers, NaN and infinities, after a resize, and bit by bit the same on any number of threads."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite.converter import ConversionError, convert

ROWS = (3, 1, 0, 40, 3)  # sizes of the open axis, one after the other

# name: (function of tensors, dtypes of operands, dtype of the result or None: that of the first operand,
# whether numbers of the result are the same however it is computed, whether operands must be such numbers)
_OPS = {
    "add": (ops.add, "nn", None, False, False),
    "sub": (ops.sub, "nn", None, False, False),
    "mul": (ops.mul, "nn", None, False, False),
    "div": (ops.div, "ff", None, False, False),
    "max": (ops.maximum, "nn", None, True, True),
    "min": (ops.minimum, "nn", None, True, True),
    "abs": (ops.abs, "n", None, True, False),
    "neg": (ops.neg, "n", None, True, False),
    "relu": (ops.relu, "f", None, True, False),
    "exp": (ops.exp, "f", None, False, True),
    "log": (ops.log, "f", None, False, True),
    "sqrt": (ops.sqrt, "f", None, False, True),
    "tanh": (ops.tanh, "f", None, False, False),
    "sigmoid": (ops.sigmoid, "f", None, False, False),
    "floor": (ops.floor, "f", None, True, True),
    "sign": (ops.sign, "n", None, True, True),
    "less": (ops.less, "nn", "b", True, True),
    "equal": (ops.equal, "nn", "b", True, True),
    "nan": (ops.isnan, "f", "b", True, True),
    "and": (ops.logical_and, "bb", None, True, False),
    "not": (ops.logical_not, "b", None, True, False),
    "where": (ops.where, "bnn", None, True, False),
    "float": (lambda x: x.astype(ms.float32), "i", "f", True, False),
    "count": (lambda x: x.astype(ms.int32), "b", "i", True, False),
    "clip": (lambda x: ops.clamp(x, -2, 3), "n", None, True, False),
    "softmax": (lambda x: ops.softmax(x, -1), "f", None, False, True),
    "sum": (lambda x: ops.sum(x, -1, keepdim=True), "f", None, False, True),
    "largest": (lambda x: ops.amax(x, -1, keepdims=True), "f", None, True, True),
    "turned": (lambda x: ops.transpose(x, (0, 2, 1)), "n", None, True, False),
    "joined": (lambda x, y: ops.concat((x, y), 1), "nn", None, True, False),
    "part": (lambda x: x[:, ::2, 1:], "n", None, True, False),
    "flipped": (lambda x: ops.flip(x, (2,)), "n", None, True, False),
    "flat": (lambda x: x.reshape(x.shape[0], x.shape[1] * x.shape[2], 1), "n", None, True, False),
    "product": (lambda x, y: ops.matmul(x, ops.transpose(y, (0, 2, 1))), "ff", None, False, True),
}  # fmt: skip


def _layer(activation):
    def layer(x):
        rows = 10 * np.sin(np.arange(4 * x.shape[2], dtype=np.float32) + 1).reshape(x.shape[2], 4)
        return activation(ops.matmul(x, ms.Tensor(rows)))

    return layer


_OPS |= {
    f"layer {f.__name__}": (_layer(f), "f", None, False, True)
    for f in (ops.relu, ops.relu6, ops.hardswish, ops.silu, ops.sigmoid, ops.gelu)
}
_DTYPES = {"f": ms.float32, "i": ms.int32, "b": ms.bool_}


class Random(nn.Cell):
    """A graph of inputs [N, 2, 3] and [N, 1, 1] of each dtype that `_OPS` take."""

    def __init__(self, seed: int, steps: int):
        super().__init__()
        self.rng, self.steps = random.Random(seed), []
        values = [(kind, shape, True) for kind in "ffib" for shape in ((2, 3), (1, 1))]
        self.inputs = [(_DTYPES[kind], shape) for kind, shape, _ in values]
        while len(self.steps) < steps:
            self._add(values)
        used = {i for _, given in self.steps for i in given}
        self.outputs = [i for i in range(len(self.inputs), len(values)) if i not in used]

    def _add(self, values):
        name = self.rng.choice(list(_OPS))
        function, kinds, result, exact, needs = _OPS[name]
        number = self.rng.choice("ffi")
        given = []
        for wanted in kinds:
            wanted = number if wanted == "n" else wanted
            fits = [i for i, (kind, _, known) in enumerate(values) if kind == wanted and (known or not needs)]
            if not fits:
                return
            given.append(self.rng.choice(fits[-6:] if self.rng.random() < 0.7 else fits))
        first = values[given[-1]][0] if result is None else result
        try:
            made = function(*(ms.Tensor(np.ones((2, *values[i][1])), _DTYPES[values[i][0]]) for i in given))
        except (ValueError, TypeError, IndexError):
            return  # shapes that do not fit
        if made.ndim != 3 or made.size > 2000:
            return
        known = first != "f" or (exact and all(values[i][2] for i in given))
        values.append((first, tuple(made.shape[1:]), known))
        self.steps.append((function, given))

    def construct(self, *inputs):
        values = list(inputs)
        for function, given in self.steps:
            values.append(function(*(values[i] for i in given)))
        return tuple(values[i] for i in self.outputs)


def numbers(dtype, shape, rng):
    if dtype == ms.bool_:
        return rng.random(shape) < 0.5
    if dtype == ms.int32:
        return rng.choice([0, 1, -1, 7, -(2**31), 2**31 - 1, 1 << 20], shape).astype(np.int32)
    ordinary = rng.normal(size=shape).astype(np.float32)
    if rng.random() < 0.4:
        return ordinary
    special = np.float32([0, -0.0, 1e30, -1e30, 1e-30, 1e-41, -1e-41, np.inf, -np.inf, np.nan, 0.5, 2])
    return np.where(rng.random(shape) < 0.4, rng.choice(special, shape), ordinary).astype(np.float32)


def on(path, threads, runs):
    context = mslite.Context()
    context.cpu.thread_num = threads
    model = mslite.Model()
    model.build_from_file(path, context=context)
    found = []
    for given in runs:
        model.resize(model.get_inputs(), [list(a.shape) for a in given])
        for tensor, array in zip(model.get_inputs(), given, strict=True):
            tensor.set_data_from_numpy(array)
        found.append([t.get_data_to_numpy() for t in model.predict(model.get_inputs())])
    return found


def agree(found, wanted):
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    if wanted.dtype != np.float32:
        np.testing.assert_array_equal(found, wanted)
        return
    finite = np.abs(wanted[np.isfinite(wanted)])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * min(finite.max(initial=0), 1e3))


def converted(net, rows, folder):
    """The `.ms` file of the net with inputs of so many rows."""
    declared = [ms.Tensor(shape=[rows, *shape], dtype=dtype) for dtype, shape in net.inputs]
    ms.export(net, *declared, file_name=str(folder / "net"), file_format="MINDIR")
    return convert(mslite.FmkType.MINDIR, str(folder / "net.mindir"), str(folder / "net")).path


@pytest.mark.fuzz(40)
def test_random_graphs_answer_as_core(seed, tmp_path):
    net, rng, sizes = Random(seed, 8), np.random.default_rng(seed), ROWS
    try:
        path = converted(net, ms.Symbol(), tmp_path)
    except (ConversionError, ValueError, RuntimeError):  # not every op can leave a size open
        sizes = [ROWS[seed % len(ROWS)]] * 2
        path = converted(net, sizes[0], tmp_path)
    runs = [[numbers(dtype, (n, *shape), rng) for dtype, shape in net.inputs] for n in sizes]
    with np.errstate(all="ignore"):
        expected = [[t.asnumpy() for t in net(*map(ms.Tensor, given))] for given in runs]
    answers = on(path, 1, runs)
    for found, wanted in zip(answers, expected, strict=True):
        for one, other in zip(found, wanted, strict=True):
            agree(one, other)
    for threads in (2, 3):
        for one, other in zip(answers, on(path, threads, runs), strict=True):
            assert [a.tobytes() for a in one] == [a.tobytes() for a in other]


@pytest.mark.parametrize("shape", [(3, 0, 1), (2, 0), (0, 5), (1, 1, 0, 7)])
def test_values_without_elements_get_other_shapes(shape, tmp_path):
    class Net(nn.Cell):
        def construct(self, x):
            return (ops.abs(x).reshape(shape) + 1,)

    net = Net()
    net.inputs = [(ms.float32, (2, 0))]
    (found,) = on(converted(net, 3, tmp_path), 1, [[np.ones((3, 2, 0), np.float32)]])
    assert found[0].shape == shape and found[0].dtype == np.float32
