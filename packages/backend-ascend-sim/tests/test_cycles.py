"""The cycle model: tiles fit into buffers, pipes never work longer than the task, figures are plausible."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mycelia as ms
from mycelia.testing.comparison import on_backend
from mycelia.testing.training_contract import train_lenet
from mycelia_backend_ascend_sim import chip, cycles, profile
from mycelia_backend_ascend_sim.cycles import PIPES, Product

SIZES = st.integers(1, 3000)


def product(m, n, k, count=1, size=2) -> Product:
    return Product(m, n, k, count, size, size)


@given(m=SIZES, n=SIZES, k=SIZES, count=st.integers(1, 40), name=st.sampled_from(chip.names()))
def test_tiles_fit_and_pipes_overlap(m, n, k, count, name):
    c = chip.load(name)
    found = cycles.of_product(product(m, n, k, count), c)
    tile = found.tile
    assert all(b % 16 == 0 and b > 0 for b in (tile.base_m, tile.base_n, tile.base_k))
    assert 2 * tile.base_m * tile.base_k * 2 <= c.l0a and 2 * tile.base_k * tile.base_n * 2 <= c.l0b
    assert 2 * tile.base_m * tile.base_n * 4 <= c.l0c
    assert tile.count == math.ceil(m / tile.base_m) * math.ceil(n / tile.base_n) * count or min(m, n) % 16
    assert 1 <= found.cores <= min(c.cores, tile.count)
    assert set(found.busy) == set(PIPES) and all(0 <= found.ratio(p) <= 1 for p in PIPES)
    peak = found.cores * math.prod(c.cube)
    assert m * n * k * count <= found.total * peak  # no chip is faster than its cubes


def test_one_tile_by_hand():
    c = chip.load("910")
    found = cycles.of_product(product(16, 16, 16), c)
    fill = 256 + math.ceil(2 * 16 * 16 * 2 / 96) + 32
    vector, mte3 = 16 * 16 * 4 // 256 + 16, 16 * 16 * 2 // 64
    mac = 1 + 16
    slowest = max(
        mac, vector, mte3, 12, 16 * 16 * 2 // 512 + 16 * 16 * 2 // 256, math.ceil(2 * 16 * 16 * 2 / 96)
    )
    assert found.total == fill + slowest + vector + mte3 + 128
    assert found.busy["mac"] == mac and found.busy["mte2"] == math.ceil(1024 / 96)


def test_large_products_keep_the_cube_busy():
    c = chip.load("910")
    found = cycles.of_product(product(8192, 8192, 8192), c)
    flops = 2 * 8192**3 / (found.total / c.frequency_hz)
    assert found.cores == 32 and found.ratio("mac") > 0.95 and 240e12 < flops < 262.2e12


def test_more_work_takes_longer_and_int8_less():
    c = chip.load("910")
    times = [cycles.of_product(product(512, 512, k), c).total for k in (64, 256, 1024, 4096)]
    assert times == sorted(times) and times[0] < times[-1]
    small = cycles.of_product(product(2048, 2048, 2048, size=1), c).total
    assert small < cycles.of_product(product(2048, 2048, 2048), c).total
    assert cycles.of_product(product(512, 512, 512), chip.load("310")).total > times[-1] / 4


def test_vectors_are_bound_by_memory_and_empty_ones_take_nothing():
    c = chip.load("910")
    found = cycles.of_vector(c, 1, 1 << 24, 1 << 24, 1 << 24)
    assert found.cores == 32 and found.busy["mte3"] > found.busy["mte2"] > found.busy["vec"]
    assert cycles.of_vector(c, 1, 0, 0, 0).total == cycles.of_product(product(0, 4, 4), c).total == 0


@pytest.fixture
def lenet():
    with on_backend("Ascend"), profile.collect() as found:
        train_lenet("step", 1)
    return found


def test_every_task_of_a_training_step_has_a_time(lenet):
    kinds = {kind for kind, *_ in lenet.by_kind()}
    assert {"ub_conv_bn_relu", "conv_weight_grad", "conv_input_grad", "dense", "apply_momentum"} <= kinds
    assert all(t.cycles.total > 0 and all(t.cycles.ratio(p) <= 1 for p in PIPES) for t in lenet.tasks)
    assert sum(us for _, us, *_ in lenet.by_kind()) == pytest.approx(lenet.total_us)


def test_tables_and_files_say_that_this_is_a_model(lenet, tmp_path):
    assert "model of Ascend 910, not measured" in lenet.table()
    paths = lenet.write(tmp_path / "out", device_id=3)
    assert "not measured" in (tmp_path / "out" / "model.txt").read_text() and len(paths) == 4
    kinds = list(csv.DictReader((tmp_path / "out" / "aicore_intermediate_3_type.csv").open()))
    assert list(kinds[0]) == ["kernel_type", "task_time", "execution_frequency", "percent"]
    assert sum(float(row["percent"]) for row in kinds) == pytest.approx(100, abs=0.2)
    detail = list(csv.DictReader((tmp_path / "out" / "aicore_intermediate_3_detail.csv").open()))
    assert list(detail[0]) == ["full_kernel_name", "task_duration", "execution_frequency", "task_type"]
    assert sum(float(row["task_duration"]) for row in detail) == pytest.approx(lenet.total_us / 1e3, rel=1e-3)
    pipes = list(csv.DictReader((tmp_path / "out" / "aicore_3_pipes.csv").open()))
    assert len(pipes) == len(lenet.tasks) and {"mac_ratio", "mte2_ratio", "scalar_ratio"} <= set(pipes[0])


def test_another_chip_takes_longer():
    x = ms.Tensor(np.ones((64, 64), np.float16))
    times = []
    for name in chip.names():
        with on_backend("Ascend"), profile.collect(name) as found:
            x @ x
        times.append(found.total_us)
    assert times[0] > times[1] > 0
    with pytest.raises(ValueError, match="one of"), profile.collect("1"):
        pass
