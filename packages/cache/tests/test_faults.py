"""Servers, clients, disks and sessions that go away in the middle: never a wrong row, never a hang."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import mycelia.dataset as ds
from mycelia_cache import channel, commands, daemon, protocol
from mycelia_cache.handle import LocalHandle
from mycelia_cache.proto import cache_pb2 as pb

ROW = 30 << 10


class Numbers:
    """200 rows that tell their number."""

    cache_key = "numbers"

    def __init__(self, count: int = 200, size: int = 8):
        self.count, self.size = count, size

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return np.full(self.size, i, np.int32)


def numbers(cache, count: int = 200, size: int = 8, shuffle: bool = True):
    source = ds.GeneratorDataset(Numbers(count, size), ["x"], shuffle=shuffle)
    return source.map(lambda x: x, "x", cache=cache)


def values(rows) -> list[int]:
    """The numbers of rows, each checked from end to end."""
    found = []
    for (x,) in rows:
        assert (x == x[0]).all()
        found.append(int(x[0]))
    return found


def iterator(dataset, count: int):
    return dataset.create_tuple_iterator(num_epochs=count, output_numpy=True)


def expected(count: int) -> list[list[int]]:
    it = iterator(numbers(None), count)
    return [values(it) for _ in range(count)]


# ---- the server is killed --------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1], ids=["while filling", "later"])
def test_rows_come_from_the_source_when_the_server_is_killed(make_server, warned, at):
    server = make_server()
    it = iterator(numbers(server.cache()), 4)
    got = []
    for epoch in range(4):
        rows = []
        for row in it:
            rows.append(row)
            if epoch == at and len(rows) == 70:
                server.kill()
        got.append(values(rows))
    assert got == expected(4)
    assert len([w for w in warned if "is gone; rows come from the source" in w]) == 1


def test_a_killed_server_is_an_error_if_that_is_wanted(make_server):
    server = make_server()
    it = iterator(numbers(server.cache(on_failure="error")), 2)
    assert len(values(it)) == 200
    server.kill()
    with pytest.raises(RuntimeError, match="is unreachable"):
        values(it)


def test_after_a_restart_the_session_is_not_found(make_server):
    server = make_server()
    it = iterator(numbers(server.cache()), 3)
    values(it)
    server.kill()
    server.again()
    with pytest.raises(RuntimeError, match="session was not found"):
        values(it)


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("end", ["restart", "destroy", "restart in the middle", "destroy in the middle"])
def test_a_pipeline_that_bypasses_never_raises(make_server, warned, lines, numbered, end):
    server = make_server()
    session = server.session()
    cache = server.cache(session, on_failure="bypass")
    if numbered:
        dataset, right = numbers(cache), expected(5)
    else:
        dataset = ds.TextFileDataset(lines, shuffle=False, cache=cache)
        right = [[f"line {i}" for i in range(100)]] * 5

    def over():
        if end.startswith("restart"):
            server.kill()
            server.again()
        else:
            commands.destroy("127.0.0.1", server.port, session)

    it, got = iterator(dataset, 5), []
    for epoch in range(5):
        if epoch == 1 and not end.endswith("middle"):
            over()
        rows = []
        for row in it:
            rows.append(row)
            if epoch == 1 and len(rows) == 40 and end.endswith("middle"):
                over()
        got.append(values(rows) if numbered else [str(x) for (x,) in rows])
    assert got == right
    assert len([w for w in warned if "rows come from the source" in w]) == 1
    # A new pipeline, too, does without.
    if numbered:
        fresh = iterator(numbers(server.cache(session, on_failure="bypass")), 1)
        assert sorted(values(fresh)) == list(range(200))


def test_a_pipeline_that_bypasses_joins_again_when_it_can(make_server, tmp_path):
    server = make_server(spill_dir=str(tmp_path), keep=True)
    cache = server.cache(on_failure="bypass", size=1, spilling=True)
    it = iterator(numbers(cache, 60, ROW // 4, False), 4)
    assert values(it) == list(range(60))
    server.kill()
    assert values(it) == list(range(60))
    server.again()
    assert values(it) == list(range(60))
    stat = cache.get_stat()
    assert stat.num_disk_cached > 0 and stat.num_hit > 0, "rows on disk were kept, and are used again"
    assert values(it) == list(range(60))


def test_a_private_session_is_made_anew_after_a_restart(make_server):
    server = make_server()
    cache = ds.DatasetCache(None, port=server.port, on_failure="bypass")
    it = iterator(numbers(cache), 3)
    got = [values(it)]
    server.kill()
    server.again()
    got += [values(it), values(it)]
    assert got == expected(3)
    assert cache.get_stat().num_mem_cached == 200


def test_a_source_without_numbers_goes_on_when_the_server_is_killed(make_server, lines):
    server = make_server()
    texts = [f"line {i}" for i in range(100)]
    it = iterator(ds.TextFileDataset(lines, shuffle=False, cache=server.cache()), 3)
    first = [str(r[0]) for r in it]
    second = []
    for row in it:
        second.append(str(row[0]))
        if len(second) == 10:
            server.kill()
    assert first == second == texts == [str(r[0]) for r in it]


def test_a_dead_server_leaves_nothing_that_hinders_the_next(make_server, tmp_path):
    server = make_server(spill_dir=str(tmp_path))
    cache = server.cache(size=1, spilling=True)
    values(iterator(numbers(cache, 60, ROW // 4), 1))
    left = tmp_path / f"mycelia-cache-{server.port}"
    assert list(left.rglob("rows"))
    server.kill()
    server.again()
    assert not list(left.rglob("rows")) and cache is not None
    assert commands.overview("127.0.0.1", server.port).memory_used == 0
    commands.stop("127.0.0.1", server.port)
    assert not left.exists() and not (server.directory / str(server.port) / "socket").exists()


def test_kept_sessions_and_spilled_rows_are_taken_up_again(make_server, tmp_path):
    server = make_server(spill_dir=str(tmp_path), keep=True)
    session = server.session()
    cache = server.cache(session, size=1, spilling=True)
    before = values(iterator(numbers(cache, 60, ROW // 4, False), 1))
    on_disk = cache.get_stat().num_disk_cached
    server.kill()
    server.again()
    again = server.cache(session, size=1, spilling=True)
    assert values(iterator(numbers(again, 60, ROW // 4, False), 1)) == before == list(range(60))
    stat = again.get_stat()
    assert on_disk > 20 and stat.num_hit == on_disk


# ---- sessions --------------------------------------------------------------------------------------------


def test_a_session_may_be_destroyed_under_a_running_pipeline(server):
    cache = server.cache()
    it = iterator(numbers(cache), 3)
    first = values(it)
    rows = []
    for row in it:
        rows.append(row)
        if len(rows) == 50:
            commands.destroy("127.0.0.1", server.port, cache.session_id)
    assert [first, values(rows)] == expected(2)
    with pytest.raises(RuntimeError, match="session was not found"):
        values(it)


# ---- clients ---------------------------------------------------------------------------------------------

CLIENT = """
    import sys
    import numpy as np
    import mycelia.dataset as ds

    port, session, path, say_at = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    cache = ds.DatasetCache(session, port=port)

    def slow(x):
        return x

    dataset = ds.TextFileDataset(path, shuffle=False).map(slow, "text", cache=cache)
    for epoch in range(2):
        iterator = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
        print(",".join(str(row[0]) for row in iterator), flush=True)
    print(cache.get_stat().num_miss, flush=True)
