"""`Model` and `Tensor` as a user meets them: types, errors, what belongs to whom."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite import runtime
from mycelia_lite.converter import convert
from mycelia_lite.format import Table, read, write


@pytest.fixture(scope="module")
def model_file(lenet, tmp_path_factory):
    return convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path_factory.mktemp("ms") / "lenet")).path


@pytest.fixture
def model(model_file):
    made = mslite.Model()
    made.build_from_file(model_file)
    return made


def resized(model, count=2):
    model.resize(model.get_inputs(), [[count, 1, 32, 32]])
    return model.get_inputs()[0]


def test_importing_it_needs_numpy_alone():
    code = "import sys, mycelia_lite; print([m for m in ('mycelia', 'typer', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_an_open_size_waits_for_resize(model):
    (x,) = model.get_inputs()
    assert (x.shape, x.element_num, x.data_size) == ([-1, 1, 32, 32], -1, 0)
    with pytest.raises(RuntimeError, match=r"open sizes.*negative dimension.*\(code -501\)"):
        model.predict(model.get_inputs())


def test_a_size_below_zero_is_told(model):
    with pytest.raises(RuntimeError, match=r"input 'x' cannot be resized to a size of -1.*\(code -3\)"):
        model.resize(model.get_inputs(), [[-1, 1, 32, 32]])


def test_known_sizes_stay_where_a_node_holds_for_them_alone(model):
    with pytest.raises(RuntimeError, match=r"size 32 of axis 2, of which node .*Flatten.* made constants"):
        model.resize(model.get_inputs(), [[2, 1, 34, 32]])


def test_a_failed_resize_leaves_the_model_as_it_was(model_file, tmp_path, lenet):
    file = read(model_file).copy()
    file.fixedBy = ""  # so that planning is what fails
    write(tmp_path / "lenet.ms", file)
    model = mslite.Model()
    model.build_from_file(str(tmp_path / "lenet.ms"))
    x = resized(model)
    for dims, reason in (
        ([[2, 1, 32]], "has 4 dimensions, but 3 sizes were given"),
        ([[2, 2, 32, 32]], "do not fit"),
        ([[2, 1, 3, 3]], "does not fit the padded size"),
        ([[-1, 1, 32, 32]], "cannot be resized to a size of -1"),
        ([[2**40, 1, 2**20, 32]], "too large"),
        ([], "0 shapes were given"),
    ):
        with pytest.raises(RuntimeError, match=reason):
            model.resize(model.get_inputs(), dims)
    assert x.shape == [2, 1, 32, 32]
    x.set_data_from_numpy(lenet[1][:2])
    found = model.predict([x])[0].get_data_to_numpy()
    assert np.abs(found - lenet[2][:2]).max() < 1e-5


def test_inputs_are_checked(model):
    x = resized(model)
    with pytest.raises(RuntimeError, match="has dtype float32, but the array float64"):
        x.set_data_from_numpy(np.zeros((2, 1, 32, 32)))
    with pytest.raises(RuntimeError, match="has 8192 bytes, but the array of shape"):
        x.set_data_from_numpy(np.zeros((1, 1, 32, 32), np.float32))
    with pytest.raises(TypeError, match="array must be a numpy.ndarray, but got list"):
        x.set_data_from_numpy([1.0])
    with pytest.raises(RuntimeError, match="0 inputs were given, the model has 1"):
        model.predict([])
    other = mslite.Tensor(shape=[1, 1, 32, 32], dtype=mslite.DataType.FLOAT32)
    with pytest.raises(RuntimeError, match=r"must be f32\[2, 1, 32, 32\], but is f32\[1, 1, 32, 32\]"):
        model.predict([other])
    with pytest.raises(TypeError, match=r"inputs\[0\] must be a Tensor, but got ndarray"):
        model.predict([np.zeros(3)])


def test_outputs_are_not_read_before_the_model_ran(model):
    resized(model)
    with pytest.raises(RuntimeError, match="has not run since it was built or resized"):
        model.get_outputs()[0].get_data_to_numpy()
    model.predict(model.get_inputs())
    model.get_outputs()[0].get_data_to_numpy()
    resized(model, 3)
    with pytest.raises(RuntimeError, match="has not run"):
        model.get_outputs()[0].get_data_to_numpy()


def test_tensors_made_by_hand_are_inputs_and_outputs_too(model, lenet):
    resized(model)
    given = mslite.Tensor(shape=[2, 1, 32, 32], dtype=mslite.DataType.FLOAT32)
    given.set_data_from_numpy(lenet[1][:2])
    result = mslite.Tensor(model.get_outputs()[0])
    made = model.predict([given], [result])[0].get_data_to_numpy()
    assert np.array_equal(result.get_data_to_numpy(), made)
    assert np.abs(made - lenet[2][:2]).max() < 1e-5


def test_tensors_keep_their_model_alive(model_file, lenet):
    model = mslite.Model()
    model.build_from_file(model_file)
    x = resized(model)
    x.set_data_from_numpy(lenet[1][:2])
    (y,) = model.predict([x])
    del model, x
    gc.collect()
    assert y.get_data_to_numpy().shape == (2, 10)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_do_not_change_answers(model_file, lenet, threads):
    context = mslite.Context()
    context.cpu.thread_num = threads
    model = mslite.Model()
    model.build_from_file(model_file, mslite.ModelType.MINDIR_LITE, context)
    x = resized(model, 6)
    x.set_data_from_numpy(lenet[1])
    assert np.abs(model.predict([x])[0].get_data_to_numpy() - lenet[2]).max() < 1e-5


def test_wrong_arguments_are_named(tmp_path):
    context, model = mslite.Context(), mslite.Model()
    for value, error in ((0, ValueError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match="thread_num must be"):
            context.cpu.thread_num = value
    with pytest.raises(ValueError, match="target must be"):
        context.target = ["gpu"]
    with pytest.raises(TypeError, match="model_path must be a path, but got int"):
        model.build_from_file(3)
    with pytest.raises(RuntimeError, match="cannot open '/no/such.ms'"):
        model.build_from_file("/no/such.ms")
    with pytest.raises(TypeError, match="dtype must be a DataType"):
        mslite.Tensor(shape=[1], dtype=43)
    with pytest.raises(RuntimeError, match="negative size or is too large"):
        mslite.Tensor(shape=[-1], dtype=mslite.DataType.INT8)
    (tmp_path / "text.ms").write_text("this is no model")
    with pytest.raises(RuntimeError, match="the identifier MSL2 is missing"):
        model.build_from_file(tmp_path / "text.ms")


def test_a_model_is_built_once(model, model_file):
    with pytest.raises(RuntimeError, match="is built already"):
        model.build_from_file(model_file)


def test_a_file_of_the_real_converter_answers_as_in_the_real_runtime():
    """`convnet.ms` and `convnet_answer.npz` are MindSpore Lite 2.0.0's, see fixtures/README.md."""
    fixtures = Path(__file__).parents[1] / "fixtures"
    made = mslite.Model()
    made.build_from_file(fixtures / "convnet.ms")
    answer = np.load(fixtures / "convnet_answer.npz")
    (x,) = made.get_inputs()
    assert (x.name, x.shape) == ("x", [1, 16, 16, 3])
    x.set_data_from_numpy(answer["x"])
    (y,) = made.predict([x])
    assert np.abs(y.get_data_to_numpy() - answer["y"]).max() < 1e-6


