"""One lowering serves many sizes: the programs give what Python gives, and share weights and memory."""

import copy
import gc
import threading

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.engine import _C
from mycelia.engine.compile import resizable
from mycelia.engine.compile.executable import live_programs
from mycelia.testing.networks import Block, Decoder, training_step


def tensor(*shape, seed=0):
    return Tensor(np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32))


@pytest.fixture
def lowerings(monkeypatch):
    """The graphs that were lowered with open sizes."""
    found = []
    another = resizable.Resizable.another

    def counted(self, sizes):
        found.append(tuple(sizes))
        return another(self, sizes)

    monkeypatch.setattr(resizable.Resizable, "another", counted)
    return found


class Images(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 3, stride=2)
        self.dense = nn.Dense(4, 5)

    def construct(self, x):
        x = ops.relu(self.norm(self.conv(x)))
        return self.dense(self.last(x).mean((2, 3)))


def recurrent(x):
    """Three rounds of a loop of the graph over values of open sizes, with a branch."""
    h, i = ops.zeros_like(x[0]), Tensor(0)
    while i < 3:
        h = ops.tanh(x.sum(0) + h @ ops.ones((h.shape[1], h.shape[1]), ms.float32))
        if h.sum() > 0:
            h = h - x[i] * x.shape[1]
        i = i + 1
    return h


def statistics(x):
    low = x - x.mean(0)
    return ops.concat([low.std(0), ops.topk(low.reshape(-1), 3)[0], x.var().reshape(1)])


CASES = {
    "block": (Block(8, 2, 128), lambda n: (tensor(2, n, 8),)),
    "decoder": (
        Decoder(8, 2),
        lambda n: (tensor(1, 1, 8), tensor(1, 2, n, 4), tensor(1, 2, n, 4, seed=1)),
    ),
    "images of many sizes": (Images().set_train(False), lambda n: (tensor(1 + n % 3, 3, n + 3, n + 8),)),
    "product of a matrix with itself": (lambda x: ops.softmax(x @ x.T, 0) @ x, lambda n: (tensor(n, 8),)),
    "sums": (lambda x: (x * 2 + 1).sum(0) + ops.amax(ops.exp(x), 0), lambda n: (tensor(n, 6),)),
    "sums of rows": (lambda x: ops.exp(x - x.max(-1, keepdims=True)).sum(-1), lambda n: (tensor(3, n),)),
    "loop": (recurrent, lambda n: (tensor(3, 2, n) * 0.1,)),
    "statistics": (statistics, lambda n: (tensor(n + 4, 4),)),
    "gradient": (
        ms.grad(lambda x: (ops.softmax(x @ x.T) @ x).mean() * x.shape[0]),
        lambda n: (tensor(n, 8),),
    ),
    "integers": (lambda x: ops.cumsum(x, 0)[::-1] % x.shape[0], lambda n: (ops.arange(n),)),
    "several results": (
        lambda x: (x + 1, x.sum() * x.shape[0], x.reshape(-1), ops.split(x, 1, 1)),
        lambda n: (tensor(n, 2),),
    ),
}


def flat(results):
    if isinstance(results, (tuple, list)):
        return [part for r in results for part in flat(r)]
    return [np.asarray(results.asnumpy() if isinstance(results, Tensor) else results)]


@pytest.mark.parametrize("name", CASES)
def test_every_size_gives_what_python_gives(name, lowerings):
    function, make = CASES[name]
    if isinstance(function, nn.Cell):
        function = copy.deepcopy(function)
    compiled = ms.jit(function)
    for n in (*range(2, 40), 64, 63, 100, 8, 3, 120):
        for expected, got in zip(flat(function(*make(n))), flat(compiled(*make(n))), strict=True):
            np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-5, err_msg=f"size {n}")
    assert compiled.cache_info().captures <= 4
    assert 0 < len(lowerings) <= 16


def test_training_with_a_new_size_in_each_step(lowerings):
    net = Block(8, 2, 128)
    other = copy.deepcopy(net)
    step, expected = ms.jit(training_step(net, 1e-2)), training_step(other, 1e-2)
    for n in (*range(3, 20), 8, 8, 16, 5):
        x = tensor(2, n, 8)
        np.testing.assert_allclose(step(x).asnumpy(), expected(x).asnumpy(), rtol=2e-3, atol=1e-5)
    assert step.cache_info().captures <= 3
    assert 0 < len(lowerings) < 8
    for a, b in zip(net.get_parameters(), other.get_parameters()):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=2e-2, atol=2e-3)


