"""Keys of calls: Python's, native code's and the one on disk tell the same calls apart."""

import itertools
import random
import struct
from collections import namedtuple

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.engine import _C
from mycelia.engine.compile.fingerprint import Walk
from mycelia.engine.compile.signature import KINDS, signature
from mycelia.engine.ops.control_flow.variable import VariableList, VariableTuple, of_variable_length

Point = namedtuple("Point", "x y")
CELL, PARAMETER = nn.ReLU(), Parameter(Tensor([1.0]), name="p")
NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]  # another nan than Python's


def tensor(dtype, *shape):
    return Tensor(np.zeros(shape), dtype=dtype)


#: Arguments that are all different, each made anew where it may be; some are equal for Python.
LEAVES = [
    *(lambda v=v: v for v in (None, False, True, 0, 1, -1, 2**40, -(2**63), 2**63 - 1)),
    *(lambda v=v: v for v in (0.0, -0.0, 1.0, float("nan"), -float("nan"), NAN, float("inf"), 5e-324)),
    *(lambda v=v: v for v in (0j, complex(0.0, -0.0), complex(-0.0, 0.0), 1 + 0j)),
    *(lambda v=v: v for v in ("", "0", "a", "a\0", "a\0\0", "abcdefgh", "abcdefgh\0", "é")),
    *(lambda v=v: v for v in (b"", b"a", b"a\0")),
    *(lambda d=d, s=s: tensor(d, *s) for d in (ms.float32, ms.float16, ms.bfloat16, ms.int32, ms.bool_)
      for s in ((), (0,), (1,), (2,), (1, 2), (2, 1))),
]  # fmt: skip
#: Only Python's key knows these.
OTHERS = [
    *(lambda v=v: v for v in (2**63, -(2**63) - 1, "\ud800", "x" * 2000, CELL, PARAMETER, print, ms.float32)),
    lambda: np.float32(0.0), lambda: np.float32(-0.0), lambda: np.float64(0.0), lambda: np.int64(0),
    lambda: np.zeros(2, np.float32), lambda: np.zeros(2, np.int32), lambda: np.array([-0.0, 0.0], np.float32),
    lambda: Point(1, 2), lambda: Point(True, 2), lambda: range(2), lambda: slice(1), lambda: {1},
]  # fmt: skip


def made(rng, leaves, depth=0):
    """A function that makes a random argument, equal each time."""
    kind = rng.random()
    if depth > 2 or kind < 0.6:
        return rng.choice(leaves)
    items = [made(rng, leaves, depth + 1) for _ in range(rng.randrange(4))]
    if kind < 0.75:
        return lambda: [item() for item in items]
    if kind < 0.9:
        return lambda: tuple(item() for item in items)
    keys = rng.sample(["a", "b", 0, 1.0, None, (1,), (True,), (1.0,), -0.0], len(items))
    return lambda: {key: item() for key, item in zip(keys, items)}


def keys_of(args):
    """Python's key and the native one, with the tensors that each found."""
    tensors, native = [], []
    python = signature(args, {}, tensors, [])
    key = _C.call_key(args, native)
    assert key is None or list(map(id, native)) == list(map(id, tensors))
    return python, key


@pytest.mark.parametrize("depth", ["alone", "in a list", "in a dict"])
def test_arguments_that_differ_have_keys_that_differ(depth):
    wrap = {"alone": lambda v: v, "in a list": lambda v: [v], "in a dict": lambda v: {"k": v}}[depth]
    pythons, natives = {}, {}
    for number, make in enumerate([*LEAVES, *OTHERS]):
        (python, native), (again, same) = (keys_of((wrap(make()),)) for _ in range(2))
        if type(make()) not in (range, slice, set):  # by identity: another object is another call
            assert (python, native) == (again, same)
        assert pythons.setdefault(python, number) == number
        assert (native is not None) is (number < len(LEAVES))
        if native is not None:
            assert natives.setdefault(native, number) == number


