"""What a dump has on disk is bit for bit what ran: random networks over all dtypes, with views, numbers
without axes, tensors without elements, NaN and infinities.
"""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, debug, ops
from mycelia.debug.statistics import Statistics, array_of, digest, statistics
from mycelia.engine import observing

DTYPES = [
    ms.float32, ms.float16, ms.bfloat16, ms.float64, ms.int8, ms.int32, ms.int64, ms.uint8, ms.bool_,
    ms.complex64,
]  # fmt: skip


class Keeps(observing.Observer):
    """What every operator read and made, in order, as arrays of its own."""

    def __init__(self):
        self.found = []

    def begin(self, run):
        for name, tensor, _ in run.named_arguments():
            self.keep("Parameter", name, "output", [tensor])

    def seen(self, run, operator, inputs, outputs):
        self.keep(operator.type, operator.name, "input", inputs)
        self.keep(operator.type, operator.name, "output", outputs)

    def keep(self, kind, name, way, tensors):
        for slot, tensor in enumerate(tensors):
            if tensor is not None:
                numbers = statistics(tensor)
                self.found.append((kind, name, way, slot, tensor.dtype, array_of(tensor).copy(), numbers))


def random_function(rng):
    """A function of one tensor of random dtype and shape, and this tensor."""
    dtype = DTYPES[rng.integers(len(DTYPES))]
    shape = [(), (0, 3), (1,), (2, 3), (4, 1, 5), (3, 40_000), (5000,)][rng.integers(7)]
    values = rng.normal(0, 100, shape)
    if dtype.is_floating and values.size > 3:
        values.reshape(-1)[:3] = np.nan, np.inf, -np.inf
    if dtype.is_integer:
        values = np.abs(values) % 100
    x = Tensor(values.astype(np.float32)).astype(dtype)
    steps = [int(n) for n in rng.integers(6, size=6)]

    def function(x):
        found = []
        for step in steps:
            y = [
                lambda x: ops.reshape(x, (-1,)),
                lambda x: ops.expand_dims(x, 0) if x.ndim < 6 else x,
                lambda x: ops.cast(x, ms.bfloat16) if x.dtype is ms.float32 else ops.cast(x, ms.float32),
                lambda x: ops.equal(x, x),
                lambda x: ops.concat([ops.reshape(x, (-1,))] * 2),
                lambda x: ops.reshape(x, (-1,))[:1],
            ][step](x)
            found.append(y)
            x = y if y.dtype is not ms.bool_ else x
        return found

    return function, x


@pytest.mark.fuzz(12)
def test_files_and_rows_are_what_ran(seed, mode, tmp_path):
    rng = np.random.default_rng(seed)
    function, x = random_function(rng)
    keeps = Keeps()
    categories = [
        "max", "min", "l2norm", "avg", "count", "nan count", "negative inf count", "positive inf count",
        "zero count", "negative zero count", "positive zero count", "md5",
    ]  # fmt: skip
    fields = {"saved_data": "full", "statistic_category": categories, "eager": False}
    with (
        ms.config.context(dump_ignore_useless_output=False),
        debug.dump({"path": str(tmp_path), **fields}) as observer,
    ):
        if mode == ms.GRAPH_MODE:
            observing.watch(keeps)
            try:
                ms.jit(function)(x)
            finally:
                observing.unwatch(keeps)
        else:
            with observing.watch_calls(observer, keeps):
                function(x)
    (table,) = tmp_path.rglob("statistic.csv")
    rows = list(csv.DictReader(table.open()))
    files = sorted((p for p in table.parent.glob("*.npy")), key=lambda p: p.name.split(".")[4])
    assert len(files) == len(rows) == len(keeps.found) > 5
    for path, row, (kind, name, way, slot, dtype, array, numbers) in zip(files, rows, keeps.found):
        saved = io.BytesIO()
        np.save(saved, array)
        assert path.read_bytes() == saved.getvalue()
        parts = path.name.split(".")
        assert parts[0] == row["Op Type"] == kind and parts[1] == row["Op Name"] == name.replace("/", "_")
        assert parts[4:7] == [row["Timestamp"], way, str(slot)] and row["Data Type"] == dtype.name
        assert row["Data Size"] == str(array.nbytes) and row["MD5"] == digest("md5", array)
        assert Statistics(
            int(row["Count"]), *(float(row[f"{n} Value"]) for n in ("Max", "Min", "Avg", "L2Norm")),
            *(int(row[f"{n} Count"]) for n in ("NaN", "Negative Inf", "Positive Inf", "Zero", "Negative Zero",
                                               "Positive Zero")),
        ) == pytest.approx(numbers, rel=1e-8, nan_ok=True)  # fmt: skip


def test_raw_files_of_a_loop_are_those_of_its_last_round(tmp_path):
    def doubled(x):
        while x.sum() < 100:
            x = ops.concat([x])[:2] + x
        return x

    keeps = Keeps()
    observing.watch(keeps)
    try:
        with debug.dump({"path": str(tmp_path), "layout": "bin"}):
            found = ms.jit(doubled)(Tensor([1.0, 2.0]))
    finally:
        observing.unwatch(keeps)
    assert sum(kind == "Add" for kind, *_ in keeps.found) > 6
    (added,) = tmp_path.rglob("*Add-op0_output_0_shape_2_Float32_DefaultFormat.bin")
    assert added.read_bytes() == found.asnumpy().tobytes()
    (first,) = tmp_path.rglob("inputs0_output_0_*")
    assert first.read_bytes() == np.float32([1, 2]).tobytes()
