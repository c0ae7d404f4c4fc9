"""The servers of the serving bench: `serving_servers.py KIND FOLDER PORT`, for LeNet and a 2 x 2 addition.

Kinds: onnx (makes the files of the peers); mycelia (one process; gRPC at PORT, REST at the next); workers
(three of them); grpc and batching (grpc.aio and onnxruntime, one request a run or all that wait);
native-build (compiles serving_peer.cc), native and native-batching (the same as grpc and batching in C++);
litserve and bentoml, with the model's name behind.
FOLDER holds what `serving.py` made: servables and ONNX files.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

LARGEST_BATCH = 32
HERE = Path(__file__).resolve().parent


def mycelia(folder: Path, port: int) -> None:
    from mycelia_serving import master, worker

    for name in ("lenet", "add"):
        worker.start_servable_in_master(str(folder / "servables"), name)
    master.start_grpc_server("127.0.0.1", port)
    master.start_restful_server("127.0.0.1", port + 1)
    signal.pause()


def workers(folder: Path, port: int) -> None:
    from mycelia_serving import server

    config = server.ServableStartConfig(str(folder / "servables"), "lenet", num_parallel_workers=3)
    server.start_servables(config)
    server.start_grpc_server(f"127.0.0.1:{port}")
    server.start_restful_server(f"127.0.0.1:{port + 1}")
    signal.pause()


def onnx_files(folder: Path) -> None:
    """LeNet with the weights of lenet.npz, and the addition, with an open batch dimension."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def save(name, nodes, inputs, result, weights):
        ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (*inputs, result)]
        graph = helper.make_graph(nodes, name, ends[:-1], ends[-1:], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, folder / f"{name}.onnx")

    weights = np.load(folder / "lenet.npz")
    nodes, value = [], "x"

    def add(kind, *more, **attributes):
        nonlocal value
        nodes.append(helper.make_node(kind, [value, *more], [f"v{len(nodes)}"], **attributes))
        value = f"v{len(nodes) - 1}"

    for name, padding in (("conv1", 2), ("conv2", 0)):
        add("Conv", f"{name}.weight", f"{name}.bias", kernel_shape=[5, 5], pads=[padding] * 4)
        add("Relu")
        add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    add("Flatten")
    for name in ("fc1", "fc2", "fc3"):
        add("Gemm", f"{name}.weight", f"{name}.bias", transB=1)
        if name != "fc3":
            add("Relu")
    constants = [numpy_helper.from_array(weights[name], name) for name in weights.files]
    save("lenet", nodes, [("x", ["N", 1, 28, 28])], (value, ["N", 10]), constants)
    pair = [("x1", ["N", 2, 2]), ("x2", ["N", 2, 2])]
    save("add", [helper.make_node("Add", ["x1", "x2"], ["y"])], pair, ("y", ["N", 2, 2]), [])


def session(folder: Path, name: str):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(folder / f"{name}.onnx", options, providers=["CPUExecutionProvider"])


