"""The Lite runtime: latency, loading, memory, conversion, threads and size, beside the runtimes of others.

Peers as in inference.py; MYCELIA_BENCH_MSLITE is a Python 3.7 with mindspore-lite 2.0.0.
"""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import inference
import peers
import scaling
from inference import FILES, SIDES, reference, source_of
from lite_models import MODELS
from models_data import INFERENCE_GFLOP
from peers import Case, Table

OTHERS = tuple(name for name in SIDES if name != "mycelia")
LATENCY = {  # bars to the best of the others, and to core
    "LeNet": (0.7, 1.03),
    "SqueezeNet 224": (0.9,),
    "MobileNetV2 224": (0.9, 1.03),
    "ResNet-50 224": (0.9, 1.03),
    "BERT-base t128": (0.9, 1.03),
    **dict.fromkeys(MODELS, (0.9,)),
}
FAST = ", accuracy=fast"  # of a case: products of ours may round worse
LATENCY |= {f"BERT-base t128{FAST}": (0.9, 1.03)}
SHIPPED = "libmycelia_lite.so"


def convert(case, packed=""):
    """Writes a network as Lite has it, or `packed`; one that cannot be converted is told of and left out."""
    import mycelia_lite as mslite

    source, path = source_of(case), FILES / f"{case}{packed}.ms"
    path.unlink(missing_ok=True)
    converter = mslite.Converter()
    converter.pack_weights = bool(packed)
    if case in MODELS:
        *_, name, shape = MODELS[case]
        converter.input_shape = {name: list(shape)}
    kind = mslite.FmkType.ONNX if source.suffix == ".onnx" else mslite.FmkType.TFLITE
    try:
        converter.convert(kind, str(source), str(path))
    except (RuntimeError, NotImplementedError) as error:
        print(f"{case}: {error}", file=sys.stderr)


def loaded(path, x, threads, accuracy="normal"):
    """(model, input tensors) that are ready to run"""
    import mycelia_lite as mslite

    context = mslite.Context()
    context.cpu.thread_num = threads
    model = mslite.Model()
    model.update_config("common", {"accuracy": accuracy})
    model.build_from_file(str(path), mslite.ModelType.MINDIR_LITE, context)
    inputs = model.get_inputs()
    if list(inputs[0].shape) != list(x.shape):
        model.resize(inputs, [list(x.shape)])
        inputs = model.get_inputs()
    inputs[0].set_data_from_numpy(x)
    return model, inputs


def run_lite(threads, packed=""):
    from mycelia_lite import runtime

    runtime.library()  # like the others', it is there before what is measured begins

    def make(case):
        accuracy = "fast" if case.endswith(FAST) else "normal"
        case = case.removesuffix(FAST)
        if not (FILES / f"{case}{packed}.ms").exists():
            return None
        model, inputs = loaded(FILES / f"{case}{packed}.ms", reference(case)[0], threads, accuracy)
        return inference.checked(
            case, lambda: model.predict(inputs), lambda outputs: outputs[0].get_data_to_numpy()
        )

    return make


def run_core(threads):
    normal, fast = (inference.run_mycelia(threads, accuracy=each) for each in ("normal", "fast"))

    def make(case):
        network = case.removesuffix(FAST)
        return (fast if case.endswith(FAST) else normal)(network) if network in INFERENCE_GFLOP else None

    return make


def of_network(make_side):
    """A side whose cases are networks, whatever the accuracy of ours."""

    def side(threads):
        make = make_side(threads)
        return lambda case: make(case.removesuffix(FAST))

    return side


def first(make_side):
    """A side whose call is loading and one answer, which is checked."""

    def side(threads):
        make = make_side(threads)

        def ready(case):
            inference.reference(case)  # reading it is not measured
            return partial(make, case)

        return ready

    return side


def plain(case) -> Path:
    """The network without `dilations` of 1 at its pools, which MindSpore Lite's converter refuses."""
    from mycelia.io.onnx import onnx_pb2

    path = FILES / f"{case}.plain.onnx"
    if not path.exists():
        model = onnx_pb2.ModelProto.FromString((FILES / f"{case}.onnx").read_bytes())
        for node in model.graph.node:
            for i, attribute in enumerate(node.attribute):
                if node.op_type == "MaxPool" and attribute.name == "dilations" and set(attribute.ints) == {1}:
                    del node.attribute[i]
        path.write_bytes(model.SerializeToString())
    return path


