"""`vmap`: the rule of every op against a loop, axes, nesting with gradients, graphs and itself."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.engine.autodiff.custom_rule import custom_vjp
from mycelia.engine.ops import batch_rules
from mycelia.ops.define import op, registry
from mycelia.ops.infer import broadcast, same
from mycelia.testing.samples import samples_of

A = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
B = Tensor(np.arange(6, 12, dtype=np.float32).reshape(2, 3))
C = Tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4))

# Ops with regions or effects, with draws of their own, and those whose layouts are the compiler's.
_LEFT_OUT = set(
    """print require cond while_loop while_history scan custom_call dropout random_choice linear_pack
    conv_pack quantized_pack low_bit_pack""".split()
)


def ops_with_rules():
    for name in sorted(registry):
        definition = registry[name].definition
        plain = definition.sample_function and not definition.updates and not definition.dynamic
        if plain and name not in _LEFT_OUT and batch_rules.rule_of(definition) is not batch_rules.one_by_one:
            yield name


def _flat(args):
    return [leaf for a in args for leaf in (a if isinstance(a, list) else [a])]


@pytest.mark.parametrize("name", ops_with_rules())
def test_a_batch_is_what_its_examples_are(name):
    definition = registry[name].definition
    others = {s.index: s for s in samples_of(definition, 1)}
    cases = [s for s in samples_of(definition, 0) if not s.index or "_dtypes" not in s.options][:4]
    for sample in cases:
        structure = sample.tensors()
        first, second = _flat(structure), _flat(others[sample.index].tensors())
        tensors = [i for i, v in enumerate(first) if isinstance(v, Tensor)]
        subsets = {tuple(tensors), *((i,) for i in tensors)}
        for chosen in subsets:
            if any(first[i].shape != second[i].shape for i in chosen):
                continue

            def call(*leaves, structure=structure, sample=sample):
                it = iter(leaves)
                args = [[next(it) for _ in a] if isinstance(a, list) else next(it) for a in structure]
                found = sample.op(*args, **sample.attrs)
                return found if isinstance(found, tuple) else (found,)

            mixed = [b if i in chosen else a for i, (a, b) in enumerate(zip(first, second))]
            try:
                expected = [call(*first), call(*mixed)]
            except ValueError:  # the sample's values belong together
                continue
            # A batch as large as an axis of the example shows rules that take one for the other.
            size = next((n for n in first[chosen[0]].shape if 2 < n < 6), 3) if len(chosen) > 1 else 2
            axes = tuple(0 if i in chosen else None for i in range(len(first)))
            stacked = [
                ops.stack([(a, b)[k % 2] for k in range(size)]) if i in chosen else a
                for i, (a, b) in enumerate(zip(first, mixed))
            ]
            for found, *examples in zip(ms.vmap(call, axes)(*stacked), *expected):
                assert found.dtype is examples[0].dtype
                wanted = np.stack([_values(examples[k % 2]) for k in range(size)])
                np.testing.assert_allclose(_values(found), wanted, rtol=2e-3, atol=1e-4)


@op(name="test_centered", infer=same())
def centered(x):
    """An op from outside whose shape rule looks like that of elementwise ones."""
    return x - x.mean()


@centered.vjp
def centered(ct):
    return centered(ct)


@op(name="test_softened", infer=broadcast(), promote=("x", "y"))
def softened(x, y):
    """Another: of two operands."""
    return x - (x * y).max()


@op(name="test_shifted", elementwise="broadcast", infer=broadcast(), promote=("x", "y"))
def shifted(x, y):
    """One that says that it is elementwise."""
    return x + 2 * y


def _looped(function, axes, *args):
    size = next(a.shape[i] for a, i in zip(args, axes) if i is not None)
    return np.stack(
        [function(*(a if i is None else a.take(k, i) for a, i in zip(args, axes))) for k in range(size)]
    )


@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit])
@pytest.mark.parametrize("defined", [centered, softened, shifted])
def test_ops_from_outside_are_not_taken_for_elementwise(defined, wrap):
    body = defined.definition.body
    x = np.random.default_rng(0).normal(size=(3, 3, 3)).astype(np.float32)
    y = np.random.default_rng(1).normal(size=(3, 3)).astype(np.float32)
    if defined is centered:
        cases = [((0,), x), ((1,), x), ((-1,), x), ((0,), y)]
    else:
        cases = [((0, None), x, y), ((1, 0), x, x), ((None, 0), x, y), ((2, None), x, y), ((0, 1), y, y)]
    for axes, *args in cases:
        found = wrap(ms.vmap(defined, axes, 0))(*map(Tensor, args))
        np.testing.assert_allclose(found.asnumpy(), _looped(body, axes, *args), rtol=1e-5, atol=1e-6)
    count = len(cases[0]) - 1
    nested = wrap(ms.vmap(ms.vmap(defined, 0, 0), 1, 1))(*[Tensor(x)] * count)
    expected = [[body(*[x[i, j]] * count) for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(nested.asnumpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit])
def test_gradients_of_ops_from_outside(wrap):
    rows = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    found = wrap(ms.vmap(ms.grad(lambda row: (centered(row) ** 2).sum())))(Tensor(rows))
    expected = 2 * (rows - rows.mean(-1, keepdims=True))
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit])
@pytest.mark.parametrize("axis", [0, 1])
def test_custom_functions_see_one_example_at_a_time(wrap, axis):
    rows = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    expected = rows - rows.mean(1 - axis, keepdims=True)
    custom = ops.Custom(lambda a: a - a.mean(), lambda s: s, lambda d: d, func_type="pyfunc")
    ruled = custom_vjp(lambda a: a - a.mean(), lambda a, out, ct: (ct * 2.0,))
    for function in (custom, ruled):
        found = wrap(ms.vmap(function, axis, axis))(Tensor(rows))
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5, atol=1e-6)


def _values(tensor):
    return tensor.astype(ms.float32).asnumpy() if tensor.dtype is ms.bfloat16 else tensor.asnumpy()


def equal(found, expected):
    np.testing.assert_allclose(found.asnumpy(), np.asarray(expected), rtol=1e-5)


def add(x, y):
    return x + y


@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit], ids=["eager", "jit"])
def test_axes(wrap):
    a, b = A.asnumpy(), B.asnumpy()
    equal(wrap(ms.vmap(add))(A, B), a + b)
    equal(wrap(ms.vmap(add, (0, None)))(A, B[0]), a + b[0])
    equal(wrap(ms.vmap(add, (1, 0)))(A.T, B), a + b)
    equal(wrap(ms.vmap(add, -1))(A.T, B.T), a + b)
    equal(wrap(ms.vmap(add, 0, -1))(A, B), (a + b).T)
    equal(wrap(ms.vmap(lambda t, y: t[0] + t[1] * y, ((0, None), 0)))((A, B[0]), B), a + b[0] * b)
    rows, totals, constant = wrap(ms.vmap(lambda x: (x * 2, x.sum(), 1), 0, (1, 0, None)))(A)
    equal(rows, (a * 2).T)
    equal(totals, a.sum(1))
    assert int(constant) == 1


def test_nesting_and_transforms():
    c = C.asnumpy()
    equal(
        ms.vmap(lambda x: ms.vmap(lambda r: r / r.max())(x))(C + 1), (c + 1) / (c + 1).max(-1, keepdims=True)
    )
    equal(ms.vmap(ms.vmap(add, (0, None)))(C, C[:, 0]), c + c[:, :1])
    cubes = lambda x: (x**3).sum()
    equal(ms.vmap(ms.grad(cubes))(A), 3 * A.asnumpy() ** 2)
    equal(ms.vmap(ms.grad(ms.grad(lambda x: x**4)))(A[0]), 12 * A[0].asnumpy() ** 2)
    equal(
        ms.grad(lambda x: (ms.vmap(cubes)(x) * Tensor([1.0, 2.0])).sum())(A),
        3 * A.asnumpy() ** 2 * [[1], [2]],
    )
    equal(ms.jit(ms.vmap(ms.jit(ms.grad(cubes))))(A), 3 * A.asnumpy() ** 2)


def test_gradient_of_each_example():
    net = nn.SequentialCell(
        nn.Conv2d(1, 2, 3, weight_init="ones"), nn.ReLU(), nn.Flatten(), nn.Dense(32, 3), nn.LayerNorm((3,))
    )
    weights = net.trainable_params()
    x = Tensor(np.random.default_rng(0).normal(size=(4, 1, 4, 4)).astype(np.float32))
    y = Tensor(np.array([0, 2, 1, 0], np.int32))

    def loss(x, y):
        return ops.cross_entropy(net(ops.expand_dims(x, 0)), ops.expand_dims(y, 0))

    of_each = ms.vmap(ms.grad(loss, None, weights))(x, y)
    for i in range(4):
        for found, expected in zip(of_each, ms.grad(loss, None, weights)(x[i], y[i])):
            np.testing.assert_allclose(found[i].asnumpy(), expected.asnumpy(), rtol=1e-4, atol=1e-5)


class Small(nn.Cell):
    def __init__(self, factor):
        super().__init__()
        self.w = Parameter(Tensor([1.0, 2.0, 3.0]) * factor, name="w")

    def construct(self, x):
        return (x * self.w).sum()


def test_ensembles():
    cells = nn.CellList([Small(1.0), Small(10.0)])
    equal(ms.vmap(cells)(A), [8, 260])
    equal(ms.vmap(cells, None)(A[0]), [8, 80])
    together = lambda x: ms.vmap(cells, None)(x).sum()
    for found in ms.grad(together, None, cells.trainable_params())(A[0]):
        equal(found, [0, 1, 2])
    assert cells[0].w.asnumpy().tolist() == [1, 2, 3]


def test_values_that_are_written():
    def scattered(x):
        y = ops.zeros((3,), ms.float32)
        y[1] = x.sum()
        return y

    equal(ms.vmap(scattered)(A), [[0, 3, 0], [0, 12, 0]])
    total = Parameter(Tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]), name="total")
    ms.vmap(lambda x, t: ops.assign_add(t, x), (0, 1))(A, total)
    equal(total, [[1, 4], [3, 6], [5, 8]])
    shared = Parameter(Tensor(0.0), name="shared")
    with pytest.raises(RuntimeError, match="shared by the whole batch"):
        ms.vmap(lambda x: ops.assign(shared, x.sum()))(A)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ms.vmap(add)(A, C[0]), "'axis_size' .* should be equal, but got 2 and 3"),
        (lambda: ms.vmap(add, -3)(A, B), r"The axis: -3 in 'in_axes' is out of bounds .* \[-2,2\)"),
        (lambda: ms.vmap(add, 0, 2)(A, B), r"The axis: 2 in 'out_axes' is out of bounds .* \[-2,2\)"),
        (lambda: ms.vmap(add, (0,))(A, B), "number of arguments of 'fn': 2, but got size: 1"),
        (lambda: ms.vmap(lambda x: (x, x), 0, (0, 0, 0))(A), "number of results of 'fn': 2, but got size: 3"),
        (lambda: ms.vmap(add, None), "'in_axes' of 'vmap' cannot be a single None"),
        (lambda: ms.vmap(add, 0, (None, (None,))), "'out_axes' of 'vmap' cannot be all None"),
        (lambda: ms.vmap(add, (None, None))(A, B), "Failed to get 'axis_size'"),
        (lambda: ms.vmap(lambda: 1)(), "Failed to get 'axis_size'"),
        (lambda: ms.vmap(add, "a"), "must be an int"),
        (lambda: ms.vmap(add)(A, 3), "must be None"),
        (lambda: ms.vmap(lambda x: (x, x), 0, (0, None))(A), "source is not None and dst is None"),
        (lambda: ms.vmap(3), "must be a function"),
        (lambda: ms.vmap(lambda x: ops.nonzero(x))(A), "depends on the data"),
        (lambda: ms.vmap(nn.CellList([nn.ReLU()]))(A), "must be greater than 1, but got 1"),
        (lambda: ms.vmap(nn.CellList([nn.ReLU(), nn.L1Loss()]))(A), "must take the same inputs"),
    ],
)
def test_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()
    equal(ms.vmap(add)(A, B), A.asnumpy() + B.asnumpy())  # nothing is left over


def test_calls_that_do_not_fit_the_function():
    with pytest.raises(TypeError, match="parameters number of the function is 2, but .* arguments is 1"):
        ms.vmap(add, (0, 0))(A)
    with pytest.raises(ValueError, match="axis_size: 3 and the cell size: 2"):
        ms.vmap(nn.CellList([nn.ReLU(), nn.ReLU()]), 1)(A)


def test_vmap_in_vmap_writes_to_the_parameter():
    weights = Parameter(ops.zeros((2, 3, 4)), name="weights")
    descend = ops.operations.ApplyGradientDescent()

    def step(weights, gradient):
        return descend(weights, Tensor(0.5), gradient)

    gradient = Tensor([[[float(r + c) for c in range(3)] for r in range(4)], [[2.0] * 3] * 4])
    out = ops.vmap(ops.vmap(step, in_axes=(1, 0)), in_axes=(0, 0))(weights, gradient)
    assert out.shape == (2, 4, 3)
    expected = -0.5 * gradient.asnumpy().transpose(0, 2, 1)
    assert weights.asnumpy().tolist() == expected.tolist()