def test_results_never_share_memory():
    net = Block(8, 2, 128)
    compiled = ms.jit(net)
    inputs = [tensor(2, n, 8) for n in range(2, 12)] * 2
    results = [compiled(x) for x in inputs]
    for x, y in zip(inputs, results):
        np.testing.assert_allclose(y.asnumpy(), net(x).asnumpy(), rtol=1e-4, atol=1e-5)


def test_changed_weights_are_packed_again_for_all_sizes():
    net = nn.Dense(16, 32)
    compiled = ms.jit(net)
    for scale in range(1, 4):
        net.weight.set_data(tensor(32, 16, seed=scale))
        for n in (5, 6, 7, 8, 5):
            x = tensor(n, 16)
            np.testing.assert_allclose(compiled(x).asnumpy(), net(x).asnumpy(), rtol=1e-4, atol=1e-5)


def hoisted():
    return {id(h): h for program in live_programs() for h in program.hoisted}


def test_weights_are_packed_once_for_all_sizes_and_functions():
    before = hoisted()
    net = nn.Dense(16, 32)
    first, second = ms.jit(net), ms.jit(lambda x: ops.relu(net(x)))
    for n in range(2, 20):
        first(tensor(n, 16)), second(tensor(n, 16))
    kept = [h for key, h in hoisted().items() if key not in before]
    assert len(kept) == 1 and kept[0].runs == 1
    net.weight.set_data(net.weight * 2)
    for n in (3, 30):
        x = tensor(n, 16)
        np.testing.assert_allclose(second(x).asnumpy(), ops.relu(net(x)).asnumpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(first(x).asnumpy(), net(x).asnumpy(), rtol=1e-4, atol=1e-5)
    assert kept[0].runs == 2


def test_weights_that_change_in_every_call_are_not_kept():
    net = nn.Dense(16, 32)
    compiled = ms.jit(net)
    for n in range(2, 30):
        net.weight.set_data(tensor(32, 16, seed=n))
        x = tensor(n, 16)
        np.testing.assert_allclose(compiled(x).asnumpy(), net(x).asnumpy(), rtol=1e-4, atol=1e-5)
    del compiled
    gc.collect()


def reserved(make, sizes):
    """Bytes of tensors, free ones included, after a new function has been called with these sizes."""
    gc.collect()
    _C.empty_cache()
    function, arguments = make()
    for n in sizes:
        function(*arguments(n))
    gc.collect()
    found = _C.memory_statistics()
    info = function.cache_info()
    assert info.kept <= info.limit
    return found["live_bytes"] + found["cached_bytes"]


def layers():
    net = nn.SequentialCell(nn.Dense(512, 1024), nn.ReLU(), nn.Dense(1024, 512))
    return ms.jit(net), lambda n: (tensor(n, 512),)


def decoding():
    net = Decoder(256, 4)
    return ms.jit(net), lambda n: (tensor(1, 1, 256), tensor(1, 4, n, 64), tensor(1, 4, n, 64, seed=1))


@pytest.mark.parametrize("make", [layers, decoding])
def test_memory_of_many_sizes_is_that_of_the_largest(make):
    alone = reserved(make, [70])
    assert reserved(make, range(1, 71)) <= 1.2 * alone


def test_threads_with_sizes_of_their_own():
    net = Block(8, 2, 128)
    compiled = ms.jit(net)
    inputs = {n: tensor(2, n, 8) for n in range(2, 34)}
    expected = {n: net(x).asnumpy() for n, x in inputs.items()}
    wrong = []

    def work(seed):
        for n in np.random.default_rng(seed).permutation(list(inputs)):
            try:
                np.testing.assert_allclose(compiled(inputs[n]).asnumpy(), expected[n], rtol=1e-4, atol=1e-5)
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_resized_program_can_be_read():
    compiled = ms.jit(lambda x: ops.softmax(x @ x.T, 0) @ x)
    for n in (5, 6, 7):
        compiled(tensor(n, 8))
    assert "Tensor[Float32](7, 8)" in compiled.graph()
    report = compiled.memory_report()
    assert report.peak >= report.lower_bound >= 7 * 7 * 4
    made = [p for p in live_programs() for n in p.nodes for v in n.outputs if v.type.shape == (7, 8)]
    assert report.peak in [p.arena_bytes for p in made]


def test_places_in_the_arena_overlap_only_in_time():
    random = np.random.default_rng(0)
    for _ in range(50):
        count = int(random.integers(1, 40))
        sizes = random.integers(0, 2000, count).tolist()
        first = random.integers(0, 30, count)
        last = (first + random.integers(0, 10, count)).tolist()
        offsets, total = _C.plan_offsets(sizes, first.tolist(), last)
        for i in range(count):
            assert offsets[i] % 64 == 0 and offsets[i] + sizes[i] <= total
            for j in range(i):
                if first[i] <= last[j] and first[j] <= last[i]:
                    assert offsets[i] + sizes[i] <= offsets[j] or offsets[j] + sizes[j] <= offsets[i]


# ---- gradients from outside


@pytest.mark.parametrize(
    "name", ["block", "product of a matrix with itself", "sums", "decoder", "several results"]
)
def test_gradients_of_compiled_functions_at_every_size(name, lowerings):
    function, make = CASES[name]
    compiled = ms.jit(function)

    def total(run):
        return lambda *args: sum((r.sum() * (i + 1) for i, r in enumerate(tensors(run(*args)))), 0.0)

    for n in (*range(2, 20), 8, 8, 33, 5):
        args = make(n)
        wanted = ms.grad(total(function), tuple(range(len(args))))(*args)
        got = ms.grad(total(compiled), tuple(range(len(args))))(*args)
        for expected, found in zip(flat(wanted), flat(got), strict=True):
            np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4, err_msg=f"size {n}")
    assert compiled.cache_info().captures <= 4
    assert 0 < len(lowerings) <= 20


