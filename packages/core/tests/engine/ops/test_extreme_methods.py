"""`Tensor.max` and `Tensor.min`: two overloads, and what neither takes."""

import pytest

import mycelia as ms
from mycelia import Tensor

Z = Tensor([[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda z: z.max(None, True), 4),
        (lambda z: z.max(keepdims=True), 4),
        (lambda z: z.max(initial=9), 4),
        (lambda z: z.max((0, 1), True), [[4]]),
        (lambda z: z.max(axis=0, keepdims=True), [[3, 4]]),
        (lambda z: z.max(axis=0, initial=0, where=Tensor([True, False])), [3, 0]),
        (lambda z: z.min([0]), [1, 2]),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit], ids=["eager", "jit"])
def test_values(call, expected, wrap):
    assert wrap(call)(Z).asnumpy().tolist() == expected


@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "call",
    [
        lambda z: z.max(0),
        lambda z: z.max(-2, False),
        lambda z: z.max(dim=0),
        lambda z: z.max(0, keepdim=False),
        lambda z: z.max(axis=0, return_indices=True),
    ],
)
def test_a_dim_gives_places_too(call, wrap):
    values, places = wrap(call)(Z)
    assert (values.asnumpy().tolist(), places.asnumpy().tolist()) == ([3, 4], [1, 1])


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((None, False, None), {}),
        ((1, [1]), {}),
        ((1, 1), {}),
        ((0, None), {}),
        ((1.0,), {}),
        ((True,), {}),
        ((), {"dim": None}),
        ((), {"dim": 1.0}),
        ((), {"axis": 0, "keepdims": 1}),
        ((0,), {"keepdim": 1}),
        ((), {"dim": 0, "axis": 1}),
        ((0,), {"places": True}),
    ],
)
@pytest.mark.parametrize("name", ["max", "min"])
def test_other_arguments_are_refused(name, args, named):
    with pytest.raises(TypeError, match=f"^MYC-TYPE {name}: "):
        getattr(Z, name)(*args, **named)
    with pytest.raises(TypeError):
        ms.jit(lambda z: getattr(z, name)(*args, **named))(Z)
