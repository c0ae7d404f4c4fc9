"""Serving: CPU time of a request in all processes of the server, requests a second, latencies, faults.

LeNet and a 2 x 2 addition, one instance a request. Every server is a process (or several) of its own; the
client is the same for all (serving_load.py) and takes little. Rounds go A B A B.
MYCELIA_BENCH_SERVING names a Python with grpcio, onnxruntime, onnx, LitServe and BentoML; without it only
Mycelia's own figures are taken. A server in C++ is compiled where g++, grpc++ and its protoc plugin are, and
MYCELIA_BENCH_ORT_INCLUDE has onnxruntime's C header. --peers says what is missing there.
--table chooses by a part of the name (gRPC, REST, lightweight, faults, malformed); --seconds of a run (3).
"""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import peers
from serving_faults import kills, malformed
from serving_load import Load
from serving_processes import (
    HERE,
    INPUTS,
    PEERS,
    Server,
    check_grpc,
    compiled,
    expected,
    grpc_client,
    http_client,
    learn_expected,
    make_servables,
    writes,
)

SECONDS = float(peers.option("--seconds", "3"))
ROUNDS = int(peers.option("--rounds", "3"))
NATIVE = {"native", "native-batching"}  # peers that are compiled first


# ---- speed -------------------------------------------------------------------------------------------------

CALLERS = (1, 8, 64)


def run(server: Server, client, callers: int) -> dict[str, float]:
    """One run's figures: seconds of CPU a request, requests a second, seconds of latency."""
    client.run(callers, 0.3)
    before = server.cpu()
    load: Load = client.run(callers, SECONDS)
    used = server.cpu() - before
    return {
        "CPU": used / len(load.latencies),
        "requests/s": load.rate,
        "p50": load.median,
        "p99": load.percentile(0.99),
    }


# what is measured -> unit, scale, whether more is better
FIGURES = {
    "CPU": ("us", 1e6, False),
    "requests/s": ("/s", 1, True),
    "p50": ("ms", 1e3, False),
    "p99": ("ms", 1e3, False),
}


def speed_table(title: str, note: str, sides: dict, connect, check, folder: Path, bars: dict) -> None:
    """Rounds of all sides, model by model, and the table."""
    rows = []
    kinds = {side: kind for side, kind in sides.items() if kind == "mycelia" or PEERS}
    if PEERS and not NATIVE.isdisjoint(kinds.values()):
        built = subprocess.run([PEERS, HERE / "serving_servers.py", "native-build", folder, "0"], check=False)
        if built.returncode:  # it has said why
            kinds = {side: kind for side, kind in kinds.items() if kind not in NATIVE}
    for name in INPUTS:
        servers, clients, found = {}, {}, {}
        try:
            for side, kind in kinds.items():
                more = (name,) if kind in ("litserve", "bentoml") else ()
                servers[side] = Server(folder, kind, *more)
            for side, kind in kinds.items():
                port = servers[side].port
                servers[side].wait(functools.partial(check, kind, port, name))
                clients[side] = connect(kind, port, name)
            for callers in CALLERS:
                found[callers] = {side: [] for side in kinds}
                for _ in range(ROUNDS):
                    for side in kinds:
                        found[callers][side].append(run(servers[side], clients[side], callers))
        finally:
            for one in (*clients.values(), *servers.values()):
                one.close()
        for callers in CALLERS:
            for figure in FIGURES:
                rows.append(speed_row(name, callers, figure, found[callers], sides, bars))
    head = ["case", "Mycelia", *list(sides)[1:], "ratio", "bar"]
    head += [] if NATIVE.isdisjoint(sides.values()) else ["to C++"]
    peers.report(title, rows, note, head, writes())