def test_operators_without_a_kernel_are_all_named(tmp_path):
    tensors = [Table("Tensor", name=name, dataType="FLOAT32", dims=[4], nodeType=2) for name in "xyz"]
    nodes = [
        Table("CNode", name=kind.lower(), primitive=Table(kind), inputIndex=[i], outputIndex=[i + 1])
        for i, kind in enumerate(("SkipGram", "Mfcc"))
    ]
    write(
        str(tmp_path / "n.ms"),
        Table("MetaGraph", nodes=nodes, allTensors=tensors, inputIndex=[0], outputIndex=[2]),
    )
    with pytest.raises(RuntimeError, match=r"SkipGram \(node 'skipgram'\).*Mfcc.*\(code -300\)"):
        mslite.Model().build_from_file(tmp_path / "n.ms")


def test_a_tensor_gets_its_shape_and_type_later(model_file):
    """As programs for MindSpore Lite make them."""
    made = mslite.Tensor()
    assert (made.shape, made.dtype) == ([], mslite.DataType.FLOAT32)
    made.dtype, made.shape = mslite.DataType.INT16, [2, 3]
    x = np.arange(6, dtype=np.int16).reshape(2, 3)
    made.set_data_from_numpy(x)
    assert np.array_equal(made.get_data_to_numpy(), x)
    with pytest.raises(RuntimeError, match="negative size or is too large"):
        made.shape = [-1]
    assert np.array_equal(made.get_data_to_numpy(), x)
    with pytest.raises(TypeError, match="dtype must be a DataType, but got 'int16'"):
        made.dtype = "int16"
    model = mslite.Model()
    model.build_from_file(model_file)
    (own,) = model.get_inputs()
    shape = own.shape
    with pytest.raises(RuntimeError, match="shape"):
        own.shape = [1, 2]
    assert own.shape == shape


