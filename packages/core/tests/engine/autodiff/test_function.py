"""Functions with their own gradient: classes, decorated functions, and parts without any."""

import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.engine.autodiff.custom_rule import custom_vjp
from mycelia.engine.autodiff.function import Function, no_grad

X, Y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])


class Scaled(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor, x + 1

    @staticmethod
    def backward(ctx, product, shifted):
        (x,) = ctx.saved_tensors
        return product * ctx.factor * x + shifted, None


class Apart(Function):
    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        x, y = ctx.saved_tensors
        return gradient * y * 10, gradient * x


def test_classes_give_the_gradients_they_return():
    product, shifted = Scaled.apply(X, 5)
    assert product.asnumpy().tolist() == [5.0, 10.0] and shifted.asnumpy().tolist() == [2.0, 3.0]
    assert ms.grad(lambda x: Scaled.apply(x, 5)[0].sum())(X).asnumpy().tolist() == [5.0, 10.0]
    assert ms.grad(lambda x: Scaled.apply(x, 5)[1].sum())(X).asnumpy().tolist() == [1.0, 1.0]
    dx, dy = ms.grad(Apart.apply, (0, 1))(X, Y)
    assert dx.asnumpy().tolist() == [30.0, 40.0] and dy.asnumpy().tolist() == [1.0, 2.0]


def test_a_wrong_number_of_gradients_is_an_error():
    class Wrong(Apart):
        @staticmethod
        def backward(ctx, gradient):
            return gradient

    with pytest.raises(RuntimeError, match="there are 2 inputs, but 1 came"):
        ms.grad(Wrong.apply, (0, 1))(X, Y)


def test_decorated_functions_get_their_rule_later():
    @custom_vjp
    def product(x, y):
        return x * y

    assert ms.grad(product)(X, Y).asnumpy().tolist() == [3.0, 4.0]
    product.defbwd(lambda x, y, out, gradient: (x + x, y + y))
    assert ms.grad(product)(X, Y).asnumpy().tolist() == [2.0, 4.0]


def test_what_no_grad_computes_is_constant():
    def loss(x):
        with no_grad():
            factor = ops.exp(x) * 0 + 3
        return (factor * x).sum()

    assert ms.grad(loss)(X).asnumpy().tolist() == [3.0, 3.0]


def test_gradients_must_be_tensors_and_only_of_tensors():
    class Numbers(Apart):
        @staticmethod
        def backward(ctx, gradient):
            return gradient, 4

    with pytest.raises(RuntimeError, match="should be none or tensor"):
        ms.grad(Numbers.apply, (0, 1))(X, Y)
    with pytest.raises(RuntimeError, match="Input is not tensor"):
        ms.grad(Numbers.apply)(X, 3)


@pytest.mark.parametrize("fill", [True, False])
def test_gradients_of_outputs_that_are_not_used(fill):
    class Pair(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(fill)
            return x * x, x + 1

        @staticmethod
        def backward(ctx, first, second):
            assert (second is not None) is fill
            return first

    assert ms.grad(lambda x: Pair.apply(x)[0])(X).asnumpy().tolist() == [1.0] * X.size


def test_to_ask_for_gradients_without_gradients_is_an_error():
    with no_grad(), pytest.raises(RuntimeError, match="no_grad"):
        ms.grad(lambda x: x * x)(X)
    assert ms.grad(lambda x: x * x)(X).asnumpy().tolist() == (2 * X).asnumpy().tolist()


def test_an_argument_is_a_variable_wherever_it_is_used():
    x = Tensor([3.0])

    def cube(a, b):
        return a * a * b

    assert [g.item() for g in ms.grad(cube, (0, 1))(x, x)] == [27.0, 27.0]
    assert ms.grad(lambda a: a * x)(x).item() == 6.0
    assert ms.grad(ms.grad(lambda a: a * a * x))(x).item() == 18.0
    assert [g.item() for g in ms.grad(cube, (0, 1))(x, Tensor([3.0]))] == [18.0, 9.0]
    weight = ms.Parameter(Tensor([2.0]), name="w")
    of_argument, of_weight = ms.grad(lambda a: a * weight, 0, weight)(weight)
    assert (of_argument.item(), of_weight.item()) == (4.0, 4.0)
