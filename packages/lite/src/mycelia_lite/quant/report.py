"""What a quantization did to each layer and tensor, as tables for programs and as a page to read."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from html import escape

import numpy as np

from mycelia.io.files import atomic_write
from mycelia_lite.quant import measure
from mycelia_lite.quant.calibration import Data
from mycelia_lite.quant.full import Result
from mycelia_lite.quant.measure import Departure
from mycelia_lite.quant.ranges import Grid
from mycelia_lite.quant.weights import Layer

_HEAD = (
    "NodeName", "NodeType", "TensorName", "ElementsNum", "Dims", "Scale", "ZeroPoint", "Bits",
    "CorrectionVar", "CorrectionMean",
)  # fmt: skip
_SUMMARY = ("Round", "TensorName", "CosineSimilarity")
_ROUND = (
    "NodeName", "NodeType", "TensorName", "InOutFlag", "DataTypeFlag", "TensorTypeFlag", "Min", "Q1",
    "Median", "Q3", "Max", "Mean", "Var", "Sparsity", "Clip", "CosineSimilarity",
)  # fmt: skip
_RUNS = 10  # of calibration that have a table of their own
_COLUMNS = (
    "node",
    "operator",
    "weights",
    "shape",
    "bits",
    "scales",
    "KB",
    "error",
    "",
    "cosine",
    "left because",
)
_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; color: #222; background: #fff }
table { border-collapse: collapse }
th, td { padding: .2em .8em; text-align: left; border-bottom: 1px solid #ddd }
td.n { text-align: right; font-variant-numeric: tabular-nums } tr.left { color: #777 }
div.bar { height: .8em; background: #3465a4; min-width: 1px }
"""


def write(folder: str, layers: Sequence[Layer], result: Result | None = None, data: Data = ()) -> None:
    """Write `quant_param.csv`, a line for each scale, and `quantization.html` to a folder, which is made.

    result: of a quantization of data, too; then there are `output_summary.csv`, a line for each output and
    run, and for each of the first runs on `data` a `round_1.csv`, ..., with the numbers of each node before
    and after.
    Errors: OSError.
    """
    os.makedirs(folder, exist_ok=True)
    params = [line for layer in layers for line in _lines(layer)]
    files = {"quantization.html": _page(layers, result)}
    if result is not None:
        params += _data_lines(result)
        summary = []
        for number, run in enumerate(measured_runs(result, data), 1):
            summary += [(number, name, f"{cosine:.9g}") for name, cosine in _outputs(result, run)]
            files[f"round_{number}.csv"] = _table(_ROUND, _round(result, run))
        files["output_summary.csv"] = _table(_SUMMARY, summary)
    files["quant_param.csv"] = _table(_HEAD, params)
    for name, content in files.items():
        with atomic_write(os.path.join(folder, name)) as file:
            file.write(content.encode())


def _table(head: Sequence[str], lines: Iterable[Sequence]) -> str:
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(head)
    table.writerows(lines)
    return text.getvalue()


Run = dict[int, tuple[np.ndarray, np.ndarray]]


def measured_runs(result: Result, data: Data) -> Iterator[Run]:
    """What tensors are before and after, run by run, of the first runs."""
    places = result.places | {int(t): int(t) for t in result.numbers.outputIndex}
    return measure.pairs(result.numbers, result.integers, places, result.grids, data, _RUNS)


def _outputs(result: Result, run: Run) -> Iterator[tuple[str, float]]:
    for tensor in map(int, result.numbers.outputIndex):
        departure = Departure()
        departure.see(*run[tensor])
        yield result.numbers.allTensors[tensor].name, departure.cosine


def _round(result: Result, run: Run) -> Iterator[tuple]:
    tensors = result.numbers.allTensors
    weights = {layer.tensor: layer for layer in result.layers if layer.bits}
    for node in result.numbers.nodes:
        names = (node.name, node.primitive.kind)
        for flag, places in (("Input", node.inputIndex), ("Output", node.outputIndex)):
            for tensor in map(int, places):
                if tensor in result.places:
                    before, after = run[tensor]
                    grid = result.grids[tensor]
                    yield from _pair(names, tensors[tensor].name, flag, "Activation", before, after, grid)
                elif (layer := weights.get(tensors[tensor].name)) is not None and layer.node == node.name:
                    shape = layer.shape
                    before = np.frombuffer(tensors[tensor].data, np.float32).reshape(shape)
                    yield from _pair(names, layer.tensor, flag, "Weight", before, layer.after)


