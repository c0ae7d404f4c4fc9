"""A standby takes over from a master that is killed, by leases of a real etcd (Debian: etcd-server)."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading

import numpy as np
import pytest

from mycelia_serving.cluster.etcd import Etcd, EtcdError, Mastership, become_master, find_masters

ETCD = os.environ.get("MYCELIA_ETCD") or shutil.which("etcd")


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture(scope="module")
def etcd(tmp_path_factory):
    """Address of an etcd server."""
    if not ETCD:
        pytest.skip("no etcd here (MYCELIA_ETCD, or etcd in PATH)")
    client, peer = free_ports(2)
    urls = f"http://127.0.0.1:{client}"
    process = subprocess.Popen(
        [
            ETCD,
            f"--data-dir={tmp_path_factory.mktemp('etcd')}",
            f"--listen-client-urls={urls}",
            f"--advertise-client-urls={urls}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield f"127.0.0.1:{client}"
    process.kill()
    process.wait()


@pytest.fixture
def ready_etcd(etcd, until):
    def answers():
        try:
            Etcd(etcd).get("x")
        except EtcdError:
            return False
        return True

    until(answers)
    return etcd


def test_one_server_is_the_master_and_the_next_follows(ready_etcd):
    address = f"{ready_etcd}/election"
    stop = threading.Event()
    first, second = Mastership(address, "10.0.0.1:6100"), Mastership(address, "10.0.0.2:6100")
    assert first.wait(stop)
    assert find_masters(address)() == ["10.0.0.1:6100"]
    got = []
    thread = threading.Thread(target=lambda: got.append(second.wait(stop)))
    thread.start()
    first.give_up()
    thread.join(60)
    assert got == [True]
    assert find_masters(address)() == ["10.0.0.2:6100"]
    second.give_up()
    assert find_masters(address)() == []


def test_a_master_whose_lease_has_gone_is_told(ready_etcd):
    one = Mastership(f"{ready_etcd}/lost", "10.0.0.1:6100")
    assert one.wait(threading.Event())
    told = threading.Event()
    one.lost = told.set
    one._etcd.revoke(one._lease)
    assert told.wait(60)


def test_a_standby_takes_over_with_the_same_workers(ready_etcd, servables, start_process, predict, until):
    cluster = f"{ready_etcd}/takeover"
    masters = []
    for _ in range(2):
        grpc, join = free_ports(2)
        server = start_process(
            *("-m", "mycelia_serving", "start", "-d", str(servables), "-s", "calc", "--no-spare"),
            *("--workers", "0", "--grpc", f"127.0.0.1:{grpc}"),
            *("--master", f"127.0.0.1:{join}", "--etcd", cluster),
        )
        masters.append((server, grpc))
        if len(masters) == 1:
            server.port()
    (first, first_port), (second, second_port) = masters
    second.wait_line("stands by")
    worker = start_process(
        *("-m", "mycelia_serving", "worker", "-d", str(servables), "-s", "calc", "--etcd", cluster)
    )

    def pids(port):
        replies = [predict(port, "calc", "pid", [{"x": np.asarray(0)}]) for _ in range(4)]
        return {int(r.results[0]["y"]) if not isinstance(r, str) else r for r in replies}

    until(lambda: worker.process.pid in pids(first_port))
    first.process.send_signal(signal.SIGKILL)
    assert second.port() == second_port
    until(lambda: worker.process.pid in pids(second_port))
    second.process.terminate()
    assert second.end() == 0


@pytest.mark.parametrize("address", ["", "nohost", "localhost:"])
def test_addresses_of_etcd_are_checked(address):
    with pytest.raises(RuntimeError, match="host:port"):
        find_masters(address)


def test_a_master_needs_an_address_that_others_reach():
    with pytest.raises(RuntimeError, match="--master"):
        become_master(None, "localhost:2379", "0.0.0.0:6100")


def test_an_etcd_that_is_away_is_an_error_at_the_start():
    (port,) = free_ports(1)
    with pytest.raises(EtcdError, match=str(port)):
        Mastership(f"127.0.0.1:{port}", "10.0.0.1:6100").wait(threading.Event())
