"""Sequences of unknown length and variable numbers in graphs: values, what is known, what must be alike."""

import pytest

import mycelia as ms
from mycelia import Tensor, mutable
from mycelia.ops import functional as F


def _facts(sequence):
    return type(sequence) is not dict and F.is_sequence_shape_unknown(sequence)


def _length():
    n = len(mutable([1, 2, 3], True))
    return n, F.isconstant(n)


def _copies():
    numbers = mutable([1, 2, 3], True)
    return _facts(list(numbers)), _facts(tuple(numbers)), isinstance(tuple(numbers), tuple)


def _loop():
    total = 0
    for number in mutable([1, 2, 3], True):
        total = total + number
    return total


def _while():
    numbers, i, total = mutable([1, 2, 3], True), 0, 0
    while i < len(numbers):
        total = total + numbers[i]
        i = i + 1
    return total


def _builtins():
    numbers = mutable((3, 1, 2), True)
    return sum(numbers), max(numbers), min(numbers), 3 in numbers, numbers == (3, 1, 2)


def _sums():
    numbers = mutable([1, 2], True)
    joined = numbers + [3]
    return joined, _facts(joined), _facts([3] + numbers), _facts(numbers * 2), [1] + mutable([], True)


def _product():
    repeated = [1, 2] * mutable(2)
    return repeated, _facts(repeated)


def _picks():
    numbers = mutable([1, 2, 3], True)
    return numbers[-1], F.isconstant(numbers[0]), numbers[1:], _facts(numbers[1:])


def _cuts():
    start, step = mutable(1), mutable(2)
    return [1, 2, 3][start:], _facts([1, 2, 3][start:]), (1, 2, 3)[::step], _facts((1, 2, 3)[:2])


def _picked_by_a_variable():
    numbers = [1, 2]
    return numbers[mutable(1)], F.isconstant(numbers[mutable(1)]), F.isconstant(numbers[1])


def _ranges():
    numbers = range(mutable(1), mutable(7), 2)
    return numbers, _facts(numbers), _facts(range(3))


def _counted():
    numbers = mutable([1, 2, 2], True)
    n, place = numbers.count(2), numbers.index(2)
    return n, F.isconstant(n), place, F.isconstant(place)


def _appended():
    numbers = mutable([], True)
    numbers.append(1)
    numbers.append(2)
    numbers.insert(0, 3)
    return numbers, _facts(numbers)


def _set():
    numbers = mutable([1, 2, 3], True)
    numbers[0] = 5
    numbers[1:2] = [6, 7]
    return numbers, F.isconstant(numbers[0]), _facts(numbers)


def _set_by_a_variable():
    numbers = [1, 2]
    numbers[mutable(0)] = 10
    return numbers, F.isconstant(numbers[0]), F.isconstant(numbers[1]), _facts(numbers)


def _slice_set_by_a_variable():
    numbers = [1, 2, 3]
    numbers[mutable(0) : 2] = [7]
    return numbers, _facts(numbers)


def _slice_of_unknown_length_set():
    numbers = [1, 2, 3]
    numbers[0:2] = mutable([7], True)
    return numbers, _facts(numbers)


def _numbers():
    a, b = mutable(7), mutable(2.0)
    facts = [F.isconstant(v) for v in (a + 1, 1 - b, a // 2, a % 4, a & 1, -a, a**2, a / 2)]
    return a + b, a // 2, a % 4, 3 - a, a & 1, -a, a**2, 2 / b, any(facts)


def _branches(x):
    numbers = mutable([1, 2], True)
    if x.sum() > 0:
        numbers = numbers + [3]
    return numbers


def _tensors(x):
    tensors = [x, x + 1, x]
    n = tensors.count(x)
    return n, F.isconstant(n), F.isconstant(mutable([Tensor([1.0])], True)[0])


X = Tensor([1.0])


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (_length, (), (3, False)),
        (_copies, (), (True, True, True)),
        (_loop, (), 6),
        (_while, (), 6),
        (_builtins, (), (6, 3, 1, True, True)),
        (_sums, (), ([1, 2, 3], True, True, True, [1])),
        (_product, (), ([1, 2, 1, 2], True)),
        (_picks, (), (3, False, [2, 3], True)),
        (_cuts, (), ([2, 3], True, (1, 3), False)),
        (_picked_by_a_variable, (), (2, False, True)),
        (_ranges, (), ((1, 3, 5), True, False)),
        (_counted, (), (2, False, 1, False)),
        (_appended, (), ([3, 1, 2], True)),
        (_set, (), ([5, 6, 7, 3], False, True)),
        (_set_by_a_variable, (), ([10, 2], False, False, False)),
        (_slice_set_by_a_variable, (), ([7, 3], True)),
        (_slice_of_unknown_length_set, (), ([7, 3], True)),
        (_numbers, (), (9.0, 3, 3, -4, 1, -7, 49, 1.0, False)),
        (_branches, (X,), [1, 2, 3]),
        (_branches, (-X,), [1, 2]),
        (_tensors, (X,), (2, False, False)),
    ],
)
def test_values_and_what_the_graph_knows(function, arguments, expected):
    found = ms.jit(function)(*arguments)
    assert found == expected
    assert isinstance(found, type(expected))


