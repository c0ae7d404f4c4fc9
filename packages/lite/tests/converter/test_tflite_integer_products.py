"""Products of TFLITE files on integers of 8 bits give LiteRT's integers, whatever is summed up.

``python -m converter.test_tflite_integer_products FOLDER`` in `packages/lite/tests` writes the models and
their inputs; what LiteRT (ai-edge-litert 2.3, its own kernels without delegates) answers is in the fixture.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter.rules.customs import custom
from mycelia_lite.format import Table, write

from .tflite_models import Builder, answers, check_core, scaled, table

FIXTURE = Path(__file__).parents[1] / "fixtures" / "tflite_integer_products.npz"
ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
IMAGES = ((2, 5, 6, 3), (1, 7, 4, 8), (1, 3, 3, 21), (2, 4, 5, 12))

# Name of a case -> what is special; results of a whole image behind the last full vector are among them.
CONVOLUTIONS = {
    "plain": {}, "steps": dict(stride=(2, 3), padding="VALID"), "holes": dict(dilation=(2, 1)),
    "groups": dict(group=3), "points": dict(kernel=(1, 1)),
    "deep": dict(channels=96, kernel=(3, 3), large=True),
}  # fmt: skip
DEPTHWISE = {
    "plain": {}, "steps": dict(stride=(2, 2), padding="VALID"), "holes": dict(dilation=(2, 2)),
    "several": dict(multiplier=3),
}  # fmt: skip
TRANSPOSED = {"plain": {}, "steps": dict(stride=(2, 3)), "valid": dict(padding="VALID", stride=(3, 2))}
DENSE = {
    "plain": {}, "row": dict(rows=1), "images": dict(rows=(3, 1)), "no bias": dict(bias=False),
    "deep": dict(depth=900, large=True),
}  # fmt: skip
MATRICES = {
    "plain": {}, "turned": dict(adj_x=True, adj_y=True), "weights": dict(constant=True, adj_y=True),
    "deep": dict(depth=700, large=True),
}  # fmt: skip
KINDS = {
    "CONV_2D": CONVOLUTIONS, "DEPTHWISE_CONV_2D": DEPTHWISE, "TRANSPOSE_CONV": TRANSPOSED,
    "FULLY_CONNECTED": DENSE, "BATCH_MATMUL": MATRICES,
}  # fmt: skip
ONE_TYPE = ("BATCH_MATMUL", "CONV_2D/groups")  # those that LiteRT has for int8 alone
CASES = [
    f"{kind}/{how}/{dtype}/{seed}"
    for kind, ways in KINDS.items()
    for how in ways
    for dtype in ("int8", "uint8")
    for seed in range(2)
    if dtype == "int8" or not f"{kind}/{how}".startswith(ONE_TYPE)
]


class Case:
    """A model of one product under construction."""

    def __init__(self, name):
        self.kind, how, self.dtype, seed = name.split("/")
        self.how = KINDS[self.kind][how]
        self.rng = np.random.default_rng([int(seed), *map(ord, name)])
        self.limits = np.iinfo(self.dtype)
        self.made, self.inputs = Builder(), []
        self.step = float(np.float32(self.rng.uniform(0.01, 0.1)))
        self.activation = ACTIVATIONS[int(self.rng.integers(4))]

    def zero(self):
        return int(self.rng.integers(self.limits.min, self.limits.max + 1))

    def integers(self, *shape):
        """Any; those of large sums are all far from zero and of one sign."""
        high = self.limits.max
        low = high - 20 if self.how.get("large") else self.limits.min
        return self.rng.integers(low, high + 1, shape).astype(self.dtype)

    def data(self, name, *shape, step=None):
        zero = self.limits.min + 3 if self.how.get("large") else self.zero()
        how = scaled(self.step if step is None else step, zero)
        self.made.tensor(name, self.dtype, shape, None, how)
        self.inputs.append(self.integers(*shape))

    def weights(self, shape, axis, bias=True):
        """Weights and a bias; scales are one for each column in most cases of int8. Their mean."""
        columns, rng = shape[axis], self.rng
        several = self.dtype == "int8" and self.kind != "FULLY_CONNECTED"
        steps = np.exp(rng.uniform(-6, -3, columns if several else 1)).astype(np.float32)
        zeros = np.zeros(len(steps), int) if self.dtype == "int8" else np.array([60])
        self.made.constant("w", self.integers(*shape), scaled(steps, zeros, axis))
        if bias:
            numbers = rng.integers(-9000, 9000, columns).astype(np.int32)
            self.made.constant("b", numbers, scaled(steps * np.float32(self.step), np.zeros(len(steps), int)))
        return float(steps.mean()), int(np.prod(shape)) // columns

    def finish(self, names, shape, mean, terms, options):
        width = 100 * terms / 8 if self.how.get("large") else 30 * terms**0.5
        how = scaled(self.step * mean * width, self.zero())
        self.made.tensor("y", self.dtype, shape, None, how)
        self.made.add(self.kind, names, ["y"], options, version=3)
        self.made.borders([t for t in ("x", "z") if t in names and t not in self.constants], ["y"])
        return self.made, self.inputs

    constants = ()


def case(name):
    """A model of one operator and its inputs."""
    c = Case(name)
    how, rng = c.how, c.rng
    if c.kind == "FULLY_CONNECTED":
        rows, depth, columns = how.get("rows", 9), how.get("depth", 30), int(rng.integers(3, 20))
        rows = rows if isinstance(rows, tuple) else (rows,)
        c.data("x", *rows, depth)
        mean, terms = c.weights((columns, depth), 0, how.get("bias", True))
        options = table(
            "FullyConnectedOptions", fused_activation_function=c.activation, keep_num_dims=len(rows) > 1
        )
        return c.finish(
            ["x", "w", "b" if how.get("bias", True) else None], (*rows, columns), mean, terms, options
        )
    if c.kind == "BATCH_MATMUL":
        depth, turned = how.get("depth", 20), (how.get("adj_x", False), how.get("adj_y", False))
        c.data("x", 2, *((depth, 7) if turned[0] else (7, depth)))
        shape = (2, *((9, depth) if turned[1] else (depth, 9)))
        if how.get("constant"):
            c.made.constant("z", c.integers(*shape), scaled(0.02, c.zero()))
            c.constants = ("z",)
        else:
            c.data("z", *shape, step=0.02)
        return c.finish(
            ["x", "z"], (2, 7, 9), 0.02, depth, table("BatchMatMulOptions", adj_x=turned[0], adj_y=turned[1])
        )
    n, h, w, channels = IMAGES[int(rng.integers(4))]
    channels, kernel = how.get("channels", channels), how.get("kernel", (3, 2))
    stride, dilation, padding = (
        how.get("stride", (1, 1)),
        how.get("dilation", (1, 1)),
        how.get("padding", "SAME"),
    )
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    if padding == "VALID" and c.kind != "TRANSPOSE_CONV":
        h, w = h + spans[0], w + spans[1]
    c.data("x", n, h, w, channels)
    places = dict(padding=padding, stride_h=stride[0], stride_w=stride[1])
    if c.kind == "TRANSPOSE_CONV":
        columns = int(rng.integers(3, 20))
        mean, terms = c.weights((columns, *kernel, channels), 0)
        sizes = [
            s * t if padding == "SAME" else (s - 1) * t + max(k, t) for s, t, k in zip((h, w), stride, kernel)
        ]
        c.made.constant("o", np.array((n, *sizes, columns), np.int32))
        options = table("TransposeConvOptions", **places)
        return c.finish(["o", "w", "x", "b"], (n, *sizes, columns), mean, terms, options)
    places |= dict(
        fused_activation_function=c.activation, dilation_h_factor=dilation[0], dilation_w_factor=dilation[1]
    )
    sizes = [-(-(s - (0 if padding == "SAME" else p - 1)) // t) for s, t, p in zip((h, w), stride, spans)]
    if c.kind == "DEPTHWISE_CONV_2D":
        columns = channels * how.get("multiplier", 1)
        mean, terms = c.weights((1, *kernel, columns), 3)
        options = table("DepthwiseConv2DOptions", depth_multiplier=how.get("multiplier", 1), **places)
        return c.finish(["x", "w", "b"], (n, *sizes, columns), mean, terms, options)
    group = how.get("group", 1)
    columns = int(rng.integers(1, 7)) * group
    if group > 1:
        c.made.tensors[-1].shape = [n, h, w, 4 * group]
        c.inputs, channels = [c.integers(n, h, w, 4 * group)], 4 * group
    mean, terms = c.weights((columns, *kernel, channels // group), 0)
    return c.finish(["x", "w", "b"], (n, *sizes, columns), mean, terms, table("Conv2DOptions", **places))


@pytest.mark.parametrize("name", CASES)
def test_the_integers_are_those_of_litert(name, tmp_path):
    source, inputs = case(name)
    (y,) = answers(tmp_path, source, *inputs)
    np.testing.assert_array_equal(y, np.load(FIXTURE)[name])


def test_core_computes_what_the_runtime_does(tmp_path):
    check_core(case, CASES[::3], FIXTURE, tmp_path)


@pytest.mark.parametrize(
    ("attributes", "shape", "factors", "reason"),
    [
        ({}, (3,), [[2**30], [1], [0]], "with 3 rows of 3 is needed"),
        ({}, (), [[2**30], [1], [0]], "columns of"),
        ({}, (1,), [[-1], [1], [0]], "factor -1 with shift 1 and rounding 0 of column 0"),
        ({}, (1,), [[1], [32], [0]], "shift 32"),
        ({}, (1,), [[1], [-32], [0]], "shift -32"),
        ({}, (1,), [[1], [0], [2]], "rounding 2"),
        ({"dtype": 34}, (1,), [[1], [0], [0]], "results that are not of 8 bits"),
        ({"zero": 300}, (1,), [[1], [0], [0]], "results that are not of 8 bits"),
        ({"low": 5, "high": 4}, (1,), [[1], [0], [0]], "limits without a number between them"),
        ({"together": -1}, (1,), [[1], [0], [0]], "together"),
    ],
)
def test_nodes_of_hostile_files_are_refused(attributes, shape, factors, reason, tmp_path):
    usual = dict(together=0, zero=0, low=-128, high=127, dtype=32)
    rows = np.array(factors, np.int32)
    tensors = [
        Table("Tensor", name="x", dataType="FLOAT32", dims=list(shape), nodeType=2),
        Table("Tensor", name="y", dataType="INT8", dims=list(shape), nodeType=2),
        Table("Tensor", name="f", dataType="INT32", dims=list(rows.shape), nodeType=0, data=rows.tobytes()),
    ]
    node = Table("CNode", name="mine", primitive=custom("rescale_columns", **usual | attributes))
    node.inputIndex, node.outputIndex = [0, 2], [1]
    graph = Table("MetaGraph", nodes=[node], allTensors=tensors, inputIndex=[0], outputIndex=[1])
    write(tmp_path / "m.ms", graph)
    with pytest.raises(RuntimeError, match=f"node 'mine'.*{reason}"):
        mslite.Model().build_from_file(str(tmp_path / "m.ms"))


if __name__ == "__main__":
    for name in CASES:
        source, inputs = case(name)
        place = Path(sys.argv[1]) / name.replace("/", ".")
        source.write(Path(f"{place}.tflite"))
        np.savez(f"{place}.npz", *inputs)
