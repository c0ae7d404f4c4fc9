"""Variables in C: a stream through a window of rows that the model keeps."""

from __future__ import annotations

import ctypes
import re
import subprocess

import numpy as np

import mycelia_lite as mslite
from mycelia_lite.format import Table, write
from mycelia_lite.micro import generate

ROWS, WIDTH = 24, 8


def streaming(path) -> str:
    """x [1, 2, 8]: the sums of the last 26 rows; 24 of them are kept, and the next run's lie 2 further."""

    def tensor(name, *dims, data=None):
        made = Table("Tensor", name=name, dataType="FLOAT32", dims=list(dims), format="NCHW")
        if data is not None:
            made.dataType, made.data = "INT32", np.asarray(data, np.int32).tobytes()
        return made

    first = np.arange(ROWS * WIDTH, dtype=np.float32)
    tensors = [
        tensor("x", 1, 2, WIDTH), tensor("kept", 1, ROWS, WIDTH), tensor("all", 1, ROWS + 2, WIDTH),
        tensor("next", 1, ROWS, WIDTH), tensor("y", 1, WIDTH), tensor("begin", 3, data=[0, 2, 0]),
        tensor("size", 3, data=[1, ROWS, WIDTH]), tensor("axes", 1, data=[1]),
    ]  # fmt: skip
    state = Table("Custom", type="State", attr=[Table("Attribute", name="first", data=first.tobytes())])
    nodes = []
    for name, primitive, given, made in (
        ("state", state, [], [1]),
        ("concat", Table("Concat", axis=1), [1, 0], [2]),
        ("slice", Table("SliceFusion", axes=[0, 1, 2]), [2, 5, 6], [3]),
        ("sum", Table("ReduceFusion", mode="ReduceSum", coeff=1.0), [2, 7], [4]),
        ("set", Table("Custom", type="SetState"), [3, 1], []),
    ):
        node = Table("CNode", name=name, primitive=primitive)
        node.inputIndex, node.outputIndex = given, made
        nodes.append(node)
    write(path, Table("MetaGraph", nodes=nodes, allTensors=tensors, inputIndex=[0], outputIndex=[4]))
    return str(path)


def test_a_stream_has_the_runtimes_answers_and_its_window_lies_once_in_memory(tmp_path):
    path = streaming(tmp_path / "stream.ms")
    (report,) = generate(path, tmp_path / "c")
    assert report.arena_bytes <= 4 * WIDTH * (ROWS + 2 + 2 + 2)  # the window once, not beside its copy
    library = tmp_path / "stream.so"
    sources = [str(p) for p in (tmp_path / "c/src").rglob("*.c")]
    flags = ["-std=c99", "-shared", "-fPIC", f"-I{tmp_path}/c/include", f"-I{tmp_path}/c/src"]
    subprocess.run(["gcc", *flags, *sources, "-lm", "-o", str(library)], check=True, timeout=300)
    text = (tmp_path / "c/src/model0/net0.h").read_text()
    places = {name: int(n) for name, n in re.findall(r"#define STREAM_(\w+) (\d+)", text)}
    arena = (ctypes.c_uint64 * -(-places["ARENA_BYTES"] // 8))()
    memory = np.frombuffer(arena, np.uint8)
    loaded = ctypes.CDLL(str(library))
    model = mslite.Model()
    model.build_from_file(path)
    loaded.stream_begin(arena)
    chance = np.random.default_rng(2)
    for _ in range(20):
        x = chance.standard_normal((1, 2, WIDTH)).astype(np.float32)
        model.get_inputs()[0].set_data_from_numpy(x)
        expected = model.predict(model.get_inputs())[0].get_data_to_numpy().ravel()
        memory[places["INPUT_0"] :][: x.nbytes].view(np.float32)[:] = x.ravel()
        loaded.stream_run(arena)
        found = memory[places["OUTPUT_0"] :][: 4 * WIDTH].view(np.float32)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