"""


@pytest.fixture
def client(tmp_path):
    """Client processes, ended at the latest after the test."""
    path = tmp_path / "client.py"
    running = []

    def run(text: str, *arguments) -> subprocess.Popen:
        path.write_text(textwrap.dedent(text))
        command = [sys.executable, str(path), *map(str, arguments)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return running[-1]

    yield run
    for process in running:
        process.kill()
        process.communicate()


def test_several_processes_build_and_read_one_cache(server, client, lines):
    session = server.session()
    processes = [client(CLIENT, server.port, session, lines, 0) for _ in range(3)]
    outputs = [p.communicate(timeout=120)[0].splitlines() for p in processes]
    texts = ",".join(f"line {i}" for i in range(100))
    for output in outputs:
        assert output[:2] == [texts, texts]
    assert {o[2] for o in outputs} == {"100"}, "one of them read the source, once"


BUILDER = """
    import sys, time
    import mycelia.dataset as ds

    cache = ds.DatasetCache(int(sys.argv[2]), port=int(sys.argv[1]))
    seen = []

    def slow(x):
        seen.append(x)
        if len(seen) == 20:
            print("in the middle", flush=True)
            time.sleep(600)
        return x

    # The function's name, module and code are those of the test's, so the pipelines are the same.
    dataset = ds.TextFileDataset(sys.argv[3], shuffle=False, cache=cache)
    dataset.read = lambda path: map(slow, type(dataset).read(dataset, path))
    list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))
