"""ONNX's node tests through `.ms` files: right, refused (by reason) and wrong, beside onnxruntime.

    python benchmarks/lite_nodes.py [--filter TEXT] [--list] [--out FILE]

needs the package `onnx` in another Python, MYCELIA_BENCH_ONNX, for its test data; onnxruntime is taken from
there, too. Models and data are read by Mycelia itself. Each test is converted and run in a worker process;
one that crashes or hangs is counted so, and the next ones go on in a new worker.

The core set is what is left of the node tests without: bodies of functions (`_expanded`), other domains,
operators that came with opset 26, inputs or outputs that are text, float8, bfloat16, smaller than 8 bits,
sequences or optional, graphs as attributes, image files, and what is random by definition (Bernoulli, Dropout
in training): 1,059 tests of onnx 1.21.0. All others are counted as well.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import select
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

RTOL, ATOL, ROUNDING = (
    1e-3,
    1e-7,
    1e-6,
)  # those of onnx's own runner; of the largest element: sums are rounded
SECONDS = 60  # a test may take
# Tests whose data wraps around where the specification of the operator says that it saturates.
FAULTY = {f"test_qlinearmatmul_{rank}_int8_float{bits}" for rank in ("2D", "3D") for bits in (16, 32)}
_RANDOM = ("test_bernoulli", "test_training_dropout", "test_image_decoder")

PEER = """
import json, os, sys
import numpy as np, onnx, onnxruntime
from onnx import numpy_helper
onnxruntime.set_default_logger_severity(4)
def load(path, kind):
    raw = open(path, "rb").read()
    if kind == "tensor_type":
        return numpy_helper.to_array(onnx.TensorProto.FromString(raw))
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(raw))
    return numpy_helper.to_optional(onnx.OptionalProto.FromString(raw))
def flat(values):
    for v in values:
        if isinstance(v, list): yield from flat(v)
        else: yield v
for line in sys.stdin:
    folder = line.strip()
    try:
        model = onnx.load(folder + "/model.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = folder + "/model.onnx"
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        def read(values, which):
            data = folder + f"/test_data_set_0/{which}_"
            return [load(f"{data}{i}.pb", v.type.WhichOneof("value")) for i, v in enumerate(values)]
        feed = dict(zip([v.name for v in model.graph.input], read(model.graph.input, "input")))
        names = {i.name for i in session.get_inputs()}
        found = session.run(None, {k: v for k, v in feed.items() if k in names})
        wanted = read(model.graph.output, "output")
        status = "right"
        for a, b in zip(flat(found), flat(wanted)):
            a, b = np.asarray(a), np.asarray(b)
            if a.shape != b.shape or a.dtype != b.dtype: status = "wrong"
            elif b.dtype.kind in "OUS":
                if a.tolist() != b.tolist(): status = "wrong"
            else:
                a, b = (v.astype(np.float64) for v in (a, b))
                atol = max(1e-7, 1e-6 * np.abs(b[np.isfinite(b)]).max(initial=0))
                if not np.allclose(a, b, rtol=1e-3, atol=atol, equal_nan=True): status = "wrong"
        print(json.dumps([status, ""]), flush=True)
    except Exception as error:
        print(json.dumps(["refused", str(error)[:200]]), flush=True)
"""


# ---- the worker: one folder a line comes in, one [status, reason] a line goes out -------------------------


def _read(path: str):
    """A tensor of the test data."""
    from mycelia.io.onnx import onnx_pb2
    from mycelia_lite.converter.importers.onnx.file import tensor_of

    with open(path, "rb") as file:
        return tensor_of(onnx_pb2.TensorProto.FromString(file.read()), ".").asnumpy()


def _tested(folder: str, path: str) -> tuple[str, str]:
    import mycelia_lite as mslite
    from mycelia.io.onnx import onnx_pb2
    from mycelia_lite.converter import ConversionError

    with open(f"{folder}/model.onnx", "rb") as file:
        graph = onnx_pb2.ModelProto.FromString(file.read()).graph
    try:
        mslite.Converter().convert(mslite.FmkType.ONNX, f"{folder}/model.onnx", path)
    except ConversionError as error:
        return "refused", str(error)
    except Exception as error:  # anything else is a fault of the converter
        return "wrong", f"{type(error).__name__} in the converter: {error}"
    data = f"{folder}/test_data_set_0"
    given = [_read(f"{data}/input_{i}.pb") for i in range(len(graph.input))]
    wanted = [_read(f"{data}/output_{i}.pb") for i in range(len(graph.output))]
    model = mslite.Model()
    try:
        model.build_from_file(path + ".ms")
        by_name = {v.name: a for v, a in zip(graph.input, given)}
        inputs = model.get_inputs()
        arrays = [by_name[t.name] for t in inputs]
        if any(list(t.shape) != list(a.shape) for t, a in zip(inputs, arrays)):
            model.resize(inputs, [list(a.shape) for a in arrays])
            inputs = model.get_inputs()
        for tensor, array in zip(inputs, arrays):
            tensor.set_data_from_numpy(np.ascontiguousarray(array))
        found = [t.get_data_to_numpy() for t in model.predict(inputs)]
    except Exception as error:  # whatever the runtime raises
        return "unrun", f"{type(error).__name__}: {error}"
    random = os.path.basename(folder) in ("test_bernoulli", "test_bernoulli_double", "test_bernoulli_seed")
    for i, (a, b) in enumerate(zip(found, wanted)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return "wrong", f"output {i} is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
        a, b = (v.astype(np.float64) if v.dtype.kind in "fV" else v for v in (a, b))
        atol = max(ATOL, ROUNDING * np.abs(b[np.isfinite(b)]).max(initial=0))
        if not random and not np.allclose(a, b, rtol=RTOL, atol=atol, equal_nan=True):
            return "wrong", f"output {i} differs: {a.ravel()[:4]} instead of {b.ravel()[:4]}"
    return "right", ""


def work() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            try:
                result = _tested(line.strip(), f"{folder}/m")
            except Exception as error:  # data that is not read: types that Lite does not have
                result = ("unrun", f"the test's data: {error}")
            print(json.dumps(result), file=answers, flush=True)


# ---- the parent --------------------------------------------------------------------------------------------


class Workers:
    """A process that answers line by line; a new one takes over where it dies or hangs."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.process: subprocess.Popen | None = None

    def ask(self, line: str) -> tuple[str, str]:
        if self.process is None:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], SECONDS)
        answer = self.process.stdout.readline() if ready else ""
        if answer:
            return tuple(json.loads(answer))
        self.close()
        return "crash", "it died" if ready else f"no answer within {SECONDS} s"

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def node_tests(python: str) -> Path:
    """The folder of the node tests of the package `onnx`."""
    code = "import onnx.backend.test, os; print(os.path.dirname(onnx.backend.test.__file__))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()) / "data" / "node"