@pytest.mark.parametrize("size", [1 << 64, (1 << 64) + 1, -(1 << 63) - 1])
def test_sizes_beyond_64_bits_do_not_wrap_around(size, model_file):
    model = mslite.Model()
    model.build_from_file(model_file)
    with pytest.raises(ValueError, match=rf"dims\[0\] must have sizes of 64 bits, but got {size}"):
        model.resize(model.get_inputs(), [[size, 1, 32, 32]])
    with pytest.raises(ValueError, match=f"shape must have sizes of 64 bits, but got {size}"):
        mslite.Tensor(shape=[size])


def test_what_is_no_list_of_tensors_is_named(model_file):
    model = mslite.Model()
    model.build_from_file(model_file)
    inputs = model.get_inputs()
    for given, kind in ((None, "NoneType"), (inputs[0], "Tensor"), (iter(inputs), "list_iterator")):
        told = f"inputs must be a list of Tensors, but got {kind}"
        with pytest.raises(TypeError, match=told):
            model.predict(given)
        with pytest.raises(TypeError, match=told):
            model.resize(given, [[1, 1, 32, 32]])
    for given, told in (
        (None, "dims must be a list of shapes, but got NoneType"),
        ([5], r"dims\[0\] must be a list"),
    ):
        with pytest.raises(TypeError, match=told):
            model.resize(inputs, given)
    with pytest.raises(TypeError, match="after must be a function, but got int"):
        model.predict(inputs, None, None, 5)
    with pytest.raises(TypeError, match="key must be a text, but got int"):
        model.get_model_info(3)


@pytest.mark.parametrize("built", [True, False], ids=["extension", "ctypes"])
def test_a_run_is_the_same_without_the_extension(model_file, monkeypatch, built):
    if built:
        assert runtime._extension() is not None, "the environment has Python's headers"
    else:
        monkeypatch.setattr(runtime, "_extension", lambda: None)
    model = mslite.Model()
    model.build_from_file(model_file)
    with pytest.raises(RuntimeError, match=r"open sizes.*\(code -501\)"):
        model.predict(model.get_inputs())
    x = resized(model)
    x.set_data_from_numpy(np.ones(x.shape, np.float32))
    (own,) = model.predict([x])
    expected = own.get_data_to_numpy()
    given = mslite.Tensor(x)
    given.set_data_from_numpy(np.ones(x.shape, np.float32))
    for inputs in ([given], (x,), [x]):  # copied; not a list; the model's own
        x.set_data_from_numpy(np.full(x.shape, inputs[0] is x, np.float32))
        assert np.array_equal(model.predict(inputs)[0].get_data_to_numpy(), expected)
    run = runtime.bound("MSModelRun", model._handle)
    assert run() == 0
    del model, own, x, given, inputs
    gc.collect()
    assert run() != 0 and "freed" in runtime.reason()
