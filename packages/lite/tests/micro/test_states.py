"""Variables in C: a stream through a window of rows that the model keeps."""

from __future__ import annotations

import ctypes
import re
import subprocess

import numpy as np
import pytest

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


class Stream:
    """A file of layers, each of which sees the last rows of what comes: images [1, rows, 1, channels]."""

    def __init__(self) -> None:
        self.tensors, self.nodes, self.chance = [], [], np.random.default_rng(4)

    def tensor(self, shape, data=None) -> int:
        made = Table(
            "Tensor", name=f"t{len(self.tensors)}", dataType="FLOAT32", dims=list(shape), format="NHWC"
        )
        if data is not None:
            array = np.asarray(data)
            made.dataType = "INT32" if array.dtype.kind == "i" else "FLOAT32"
            made.data = array.astype(np.int32 if array.dtype.kind == "i" else np.float32).tobytes()
        self.tensors.append(made)
        return len(self.tensors) - 1

    def node(self, primitive, inputs, outputs) -> None:
        made = Table("CNode", name=f"n{len(self.nodes)}", primitive=primitive)
        made.inputIndex, made.outputIndex = inputs, outputs
        self.nodes.append(made)

    def part(self, x, begin, shape) -> int:
        y = self.tensor(shape)
        numbers = [self.tensor([4], n) for n in (begin, list(shape))]
        self.node(Table("SliceFusion", axes=[0, 1, 2, 3]), [x, *numbers], [y])
        return y

    def window(self, x, kept, channels) -> int:
        """The rows before x and x."""
        first = self.chance.standard_normal((kept, channels)).astype(np.float32)
        now, whole = self.tensor((1, kept, 1, channels)), self.tensor((1, kept + 1, 1, channels))
        state = Table("Custom", type="State", attr=[Table("Attribute", name="first", data=first.tobytes())])
        self.node(state, [], [now])
        self.node(Table("Concat", axis=1), [now, x], [whole])
        self.node(
            Table("Custom", type="SetState"),
            [self.part(whole, [0, 1, 0, 0], (1, kept, 1, channels)), now],
            [],
        )
        return whole

    def conv(self, x, rows, channels, outputs, group=1) -> int:
        weights = self.chance.standard_normal((outputs, rows, 1, channels // group)) / (
            rows * channels // group
        )
        y = self.tensor((1, 1, 1, outputs))
        primitive = Table("Conv2DFusion", kernel_size=[rows, 1], stride=[1, 1], pad_mode="VALID", group=group)
        self.node(primitive, [x, self.tensor(weights.shape, weights)], [y])
        return y

    def write(self, path, x, y) -> str:
        write(
            path,
            Table("MetaGraph", nodes=self.nodes, allTensors=self.tensors, inputIndex=[x], outputIndex=[y]),
        )
        return str(path)


def layers(path, kept) -> str:
    stream, channels = Stream(), 16
    x = y = stream.tensor((1, 1, 1, channels))
    for k, rows in enumerate(kept):
        whole = stream.window(y, rows, channels)
        if k % 2:  # half of the channels see fewer rows
            half = channels // 2
            few = stream.part(whole, [0, rows - 2, 0, 0], (1, 3, 1, half))
            all_ = stream.part(whole, [0, 0, 0, half], (1, rows + 1, 1, half))
            parts = [stream.conv(few, 3, half, half, half), stream.conv(all_, rows + 1, half, half, half)]
            joined = stream.tensor((1, 1, 1, channels))
            stream.node(Table("Concat", axis=3), parts, [joined])
        else:
            joined = stream.conv(whole, rows + 1, channels, channels, channels)
        y = stream.conv(joined, 1, channels, channels)
    return stream.write(path, x, y)


@pytest.mark.parametrize("kept", [[4, 8, 6, 12], [5], [3, 7, 9]], ids=len)
def test_layers_of_a_stream_keep_their_windows_in_place(tmp_path, kept):
    path = layers(tmp_path / "stream.ms", kept)
    (report,) = generate(path, tmp_path / "c")
    row = 4 * 16
    assert report.arena_bytes <= 1.05 * (sum(kept) + 2) * row
    text = (tmp_path / "c/src/model0/net0.c").read_text()
    assert text.count("micro_copy(&") <= len(kept)  # a move for each window, no parts are copied
    follow(path, tmp_path, (1, 1, 1, 16))


def follow(path, folder, shape) -> None:
    """Fails unless the C code of a stream answers as the runtime does, run after run."""
    library = folder / "stream.so"
    sources = [str(p) for p in (folder / "c/src").rglob("*.c")]
    flags = ["-std=c99", "-shared", "-fPIC", f"-I{folder}/c/include", f"-I{folder}/c/src"]
    subprocess.run(["gcc", *flags, *sources, "-lm", "-o", str(library)], check=True, timeout=300)
    text = (folder / "c/src/model0/net0.h").read_text()
    places = {name: int(n) for name, n in re.findall(r"#define STREAM_(\w+) (\d+)", text)}
    arena = (ctypes.c_uint64 * -(-places["ARENA_BYTES"] // 8))()
    memory = np.frombuffer(arena, np.uint8)
    loaded = ctypes.CDLL(str(library))
    model = mslite.Model()
    model.build_from_file(path)
    loaded.stream_begin(arena)
    chance = np.random.default_rng(2)
    for _ in range(20):
        x = chance.standard_normal(shape).astype(np.float32)
        model.get_inputs()[0].set_data_from_numpy(x)
        expected = model.predict(model.get_inputs())[0].get_data_to_numpy().ravel()
        memory[places["INPUT_0"] :][: x.nbytes].view(np.float32)[:] = x.ravel()
        assert loaded.stream_run(arena) == 0
        found = memory[places["OUTPUT_0"] :][: expected.nbytes].view(np.float32)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_stream_has_the_runtimes_answers_and_its_window_lies_once_in_memory(tmp_path):
    path = streaming(tmp_path / "stream.ms")
    (report,) = generate(path, tmp_path / "c")
    assert report.arena_bytes <= 4 * WIDTH * (ROWS + 2 + 2 + 2)  # the window once, not beside its copy
    follow(path, tmp_path, (1, 2, WIDTH))
