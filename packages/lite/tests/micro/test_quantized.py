"""Networks whose data were quantized, beforehand or as they run, answer in C as in the runtime."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.format import write
from mycelia_lite.micro import generate
from mycelia_lite.quant import DynamicQuantization, FullQuantization, quantize_dynamic, quantize_full

from ..converter.optimise.small_models import Net
from ..quant import test_full as full
from .c_projects import compiled, run


def answers_alike(model, folder) -> str:
    """The kernels of a project that answers as the runtime does."""
    write(str(folder / "m.ms"), model)
    generate(folder / "m.ms", folder / "c")
    assert all(line.endswith("PASSED") for line in run(compiled(folder / "c")))
    return (folder / "c/src/kernels.c").read_text()


@pytest.mark.parametrize("per_channel", [True, False])
def test_a_network_of_integers(tmp_path, per_channel):
    model = full.finished(*full.network())
    data = full.images(2, 11, 9, 3)
    quantize_full(model, FullQuantization(calibration=data, per_channel=per_channel))
    kernels = answers_alike(model, tmp_path)
    for name in ("conv_i8", "depthwise_i8", "linear_i8", "pool_i8"):
        assert f"void micro_{name}(" in kernels
    assert "micro_conv_f32" not in kernels and "micro_linear_f32" not in kernels


@pytest.mark.parametrize("rows", [True, False])
def test_products_of_data_that_become_integers_as_they_run(tmp_path, rows):
    net = Net(3)
    x = net.input(5, 40)
    y = net("MatMulFusion", x, net.weights(24, 40), net.weights(24), transpose_b=True, activation_type="RELU")
    model = net.model(net("MatMulFusion", y, net.weights(24, 12)))
    quantize_dynamic(model, DynamicQuantization(rows=rows))
    kernels = answers_alike(model, tmp_path)
    assert "void micro_quantize_rows(" in kernels and "micro_linear_f32" not in kernels


def test_arenas_of_integers_are_a_quarter(tmp_path):
    net = Net(5)
    x = net.input(1, 24, 24, 4)
    y = net.conv(x, 4, 16, 3, bias=True, pad_list=[1] * 4, activation_type="RELU")
    y = net("MaxPoolFusion", y, kernel_size=[2, 2], strides=[2, 2], pad_mode="VALID")
    model = net.model(net.conv(y, 16, 8, 3))
    write(str(tmp_path / "real.ms"), model)
    data = [np.random.default_rng(k).normal(size=(1, 24, 24, 4)).astype(np.float32) for k in range(3)]
    quantize_full(model, FullQuantization(calibration=data))
    write(str(tmp_path / "whole.ms"), model)
    (real,) = generate(tmp_path / "real.ms", tmp_path / "real")
    (whole,) = generate(tmp_path / "whole.ms", tmp_path / "whole")
    assert whole.arena_bytes <= 0.36 * real.arena_bytes  # the input is float32 in both


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_sums_of_bytes_take_no_wider_memory(tmp_path, dtype):
    net = Net(1)
    x = net.input(1, 12, 12, 10, dtype=dtype)
    wide = net("Cast", x, net.constant(int(mslite.DataType.INT32), np.int32))
    total = net("ReduceFusion", wide, net.integers(1, 2), mode="ReduceSum", keep_dims=True, coeff=1.0)
    write(str(tmp_path / "m.ms"), net.model(total))
    (report,) = generate(tmp_path / "m.ms", tmp_path / "c")
    assert report.arena_bytes <= 12 * 12 * 10 + 8 * 10 + 4 * 10 + 8
    assert run(compiled(tmp_path / "c"))[0].endswith("PASSED")
