"""`import mindspore` in compatibility mode: paths, old names, pickles, NumPy's names; nothing of it stays."""

from __future__ import annotations

import importlib
import pickle
import sys

import numpy as np
import pytest

import mycelia as ms
from mycelia import compat, nn
from mycelia.faces.compat import paths


@pytest.fixture
def mindspore():
    with compat.active():
        yield importlib.import_module("mindspore")


# Imports that scripts of the 1.x and 2.x years begin with.
IMPORTS = """
    mindspore Model nn context Tensor Parameter ParameterTuple set_seed
    mindspore.context set_context get_context GRAPH_MODE
    mindspore.common Tensor Parameter jit dtype
    mindspore.common.tensor Tensor
    mindspore.common.parameter Parameter ParameterTuple
    mindspore.common.dtype float32 int32
    mindspore.common.api jit ms_function _pynative_executor _cell_graph_executor
    mindspore.common.initializer initializer Normal One
    mindspore.common.seed set_seed
    mindspore.nn Cell Dense
    mindspore.nn.cell Cell
    mindspore.nn.layer.basic Dense Flatten
    mindspore.nn.layer.conv Conv2d
    mindspore.nn.layer.normalization BatchNorm2d
    mindspore.nn.loss.loss SoftmaxCrossEntropyWithLogits
    mindspore.nn.metrics Accuracy
    mindspore.nn.optim.momentum Momentum
    mindspore.nn.wrap.cell_wrapper WithLossCell TrainOneStepCell
    mindspore.nn.learning_rate_schedule ExponentialDecayLR
    mindspore.nn.dynamic_lr piecewise_constant_lr
    mindspore.ops operations functional composite
    mindspore.ops.operations Conv2D ReLU
    mindspore.ops.functional add reshape
    mindspore.ops.function.math_func matmul
    mindspore.train.callback Callback LossMonitor ModelCheckpoint SummaryStep TrainLineage EvalLineage
    mindspore.train.callback._callback Callback
    mindspore.train.model Model
    mindspore.train.serialization save_checkpoint load_checkpoint load_param_into_net export
    mindspore.dataset.engine GeneratorDataset
    mindspore.dataset.transforms.c_transforms TypeCast Compose
    mindspore.dataset.vision.c_transforms Resize Rescale HWC2CHW
    mindspore.dataset.vision.py_transforms HWC2CHW
    mindspore.log info warning
    mindspore.utils.runtime_execution_order_check RankFolderParser ExecuteOrder
    mindspore.parallel._auto_parallel_context auto_parallel_context
    mindspore.parallel._utils _get_device_num _get_gradients_mean _get_parallel_mode _get_global_rank
    mindspore.parallel._ps_context _is_role_sched _is_role_worker
    mindspore.common.initializer _calculate_fan_in_and_fan_out _calculate_correct_fan _assignment _register
    mindspore.nn.optim.optimizer opt_init_args_register Optimizer
    mindspore.nn.loss.loss _Loss LossBase
    mindspore.nn.layer.activation _activation get_activation
    mindspore.nn.wrap.cell_wrapper _VirtualDatasetCell
    mindspore.train.amp _config_level _add_loss_network
    mindspore.train.serialization _update_param _get_merged_param_data
    mindspore.boost.grad_accumulation gradient_accumulation_op gradient_clear_op
    mindspore.dataset.transforms.transforms PyTensorOperation TensorOperation
    mindspore.dataset.vision.py_transforms_util is_pil is_numpy hwc_to_chw
    mindspore.version __version__
"""


@pytest.mark.parametrize("line", [line.split() for line in IMPORTS.strip().split("\n")], ids=" ".join)
def test_imports_of_scripts_resolve(mindspore, line):
    module, *names = line
    namespace = {}
    exec(f"from {module} import {', '.join(names)}", namespace)
    assert all(namespace[name] is not None for name in names)


def test_modules_of_the_same_path_are_the_same_objects(mindspore):
    assert mindspore is ms
    assert importlib.import_module("mindspore.nn") is nn
    assert importlib.import_module("mindspore.nn.layer.basic").Dense is nn.Dense


def test_deep_paths_are_attributes_too(mindspore):
    assert mindspore.nn.layer.basic.Dense is nn.Dense
    assert mindspore.train.callback.Callback is ms.Callback


def test_old_names_mean_what_replaced_them(mindspore):
    assert mindspore.ms_function is ms.jit
    namespace = {}
    exec("from mindspore.ops import functional as F", namespace)
    assert namespace["F"].scalar_add(2, 3) == 5


def test_star_brings_the_names_of_all_modules_behind_a_path(mindspore):
    namespace = {}
    exec("from mindspore.nn.layer.basic import *", namespace)
    assert namespace["Dense"] is nn.Dense


@pytest.mark.parametrize(
    "line",
    ["import mindspore.nothing", "import mindspore.nn.layer.nothing", "from mindspore.nn import Nothing"],
)
def test_unknown_names_are_import_errors(mindspore, line):
    with pytest.raises(ImportError, match="[Nn]othing"):
        exec(line)


def test_errors_name_the_module_as_the_script_knows_it(mindspore):
    with pytest.raises(AttributeError, match="module 'mindspore.nn' has no attribute 'Nothing'"):
        mindspore.nn.Nothing  # noqa: B018


def test_every_path_in_the_table_leads_to_a_known_module():
    assert paths.modules("nn.layer.basic")[0] == "nn"
    assert paths.modules("nn.layer.unheard_of") is None


