import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, boost, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(4, 3)
        self.second = nn.Dense(3, 2)

    def construct(self, x):
        return self.second(ops.tanh(self.first(x)))


def step_of(net, optimizer):
    return boost.BoostTrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)


X, Y = Tensor(np.ones((5, 4), np.float32)), Tensor(np.zeros((5, 2), np.float32))


def test_train_step_equals_the_ordinary_one():
    ms.set_seed(3)
    net, other = Net(), Net()
    ms.load_param_into_net(other, net.parameters_dict())
    loss = step_of(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))(X, Y)
    plain = nn.TrainOneStepCell(
        nn.WithLossCell(other, nn.MSELoss()), nn.Momentum(other.trainable_params(), 0.1, 0.9)
    )
    assert float(loss) == float(plain(X, Y))
    for p, q in zip(net.trainable_params(), other.trainable_params()):
        np.testing.assert_array_equal(p.asnumpy(), q.asnumpy())


def test_frozen_groups_do_not_change():
    net = Net()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    groups = [list(net.trainable_params()), list(net.second.trainable_params())]
    step = step_of(net, boost.FreezeOpt(optimizer, groups, [1, 0]))
    before = net.first.weight.asnumpy().copy()
    step(X, Y)
    np.testing.assert_array_equal(net.first.weight.asnumpy(), before)
    step(X, Y)
    assert (net.first.weight.asnumpy() != before).any()


def test_freeze_generate_splits_by_layers():
    net = nn.SequentialCell([Net(), Net()])
    freeze = boost.GradientFreeze(2, 0, 0.5, 100)
    groups = freeze.split_parameters_groups(net, 2)
    assert [len(g) for g in groups] == [8, 4]
    assert freeze.generate_freeze_index_sequence(3, 0, 0.5, 4)[:4] == [0, 0, 1, 2]
    assert freeze.generate_freeze_index_sequence(1, 1, 0.5, 100) == [0] * 101
    with pytest.raises(ValueError):
        freeze.generate_freeze_index_sequence(3, 2, 0.5, 4)
    network, optimizer = freeze.freeze_generate(net, nn.SGD(net.trainable_params(), 0.1))
    assert network is net and [len(o.parameters) for o in optimizer.opts] == [8, 4]


def test_groups_keep_their_options():
    a, b, c = (Parameter(Tensor([1.0]), name=n) for n in "abc")
    make = boost.ParameterProcess.generate_group_params
    assert make([a], [a, b]) == [{"params": [a]}]
    made = make([a, c], [{"params": [a, b], "lr": 0.1}])
    assert [g["lr"] for g in made] == [0.1, 0.1]
    assert [[p.name for p in g["params"]] for g in made] == [["a"], ["c"]]
    boost.ParameterProcess().assign_parameter_group([a, b, c])
    assert [p.comm_fusion for p in (a, b, c)] == [1, 2, 2]
    with pytest.raises(ValueError):
        make([a], [])


def test_optimizers_are_made_again_with_centered_gradients():
    net = Net()
    process = boost.OptimizerProcess(nn.Momentum([{"params": net.trainable_params()}], 0.1, momentum=0.8))
    process.add_grad_centralization(net)
    assert [g.get("grad_centralization", False) for g in process.origin_params] == [True, False]
    made = process.generate_new_optimizer()
    assert isinstance(made, nn.Momentum) and len(made.parameters) == 4


def test_less_bn_replaces_the_last_layer():
    net = Net()
    weight = net.second.weight.asnumpy()
    less = boost.LessBN(net, fn_flag=True)
    assert isinstance(net.second, boost.CommonHeadLastFN) and net.first.bias is not None
    np.testing.assert_array_equal(net.second.weight.asnumpy(), weight)
    assert np.abs(less(X).asnumpy()).max() <= 1.0001


def test_what_needs_devices_says_so():
    with pytest.raises(RuntimeError, match="Ascend"):
        boost.AdaSum(0, 8, 1, ())
    with pytest.raises(TypeError):
        boost.FreezeOpt("adam")
