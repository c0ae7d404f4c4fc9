"""Files of records: when they are written, and what is there after faults."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest

import mycelia as ms
from mycelia.engine import _data
from mycelia.io.crc32c import crc32c
from mycelia.train import SummaryRecord
from mycelia.train.summary.events import EventFile, framed
from mycelia.train.summary.values import encoded


def messages(data: bytes) -> list[bytes]:
    """The messages of records that are whole, and nothing else."""
    found = []
    while data:
        size = int.from_bytes(data[:8], "little")
        assert len(data) >= size + 16
        found.append(data[12 : 12 + size])
        assert data[: size + 16] == framed(found[-1])
        data = data[size + 16 :]
    return found


def test_records_are_framed_by_length_and_masked_checksums():
    def masked(data: bytes) -> bytes:
        crc = crc32c(data)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF).to_bytes(4, "little")

    for message in (b"", b"a", bytes(range(256)) * 40):
        length = len(message).to_bytes(8, "little")
        assert framed(message) == length + masked(length) + message + masked(message)


def test_a_file_is_made_with_its_first_record(tmp_path):
    path = tmp_path / "events"
    file = _data.EventFile(str(path), first=b"version")
    file.flush()
    assert not path.exists()
    assert file.write(b"one") is True
    file.flush()
    assert messages(path.read_bytes()) == [b"version", b"one"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert file.write(b"two") is None
    file.flush()
    file.close()
    assert messages(path.read_bytes()) == [b"version", b"one"]


def test_short_records_wait_and_long_ones_take_them_along(tmp_path):
    path = tmp_path / "events"
    file = _data.EventFile(str(path))
    file.write(b"short")
    assert path.read_bytes() == b""
    file.write(b"l" * 9000)
    assert messages(path.read_bytes()) == [b"short", b"l" * 9000]
    file.write(b"last")
    del file
    assert messages(path.read_bytes())[2:] == [b"last"]


def test_records_are_appended_to_a_file_that_is_there(tmp_path):
    path = tmp_path / "events"
    for message in (b"one", b"two"):
        file = _data.EventFile(str(path))
        file.write(message)
        file.close()
        path.chmod(0o600)
    assert messages(path.read_bytes()) == [b"one", b"two"]


def test_a_full_file_keeps_what_had_room(tmp_path):
    file = _data.EventFile(str(tmp_path / "events"), limit=60, first=b"f" * 100)
    assert [file.write(b"message") for _ in range(4)] == [True, True, False, None]
    assert messages((tmp_path / "events").read_bytes()) == [b"f" * 100, b"message", b"message"]


def test_values_of_a_step_are_one_record(tmp_path):
    path = tmp_path / "events"
    weights = np.random.default_rng(0).standard_normal((40, 60)).astype(np.float32)
    items = [
        ("loss", "scalar", 0.25),
        ("weights", "histogram", weights.T),
        ("half", "histogram", weights.astype(np.float16)),
        ("images", "image", weights.reshape(2, 3, 20, 20)),
    ]
    file = _data.EventFile(str(path))
    file.write_values(-3, items)
    file.close()
    (message,) = messages(path.read_bytes())
    assert message.endswith(b"".join(encoded(items)))
    event = ms.train.summary_pb2.Event.FromString(message)
    assert event.step == -3 and [one.tag for one in event.summary.value] == [tag for tag, *_ in items]


@pytest.mark.parametrize(
    ("step", "values", "error"),
    [
        (1.5, [], TypeError),
        ("1", [], TypeError),
        (1, 3, TypeError),
        (1, [("a", "scalar")], TypeError),
        (1, [("a", "sound", 1.0)], ValueError),
        (1, [("a", "image", np.zeros((1, 2, 3, 3)))], ValueError),
        (1, [("a", "image", np.zeros((1, 3, 3)))], TypeError),
    ],
)
def test_bad_values_leave_no_record(tmp_path, step, values, error):
    file = _data.EventFile(str(tmp_path / "events"))
    with pytest.raises(error):
        file.write_values(step, values)
    file.write(b"next")
    file.close()
    assert messages((tmp_path / "events").read_bytes()) == [b"next"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_child_of_a_fork_writes_nothing(tmp_path):
    path = tmp_path / "events"
    file = _data.EventFile(str(path))
    file.write(b"parent")
    if (child := os.fork()) == 0:
        file.write(b"c" * 9000)
        file.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert path.read_bytes() == b"" and stat.S_IMODE(path.stat().st_mode) == 0o600
    file.close()
    assert messages(path.read_bytes()) == [b"parent"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_child_of_a_fork_leaves_a_file_whose_records_wait(tmp_path):
    path = tmp_path / "events"
    file = EventFile(str(path), None, True)
    file.write(b"parent")
    if (child := os.fork()) == 0:
        file.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    file.close()
    assert messages(path.read_bytes()) == [b"parent"]


_LIMITED = """
import resource, signal, sys
from mycelia.train.summary.events import EventFile
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = EventFile(sys.argv[1], None, sys.argv[2] == "raise")
try:
    for _ in range(4):
        file.write(b"m" * 9000)
