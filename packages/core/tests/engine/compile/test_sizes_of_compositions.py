"""Functions that are made of ops and compute places from sizes keep one capture for all sizes."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops

SIZES = (7, 4, 12, 5, 10, 31, 1, 3, 2)


def positive(*shape):
    return Tensor(np.random.default_rng(sum(shape)).uniform(0.1, 0.9, shape).astype(np.float32))


def lengths(n):
    return Tensor(np.random.default_rng(n).integers(0, 5, n))


def square(n):
    return positive(n, n)


def vector(n):
    return positive(n)


def rows(n):
    return positive(n, 3)


PADDED = ("edge", "wrap", "symmetric", "reflect")
CASES = {
    "stft": (lambda x: ops.stft(x, 4, 2, 4), lambda n: positive(2, n + 8)),
    "stft with a window": (lambda x: ops.stft(x, 8, 3, 4, ops.ones(4), False), lambda n: positive(n + 8)),
    "pdist": (ops.pdist, rows),
    "pdist of other columns": (lambda x: ops.pdist(x, 1.0), lambda n: positive(3, n)),
    "matrix_diag": (ops.matrix_diag, lambda n: positive(2, n)),
    "matrix_diag above": (lambda x: ops.matrix_diag(x, 1, padding_value=2.5), vector),
    "matrix_diag of a stripe": (
        lambda x: ops.matrix_diag(x, (-1, 1), align="LEFT_RIGHT"),
        lambda n: positive(3, n + 1),
    ),
    "matrix_diag_part": (lambda x: ops.matrix_diag_part(x, 0, 0.0), square),
    "matrix_diag_part of a stripe": (
        lambda x: ops.matrix_diag_part(x, (-1, 1), 2.5),
        lambda n: positive(2, n + 1, n + 3),
    ),
    "matrix_set_diag": (lambda x: ops.matrix_set_diag(x, x[:, 0] + 1), square),
    "matrix_set_diag of a stripe": (
        lambda x: ops.matrix_set_diag(x, x[:, :2].T, (-1, 0), "RIGHT_RIGHT"),
        lambda n: square(n + 1),
    ),
    "MatrixBandPart": (lambda x: ops.MatrixBandPart()(x, 1, -1), lambda n: positive(n, n + 1)),
    "diag": (ops.diag, vector),
    "diag_embed": (ops.diag_embed, lambda n: positive(2, n)),
    "diagonal_scatter": (lambda x: ops.diagonal_scatter(x, x[:, 0]), square),
    "slice_scatter": (lambda x: ops.slice_scatter(x, ops.zeros((1, 3)), 0, 0, 1), rows),
    "slice_scatter from the end": (lambda x: ops.slice_scatter(x, x[:2] * 2, 0, -2), lambda n: rows(n + 1)),
    "select_scatter": (lambda x: ops.select_scatter(x, ops.zeros(3), 0, -1), rows),
    "empty_like": (lambda x: x + ops.zeros_like(ops.empty_like(x)), rows),
    "scalar_to_array": (lambda x: x * ops.scalar_to_array(x.shape[0]), rows),
    "scalar_to_tensor": (lambda x: x * ops.scalar_to_tensor(x.shape[0] / 3), rows),
    "combinations": (ops.combinations, vector),
    "combinations of three": (lambda x: ops.combinations(x, 3), vector),
    "combinations again": (lambda x: ops.combinations(x, 3, True), lambda n: vector(min(n, 12))),
    "split by sizes": (lambda x: ops.split(x, [1, x.shape[0] - 1]), rows),
    "tensor_split": (lambda x: ops.tensor_split(x, 3), rows),
    "tensor_split at places": (lambda x: ops.tensor_split(x, [1, -2]), rows),
    "pinv": (ops.pinv, lambda n: positive(n, 3) + ops.eye(n, 3)),
    "cdist": (lambda x: ops.cdist(x, x * 2), rows),
    "the first column": (lambda x: x[:, 0], square),
    "numpy array_split": (lambda x: ms.numpy.array_split(x, 3), lambda n: rows(n + 2)),
    "numpy vander": (ms.numpy.vander, vector),
    "numpy repeat": (lambda x: ms.numpy.repeat(x, 2, 0), rows),
    "numpy polyint": (ms.numpy.polyint, vector),
    **{f"numpy pad {m}": (lambda x, m=m: ms.numpy.pad(x, 5, m), vector) for m in PADDED},
}
LINES = {  # of one point they are made otherwise: a capture more
    "numpy indices": lambda x: ms.numpy.indices((len(x), 2)),
    "linspace": lambda x: ops.linspace(0.1, 0.7, len(x)),
    "logspace": lambda x: ops.logspace(0, 2, len(x)),
    "numpy linspace": lambda x: ms.numpy.linspace(0, 1, len(x)),
    **{
        f.__name__: lambda x, f=f: f(len(x))
        for f in (
            ops.bartlett_window, ops.blackman_window, ops.hamming_window, ops.hann_window, ops.kaiser_window,
            ms.numpy.bartlett, ms.numpy.blackman, ms.numpy.hamming, ms.numpy.hanning,
        )
    },
}  # fmt: skip
PLACES = {  # nothing to differentiate
    "sequence_mask": (lambda x: ops.sequence_mask(x, x.shape[0]), lengths),
    "a quotient of integers": (lambda x: ops.Div()(ops.arange(40), len(x)), vector),
    "mint.full": (lambda x: ms.mint.full((2,), len(x)), vector),
    "numbers in a list": (lambda x: Tensor([len(x), 2]), vector),
    "floats in a list": (lambda x: Tensor([len(x) / 3, 2.0], ms.float64), vector),
    "a shape as a tensor": (lambda x: Tensor(x.shape) + ops.tuple_to_array(x.shape), rows),
    "arange of floats": (lambda x: ops.arange(0.5, len(x) * 0.7 + 1, 0.7), vector),
    "linspace up to a size": (lambda x: ops.linspace(0, len(x), 5), vector),
    "numpy arange": (lambda x: ms.numpy.arange(2, len(x) * 2 + 3, 2), vector),
    "numpy diag_indices": (lambda x: ms.numpy.diag_indices(len(x)), vector),
    **{
        f"{f.__name__} {k}": (lambda x, f=f, k=k: f(len(x), offset=k, col=len(x) + 2), vector)
        for f in (ops.tril_indices, ops.triu_indices)
        for k in (-2, 0, 3)
    },
    **{
        f"numpy {f.__name__} {k}": (lambda x, f=f, k=k: f(len(x), k=k), vector)
        for f in (ms.numpy.tril_indices, ms.numpy.triu_indices, ms.numpy.tri, ms.numpy.eye)
        for k in (-2, 0, 3)
    },
}
REGIMES = {  # more captures, for there the code goes another way: captures
    "split": (lambda x: ops.split(x, 12), rows, 2 + 2),  # one for each number of pieces
    "chunk": (lambda x: ops.chunk(x, 3), rows, 2 + 2),
    "lstsq": (lambda x: ops.lstsq(x + ops.eye(*x.shape), x[:, :1]), rows, 2 + 2),  # high, wide, one row
}


def flat(value):
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else [value]


def assert_equal(compiled, function, argument, exact=True):
    found, expected = flat(compiled(argument)), flat(function(argument))
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.dtype is b.dtype and a.shape == b.shape
        if exact:
            np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
        else:
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [*CASES, *PLACES])
def test_one_capture_for_all_sizes(name):
    function, make = CASES.get(name) or PLACES[name]
    compiled = ms.jit(function)
    for n in SIZES:
        assert_equal(compiled, function, make(n))
    assert compiled.cache_info().captures == 2


@pytest.mark.parametrize("name", LINES)
def test_lines_of_all_lengths(name):
    compiled = ms.jit(LINES[name])
    for n in SIZES:
        assert_equal(compiled, LINES[name], vector(n))
    assert compiled.cache_info().captures == 3


@pytest.mark.parametrize("name", CASES)
def test_gradients_at_all_sizes(name):
    function, make = CASES[name]
    gradient = ms.grad(
        lambda x: sum((t * t).sum() for t in flat(function(x)) if t.dtype.is_floating)  # twice, for weights
    )
    compiled = ms.jit(gradient)
    for n in SIZES:
        assert_equal(compiled, gradient, make(n), exact=False)
    # Sums over axes that were stretched differ at size 1; pinv's terms where a side is the longer one.
    assert compiled.cache_info().captures <= (5 if name == "pinv" else 3)


@pytest.mark.parametrize("name", REGIMES)
def test_a_capture_for_each_way_that_the_code_goes(name):
    function, make, captures = REGIMES[name]
    compiled = ms.jit(function)
    for n in (*SIZES, 30, 33, 9, 11):
        assert_equal(compiled, function, make(n), exact=name != "lstsq")
    assert compiled.cache_info().captures <= captures


def test_shuffle_keeps_one_capture():
    compiled = ms.jit(lambda x: ops.shuffle(x))
    for n in SIZES:
        found = []
        for function in (compiled, ops.shuffle):
            ms.set_seed(n)
            found.append(function(ops.arange(n).reshape(n, 1)).asnumpy())
        np.testing.assert_array_equal(*found)
        np.testing.assert_array_equal(np.sort(found[0], 0)[:, 0], np.arange(n))
    assert compiled.cache_info().captures == 2


def of_unknown_length(x):
    return ops.sequence_mask(x)


def selected(x):
    return ops.masked_select(x, x > 2)


@pytest.mark.parametrize("function", [of_unknown_length, selected, lambda x: ops.unique(x)])
def test_what_no_size_has_a_graph_for_is_not_captured_again(function):
    compiled = ms.jit(function)
    for n in SIZES:
        assert_equal(compiled, function, lengths(n))
    assert compiled.cache_info().captures == 2


def test_numbers_of_float64_from_sizes_are_exact():
    compiled = ms.jit(lambda x: ms.tensor(x.shape[0] / 3, ms.float64))
    assert [compiled(vector(n)).item() for n in SIZES] == [n / 3 for n in SIZES]
