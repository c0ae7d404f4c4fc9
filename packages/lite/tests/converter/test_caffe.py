"""CAFFE files to `.ms` files: each layer against NumPy and OpenCV, the forms of files, what is refused.

``python -m converter.test_caffe FOLDER`` in `packages/lite/tests` writes the models of the layers and their
inputs; what OpenCV 4.11 answers, for the layers that it has as Caffe has them, is in the fixture.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite import format
from mycelia_lite.converter import Code, ConversionError
from mycelia_lite.converter.importers.caffe.calls import LAYERS

from .caffe_models import answers, head, of_one, write
from .test_tflite import normal, windows

X = normal(2, 4, 5, 6)
RECORDED = np.load(Path(__file__).parents[1] / "fixtures" / "caffe_rows.npz")


def conv(x, weight, bias=0.0, strides=(1, 1), pad=0, group=1, dilation=1):
    """A convolution of images [N, C, H, W]."""
    span = [(k - 1) * dilation + 1 for k in weight.shape[2:]]
    found = windows(x.transpose(0, 2, 3, 1), span, strides, ((pad, pad), (pad, pad)))
    found = found[:, :, :, ::dilation, ::dilation]
    parts = np.split(found, group, 5)
    made = [np.einsum("nhwijc,ocij->nohw", p, w) for p, w in zip(parts, np.split(weight, group))]
    return np.concatenate(made, 1) + np.reshape(bias, (1, -1, 1, 1))


def deconv(x, weight, stride, pad):
    """Each pixel adds a window; weights [I, O, h, w]."""
    n, _, h, w = x.shape
    kh, kw = weight.shape[2:]
    full = np.zeros((n, weight.shape[1], (h - 1) * stride + kh, (w - 1) * stride + kw), np.float32)
    for i in range(h):
        for j in range(w):
            full[:, :, i * stride : i * stride + kh, j * stride : j * stride + kw] += np.einsum(
                "nc,cohw->nohw", x[:, :, i, j], weight
            )
    return full[:, :, pad : full.shape[2] - pad, pad : full.shape[3] - pad]


def pool(x, kernel, stride, pad, count, mean):
    """Caffe's windows one by one: clipped to the padded image, means over what is left of them."""
    n, c, h, w = x.shape
    out = np.zeros((n, c, *count), np.float32)
    for i, j in np.ndindex(*count):
        top, left = i * stride - pad, j * stride - pad
        bottom, right = min(top + kernel, h + pad), min(left + kernel, w + pad)
        part = x[:, :, max(top, 0) : min(bottom, h), max(left, 0) : min(right, w)]
        size = (bottom - top) * (right - left)
        out[:, :, i, j] = part.sum((2, 3)) / size if mean else part.max((2, 3))
    return out


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def lrn(x, size, alpha, beta, k):
    padded = np.pad(x**2, ((0, 0), (size // 2, size // 2), (0, 0), (0, 0)))
    total = sum(padded[:, i : i + x.shape[1]] for i in range(size))
    return x / (k + alpha / size * total) ** beta


def bilinear(n, out):
    places = np.linspace(0, n - 1, out)
    return np.clip(1 - np.abs(places[:, None] - np.arange(n)), 0, None)


W, B = normal(6, 4, 3, 3, seed=1), normal(6, seed=2)
G, D = normal(6, 2, 3, 3, seed=3), normal(4, 1, 3, 3, seed=4)
T = normal(4, 3, 4, 4, seed=5)
F = normal(7, 120, seed=6)
MEAN, VARIANCE = normal(4, seed=7), np.abs(normal(4, seed=8)) + 1
C4, S4 = normal(4, seed=9), np.abs(normal(4, seed=10))
SORTED = np.argsort(-X.reshape(2, -1), 1)[:, :3]

CASES = {
    "conv": ("Convolution", "convolution_param { num_output: 6 kernel_size: 3 pad: 1 stride: 2 }", [W, B],
             conv(X, W, B, (2, 2), 1)),
    "conv groups": ("Convolution",
                    "convolution_param { num_output: 6 kernel_size: 3 group: 2 "
                    "bias_term: false dilation: 2 }",
                    [G], conv(X, G, 0, group=2, dilation=2)),
    "conv by direction": ("Convolution", "convolution_param { num_output: 6 kernel_h: 3 kernel_w: 3 "
                          "stride_h: 2 stride_w: 1 }", [W, B], conv(X, W, B, (2, 1))),
    "depthwise": ("DepthwiseConv", "convolution_param { num_output: 4 kernel_size: 3 bias_term: false }", [D],
                  conv(X, D, 0, group=4)),
    "deconv": ("Deconvolution", "convolution_param { num_output: 3 kernel_size: 4 stride: 2 pad: 1 }",
               [T, normal(3, seed=11)], deconv(X, T, 2, 1) + normal(3, seed=11)[:, None, None]),
    "max pool": ("Pooling", "pooling_param { kernel_size: 3 stride: 2 }", [],
                 pool(X, 3, 2, 0, (2, 3), False)),
    "max pool pad": ("Pooling", "pooling_param { kernel_size: 3 stride: 2 pad: 1 }", [],
                     pool(X, 3, 2, 1, (3, 4), False)),
    "mean pool": ("Pooling", "pooling_param { pool: AVE kernel_size: 3 stride: 2 }", [],
                  pool(X, 3, 2, 0, (2, 3), True)),
    "mean pool pad": ("Pooling", "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }", [],
                      pool(X, 3, 2, 1, (3, 4), True)),
    "mean pool floor": ("Pooling", "pooling_param { pool: AVE kernel_size: 2 stride: 3 round_mode: FLOOR }",
                        [], pool(X, 2, 3, 0, (2, 2), True)),
    "global pool": ("Pooling", "pooling_param { pool: AVE global_pooling: true }", [],
                    X.mean((2, 3), keepdims=True)),
    "inner product": ("InnerProduct", "inner_product_param { num_output: 7 }", [F, normal(7, seed=12)],
                      X.reshape(2, -1) @ F.T + normal(7, seed=12)),
    "inner product turned": ("InnerProduct",
                             "inner_product_param { num_output: 7 transpose: true bias_term: false }", [F.T],
                             X.reshape(2, -1) @ F.T),
    "inner product axis": ("InnerProduct", "inner_product_param { num_output: 3 axis: -1 bias_term: false }",
                           [F[:3, :6]], X @ F[:3, :6].T),
    "batch norm": ("BatchNorm", "batch_norm_param { eps: 0.01 }", [MEAN * 2, VARIANCE * 2, [2.0]],
                   (X - MEAN[:, None, None]) / np.sqrt(VARIANCE[:, None, None] + 0.01)),
    "scale": ("Scale", "scale_param { bias_term: true }", [C4, S4],
              X * C4[:, None, None] + S4[:, None, None]),
    "scale last axis": ("Scale", "scale_param { axis: -1 }", [normal(6, seed=13)], X * normal(6, seed=13)),
    "bias": ("Bias", "", [C4], X + C4[:, None, None]),
    "prelu": ("PReLU", "", [S4], np.where(X > 0, X, X * S4[:, None, None])),
    "prelu shared": ("PReLU", "prelu_param { channel_shared: true }", [[0.3]],
                     np.where(X > 0, X, X * np.float32(0.3))),
    "relu": ("ReLU", "", [], np.maximum(X, 0)),
    "leaky": ("ReLU", "relu_param { negative_slope: 0.2 }", [], np.where(X > 0, X, X * np.float32(0.2))),
    "relu6": ("ReLU6", "", [], np.clip(X, 0, 6)),
    "elu": ("ELU", "elu_param { alpha: 0.5 }", [], np.where(X > 0, X, 0.5 * np.expm1(X))),
    "sigmoid": ("Sigmoid", "", [], 1 / (1 + np.exp(-X))),
    "tanh": ("TanH", "", [], np.tanh(X)),
    "abs": ("AbsVal", "", [], np.abs(X)),
    "exp": ("Exp", "exp_param { base: 2 scale: 0.5 shift: 1 }", [], 2 ** (0.5 * X + 1)),
    "elu by another name": ("Elu", "", [], np.where(X > 0, X, np.expm1(X))),
    "depthwise by another name": (
        "ConvolutionDepthwise", "convolution_param { num_output: 4 kernel_size: 3 bias_term: false }", [D],
        conv(X, D, 0, group=4)),
    "depthwise by a third name": (
        "DepthwiseConvolution", "convolution_param { num_output: 4 kernel_size: 3 bias_term: false }", [D],
        conv(X, D, 0, group=4)),
    "log": ("Log", "log_param { base: 2 scale: 0.5 shift: 9 }", [], np.log2(0.5 * X + 9)),
    "power": ("Power", "power_param { power: 2 scale: 0.5 shift: 1 }", [], (0.5 * X + 1) ** 2),
    "softmax": ("Softmax", "", [], softmax(X, 1)),
    "softmax axis": ("Softmax", "softmax_param { axis: -1 }", [], softmax(X, 3)),
    "lrn": ("LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 k: 2 }", [], lrn(X, 3, 0.5, 0.75, 2)),
    "lrn around 1": ("LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 }", [], lrn(X, 3, 0.5, 0.75, 1)),
    "dropout": ("Dropout", "dropout_param { dropout_ratio: 0.5 }", [], X),
    "reduce": ("Reduction", "reduction_param { operation: MEAN axis: 2 coeff: 3 }", [], X.mean((2, 3)) * 3),
    "reduce asum": ("Reduction", "reduction_param { operation: ASUM axis: 1 }", [], np.abs(X).sum((1, 2, 3))),
    "arg max": ("ArgMax", "argmax_param { top_k: 3 }", [], SORTED[:, None].astype(np.float32)),
    "arg max axis": ("ArgMax", "argmax_param { axis: 1 }", [], X.argmax(1)[:, None].astype(np.float32)),
    "largest": ("ArgMax", "argmax_param { out_max_val: true top_k: 3 }", [],
                np.stack([SORTED, np.take_along_axis(X.reshape(2, -1), SORTED, 1)], 1)),
    "flatten": ("Flatten", "flatten_param { axis: 1 end_axis: 2 }", [], X.reshape(2, 20, 6)),
    "reshape": ("Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: 3 } }", [], X.reshape(2, 40, 3)),
    "reshape part": ("Reshape", "reshape_param { axis: 1 num_axes: 2 shape { dim: 2 dim: 10 } }", [],
                     X.reshape(2, 2, 10, 6)),
    "permute": ("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }", [],
                X.transpose(0, 2, 3, 1)),
    "tile": ("Tile", "tile_param { axis: 1 tiles: 3 }", [], np.tile(X, (1, 3, 1, 1))),
    "interp": ("Interp", "interp_param { height: 9 width: 11 }", [],
               np.einsum("ah,nchw,bw->ncab", bilinear(5, 9), X, bilinear(6, 11))),
    "interp zoom": ("Interp", "interp_param { zoom_factor: 2 }", [],
                    np.einsum("ah,nchw,bw->ncab", bilinear(5, 9), X, bilinear(6, 11))),
    "upsample": ("Upsample", "upsample_param { scale: 2 }", [], X.repeat(2, 2).repeat(2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_layer_answers_as_numpy_does(tmp_path, name):
    kind, parameters, blobs, wanted = CASES[name]
    (found,) = answers(tmp_path, of_one(kind, [X.shape], parameters), {"it": blobs}, X)
    wanted = np.asarray(wanted, np.float32)
    assert found.shape == wanted.shape and found.dtype == np.float32
    assert np.abs(found - wanted).max() <= 1e-5 * max(np.abs(wanted).max(), 1)
    if f"{name}/0" in RECORDED:
        np.testing.assert_allclose(found, RECORDED[f"{name}/0"], rtol=1e-5, atol=1e-5)


Y, Z = normal(2, 4, 5, 6, seed=21), normal(2, 4, 3, 2, seed=22)
OF_SEVERAL = {
    "sum": ("Eltwise", "eltwise_param { coeff: 2 coeff: -1 }", (X, Y), [2 * X - Y]),
    "product": ("Eltwise", "eltwise_param { operation: PROD }", (X, Y), [X * Y]),
    "largest": ("Eltwise", "eltwise_param { operation: MAX }", (X, Y), [np.maximum(X, Y)]),
    "concat": ("Concat", "concat_param { axis: 1 }", (X, Y), [np.concatenate([X, Y], 1)]),
    "crop": ("Crop", "crop_param { axis: 2 offset: 1 offset: 3 }", (X, Z), [X[:, :, 1:4, 3:5]]),
    "slice": ("Slice", "slice_param { axis: 1 slice_point: 1 }", (X,), [X[:, :1], X[:, 1:]]),
    "equal slices": ("Slice", "slice_param { axis: 3 }", (X,), np.split(X, 3, 3)),
    "scale by input": ("Scale", "scale_param { axis: 0 }", (X, Z[:, :, 0, 0]), [X * Z[:, :, :1, :1]]),
    "split": ("Split", "", (X,), [X, X]),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_a_layer_of_several_inputs_or_results(tmp_path, name):
    kind, parameters, arrays, wanted = OF_SEVERAL[name]
    text = of_one(kind, [a.shape for a in arrays], parameters, len(wanted))
    found = answers(tmp_path, text, {}, *arrays)
    assert [f.shape for f in found] == [w.shape for w in wanted]
    assert all(np.allclose(f, w, atol=1e-6) for f, w in zip(found, wanted))
    for i, value in enumerate(found):
        if f"several {name}/{i}" in RECORDED:
            np.testing.assert_allclose(value, RECORDED[f"several {name}/{i}"], rtol=1e-5, atol=1e-5)


# Those that OpenCV has not, or reads otherwise; NumPy by Caffe's definition stands for it.
ALONE = {
    "ArgMax", "Bias", "DepthwiseConv", "DepthwiseConvolution", "Elu", "Log", "Reduction", "Tile", "Upsample",
}  # fmt: skip


def test_every_layer_has_a_row():
    rows = {name: row[0] for name, row in CASES.items()}
    rows |= {f"several {name}": row[0] for name, row in OF_SEVERAL.items()}
    assert set(rows.values()) == set(LAYERS)
    recorded = {kind for name, kind in rows.items() if f"{name}/0" in RECORDED}
    assert set(rows.values()) - recorded == ALONE


OLD = """
name: "old" input: "data" input_dim: 2 input_dim: 4 input_dim: 5 input_dim: 6
layers { name: "label" type: DATA top: "label" include { phase: TRAIN } }
layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" blobs_lr: 1 blobs_lr: 2
         convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
layers { name: "r" type: RELU bottom: "c" top: "c" }
layers { name: "d" type: DROPOUT bottom: "c" top: "c" dropout_param { dropout_ratio: 0.5 } }
layers { name: "f" type: INNER_PRODUCT bottom: "c" top: "f" inner_product_param { num_output: 3 } }
layers { name: "loss" type: SOFTMAX_LOSS bottom: "f" bottom: "label" include { phase: TRAIN } }
layers { name: "prob" type: SOFTMAX bottom: "f" top: "prob" }
"""


def test_a_file_of_the_old_form_with_layers_in_place_and_of_training(tmp_path):
    f, b = normal(3, 72, seed=30) / 10, normal(3, seed=31)
    (found,) = answers(tmp_path, OLD, {"c": [W, B], "f": [f, b]}, X, old=True)
    wanted = softmax(np.maximum(conv(X, W, B), 0).reshape(2, -1) @ f.T + b, 1)
    assert np.allclose(found, wanted, atol=1e-5)
    model = mslite.Model()
    model.build_from_file(str(tmp_path / "m.ms"))
    assert [t.name for t in model.get_inputs()] == ["data"] and model.get_inputs()[0].shape == [2, 4, 5, 6]
    assert [t.name for t in model.get_outputs()] == ["prob"]
    assert "Dropout" not in {n.primitive.kind for n in format.read(tmp_path / "m.ms").nodes}


def test_inputs_get_the_shapes_that_are_asked_for(tmp_path):
    paths = write(tmp_path, of_one("ReLU", [X.shape]))
    converter = mslite.Converter()
    converter.input_shape = {"x0": [1, 2, 3, 4]}
    report = converter.convert(mslite.FmkType.CAFFE, paths[0], str(tmp_path / "m"), weight_file=paths[1])
    assert list(format.read(report.path).allTensors[0].dims) == [1, 2, 3, 4]


REFUSED = {
    "unknown layers": (head(X.shape) + 'layer { name: "a" type: "Magic" bottom: "x0" top: "a" }'
                       'layer { name: "b" type: "Spell" bottom: "a" top: "b" }', {}, Code.NOT_FIND_OP,
                       r"Magic \(layer 'a'\), Spell \(layer 'b'\)"),
    "unknown field": (of_one("ReLU", [X.shape], "relu_param { negative_slop: 1 }"), {}, Code.INVALID_OP_ATTR,
                      "negative_slop"),
    "parameter of another layer": (of_one("ReLU", [X.shape], "lrn_param { alpha: 1 }"), {},
                                   Code.INVALID_OP_ATTR, "layer 'it'.*lrn_param.alpha"),
    "stochastic": (of_one("Pooling", [X.shape], "pooling_param { pool: STOCHASTIC kernel_size: 2 }"), {},
                   Code.INVALID_OP_ATTR, "STOCHASTIC"),
    "within channels": (of_one("LRN", [X.shape], "lrn_param { norm_region: WITHIN_CHANNEL }"), {},
                        Code.INVALID_OP_ATTR, "norm_region"),
    "no weights": (of_one("PReLU", [X.shape]), {}, Code.GRAPH_FILE_ERROR,
                   "layer 'it' .PReLU.: it has 0 blobs"),
    "weights that do not fit": (of_one("PReLU", [X.shape]), {"it": [normal(3)]}, Code.GRAPH_FILE_ERROR,
                                "3 slopes for 4 channels"),
    "no text": ("layer { name: ", {}, Code.GRAPH_FILE_ERROR, "m.prototxt"),
    "no layers": ('name: "empty"', {}, Code.GRAPH_FILE_ERROR, "no layers"),
    "no input": (of_one("ReLU", [X.shape]).replace("x0\" top", "x9\" top"), {},
                 Code.GRAPH_FILE_ERROR, "'x9'"),
    "an input without elements": (of_one("ReLU", [(1, 0)]), {}, Code.GRAPH_FILE_ERROR, "impossible shape"),
    "an input beyond all memory": (of_one("ReLU", [(1 << 40, 1 << 40)]), {}, Code.GRAPH_FILE_ERROR,
                                   "impossible shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(tmp_path, name):
    text, blobs, code, reason = REFUSED[name]
    with pytest.raises(ConversionError, match=reason) as error:
        answers(tmp_path, text, blobs, X)
    assert error.value.code is code
    assert not list(tmp_path.glob("*.ms"))


def test_files_of_weights_that_cannot_be_read_are_refused(tmp_path):
    structure, weight_file = write(tmp_path, of_one("PReLU", [X.shape]), {"it": [S4]})
    data = (tmp_path / "m.caffemodel").read_bytes()
    for broken in (b"", data[:-3], b"\xff" * 20, data[:-1] + b"\x10"):
        (tmp_path / "m.caffemodel").write_bytes(broken)
        with pytest.raises(ConversionError):
            mslite.Converter().convert(
                mslite.FmkType.CAFFE, structure, str(tmp_path / "m"), weight_file=weight_file
            )


if __name__ == "__main__":
    for name, (kind, parameters, blobs, _) in CASES.items():
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True)
        write(folder, of_one(kind, [X.shape], parameters), {"it": blobs})
        np.savez(folder / "inputs.npz", X)
    for name, (kind, parameters, arrays, wanted) in OF_SEVERAL.items():
        folder = Path(sys.argv[1]) / f"several {name}"
        folder.mkdir(parents=True)
        write(folder, of_one(kind, [a.shape for a in arrays], parameters, len(wanted)))
        np.savez(folder / "inputs.npz", *arrays)
