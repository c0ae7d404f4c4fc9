"""Latency of one input, the same weights everywhere: exported from torch by models_torch.py."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import peers
from models_data import EXPORTED, INFERENCE_GFLOP
from peers import FILES, Case, Table

BARS = (0.7, 0.87, 0.9, 1.0)


@functools.cache
def reference(case):
    """(input, result in torch)"""
    arrays = np.load(FILES / f"{case}.npz")
    return arrays["x"], arrays["y"]


def checked(case, run, fetch=lambda result: result):
    """`run`, after its result has been compared with torch's: fast and wrong does not count."""
    expected = reference(case)[1]
    result = np.asarray(fetch(run())).reshape(expected.shape)
    error = np.abs(result - expected).max() / np.abs(expected).max()
    if not error < 1e-3:
        raise ValueError(f"{case}: the result differs from torch's by {error:.2g} of the largest")
    return run


def source_of(case):
    """The file of the network as its makers gave it."""
    given = [FILES / f"{case}.onnx", FILES / f"{case}.tflite"]
    return next(path for path in given if path.exists())


def run_mycelia(threads, **options):
    """`options`: of jit"""
    import models

    models.ms.set_context(runtime_num_threads=threads)

    def make(case):
        weights = np.load(FILES / f"{case}.weights.npz")
        net = models.with_weights(models.INFERENCE[case](), weights).set_train(False)
        x = reference(case)[0]
        x = models.ms.Tensor(x.astype(np.int32) if x.dtype == np.int64 else x)
        run = models.ms.jit(net, **options)
        return checked(case, lambda: run(x), lambda y: y.asnumpy())

    return make


def run_ort(threads):
    import onnxruntime

    def make(case):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        path, providers = source_of(case), ["CPUExecutionProvider"]
        if path.suffix != ".onnx":
            return None
        session = onnxruntime.InferenceSession(path, options, providers=providers)
        feed = {session.get_inputs()[0].name: reference(case)[0]}
        return checked(case, lambda: session.run(None, feed)[0])

    return make


def run_openvino(threads):
    import openvino

    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": False,
    }  # fmt: skip

    def make(case):
        x, model = reference(case)[0], core.read_model(source_of(case))
        if model.is_dynamic():
            model.reshape(x.shape)
        request = core.compile_model(model, "CPU", settings).create_infer_request()
        return checked(case, lambda: request.infer([x]), lambda _: request.get_output_tensor(0).data)

    return make


def converted(case, name, command):
    """The file `name`, made by a converter that lies beside the python if it is not there yet."""
    path = FILES / name
    if not path.exists():
        program, *arguments = command
        subprocess.run([Path(sys.executable).parent / program, *arguments], check=True, cwd=FILES, stdout=2)
    return path


def run_mnn(threads):
    import MNN

    def make(case):
        name, file = f"{case}.mnn", source_of(case)
        command = [
            "mnnconvert", "-f", file.suffix[1:].upper(), "--modelFile", file.name, "--MNNModel", name,
            "--bizCode", "b",
        ]  # fmt: skip
        net = MNN.Interpreter(str(converted(case, name, command)))
        session = net.createSession({"backend": "CPU", "numThread": threads, "precision": "high"})
        x = reference(case)[0]
        kind = MNN.Halide_Type_Int if x.dtype == np.int64 else MNN.Halide_Type_Float
        x = x.astype(np.int32) if x.dtype == np.int64 else x
        source = MNN.Tensor(x.shape, kind, x, MNN.Tensor_DimensionType_Caffe)
        target = net.getSessionInput(session)
        if tuple(target.getShape()) != x.shape:  # sizes that the file leaves open
            net.resizeTensor(target, x.shape)
            net.resizeSession(session)

        def run():
            target.copyFrom(source)
            net.runSession(session)
            return net.getSessionOutput(session)

        def fetch(output):
            shape = output.getShape()
            host = MNN.Tensor(
                shape, MNN.Halide_Type_Float, np.zeros(shape, np.float32), MNN.Tensor_DimensionType_Caffe
            )
            output.copyToHostTensor(host)
            return np.array(host.getNumpyData())

        return checked(case, run, fetch)

    return make


def run_ncnn(threads):
    import ncnn

    def make(case):
        x = reference(case)[0]
        if source_of(case).suffix != ".onnx":
            return None
        shape = str(list(x.shape)).replace(" ", "") + ("i64" if x.dtype == np.int64 else "")
        stem = case.replace("-", "_").replace(" ", "_")  # pnnx writes names of identifiers
        link = FILES / f"{stem}.onnx"
        if not link.exists():
            link.symlink_to(f"{case}.onnx")
        command = ["pnnx", link.name, f"inputshape={shape}", "optlevel=2", "fp16=0"]
        parameters = converted(case, f"{stem}.ncnn.param", command)
        net = ncnn.Net()
        net.opt.num_threads = threads
        net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
        net.opt.use_bf16_storage = False
        net.load_param(str(parameters))
        net.load_model(str(parameters.with_suffix(".bin")))
        x = x[0].astype(np.int32) if x.dtype == np.int64 else x[0]
        source = ncnn.Mat(np.ascontiguousarray(x)).clone()

        def run():
            with net.create_extractor() as extractor:
                extractor.input("in0", source)
                return np.array(extractor.extract("out0")[1])

        return checked(case, run)

    return make


def run_litert(threads):
    from ai_edge_litert.interpreter import Interpreter

    def make(case):
        path = FILES / f"{case}.tflite"
        if not path.exists():  # litert_convert.py makes it, with a python of its own
            return None
        net = Interpreter(str(path), num_threads=threads)
        net.allocate_tensors()
        source, target = net.get_input_details()[0], net.get_output_details()[0]
        x = reference(case)[0]
        x = x.transpose(0, 2, 3, 1) if source_of(case) != path and x.ndim == 4 else x
        x = np.ascontiguousarray(x).astype(source["dtype"])

        def run():
            net.set_tensor(source["index"], x)
            net.invoke()

        return checked(case, run, lambda _: net.get_tensor(target["index"]))

    return make


SIDES = {
    "mycelia": run_mycelia,
    "ORT": run_ort,
    "OpenVINO": run_openvino,
    "MNN": run_mnn,
    "ncnn": run_ncnn,
    "LiteRT": run_litert,
}
TABLES = [
    Table(
        "Inference, batch 1",
        "CPU time of one call on one core, median; with torch's weights, and checked against its result.",
        [Case(name, "ms", (bar,), gflop * 1e9) for (name, gflop), bar in zip(INFERENCE_GFLOP.items(), BARS)],
        SIDES,
        rate="flops",
        rounds=5,
    )
]


def prepare():
    """Writes the files of the models once; without torch there are none, and no inference bench."""
    here = Path(__file__).parent
    made = (
        ("MYCELIA_BENCH_TORCH", "models_torch.py", "npz"),
        ("MYCELIA_BENCH_LITERT", "litert_convert.py", "tflite"),
    )
    for variable, script, ending in made:
        there = all((FILES / f"{name}.{ending}").exists() for name in EXPORTED)
        if not there and (python := os.environ.get(variable)):
            subprocess.run([python, here / script, FILES], check=True)


if __name__ == "__main__":
    if "--side" not in sys.argv:
        prepare()
    peers.main(__file__, TABLES)
