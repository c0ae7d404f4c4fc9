"""Collectives on ranks that are threads: values, gradients, graphs."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import communication, ops
from mycelia.communication import comm_func as cf
from mycelia.engine.communication import messages
from mycelia.engine.compile import disk_cache
from mycelia.engine.ops.communication import collectives as c
from mycelia.parallel.engines import threads

RNG = np.random.default_rng(5)


def tensor(values, dtype=np.float32):
    return ms.Tensor(np.asarray(values, dtype))


def inputs(ranks, *shape):
    return [RNG.normal(size=shape).astype(np.float32) for _ in range(ranks)]


#: name -> (what a rank computes, the same from the inputs of all ranks)
CASES = {
    "sum": (lambda x: c.all_reduce(x), lambda xs, r: sum(xs[1:], xs[0])),
    "avg": (lambda x: c.all_reduce(x, "avg"), lambda xs, r: sum(xs[1:], xs[0]) / len(xs)),
    "max": (lambda x: c.all_reduce(x, "max"), lambda xs, r: c.fold(ops.stack(xs), "max")),
    "prod": (lambda x: c.all_reduce(x, "prod"), lambda xs, r: c.fold(ops.stack(xs), "prod")),
    "gather": (lambda x: c.all_gather(x), lambda xs, r: ops.cat(xs)),
    "reduce_scatter": (
        lambda x: c.reduce_scatter(x),
        lambda xs, r: ops.split(sum(xs[1:], xs[0]), xs[0].shape[0] // len(xs))[r],
    ),
    "reduce_scatter_min": (
        lambda x: c.reduce_scatter(x, "min"),
        lambda xs, r: ops.split(c.fold(ops.stack(xs), "min"), xs[0].shape[0] // len(xs))[r],
    ),
    "broadcast": (lambda x: cf.broadcast(x, 1), lambda xs, r: xs[1] * 1),
    "reduce": (lambda x: c.reduce(x, 1, "avg"), lambda xs, r: sum(xs[1:], xs[0]) * float(r == 1) / len(xs)),
    "gather_to": (
        lambda x: c.gather_to(x, root=0, size=communication.get_group_size()),
        lambda xs, r: ops.cat(xs) * float(r == 0),
    ),
    "scatter": (
        lambda x: cf.scatter_tensor(x, 1), lambda xs, r: ops.split(xs[1], xs[1].shape[0] // len(xs))[r]
    ),
    "all_to_all": (
        lambda x: c.all_to_all(x, 0, 0),
        lambda xs, r: ops.cat([ops.split(one, one.shape[0] // len(xs))[r] for one in xs]),
    ),
}  # fmt: skip


def run(ranks, function, data, compiled):
    """Result, gradient, and gradient of that, of ``sum(w * function(x) ** 3)`` on each rank."""

    def loss(x, w):
        return (w * function(x) ** 3).sum()

    def work(rank):
        x = tensor(data[rank])
        w = tensor(np.cos(np.arange(function(x).size)).reshape(function(x).shape) + rank)
        once = ms.jit(loss) if compiled else loss
        first = ms.grad(once)
        second = ms.grad(
            lambda x, w: (first(x, w) * tensor(np.sin(np.arange(x.size))).reshape(x.shape)).sum()
        )
        value = ms.jit(function)(x) if compiled else function(x)
        return value.asnumpy(), first(x, w).asnumpy(), second(x, w).asnumpy()

    return threads.run(ranks, work)


def alone(ranks, function, data):
    """The same of all ranks in one process, where the sum of the losses of all has a gradient for each
    input.
    """
    shapes = [function([tensor(x) for x in data], r).shape for r in range(ranks)]
    weights = [tensor(np.cos(np.arange(np.prod(s))).reshape(s) + r) for r, s in enumerate(shapes)]

    def total(*xs):
        return sum((weights[r] * function(list(xs), r) ** 3).sum() for r in range(ranks))

    everything = tuple(range(ranks))
    first = ms.grad(total, everything)
    direction = tensor(np.sin(np.arange(data[0].size)).reshape(data[0].shape))
    second = ms.grad(lambda *xs: sum((g * direction).sum() for g in first(*xs)), everything)
    xs = [tensor(x) for x in data]
    values = [function(xs, r).asnumpy() for r in range(ranks)]
    return list(zip(values, [g.asnumpy() for g in first(*xs)], [g.asnumpy() for g in second(*xs)]))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", CASES)
def test_values_and_two_orders_of_gradients_are_those_of_one_process(name, ranks, compiled):
    function, meaning = CASES[name]
    data = inputs(ranks, 6, 2)
    for found, expected in zip(
        run(ranks, function, data, compiled), alone(ranks, meaning, data), strict=True
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


def test_zeros_have_the_gradient_of_a_product():
    data = [np.array([0, 0, 3], np.float32), np.array([5, 0, 2], np.float32)]
    found = threads.run(
        2, lambda r: ms.grad(lambda x: c.all_reduce(x, "prod").sum())(tensor(data[r])).asnumpy()
    )
    np.testing.assert_array_equal(found, [[10, 0, 4], [0, 0, 6]])


@pytest.mark.parametrize("count", [messages.WHOLE_BYTES // 4, messages.WHOLE_BYTES // 4 + 1, 3])
def test_long_and_short_arrays_are_summed_in_the_order_of_ranks(count):
    data = inputs(3, count)
    expected = (data[0] + data[1]) + data[2]
    for found in threads.run(3, lambda r: c.all_reduce(tensor(data[r])).asnumpy()):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16])
def test_short_floats_are_added_in_float32(dtype):
    def work(rank):
        x = ms.Tensor(np.array([256.0 if dtype is ms.bfloat16 else 2048.0, 1.0], np.float32)).astype(dtype)
        total = c.all_reduce(x if rank == 0 else ops.ones_like(x))
        assert total.dtype is dtype
        return total.astype(ms.float32).asnumpy()

    found = threads.run(4, work)
    np.testing.assert_array_equal(found, [[2052 if dtype is ms.float16 else 260, 4]] * 4)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "bool", "float64", "complex64"])
def test_every_dtype_goes_through(dtype):
    data = np.array([1, 0, 1], dtype)
    found = threads.run(2, lambda r: (c.all_reduce(ms.Tensor(data)), c.all_gather(ms.Tensor(data))))
    for total, joined in found:
        np.testing.assert_array_equal(total.asnumpy(), data + data)
        assert total.asnumpy().dtype == data.dtype
        np.testing.assert_array_equal(joined.asnumpy(), np.concatenate([data, data]))


def test_numbers_and_empty_tensors_can_be_reduced():
    def work(rank):
        empty = c.all_reduce(tensor(np.zeros((0, 3))))
        return c.all_reduce(tensor(rank + 1.0)).item(), empty.shape

    assert threads.run(3, work) == [(6.0, (0, 3))] * 3


def test_a_graph_keeps_all_calls_in_their_order():
    """None is removed, joined with an equal one, moved past another, or computed once for all."""

    @ms.jit
    def step(x):
        constant = ops.ones((2,), ms.float32)
        c.all_reduce(x, "max")  # nobody uses it
        first, second = c.all_reduce(x), c.all_reduce(x)
        c.barrier()
        return first + second + c.all_reduce(constant)

    def work(rank):
        calls = []
        communicator = ms.parallel.comm.world.current().communicator
        exchange = communicator._exchange
        communicator._exchange = lambda what, parcels: (calls.append(what), exchange(what, parcels))[1]
        found = [step(tensor([1.0 + rank, 2.0])).asnumpy().tolist() for _ in range(2)]
        return found, calls

    named = ["all_reduce(max", "all_reduce(sum", "all_reduce(sum", "barrier(", "all_reduce(sum"]
    for found, calls in threads.run(2, work):
        assert found == [[8.0, 10.0]] * 2
        assert [call.partition(",")[0].partition(")")[0] for call in calls] == named * 2


def test_a_collective_in_a_loop_and_in_a_branch_of_a_graph():
    @ms.jit
    def step(x, n):
        i = 0
        while i < n:
            x = c.all_reduce(x, "avg") + 1
            i = i + 1
        if x.sum() > 0:
            x = c.all_reduce(x)
        return x

    found = threads.run(2, lambda r: step(tensor([2.0 * r]), ms.Tensor(3)).asnumpy().tolist())
    assert found == [[8.0], [8.0]]


def test_a_rank_that_captures_does_not_wait_for_one_that_runs():
    """One thread captures at a time; a rank that waits must not keep another from its capture."""
    step = ms.jit(lambda x: c.all_reduce(x) * 2)

    def work(rank):
        found = [step(tensor(np.ones(size) * rank)).asnumpy().tolist() for size in range(1, 6)]
        return found == [[6.0] * size for size in range(1, 6)]

    assert all(threads.run(3, work))


def test_functions_for_batches_see_each_example():
    data = inputs(2, 3, 2)
    found = threads.run(2, lambda r: ms.vmap(lambda x: c.all_reduce(x) * 2)(tensor(data[r])).asnumpy())
    np.testing.assert_allclose(found, [2 * (data[0] + data[1])] * 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: c.all_reduce(x, "median"), "median"),
        (lambda x: c.all_reduce(x.astype(ms.int32), "avg"), "average needs floating"),
        (lambda x: c.reduce_scatter(x), "3 rows cannot be cut into 2"),
        (lambda x: c.all_gather(x.sum()), "no first axis"),
        (lambda x: c.exchange_parts(x, give=(1, 1), take=(1, 1)), "do not make up 3"),
        (lambda x: cf.broadcast(x, 2), r"ranks \[0, 1\], but got 2"),
        (lambda x: cf.all_reduce(x, "avg"), "avg"),
        (lambda x: cf.all_reduce([1]), "tensor must be a Tensor"),
        (lambda x: cf.all_reduce(x, group="others"), "others"),
        (lambda x: ops.AlltoAll(3, 0, 0)(x), "size of the group, 2"),
        (lambda x: ops.NeighborExchange([1], [1], ([2],), ([2],), ms.float32)(x), "NeighborExchange"),
    ],
)
def test_bad_calls_say_what_is_wrong_on_every_rank(call, message):
    def work(rank):
        with pytest.raises((ValueError, TypeError, NotImplementedError), match=message):
            call(tensor([1, 2, 3]))

    threads.run(2, work)


def test_before_joining_nothing_is_reduced():
    with pytest.raises(RuntimeError, match="communication.init"):
        ops.AllReduce()(tensor([1]))


def test_a_function_that_was_compiled_for_other_ranks_is_compiled_anew():
    """Sizes, and what only one rank gets, are facts of a graph."""
    step = ms.jit(lambda x: (ops.AllGather()(x), ops.Reduce(0)(x)))

    def work(rank):
        return [[y.asnumpy().tolist() for y in step(tensor([1.0, rank]))] for _ in range(2)]

    for ranks in (2, 3):
        gathered = [v for rank in range(ranks) for v in (1.0, rank)]
        total = [float(ranks), sum(range(ranks))]
        for rank, found in enumerate(threads.run(ranks, work)):
            for joined, reduced in found:
                assert joined == gathered and (reduced == total if rank == 0 else len(reduced) == 1)


class Mixed(ms.nn.Cell):
    def construct(self, x):
        gathered = ops.AllGather()(ops.AllReduce()(x))
        return ops.ReduceScatter()(gathered) + ops.AllReduce("min")(x) + ops.Broadcast(1)((x,))[0]


def test_files_hold_collectives_as_mindspores_operators(tmp_path):
    data = inputs(2, 4, 2)

    def work(rank):
        file, x = str(tmp_path / f"net{rank}.mindir"), tensor(data[rank])
        ms.export(Mixed(), x, file_name=file, file_format="MINDIR")
        return Mixed()(x).asnumpy(), ms.nn.GraphCell(ms.load(file))(x).asnumpy()

    for expected, found in threads.run(2, work):
        np.testing.assert_array_equal(found, expected)
    text = (tmp_path / "net0.mindir").read_bytes()
    assert all(name in text for name in (b"AllGather", b"AllReduce", b"Broadcast"))


def test_an_average_has_no_operator_in_files(tmp_path):
    class Average(ms.nn.Cell):
        def construct(self, x):
            return c.all_reduce(x, "avg")

    def work(rank):
        with pytest.raises(ValueError, match="all_reduce_sum of an average"):
            ms.export(Average(), tensor([1.0]), file_name=str(tmp_path / "net"), file_format="MINDIR")

    threads.run(1, work)


def test_graphs_follow_what_the_name_of_a_group_means():
    """Ranks within a group, and their number, are captured."""
    sent = ms.jit(lambda x: cf.broadcast(x, 2, "some"))
    joined = ms.jit(lambda x: cf.all_gather_into_tensor(x, "some")[0])

    def work(rank):
        found = []
        for ranks in ([0, 1, 2], [2, 1, 0], [0, 2], [0, 1, 2]):
            communication.create_group("some", ranks)
            if rank in ranks:
                found.append((sent(tensor([rank])).item(), joined(tensor([rank])).asnumpy().tolist()))
            communication.destroy_group("some")
        return found

    all_three = (2, [0, 1, 2])
    assert threads.run(3, work)[0] == [all_three, (2, [2, 1, 0]), (2, [0, 2]), all_three]


def test_graphs_on_disks_are_of_the_groups_that_they_were_made_with():
    def work(rank):
        communication.create_group("some", [0, 1])
        before = disk_cache.environment()
        communication.destroy_group("some")
        communication.create_group("some", [1, 0])
        return before != disk_cache.environment()

    assert threads.run(2, work) == [True, True]
