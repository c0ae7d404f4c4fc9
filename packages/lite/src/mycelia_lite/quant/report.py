"""What a quantization did to each layer, as a table for programs and as a page to read."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from html import escape

from mycelia.io.files import atomic_write
from mycelia_lite.quant.weights import Layer

_HEAD = (
    "NodeName", "NodeType", "TensorName", "ElementsNum", "Dims", "Scale", "ZeroPoint", "Bits",
    "CorrectionVar", "CorrectionMean",
)  # fmt: skip
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


def write(folder: str, layers: Sequence[Layer]) -> None:
    """Write `quant_param.csv`, a line for each scale, and `quantization.html` to a folder, which is made.

    Errors: OSError.
    """
    os.makedirs(folder, exist_ok=True)
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(_HEAD)
    for layer in layers:
        table.writerows(_lines(layer))
    for name, content in (("quant_param.csv", text.getvalue()), ("quantization.html", _page(layers))):
        with atomic_write(os.path.join(folder, name)) as file:
            file.write(content.encode())


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


def _page(layers: Sequence[Layer]) -> str:
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
        f"<table><tr>{head}</tr>{rows}</table></html>\n"
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