@pytest.mark.parametrize("members", [[1, 2, 3], (1.5, 2.5), [X, X + 1], []])
def test_an_argument_of_unknown_length(members):
    @ms.jit
    def facts(sequence):
        return sequence, len(sequence), F.is_sequence_shape_unknown(sequence), len(sequence) == 0

    found, length, unknown, empty = facts(mutable(members, True))
    assert type(found) is type(members)
    assert list(map(float, found)) == list(map(float, members))
    assert (length, unknown, empty) == (len(members), True, not members)
    assert not facts(mutable(members))[2]


def test_outside_of_graphs_they_are_ordinary():
    numbers = mutable([1, 2, 3], True)
    assert isinstance(numbers, list)
    assert type(numbers + ["a"]) is list
    assert type(numbers[1:]) is list
    numbers[0] = "b"
    numbers.append(None)
    assert numbers == ["b", 2, 3, None]
    assert type(mutable(2) * 3) is int
    assert mutable(2) * [1] == [1, 1]


def _mixed():
    return mutable([1, 2.0], True)


def _mixed_tensors(x):
    return mutable([x, x.astype(ms.int32)], True)


def _sum_of_others():
    return mutable([1, 2], True) + [1.0]


def _sum_of_other_lengths():
    return mutable([(1, 2), (3, 4)], True) + [(1, 2, 3)]


def _appended_other():
    numbers = mutable([1, 2], True)
    numbers.append(2.0)
    return numbers


def _set_other():
    numbers = mutable([1, 2], True)
    numbers[0] = 2.0
    return numbers


def _slice_set_other():
    numbers = mutable([1, 2], True)
    numbers[0:1] = [2.0]
    return numbers


def _unequal_members():
    numbers = [1, 2.0]
    numbers[mutable(0)] = 1
    return numbers


def _other_by_a_variable():
    numbers = [1, 2]
    numbers[mutable(0)] = 1.0
    return numbers


def _slice_of_others():
    numbers = [1.0, 2.0]
    numbers[mutable(0) : 1] = [1]
    return numbers


def _unequal_with_unknown_length():
    numbers = [1, 2.0]
    numbers[0:1] = mutable([1], True)
    return numbers


def _known_again():
    return mutable(mutable([1], True))


def _mapped():
    return map(lambda a: a, mutable([1, 2], True))


def _zipped():
    return zip(mutable([1, 2], True), (1, 2))


def _enumerated():
    return enumerate(mutable([1, 2], True))


def _range_of_a_tensor(x):
    return range(x)


def _picked_from_nothing(i):
    return [][i]


def _length_is_no_bool():
    return mutable([1], [1])


@pytest.mark.parametrize(
    ("function", "arguments", "kind", "text"),
    [
        (_mixed, (), ValueError, "element 1 is float"),
        (_mixed_tensors, (X,), TypeError, "Int32"),
        (_sum_of_others, (), TypeError, "int and float"),
        (_sum_of_other_lengths, (), TypeError, "not same"),
        (_appended_other, (), TypeError, "alike"),
        (_set_other, (), TypeError, "dynamic length"),
        (_slice_set_other, (), ValueError, "do not match"),
        (_unequal_members, (), TypeError, r"sequence\[0\] item"),
        (_other_by_a_variable, (), TypeError, "constant length"),
        (_slice_of_others, (), TypeError, "origin sequence"),
        (_unequal_with_unknown_length, (), ValueError, "do not match"),
        (_known_again, (), RuntimeError, "can not convert"),
        (_mapped, (), RuntimeError, "'map'"),
        (_zipped, (), RuntimeError, "'zip'"),
        (_enumerated, (), RuntimeError, "dynamic length input"),
        (_range_of_a_tensor, (Tensor(3),), TypeError, "int scalar"),
        (_picked_from_nothing, (mutable(0),), ValueError, "empty sequence"),
        (_length_is_no_bool, (), TypeError, "bool"),
    ],
)
def test_what_must_be_alike(function, arguments, kind, text):
    with pytest.raises(kind, match=text):
        ms.jit(function)(*arguments)


def test_mutable_refuses_what_holds_itself():
    numbers = [1]
    numbers.append(numbers)
    with pytest.raises(TypeError, match="self-reference"):
        mutable(numbers)


def test_subscripts_of_other_objects_keep_their_meaning():
    class Named(dict):
        def __getitem__(self, key):
            return super().get(key, key)

    @ms.jit
    def read(table, x, i):
        rows = {}
        rows[i] = x[i:, ::2]
        rows["j"] = table[i], x[i], x[-1:]
        rows["k"] = [a for a in (1, 2, 3)][i:]
        rows["l"] = "abc"[i]
        return rows

    x = ms.ops.arange(12).reshape(3, 4)
    found = read(Named(), x, 1)
    assert found[1].asnumpy().tolist() == [[4, 6], [8, 10]]
    assert (found["j"][0], found["k"], found["l"]) == (1, [2, 3], "b")
    assert found["j"][1].asnumpy().tolist() == [4, 5, 6, 7]
