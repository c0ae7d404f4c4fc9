"""Names of parallel training on the one device there is."""

import mycelia as ms
from mycelia import Tensor, nn
from mycelia.parallel.auto_parallel import AutoParallel
from mycelia.parallel.nn import PipelineGradReducer


def test_functions_may_be_divided_too():
    def double(x):
        return x * 2

    net = AutoParallel(double)
    assert net(Tensor([1.5])).asnumpy().tolist() == [3.0]
    net.pipeline(stages=2)
    assert net.get_pipeline_stages() == 2


def test_gradients_of_a_pipeline_are_divided_by_the_scale():
    reducer = PipelineGradReducer(ms.ParameterTuple(nn.Dense(2, 3).trainable_params()), 2.0)
    assert reducer((Tensor([3.0]),))[0].asnumpy().tolist() == [1.5]
