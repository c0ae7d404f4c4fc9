"""Arrays that processes of one machine hand over in shared memory: the same bits, and nothing is left."""

from __future__ import annotations

import gc
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from mycelia.engine.communication import shared, world
from mycelia.parallel import launcher

sys.path.insert(0, str(Path(__file__).parent))
from connected_ranks import over_sockets

pytestmark = pytest.mark.skipif(
    not hasattr(os, "memfd_create"), reason="shared memory without a name is Linux's"
)
LONG = 3 * shared.LEAST_BYTES // 4 + 5  # elements: above the least in every dtype, and no even parts


def array(rank, dtype, shape=(LONG,), seed=0):
    rng = np.random.default_rng((rank, seed))
    return (rng.normal(size=shape) * 8).astype(dtype)


def group():
    return world.current().communicator


def segments():
    """Mappings and open files of this process that are such memory."""
    gc.collect()
    mapped = Path("/proc/self/maps").read_text().count(shared._NAME)
    opened = sum(
        os.path.islink(p) and shared._NAME in os.readlink(p) for p in Path("/proc/self/fd").iterdir()
    )
    return mapped, opened


def everything(rank, dtype):
    """What all collectives give, on long arrays."""
    c, x = group(), array(rank, dtype)
    parts = [array(rank, dtype, (LONG + 7 * i, 2), i) for i in range(c.size)]
    rows = array(rank, dtype, (LONG + rank, 1))
    found = [c.all_reduce(x, reduction) for reduction in ("sum", "max", "min", "prod")]
    found += [c.reduce(x, c.size - 1), c.reduce_scatter(parts), *c.all_gather(x), *c.all_gather(rows, True)]
    found += [*(c.gather(x, 0) or ()), c.scatter(parts if rank == 1 else None, 1), c.broadcast(x, 1)]
    found += [*c.all_to_all(parts), *c.all_gather_object(x)]
    c.barrier()
    return [None if a is None else a.tobytes() for a in found], [a for a in found if a is not None]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.complex64])
@pytest.mark.parametrize("ranks", [2, 3])
def test_all_collectives_give_the_bits_of_sockets(ranks, dtype):
    def work(rank):
        near = sorted(group()._transport.near)
        return near, *everything(rank, dtype)

    by_bytes = over_sockets(ranks, work, shared_memory=False)
    by_memory = over_sockets(ranks, work)
    for rank, ((no_one, expected, _), (others, found, arrays)) in enumerate(zip(by_bytes, by_memory)):
        assert no_one == [] and others == [r for r in range(ranks) if r != rank]
        assert found == expected
        # They are the caller's: nobody has changed them since, and they can be changed.
        assert [a.tobytes() for a in arrays] == [bits for bits in found if bits is not None]
        assert all(a.flags.writeable for a in arrays)


def test_nothing_stays_behind():
    before = segments()

    def work(rank):
        everything(rank, np.float32)
        during.append(segments())

    during: list[tuple[int, int]] = []
    over_sockets(2, work)
    assert all(mapped > before[0] and opened > before[1] for mapped, opened in during)
    assert segments() == before


def test_memory_of_many_turns_and_of_longer_arrays_is_not_taken_too_early():
    """Each rank is ahead of another at times; what it has laid down before is still read."""

    def work(rank):
        c, found = group(), []
        for turn, factor in enumerate((1, 1, 1, 4, 4, 1, 2, 4)):
            x = array(rank, np.float32, (LONG * factor,), turn)
            found.append(c.broadcast(x, turn % 3).tobytes())
            assert turn % 3 != rank or found[-1] == x.tobytes()
            found.append(c.all_reduce(x, "max").tobytes())
        return found

    one, *others = over_sockets(3, work)
    assert all(found == one for found in others)


def test_what_a_rank_has_laid_down_outlives_it(monkeypatch):
    """It may end as soon as its last collective is over, but not before the others have opened its memory."""
    gone, take = threading.Event(), shared.Shelf.take

    def slow(self, *args):
        if threading.current_thread() in slow_ones:
            early.append(gone.wait(0.05))
        return take(self, *args)

    monkeypatch.setattr(shared.Shelf, "take", slow)
    slow_ones, early = set(), []

    def work(rank):
        if rank:
            slow_ones.add(threading.current_thread())
        found = group().all_reduce(array(rank, np.float32))
        if rank == 0:
            group().close()
            gone.set()
        return found

    one, other = over_sockets(2, work)
    assert early == [False, False]
    np.testing.assert_array_equal(one, other)


