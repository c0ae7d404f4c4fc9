"""Operators of StableHLO that TensorFlow Lite runs, BITCAST, DILATE and windows that are reduced.

``python -m converter.test_tflite_stablehlo FOLDER`` in `packages/lite/tests` writes the models and their
inputs; what LiteRT (ai-edge-litert 2) answers is in the fixture.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError, Job, convert, explain

from .tflite_models import Builder, run, table

FIXTURE = Path(__file__).parents[1] / "fixtures" / "tflite_stablehlo.npz"
COMPUTED = {"add": "STABLEHLO_ADD", "multiply": "STABLEHLO_MULTIPLY", "maximum": "STABLEHLO_MAXIMUM",
            "minimum": "STABLEHLO_MINIMUM"}  # fmt: skip

FUNCTIONS = ("UNSUPPORTED", "ADD", "MUL", "MINIMUM", "MAXIMUM", "ALL", "ANY")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def whole(low, high, *shape, seed=0, dtype=np.int32):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


class One:
    """A model of one operator. `arrays`: its inputs, those at the places `constants` are in the file."""

    def __init__(self, kind, arrays, outputs, second=None, options=None, constants=(), body=None):
        self.kind, self.arrays, self.outputs = kind, [np.asarray(a) for a in arrays], outputs
        self.second, self.options, self.constants, self.body = second, options, constants, body

    @property
    def given(self):
        return [a for i, a in enumerate(self.arrays) if i not in self.constants]

    def built(self):
        made = Builder()
        names = [
            made.constant(f"x{i}", a) if i in self.constants else made.tensor(f"x{i}", a.dtype.name, a.shape)
            for i, a in enumerate(self.arrays)
        ]
        results = [made.tensor(f"y{i}", dtype, shape) for i, (dtype, shape) in enumerate(self.outputs)]
        made.add(self.kind, names, results, self.options, second=self.second)
        made.borders([n for i, n in enumerate(names) if i not in self.constants], results)
        if self.body is not None:
            self.body(made, self.outputs[0][0])
        return made


def of_two(kind):
    """Subgraph 1: this operator of two scalars, or its second one."""

    def body(made, dtype):
        made.begin("body")
        a, b = made.tensor("a", dtype), made.tensor("b", dtype)
        if kind is None:
            made.borders([a, b], [b])
            return
        made.add(kind, [a, b], [made.tensor("c", dtype)])
        made.borders([a, b], ["c"])

    return body


def of_branches(shape):
    """Subgraphs 1 to 3: twice x, its negative, its square."""

    def body(made, dtype):
        for name, kind, inputs in (("twice", "ADD", "xx"), ("negative", "NEG", "x"), ("square", "MUL", "xx")):
            made.begin(name)
            made.tensor("x", dtype, shape)
            made.add(kind, list(inputs), [made.tensor("y", dtype, shape)])
            made.borders(["x"], ["y"])

    return body


def composite(shape):
    def body(made, dtype):
        made.begin("decomposition")
        made.tensor("x", dtype, shape)
        made.tensor("w", dtype, shape[-1:])
        made.add("MUL", ["x", "x"], [made.tensor("s", dtype, shape)])
        axis = made.constant("axis", np.array([-1], np.int32))
        made.add(
            "MEAN",
            ["s", axis],
            [made.tensor("m", dtype, (*shape[:-1], 1))],
            table("ReducerOptions", keep_dims=True),
        )
        made.add("RSQRT", ["m"], [made.tensor("r", dtype, (*shape[:-1], 1))])
        made.add("MUL", ["x", "r"], [made.tensor("n", dtype, shape)])
        made.add("MUL", ["n", "w"], [made.tensor("y", dtype, shape)])
        made.borders(["x", "w"], ["y"])

    return body


def reduced(how, x, window, strides, base, dilations, padding, first):
    """STABLEHLO_REDUCE_WINDOW; `padding`: (begin, end) of each axis."""
    size = [
        (((n - 1) * b + 1 if n else 0) + sum(p) - ((w - 1) * d + 1)) // s + 1
        for n, w, s, b, d, p in zip(x.shape, window, strides, base, dilations, padding)
    ]
    options = table(
        "StablehloReduceWindowOptions", window_dimensions=window, window_strides=strides, base_dilations=base,
        window_dilations=dilations, padding=[n for p in padding for n in p], body_subgraph_index=1,
    )  # fmt: skip
    return One("STABLEHLO_REDUCE_WINDOW", [x, np.array(first, x.dtype)], [(x.dtype.name, size)], options,
               constants=(1,), body=of_two(COMPUTED[how]))  # fmt: skip


def builtin_reduced(how, x, window, strides, dilations, first):
    """REDUCE_WINDOW, which has no padding: its arguments are inputs."""
    size = [(n - ((w - 1) * d + 1)) // s + 1 for n, w, s, d in zip(x.shape, window, strides, dilations)]
    arrays = [x, np.array(first, x.dtype), *(np.array(v, np.int64) for v in (window, strides, dilations))]
    options = table("ReduceWindowOptions", reduce_function=FUNCTIONS.index(how))
    return One("REDUCE_WINDOW", arrays, [(x.dtype.name, size)], options, constants=(1, 2, 3, 4))


def gathered(x, starts, out, **options):
    known = ("offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim", "slice_sizes")
    assert set(options) == set(known)
    return One(
        "STABLEHLO_GATHER", [x, starts], [(x.dtype.name, out)], table("StablehloGatherOptions", **options)
    )


def scattered(how, x, indices, updates, **options):
    body = None if how == "update" else COMPUTED[how]
    return One("STABLEHLO_SCATTER", [x, indices, updates], [(x.dtype.name, x.shape)],
               table("StablehloScatterOptions", update_computation_subgraph_index=1, **options),
               body=of_two(body))  # fmt: skip


ROWS = dict(
    update_window_dims=[1], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1
)
POINTS = dict(
    update_window_dims=[],
    inserted_window_dims=[0, 1],
    scatter_dims_to_operand_dims=[0, 1],
    index_vector_dim=1,
)
X = normal(5, 4)
MODELS = {
    **{
        f"{kind} {dtype}": One(
            kind,
            [whole(-9, 9, 3, 4, dtype=dtype), whole(-9, 9, 3, 4, seed=1, dtype=dtype)],
            [(dtype, (3, 4))],
        )
        for kind in COMPUTED.values()
        for dtype in ("float32", "int32")
    },
    "shift": One("STABLEHLO_SHIFT_LEFT", [whole(-99, 99, 8), whole(0, 9, 8, seed=1)], [("int32", (8,))]),
    "pad": One(
        "STABLEHLO_PAD",
        [X, np.float32(7)],
        [("float32", (6, 9))],
        table(
            "StablehloPadOptions", edge_padding_low=[2, 1], edge_padding_high=[-1, 1], interior_padding=[0, 1]
        ),
        constants=(1,),
    ),
    "pad, all cut": One(
        "STABLEHLO_PAD",
        [whole(-9, 9, 3, 4), np.int32(-1)],
        [("int32", (5, 2))],
        table(
            "StablehloPadOptions",
            edge_padding_low=[-1, -1],
            edge_padding_high=[1, -1],
            interior_padding=[1, 0],
        ),
    ),
    "dilate": One(
        "DILATE",
        [X, np.array([2, 3], np.int32), np.array(0.5, np.float32)],
        [("float32", (9, 10))],
        table("DilateOptions"),
        constants=(1, 2),
    ),
    "composite": One(
        "STABLEHLO_COMPOSITE",
        [X, normal(4, seed=1)],
        [("float32", (5, 4))],
        table(
            "StableHLOCompositeOptions",
            name="odml.rms_norm",
            decomposition_subgraph_index=1,
            composite_attributes=b"\0",
            version=1,
        ),
        body=composite((5, 4)),
    ),
    **{
        f"case {i}": One(
            "STABLEHLO_CASE",
            [np.int32(i), X],
            [("float32", (5, 4))],
            table("StablehloCaseOptions", branch_subgraph_indices=[1, 2, 3]),
            body=of_branches((5, 4)),
        )
        for i in (0, 1, 2, 7, -1)
    },
    "largest of windows": reduced(
        "maximum",
        normal(1, 6, 7, 2),
        [1, 3, 2, 1],
        [1, 2, 1, 1],
        [1] * 4,
        [1] * 4,
        [(0, 0), (1, 1), (0, 1), (0, 0)],
        -np.inf,
    ),
    "running sum": reduced("add", normal(6), [6], [1], [1], [1], [(5, 0)], 0),
    "product of windows": reduced(
        "multiply", normal(4, 5), [2, 2], [1, 1], [1, 2], [2, 1], [(0, 0), (1, 0)], 2
    ),
    "least integer": reduced(
        "minimum", whole(-9, 9, 7, 3), [3, 1], [2, 1], [2, 1], [1, 1], [(0, 1), (0, 0)], 4
    ),
    "cut windows": reduced("add", normal(7), [2], [1], [1], [2], [(-1, -2)], 0),
    **{
        f"REDUCE_WINDOW {how}": builtin_reduced(how, x, [2, 3], [1, 2], [2, 1], first)
        for how, first, x in (
            ("ADD", 1, normal(5, 6)),
            ("MUL", 1, normal(5, 6)),
            ("MINIMUM", 0, normal(5, 6)),
            ("MAXIMUM", -9, whole(-9, 9, 5, 6)),
            ("ALL", True, normal(5, 6) > -1),
            ("ANY", False, normal(5, 6) > 1),
        )
    },
    "rows": gathered(
        X,
        np.array([[3], [0], [9], [-2]], np.int32),
        (4, 4),
        offset_dims=[1],
        collapsed_slice_dims=[0],
        start_index_map=[0],
        index_vector_dim=1,
        slice_sizes=[1, 4],
    ),
    "blocks": gathered(
        normal(3, 5, 4),
        np.array([[[0, 1], [4, 2]], [[1, 0], [2, 3]]], np.int64),
        (2, 2, 3, 2),
        offset_dims=[2, 3],
        collapsed_slice_dims=[1],
        start_index_map=[1, 2],
        index_vector_dim=2,
        slice_sizes=[3, 1, 2],
    ),
    "points": gathered(
        whole(-9, 9, 3, 5),
        np.array([[2, 4], [0, 1], [1, 9]], np.int32),
        (3,),
        offset_dims=[],
        collapsed_slice_dims=[0, 1],
        start_index_map=[0, 1],
        index_vector_dim=1,
        slice_sizes=[1, 1],
    ),
    **{
        f"rows {how}": scattered(
            how, X, np.array([[3], [0], [3], [8]], np.int32), normal(4, 4, seed=5), **ROWS
        )
        for how in ("add", "multiply", "maximum", "minimum")
    },
    "rows updated": scattered(
        "update", X, np.array([[3], [0], [5], [-1]], np.int32), normal(4, 4, seed=5), **ROWS
    ),
    "points added": scattered(
        "add",
        whole(-9, 9, 5, 4),
        np.array([[1, 1], [4, 3], [1, 1], [0, 4]], np.int32),
        whole(0, 9, 4),
        **POINTS,
    ),
    "blocks updated": scattered(
        "update",
        normal(6, 5),
        np.array([[1, 2], [4, 0], [5, 0]], np.int64),
        normal(3, 2, 2),
        update_window_dims=[1, 2],
        inserted_window_dims=[],
        scatter_dims_to_operand_dims=[0, 1],
        index_vector_dim=1,
    ),
    "bits of floats": One("BITCAST", [X], [("int32", (5, 4))], options=table("BitcastOptions")),
    "bits of integers": One(
        "BITCAST", [whole(-(2**31), 2**31 - 1, 6)], [("float32", (6,))], options=table("BitcastOptions")
    ),
    "bits as bytes": One(
        "BITCAST", [whole(-999, 999, 3)], [("uint8", (3, 4))], options=table("BitcastOptions")
    ),
    "bits of bytes": One(
        "BITCAST", [whole(0, 255, 3, 4, dtype=np.uint8)], [("int32", (3,))], options=table("BitcastOptions")
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_an_operator_answers_as_litert(name, tmp_path):
    recorded = np.load(FIXTURE)
    model = MODELS[name]
    path = model.built().write(tmp_path / "m.tflite")
    (found,) = run(convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m")).path, *model.given)
    expected = recorded[f"{name}/0"]
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if name.startswith("bits"):
        assert found.tobytes() == expected.tobytes()
    elif found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(found, expected)


def body_of(kind):
    def body(made, dtype):
        made.begin("body")
        made.add(kind, [made.tensor("a", dtype), made.tensor("b", dtype)], [made.tensor("c", dtype)])
        made.borders(["a", "b"], ["c"])

    return body


def refused():
    """Models of one operator, and what is said about it."""
    other = reduced("add", normal(6), [2], [1], [1], [1], [(0, 0)], 0)
    other.body = body_of("SUB")
    yield other, r"'y0' \(STABLEHLO_REDUCE_WINDOW\): its computation is none of a sum, product"
    second = scattered("add", X, np.zeros((2, 1), np.int32), normal(2, 4), **ROWS)
    second.body = body_of("SUB")
    yield second, r"'y0' \(STABLEHLO_SCATTER\): its computation is none of"
    yield (
        scattered("add", X, np.zeros((2, 1), np.int32), normal(3, 4), **ROWS),
        r"'y0' \(STABLEHLO_SCATTER\): updates \[3, 4\] at indices \[2\] of \[5, 4\]",
    )
    wide = dict(offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1)
    yield (
        gathered(X, np.zeros((2, 1), np.int32), (2, 4), **wide, slice_sizes=[2, 4]),
        "attribute 'collapsed_slice_dims' is .0., which names an axis with more than one element",
    )
    yield (
        gathered(X, np.zeros((2, 1), np.int32), (2, 4), **wide, slice_sizes=[1, 5]),
        "attribute 'slice_sizes' is .1, 5., which does not fit",
    )
    yield (
        One(
            "BITCAST", [whole(0, 9, 3, 3, dtype=np.uint8)], [("int32", (3,))], options=table("BitcastOptions")
        ),
        r"'y0' \(BITCAST\): elements of 4 bytes of an axis of 3 with 1 each",
    )
    yield (
        One("BITCAST", [whole(0, 9, 3, dtype=np.uint8)], [("bool", (3,))], options=table("BitcastOptions")),
        r"'y0' \(BITCAST\): the bits of UInt8 as bool",
    )
    yield (
        One("STABLEHLO_CASE", [np.int32(0), X], [("float32", (5, 4))], table("StablehloCaseOptions")),
        "it has no branches",
    )


@pytest.mark.parametrize(("model", "reason"), list(refused()))
def test_what_is_not_handled_is_refused_by_its_name(model, reason, tmp_path):
    path = model.built().write(tmp_path / "m.tflite")
    with pytest.raises(ConversionError, match=reason):
        convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m"))
    assert [p.name for p in tmp_path.iterdir()] == ["m.tflite"]


@pytest.mark.parametrize(
    "kind",
    ["STABLEHLO_CBRT", "STABLEHLO_DOT_GENERAL", "STABLEHLO_SORT", "STABLEHLO_WHILE",
     "LSH_PROJECTION", "SKIP_GRAM", "HASHTABLE_FIND"],
)  # fmt: skip
def test_operators_that_are_not_imported_are_explained_at_once(kind, tmp_path):
    made = Builder()
    made.tensor("x", shape=(3,))
    for i in range(2):
        made.add(kind, ["x"], [made.tensor(f"hard {i}", shape=(3,))])
        made.add("NEG", [f"hard {i}"], [made.tensor(f"behind {i}", shape=(3,))])
    made.add("NEG", ["x"], [made.tensor("y", shape=(3,))])
    made.borders(["x"], ["behind 0", "behind 1", "y"])
    path = made.write(tmp_path / "m.tflite")
    found = [e.args[0] for e in explain(Job(mslite.FmkType.TFLITE, path, str(tmp_path / "m")))]
    assert [text.partition(":")[0] for text in found] == [f"node 'hard {i}' ({kind})" for i in range(2)]
    assert all("there is no importer for this operator" in text for text in found)
    with pytest.raises(ConversionError, match=f"{kind} .node 'hard 0'"):
        convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m"))


if __name__ == "__main__":
    for name, model in MODELS.items():
        stem = Path(sys.argv[1]) / name
        model.built().write(stem.with_suffix(".tflite"))
        np.savez(stem.with_suffix(".npz"), *model.given)