"""


def test_a_build_whose_client_is_killed_is_taken_over(server, client, lines):
    session = server.session()
    builder = client(BUILDER, server.port, session, lines)
    assert builder.stdout.readline() == "in the middle\n"
    assert _only_cache(server, session).state == protocol.State.BUILD
    os.kill(builder.pid, signal.SIGKILL)
    cache = server.cache(session)
    rows = list(iterator(ds.TextFileDataset(lines, shuffle=False, cache=cache), 1))
    assert [str(r[0]) for r in rows] == [f"line {i}" for i in range(100)]
    assert cache.get_stat().state == protocol.State.FETCH


def _only_cache(server, session: int):
    (found,) = [c for c in commands.overview("127.0.0.1", server.port).caches if c.session == session]
    return found


RESERVER = """
    import os, signal, sys
    import numpy as np
    from mycelia_cache import channel, daemon
    from mycelia_cache.handle import LocalHandle
    from mycelia_cache.proto import cache_pb2 as pb

    way = channel.SocketChannel(daemon.directory_of(int(sys.argv[1])))
    channel.hello(way)
    join = pb.Join(session=int(sys.argv[2]), crc=1, digest=b"d" * 16, size=1 << 20, numbered=True)
    reply, fds = way.call_for_files(pb.Request(join=join))
    handle = LocalHandle(way, reply.joined, fds, print)
    ticket, places, _ = handle._reserve(np.arange(9), np.full(9, 100 << 10, np.uint64))
    assert ticket and (places == 1).all()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def joined(server, session: int, size: int = 0) -> LocalHandle:
    """A cache as a client has it, without a pipeline."""
    way = channel.SocketChannel(daemon.directory_of(server.port))
    channel.hello(way)
    join = pb.Join(session=session, crc=1, digest=b"d" * 16, size=size, numbered=True)
    reply, fds = way.call_for_files(pb.Request(join=join))
    return LocalHandle(way, reply.joined, fds, pytest.fail)


def test_what_a_killed_client_had_reserved_is_free_again(server, client):
    session = server.session()
    assert client(RESERVER, server.port, session).wait(60) == -signal.SIGKILL
    handle = joined(server, session, 1 << 20)
    rows = np.arange(9)

    def stored():
        for n in rows.tolist():
            handle.put(n, (np.full(90 << 10, n, np.uint8),))
        handle.flush()
        return handle.present(rows).all()

    server.wait_for(stored)
    assert [int(r[0][7]) for r in handle.read(rows)] == list(range(9))


def test_a_forked_child_does_not_keep_its_parents_connection(server):
    session = server.session()
    handle = joined(server, session)
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        handle.channel.close()
        server.wait_for(lambda: _only_cache(server, session).clients == 0)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# ---- memory and disk -------------------------------------------------------------------------------------


