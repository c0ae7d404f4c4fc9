"""Files that cache and serving keep, changed at random: see packages/core/tests/mutations.py."""

from __future__ import annotations

import json
import os
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from mycelia_cache import daemon
from mycelia_cache.memory import Budget
from mycelia_cache.protocol import State
from mycelia_cache.session import Registry
from mycelia_cache.spill import Quota, SpillFile
from mycelia_serving.distributed.ranks import read_rank_table

sys.path.insert(0, str(Path(__file__).parents[1] / "packages/core/tests"))

from mutations import count_of, faults

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited as on Linux"),
]


def report(found):
    assert not found, "\n".join(f"{why}\n    {mutation}" for why, mutation in found.items())


def registry(folder) -> Registry:
    return Registry(Budget(64 << 20), folder, Quota(None), True)


def rows_taken_up(folder) -> int:
    found = registry(folder)
    taken = sum(c.rows for c in found.caches.values() if c.state == State.FETCH)
    found.close()
    return taken


@pytest.fixture
def kept(tmp_path):
    """The directory of a server that ended with a session of ten rows on disk."""
    directory = tmp_path / "77" / f"{5:08x}"
    spill = SpillFile(directory, Quota(None), True)
    at = spill.reserve(640)
    data = bytes(range(64)) * 10
    os.pwrite(spill.fd, data, at)
    rows = np.arange(10)
    spill.note(rows, at + rows * 64, np.full(10, 64), np.full(10, zlib.crc32(data[:64])))
    spill.close(remove=False)
    cache = {
        "crc": 5,
        "digest": "ab" * 16,
        "size": 1 << 20,
        "numbered": False,
        "pipeline": "numbers",
        "rows": 10,
    }
    (tmp_path / "sessions.json").write_text(json.dumps([{"session": 77, "caches": [cache]}]))
    assert rows_taken_up(tmp_path) == 10
    return tmp_path


def test_kept_sessions_of_the_cache(kept):
    path = kept / "sessions.json"
    report(faults(path, lambda: rows_taken_up(kept), count_of(100)))
    assert rows_taken_up(kept) == 10


def test_journals_of_the_cache(kept):
    path = kept / "77" / f"{5:08x}" / "journal"
    report(faults(path, lambda: rows_taken_up(kept), count_of(100)))


def test_descriptions_of_cache_servers(tmp_path, monkeypatch):
    """Whatever the description of a dead server says, no other directory than its own is removed."""
    monkeypatch.chdir(tmp_path)
    runtime, spills = Path("50052"), Path("a")
    others = spills / "mycelia-cache-5005", spills / "b"
    for folder in (runtime, *others, spills / "mycelia-cache-50052"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(daemon, "directory_of", lambda port: runtime)
    path = runtime / "server.json"
    path.write_text(json.dumps({"pid": 1, "token": "abc", "spill": str(spills / "mycelia-cache-50052")}))
    assert daemon.token_of(50052) == "abc"

    def read():
        assert isinstance(daemon.token_of(50052), str)
        daemon.remove_leftovers(runtime, keep=False)
        assert all(folder.is_dir() for folder in others)

    report(faults(path, read, count_of(100)))
    (spills / "mycelia-cache-50052").mkdir(exist_ok=True)
    daemon.remove_leftovers(runtime, keep=False)
    assert not (spills / "mycelia-cache-50052").exists() and not path.exists()


def test_rank_tables(tmp_path):
    path = tmp_path / "ranks.json"
    devices = [{"rank_id": str(n), "device_id": str(n)} for n in range(2)]
    path.write_text(json.dumps({"server_list": [{"server_id": "127.0.0.1", "device": devices}]}))

    def read():
        try:
            read_rank_table(str(path), 2)
        except RuntimeError as error:
            assert path.name in str(error), error

    assert len(read_rank_table(str(path), 2).ranks) == 2
    report(faults(path, read, count_of(100)))
