"""Every op captured for all sizes gives, at other sizes, what it gives eagerly, or its conditions say no."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor
from mycelia.engine.compile.frontend import compile_function
from mycelia.testing.conformance import has_gradient
from mycelia.testing.samples import all_samples

SAMPLES = [s for s in all_samples() if s.args and int(s.name.rpartition("-")[2]) < 2]  # two of each op
WITH_GRADIENT = [s for s in SAMPLES if has_gradient(s)]


@pytest.fixture(autouse=True)
def as_given():
    """Samples of lowered ops name the algorithm that they are for: no other is chosen."""
    with ms.config.context(accuracy="strict"):
        yield


def flat(value):
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    return [value]


def tensors_of(arguments):
    return [t for t in flat(list(arguments)) if type(t) is Tensor]


def resized(value, by):
    """The arguments with each size n above 1 as n + by: sizes that were equal stay equal."""
    if isinstance(value, (list, tuple)):
        return type(value)(resized(v, by) for v in value)
    if type(value) is not Tensor or value.ndim == 0:
        return value
    array = value.asnumpy()
    return Tensor(np.resize(array, [n + by if n > 1 else n for n in array.shape]), value.dtype)


def copied(value):
    """The arguments again, for ops that write into them."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(copied, value))
    return value._detach() if type(value) is Tensor else value


def check(function, arguments):
    arguments = tuple(arguments)
    shapes = [t.shape for t in tensors_of(arguments)]
    sizes = {(i, axis): n for i, shape in enumerate(shapes) for axis, n in enumerate(shape)}
    if not sizes:
        pytest.skip("no sizes")
    try:
        template, _ = compile_function(function, "f", arguments, {}, sizes)
    except ms.errors.CaptureError:
        pytest.skip("no graph form")
    assert template.instance(shapes) is not None, "the conditions hold where they were found"
    for by in (0, 1, 2):
        compare(template, function, resized(arguments, by))


def compare(template, function, arguments):
    given = tensors_of(copied(arguments))
    compiled = template.instance([t.shape for t in given])
    if compiled is None:
        return
    try:
        with ms.config.context(device_target="reference"):
            function(*copied(arguments))
    except Exception:  # attributes or values that do not go with these sizes; kernels trust the op's callers
        return
    expected = function(*arguments)
    for a, b in zip(flat(compiled(given)), flat(expected), strict=True):
        assert a.dtype is b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.name)
def test_op_at_other_sizes(sample):
    check(lambda *args: sample.op(*args, **sample.attrs), sample.tensors())


def gradient_of(sample):
    arguments = sample.tensors()
    positions = tuple(
        i
        for i, a in enumerate(arguments)
        if any(isinstance(t, Tensor) and t.dtype.is_floating for t in flat(a))
    )

    def loss(*args):
        out = flat(sample.op(*args, **sample.attrs))
        return sum((o * o).sum() for o in out if o.dtype.is_floating)

    return ms.grad(loss, positions)


@pytest.mark.parametrize("sample", WITH_GRADIENT, ids=lambda s: s.name)
def test_gradient_at_other_sizes(sample):
    check(gradient_of(sample), sample.tensors())


def require_two_captures(function, arguments):
    """Calls at several sizes of a compiled function need the first capture and one for all sizes."""
    compiled = ms.jit(function)
    for by in range(5):
        given = resized(tuple(arguments), by)
        try:
            with ms.config.context(device_target="reference"):
                function(*copied(given))
        except Exception:  # as in `compare`
            continue
        compiled(*copied(given))
    assert compiled.cache_info().captures <= 2


CAPTURED = [s for s in SAMPLES if s.op.name != "unstack"]  # that has as many results as the axis is long


@pytest.mark.parametrize("sample", CAPTURED, ids=lambda s: s.name)
def test_op_needs_one_more_capture(sample):
    require_two_captures(lambda *args: sample.op(*args, **sample.attrs), sample.tensors())


@pytest.mark.parametrize("sample", [s for s in CAPTURED if has_gradient(s)], ids=lambda s: s.name)
def test_gradient_needs_one_more_capture(sample):
    require_two_captures(gradient_of(sample), sample.tensors())
