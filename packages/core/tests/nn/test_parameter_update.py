"""`ParameterUpdate` overwrites a Parameter, and nothing else."""

import numpy as np
import pytest

from mycelia import Parameter, Tensor, nn


def test_parameter_update():
    weight = Parameter(Tensor([1.0, 2.0]), name="weight")
    update = nn.ParameterUpdate(weight)
    assert update(Tensor([3.0, 4.0])).asnumpy().tolist() == [3, 4]
    assert weight.asnumpy().tolist() == [3, 4]
    for other in (np.array([1]), Tensor([1.0])):
        with pytest.raises(TypeError, match="param must be a Parameter"):
            nn.ParameterUpdate(other)
