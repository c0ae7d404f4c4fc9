"""ONNX files that core writes are read by Lite's importer and give the same numbers."""

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import Tensor, nn
from mycelia.ir import evaluate
from mycelia.testing.samples import samples_of
from mycelia_lite.converter import ConversionError
from mycelia_lite.converter.importers import onnx

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "zoo"))
sys.path.insert(0, str(Path(__file__).parent))
from test_random_layers import network
from zoo import ZOO

OPS = """
    abs add argmax atan2 avg_pool batch_matmul batch_norm_infer bias_add broadcast_to cast celu clip
    concat conv conv_input_grad cosh cumsum dense div elu erf erfc exp expand_dims expm1 flip
    floor_div floor_mod gather gather_d gather_nd gelu group_norm hardsigmoid hardswish hypot
    index_add isfinite l2_norm layer_norm leaky_relu log1p log_softmax logaddexp logical_and lrn
    masked_fill mat_mul max_pool max_with_index maximum mean mish nan_to_num neg one_hot
    pad_constant pow prelu prod reduce_max reshape rms_norm roll round rsqrt scatter_elements
    scatter_nd selu sigmoid sign silu sinc smooth_l1 softmax softplus softshrink sort split squeeze
    stack strided_assign strided_slice sum tensor_scatter tile topk transpose tril truncate_div
    trunc unstack where xlogy
""".split()


def exported(tmp_path, net, *inputs, **options):
    ms.export(net, *inputs, file_name=str(tmp_path / "net"), file_format="ONNX", **options)
    return str(tmp_path / "net.onnx")


def read_back(path, arrays):
    source = onnx.load(path, {})
    return [t.asnumpy() for t in evaluate(source.graph, [Tensor(a) for a in arrays])]


def zoo(name):
    entry = ZOO[name]
    ms.set_seed(1)
    return entry.make().set_train(False), entry.inputs(np.random.default_rng(0))


@pytest.mark.parametrize("name", sorted(ZOO))
def test_networks_of_the_zoo_come_back(tmp_path, name):
    net, arrays = zoo(name)
    (found,) = read_back(exported(tmp_path, net, *map(Tensor, arrays)), arrays)
    np.testing.assert_allclose(found, net(*map(Tensor, arrays)).asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["lenet", "resnet18", "mobilenet_v3", "unet", "bert"])
def test_one_file_takes_any_batch(tmp_path, name):
    net, arrays = zoo(name)
    path = exported(
        tmp_path, net, *(Tensor(shape=[None, *a.shape[1:]], dtype=Tensor(a).dtype) for a in arrays)
    )
    for batch in (1, 3):
        given = [np.concatenate([a] * 3)[:batch] for a in arrays]
        (found,) = read_back(path, given)
        np.testing.assert_allclose(found, net(*map(Tensor, given)).asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["lenet", "resnet18", "mobilenet_v2", "bert", "lstm"])
def test_networks_run_on_the_runtime_of_lite(tmp_path, name):
    net, arrays = zoo(name)
    path = exported(tmp_path, net, *map(Tensor, arrays))
    model = mslite.Model()
    model.build_from_file(mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "lite")).path)
    inputs = model.get_inputs()
    for given, array in zip(inputs, arrays, strict=True):
        given.set_data_from_numpy(array)
    (found,) = model.predict(inputs)
    expected = net(*map(Tensor, arrays)).asnumpy()
    np.testing.assert_allclose(
        found.get_data_to_numpy(), expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max()
    )


@pytest.mark.fuzz(12)
def test_random_layers_come_back(tmp_path, seed):
    net, x, _ = network(seed)
    net.set_train(False)
    (found,) = read_back(exported(tmp_path, net, x), [x.asnumpy()])
    expected = net(x).asnumpy()
    np.testing.assert_allclose(
        found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max(), err_msg=f"{net}"
    )


class Op(nn.Cell):
    """One call of an op with what is no tensor held fast."""

    def __init__(self, sample):
        super().__init__()
        self.sample = sample

    def construct(self, *tensors):
        given = iter(tensors)
        arguments = [
            [next(given) for _ in a] if isinstance(a, list) else next(given) if isinstance(a, Tensor) else a
            for a in self.sample.tensors()
        ]
        return self.sample.op(*arguments, **self.sample.attrs)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("opset", [17, 20])
def test_samples_of_ops_come_back(tmp_path, name, opset):
    compared = 0
    for sample in list(samples_of(ms.ops.define.find(name).definition))[:5]:
        tensors = [t for a in sample.tensors() for t in (a if isinstance(a, list) else [a])]
        tensors = [t for t in tensors if isinstance(t, Tensor)]
        expected = [y for y in sample.call() if y is not None]
        if any(t.dtype.is_complex or t.dtype is ms.bfloat16 for t in (*tensors, *expected)):
            continue
        arrays = [t.asnumpy() for t in tensors]
        try:
            path = exported(tmp_path, Op(sample), *tensors, opset_version=opset)
            found = read_back(path, arrays)
        except (ConversionError, ValueError) as error:
            assert "ONNX has no operator" in str(error) or isinstance(error, ConversionError), error
            continue
        compared += 1
        for got, want in zip(found, expected, strict=True):
            want = want.asnumpy()
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            if want.dtype.kind in "iub":
                np.testing.assert_array_equal(got, want)
            else:
                rounding = 1e-2 if want.dtype == np.float16 else sample.options.get("_rtol", 2e-5)
                np.testing.assert_allclose(got, want, rtol=rounding, atol=rounding)
    assert compared
