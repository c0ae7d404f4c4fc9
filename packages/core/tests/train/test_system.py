"""Use of the machine: read from files of /proc and a driver's library that the tests write themselves."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_summary import as_float, records, values_of

from mycelia import Tensor, dataset, nn
from mycelia.train import Model, SummaryCollector, SummaryRecord
from mycelia.train.callbacks import Callback
from mycelia.train.summary.nvml import Gpus
from mycelia.train.summary.system import SystemMonitor

MIB = 1 << 20


def write_proc(folder: Path, busy: int, idle: int, read: int, written: int, received: int, sent: int) -> None:
    (folder / "self").mkdir(parents=True, exist_ok=True)
    (folder / "net").mkdir(exist_ok=True)
    # user nice system idle iowait irq softirq steal guest guest_nice: guests are counted in user already
    (folder / "stat").write_text(
        f"cpu  {busy} 0 0 {idle - 5} 5 0 0 0 {busy} 0\ncpu0 1 1 1 1 1 1 1 1 1 1\nbtime 1700000000\n"
    )
    memory = "MemTotal: 8000 kB\nMemFree: 10 kB\nMemAvailable: 2000 kB\nHugePages_Total: 0\n"
    (folder / "meminfo").write_text(memory)
    (folder / "self" / "status").write_text("Name:\tpython\nVmRSS:\t  3072 kB\n")
    (folder / "self" / "io").write_text(f"rchar: 1\nread_bytes: {read}\nwrite_bytes: {written}\n")
    line = "{}: {} 1 0 0 0 0 0 0 {} 1 0 0 0 0 0 0\n"
    head = "Inter-|   Receive  |  Transmit\n face |bytes packets errs\n"
    cards = ("    lo", 9 * MIB, 9 * MIB), ("  eth0", received, 0), ("eth1", 0, sent)
    (folder / "net" / "dev").write_text(head + "".join(line.format(*card) for card in cards))


class Clock:
    def __init__(self):
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_rates_are_means_since_the_reading_before(tmp_path):
    proc, clock = tmp_path / "proc", Clock()
    write_proc(proc, busy=100, idle=100, read=0, written=0, received=0, sent=0)
    monitor = SystemMonitor(str(tmp_path), 5, str(proc), clock)
    clock.seconds += 2
    write_proc(proc, 130, 110, 4 * MIB, 1 * MIB, 6 * MIB, 3 * MIB)
    found = monitor.read()
    assert found["system/cpu_percent"] == 75  # 30 of 40 ticks
    assert found["system/disk_read_MiB_per_s"] == 2 and found["system/disk_written_MiB_per_s"] == 0.5
    assert found["system/network_received_MiB_per_s"] == 3 and found["system/network_sent_MiB_per_s"] == 1.5
    assert found["system/memory_percent"] == 75 and found["system/process_memory_MiB"] == 3
    assert 0 < found["system/disk_percent"] < 100 and found["system/process_cpu_percent"] >= 0
    clock.seconds += 4.9
    assert monitor.read() == {}  # it is not yet time
    clock.seconds += 5.1
    write_proc(proc, 130, 120, 4 * MIB, 11 * MIB, 6 * MIB, 3 * MIB)
    again = monitor.read()
    assert again["system/cpu_percent"] == 0 and again["system/disk_written_MiB_per_s"] == 1
    assert again["system/disk_read_MiB_per_s"] == 0


def test_what_is_not_there_is_left_out(tmp_path):
    clock = Clock()
    monitor = SystemMonitor(str(tmp_path), 5, str(tmp_path / "nowhere"), clock)
    clock.seconds += 1
    names = {name for name in monitor.read() if "gpu" not in name}
    assert names == {"system/process_cpu_percent", "system/disk_percent"}


def test_this_machine_tells_of_itself(tmp_path):
    monitor = SystemMonitor(str(tmp_path), 0)
    found = monitor.read()
    assert 1 < found["system/process_memory_MiB"] < 1 << 20 and 0 < found["system/memory_percent"] < 100


class Waiting(Callback):
    """Lets the collector's monitor read at each step."""

    def step_end(self, run_context):
        for one in run_context.original_args().list_callback:
            if isinstance(one, SummaryCollector):
                one._system.due = one._system_due = 0.0


