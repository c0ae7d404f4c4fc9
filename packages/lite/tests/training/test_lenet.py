"""LeNet learns in the runtime as in core: losses, weights by name, files, gradients."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn
from mycelia_lite.train import AccuracyMetrics, CkptSaver, LRScheduler, TrainCallBack, multiplicative

from .steps import LeNet, converted, digits, loaded, step_of, take

BATCHES = digits(50)


def descent(parameters):
    return nn.SGD(parameters, 0.05)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return converted(step_of(LeNet, descent), BATCHES[0], tmp_path_factory.mktemp("lenet"))


def arrays(tensors):
    return {t.name: t.get_data_to_numpy() for t in tensors}


def test_losses_of_fifty_steps_and_weights_are_those_of_core(path):
    model, step = loaded(path), step_of(LeNet, descent)
    for batch in BATCHES:
        expected = float(step(*map(ms.Tensor, batch)).asnumpy())
        assert abs(float(take(model, batch)) - expected) <= 1e-5
    assert float(take(model, BATCHES[0])) < 0.5  # it learned something
    found = arrays(model.get_trainable_params())
    step(*map(ms.Tensor, BATCHES[0]))
    assert set(found) == {p.name for p in step.network.trainable_params()}
    for parameter in step.network.trainable_params():
        np.testing.assert_allclose(found[parameter.name], parameter.asnumpy(), atol=1e-5)


def test_it_answers_first_and_learns_when_it_is_told(path):
    model = loaded(path, train=False)
    before = arrays(model.get_feature_maps())
    answers = take(model, BATCHES[0])
    assert answers.shape == (16, 10) and not model.get_train_mode()
    np.testing.assert_array_equal(model.predict(model.get_inputs())[0].get_data_to_numpy(), answers)
    step = step_of(LeNet, descent)
    expected = step.network.backbone_network(ms.Tensor(BATCHES[0][0])).asnumpy()
    np.testing.assert_allclose(answers, expected, atol=1e-5)
    for name, array in arrays(model.get_feature_maps()).items():
        np.testing.assert_array_equal(array, before[name])
    model.set_train_mode(True)
    assert [t.name for t in model.get_outputs()] == ["loss"]
    with pytest.raises(RuntimeError, match="in training"):
        model.predict(model.get_inputs())
    take(model, BATCHES[0])
    assert not np.array_equal(before["fc3.weight"], arrays(model.get_feature_maps())["fc3.weight"])


def test_the_learning_rate_is_read_and_set(path):
    model = loaded(path)
    assert model.get_learning_rate() == pytest.approx(0.05)
    model.set_learning_rate(0)
    before = arrays(model.get_trainable_params())
    take(model, BATCHES[0])
    for name, array in arrays(model.get_trainable_params()).items():
        np.testing.assert_array_equal(array, before[name])
    with pytest.raises(RuntimeError, match="from 0 on"):
        model.set_learning_rate(-1)
    with pytest.raises(TypeError, match="learning_rate"):
        model.set_learning_rate("fast")


def test_a_training_goes_on_from_its_file_bit_by_bit(path, tmp_path):
    whole, first = loaded(path), loaded(path)
    for batch in BATCHES[:6]:
        take(whole, batch)
    for batch in BATCHES[:3]:
        take(first, batch)
    first.export(tmp_path / "half.ms", export_inference_only=False)
    second = loaded(str(tmp_path / "half.ms"))
    for batch in BATCHES[3:6]:
        take(second, batch)
    for get in (mslite.Model.get_feature_maps, mslite.Model.get_optimizer_params):
        found, expected = arrays(get(second)), arrays(get(whole))
        assert found.keys() == expected.keys() and found
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("kind", ["NO_QUANT", "WEIGHT_QUANT"])
def test_what_it_learned_becomes_a_model_for_inference(path, tmp_path, kind):
    model = loaded(path)
    for batch in BATCHES[:10]:
        take(model, batch)
    file = str(tmp_path / "answers.ms")
    model.export(file, mslite.QuantizationType[kind])
    model.set_train_mode(False)
    expected = take(model, BATCHES[0])
    other = mslite.Model()
    other.build_from_file(file)
    (given,) = other.get_inputs()
    given.set_data_from_numpy(BATCHES[0][0])
    found = other.predict([given])[0].get_data_to_numpy()
    near = 1e-5 if kind == "NO_QUANT" else 0.05
    assert np.abs(found - expected).max() <= near * np.abs(expected).max()
    assert os.path.getsize(file) < os.path.getsize(path) / (2 if near == 1e-5 else 6)
    with pytest.raises(RuntimeError, match="inference alone"):
        other.set_train_mode(True)


def test_gradients_by_name_are_those_of_core_and_can_be_applied(path):
    model, step = loaded(path), step_of(LeNet, descent)
    model.get_gradients()  # kept from the next step on
    weights = step.network.trainable_params()
    gradients = ms.value_and_grad(step.network, None, weights)(*map(ms.Tensor, BATCHES[0]))[1]
    expected = float(step(*map(ms.Tensor, BATCHES[0])).asnumpy())
    assert abs(float(take(model, BATCHES[0])) - expected) <= 1e-5
    found = arrays(model.get_gradients())
    for weight, gradient in zip(weights, gradients, strict=True):
        np.testing.assert_allclose(found[weight.name], gradient.asnumpy(), atol=1e-5)
    before = arrays(model.get_trainable_params())
    model.apply_gradients(model.get_gradients())
    for name, array in arrays(model.get_trainable_params()).items():
        np.testing.assert_allclose(array, before[name] - 0.05 * found[name], atol=1e-6)
    with pytest.raises(RuntimeError, match="no gradient"):
        model.apply_gradients(model.get_gradients()[:-1])


def test_a_virtual_batch_is_one_step_on_all_of_its_batches(path, tmp_path):
    model, batches = loaded(path), BATCHES[:4]
    model.setup_virtual_batch(4)
    before = arrays(model.get_trainable_params())
    for i, batch in enumerate(batches):
        if i:
            np.testing.assert_array_equal(
                arrays(model.get_trainable_params())["fc1.weight"], before["fc1.weight"]
            )
        take(model, batch)
        if i < 3:
            with pytest.raises(RuntimeError, match="small steps"):
                model.export(tmp_path / "x.ms", export_inference_only=False)
    large = tuple(np.concatenate(a) for a in zip(*batches))
    step = step_of(LeNet, descent)
    step(*map(ms.Tensor, large))
    found = arrays(model.get_trainable_params())
    for parameter in step.network.trainable_params():
        np.testing.assert_allclose(found[parameter.name], parameter.asnumpy(), atol=1e-6)
    model.setup_virtual_batch(1)
    assert model.get_learning_rate() == pytest.approx(0.05)


def test_weights_are_set_by_name_all_or_none(path):
    model, other = loaded(path), loaded(path)
    take(other, BATCHES[0])
    model.update_feature_maps(other.get_feature_maps())
    for name, array in arrays(other.get_feature_maps()).items():
        np.testing.assert_array_equal(arrays(model.get_feature_maps())[name], array)
    wrong = mslite.Tensor(shape=[3], dtype=mslite.DataType.FLOAT32)
    wrong.name = "fc1.bias"
    take(other, BATCHES[1])
    before = arrays(model.get_feature_maps())
    with pytest.raises(RuntimeError, match=r"fc1.bias.*f32\[120\]"):
        model.update_feature_maps([*other.get_feature_maps()[:3], wrong])
    for name, array in arrays(model.get_feature_maps()).items():
        np.testing.assert_array_equal(array, before[name])


def test_loops_with_callbacks_and_metrics(path, tmp_path):
    told = []

    class Listener(TrainCallBack):
        def begin(self, progress):
            told.append("begin")

        def step_end(self, progress):
            told.append(progress.losses[-1])

        def epoch_end(self, progress):
            return progress.epoch < 2  # a third one is the last

        def end(self, progress):
            told.append("end")

    model = loaded(path, train=False)
    test = digits(4, seed=9)
    before = model.evaluate(test, [AccuracyMetrics()])["accuracy"]
    callbacks = [LRScheduler(multiplicative(0.5)), CkptSaver(2, str(tmp_path / "net")), Listener()]
    losses = model.train(9, BATCHES[:30], callbacks)
    assert len(losses) == 3 and losses[0] > losses[1] > losses[2]
    assert told[0] == "begin" and told[-1] == "end" and len(told) == 2 + 3 * 30
    assert model.get_learning_rate() == pytest.approx(0.05 / 8)
    assert os.listdir(tmp_path) == ["net_trained_epoch_1.ms"]
    assert not model.get_train_mode()
    assert model.evaluate(test, [AccuracyMetrics()])["accuracy"] > max(before, 0.8)


def test_a_writer_that_is_killed_leaves_the_old_file_or_the_new_one(path, tmp_path):
    """The process saves again and again after each step; it is killed at many moments."""
    file = tmp_path / "kept.ms"
    code = (
        "import sys; from steps import loaded, take, digits\n"
        "model, batches = loaded(sys.argv[1]), digits(4)\n"
        "print('begin', flush=True)\n"
        "while True:\n"
        "    for batch in batches:\n"
        "        take(model, batch)\n"
        "        model.export(sys.argv[2], export_inference_only=False)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, path, str(file)], cwd=Path(__file__).parent, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"begin\n"
        deadline = time.monotonic() + 30
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        for _ in range(20):  # a reader finds a whole file at any moment
            take(loaded(str(file)), BATCHES[0])
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert np.isfinite(take(loaded(str(file)), BATCHES[0]))
