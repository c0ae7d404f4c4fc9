"""Profiling by steps: schedules, MindSpore's `profile`, marks, and the monitor that follows a file."""

from __future__ import annotations

import json

import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.profiler import (
    DynamicProfilerMonitor,
    ProfilerLevel,
    _ExperimentalConfig,
    mstx,
    profile,
    schedule,
)


def work(count=1):
    for _ in range(count):
        ops.exp(Tensor([1.0, 2.0]))


def calls(profiler) -> int:
    return sum(row.calls for row in profiler.rows() if row.name == "exp")


def test_schedule_names_the_action_of_each_step():
    plan = schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    assert [plan(i).value for i in range(7)] == [0, 0, 1, 2, 3, 0, 0]
    assert repr(plan) == "Schedule(wait=1, active=2, warmup=1, repeat=1, skip_first=1)"


def test_schedule_mends_values_out_of_range():
    assert schedule(wait=-1, active=0).to_dict() == dict(wait=0, active=1, warmup=0, repeat=0, skip_first=0)
    with pytest.raises(TypeError):
        schedule(active=1)


def test_profile_measures_the_steps_of_its_schedule_and_hands_them_over():
    seen = []
    with profile(
        schedule=schedule(wait=1, active=2, repeat=2), on_trace_ready=lambda p: seen.append(calls(p))
    ) as p:
        for _ in range(8):
            work()
            p.step()
    assert seen == [2, 4]


def test_profile_without_schedule_measures_all():
    seen = []
    profiler = profile(on_trace_ready=lambda p: seen.append(calls(p)))
    work(3)
    profiler.stop()
    work(2)
    assert seen == [3]


def test_options_and_marks_of_devices_are_taken():
    options = _ExperimentalConfig(profiler_level=ProfilerLevel.Level1)
    assert options.profiler_level is ProfilerLevel.Level1 and options.l2_cache is False
    number = mstx.range_start("work")
    mstx.mark("here")
    mstx.range_end(number)
    assert number == 0


def test_monitor_follows_its_file(tmp_path):
    monitor = DynamicProfilerMonitor(cfg_path=str(tmp_path), output_path=str(tmp_path / "out"))
    file = tmp_path / "profiler_config.json"
    assert json.loads(file.read_text()) == {"start_step": -1, "stop_step": -1}
    for number in range(1, 6):
        if number == 2:
            file.write_text(json.dumps({"start_step": 3, "stop_step": 4}))
        monitor.step()
        work()
    report = json.loads((tmp_path / "out" / "step3_4" / "profile.json").read_text())
    assert sum(row["calls"] for row in report["rows"] if row["name"] == "exp") == 2
    assert isinstance(monitor, ms.Callback)
