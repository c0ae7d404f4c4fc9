"""What compiled functions change outside of themselves."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, ops


@pytest.fixture
def counter():
    return Parameter(np.array([1.0, 2.0], np.float32), name="counter")


def values(tensor):
    return tensor.asnumpy().tolist()


def test_parameter_is_read_anew_at_each_call(counter):
    f = ms.jit(lambda x: x + counter)
    x = Tensor(np.zeros(2, np.float32))
    assert values(f(x)) == [1.0, 2.0]
    counter.set_data(Tensor(np.array([5.0, 6.0], np.float32)))
    assert values(f(x)) == [5.0, 6.0]


def test_assignments_are_written_back_after_each_run(counter):
    @ms.jit
    def f(x):
        counter.set_data(counter + x)
        before = counter * 1
        counter.set_data(counter * 2)
        return before

    x = Tensor(np.ones(2, np.float32))
    assert values(f(x)) == [2.0, 3.0]
    assert values(counter) == [4.0, 6.0]
    assert values(f(x)) == [5.0, 7.0]
    assert values(counter) == [10.0, 14.0]
    assert counter.traced is None


def test_overwriting_without_reading(counter):
    @ms.jit
    def f(x):
        counter.set_data(x * 3)
        return x

    f(Tensor(np.ones(2, np.float32)))
    assert values(counter) == [3.0, 3.0]


def test_in_place_methods_change_the_parameter(counter):
    @ms.jit
    def f(x):
        p = counter
        p.add_(x)
        return p * 1

    assert values(f(Tensor(np.ones(2, np.float32)))) == [2.0, 3.0]
    assert values(counter) == [2.0, 3.0]


@pytest.mark.parametrize("sign", (1.0, -1.0))
def test_effect_under_a_tensor_condition(counter, sign):
    def f(x):
        if x.sum() > 0:
            counter.set_data(counter + x)
            if x.sum() > 1:
                counter.set_data(counter * 10)
        return x * counter

    x = Tensor(np.full(2, sign, np.float32))
    expected_counter = Parameter(counter.asnumpy().copy(), name="eager")
    got = ms.jit(f)(x)
    after = values(counter)
    counter.set_data(expected_counter)
    expected = f(x)
    assert values(got) == values(expected)
    assert after == values(counter)


def test_overwriting_in_a_branch_without_reading(counter):
    @ms.jit
    def f(x):
        if x.sum() > 0:
            counter.set_data(x * 7)
        return x

    f(Tensor(np.full(2, -1, np.float32)))
    assert values(counter) == [1.0, 2.0]
    f(Tensor(np.full(2, 1, np.float32)))
    assert values(counter) == [7.0, 7.0]


def test_effect_in_a_loop(counter):
    @ms.jit
    def f(x):
        i = 0
        while i < x:
            counter.set_data(counter * 2)
            i += 1
        return i

    assert int(f(Tensor(3))) == 3
    assert values(counter) == [8.0, 16.0]


def test_tensor_changed_in_place_by_index():
    def f(x):
        y = x * 1
        y[0] = 5
        if y.sum() > 0:
            y[1] = y[0] + x[2]
        return y

    for data in ([1.0, 2.0, 3.0], [-100.0, -5.0, -6.0]):
        x = Tensor(np.array(data, np.float32))
        assert values(ms.jit(f)(x)) == values(f(x))
        assert values(x) == data


@pytest.mark.parametrize("augmented", (True, False))
def test_tensor_kept_in_an_object_is_written_back(augmented):
    class Holder:
        total = Tensor(np.zeros(2, np.float32))

    holder = Holder()

    @ms.jit
    def f(x):
        if augmented:
            holder.total += x
        else:
            holder.total = holder.total + x
        return holder.total * 1

    x = Tensor(np.ones(2, np.float32))
    assert values(f(x)) == [1.0, 1.0]
    assert values(f(x)) == [2.0, 2.0]
    assert values(holder.total) == [2.0, 2.0]


def test_temporary_starts_anew_in_each_run():
    @ms.jit
    def f(x):
        total = ops.zeros((2,))
        total += x
        return total

    x = Tensor(np.ones(2, np.float32))
    assert values(f(x)) == values(f(x)) == [1.0, 1.0]


def test_error_during_capture_gives_parameters_their_data_back(counter):
    @ms.jit
    def f(x):
        counter.set_data(counter + x)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        f(Tensor(np.ones(2, np.float32)))
    assert counter.traced is None
    assert values(counter) == [1.0, 2.0]


def test_assigning_another_shape_is_refused(counter):
    @ms.jit
    def f(x):
        counter._assign(x)
        return x

    with pytest.raises(ms.errors.CaptureError, match="counter"):
        f(Tensor(np.ones(3, np.float32)))
    assert values(counter) == [1.0, 2.0]


def test_random_numbers_continue_the_same_stream():
    def draw(x):
        return ops.dropout(x, 0.5, True)

    x = Tensor(np.ones((4, 5), np.float32))
    ms.set_seed(11)
    expected = [values(draw(x)) for _ in range(3)]
    ms.set_seed(11)
    compiled = ms.jit(draw)
    got = [values(compiled(x)), values(draw(x)), values(compiled(x))]
    assert got == expected
    ms.set_seed(11)
    assert values(compiled(x)) == expected[0]


def test_print_shows_values_once_per_run_and_in_order(capsys):
    def f(x):
        print("start", x)
        y = x
        while y < 5:
            y = y * 2
            print("now", y, 7, sep="|")
        if y > 6:
            print("large")
        print("fixed")
        return y * x

    compiled = ms.jit(ms.grad(f))
    captured = capsys.readouterr().out
    x = Tensor(2.0)
    compiled(x)
    compiled(x)
    lines = capsys.readouterr().out.splitlines()
    assert captured == ""
    assert lines == ["start", "2", "now|4.0|7", "now|8.0|7", "large", "fixed"] * 2


@pytest.mark.parametrize(
    "message",
    [lambda x: f"no {x}", lambda x: "no %s" % x, lambda x: "no {}".format(x)],  # noqa: UP031, UP032
)
def test_errors_tell_the_values_of_tensors(message):
    @ms.jit
    def checked(x):
        if x > 10:
            raise ValueError(message(x))
        return x * 2

    assert checked(Tensor(2)) == 4
    with pytest.raises(ValueError, match="no 11"):
        checked(Tensor(11))
