"""From MindIR to `.ms` and its answers, as a user goes."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite.converter import Code, ConversionError, convert
from mycelia_lite.converter.optimise import RULES
from mycelia_lite.format import read

from .ms_files import answer


def close(found, expected):
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 2e-6 * np.abs(expected).max()


def test_lenet_answers_as_in_core(lenet, tmp_path):
    path, images, expected = lenet
    report = mslite.Converter().convert(mslite.FmkType.MINDIR, path, str(tmp_path / "lenet"))
    assert report.path == str(tmp_path / "lenet.ms")
    close(answer(report.path, images)[0], expected)
    assert report.fusions["ConvActivationFusion"] == 2 and report.fusions["MatMulActivationFusion"] == 2


def test_the_border_is_that_of_the_source(lenet, tmp_path):
    path, *_ = lenet
    model = mslite.Model()
    model.build_from_file(convert(mslite.FmkType.MINDIR, path, str(tmp_path / "n")).path)
    (x,), (y,) = model.get_inputs(), model.get_outputs()
    assert (x.name, x.shape, x.dtype) == ("x", [-1, 1, 32, 32], mslite.DataType.FLOAT32)
    assert (y.shape[1], y.dtype) == (10, mslite.DataType.FLOAT32)


def test_one_model_serves_many_batches(lenet, tmp_path):
    path, images, expected = lenet
    model = mslite.Model()
    model.build_from_file(convert(mslite.FmkType.MINDIR, path, str(tmp_path / "n")).path)
    for count in (6, 1, 3, 6):
        model.resize(model.get_inputs(), [[count, 1, 32, 32]])
        model.get_inputs()[0].set_data_from_numpy(images[:count])
        close(model.predict(model.get_inputs())[0].get_data_to_numpy(), expected[:count])


def test_a_shape_may_be_fixed(lenet, tmp_path):
    path, images, expected = lenet
    converter = mslite.Converter()
    converter.input_shape = {"x": [6, 1, 32, 32]}
    made = converter.convert(mslite.FmkType.MINDIR, path, str(tmp_path / "n"))
    model = mslite.Model()
    model.build_from_file(made.path)
    assert model.get_inputs()[0].shape == [6, 1, 32, 32] and model.get_outputs()[0].shape == [6, 10]
    close(answer(made.path, images)[0], expected)


@pytest.mark.parametrize("without", [(), *((name,) for name in RULES), tuple(RULES)])
def test_fusions_do_not_change_answers_and_can_be_switched_off(lenet, tmp_path, without):
    path, images, expected = lenet
    made = convert(mslite.FmkType.MINDIR, path, str(tmp_path / "n"), without_fusions=without)
    assert not any(made.fusions[name] for name in without)
    close(answer(made.path, images)[0], expected)


def test_a_transpose_stands_at_the_border_alone(lenet, tmp_path):
    path, *_ = lenet
    model = read(convert(mslite.FmkType.MINDIR, path, str(tmp_path / "n")).path)
    kinds = [node.primitive.kind for node in model.nodes]
    images = ["Conv2DFusion", "MaxPoolFusion"] * 2
    assert kinds == ["Transpose", *images, "Reshape", *["MatMulFusion"] * 3]


def test_same_input_same_bytes(lenet, tmp_path):
    path, *_ = lenet
    made = [convert(mslite.FmkType.MINDIR, path, str(tmp_path / name)).path for name in "ab"]
    first, second = (open(m, "rb").read() for m in made)
    assert first == second


class Images(nn.Cell):
    """Groups, depthwise, strides, dilation, pads; pools; residuals, joined channels; activations."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, pad_mode="pad", padding=1, has_bias=True)
        self.depthwise = nn.Conv2d(8, 8, 3, pad_mode="same", group=8)
        self.grouped = nn.Conv2d(8, 12, (3, 1), pad_mode="pad", padding=(2, 1, 0, 1), group=4, has_bias=True)
        self.dilated = nn.Conv2d(8, 8, 3, dilation=2, pad_mode="same")
        self.max_pool = nn.MaxPool2d(3, 2)
        self.mean_pool = nn.AvgPool2d(2, 2)

    def construct(self, x):
        x = ops.relu6(self.stem(x))
        x = x + ops.hardswish(self.depthwise(x))
        y = ops.sigmoid(self.dilated(x)) * x
        z = ops.concat((self.mean_pool(x), self.mean_pool(y)), 1)
        return ops.softmax(self.max_pool(z), 1), ops.leaky_relu(self.grouped(x - y), 0.2), ops.tanh(x) / 2


def test_image_operators(tmp_path, write_mindir):
    ms.set_seed(9)
    net = Images()
    path = write_mindir(net, tmp_path / "images", (2, 3, 17, 20))
    x = np.random.default_rng(0).normal(size=(2, 3, 17, 20)).astype(np.float32)
    expected = [y.asnumpy() for y in net(ms.Tensor(x))]
    found = answer(convert(mslite.FmkType.MINDIR, path, str(tmp_path / "images")).path, x)
    assert len(found) == 3
    for y, want in zip(found, expected):
        close(y, want)