@pytest.mark.parametrize("options", [{}, {"collect_system": True}])
def test_the_collector_records_the_machine_beside_what_it_collects(tmp_path, options):
    run(tmp_path, [Waiting(), SummaryCollector(str(tmp_path), 4, collect_specified_data=options)])
    by_step = values_by_step(tmp_path)
    assert sorted(by_step) == [1, 2, 3, 4]
    assert all("system/process_memory_MiB" in tags for tags in by_step.values())
    assert [step for step, tags in sorted(by_step.items()) if "loss/auto" in tags] == [1, 4]


@pytest.mark.parametrize(
    "more", [{"collect_specified_data": {"collect_system": False}}, {"keep_default_action": False}]
)
def test_the_machine_is_left_out_when_that_is_said(tmp_path, more):
    run(tmp_path, [SummaryCollector(str(tmp_path), 1, **more)])
    assert not any(tag.startswith("system/") for tags in values_by_step(tmp_path).values() for tag in tags)


def run(tmp_path, callbacks) -> None:
    net = nn.Dense(2, 1)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    data = {"x": np.ones((8, 2), np.float32), "y": np.zeros((8, 1), np.float32)}
    batches = dataset.NumpySlicesDataset(data, shuffle=False).batch(2)
    model.train(1, batches, callbacks=callbacks, dataset_sink_mode=False)


def values_by_step(folder: Path) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for path in folder.glob("events.*_MS"):
        for record in records(path):
            if 5 in record:
                found.setdefault(record[2][0], set()).update(values_of(record))
    return found


def test_numbers_are_written_at_once_and_what_was_added_stays(tmp_path):
    with SummaryRecord(str(tmp_path)) as record:
        record.add_value("scalar", "loss", Tensor(0.5))
        record.record_scalars(3, {"a": 1.5, "b": float("nan")})
        record.record_scalars(3, {})
        record.record(4)
        path = record.log_dir
    record.record_scalars(5, {"a": 1.0})  # closed: nothing
    _, first, second = records(path)
    assert first[2] == [3] and as_float(values_of(first)["a"][3][0]) == 1.5
    assert np.isnan(as_float(values_of(first)["b"][3][0])) and list(values_of(second)) == ["loss"]


DRIVER = """
#include <stdio.h>
typedef struct { unsigned gpu, memory; } use;
typedef struct { unsigned long long total, free, used; } memory;
static int devices[2];
int nvmlInit_v2(void) { return FAILS; }
int nvmlDeviceGetCount_v2(unsigned* count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) { *device = &devices[index]; return 0; }
static int number(void* device) { return (int)((int*)device - devices); }
int nvmlDeviceGetUtilizationRates(void* device, use* found) {
  found->gpu = 40 + number(device); found->memory = 7; return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, memory* found) {
  found->total = 4096ull << 20; found->used = 1024ull << 20; found->free = found->total - found->used;
  return number(device) ? 3 : 0;  /* the second one does not tell */
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) { *milliwatts = 250500; return 0; }
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* degrees) {
  *degrees = sensor ? 99 : 61; return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("fails", [0, 1])
def test_gpus_are_asked_through_the_drivers_library(tmp_path, fails):
    source, library = tmp_path / "driver.c", tmp_path / "driver.so"
    source.write_text(DRIVER)
    subprocess.run(
        ["cc", "-shared", "-fPIC", f"-DFAILS={fails}", str(source), "-o", str(library)], check=True
    )
    found = Gpus(str(library)).read()
    if fails:
        assert found == {}
        return
    assert found == {
        "gpu0_percent": 40, "gpu0_memory_MiB": 1024, "gpu0_memory_percent": 25, "gpu0_power_W": 250.5,
        "gpu0_temperature_C": 61, "gpu1_percent": 41, "gpu1_power_W": 250.5, "gpu1_temperature_C": 61,
    }  # fmt: skip


def test_without_a_driver_there_are_no_gpus():
    assert Gpus("libthere-is-no-such-driver.so").read() == {}
