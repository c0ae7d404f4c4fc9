"""Hooks on the gradients of tensors, and on the values that the backward pass keeps."""

import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops


def grads(function, x):
    return ms.grad(function)(x).asnumpy().tolist()


def test_hooks_see_the_whole_gradient_in_order():
    seen = []

    def f(v):
        z = v * 2
        w = z * 3  # made before the hook: its part of the gradient counts
        z.register_hook(lambda g: seen.append(g.asnumpy().tolist()) or g * 10)
        z.register_hook(lambda g: seen.append(g.asnumpy().tolist()))
        return (w * z).sum()

    assert grads(f, Tensor([1.0, 2.0])) == [240, 480]
    assert seen == [[12, 24], [120, 240]]


def test_hook_on_a_variable_holds_until_it_is_removed():
    x = Tensor([1.0, 2.0])
    handle = x.register_hook(lambda g: g * 3)
    assert grads(lambda v: (v * v).sum(), x) == [6, 12] and len(x.hooks()) == 1
    handle.remove()
    assert grads(lambda v: (v * v).sum(), x) == [2, 4]


def test_hook_on_a_parameter():
    p = Parameter(Tensor([1.0, 2.0]), name="p")
    p.register_hook(lambda g: g * 5)
    gradient = ms.grad(lambda v: (p * v * p).sum(), None, weights=[p])(Tensor([1.0, 1.0]))[0]
    assert gradient.asnumpy().tolist() == [10, 20]


def test_hook_must_be_callable_and_give_a_tensor():
    with pytest.raises(TypeError, match="must be callable"):
        Tensor([1.0]).register_hook(1)
    x = Tensor([1.0])
    x.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="must return a Tensor or None"):
        ms.grad(lambda v: (v * v).sum())(x)


def test_saved_values_are_packed_and_unpacked():
    order = []

    def pack(x):
        order.append("pack")
        return x.asnumpy() + 1

    def unpack(array):
        order.append("unpack")
        return Tensor(array)

    def f(x, y):
        with ms.saved_tensors_hooks(pack, unpack):
            return x * y

    gradients = ms.grad(f, (0, 1))(Tensor([1.0]), Tensor([2.0]))
    assert [g.asnumpy().tolist() for g in gradients] == [[3], [2]]
    assert order == ["pack", "pack", "unpack", "unpack"]


def test_errors_of_saved_value_hooks_are_passed_on():
    def f(x, pack, unpack):
        with ms.saved_tensors_hooks(pack, unpack):
            return x * x

    def broken(value):
        raise KeyError("full")

    with pytest.raises(KeyError):
        ms.grad(lambda x: f(x, broken, lambda v: v))(Tensor([1.0]))
    with pytest.raises(TypeError, match="must return a Tensor"):
        ms.grad(lambda x: f(x, lambda v: v, lambda v: 1))(Tensor([1.0]))


def test_backward_hooks_of_a_cell_whose_input_needs_no_gradient():
    net = nn.Dense(2, 1, weight_init="ones")
    seen = []
    net.register_backward_hook(lambda cell, inner, outer: seen.append((inner, outer[0].asnumpy().tolist())))
    x = Tensor([[1.0, 3.0]])
    ms.value_and_grad(lambda v: (net(v) * 2).sum(), None, net.trainable_params())(x)
    assert seen == [((None,), [[2.0]])]
    ms.grad(lambda v: (net(v) * 2).sum())(x)
    assert seen[1][0][0].asnumpy().tolist() == [[2.0, 2.0]]


def test_backward_hooks_keep_a_tuple_of_one():
    class Halves(nn.Cell):
        def construct(self, x):
            return ops.split(x, 2)

    net = Halves()
    net.register_backward_hook(lambda cell, inner, outer: None)
    assert isinstance(net(Tensor([[1.0, 2.0], [3.0, 4.0]])), tuple)
    assert len(net(Tensor([[1.0, 2.0], [3.0, 4.0]]))) == 1


def test_gradients_pass_integers_on():
    assert grads(lambda v: v.astype(ms.int32).astype(ms.float32) * v, Tensor([2.5, 3.0])) == [
        4,
        6,
    ]  # 2.5 passes as 2
    assert grads(lambda v: v.astype(ms.float32) * 2.5, Tensor([2, 3], ms.int32)) == [2, 2]


def test_hooks_of_weights_without_a_gradient_see_zeros():
    used, unused = (Parameter(Tensor([2.0]), name=name) for name in ("used", "unused"))
    seen = []
    for weight in (used, unused):
        weight.register_hook(lambda gradient: seen.append(gradient.item()) or gradient + 1)
    found = ms.grad(lambda x: x * used, None, [used, unused])(Tensor([3.0]))
    assert seen == [3.0, 0.0]
    assert [g.item() for g in found] == [4.0, 1.0]


def test_what_takes_no_hook():
    frozen = Parameter(Tensor([2.0]), requires_grad=False)
    with pytest.raises(RuntimeError, match="requires grad is false"):
        frozen.register_hook(lambda gradient: gradient)
    compiled = ms.jit(lambda cell, inputs, output=None: output)
    for name in ("register_forward_hook", "register_forward_pre_hook", "register_backward_hook"):
        with pytest.raises(TypeError, match="jit"):
            getattr(nn.ReLU(), name)(compiled)


def test_gradients_of_a_sequence_in_graph_mode():
    pair = (Tensor([2.0]), Tensor([3.0]))
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        for members in (pair, list(pair)):
            found = ops.GradOperation()(lambda t: t[0] * t[1])(members)
            assert type(found) is type(members)
            assert [g.item() for g in found] == [3.0, 2.0]
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    with pytest.raises(TypeError, match="input is empty"):
        ops.GradOperation()()
