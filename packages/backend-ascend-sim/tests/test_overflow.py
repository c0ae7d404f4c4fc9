"""Overflow status: which task set it, that it stays until it is read, and what reads it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops
from mycelia.testing.comparison import on_backend
from mycelia_backend_ascend_sim import options
from mycelia_backend_ascend_sim.backend import device
from mycelia_backend_ascend_sim.overflow import AI_CORE, ATOMIC_ADD


@pytest.fixture(autouse=True, params=["INFNAN_MODE", "SATURATION_MODE"])
def status(request):
    with on_backend("Ascend"), options.context(overflow_mode=request.param):
        device().overflow.read_and_clear()
        yield device().overflow


def half(*values) -> ms.Tensor:
    return ms.Tensor(np.array(values, np.float16))


def test_65504_and_32_overflow(status):
    half(65504) + half(15.99)
    assert status.read() == (0, [])
    y = half(1, 65504) + half(1, 32)
    ops.exp(half(1))
    word, records = status.read()
    assert word == AI_CORE and status.read()[0] == AI_CORE  # sticky
    (record,) = records
    assert (record.op, record.slots, record.kind) == ("add", (0,), "AI Core")
    assert record.address == y.data_ptr() and json.loads(json.dumps(record.as_dict()))["op"] == "add"
    assert status.read_and_clear()[0] == AI_CORE and status.read_and_clear() == (0, [])


def test_sums_of_float16_overflow_when_they_are_stored(status):
    x = half(*[60000, 60000, -60000, -60000])
    assert float(x.sum()) == 0 and status.read()[0] == 0  # float32 in between
    assert abs(float(x[:2].sum())) >= 65504 and status.read()[1][0].op == "sum"


def test_products_overflow(status):
    x = ms.Tensor(np.full((2, 64), 64, np.float16))
    x @ x.T
    assert [r.op for r in status.read_and_clear()[1]] == ["mat_mul"]
    with options.context(accumulate="fp16"):
        y = (
            ms.Tensor(np.full((1, 64), 45, np.float16)) @ ms.Tensor(np.full((64, 1), 45, np.float16))
        ).asnumpy()
    assert (np.isinf(y) or y == 65504) and status.read_and_clear()[0] == AI_CORE


def test_operands_that_the_cube_cannot_hold_overflow(status):
    y = ms.Tensor(np.array([[1e5]], np.float32)) @ ms.Tensor(np.array([[1.0]], np.float32))
    saturated = options.present().overflow_mode == "SATURATION_MODE"
    assert float(y[0, 0]) == (65504 if saturated else np.inf)
    assert status.read_and_clear()[0] == AI_CORE
    with options.context(precision_mode="must_keep_origin_dtype"):
        ms.Tensor(np.array([[1e5]], np.float32)) @ ms.Tensor(np.array([[1.0]], np.float32))
    assert status.read()[0] == 0


def test_what_was_infinite_before_is_no_overflow(status):
    half(np.inf) * 2, half(np.nan) + 1, ms.Tensor(np.array([np.inf], np.float32)) + 1
    assert status.read()[0] == 0


def test_atomic_additions_have_a_bit_of_their_own(status):
    parameter = ms.Parameter(half(65000))
    ops.assign_add(parameter, half(65000))
    word, records = status.read_and_clear()
    assert word == ATOMIC_ADD and records[0].kind == "Atomic Add"


def test_streams_are_told(status):
    side = ms.runtime.Stream()
    with ms.runtime.StreamCtx(side):
        half(65504) * 2
    half(65504) * 2
    first, second = status.read()[1]
    assert first.stream_id != second.stream_id and first.task_id < second.task_id


def test_compiled_programs_set_it_too(status):
    ms.jit(lambda x: ops.exp(x) * 2)(half(12))
    assert {r.op for r in status.read()[1]} <= {"exp", "mul", "ub_fusion"} and status.read()[0] == AI_CORE


def test_a_synchronous_dump_of_overflows_has_what_saturated(status, tmp_path, monkeypatch):
    """It looks finite; the status of the task tells, and the commands say so."""
    from typer.testing import CliRunner

    from mycelia import precision
    from mycelia.debug.cli import app as debugger
    from mycelia.debug.precision.cli import app as tool

    monkeypatch.chdir(tmp_path)
    with ms.config.context(mode=ms.GRAPH_MODE):
        with precision.collect("overflow", path="precision_data/overflow/dump"):
            y = ms.jit(lambda x: ops.exp(x * 0.0) + x * 2.0)(half(60000, 1))
    saturates = bool(np.isfinite(y.asnumpy()).all())
    folder = tmp_path / "precision_data" / "overflow" / "dump"
    records = [json.loads(path.read_text()) for path in sorted(folder.rglob("Opdebug.*.json"))]
    assert [r["type"] for r in records][:1] == ["Mul"] and {r["kind"] for r in records} == {"AI Core"}
    assert not list(folder.rglob("Exp.*.npy")) and len(list(folder.rglob("Mul.*.output.*.npy"))) == 1
    told = CliRunner().invoke(tool, ["ac"]).output
    assert f"{len(records)} tasks overflowed" in told and f"[Mul] {records[0]['name']}: task_id" in told
    assert "status 1, AI Core" in told and "float16 (2,), max 6" in told
    assert ("0 outputs are not finite" in told) is saturates
    found = CliRunner().invoke(debugger, [str(folder)]).output
    assert f"{len(records)} tasks overflowed, at first that of {records[0]['name']}" in found
