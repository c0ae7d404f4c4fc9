"""Planted faults show in the results that they name, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.testing.comparison import on_backend
from mycelia.testing.training_contract import train_lenet
from mycelia_backend_ascend_sim import collectives, faults


@pytest.fixture(autouse=True)
def on_device():
    with on_backend("Ascend"):
        yield


def half(*values) -> ms.Tensor:
    return ms.Tensor(np.array(values, np.float16))


def test_a_nan_is_in_the_task_and_step_that_were_named():
    with faults.inject(faults.Nan("relu", index=1, step=2, element=1)) as planted:
        found = []
        for planted.step in range(4):
            for _ in range(3):
                ops.exp(half(1, 2))
                found.append(np.isnan(ops.relu(half(1, 2)).asnumpy()).tolist())
    assert [i for i, nan in enumerate(found) if any(nan)] == [2 * 3 + 1] and found[7] == [False, True]
    assert [(op, step) for _, op, step, _ in planted.hits] == [("relu", 2)]


def test_nothing_is_left_when_the_block_ends():
    with pytest.raises(ZeroDivisionError), faults.inject(faults.Nan("*")):
        assert np.isnan((half(1) + 1).asnumpy()).all()
        raise ZeroDivisionError
    assert (half(1) + 1).asnumpy().tolist() == [2]


def test_wrong_rounding_cuts():
    with faults.inject(faults.WrongRounding("add")):
        assert (half(2050, -2050, 4094) + half(1.5, -1.5, 1.5)).asnumpy().tolist() == [2050, -2050, 4094]
        assert (half(2050) * half(1)).asnumpy().tolist() == [2050]
    assert (half(2050) + half(1.5)).asnumpy().tolist() == [2052]


@pytest.mark.parametrize(
    "dtype, bit, value, want",
    [("float16", 0, 1, 1 + 2.0**-10), ("float16", 14, 1, np.inf), ("bfloat16", 0, 1, 1 + 2.0**-7),
     ("float32", 23, 0, 0.5), ("int32", 3, 1, 9)],
)  # fmt: skip
def test_a_stuck_bit(dtype, bit, value, want):
    x = ms.Tensor(np.array([1.0], np.float32)).astype(getattr(ms, dtype))
    with faults.inject(faults.StuckBit("mul", bit=bit, value=value)) as planted:
        y = (x * x).astype(ms.float32)
    assert planted.hits and y.asnumpy()[0] == want


def test_faults_reach_compiled_programs_and_training():
    clean = [float(v) for v in train_lenet("step")[:3]]
    with faults.inject(faults.Nan("conv_weight_grad")) as planted:
        broken = [float(v) for v in train_lenet("step")[:3]]
    assert planted.hits and broken[0] == clean[0] and np.isnan(broken[1])


def test_the_callback_counts_steps():
    net = nn.Dense(3, 2)
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    rows = [(np.ones(3, np.float32), np.zeros(2, np.float32))] * 4
    data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(1)
    with faults.inject(faults.StuckBit("dense", step=2)) as planted:
        model.train(1, data, callbacks=[faults.step_counter(planted)], dataset_sink_mode=False)
    assert {step for _, _, step, _ in planted.hits} == {2}


def test_what_is_no_fault_is_refused():
    with pytest.raises(TypeError, match="takes faults, but got str"), faults.inject("nan"):
        pass


def test_all_reduce_adds_rank_after_rank():
    parts = [np.array([v], np.float16) for v in (2048, 1, 1)]
    assert [float(t[0]) for t in collectives.all_reduce(parts)] == [2048] * 3  # 2048 + 1 is 2048, twice
    assert [float(t[0]) for t in collectives.all_reduce(parts[::-1])] == [2050] * 3


def test_a_rank_is_dropped():
    parts = [np.full(2, v, np.float32) for v in (1, 2, 4)]
    with faults.inject(faults.DroppedAllReduce(rank=1, step=3)) as planted:
        for planted.step in (2, 3):
            found = collectives.all_reduce(parts)
    assert [t.tolist() for t in found] == [[5, 5], [2, 2], [5, 5]] and len(planted.hits) == 1


@pytest.mark.parametrize(
    "parts, error",
    [([], ValueError), ([np.zeros(2, np.float32), np.zeros(3, np.float32)], ValueError),
     ([np.zeros(2)], TypeError)],
)  # fmt: skip
def test_all_reduce_refuses(parts, error):
    with pytest.raises(error):
        collectives.all_reduce(parts)


@pytest.mark.parametrize("fault", [faults.StuckBit("exp", bit=9), faults.WrongRounding("exp")])
def test_a_check_of_each_operator_alone_names_the_broken_one(fault):
    from mycelia import precision

    x = half(*np.linspace(-1, 1, 500))
    with faults.inject(fault), precision.acc_check() as kept:
        ops.tanh(ops.exp(ops.relu(x)))
    verdicts = {row.operator.type: row.verdict for row in kept.results()}
    assert verdicts == {"ReLU": "pass", "Exp": "fail", "Tanh": "pass"}