def tensors(results):
    if isinstance(results, (tuple, list)):
        return [part for r in results for part in tensors(r)]
    return [results]


def test_second_gradients_at_every_size():
    def wave(x):
        return (ops.sin(x) * x.shape[0]).mean() * x.sum()

    def slope(run):
        return ms.grad(lambda y: (ms.grad(run)(y) ** 2).sum())

    compiled = ms.jit(wave)
    for n in range(2, 9):
        x = tensor(n, 3)
        np.testing.assert_allclose(
            slope(compiled)(x).asnumpy(), slope(wave)(x).asnumpy(), rtol=1e-4, atol=1e-5
        )


def test_steps_of_a_compiled_network_with_a_new_size_each(lowerings):
    net = nn.SequentialCell(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
    net.set_train()
    other = copy.deepcopy(net)
    runs = []
    for module, run in ((net, ms.jit(net)), (other, other)):
        optimizer = nn.Momentum(module.trainable_params(), 0.05, 0.9)
        gradient = ms.value_and_grad(lambda x, run=run: (run(x) ** 2).mean(), None, optimizer.parameters)
        runs.append((gradient, optimizer))
    for n in (*range(4, 12), 5, 6):
        x = tensor(2, 2, n, 7)
        losses = []
        for gradient, optimizer in runs:
            loss, gradients = gradient(x)
            optimizer(gradients)
            losses.append(loss.asnumpy())
        np.testing.assert_allclose(*losses, rtol=1e-3, atol=1e-5)
    for a, b in zip(net.get_parameters(), other.get_parameters()):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-2, atol=1e-4)
    assert lowerings


def until_small(x):
    """A loop whose number of rounds only the graph knows; its rule computes with sizes."""
    while (x * x).sum() > 1:
        x = x * 0.7 - x.mean(0) * 0.1 * x.shape[0] / (x.shape[0] + 1)
    return (x**2).mean()


def over_rows(x):
    total, i = Tensor(0.0), Tensor(0)
    while i < x.shape[0]:
        total, i = total + x[i].sum() ** 2, i + 1
    return total


@pytest.mark.parametrize("function", [until_small, over_rows])
def test_gradients_of_loops_share_one_capture(function):
    gradient = ms.grad(function)
    compiled = ms.jit(lambda x: gradient(x))
    for n in (*range(3, 12), 4, 30):
        x = tensor(n, 3)
        np.testing.assert_allclose(compiled(x).asnumpy(), gradient(x).asnumpy(), rtol=1e-4, atol=1e-6)
    assert compiled.cache_info().captures <= 3
