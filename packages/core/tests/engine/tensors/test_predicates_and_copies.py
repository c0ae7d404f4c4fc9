"""What tensors tell about themselves, how they are copied and shared, and their second names of
parameters."""

import copy
import pickle

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor


def matrix():
    return Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))


FACTS = {
    "numel": 6, "nelement": 6, "dim": 2, "ndimension": 2, "stride": [3, 1], "is_complex": False,
    "is_signed": True,
    "is_floating_point": True, "is_contiguous": True, "tolist": [[0, 1, 2], [3, 4, 5]], "storage_offset": 0,
}  # fmt: skip
PROPERTIES = {"strides": (12, 4), "has_init": False, "device": "CPU", "init_flag": False, "is_meta": False}


@pytest.mark.parametrize("name", FACTS)
def test_method_tells(name):
    assert getattr(matrix(), name)() == FACTS[name]


@pytest.mark.parametrize("name", PROPERTIES)
def test_property_tells(name):
    assert getattr(matrix(), name) == PROPERTIES[name]


COPIES = {
    "copy": lambda x: x.copy(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
}


@pytest.mark.parametrize("how", COPIES)
def test_copies_have_memory_of_their_own(how):
    x = matrix()
    y = COPIES[how](x)
    y.asnumpy()[0, 0] = 9
    assert x.asnumpy()[0, 0] == 0 and y.dtype is x.dtype


def test_gradients_flow_through_a_copy_but_not_through_data():
    x = Tensor([1.0, 2.0])
    assert ms.grad(lambda v: (v.copy() * v).sum())(x).asnumpy().tolist() == [2, 4]
    assert ms.grad(lambda v: (v.data * v).sum())(x).asnumpy().tolist() == [1, 2]


def test_data_writes_through_and_prints_values():
    p = Parameter(Tensor([1.0, 2.0]), name="w")
    p.data[0] = 5
    p.data.add_(1)
    assert p.asnumpy().tolist() == [6, 3] and str(p.data) == "[6. 3.]"
    p.data = Tensor([7.0, 8.0])
    assert p.asnumpy().tolist() == [7, 8]


SECOND_NAMES = [
    (lambda x: x.expand_as(x=Tensor(np.ones((4, 2, 3)))), (4, 2, 3)),
    (lambda x: x.tile(reps=(1, 2)), (2, 6)),
    (lambda x: x.transpose(dim0=0, dim1=1), (3, 2)),
    (lambda x: x.permute(dims=(1, 0)), (3, 2)),
    (lambda x: x.narrow(dim=1, start=0, length=2), (2, 2)),
    (lambda x: x.unsqueeze(dim=0), (1, 2, 3)),
    (lambda x: x.view(shape=(3, 2)), (3, 2)),
    (lambda x: x.to("CPU", ms.float16), (2, 3)),
    (lambda x: x.resize(4, 2), (4, 2)),
    (lambda x: x.sum_to_size(1, 3), (1, 3)),
]


@pytest.mark.parametrize(("call", "shape"), SECOND_NAMES)
def test_method_takes_the_other_names(call, shape):
    assert call(matrix()).shape == shape


IN_PLACE = [
    (lambda x: x.zero_(), [0, 0]), (lambda x: x.copy_(Tensor([3, 4])), [3, 4]),
    (lambda x: x.index_fill_(0, Tensor([0]), 9.0), [9, 2]), (lambda x: x.put_(Tensor([1]), Tensor([8.0])),
    [1, 8]),
    (lambda x: x.masked_scatter_(x > 1, Tensor([7.0])), [1, 7]), (lambda x: x.set_(Tensor([3.0, 5.0])), [3,
    5]),
]  # fmt: skip


@pytest.mark.parametrize(("call", "expected"), IN_PLACE)
def test_in_place_method_changes_and_returns_the_tensor(call, expected):
    x = Tensor([1.0, 2.0])
    assert call(x) is x and x.asnumpy().tolist() == expected


def test_augmented_assignment_makes_a_new_tensor():
    x = y = Tensor([1.0, 2.0])
    y += 1
    assert x.asnumpy().tolist() == [1, 2] and y.asnumpy().tolist() == [2, 3]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: Tensor([1.0]).H, ValueError), (lambda: Tensor([1.0]).move_to("moon"), ValueError),
        (lambda: Tensor([1.0]).move_to("GPU"), RuntimeError), (lambda: Tensor([1.0]).pin_memory(),
        RuntimeError),
        (lambda: bool(Tensor([])), ValueError), (lambda: Parameter(True), ValueError),
        (lambda: Parameter((1, 2)), TypeError), (lambda: Tensor([1], shape=(1,)), ValueError),
    ],
)  # fmt: skip
def test_wrong_use_is_refused(call, error):
    with pytest.raises(error):
        call()


def test_frombuffer_and_bytes():
    x = Tensor([1, 2, 3], ms.int32)
    assert ms.frombuffer(x.get_bytes(), ms.int32, 2, 4).tolist() == [2, 3]
    assert Tensor.convert_bytes_to_tensor(x.get_bytes(), (3,), ms.int32).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("element", "inside"),
    [
        (1, True),
        (1.0, True),
        (True, True),
        (np.int64(2), True),
        (3, False),
        (Tensor(2), True),
        (Tensor([1]), True),
        (Tensor([1, 2]), True),
        (Tensor([3]), False),
        ([1], False),
        ((1,), False),
        (np.array(1), False),
        ("a", False),
    ],
)
def test_what_is_in_a_tensor(element, inside):
    assert (element in Tensor([1, 2])) is inside
    assert (element in Tensor([[1, 2], [4, 5]])) is inside