@pytest.mark.parametrize("seed", range(40))
def test_python_and_native_keys_agree_on_random_calls(seed):
    rng = random.Random(seed)
    few = rng.sample(LEAVES, 4) + ([rng.choice(OTHERS)] if seed % 2 else [])  # so that calls are often equal
    calls = [[made(rng, few) for _ in range(rng.randrange(1, 4))] for _ in range(60)]
    keys = [keys_of(tuple(make() for make in call)) for call in calls for _ in range(2)]
    known = [pair for pair in keys if pair[1] is not None]
    assert known
    for (python, native), (other, key) in itertools.combinations(known, 2):
        assert (python == other) is (native == key)


def test_keys_on_disk_agree_too():
    """Where the content can be known: the same arguments have the same digest, others another one."""

    def function(*args):
        return args

    wraps = [lambda v: v, lambda v: [v, 1], lambda v: {"k": v}, lambda v: (v, 1), lambda v: {"k": (v, 1)}]
    digests = {}
    for number, (make, wrap) in enumerate(itertools.product(LEAVES, wraps)):
        one, other = (Walk(function, (wrap(make()),), {}, ()).hexdigest for _ in range(2))
        assert one == other
        assert digests.setdefault(one, number) == number


@pytest.mark.parametrize("kind", [VariableTuple, VariableList])
def test_tensors_in_containers_of_variable_length_are_inputs_on_disk_as_in_memory(kind):
    one, other, longer = (
        of_variable_length([Tensor([v]) for v in values], kind) for values in ((1.0,), (2.0,), (1.0, 2.0))
    )
    assert signature((one,), {}, [], []) == signature((other,), {}, [], [])
    first, second, third = (Walk(len, (v,), {}, ()).hexdigest for v in (one, other, longer))
    assert first == second != third


def test_every_type_of_the_description_is_tried():
    assert {type(make()) for make in LEAVES} | {tuple, list, dict} == set(KINDS)


@pytest.mark.parametrize("few", [2, 20])
def test_a_container_in_itself_is_an_error_and_a_deep_one_is_not(few):
    deep = nested = []
    for _ in range(few):
        deep = [deep]
    assert (_C.call_key((deep,), []) is None) is (few > 8)
    signature((deep,), {}, [], [])
    nested.append(nested)
    assert _C.call_key((nested,), []) is None
    with pytest.raises(RuntimeError, match="container that holds itself"):
        signature((nested,), {}, [], [])


@pytest.mark.parametrize("pairs", [None, ((int,),), ((int, 99),), (("int", 1),), ((int, 1),) * 17], ids=str)
def test_a_wrong_description_is_refused(pairs):
    try:
        with pytest.raises((TypeError, ValueError)):
            _C.call_kinds(pairs)
    finally:
        _C.call_kinds(tuple(KINDS.items()))
    assert _C.call_key((1,), []) is not None


@pytest.mark.parametrize("pair", [
    (np.float32(0.0), np.float32(-0.0)), (0.0, -0.0), (1, True), ({1: 2.0}, {True: 2.0}), ((1, 2), [1, 2]),
    (np.array([0.0]), np.array([-0.0])), (1, 1.0), (None, False),
], ids=str)  # fmt: skip
def test_a_compiled_function_tells_arguments_apart_that_compare_equal(pair):
    @ms.jit
    def text(x, argument):
        return x * len(repr(argument))  # shows the value that was captured

    x = ops.ones((2,), ms.float32)
    for argument in (*pair, *pair):
        assert text(x, argument).asnumpy().tolist() == [float(len(repr(argument)))] * 2


def test_known_calls_with_containers_need_no_further_check():
    @ms.jit
    def total(parts, scale):
        return sum(parts["list"], parts["first"]) * scale

    x = ops.ones((2,), ms.float32)
    for n in range(4):
        parts = {"list": [x, x + n], "first": x}
        assert total(parts, 0.5).asnumpy().tolist() == [(3 + n) * 0.5] * 2
    info = total.cache_info()
    assert (info.captures, info.hits) == (1, 0)
