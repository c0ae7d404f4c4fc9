"""Servers of the serving benchmark as processes, clients of theirs, and what their models answer."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from serving_load import GrpcClient, HttpClient

HERE = Path(__file__).resolve().parent
PEERS = os.environ.get("MYCELIA_BENCH_SERVING")
PREDICT = "/mindspore.serving.proto.MSService/Predict"
CONFIG = """
from mycelia_serving.server import register

model = register.declare_model("{name}.mindir", "MindIR")

@register.register_method(output_names=["y"])
def predict({inputs}):
    return register.add_stage(model, {inputs}, outputs_count=1)
"""
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


# ---- the command -------------------------------------------------------------------------------------------


def writes() -> bool:
    return "--no-write" not in sys.argv
