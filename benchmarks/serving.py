"""Serving: CPU time of a request in all processes of the server, requests a second, latencies, faults.

LeNet and a 2 x 2 addition, one instance a request. Every server is a process (or several) of its own; the
client is the same for all (serving_load.py) and takes little. Rounds go A B A B.
MYCELIA_BENCH_SERVING names a Python with grpcio, onnxruntime, onnx, LitServe and BentoML; without it only
Mycelia's own figures are taken. A server in C++ is compiled where g++, grpc++ and its protoc plugin are, and
MYCELIA_BENCH_ORT_INCLUDE has onnxruntime's C header. --peers says what is missing there.
--table chooses by a part of the name (gRPC, REST, lightweight, faults, malformed); --seconds of a run (3).
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import peers
from serving_load import GrpcClient, HttpClient, Load

HERE = Path(__file__).resolve().parent
PEERS = os.environ.get("MYCELIA_BENCH_SERVING")
SECONDS = float(peers.option("--seconds", "3"))
ROUNDS = int(peers.option("--rounds", "3"))
PREDICT = "/mindspore.serving.proto.MSService/Predict"
CONFIG = """
from mycelia_serving.server import register

model = register.declare_model("{name}.mindir", "MindIR")

@register.register_method(output_names=["y"])
def predict({inputs}):
    return register.add_stage(model, {inputs}, outputs_count=1)
"""
NATIVE = {"native", "native-batching"}  # peers that are compiled first
INPUTS = {"lenet": ("x",), "add": ("x1", "x2")}


def instance(name: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    shape = (1, 28, 28) if name == "lenet" else (2, 2)
    return {one: rng.normal(size=shape).astype(np.float32) for one in INPUTS[name]}


def make_servables(folder: Path) -> None:
    """Servable directories of both models, LeNet's weights, and the peers' files."""
    from models import LeNet

    import mycelia as ms

    class Add(ms.nn.Cell):
        def construct(self, x1, x2):
            return x1 + x2

    net = LeNet()
    net.set_train(False)
    np.savez(folder / "lenet.npz", **{p.name: p.asnumpy() for p in net.get_parameters()})
    for name, cell in (("lenet", net), ("add", Add())):
        place = folder / "servables" / name
        (place / "1").mkdir(parents=True)
        (place / "servable_config.py").write_text(CONFIG.format(name=name, inputs=", ".join(INPUTS[name])))
        shapes = [[None, *value.shape] for value in instance(name).values()]
        ms.export(
            cell,
            *[ms.Tensor(shape=shape, dtype=ms.float32) for shape in shapes],
            file_name=str(place / "1" / name),
            file_format="MINDIR",
        )
    if PEERS:
        subprocess.run([PEERS, HERE / "serving_servers.py", "onnx", folder, "0"], check=True)


# ---- servers -----------------------------------------------------------------------------------------------


def free_port() -> int:
    """A port that is free, and the next one too."""
    while True:
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                two.bind(("127.0.0.1", port + 1))
                return port


def processes(root: int) -> dict[int, float]:
    """CPU seconds, those of ended children included, of a process and its descendants."""
    times = {}
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            words = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            times[int(entry.name)] = int(words[1]), sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")
    found, wave = set(), {root} & set(times)
    while wave:
        found |= wave
        wave = {pid for pid, (parent, _) in times.items() if parent in wave}
    return {pid: times[pid][1] for pid in found}


def resident_mb(root: int) -> float:
    """Memory of a process and its descendants, shared pages counted in each."""
    total = 0
    for pid in processes(root):
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


class Server:
    """A running server of `serving_servers.py`."""

    def __init__(self, folder: Path, kind: str, *more: str) -> None:
        self.port = free_port()
        python = sys.executable if kind in ("mycelia", "workers") else PEERS
        command = [python, HERE / "serving_servers.py", kind, folder, str(self.port), *more]
        threads = dict.fromkeys(("MYCELIA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **threads}, stdout=self.log, stderr=self.log
        )
        self.pid = self.process.pid

    def cpu(self) -> float:
        return sum(processes(self.pid).values())

    def wait(self, attempt, seconds: float = 120) -> None:
        """Until `attempt()` raises nothing."""
        end = time.monotonic() + seconds
        while True:
            try:
                attempt()
                return
            except Exception:
                if time.monotonic() > end or self.process.poll() is not None:
                    self.log.seek(0)
                    print(self.log.read().decode(errors="replace")[-3000:], file=sys.stderr)
                    raise
                time.sleep(0.2)

    def close(self) -> None:
        everyone = processes(self.pid)
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid in everyone:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def grpc_client(kind: str, port: int, name: str) -> GrpcClient:
    values = instance(name)
    if kind in ("mycelia", "workers"):
        from mycelia_serving.wire.predict import request_bytes

        return GrpcClient(port, PREDICT, request_bytes(name, "predict", 0, [values]))
    from serving_servers import messages

    request = messages()()
    for value in values.values():
        request.tensors.add(data=value.tobytes(), shape=(1, *value.shape))
    return GrpcClient(port, f"/bench.{name}/Predict", request.SerializeToString())


def http_client(kind: str, port: int, name: str) -> HttpClient:
    values = {key: value.tolist() for key, value in instance(name).items()}
    if kind == "mycelia":
        return HttpClient(port + 1, f"/model/{name}:predict", json.dumps({"instances": [values]}).encode())
    return HttpClient(port, "/predict", json.dumps(values).encode())


def check_grpc(kind: str, port: int, name: str) -> None:
    """One call by gRPC's own client: the answer is right."""
    import grpc

    wanted = expected(name)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        if kind in ("mycelia", "workers"):
            from mycelia_serving.wire.predict import parse_reply, request_bytes

            body = request_bytes(name, "predict", 0, [instance(name)])
            (result,) = parse_reply(channel.unary_unary(PREDICT)(body, timeout=30)).results
            found = result["y"]
        else:
            from serving_servers import messages

            kind_of = messages()
            request = kind_of()
            for value in instance(name).values():
                request.tensors.add(data=value.tobytes(), shape=(1, *value.shape))
            call = channel.unary_unary(f"/bench.{name}/Predict")
            reply = kind_of.FromString(call(request.SerializeToString(), timeout=30))
            found = np.frombuffer(reply.tensors[0].data, np.float32)
    np.testing.assert_allclose(np.ravel(found), np.ravel(wanted), rtol=1e-3, atol=1e-4)


_expected: dict[str, np.ndarray] = {}


def expected(name: str) -> np.ndarray:
    return _expected[name]


def learn_expected(folder: Path) -> None:
    """What the models answer, computed by the compiled models themselves."""
    for name in INPUTS:
        call, arguments = compiled(folder, name)
        _expected[name] = call(*arguments).asnumpy()


def compiled(folder: Path, name: str):
    """The model of a servable, compiled, and its inputs as a batch of one."""
    import mycelia as ms

    cell = ms.nn.GraphCell(ms.load(str(folder / "servables" / name / "1" / f"{name}.mindir")))
    cell.set_train(False)
    return ms.jit(cell), [ms.Tensor(value[None]) for value in instance(name).values()]


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


# ---- the command -------------------------------------------------------------------------------------------


def writes() -> bool:
    return "--no-write" not in sys.argv


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
