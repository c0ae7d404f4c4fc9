"""Value types of MindSpore's data engine, as scripts import them."""

import numpy as np
import pytest

from mycelia.faces.compat.dataengine import DataType, Tensor, TensorShape, nptype_to_detype


def test_a_tensor_shares_its_array():
    tensor = Tensor(np.arange(4))
    tensor.as_array()[0] = 9
    assert np.asarray(tensor).tolist() == [9, 1, 2, 3]
    assert tensor.type() == DataType("int64") and tensor.shape().as_list() == [4]
    assert Tensor(np.array(["ab", "c"])).type() == DataType("string")


def test_shapes():
    assert TensorShape([2, 3]).is_known() and not TensorShape([-1]).is_known()


@pytest.mark.parametrize("name", ["bool", "uint8", "float16", "str"])
def test_types_of_numpy(name):
    assert nptype_to_detype(np.dtype(name)) == DataType("string" if name == "str" else name)
