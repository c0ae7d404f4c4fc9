"""Helpers of MindSpore that public scripts import with an underscore, as those scripts use them."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from mycelia import compat


@pytest.fixture
def mindspore():
    with compat.active():
        found = importlib.import_module("mindspore")
        yield found
        found.context.reset_auto_parallel_context()


def _of(module: str, *names: str):
    found = importlib.import_module(f"mindspore.{module}")
    return [getattr(found, name) for name in names]


def test_settings_of_parallel_training(mindspore):
    (settings,) = _of("parallel._auto_parallel_context", "auto_parallel_context")
    mode, mean, number = _of(
        "parallel._utils", "_get_parallel_mode", "_get_gradients_mean", "_get_device_num"
    )
    assert (mode(), mean(), number()) == ("stand_alone", False, 1)
    mindspore.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, device_num=4)
    assert (mode(), mean(), number()) == ("data_parallel", True, 4)
    assert settings().get_device_num_is_set() and settings().get_device_num() == 4
    settings().set_gradients_mean(False)
    assert mean() is False
    with pytest.raises(AttributeError, match="get_colour"):
        settings().get_colour()


def test_the_version_is_that_of_mindspore_while_it_is_meant(mindspore):
    assert mindspore.__version__ == importlib.import_module("mindspore.version").__version__ == "2.10.0"


def test_helpers_of_initializers(mindspore):
    fans, fan, gain, assign, register = _of(
        "common.initializer",
        "_calculate_fan_in_and_fan_out", "_calculate_correct_fan", "_calculate_gain", "_assignment",
        "_register",
    )  # fmt: skip
    assert fans((3, 4, 5, 5)) == (100, 75)
    assert fan((3, 4), "FAN_OUT") == 3 and gain("leaky_relu", 0) == pytest.approx(2**0.5)
    initializer, base = _of("common.initializer", "initializer", "Initializer")

    @register("thirds")
    class Thirds(base):
        def _initialize(self, arr):
            assign(arr, np.full(arr.shape, 3))

    aliases = importlib.import_module("mycelia.common.initializer")._ALIASES
    try:
        assert initializer("thirds", [2], mindspore.float32).asnumpy().tolist() == [3, 3]
    finally:
        del aliases["thirds"]


def test_arguments_of_an_optimizer_are_kept(mindspore):
    keep, optimizer = _of("nn.optim.optimizer", "opt_init_args_register", "Optimizer")

    class Slow(optimizer):
        @keep
        def __init__(self, params, learning_rate=0.5, decay=2):
            super().__init__(learning_rate, params)

    net = mindspore.nn.Dense(2, 2)
    made = Slow(net.trainable_params(), learning_rate=mindspore.Tensor(0.25))
    assert made.init_args == {"learning_rate": 0.25, "decay": 2} and len(made.init_params["params"]) == 2


def test_gradients_are_accumulated_and_looked_at(mindspore):
    add, clear = _of("boost.grad_accumulation", "gradient_accumulation_op", "gradient_clear_op")
    (overflow,) = _of("nn.wrap.loss_scale", "_grad_overflow")
    ops, tensor = mindspore.ops, mindspore.Tensor
    totals = mindspore.ParameterTuple([mindspore.Parameter(tensor([1.0, 2.0]), name="total")])
    each = ops.HyperMap()
    each(ops.partial(add, 2), totals, (tensor([2.0, 4.0]),))
    assert totals[0].asnumpy().tolist() == [2, 4]
    each(clear, totals)
    assert totals[0].asnumpy().tolist() == [0, 0]
    flags = each(ops.partial(overflow), (tensor([1.0, float("inf")]), tensor([1.0])))
    assert [flag.asnumpy().tolist() for flag in flags] == [[1], [0]]


def test_parameters_are_updated(mindspore):
    (update,) = _of("train.serialization", "_update_param")
    parameter = mindspore.Parameter(mindspore.Tensor([1.0, 2.0]), name="a.weight")
    update(parameter, mindspore.Parameter(mindspore.Tensor([5.0, 6.0]), name="a.weight"), False)
    assert parameter.asnumpy().tolist() == [5, 6]
    with pytest.raises(RuntimeError):
        update(parameter, mindspore.Parameter(mindspore.Tensor([5.0]), name="a.weight"), False)


def test_helpers_of_transforms(mindspore):
    (base,) = _of("dataset.transforms.transforms", "PyTensorOperation")
    is_pil, to_chw = _of("dataset.vision.py_transforms_util", "is_pil", "hwc_to_chw")

    class Double(base):
        def _execute_py(self, image):
            return image * 2

    assert Double()(np.ones(2)).tolist() == [2, 2]
    assert to_chw(np.zeros((4, 5, 3))).shape == (3, 4, 5) and not is_pil(np.zeros(1))


def test_a_warning_comes_once(mindspore):
    (once,) = _of("log", "_LogActionOnce")

    class Logger:
        seen = []

        def warning(self, text):
            self.seen.append(text)

    logger = Logger()

    @once(logger=logger, key="test_a_warning_comes_once")
    def work():
        logger.warning("careful")

    work()
    work()
    assert Logger.seen == ["careful"]
