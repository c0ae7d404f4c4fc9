"""``x[key]`` and ``x[key] = value`` against NumPy over random keys, and what is special about assignment."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mycelia as ms
from mycelia import Tensor, ops


def limits(n):
    return st.none() | st.integers(-n - 2, n + 2)


def slices(n):
    return st.builds(slice, limits(n), limits(n), st.sampled_from([None, 1, 2, 3, -1, -2]))


@st.composite
def shapes_and_keys(draw):
    """A shape of up to three axes and a key that NumPy may or may not accept for it."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    picked = draw(st.sampled_from([(3,), (2, 1), (2, 3), (1,)]))
    key, axis, has_dots = [], 0, False
    while axis < len(shape) and draw(st.integers(0, 9)):
        n = shape[axis]
        kind = draw(
            st.sampled_from(["int", "slice", "slice", "new", "dots", "array", "list", "mask", "flag"])
        )
        if kind == "new":
            key.append(None)
            continue
        if kind == "flag":
            key.append(draw(st.booleans()))
            continue
        if kind == "dots":
            if not has_dots:
                key.append(Ellipsis)
                has_dots = True
                axis += draw(st.integers(0, len(shape) - axis))
            continue
        if kind == "int" and n:
            key.append(draw(st.integers(-n, n - 1)))
        elif kind == "array" and n:
            size = int(np.prod(picked))
            values = draw(st.lists(st.integers(-n, n - 1), min_size=size, max_size=size))
            key.append(np.array(values).reshape(picked))
        elif kind == "list" and n:
            key.append(draw(st.lists(st.integers(-n, n - 1), min_size=picked[-1], max_size=picked[-1])))
        elif kind == "mask":
            count = draw(st.integers(1, len(shape) - axis))
            size = int(np.prod(shape[axis : axis + count]))
            values = draw(st.lists(st.booleans(), min_size=size, max_size=size))
            key.append(np.array(values, bool).reshape(shape[axis : axis + count]))
            axis += count - 1
        else:
            key.append(draw(slices(n)))
        axis += 1
    if len(key) == 1 and draw(st.booleans()):
        return shape, key[0]
    return shape, tuple(key)


def as_tensors(key):
    """The same key with Tensors in place of arrays."""
    if isinstance(key, tuple):
        return tuple(as_tensors(k) for k in key)
    return Tensor(key) if isinstance(key, np.ndarray) else key


def fits(shape, key):
    """New axes must not lift the rank above a tensor's 8."""
    members = key if isinstance(key, tuple) else (key,)
    return len(shape) + sum(k is None or isinstance(k, bool) for k in members) <= 8


def numbered(shape):
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


@settings(max_examples=400, deadline=None)
@given(shapes_and_keys(), st.booleans())
def test_reading_equals_numpy(case, with_tensors):
    shape, key = case
    assume(fits(shape, key))
    data = numbered(shape)
    ours = as_tensors(key) if with_tensors else key
    try:
        wanted = np.asarray(data[key])
    except IndexError:
        with pytest.raises(IndexError):
            Tensor(data)[ours]
        return
    found = Tensor(data)[ours]
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found.asnumpy(), wanted)


@settings(max_examples=400, deadline=None)
@given(shapes_and_keys(), st.booleans(), st.data())
def test_writing_equals_numpy(case, with_tensors, data):
    shape, key = case
    assume(fits(shape, key))
    wanted = numbered(shape)
    try:
        selected = wanted[key].shape
    except IndexError:
        return
    ones = data.draw(st.lists(st.booleans(), min_size=len(selected), max_size=len(selected)))
    value_shape = tuple(1 if one else n for one, n in zip(ones, selected))
    value_shape = value_shape[data.draw(st.integers(0, len(value_shape))) :]
    value = -1 - numbered(value_shape)
    found = Tensor(wanted)
    wanted[key] = value
    found[as_tensors(key) if with_tensors else key] = Tensor(value) if with_tensors else value
    np.testing.assert_array_equal(found.asnumpy(), wanted)


