"""Faults of the serving benchmark: workers that are killed under load, malformed requests among good ones."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import peers
from serving_processes import INPUTS, Server, check_grpc, grpc_client, http_client, resident_mb, writes

# ---- faults ------------------------------------------------------------------------------------------------


def workers_of(port: int) -> dict[int, str]:
    """Process -> state of LeNet's workers, as GET /model tells."""
    import urllib.request

    with urllib.request.urlopen(f"http://127.0.0.1:{port + 1}/model", timeout=10) as answer:
        text = json.load(answer)
    found = {}
    for servable in text["servables"] if isinstance(text, dict) else text:
        for worker in servable.get("workers", ()):
            found[worker["pid"]] = worker["state"]
    return found


def kills(folder: Path, seconds: float = 60, every: float = 5) -> None:
    """Load by 8 callers while one of three workers is killed every few seconds."""
    server = Server(folder, "workers")
    latencies: list[float] = []
    failures: list[str] = []
    revived: list[float] = []
    over = threading.Event()

    def call() -> None:
        try:
            client = grpc_client("workers", server.port, "lenet")
            while not over.is_set():
                latencies.extend(client.run(4, 0.5).latencies)
            client.close()
        except Exception as error:
            failures.append(repr(error))

    try:
        server.wait(lambda: check_grpc("workers", server.port, "lenet"))
        server.wait(lambda: workers_of(server.port))
        callers = [threading.Thread(target=call) for _ in range(2)]
        for thread in callers:
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begun = time.monotonic()
            alive = [pid for pid, state in workers_of(server.port).items() if state in ("ready", "busy")]
            os.kill(alive[0], signal.SIGKILL)
            while time.monotonic() < begun + every:
                time.sleep(0.05)
                now = {pid for pid, state in workers_of(server.port).items() if state in ("ready", "busy")}
                if len(now - {alive[0]}) >= 3:
                    revived.append(time.monotonic() - begun)
                    break
            else:
                revived.append(every)
            time.sleep(max(0.0, begun + every - time.monotonic()))
        over.set()
        for thread in callers:
            thread.join()
    finally:
        over.set()
        server.close()
    rows = [
        ["requests answered", str(len(latencies)), "-"],
        ["failed", str(len(failures)), "0"],
        ["slowest answer", f"{max(latencies):.3f} s", "< 2 s"],
        ["workers killed", str(len(revived)), "-"],
        ["until a new one serves, slowest", f"{max(revived):.2f} s", "< 5 s"],
    ]
    note = (
        f"{seconds:.0f} s of LeNet over gRPC, 8 callers; one of three workers is killed every {every:.0f} s."
    )
    peers.report("Serving: faults", rows, note, ["what", "Mycelia", "bar"], writes())
    for failure in failures:
        print(failure, file=sys.stderr)


def malformed(folder: Path) -> None:
    """Malformed requests of hypothesis among good ones."""
    from mycelia_serving.testing import Target, fuzz

    count = int(peers.option("--requests", "10000"))
    server = Server(folder, "mycelia")
    good: list[float] = []
    failures: list[str] = []
    over = threading.Event()

    def call() -> None:
        try:
            client = grpc_client("mycelia", server.port, "lenet")
            other = http_client("mycelia", server.port, "add")
            while not over.is_set():
                good.extend(client.run(2, 0.1).latencies)
                good.extend(other.run(2, 0.1).latencies)
        except Exception as error:
            failures.append(repr(error))

    try:
        for name in INPUTS:
            server.wait(functools.partial(check_grpc, "mycelia", server.port, name))
        server.wait(lambda: workers_of(server.port))  # the REST port comes second
        thread = threading.Thread(target=call)
        thread.start()
        targets = [
            Target(server.port, server.port + 1, name, "predict", inputs) for name, inputs in INPUTS.items()
        ]
        for target in targets:
            fuzz(target, count // 10, 1)  # the first ones fill tables and caches
        before = resident_mb(server.pid)
        statuses = fuzz(targets[0], count // 2, 2) + fuzz(targets[1], count - count // 2, 3)
        after = resident_mb(server.pid)
        over.set()
        thread.join()
        for name in INPUTS:
            check_grpc("mycelia", server.port, name)
        crashed = server.process.poll() is not None
    finally:
        over.set()
        server.close()
    rows = [
        ["malformed requests", str(sum(statuses.values())), "10000"],
        ["crashes", str(int(crashed)), "0"],
        ["good requests between them", str(len(good)), "-"],
        ["of these failed", str(len(failures)), "0"],
        ["memory grew by", f"{after - before:.1f} MB of {before:.0f}", "flat"],
    ]
    note = "gRPC and REST requests made by hypothesis. Answers: " + ", ".join(
        f"{name} {number}" for name, number in sorted(statuses.items(), key=lambda item: -item[1])
    )
    peers.report("Serving: malformed requests", rows, f"{note}.", ["what", "Mycelia", "bar"], writes())
    for failure in failures:
        print(failure, file=sys.stderr)
