"""Callbacks, values inside of a model, weights, configuration, threads, workers."""

from __future__ import annotations

import ctypes
import gc
import os
import threading

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite import runtime
from mycelia_lite.converter import convert
from mycelia_lite.format import read, write


@pytest.fixture(scope="module")
def model_file(lenet, tmp_path_factory):
    return convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path_factory.mktemp("ms") / "lenet")).path


def built(model_file, context=None, count=2):
    model = mslite.Model()
    model.build_from_file(model_file, mslite.ModelType.MINDIR_LITE, context)
    model.resize(model.get_inputs(), [[count, 1, 32, 32]])
    return model


def answer(model, images):
    model.get_inputs()[0].set_data_from_numpy(images)
    return model.predict(model.get_inputs())[0].get_data_to_numpy()


def test_callbacks_see_every_node_with_its_values(model_file, lenet):
    model, seen, before = built(model_file), [], []
    model.get_inputs()[0].set_data_from_numpy(lenet[1][:2])

    def note(inputs, outputs, name, kind):
        seen.append((name, kind, [t.get_data_to_numpy() for t in inputs], outputs[0].get_data_to_numpy()))
        return True

    def unmade(inputs, outputs, name, kind):
        before.append(name)
        with pytest.raises(RuntimeError, match="has no elements"):
            outputs[0].get_data_to_numpy()
        return True

    model.predict(model.get_inputs(), None, unmade, note)
    kinds = [kind for _, kind, _, _ in seen]
    assert kinds.count("Conv2DFusion") == 2 and len({name for name, _, _, _ in seen}) == len(seen)
    assert before == [name for name, _, _, _ in seen]
    values = {t.tobytes() for _, _, _, t in seen} | {lenet[1][:2].tobytes()}
    for _, _, inputs, _ in seen:  # each reads what was made before it, in its layout
        assert inputs[0].tobytes() in values
    assert np.abs(seen[-1][3] - lenet[2][:2]).max() < 1e-5
    profile = model.profile(2)
    assert [name for name, *_ in profile] == [name for name, *_ in seen]
    assert {calls for *_, calls in profile} <= {0, 2} and sum(taken for *_, taken, _ in profile) > 0


def test_a_callback_ends_the_run_by_false_or_by_raising(model_file, lenet):
    model, count = built(model_file), []
    answer(model, lenet[1][:2])
    with pytest.raises(RuntimeError, match=r"callback before node '.*' ended the run \(code -1\)"):
        model.predict(model.get_inputs(), before=lambda *node: count.append(1) or len(count) < 3)
    assert len(count) == 3
    with pytest.raises(RuntimeError, match="has not run"):
        model.get_outputs()[0].get_data_to_numpy()
    with pytest.raises(ZeroDivisionError):
        model.predict(model.get_inputs(), after=lambda *node: 1 / 0)
    assert np.abs(answer(model, lenet[1][:2]) - lenet[2][:2]).max() < 1e-5


def test_a_running_model_is_not_entered_again(model_file):
    model, codes = built(model_file), []

    def again(*node):
        for call in (
            lambda: model.predict(model.get_inputs()),
            lambda: model.resize(model.get_inputs(), [[1, 1, 32, 32]]),
        ):
            with pytest.raises(RuntimeError) as error:
                call()
            codes.append(str(error.value))
        return True

    model.predict(model.get_inputs(), before=again)
    assert codes and all("is running" in text and "(code -102)" in text for text in codes)


def test_values_inside_of_a_model_are_kept_on_request(model_file, lenet):
    model, seen = built(model_file), {}
    model.get_inputs()[0].set_data_from_numpy(lenet[1][:2])

    def note(inputs, outputs, name, kind):
        seen[name] = outputs[0].get_data_to_numpy()
        return True

    model.predict(model.get_inputs(), after=note)
    names = list(seen)
    kept = {name: model.get_outputs_by_node_name(name)[0] for name in names[:3]}
    with pytest.raises(RuntimeError, match="has no elements"):
        kept[names[0]].get_data_to_numpy()
    model.predict(model.get_inputs())
    for name, tensor in kept.items():
        assert np.array_equal(tensor.get_data_to_numpy(), seen[name])
    with pytest.raises(RuntimeError, match="no node 'nobody'"):
        model.get_outputs_by_node_name("nobody")