def is_core(folder: Path) -> bool:
    """Whether a test is of the core set."""
    from mycelia.io.onnx import onnx_pb2
    from mycelia_lite.converter.importers.onnx.file import DTYPES

    if folder.name.endswith("_expanded") or "_expanded_" in folder.name or folder.name.startswith(_RANDOM):
        return False
    model = onnx_pb2.ModelProto.FromString((folder / "model.onnx").read_bytes())
    if any(o.domain in ("", "ai.onnx") and o.version >= 26 for o in model.opset_import):
        return False
    if any(
        n.domain not in ("", "ai.onnx") or any(a.type == 5 for a in n.attribute) for n in model.graph.node
    ):
        return False
    types = [v.type for v in (*model.graph.input, *model.graph.output)]
    return all(
        t.WhichOneof("value") == "tensor_type"
        and t.tensor_type.elem_type in {*DTYPES, 14, 15}
        and t.tensor_type.elem_type != 16
        for t in types
    )


def table(title: str, results: dict[str, tuple[str, str]]) -> None:
    counts = collections.Counter(status for status, _ in results.values())
    print(
        f"{title}: {len(results)} tests: " + ", ".join(f"{n} {status}" for status, n in counts.most_common())
    )


def reason(text: str) -> str:
    """A reason without the names of nodes and numbers."""
    text = re.sub(r"^.*?\.onnx: ", "", text)
    text = re.sub(r"node '[^']*'|\(node '[^']*'\)| at \S+ node \d+:? ?'?[^:]*", "", text)
    return re.sub(r"\d+", "N", text)[:110]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--filter", default="", help="only tests whose name has this")
    parser.add_argument("--list", action="store_true", help="print every test that is not right")
    parser.add_argument("--no-peer", action="store_true", help="without onnxruntime")
    parser.add_argument("--core", action="store_true", help="the core set alone")
    parser.add_argument("--out", help="a JSON file for all results")
    arguments = parser.parse_args()
    python = os.environ.get("MYCELIA_BENCH_ONNX", sys.executable)
    folders = sorted(f for f in node_tests(python).iterdir() if arguments.filter in f.name)
    core = {f.name for f in folders if is_core(f)}
    if arguments.core:
        folders = [f for f in folders if f.name in core]
    ours, peer = Workers([sys.executable, __file__, "--worker"]), Workers([python, "-c", PEER])
    results, others = {}, {}
    for folder in folders:
        results[folder.name] = ours.ask(str(folder))
        if not arguments.no_peer:
            others[folder.name] = peer.ask(str(folder))
    ours.close(), peer.close()
    for name in FAULTY:
        for found in (results, others):
            if found.get(name, ("",))[0] == "wrong":
                found[name] = ("faulty data", found[name][1])
    for name, (status, why) in results.items():
        if status == "wrong" and name.startswith(_RANDOM) and " differs: " in why:
            results[name] = ("drawn", why)  # numbers by chance, of the right shape
    if arguments.out:
        Path(arguments.out).write_text(json.dumps({"core": sorted(core), "lite": results, "peer": others}))
    if arguments.list:
        for name, (status, why) in results.items():
            if status != "right":
                print(f"{status:8} {name}: {why[:300]}")
    reasons = collections.Counter(reason(why) for status, why in results.values() if status == "refused")
    for why, count in reasons.most_common():
        print(f"{count:5}  {why}")
    for title, chosen in (("core set", core), ("all", {f.name for f in folders})):
        table(f"{title}, Lite", {n: r for n, r in results.items() if n in chosen})
        if others:
            table(f"{title}, onnxruntime", {n: r for n, r in others.items() if n in chosen})


if __name__ == "__main__":
    work() if sys.argv[1:] == ["--worker"] else main()