except OSError as error:
    print("raised", error.errno)
file.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
@pytest.mark.parametrize("faults", ["raise", "log"])
def test_a_full_disk_leaves_whole_records(tmp_path, faults):
    path = tmp_path / "events"
    command = [sys.executable, "-c", _LIMITED, str(path), faults]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert messages(path.read_bytes()) == [b"m" * 9000] * 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert done.stdout.startswith("raised") == (faults == "raise")
    assert ("cannot write" in done.stderr + done.stdout) == (faults == "log")


def test_a_folder_that_is_gone_is_told(tmp_path):
    file = EventFile(str(tmp_path / "gone" / "events"), None, True)
    with pytest.raises(FileNotFoundError):
        file.write(b"one")
    file.write(b"two")  # it has ended
    file.close()


def test_operators_join_the_values_of_a_step(tmp_path):
    with SummaryRecord(str(tmp_path)) as record:
        record.take("scalar", "mine", ms.Tensor(2.0))
        record.take("tensor", "large", ms.Tensor([2.0]))
        record.record_values(7, [("loss", "scalar", 1.0)], lambda plugin: plugin != "tensor")
        record.record_values(8, [("loss", "scalar", 1.0)])
        path = record.log_dir
    with open(path, "rb") as file:
        events = [ms.train.summary_pb2.Event.FromString(one) for one in messages(file.read())]
    tags = [(event.step, {value.tag for value in event.summary.value}) for event in events[1:]]
    assert tags == [(7, {"loss", "mine"}), (8, {"loss"})]


_ONE_OF_SEVERAL = """
import sys, time
from mycelia import Tensor
from mycelia.train import SummaryRecord
time.time = lambda: 1.7e9  # the same second
with SummaryRecord(sys.argv[1]) as record:
    for step in range(200):
        record.add_value("scalar", sys.argv[2], Tensor(float(step)))
        record.record(step)
"""


def test_processes_that_begin_in_one_second_have_files_of_their_own(tmp_path):
    command = [sys.executable, "-c", _ONE_OF_SEVERAL, str(tmp_path)]
    processes = [subprocess.Popen([*command, name]) for name in "abc"]
    assert [process.wait() for process in processes] == [0, 0, 0]
    found = []
    for path in sorted(tmp_path.glob("events.*_MS")):
        version, *rest = map(ms.train.summary_pb2.Event.FromString, messages(path.read_bytes()))
        assert version.version == "MindSpore.Event:1"
        (tag,) = {event.summary.value[0].tag for event in rest}
        assert [event.step for event in rest] == list(range(200))
        found.append(tag)
    assert sorted(found) == ["a", "b", "c"]


def test_a_record_without_values_leaves_no_file(tmp_path):
    with SummaryRecord(str(tmp_path)) as record:
        record.record(1)
        record.flush()
    assert not list(tmp_path.iterdir())