def test_tensor_and_parameter_are_pickled_as_mindspore_does(mindspore):
    value = ms.Tensor(np.arange(3, dtype=np.int16))
    assert repr(type(value)) == "<class 'mindspore.common.tensor.Tensor'>"
    data = pickle.dumps(value, 2)
    assert data.startswith(b"\x80\x02cmindspore.common.tensor\nTensor\n")
    assert pickle.loads(data).dtype is ms.int16
    weight = pickle.loads(pickle.dumps(ms.Parameter(ms.Tensor([1.5, 2.5]), "w", requires_grad=False)))
    assert (weight.name, weight.requires_grad, weight.asnumpy().tolist()) == ("w", False, [1.5, 2.5])


def test_bfloat16_is_pickled_too(mindspore):
    value = pickle.loads(pickle.dumps(ms.Tensor([1.5, 3.0], ms.bfloat16)))
    assert value.dtype is ms.bfloat16 and value.float().asnumpy().tolist() == [1.5, 3.0]


def test_numpy_has_the_names_and_the_printing_of_its_first_version(mindspore):
    assert eval("np.float_ is np.float64 and np.product([2, 3]) == 6", {"np": np})
    assert repr(np.float32(0.5)) == "0.5"


def test_arrays_of_one_element_are_numbers(mindspore):
    one = mindspore.Tensor([[2.5]]).asnumpy()
    assert (float(one), int(one * 2), complex(np.exp(one) * 0)) == (2.5, 5, 0j)
    assert repr(one) == "array([[2.5]], dtype=float32)" and isinstance(one, np.ndarray)
    assert type(pickle.loads(pickle.dumps(one))) is type(one + np.ones(3)) is np.ndarray
    with pytest.raises(TypeError):
        float(mindspore.Tensor([1.0, 2.0]).asnumpy())


def test_inner_modules_that_scripts_reach(mindspore):
    checks = importlib.import_module("mindspore._checkparam")
    assert checks.check_int_range(2, 1, 3, checks.INC_LEFT, "size") == 2
    with pytest.raises(ValueError, match=r"For 'Net', the 'size' must be in range of \[1, 3\)"):
        checks.check_int_range(3, 1, 3, checks.INC_LEFT, "size", "Net")
    with pytest.raises(TypeError, match="must be int"):
        checks.check_positive_int(1.5, "size")
    generated = importlib.import_module("mindspore.ops.auto_generate")
    x = mindspore.Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert generated.SumExt()(x, (0,), False, None).asnumpy().tolist() == [4.0, 6.0]
    with pytest.raises(AttributeError):
        generated.NoSuchPrimitive  # noqa: B018
    switches = importlib.import_module("mindspore._extends.parse.compile_config")
    assert switches.CHECK_BPROP == ""
    assert importlib.import_module("mindspore._c_expression").security.enable_security() is False


def test_unknown_name_suggests_the_nearest(mindspore):
    with pytest.raises(
        AttributeError, match="'mindspore' has no attribute 'set_contxt'; did you mean set_co"
    ):
        mindspore.set_contxt  # noqa: B018


def test_nothing_stays():
    before, getter = type(ms.Tensor([1])).__module__, vars(nn).get("__getattr__")
    with compat.active():
        importlib.import_module("mindspore.nn.layer.basic")
    assert not any(name.split(".")[0] == "mindspore" for name in sys.modules)
    assert ms.Tensor.__module__ == before and vars(nn).get("__getattr__") is getter
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("mindspore")
    assert pickle.loads(pickle.dumps(ms.Tensor([2]))).item() == 2


def test_old_entrances_of_the_compiler(mindspore):
    from mindspore import context
    from mindspore.common.api import _JitExecutor, _no_recursive
    from mindspore.common.file_system import FileSystem, _register_basic_file_system

    @_no_recursive
    def double(x):
        return x + x

    assert _JitExecutor(double, 0)(ms.Tensor([2.0, 5.0])).asnumpy().tolist() == [4.0, 10.0]
    assert context.K_CONTEXT is None and context.get_jit_config() == ms.get_context("jit_config")
    files = FileSystem()
    assert _register_basic_file_system(files) and files.open_args == ("rb",)


def test_a_function_stays_where_mindspore_has_a_module_too(mindspore):
    import mindspore.common.mutable
    import mindspore.utils.runtime_execution_order_check

    assert mindspore.common.mutable is ms.mutable
    assert mindspore.utils.runtime_execution_order_check is ms.utils.runtime_execution_order_check
    assert callable(ms.utils.runtime_execution_order_check)


def test_arrays_are_filled_and_checkpoints_listed(tmp_path):
    with compat.active():
        from mindspore._c_expression import _random_normal, _random_uniform, _truncated_normal
        from mindspore.train._utils import _construct_tensor_list
        from mindspore.train.callback import _CheckpointManager
    data = np.zeros((100, 50), np.float32)
    _random_normal(3, data, 2.0, 0.5)
    assert abs(data.mean() - 2) < 0.05 and abs(data.std() - 0.5) < 0.05
    _random_uniform(3, data, -1.0, 3.0)
    assert data.min() >= -1 and data.max() <= 3 and abs(data.mean() - 1) < 0.1
    _truncated_normal(3, data, -1.0, 2.0, 5.0, 0.5)
    assert data.min() >= 4.5 and data.max() <= 6.0
    assert [t.shape for t in _construct_tensor_list((ms.float32, ms.int32), ((2, 3), (2,)), 4)] == [
        (8, 3),
        (8,),
    ]
    for name in ("a-1.ckpt", "a_1-2.ckpt", "b-1.ckpt"):
        (tmp_path / name).touch()
    manager = _CheckpointManager()
    manager.update_ckpoint_filelist(str(tmp_path), "a")
    assert manager.ckpoint_num == 2
    manager.remove_oldest_ckpoint_file()
    assert manager.ckpoint_num == len(list(tmp_path.glob("a*"))) == 1