def speed_row(name, callers, figure, found, sides, bars) -> list[str]:
    unit, scale, more = FIGURES[figure]
    values = {side: [r[figure] for r in runs] for side, runs in found.items()}
    median = {side: statistics.median(v) for side, v in values.items()}

    def ratio(others: list[str]) -> str:
        """To the best of the others."""
        others = [s for s in others if s in median]
        if not others:
            return "-"
        best = (max if more else min)(others, key=median.get)
        found = statistics.median(a / b for a, b in zip(values["mycelia"], values[best]))
        return f"{found:.3f} ({best})"

    native = [s for s, kind in sides.items() if kind in NATIVE]
    title = {"lenet": "LeNet", "add": "2 x 2 addition"}[name]
    row = [f"{title}, {callers} at once: {figure}"]
    row += [f"{median[s] * scale:.4g} {unit}" if s in median else "-" for s in sides]
    row += [ratio([s for s in sides if s not in ("mycelia", *native)]), bars.get(figure, "-")]
    return [*row, ratio(native)] if native else row


def overhead(folder: Path) -> None:
    """What a request at concurrency 1 takes beyond the call of the compiled model."""
    rows = []
    server = Server(folder, "mycelia")
    try:
        for name in INPUTS:
            server.wait(functools.partial(check_grpc, "mycelia", server.port, name))
            client = grpc_client("mycelia", server.port, name)
            call, arguments = compiled(folder, name)
            served, direct = [], []
            for _ in range(ROUNDS):
                client.run(1, 0.2)
                served.append(client.run(1, SECONDS).median)
                times = []
                for _ in range(3000):
                    start = time.perf_counter()
                    call(*arguments).asnumpy()
                    times.append(time.perf_counter() - start)
                direct.append(statistics.median(times))
            client.close()
            more = statistics.median(a - b for a, b in zip(served, direct))
            values = [statistics.median(served), statistics.median(direct), more]
            title = {"lenet": "LeNet", "add": "2 x 2 addition"}[name]
            rows.append([title, *[f"{v * 1e3:.3f} ms" for v in values], "<= 0.5 ms"])
    finally:
        server.close()
    head = ["case", "served", "direct call", "more", "bar"]
    note = "Medians of gRPC requests, one at a time, against calls of the compiled model in a process."
    peers.report("Serving: lightweight mode", rows, note, head, writes())


GRPC_NOTE = (
    "CPU time of a request in all processes of the server, from a client that takes some 20 us of it; "
    "one thread a model. Batching: all that wait, at most 32. Ratio to the best peer in Python, round by "
    "round, and to the best in C++."
)


def main() -> None:
    if "--peers" in sys.argv and not PEERS:
        sys.exit("--peers: MYCELIA_BENCH_SERVING names no Python with the peers")
    grpc_sides = {
        "mycelia": "mycelia",
        "grpc.aio + ORT": "grpc",
        "with batching": "batching",
        "grpc++ + ORT": "native",
        "grpc++, batching": "native-batching",
    }
    rest_sides = {"mycelia": "mycelia", "LitServe": "litserve", "BentoML": "bentoml"}
    grpc_bars = {"CPU": "<= 0.6", "requests/s": ">= 1.5", "p99": "<= 1"}
    rest_bars = {"CPU": "<= 0.2", "requests/s": ">= 3"}

    def check_http(kind: str, port: int, name: str) -> None:
        client = http_client(kind, port, name)
        answer = json.loads(client.one())
        found = answer["instances"][0]["y"] if kind == "mycelia" else answer
        found = found["y"] if isinstance(found, dict) else found
        np.testing.assert_allclose(np.ravel(found), np.ravel(expected(name)), rtol=1e-3, atol=1e-4)
        client.close()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_servables(folder)
        learn_expected(folder)
        tables = {
            "gRPC": lambda: speed_table(
                "Serving: gRPC", GRPC_NOTE, grpc_sides, grpc_client, check_grpc, folder, grpc_bars
            ),
            "REST": lambda: speed_table(
                "Serving: REST",
                "The same over HTTP with JSON.",
                rest_sides,
                http_client,
                check_http,
                folder,
                rest_bars,
            ),
            "lightweight": lambda: overhead(folder),
            "faults": lambda: kills(folder),
            "malformed": lambda: malformed(folder),
        }
        for title, table in tables.items():
            if peers.option("--table") in title:
                table()


if __name__ == "__main__":
    main()