def test_updated_weights_are_computed_with(model_file, lenet, tmp_path):
    model, file = built(model_file), read(model_file)
    first = answer(model, lenet[1][:2])
    weights = []
    for t in file.allTensors:
        if t.nodeType != 0 or t.dataType.name != "FLOAT32":
            continue
        elements = 1.5 * np.frombuffer(t.data, np.float32)
        t.data = elements.tobytes()
        weights.append(mslite.Tensor(shape=list(t.dims), dtype=mslite.DataType.FLOAT32))
        weights[-1].name = t.name
        weights[-1].set_data_from_numpy(elements.reshape(list(t.dims)))
    write(str(tmp_path / "changed.ms"), file)
    expected = answer(built(tmp_path / "changed.ms"), lenet[1][:2])
    assert len(weights) == 8 and not np.allclose(first, expected)
    model.update_weights(weights)
    assert np.array_equal(answer(model, lenet[1][:2]), expected)
    weights[0].name = "nobody"
    with pytest.raises(RuntimeError, match=r"no weight 'nobody'.*-3"):
        model.update_weights(weights[:1])
    wrong = mslite.Tensor(shape=[3], dtype=mslite.DataType.FLOAT32)
    wrong.name = weights[1].name
    with pytest.raises(RuntimeError, match=r"must be f32\[.*\], but is f32\[3\]"):
        model.update_weights([wrong])
    assert np.array_equal(answer(model, lenet[1][:2]), expected)
    other = mslite.Model()
    other.build_from_model(model)
    with pytest.raises(RuntimeError, match="shared with other models"):
        other.update_weights(weights[1:])


def test_configurations_are_checked(model_file, tmp_path):
    nodes = [name for name, *_ in built(model_file).profile(0)]
    (tmp_path / "good.cfg").write_text(f"# plan\n[execution_plan]\n{nodes[0]}=data_type:float16\n")
    model = mslite.Model()
    model.build_from_file(model_file, config_path=str(tmp_path / "good.cfg"))
    assert model.get_model_info("precision").startswith("float32: 16-bit arithmetic was asked for 1 nodes")
    assert built(model_file).get_model_info("precision") == "float32"
    with pytest.raises(RuntimeError, match="is built already"):
        model.update_config("execution_plan", {nodes[0]: "data_type:float32"})
    for text, reason in (
        (
            "[execution_plan]\nnobody=data_type:float16\n",
            "names node 'nobody', which the model does not have",
        ),
        (f"[execution_plan]\n{nodes[0]}=data_type:int8\n", "line 2.*must be data_type:float16 or"),
        ("[weather]\nsun=1\n", r"\[weather\] sun is not known"),
        ("sun=1\n", r"line 1: expected \[section\]"),
        ("[common]\nenable_pre_inference=perhaps\n", "must be true or false"),
        ("[common]\naccuracy=strict\n", "accuracy must be normal or fast, but got 'strict'"),
    ):
        (tmp_path / "bad.cfg").write_text(text)
        with pytest.raises(RuntimeError, match=reason):
            mslite.Model().build_from_file(model_file, config_path=str(tmp_path / "bad.cfg"))
    with pytest.raises(RuntimeError, match="cannot read the configuration '/no/such'"):
        mslite.Model().build_from_file(model_file, config_path="/no/such")
    with pytest.raises(RuntimeError, match="no information 'colour'"):
        model.get_model_info("colour")


def test_handles_that_were_freed_are_refused(model_file):
    library = runtime.library()
    model = built(model_file)
    handle, tensor = model._handle, model.get_inputs()[0]._handle
    array = runtime.TensorArray.of([tensor])
    assert library.MSTensorGetDataSize(tensor) == 8192
    library.MSModelDestroy(ctypes.byref(runtime.Handle(handle)))
    assert library.MSModelPredictObserved(handle, array, None, None, None, None) == -2
    assert b"was freed" in library.MSGetLastError()
    assert library.MSTensorGetMutableData(tensor) is None and library.MSTensorGetDataSize(tensor) == 0
    assert library.MSModelPredictObserved(tensor, array, None, None, None, None) == -2  # of another kind
    other = built(model_file)
    assert library.MSModelPredictObserved(other._handle, array, None, None, None, None) == -2
    assert b"input 0 is NULL or was freed" in library.MSGetLastError()
    library.MSModelDestroy(ctypes.byref(runtime.Handle(handle)))  # once more does nothing


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads are bound on Linux")
def test_threads_run_on_the_cores_of_the_list(model_file):
    context, allowed, cores = mslite.Context(), os.sched_getaffinity(0), []
    context.cpu.thread_num, context.cpu.thread_affinity_core_list = 2, [max(allowed)]
    model = built(model_file, context)
    model.predict(model.get_inputs(), before=lambda *node: cores.append(os.sched_getaffinity(0)) or True)
    assert all(seen == {max(allowed)} for seen in cores) and os.sched_getaffinity(0) == allowed
    context.cpu.thread_affinity_core_list = [4000]
    with pytest.raises(RuntimeError, match="names core 4000, which this process may not use"):
        built(model_file, context)
    context.cpu.thread_affinity_core_list, context.cpu.thread_affinity_mode = [0], 1
    context.cpu.shared_thread_pool = True
    with pytest.raises(RuntimeError, match="cannot be bound"):
        built(model_file, context)