def messages():
    """Request and reply of the peer's service: tensors as bytes and shapes."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="bench.proto", package="bench", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    tensor = file.message_type.add(name="Tensor")
    tensor.field.add(name="data", number=1, type=kinds.TYPE_BYTES, label=kinds.LABEL_OPTIONAL)
    tensor.field.add(name="shape", number=2, type=kinds.TYPE_INT64, label=kinds.LABEL_REPEATED)
    message = file.message_type.add(name="Tensors")
    message.field.add(
        name="tensors",
        number=1,
        type=kinds.TYPE_MESSAGE,
        type_name=".bench.Tensor",
        label=kinds.LABEL_REPEATED,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Tensors"))


class Peer:
    """A service of grpc.aio that calls onnxruntime in its loop."""

    def __init__(self, folder: Path, name: str, batching: bool) -> None:
        self.session = session(folder, name)
        self.inputs = [i.name for i in self.session.get_inputs()]
        self.kind = messages()
        self.batching = batching
        self.waiting: list = []
        self.wake = asyncio.Event()

    async def predict(self, request, context):
        import numpy as np

        arrays = [np.frombuffer(t.data, np.float32).reshape(t.shape) for t in request.tensors]
        if self.batching:
            future = asyncio.get_running_loop().create_future()
            self.waiting.append((arrays, future))
            self.wake.set()
            result = await future
        else:
            result = self.session.run(None, dict(zip(self.inputs, arrays)))[0]
        reply = self.kind()
        reply.tensors.add(data=result.tobytes(), shape=result.shape)
        return reply

    async def batches(self) -> None:
        import numpy as np

        while True:
            await self.wake.wait()
            self.wake.clear()
            await asyncio.sleep(0)  # requests that came together wait together
            while self.waiting:
                part, self.waiting = self.waiting[:LARGEST_BATCH], self.waiting[LARGEST_BATCH:]
                columns = zip(*[arrays for arrays, _ in part])
                feed = {name: np.concatenate(column) for name, column in zip(self.inputs, columns)}
                results = self.session.run(None, feed)[0]
                for i, (_, future) in enumerate(part):
                    if not future.done():
                        future.set_result(results[i : i + 1])


async def grpc_aio(folder: Path, port: int, batching: bool) -> None:
    import grpc

    server = grpc.aio.server()
    tasks = []
    for name in ("lenet", "add"):
        peer = Peer(folder, name, batching)
        handler = grpc.unary_unary_rpc_method_handler(
            peer.predict,
            request_deserializer=peer.kind.FromString,
            response_serializer=peer.kind.SerializeToString,
        )
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(f"bench.{name}", {"Predict": handler}),)
        )
        tasks.append(asyncio.create_task(peer.batches()))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


def onnxruntime_library() -> Path | None:
    """The library that the wheel brings; None in older ones, which have it inside of the Python module."""
    import onnxruntime

    found = sorted(Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so*"))
    return found[0] if found else None


def build_native(folder: Path) -> None:
    """serving_peer.cc compiled into FOLDER/native. MYCELIA_BENCH_ORT_INCLUDE is the folder of
    onnxruntime_c_api.h, which the wheel does not have. Exits with what is missing."""
    include = Path(os.environ.get("MYCELIA_BENCH_ORT_INCLUDE", "/usr/include"))
    programs = ("g++", "protoc", "grpc_cpp_plugin", "pkg-config")
    missing = [name for name in programs if shutil.which(name) is None]
    if not (include / "onnxruntime_c_api.h").exists():
        missing.append(f"onnxruntime_c_api.h in {include} (MYCELIA_BENCH_ORT_INCLUDE)")
    if onnxruntime_library() is None:
        missing.append("libonnxruntime in the wheel of onnxruntime")
    if missing:
        sys.exit(f"no server in C++, missing: {', '.join(missing)}")
    place = folder / "native"
    place.mkdir()
    plugin = f"--plugin=protoc-gen-grpc={shutil.which('grpc_cpp_plugin')}"
    made = [f"--cpp_out={place}", f"--grpc_out={place}", plugin]
    subprocess.run(["protoc", f"-I{HERE}", *made, HERE / "serving_peer.proto"], check=True)
    asked = ["pkg-config", "--cflags", "--libs", "grpc++", "protobuf"]
    flags = subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    sources = [HERE / "serving_peer.cc", *place.glob("*.pb.cc")]
    command = ["g++", "-O2", "-std=c++17", f"-I{place}", f"-I{include}", *sources, *flags, "-ldl"]
    subprocess.run([*command, "-o", place / "serving_peer"], check=True)


def native(folder: Path, port: int, batch: int) -> None:
    """Become the server in C++."""
    binary = str(folder / "native" / "serving_peer")
    os.execv(binary, [binary, str(onnxruntime_library()), str(folder), str(port), str(batch)])


LITSERVE = """
import litserve, numpy as np
from serving_servers import session
from pathlib import Path

class Api(litserve.LitAPI):
    def setup(self, device):
        self.session = session(Path({folder!r}), {name!r})
        self.names = [i.name for i in self.session.get_inputs()]
    def decode_request(self, request):
        return {{n: np.asarray(request[n], np.float32)[None] for n in self.names}}
    def predict(self, x):
        return self.session.run(None, x)[0][0]
    def encode_response(self, output):
        return {{"y": output.tolist()}}

if __name__ == "__main__":
    server = litserve.LitServer(Api(), accelerator="cpu", workers_per_device=1)
    server.run(host="127.0.0.1", port={port}, generate_client_file=False, log_level="error")
"""
BENTOML = """
import bentoml, numpy as np
from serving_servers import session
from pathlib import Path

@bentoml.service(workers=1, traffic={{"timeout": 60}})
class Service:
    def __init__(self):
        self.session = session(Path({folder!r}), {name!r})
    @bentoml.api(route="/predict")
    def predict(self, {arguments}) -> list:
        values = {{{feed}}}
        feed = {{n: np.asarray(v, np.float32)[None] for n, v in values.items()}}
        return self.session.run(None, feed)[0][0].tolist()
"""


def http_peer(kind: str, folder: Path, port: int, name: str) -> None:
    """LitServe and BentoML start a file."""
    place = folder / kind / name
    place.mkdir(parents=True, exist_ok=True)
    inputs = ["x"] if name == "lenet" else ["x1", "x2"]
    text = (LITSERVE if kind == "litserve" else BENTOML).format(
        folder=str(folder),
        name=name,
        port=port,
        arguments=", ".join(f"{n}: list" for n in inputs),
        feed=", ".join(f'"{n}": {n}' for n in inputs),
    )
    (place / "service.py").write_text(text)
    environment = dict(os.environ, PYTHONPATH=str(HERE), BENTOML_DO_NOT_TRACK="True", BENTOML_HOME=str(place))
    command = [sys.executable, "service.py"]
    if kind == "bentoml":
        command = [sys.executable, "-m", "bentoml", "serve", "service:Service", "--host", "127.0.0.1"]
        command += ["--port", str(port)]
    process = subprocess.Popen(command, cwd=place, env=environment)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    sys.exit(process.wait())


if __name__ == "__main__":
    kind, folder, port = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if kind == "onnx":
        onnx_files(folder)
    elif kind == "native-build":
        build_native(folder)
    elif kind in ("mycelia", "workers"):
        {"mycelia": mycelia, "workers": workers}[kind](folder, port)
    elif kind in ("grpc", "batching"):
        asyncio.run(grpc_aio(folder, port, kind == "batching"))
    elif kind in ("native", "native-batching"):
        native(folder, port, LARGEST_BATCH if kind == "native-batching" else 1)
    else:
        http_peer(kind, folder, port, sys.argv[4])
