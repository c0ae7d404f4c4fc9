"""Cells that wrap a network: losses, training steps, gradients."""

from __future__ import annotations

import numpy as np

from mycelia import Parameter, ParameterTuple, Tensor, nn


def names(cell):
    return [p.name for p in cell.get_parameters()]


# ---- wrapping cells ----------------------------------------------------------------------------------------


def line():
    return nn.Dense(1, 1, weight_init=Tensor([[2.0]]), bias_init="zeros")


def test_wrapping_cells_keep_the_parameters_names():
    net = line()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    assert names(net) == ["weight", "bias"]
    x, y = Tensor([[1.0]]), Tensor([[0.0]])
    assert float(step(x, y).asnumpy()) == 4.0
    np.testing.assert_allclose(net.weight.asnumpy(), [[1.6]], rtol=1e-6)


def test_train_one_step_scales_and_returns_gradients():
    net = line()
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1), sens=10.0, return_grad=True
    )
    loss, grads = step(Tensor([[1.0]]), Tensor([[0.0]]))
    assert float(loss.asnumpy()) == 4.0
    assert {n: float(g.asnumpy().reshape(())) for n, g in grads.items()} == {"weight": 40.0, "bias": 40.0}


def test_with_grad_cell_gives_gradients_of_the_loss():
    net = line()
    grads = nn.WithGradCell(net, nn.MSELoss())(Tensor([[1.0]]), Tensor([[0.0]]))
    assert [float(g.asnumpy().reshape(())) for g in grads] == [4.0, 4.0]
    scaled = nn.WithGradCell(nn.WithLossCell(net, nn.MSELoss()), sens=0.5)(Tensor([[1.0]]), Tensor([[0.0]]))
    assert [float(g.asnumpy().reshape(())) for g in scaled] == [2.0, 2.0]


def test_with_eval_cell_gives_loss_output_label():
    loss, output, label = nn.WithEvalCell(line(), nn.MSELoss())(Tensor([[1.0]]), Tensor([[1.0]]))
    assert [float(v.asnumpy().reshape(())) for v in (loss, output, label)] == [1.0, 2.0, 1.0]


def test_forward_value_and_grad_by_inputs_and_weights():
    net = line()
    weights = ParameterTuple(net.trainable_params())
    value, grad = nn.ForwardValueAndGrad(net)(Tensor([[3.0]]))
    assert (float(value.asnumpy().reshape(())), float(grad.asnumpy().reshape(()))) == (6.0, 2.0)
    _, (inputs, by_weight) = nn.ForwardValueAndGrad(net, weights, get_all=True, get_by_list=True)(
        Tensor([[3.0]])
    )
    assert float(inputs[0].asnumpy().reshape(())) == 2.0
    assert [float(g.asnumpy().reshape(())) for g in by_weight] == [3.0, 1.0]


def test_parameter_update_overwrites():
    p = Parameter(Tensor([1.0]), name="p")
    nn.ParameterUpdate(p)(Tensor([5.0]))
    assert p.asnumpy().tolist() == [5.0]