def test_a_damaged_row_on_disk_is_computed_anew(make_server, tmp_path):
    server = make_server(spill_dir=str(tmp_path))
    cache = server.cache(size=1, spilling=True)
    dataset = numbers(cache, 60, ROW // 4, False)
    it = iterator(dataset, 3)
    assert values(it) == list(range(60))
    (path,) = tmp_path.rglob("rows")
    with open(path, "r+b") as file:
        for at in range(1000, path.stat().st_size, ROW):
            file.seek(at)
            file.write(b"damage")
    assert values(it) == list(range(60)) == values(it)
    stat = cache.get_stat()
    assert stat.num_disk_cached >= 20, "they are stored anew"
    assert stat.num_miss > 60


def test_a_full_disk_ends_the_caching_not_the_pipeline(make_server, tmp_path):
    server = make_server(spill_dir=str(tmp_path), spill_limit=300 << 10)
    cache = server.cache(size=1, spilling=True)
    it = iterator(numbers(cache, 60, ROW // 4, False), 3)
    assert [values(it) for _ in range(3)] == [list(range(60))] * 3
    stat = cache.get_stat()
    assert stat.num_disk_cached == 9 and stat.state == protocol.State.NO_SPACE
    text = tmp_path / "long.txt"
    text.write_text("".join(f"{i}{'x' * 50000}\n" for i in range(20)))
    with pytest.raises(RuntimeError, match="no space left on the spill disk"):
        list(iterator(ds.TextFileDataset(str(text), cache=server.cache(size=1, spilling=True)), 1))


def test_a_disk_that_fails_while_a_row_is_written(make_server, tmp_path, monkeypatch):
    server = make_server(spill_dir=str(tmp_path))
    cache = server.cache(size=1, spilling=True)
    it = iterator(numbers(cache, 60, ROW // 4, False), 2)
    real, spilled = os.pwritev, []

    def failing(fd, pieces, at):
        if os.readlink(f"/proc/self/fd/{fd}").endswith("/rows"):
            spilled.append(at)
            if len(spilled) > 3:
                raise OSError(28, "No space left on device")
        return real(fd, pieces, at)

    monkeypatch.setattr(os, "pwritev", failing)
    assert [values(it) for _ in range(2)] == [list(range(60))] * 2
    assert cache.get_stat().num_disk_cached == 3


def test_a_row_larger_than_the_cache_is_not_cached(server):
    cache = server.cache(size=1)

    class Mixed(Numbers):
        cache_key = "mixed"

        def __getitem__(self, i):
            return np.full((1 << 20) if i == 3 else 10, i, np.int32)

    source = ds.GeneratorDataset(Mixed(8), ["x"], shuffle=False)
    it = iterator(source.map(lambda x: x, "x", cache=cache), 3)
    assert [values(it) for _ in range(3)] == [list(range(8))] * 3
    assert cache.get_stat().num_mem_cached == 7


# ---- the wire --------------------------------------------------------------------------------------------


def test_a_client_of_another_version_is_refused(server, monkeypatch):
    cache = server.cache()
    monkeypatch.setattr(protocol, "PROTOCOL", 99)
    with pytest.raises(RuntimeError, match="the client speaks protocol 99 of the cache, the server 1"):
        iterator(numbers(cache), 1)


def test_random_bytes_end_the_connection_and_not_the_server(server):
    noise = np.random.default_rng(0).bytes(5000)
    for junk in (noise, b"\0" * 100, b"\xff" * 100, b"\x05\0\0\0\0\0\0\0hello", b"GET / HTTP/1.1\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
            sock.sendall(junk)
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            place = os.open(daemon.directory_of(server.port), os.O_PATH)
            sock.connect(f"/proc/self/fd/{place}/socket")
            os.close(place)
            sock.sendall(junk)
            sock.shutdown(socket.SHUT_WR)
            try:
                while sock.recv(1000):
                    pass
            except ConnectionResetError:
                pass
    assert values(iterator(numbers(server.cache()), 1)) == expected(1)[0]


def test_one_crc_and_two_pipelines_are_told_apart(server):
    session = server.session()
    joined(server, session)
    way = channel.SocketChannel(daemon.directory_of(server.port))
    channel.hello(way)
    with pytest.raises(protocol.Refused, match="two different pipelines have the same crc 1"):
        way.call(pb.Request(join=pb.Join(session=session, crc=1, digest=b"e" * 16, numbered=True)))


def test_two_servers_on_one_port(server, cache_dir):
    with pytest.raises(commands.Failed, match="already up and running"):
        commands.start(commands.settings(server.port))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(commands.Failed, match=f"Port {port} is in use by another program"):
            commands.start(commands.settings(port))
        assert not (Path(cache_dir) / str(port) / "server.json").exists()


def test_sessions_that_nobody_uses_end(make_server):
    server = make_server(idle_s=0.5)
    session = server.session()
    server.wait_for(lambda: session not in commands.overview("127.0.0.1", server.port).sessions)