def _pair(
    names: tuple[str, str], tensor: str, flag: str, what: str, before: np.ndarray, after: np.ndarray | None,
    grid: Grid | None = None,
) -> Iterator[tuple]:  # fmt: skip
    departure = Departure()
    departure.see(before, before if after is None else after, grid)
    for kind, numbers in (("Origin", before), ("Dequant", after)):
        if numbers is None:
            continue
        places = np.percentile(numbers, (0, 25, 50, 75, 100)) if numbers.size else np.zeros(5)
        spread = (numbers.mean(dtype=np.float64), numbers.var(dtype=np.float64)) if numbers.size else (0, 0)
        sparsity = float(np.mean(numbers == 0)) if numbers.size else 0.0
        figures = (*places, *spread, sparsity, departure.clip_rate, departure.cosine)
        yield (*names, tensor, flag, kind, what, *(f"{f:.9g}" for f in figures))


def _data_lines(result: Result) -> Iterator[tuple]:
    """A line for the scale of each tensor of data."""
    maker = {int(o): n for n in result.numbers.nodes for o in n.outputIndex}
    for tensor, grid in result.grids.items():
        node, table = maker.get(tensor), result.numbers.allTensors[tensor]
        names = (node.name, node.primitive.kind) if node is not None else ("", "")
        dims = [int(n) for n in table.dims]
        count = int(np.prod(dims)) if all(n >= 0 for n in dims) else ""
        yield (*names, table.name, count, " ".join(map(str, dims)), f"{grid.scale:.9g}", grid.zero, 8, 1, 0)


def _lines(layer: Layer) -> Iterator[tuple]:
    count = 1
    for n in layer.shape:
        count *= n
    dims = " ".join(map(str, layer.shape))
    for scale, zero, shift in zip(*layer.meaning, strict=True):
        yield (
            layer.node, layer.kind, layer.tensor, count, dims, f"{scale:.9g}", int(zero), layer.bits, 1,
            f"{shift:.9g}",
        )  # fmt: skip


def _page(layers: Sequence[Layer], result: Result | None) -> str:
    done = [layer for layer in layers if layer.bits]
    most = max((layer.error for layer in done), default=0) or 1
    kilobytes = sum(layer.bytes for layer in done) / 1024
    rows = "".join(_row(layer, most) for layer in layers)
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Quantization</title>'
        f"<style>{_STYLE}</style><h1>Quantized weights</h1>"
        f"<p>{len(done)} of {len(layers)} weights, {kilobytes:.1f} KB of integers. The error is the root of "
        "the mean square of what weights depart by, relative to their own.</p>"
        f"<table><tr>{head}</tr>{rows}</table>{'' if result is None else _of_data(result)}</html>\n"
    )


def _of_data(result: Result) -> str:
    outputs = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{cosine:.6f}</td></tr>'
        for name, cosine in result.outputs.items()
    )
    most = max((t.error for t in result.tensors), default=0) or 1
    rows = "".join(
        f"<tr><td>{escape(t.node)}</td><td>{escape(t.kind)}</td><td>{escape(t.tensor)}</td>"
        f'<td class="n">{t.cosine:.6f}</td><td class="n">{t.error:.4f}</td>'
        f'<td><div class="bar" style="width: {100 * t.error / most:.0f}px"></div></td>'
        f'<td class="n">{t.clip_rate:.2%}</td></tr>'
        for t in result.tensors
    )
    kinds = ", ".join(f"{escape(name)} ({kind})" for name, kind in result.floats)
    return (
        f"<p>Casts between numbers and integers: {result.casts}. Nodes that compute with numbers: "
        f"{kinds or 'none'}.</p>"
        "<h1>Outputs</h1><p>The cosine between what the float model answers to calibration data and what the "
        f"integers do.</p><table><tr><th>output</th><th>cosine</th></tr>{outputs}</table>"
        "<h1>Data</h1><p>Each tensor of integers against the float model's, errors of what comes before "
        "included; clipped are numbers beyond the range of the integers.</p>"
        "<table><tr><th>node</th><th>operator</th><th>tensor</th><th>cosine</th><th>error</th><th></th>"
        f"<th>clipped</th></tr>{rows}</table>"
    )


def _row(layer: Layer, most: float) -> str:
    names = "".join(f"<td>{escape(name)}</td>" for name in (layer.node, layer.kind, layer.tensor))
    shape = f"<td>{' × '.join(map(str, layer.shape))}</td>"
    if not layer.bits:
        return f'<tr class="left">{names}{shape}{"<td></td>" * 6}<td>{escape(layer.why)}</td></tr>'
    numbers = (
        str(layer.bits), str(layer.scales), f"{layer.bytes / 1024:.1f}", f"{layer.error:.4f}",
    )  # fmt: skip
    cells = "".join(f'<td class="n">{text}</td>' for text in numbers)
    bar = f'<td><div class="bar" style="width: {100 * layer.error / most:.0f}px"></div></td>'
    return f'<tr>{names}{shape}{cells}{bar}<td class="n">{layer.cosine:.6f}</td><td></td></tr>'