def test_ranks_that_do_not_see_the_memory_of_one_get_bytes_from_it(monkeypatch):
    sees = shared.Proof.sees.__func__

    def all_but_one(cls, told):
        return threading.current_thread() is not blind and sees(cls, told)

    monkeypatch.setattr(shared.Proof, "sees", classmethod(all_but_one))
    told_once = shared.Proof.told
    blind = None

    def told(self):
        nonlocal blind
        with lock:
            blind = blind or threading.current_thread()
        return told_once(self)

    lock = threading.Lock()
    monkeypatch.setattr(shared.Proof, "told", told)

    def work(rank):
        return sorted(group()._transport.near), everything(rank, np.float32)[0]

    found = over_sockets(3, work)
    monkeypatch.undo()
    assert sorted(len(near) for near, _ in found) == [0, 1, 1]
    expected = over_sockets(3, work, shared_memory=False)
    assert [bits for _, bits in found] == [bits for _, bits in expected]


@pytest.mark.parametrize("limit", ["system", "size"])
def test_without_memory_for_it_arrays_go_through_sockets(monkeypatch, limit):
    reserve = os.posix_fallocate

    def no_memory(descriptor, offset, size):
        if size > shared.LEAST_BYTES:
            raise OSError(28, "No space left on device")
        reserve(descriptor, offset, size)

    if limit == "system":
        monkeypatch.setattr(os, "posix_fallocate", no_memory)
    else:
        monkeypatch.setattr(shared, "MOST_BYTES", shared.LEAST_BYTES)
    found = over_sockets(2, lambda rank: (bool(group()._transport.near), everything(rank, np.float32)[0]))
    monkeypatch.undo()
    expected = over_sockets(2, lambda rank: everything(rank, np.float32)[0], shared_memory=False)
    assert found == [(True, bits) for bits in expected]


def test_a_path_that_is_no_segment_is_not_opened(tmp_path):
    """On another machine numbers of processes and files may mean anything: a pipe would be waited for."""
    read, write = os.pipe()
    with open(tmp_path / "file", "w") as other:
        for descriptor in (read, write, other.fileno(), 999_999):
            told = {"pid": os.getpid(), "descriptor": descriptor, "secret": "00" * 16}
            assert not shared.Proof.sees(told)
            with pytest.raises(OSError):
                shared.open_segment(os.getpid(), descriptor, 1)
    os.close(read)
    os.close(write)
    proof = shared.Proof()
    assert shared.Proof.sees(proof.told()) and not shared.Proof.sees({**proof.told(), "secret": "00" * 16})
    assert not shared.Proof.sees({}) and not shared.Proof.sees(None)
    with pytest.raises(OSError, match="is smaller than"):
        shared.open_segment(os.getpid(), proof.told()["descriptor"], 1 << 20)


def test_a_failed_collective_leaves_what_others_still_read():
    """The memory that was laid down is not written to again, whatever this rank begins next."""

    def work(rank):
        c = group()
        x = array(rank, np.float32)
        c.all_reduce(x)
        own = list(c._shelf._own)
        with pytest.raises(RuntimeError, match="do not call the same collective"):
            c.all_reduce(x) if rank else c.all_gather(x)
        assert all(segment is not None for segment in own) and c._shelf._own == [None, None]
        c.barrier()  # nobody leaves before both have found it

    over_sockets(2, work)


KILLED = """
import os, signal
import numpy as np
from mycelia.communication import get_rank, init
from mycelia.engine.communication import world

init()
c = world.current().communicator
x = np.ones(1 << 18, np.float32)
for _ in range(3):
    assert c.all_reduce(x)[-1] == 2
print("mapped", "mycelia-collective" in open("/proc/self/maps").read(), flush=True)
c.barrier()
if get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
c.all_reduce(x)
"""


def test_processes_hand_over_memory_and_leave_nothing_when_one_is_killed(tmp_path, capfd):
    (tmp_path / "train.py").write_text(KILLED)
    assert launcher.run(launcher.Job([str(tmp_path / "train.py")], 2, log_dir=tmp_path)) == 137
    assert "rank 1 has failed with exit code 137" in capfd.readouterr().out
    assert all("mapped True" in log.read_text() for log in tmp_path.glob("worker_*.log"))
    assert not [name for name in os.listdir("/dev/shm") if shared._NAME in name]