class Pyramid(nn.Cell):
    """Images of several sizes that are enlarged, added and joined."""

    def __init__(self):
        super().__init__()
        self.fine, self.coarse = nn.Conv2d(3, 6, 3, stride=2), nn.Conv2d(6, 6, 3, stride=2)
        self.end = nn.Conv2d(12, 2, 1)

    def construct(self, x):
        fine = self.fine(x)
        coarse = self.coarse(fine)
        for axis in (2, 3):  # each pixel twice, and in an order of its own
            coarse = ops.gather(coarse, ms.Tensor(np.arange(coarse.shape[axis]).repeat(2)), axis)
        shuffled = ops.gather(fine, ms.Tensor([5, 0, 3, 3, 1, 2]), 1)
        return self.end(ops.concat((fine + coarse, shuffled), 1))


def test_enlarged_images_keep_their_layout(tmp_path, write_mindir):
    ms.set_seed(2)
    net = Pyramid()
    path = write_mindir(net, tmp_path / "pyramid", (1, 3, 16, 24))
    x = np.random.default_rng(3).normal(size=(1, 3, 16, 24)).astype(np.float32)
    made = convert(mslite.FmkType.MINDIR, path, str(tmp_path / "pyramid"))
    assert made.transposes[1] == 2  # at the borders
    close(answer(made.path, x)[0], net(ms.Tensor(x)).asnumpy())


class Products(nn.Cell):
    """Products of constants and of values, broadcast arithmetic, outputs that are inputs or shared."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(7, 5, activation="relu")
        rng = np.random.default_rng(1)
        self.weight = ms.Parameter(ms.Tensor(rng.normal(size=(7, 4)), ms.float32), "weight")
        self.row = ms.Parameter(ms.Tensor(rng.normal(size=4), ms.float32), "row")

    def construct(self, x, y):
        a = self.dense(x)
        b = ops.matmul(x, self.weight) * self.row
        scores = ops.bmm(y, y.swapaxes(1, 2))
        return a, b, scores, x, ops.elu(b), a


def test_products_and_odd_outputs(tmp_path, write_mindir):
    ms.set_seed(2)
    net = Products()
    path = write_mindir(net, tmp_path / "p", (3, 7), (2, 4, 6))
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(3, 7)).astype(np.float32), rng.normal(size=(2, 4, 6)).astype(np.float32)
    made = convert(mslite.FmkType.MINDIR, path, str(tmp_path / "p"))
    for found, want in zip(answer(made.path, x, y), net(ms.Tensor(x), ms.Tensor(y))):
        close(found, want.asnumpy())


# ---- what cannot be done------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        (dict(model_file="nowhere.mindir"), Code.INPUT_PARAM_INVALID, "nowhere.mindir does not exist"),
        (dict(output_file="no/where"), Code.INPUT_PARAM_INVALID, "folder of the output file, .*, does not"),
        (dict(framework=mslite.FmkType.OM), Code.NOT_SUPPORT, "models of OM cannot be imported yet"),
        (dict(input_shapes={"y": [1]}), Code.INPUT_PARAM_INVALID, "inputShape names 'y', but the inputs are"),
        (dict(input_shapes={"x": [1, 2]}), Code.INPUT_PARAM_INVALID, "2 dimensions, but it has 4"),
        (dict(input_shapes={"x": [2, 1, 3, 3]}), Code.NOT_SUPPORT, "window"),
        (dict(without_fusions=["Nothing"]), Code.INPUT_PARAM_INVALID, "no fusion is called 'Nothing'"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_is_told_and_leaves_nothing(lenet, tmp_path, change, code, reason):
    out = tmp_path / "out.ms"
    how = dict(framework=mslite.FmkType.MINDIR, model_file=lenet[0], output_file=str(out)) | change
    with pytest.raises(ConversionError, match=reason) as caught:
        convert(**how)
    assert caught.value.code == code and not list(tmp_path.iterdir())


class Strange(nn.Cell):
    def construct(self, x):
        return ops.erfinv(x) + ops.lgamma(x)


def test_all_ops_without_an_operator_are_listed(tmp_path, write_mindir):
    path = write_mindir(Strange(), tmp_path / "strange", (3,))
    with pytest.raises(ConversionError, match="erfinv, lgamma") as caught:
        convert(mslite.FmkType.MINDIR, path, str(tmp_path / "strange"))
    assert caught.value.code == Code.NOT_FIND_OP


def test_a_damaged_source_is_told(tmp_path):
    broken = tmp_path / "broken.mindir"
    broken.write_bytes(b"no model")
    with pytest.raises(ConversionError) as caught:
        convert(mslite.FmkType.MINDIR, str(broken), str(tmp_path / "out"))
    assert caught.value.code == Code.GRAPH_FILE_ERROR and str(broken) in str(caught.value)