@pytest.mark.parametrize(
    "key",
    [
        1,
        -1,
        slice(1, 3),
        slice(None, None, -2),
        (0, 1),
        (slice(None), None, 2),
        ([0, 2, 2], slice(1)),
        ([0, 2], [1, 1]),
    ],
)
def test_gradient_of_reading_adds_up_at_the_read_places(key):
    data = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    weight = np.random.default_rng(1).normal(size=data[key].shape).astype(np.float32)
    found = ms.grad(lambda x: (x[key] * Tensor(weight)).sum())(Tensor(data))
    wanted = np.zeros_like(data)
    np.add.at(wanted, key, weight)
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "key", [1, slice(None, None, 2), (slice(None), -1), ([0, 2], slice(None)), ([0, 2], [1, 1])]
)
def test_gradient_of_writing_flows_to_old_and_new_values(key):
    data = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    value = np.random.default_rng(1).normal(size=data[key].shape).astype(np.float32)

    def loss(x, v):
        y = x * 2.0
        y[key] = v
        return (y * y).sum()

    of_data, of_value = ms.grad(loss, (0, 1))(Tensor(data), Tensor(value))
    wanted = 8 * data
    wanted[key] = 0
    np.testing.assert_allclose(of_data.asnumpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(of_value.asnumpy(), 2 * value, rtol=1e-5)


def test_overlapping_assignment_uses_the_old_values():
    x = Tensor(np.arange(5, dtype=np.float32))
    x[1:] = x[:-1]
    assert x.asnumpy().tolist() == [0, 0, 1, 2, 3]
    x[::-1] = x
    assert x.asnumpy().tolist() == [3, 2, 1, 0, 0]


def test_assignment_leaves_tensors_that_shared_the_memory_alone():
    x = Tensor(np.zeros((2, 3), np.float32))
    seen = ops.reshape(x, (6,))
    x[0, 1] = 5
    assert seen.asnumpy().tolist() == [0] * 6
    assert x.asnumpy().tolist() == [[0, 5, 0], [0, 0, 0]]


def test_a_float_written_into_integers_is_cut_off():
    x = Tensor(np.zeros(3, np.int32))
    x[1] = 1.9
    x[2] = -1.9
    assert x.asnumpy().tolist() == [0, 1, -1]


def test_repeated_positions_keep_the_last_value():
    x = Tensor(np.zeros(3, np.float32))
    x[[1, 1]] = Tensor([4.0, 5.0])
    assert x.asnumpy().tolist() == [0, 5, 0]


def test_iteration_gives_the_slices_of_the_first_axis():
    assert [row.asnumpy().tolist() for row in Tensor(np.eye(2, dtype=np.float32))] == [[1, 0], [0, 1]]
    with pytest.raises(TypeError, match="scalar"):
        iter(Tensor(1.0))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (3, "index 3 is out of bounds for axis 0 with size 2"),
        ((0, -4), "index -4 is out of bounds for axis 1 with size 3"),
        ([0, 5], "index 5 is out of bounds for axis 0 with size 2"),
        ((0, 0, 0), "too many indices"),
        (1.0, "1.0"),
        ("a", "'a'"),
        ([0.5], "float"),
        ((Ellipsis, Ellipsis), "only one ellipsis"),
        (np.array([True, False, True]), "mask of shape"),
        (([0, 1], [0, 1, 2]), "cannot be broadcast"),
    ],
)
def test_bad_keys_say_what_is_wrong(key, text):
    x = Tensor(np.zeros((2, 3), np.float32))
    with pytest.raises(IndexError, match=text):
        x[key]
    with pytest.raises(IndexError, match=text):
        x[key] = 0.0


def test_bad_values_say_both_shapes():
    x = Tensor(np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        x[0] = Tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="step"):
        x[::0]
    with pytest.raises(TypeError, match="str"):
        x[0] = "a"


def test_a_list_of_tensors_of_several_shapes_is_a_tuple():
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert x[[Tensor([True, False]), 0]].asnumpy().tolist() == [0.0]
    x[[Tensor([True, False]), 0]] = 9
    assert x[0, 0].item() == 9


def test_positions_out_of_range_are_errors_of_every_kind_that_users_catch():
    for kind in (IndexError, RuntimeError, ValueError):
        with pytest.raises(kind, match="out of bounds"):
            ms.ops.gather(Tensor([1.0, 2.0]), Tensor([5]), 0)