def process(command):
    """A call that runs a process; Python's files are compiled before, as they are where pip installs them."""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(FILES / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    call = partial(subprocess.run, command, check=True, stdout=2, env=environment)
    call()
    return call


def convert_here(threads):
    def make(case):
        program = Path(sys.executable).with_name("mycelia-lite")
        options = f"--modelFile={plain(case)}", f"--outputFile={FILES / 'out'}"
        return process([program, "convert", "--fmk=ONNX", *options])

    return make


MSLITE = """
import sys, mindspore_lite as m
m.Converter().convert(m.FmkType.ONNX, sys.argv[1], sys.argv[2])
"""


def convert_there(threads):
    python = os.environ.get("MYCELIA_BENCH_MSLITE")

    def make(case):
        return python and process([python, "-c", MSLITE, plain(case), FILES / "converted_by_mindspore"])

    return make


RUNTIMES = {name: of_network(side) for name, side in SIDES.items()} | {"mycelia": run_lite}
PACKED = " packed"
RIVALS = ("ORT", "LiteRT", "MNN")
SHORT = {  # of what loading costs: with weights as the kernels read them, and as they are written by default
    "mycelia": partial(run_lite, packed=PACKED),
    "not packed": run_lite,
    **{name: SIDES[name] for name in RIVALS},
}
_SHORT_NOTE = " Mycelia's file is converted with --packWeights=on; 'not packed' is the one without it."
TABLES = [
    Table(
        "Lite, latency of one input",
        "CPU time of one call on one core, median, the native file of each runtime, checked against the "
        "reference; 'core' is Mycelia's own compiled graph of the same network. With accuracy=fast ours has "
        "Strassen's products.",
        [Case(name, "ms", bars) for name, bars in LATENCY.items()],
        {**RUNTIMES, "core": run_core},
        groups={"to the best": OTHERS, "to core": ("core",)},
        rounds=5,
    ),
    Table(
        "Lite, from the file to the first answer",
        "CPU time of loading and one call in a fresh process, the runtime imported before, files in the page "
        "cache." + _SHORT_NOTE,
        [Case("ResNet-50 224", "ms", (0.5,)), Case("MobileNetV2 224", "ms", (0.5,))],
        {name: first(side) for name, side in SHORT.items()},
        do="first",
        groups={"to the best": RIVALS},
        rounds=5,
    ),
    Table(
        "Lite, peak memory",
        "Resident memory of a fresh Python process at its highest, after loading and four calls."
        + _SHORT_NOTE,
        [Case("ResNet-50 224", "MB", (0.8,)), Case("MobileNetV2 224", "MB", (0.8,))],
        SHORT,
        do="memory",
        groups={"to the best": RIVALS},
    ),
    Table(
        "Lite, conversion",
        "CPU time of the converter's process from an ONNX file, its start included.",
        [Case("ResNet-50 224", "s", (0.5,)), Case("BERT-base t128", "s", (0.5,))],
        {"mycelia": convert_here, "MindSpore Lite": convert_there},
        do="first",
    ),
]  # fmt: skip


def threads() -> None:
    """Two threads, and beside two busy processes, against LiteRT."""
    scaling.report_of({
        "ResNet-50 224": (sys.modules[__name__], "ResNet-50 224", ("mycelia", "LiteRT")),
        "MobileNetV2 224": (sys.modules[__name__], "MobileNetV2 224", ("mycelia", "LiteRT")),
    }, "Lite, threads")  # fmt: skip


PROGRAM = """
#include "mycelia/lite/model.h"
int main(int, char** argv) {
  mycelia::Model model;
  std::vector<mycelia::MSTensor> outputs;
  return model.Build(argv[1]) && model.Predict(model.GetInputs(), &outputs) ? 0 : 1;
}
"""


def size() -> None:
    """Bytes of the runtime as it is shipped, and in a program for one network; without symbols."""
    from mycelia_lite import runtime
    from mycelia_lite.crop import crop

    stripped = FILES / SHIPPED
    subprocess.run(["strip", "-o", stripped, runtime.folder() / SHIPPED], check=True)
    rows = [["shared library, all operators", f"{stripped.stat().st_size:,}", "< 3,000,000"]]
    model, source, program = FILES / "MobileNetV2 224.ms", FILES / "program.cc", FILES / "program"
    source.write_text(PROGRAM)
    there = crop([str(model)], str(FILES / "libcropped.a")).instruction_sets
    alone = [one for one in there if one != "avx512"]  # which has no kernel where AVX2's is as good
    for sets in (there, *([one] for one in alone)):
        made = crop([str(model)], str(FILES / "libcropped.a"), instruction_sets=sets)
        link = "-Wl,--gc-sections,-z,noseparate-code"  # code and constants share pages
        options = ["-std=c++17", "-Os", f"-I{runtime.folder() / 'include'}", link, "-s"]
        subprocess.run(["c++", *options, source, made.path, "-pthread", "-o", program], check=True)
        subprocess.run([program, model], check=True)
        what = f"program cropped to MobileNetV2, without weights: {', '.join(made.instruction_sets)}"
        rows.append([what, f"{program.stat().st_size:,}", "< 300,000"])
    note = (
        "Files without symbols, beside the C and C++ libraries; the program is run once. LiteRT has 18 MB, "
        "onnxruntime 29 MB, ncnn less than 0.3 MB."
    )
    peers.report("Lite, size", rows, note, ["what", "bytes", "bar"], "--no-write" not in sys.argv)


def prepare() -> None:
    inference.prepare()
    there = all((FILES / f"{name}.npz").exists() for name in MODELS)
    if not there and (python := os.environ.get("MYCELIA_BENCH_INFERENCE")):
        subprocess.run([python, Path(__file__).with_name("lite_models.py"), FILES], check=True)
    for case in LATENCY:
        if (FILES / f"{case}.npz").exists():
            convert(case)
    for case in ("ResNet-50 224", "MobileNetV2 224"):
        if (FILES / f"{case}.npz").exists():
            convert(case, PACKED)


if __name__ == "__main__":
    if "--side" not in sys.argv:
        prepare()
    peers.main(__file__, TABLES)
    if "--side" not in sys.argv:
        for part in (threads, size):
            if peers.option("--table") in f"Lite, {part.__name__}":
                part()
