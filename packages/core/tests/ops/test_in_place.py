"""Functions that write into their first argument, and those of tuples and numbers."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops


def t(values, dtype="float32"):
    return ms.Tensor(np.array(values, dtype))


@pytest.mark.parametrize(
    "call, wanted",
    [
        (lambda x: ops.zero_(x), [0, 0, 0]),
        (lambda x: ops.put_(x, t([0, 2], "int64"), t([9, 8])), [9, 2, 8]),
        (lambda x: ops.inplace_sigmoid(x), [0.7310586, 0.8807971, 0.9525741]),
        (lambda x: ops.bernoulli_(x, 1.0), [1, 1, 1]),
        (lambda x: ops.stop_gradient_(x), [1, 2, 3]),
    ],
)
def test_in_place(call, wanted):
    x = t([1, 2, 3])
    call(x)
    np.testing.assert_allclose(x.asnumpy(), wanted, 1e-6)


def test_tuples_and_numbers():
    assert ops.tail((1, 2, 3)) == (2, 3) and ops.array_to_scalar(t(2)) == 2
    assert ops.tensor_range(t(0, "int64"), t(6, "int64"), t(2, "int64")).asnumpy().tolist() == [0, 2, 4]
    assert ops.tensor_muls(t([1, 2]), 2).asnumpy().tolist() == [2, 4]
    assert ops.reshape_(t([1, 2]), (2, 1)).shape == (2, 1)
    assert not ops.is_sequence_value_unknown((1, 2)) and not ops.is_sequence_shape_unknown((1, 2))
    with pytest.raises(TypeError, match="variable length"):
        ops.is_dynamic_sequence_element_unknown((1, 2))
