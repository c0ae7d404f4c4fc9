"""Weights of 1 to 8 bits stay packed in C, and give the runtime's answers."""

from __future__ import annotations

import pytest

from mycelia_lite.format import write
from mycelia_lite.micro import generate
from mycelia_lite.quant import WeightQuantization, quantize_weights

from ..quant import test_weights as weights
from .c_projects import compiled, run

WIDTHS = range(1, 9)


def quantized(folder, name: str, **how) -> tuple[str, int]:
    """A file of a layer with quantized weights, and how many weights it has."""
    model, _, index, _, _ = weights.CASES[name]()
    count = len(model.allTensors[index].data) // 4
    quantize_weights(model, WeightQuantization(**how))
    path = folder / f"{name}_{how['bits']}_{how.get('group', 0)}.ms"
    write(str(path), model)
    return str(path), count


@pytest.mark.parametrize("name", ["many-rows", "row-in-out", "3x3", "strided", "dilated"])
def test_every_width_gives_the_runtimes_answers(tmp_path, name):
    files = [quantized(tmp_path, name, bits=bits) for bits in WIDTHS]
    reports = generate([path for path, _ in files], tmp_path / "all")
    lines = run(compiled(tmp_path / "all"))
    assert len(lines) == len(files) and all(line.endswith("PASSED") for line in lines)
    kernels = (tmp_path / "all/src/kernels.c").read_text()
    assert ("micro_linear_bits(" in kernels) != ("micro_conv_bits(" in kernels)
    assert "micro_linear_f32(" not in kernels and "micro_conv_f32(" not in kernels
    for bits, report, (_, count) in zip(WIDTHS, reports, files):
        rows = 70  # each ends with a byte, and has a scale, a zero and a bias
        assert report.weight_bytes <= count * bits / 8 + 13 * rows


@pytest.mark.parametrize("name", ["groups", "groups-in-out", "groups-rows"])
def test_scales_of_groups(tmp_path, name):
    files = [
        quantized(tmp_path, name, bits=bits, group=weights.GROUPS[name], compact=True)[0]
        for bits in (1, 3, 4, 8)
    ]
    generate(files, tmp_path / "all")
    lines = run(compiled(tmp_path / "all"))
    assert len(lines) == len(files) and all(line.endswith("PASSED") for line in lines)
    assert "micro_linear_bits(" in (tmp_path / "all/src/kernels.c").read_text()