@pytest.mark.parametrize("shared", [False, True])
def test_models_run_at_the_same_time(model_file, lenet, shared):
    context, wrong = mslite.Context(), []
    context.cpu.thread_num, context.cpu.shared_thread_pool = 2, shared

    def work():
        model = built(model_file, context, 6)
        for _ in range(20):
            wrong.append(np.abs(answer(model, lenet[1]) - lenet[2]).max() > 1e-5)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(wrong) == 60 and not any(wrong)


def test_a_runner_serves_threads_with_other_shapes(model_file, lenet):
    context, wrong = mslite.Context(), []
    context.parallel.workers_num = 2
    runner = mslite.ModelParallelRunner()
    runner.build_from_file(model_file, context=context)
    assert runner.get_inputs()[0].shape == [-1, 1, 32, 32] and runner.get_outputs()[0].shape[-1] == 10

    def work(count):
        given = mslite.Tensor(shape=[count, 1, 32, 32], dtype=mslite.DataType.FLOAT32)
        given.set_data_from_numpy(lenet[1][:count])
        for _ in range(20):
            (made,) = runner.predict([given])
            wrong.append(np.abs(made.get_data_to_numpy() - lenet[2][:count]).max() > 1e-5)

    threads = [threading.Thread(target=work, args=(count,)) for count in (1, 2, 6, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(wrong) == 80 and not any(wrong)
    bad = mslite.Tensor(shape=[1, 3, 32, 32], dtype=mslite.DataType.FLOAT32)
    with pytest.raises(RuntimeError, match=r"must be f32\[-1, 1, 32, 32\], but is f32\[1, 3, 32, 32\].*-101"):
        runner.predict([bad])
    with pytest.raises(RuntimeError, match="0 inputs were given, the model has 1"):
        runner.predict([])
    with pytest.raises(RuntimeError, match="is not initialized"):
        mslite.ModelParallelRunner().predict([])


def test_models_of_a_group_share_what_is_packed(model_file, lenet):
    group, models = mslite.ModelGroup(), [mslite.Model() for _ in range(3)]
    group.add_model(models)
    for model in models:
        model.build_from_file(model_file)
        model.resize(model.get_inputs(), [[2, 1, 32, 32]])
    packed = {model.get_model_info("packed_bytes") for model in models}
    alone = built(model_file).get_model_info("packed_bytes")
    assert packed == {alone}
    del models[0], model
    gc.collect()
    assert np.abs(answer(models[0], lenet[1][:2]) - lenet[2][:2]).max() < 1e-5
    with pytest.raises(TypeError, match="flag must be a ModelGroupFlag, but got int"):
        mslite.ModelGroup(1)


class Branches(nn.Cell):
    """Chains that do not wait for one another, of several lengths."""

    def __init__(self):
        super().__init__()
        self.convs = nn.CellList([nn.Conv2d(3, 4, 3, has_bias=True) for _ in range(4)])
        self.tail = nn.Conv2d(16, 3, 1)

    def construct(self, x):
        parts = []
        for i, conv in enumerate(self.convs):
            y = conv(x)
            for _ in range(i):
                y = ops.tanh(y) * 2 - y
            parts.append(y)
        return self.tail(ops.concat(parts, axis=1)), parts[1] + parts[3]


@pytest.mark.parametrize("lanes", [2, 3])
def test_independent_nodes_run_at_the_same_time(write_mindir, tmp_path, lanes):
    ms.set_seed(1)
    net = Branches()
    path = convert(
        mslite.FmkType.MINDIR, write_mindir(net, tmp_path / "net", (2, 3, 9, 9)), str(tmp_path / "net")
    ).path
    x = np.random.default_rng(3).normal(size=(2, 3, 9, 9)).astype(np.float32)
    expected = [y.asnumpy() for y in net(ms.Tensor(x))]
    context, one = mslite.Context(), mslite.Model()
    one.build_from_file(path)
    context.cpu.thread_num = context.cpu.inter_op_parallel_num = lanes
    model = mslite.Model()
    model.build_from_file(path, context=context)
    model.get_inputs()[0].set_data_from_numpy(x)
    for _ in range(50):
        for made, wanted in zip(model.predict(model.get_inputs()), expected):
            assert np.abs(made.get_data_to_numpy() - wanted).max() < 1e-5
    # What may be alive at the same time does not share memory.
    assert int(model.get_model_info("arena_bytes")) > int(one.get_model_info("arena_bytes"))
    seen = []
    model.predict(model.get_inputs(), before=lambda inputs, outputs, name, kind: seen.append(name) or True)
    assert len(seen) == len(model.profile(1))
    for made, wanted in zip(model.get_outputs(), expected):
        assert np.abs(made.get_data_to_numpy() - wanted).max() < 1e-5
