"""Dynamic quantization: products whose data become integers as they run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError
from mycelia_lite.format import read, write
from mycelia_lite.quant import DynamicQuantization, quantize_dynamic
from mycelia_lite.running import answers, loaded

from ..converter.optimise.small_models import Net

RNG = np.random.default_rng(14)
RUNNER = Path(__file__).parent / "run_model.py"
F = np.float32


def net_of_text():
    """Two products on the same words, one on what they make, with and without bias and activation."""
    net = Net(3)
    x = net.input(2, 7, 50)
    first = net(
        "MatMulFusion", x, net.weights(40, 50), net.weights(40), transpose_b=True, activation_type="RELU"
    )
    second = net("MatMulFusion", x, net.weights(50, 40))
    both = net("AddFusion", first, second)
    y = net(
        "FullConnection", both, net.weights(30, 40), net.weights(30), has_bias=True, use_axis=True, axis=2
    )
    return net.model(y)


def by_hand(x, w, bias, rows, per_channel):
    """x [..., K] times w [K, N] on integers of both."""
    most = np.abs(x).max(-1, keepdims=True) if rows else np.abs(x).max()
    scale = np.where(most == 0, F(1), most / F(127)).astype(F)
    weights = np.abs(w).max(0) / 127 if per_channel else np.abs(w).max() / 127
    weights = np.where(weights == 0, 1, weights).astype(F)
    sums = np.rint(x / scale).astype(np.int64) @ np.rint(w / weights).astype(np.int64)
    return sums * weights.astype(float) * scale + (0 if bias is None else bias)


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
def test_products_are_those_of_integers(rows, per_channel, transposed):
    net = Net(2)
    x = net.input(3, 5, 67)
    w = net.weights(*((33, 67) if transposed else (67, 33)))
    b = net.weights(33)
    model = net.model(net("MatMulFusion", x, w, b, transpose_b=transposed))
    data = RNG.normal(size=(3, 5, 67)).astype(F) * np.arange(1, 6, dtype=F)[:, None]
    data[1, 2] = 0
    weights = np.frombuffer(net.tensors[w].data, F).reshape([int(n) for n in net.tensors[w].dims])
    bias = np.frombuffer(net.tensors[b].data, F)
    (layer,) = quantize_dynamic(model, DynamicQuantization(rows=rows, per_channel=per_channel))
    assert layer.bits == 8 and layer.scales == (33 if per_channel else 1)
    (found,) = answers(loaded(model), [data])
    wanted = by_hand(data, weights.T if transposed else weights, bias, rows, per_channel)
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_data_that_several_products_read_are_quantized_once():
    model = net_of_text()
    before = model.copy()
    layers = quantize_dynamic(model, DynamicQuantization())
    kinds = [n.primitive.kind for n in model.nodes]
    assert kinds.count("DynamicQuant") == 2 and [layer.bits for layer in layers] == [8, 8, 8]
    data = RNG.normal(size=(2, 7, 50)).astype(F)
    one, two = (answers(loaded(m), [data])[0].ravel().astype(float) for m in (before, model))
    assert one @ two / np.linalg.norm(one) / np.linalg.norm(two) > 0.9998
    assert len(model.allTensors) == len(before.allTensors) + 2


def test_a_row_does_not_depend_on_the_others():
    model = net_of_text()
    quantize_dynamic(model, DynamicQuantization())
    data = RNG.normal(size=(2, 7, 50)).astype(F)
    other = data.copy()
    other[1] *= 1000
    one, two = (answers(loaded(model), [x])[0] for x in (data, other))
    assert np.array_equal(one[0], two[0]) and not np.array_equal(one[1], two[1])


@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512", "neon"])
def test_all_instruction_sets_give_the_same(isa, tmp_path):
    model = net_of_text()
    quantize_dynamic(model, DynamicQuantization())
    write(str(tmp_path / "m.ms"), model)
    data = RNG.normal(size=(2, 7, 50)).astype(F)
    np.save(tmp_path / "m.npy", data)
    done = subprocess.run(
        [sys.executable, RUNNER, tmp_path],
        capture_output=True, text=True, env={**os.environ, "MYCELIA_ISA": isa},
    )  # fmt: skip
    if "runs none of the library's kernels" in done.stderr:
        pytest.skip(f"this processor has no {isa}")
    assert done.stdout == "done\n", done.stderr[-2000:]
    wanted = answers(loaded(model), [data])[0]
    assert np.abs(np.load(tmp_path / "m.out.npy") - wanted).max() < 1e-5


def test_nan_stays_nan_in_its_row():
    model = net_of_text()
    quantize_dynamic(model, DynamicQuantization())
    data = RNG.normal(size=(2, 7, 50)).astype(F)
    data[0, 3, 4] = np.nan
    (found,) = answers(loaded(model), [data])
    assert np.isnan(found[0, 3]).all() and np.isfinite(np.delete(found.reshape(14, -1), 3, 0)).all()


def test_what_cannot_be_quantized_is_told():
    net = Net(1)
    x = net.input(1, 6, 6, 4)
    with pytest.raises(ValueError, match="no layers to quantize: 'Conv2DFusion_0': Conv2DFusion stays"):
        quantize_dynamic(net.model(net.conv(x, 4, 4)), DynamicQuantization())
    model = net_of_text()
    with pytest.raises(ValueError, match="no node is called"):
        quantize_dynamic(model, DynamicQuantization(skip=["nobody"]))
    weights = next(t for t in model.allTensors if len(t.data))
    weights.data = np.full(40 * 50, np.inf, F).tobytes()
    with pytest.raises(ValueError, match="infinite"):
        quantize_dynamic(model, DynamicQuantization())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("quant_type=DYNAMIC_QUANT\nbit_num=4", "bit_num must be 8 for DYNAMIC_QUANT"),
        (
            "quant_type=DYNAMIC_QUANT\n[dynamic_quant_param]\nquant_strategy=ALL",
            "quant_strategy must be one of",
        ),
        ("quant_type=DYNAMIC_QUANT\n[dynamic_quant_param]\nstrategy=ALWC", "no key 'strategy'"),
    ],
)
def test_a_wrong_configuration_is_told(text, words, lenet, tmp_path):
    config = tmp_path / "q.cfg"
    config.write_text(f"[common_quant_param]\n{text}\n")
    with pytest.raises(ConversionError, match=words):
        mslite.Converter().convert(
            mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "out"), config_file=str(config)
        )


def test_a_configuration_quantizes_the_dense_layers(lenet, tmp_path):
    config = tmp_path / "q.cfg"
    config.write_text(
        "[common_quant_param]\nquant_type=DYNAMIC_QUANT\n[dynamic_quant_param]\nquant_strategy=ALWC\n"
    )
    report = mslite.Converter().convert(
        mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "lenet"), config_file=str(config)
    )
    model = read(report.path)
    assert [layer.bits for layer in report.layers] == [0, 0, 8, 8, 8]
    found = answers(loaded(model), [lenet[1]])[0]
    assert np.abs(found - lenet[2]).max() < 0.05 * np.abs(lenet[2]).max()
